// This file measures what back-off costs: how much of a host's throughput is left,
// and how often the host refuses, for servers that fail at random and servers
// that defend themselves. go test -run BackoffPays -v -frontier.long . prints all.

package politeness

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// simServer answers contacts of 20 ms, some of which fail.
type simServer struct {
	name  string
	lanes int // leases of the host at once

	share  float64          // of contacts that fail by themselves
	kind   frontier.Failure // how these do
	gap    time.Duration    // contacts that come sooner after the last one's end are refused
	limit  int              // and those beyond so many at once; 0: any number
	rate   float64          // tokens a second of a bucket of 20, of which each contact takes one, or is refused
	reason frontier.Failure // how contacts are refused

	least float64 // contacts a second that must go well

	random *rand.Rand
	open   int
	last   time.Time // end of the last contact
	asked  time.Time
	tokens float64
}

// meets is how a contact goes that starts now, and whether it is refused.
func (s *simServer) meets(now time.Time) (o frontier.Outcome, refused bool) {
	refused = !s.last.IsZero() && now.Sub(s.last) < s.gap || s.limit > 0 && s.open >= s.limit
	if s.rate > 0 {
		s.tokens = min(20, s.tokens+s.rate*now.Sub(s.asked).Seconds())
		s.asked = now
		if refused = s.tokens < 1; !refused {
			s.tokens--
		}
	}
	switch {
	case refused:
		return harness.Failing(s.reason), true
	case s.random.Float64() < s.share:
		return harness.Failing(s.kind), false
	}
	return o, false
}

// answers counts contacts after the first minutes.
type answers struct{ all, good, refused int }

// crawled crawls the server for the given time.
func (s *simServer) crawled(t *testing.T, warm, length time.Duration) (x answers) {
	w := harness.NewWorld(t, frontier.Options{HostConcurrency: s.lanes, Retry: frontier.Retries(1, 0)})
	type contact struct {
		lease frontier.Lease
		end   time.Time
		o     frontier.Outcome
	}
	var out []contact // in the order of their ends, for all take as long
	for added := 0; w.At() < length; {
		if w.F.Stats().Waiting == 0 {
			added++
			w.AddMany(fmt.Sprintf("a.example/%d", added), 500)
		}
		l, at, err := w.F.TryNext()
		if err == nil {
			o, refused := s.meets(w.Clock.Now())
			s.open++
			out = append(out, contact{l, w.Clock.Now().Add(20 * time.Millisecond), o})
			if w.At() >= warm {
				x.all, x.good, x.refused = x.all+1, x.good+harness.Btoi(o.Result != frontier.Failed), x.refused+harness.Btoi(refused)
			}
			continue
		}
		require.ErrorIs(t, err, frontier.ErrNotDue)
		if len(out) == 0 || !at.IsZero() && out[0].end.After(at) {
			w.Clock.Set(at)
			continue
		}
		w.Clock.Set(out[0].end)
		s.open, s.last = s.open-1, out[0].end
		require.NoError(t, w.F.Done(out[0].lease, out[0].o))
		out = out[1:]
	}
	for _, c := range out {
		w.Clock.Set(c.end)
		require.NoError(t, w.F.Done(c.lease, c.o))
	}
	return x
}

// simServers are the servers that must be crawled well, and in a long run others.
func simServers() (all []*simServer) {
	most := 1
	if *harness.Long {
		most = 4
	}
	for lanes := 1; lanes <= most; lanes++ {
		add := func(s simServer) {
			if s.lanes = lanes; lanes > 1 {
				s.least = 0
			}
			s.random = rand.New(rand.NewPCG(uint64(len(all)), 1))
			all = append(all, &s)
		}
		add(simServer{name: "never fails", least: 0.97})
		for _, p := range []float64{0.005, 0.01, 0.02, 0.05} {
			add(simServer{name: fmt.Sprintf("503 for %v %%", 100*p), share: p, kind: frontier.FailureUnavailable, least: 0.4})
		}
		add(simServer{name: "no connection for 1 %", share: 0.01, kind: frontier.FailureConnect, least: 0.4})
		for _, kind := range []frontier.Failure{frontier.FailureTooMany, frontier.FailureUnavailable} {
			for _, gap := range []time.Duration{100 * time.Millisecond, time.Second + time.Millisecond, 5 * time.Second, time.Minute} {
				add(simServer{name: fmt.Sprintf("gap of %v, else %v", gap, kind), gap: gap, reason: kind, least: 0.4 * min(1, 1/gap.Seconds())})
			}
			for _, rate := range []float64{0.95, 0.5, 0.2, 0.05} {
				add(simServer{name: fmt.Sprintf("%v/s, else %v", rate, kind), rate: rate, reason: kind, least: 0.4 * rate})
			}
			add(simServer{name: fmt.Sprintf("one at once, else %v", kind), limit: 1, reason: kind, least: 0.97})
		}
		if *harness.Long {
			for _, p := range []float64{0.1, 0.2, 0.3} {
				add(simServer{name: fmt.Sprintf("503 for %v %%", 100*p), share: p, kind: frontier.FailureUnavailable})
			}
			for _, gap := range []time.Duration{100 * time.Millisecond, time.Second + time.Millisecond, 5 * time.Second, time.Minute} {
				add(simServer{
					name: fmt.Sprintf("gap of %v, else 503, and that for 1 %%", gap),
					gap:  gap, reason: frontier.FailureUnavailable, share: 0.01, kind: frontier.FailureUnavailable,
				})
			}
		}
	}
	return all
}

// Random failures cost little, though one by one they look like those of a server that refuses too
// many contacts; and such a server refuses rarely.
func TestBackoffPays(t *testing.T) {
	warm, length := 10*time.Minute, 90*time.Minute
	if *harness.Long {
		length = 12 * time.Hour
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-44s %5s %10s %9s\n", "server", "lanes", "good/s", "refused")
	for _, s := range simServers() {
		x := s.crawled(t, warm, length)
		good := float64(x.good) / (length - warm).Seconds()
		refused := float64(x.refused) / float64(x.all)
		fmt.Fprintf(&table, "%-44s %5d %10.3f %8.2f%%\n", s.name, s.lanes, good, 100*refused)
		assert.GreaterOrEqual(t, good, s.least, s.name)
		if s.least > 0 && s.reason != 0 {
			most := max(1, x.all/100)
			if s.rate > 0 && s.reason != frontier.FailureTooMany {
				most *= 2 // it does not say what it wants, and refuses only some
			}
			assert.LessOrEqual(t, x.refused, most, s.name)
		}
	}
	t.Log("\n" + table.String())
}
