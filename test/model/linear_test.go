// This file records what calls at once return, and asks a checker whether calls
// one after the other could have returned the same.

package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const linearHosts = 2

// linearState is a frontier of a few hosts, without delays and priorities. URLs are
// letters; letter x is of host x modulo linearHosts.
type linearState struct {
	known  string              // ascending
	queue  [linearHosts]string // what waits, in order
	leased [linearHosts]byte   // 0: none
	ending string              // their leases have ended, and they are not done with yet; ascending
}

func with(set string, x byte) string {
	b := append([]byte(set), x)
	slices.Sort(b)
	return string(b)
}

func linearHost(x byte) int { return int(x) % linearHosts }

// A linearCall is a call, or one of the two steps of Done. With a store these are
// two: the host is free at once, and what the outcome says of URLs is visible when
// it is durable.
type linearCall struct {
	kind   linearKind
	urls   string // added, or links of a completion
	url    byte   // of the lease
	failed bool   // the URL is to come again
	back   bool   // the same, as the first
}

type linearKind byte

const (
	callAdd      linearKind = iota // answer: how many were new
	callNext                       // answer: a URL, none of them now, or none at all
	callFree                       // Done frees the host
	callComplete                   // Done ends the URL
)

type linearAnswer struct {
	n    int
	url  byte // 0: none now
	over bool // and never
}

// step is the specification: whether the call may return this in state s, and the
// state afterwards.
func (s linearState) step(c linearCall, a linearAnswer) (bool, linearState) {
	switch c.kind {
	case callAdd:
		n := s.admit(c.urls)
		return n == a.n, s
	case callNext:
		waits, leased := false, false
		for h := range linearHosts {
			leased = leased || s.leased[h] != 0
			waits = waits || s.queue[h] != "" && s.leased[h] == 0
		}
		switch {
		case a.url == 0:
			return !waits && !(a.over && (leased || s.ending != "")), s
		case s.leased[linearHost(a.url)] != 0 || !strings.HasPrefix(s.queue[linearHost(a.url)], string(a.url)):
			return false, s
		}
		h := linearHost(a.url)
		s.queue[h], s.leased[h] = s.queue[h][1:], a.url
		return true, s
	case callFree:
		h := linearHost(c.url)
		if s.leased[h] != c.url {
			return false, s
		}
		if s.leased[h] = 0; c.back {
			s.queue[h] = string(c.url) + s.queue[h]
		} else {
			s.ending = with(s.ending, c.url)
		}
		return true, s
	default:
		i := strings.IndexByte(s.ending, c.url)
		if i < 0 {
			return false, s
		}
		s.ending = s.ending[:i] + s.ending[i+1:]
		s.admit(c.urls)
		if c.failed {
			s.queue[linearHost(c.url)] += string(c.url)
		}
		return true, s
	}
}

func (s *linearState) admit(urls string) (n int) {
	for _, x := range []byte(urls) {
		if strings.IndexByte(s.known, x) < 0 {
			s.known = with(s.known, x)
			s.queue[linearHost(x)] += string(x)
			n++
		}
	}
	return n
}

var linearModel = porcupine.Model{
	Init: func() any { return linearState{} },
	Step: func(s, in, out any) (bool, any) { return s.(linearState).step(in.(linearCall), out.(linearAnswer)) },
	DescribeOperation: func(in, out any) string {
		c, a := in.(linearCall), out.(linearAnswer)
		return [...]string{
			fmt.Sprintf("Add(%s) = %d", c.urls, a.n), fmt.Sprintf("Next() = %q, over %t", string(a.url), a.over),
			fmt.Sprintf("Done(%c) frees, back %t", c.url, c.back), fmt.Sprintf("Done(%c) ends, failed %t, adds %s", c.url, c.failed, c.urls),
		}[c.kind]
	},
}

// recorder collects a history. Its clock counts calls and returns, so that which
// came first is beyond doubt.
type recorder struct {
	clock atomic.Int64
	mu    sync.Mutex
	ops   []porcupine.Operation
}

func (r *recorder) returned(client int, call int64, a linearAnswer, cs ...linearCall) {
	end := r.clock.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range cs {
		r.ops = append(r.ops, porcupine.Operation{ClientId: 2*client + i, Input: c, Output: a, Call: call, Return: end})
	}
}

func (r *recorder) String() string {
	var b strings.Builder
	for _, o := range r.ops {
		fmt.Fprintf(&b, "%4d to %4d: %s\n", o.Call, o.Return, linearModel.DescribeOperation(o.Input, o.Output))
	}
	return b.String()
}

// linearWorker makes random calls, and ends the leases that it got.
type linearWorker struct {
	*recorder
	t      *testing.T
	f      *frontier.Frontier
	rand   *rand.Rand
	id     int
	leases []frontier.Lease
}

func letterURL(x byte) string { return fmt.Sprintf("http://h%d.example/%c", linearHost(x), x) }

func letterOf(url string) byte { return url[len(url)-1] }

func (w *linearWorker) draw(most int) (entries []frontier.Entry, urls string) {
	for range w.rand.IntN(most + 1) {
		x := byte('a' + w.rand.IntN(8))
		entries, urls = append(entries, frontier.Entry{URL: letterURL(x)}), urls+string(x)
	}
	return entries, urls
}

func (w *linearWorker) add() {
	entries, urls := w.draw(3)
	call := w.clock.Add(1)
	n, err := w.f.Add(context.Background(), entries...)
	assert.NoError(w.t, err)
	w.returned(w.id, call, linearAnswer{n: n}, linearCall{kind: callAdd, urls: urls})
}

// next asks for a lease. A worker with a lease does not wait: no other could end it.
func (w *linearWorker) next() {
	var l frontier.Lease
	var err error
	call := w.clock.Add(1)
	if len(w.leases) == 0 && w.rand.IntN(3) == 0 {
		l, err = w.f.Next(context.Background())
	} else {
		l, _, err = w.f.TryNext()
	}
	a := linearAnswer{over: errors.Is(err, frontier.ErrExhausted)}
	if err == nil {
		a.url = letterOf(l.Entry.URL)
		w.leases = append(w.leases, l)
	} else if !a.over {
		assert.ErrorIs(w.t, err, frontier.ErrNotDue)
	}
	w.returned(w.id, call, a, linearCall{kind: callNext})
}

func (w *linearWorker) done(o frontier.Outcome, urls string) {
	i := w.rand.IntN(len(w.leases))
	l := w.leases[i]
	w.leases = slices.Delete(w.leases, i, i+1)
	free := linearCall{kind: callFree, url: letterOf(l.Entry.URL), back: o.Result == frontier.Requeue}
	end := linearCall{kind: callComplete, url: free.url, urls: urls, failed: o.Result == frontier.Failed}
	call := w.clock.Add(1)
	assert.NoError(w.t, w.f.Done(l, o))
	if free.back {
		w.returned(w.id, call, linearAnswer{}, free)
	} else {
		w.returned(w.id, call, linearAnswer{}, free, end)
	}
}

func (w *linearWorker) work(calls int) {
	for range calls {
		for range w.rand.IntN(3) {
			runtime.Gosched()
		}
		switch x := w.rand.IntN(10); {
		case x < 3:
			w.add()
		case x < 6 || len(w.leases) == 0:
			w.next()
		default:
			var o frontier.Outcome
			var urls string
			switch w.rand.IntN(4) {
			case 0:
				o.Result = frontier.Failed
			case 1:
				o = harness.Requeue
			default:
				o.Add, urls = w.draw(2)
			}
			w.done(o, urls)
		}
	}
	for len(w.leases) > 0 { // others may wait for their hosts
		w.done(frontier.Outcome{}, "")
	}
}

// unhurried is a store that lets others work while it writes, so that they meet
// what is on its way.
type unhurried struct{ storage.Spill }

func (s unhurried) Commit(b *storage.Batch) error {
	for range 50 {
		runtime.Gosched()
	}
	return s.Spill.Commit(b)
}

// linearHistory lets workers at a frontier of its own.
func linearHistory(t *testing.T, r *rand.Rand, store bool) *recorder {
	o := harness.Quantum(1+r.IntN(3), frontier.Options{
		Priorities: 1, Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1000, 0), Quarantine: frontier.Quarantine{Disabled: true},
		Backoff: frontier.Backoff{Disabled: true},
	})
	if store {
		o.Spill = unhurried{spilltest.OpenMemory(t, spill.Options{}).Store}
	}
	f, err := frontier.Open(context.Background(), o)
	require.NoError(t, err)
	defer harness.Ended(t, f)
	rec := &recorder{}
	var workers sync.WaitGroup
	for id := range 3 {
		w := &linearWorker{recorder: rec, t: t, f: f, rand: rand.New(rand.NewPCG(r.Uint64(), 1)), id: id}
		workers.Go(func() { w.work(6) })
	}
	if moves := r.IntN(3); store {
		workers.Go(func() {
			for range moves {
				assert.NoError(t, hook.Of(f).MoveNow(true)) // the next hand-outs read
			}
		})
	}
	workers.Wait()
	return rec
}

func TestLinearizable(t *testing.T) {
	histories := 300
	switch {
	case *harness.Long:
		histories = 10_000
	case harness.RaceEnabled:
		histories = 50
	}
	for _, store := range []bool{false, true} {
		t.Run(map[bool]string{false: "in memory", true: "on a store"}[store], func(t *testing.T) {
			r, n := harness.NewRand(t), trycount.Of(t)
			for range histories {
				h := linearHistory(t, r, store)
				n.Tried(1)
				require.True(t, porcupine.CheckOperations(linearModel, h.ops), "no order of these calls explains what they returned:\n%v", h)
			}
		})
	}
}

// The checker finds what would be wrong.
func TestHistoriesThatAreNotLinearizable(t *testing.T) {
	add := func(n int, urls string) (linearCall, linearAnswer) {
		return linearCall{kind: callAdd, urls: urls}, linearAnswer{n: n}
	}
	next := func(url byte, over bool) (linearCall, linearAnswer) {
		return linearCall{kind: callNext}, linearAnswer{url: url, over: over}
	}
	free := func(url byte) (linearCall, linearAnswer) {
		return linearCall{kind: callFree, url: url}, linearAnswer{}
	}
	type event struct {
		c    linearCall
		a    linearAnswer
		from int64
		to   int64
	}
	at := func(from, to int64) func(linearCall, linearAnswer) event {
		return func(c linearCall, a linearAnswer) event { return event{c, a, from, to} }
	}
	for name, c := range map[string]struct {
		want   bool
		events []event
	}{
		"two Adds of a URL at once":      {true, []event{at(1, 4)(add(1, "a")), at(2, 3)(add(0, "a"))}},
		"both admit it":                  {false, []event{at(1, 4)(add(1, "a")), at(2, 3)(add(1, "a"))}},
		"a URL is handed out twice":      {false, []event{at(1, 2)(add(1, "a")), at(3, 6)(next('a', false)), at(4, 5)(next('a', false))}},
		"a host is leased twice":         {false, []event{at(1, 2)(add(2, "ac")), at(3, 6)(next('a', false)), at(4, 5)(next('c', false))}},
		"not in order":                   {false, []event{at(1, 2)(add(2, "ac")), at(3, 4)(next('c', false))}},
		"an Add is not seen":             {false, []event{at(1, 2)(add(1, "a")), at(3, 4)(next(0, false))}},
		"an Add under way is not seen":   {true, []event{at(1, 4)(add(1, "a")), at(2, 3)(next(0, false))}},
		"over while a URL is leased":     {false, []event{at(1, 2)(add(1, "a")), at(3, 4)(next('a', false)), at(5, 6)(next(0, true))}},
		"over while a Done is under way": {false, []event{at(1, 2)(add(1, "a")), at(3, 4)(next('a', false)), at(5, 6)(free('a')), at(7, 8)(next(0, true))}},
	} {
		var ops []porcupine.Operation
		for i, e := range c.events {
			ops = append(ops, porcupine.Operation{ClientId: i, Input: e.c, Output: e.a, Call: e.from, Return: e.to})
		}
		require.Equal(t, c.want, porcupine.CheckOperations(linearModel, ops), name)
	}
}
