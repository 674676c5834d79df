// This file says what becomes of URLs: by the outcome of a visit, by their order,
// and when they are known.

package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outcomeTable is the table of what an outcome does to the host's clock and to
// the URL, row by row.
func outcomeTable() []behaviour {
	const fetch, delay, retry = 500 * time.Millisecond, 2 * time.Second, 10 * time.Second
	type row struct {
		name  string
		o     frontier.Outcome
		free  time.Duration // when the host may be contacted again
		first bool          // the URL is the next of its host
		again time.Duration // otherwise: when it comes again; 0: never
		try   int           // at which attempt
	}
	var out []behaviour
	for _, r := range []row{
		{"visited", visited(frontier.Visited), fetch + delay, false, 0, 0},
		{"changed", visited(frontier.Changed), fetch + delay, false, 0, 0},
		{"unchanged", visited(frontier.Unchanged), fetch + delay, false, 0, 0},
		{"visited, to come again", frontier.Outcome{Next: harness.Dawn.Add(time.Hour)}, fetch + delay, false, time.Hour, 1},
		{"gone", visited(frontier.Gone), fetch + delay, false, 0, 0},
		{"gone, to be checked", frontier.Outcome{Result: frontier.Gone, Next: harness.Dawn.Add(time.Hour)}, fetch + delay, false, time.Hour, 1},
		{"failed", visited(frontier.Failed), fetch + delay, false, fetch + retry, 2},
		{"failed, with a time", frontier.Outcome{Result: frontier.Failed, Next: harness.Dawn.Add(time.Hour)}, fetch + delay, false, time.Hour, 2},
		{"failed, with Retry-After", frontier.Outcome{Result: frontier.Failed, RetryAfter: time.Minute}, fetch + time.Minute, false, fetch + time.Minute + delay, 2},
		{"denied, not contacted", frontier.Outcome{Result: frontier.Denied, Uncontacted: true}, fetch, false, 0, 0},
		{"denied, contacted", visited(frontier.Denied), fetch + delay, false, 0, 0},
		{"requeued, not contacted", harness.Requeue, fetch, true, 0, 1},
		{"requeued, contacted", visited(frontier.Requeue), fetch + delay, true, 0, 1},
	} {
		out = append(out, behaviour{
			"outcome: " + r.name,
			frontier.Options{Delay: frontier.FixedDelay(delay), Retry: frontier.Retries(2, retry)},
			func(t *testing.T, s *harness.Station) {
				s.URLs("http://a.example/1", "http://a.example/2")
				l := s.NextIs(0, "http://a.example/1")
				s.Settle()
				s.Fetched(l, fetch, r.o)
				s.Settle()
				if r.first {
					l = s.NextIs(r.free, "http://a.example/1")
					require.Equal(t, r.try, l.Attempt)
					s.Done(l, frontier.Outcome{})
					require.Equal(t, []string{"http://a.example/2"}, s.Drain())
					return
				}
				s.Done(s.NextIs(r.free, "http://a.example/2"), frontier.Outcome{})
				if r.again > 0 {
					l = s.NextIs(r.again, "http://a.example/1")
					require.Equal(t, r.try, l.Attempt)
					s.Done(l, frontier.Outcome{})
				}
				s.Over()
				require.Positive(t, s.F.Stats().Done[r.o.Result])
			},
		})
	}
	return out
}

// hourly visits every page again an hour after its visit, until the third.
type hourly struct{}

func (hourly) Next(v frontier.Visit) (time.Time, frontier.State) {
	if v.History.Visits >= 3 {
		return time.Time{}, frontier.State{}
	}
	return v.Outcome.Ended.Add(time.Hour), frontier.State{}
}

var fates = []behaviour{
	{"a scheduled visit carries history and Meta", frontier.Options{Scheduler: hourly{}}, func(t *testing.T, s *harness.Station) {
		s.Put(1, frontier.Entry{URL: "http://a.example/", Depth: 2, Weight: 0.75, Meta: []byte("first")})
		l := s.NextIs(0, "http://a.example/")
		require.Equal(t, frontier.History{}, l.History)
		s.Settle()
		mod := harness.Dawn.Add(-time.Hour)
		s.Done(l, frontier.Outcome{Result: frontier.Changed, Modified: mod, Meta: []byte("second")})
		s.Counts(0, 1, 0)

		l = s.NextIs(time.Hour, "http://a.example/")
		requireEntry(t, frontier.Entry{URL: "http://a.example/", Depth: 2, Weight: 0.75, Meta: []byte("second")}, l.Entry)
		requireHistory(t, frontier.History{Visits: 1, Changes: 1, FirstVisit: harness.Dawn, LastVisit: harness.Dawn, LastChange: harness.Dawn, LastModified: mod}, l.History)
		s.Fetched(l, time.Second, visited(frontier.Unchanged))
		s.Settle()

		l = s.NextIs(2*time.Hour+time.Second, "http://a.example/")
		requireEntry(t, frontier.Entry{URL: "http://a.example/", Depth: 2, Weight: 0.75, Meta: []byte("second")}, l.Entry)
		requireHistory(t, frontier.History{
			Visits: 2, Changes: 1, FirstVisit: harness.Dawn, LastVisit: harness.Dawn.Add(time.Hour + time.Second), LastChange: harness.Dawn, LastModified: mod,
		}, l.History)
		s.Done(l, frontier.Outcome{})
		s.Over()
	}},
	{"Outcome.Next goes before the scheduler", frontier.Options{Scheduler: hourly{}}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		s.Done(s.Next(), frontier.Outcome{Next: harness.Dawn.Add(time.Minute)})
		s.NextIs(time.Minute, "http://a.example/")
	}},
	{"a visit in the past is due at once", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		s.Clock.Advance(time.Hour)
		s.Done(s.Next(), frontier.Outcome{Next: harness.Dawn.Add(-1000 * time.Hour)})
		l := s.NextIs(time.Hour, "http://a.example/")
		require.Equal(t, 1, l.History.Visits)
	}},
	{"a failure keeps what was learned before", frontier.Options{Retry: frontier.Retries(3, time.Minute)}, func(t *testing.T, s *harness.Station) {
		s.Put(1, frontier.Entry{URL: "http://a.example/", Meta: []byte("old")})
		s.Done(s.Next(), frontier.Outcome{Result: frontier.Changed, Next: harness.Dawn.Add(time.Hour)})
		s.Done(s.NextIs(time.Hour, "http://a.example/"), frontier.Outcome{Result: frontier.Failed, Meta: []byte("new")})
		l := s.NextIs(time.Hour+time.Minute, "http://a.example/")
		require.Equal(t, 2, l.Attempt)
		require.Equal(t, "new", string(l.Entry.Meta))
		require.Equal(t, 1, l.History.Visits)
		s.Done(l, frontier.Outcome{Next: harness.Dawn.Add(3 * time.Hour)})
		l = s.NextIs(3*time.Hour, "http://a.example/")
		require.Equal(t, 1, l.Attempt, "a success starts the count anew")
		require.Equal(t, 2, l.History.Visits)
	}},
	{"tries end, and are told", frontier.Options{Retry: frontier.Retries(3, 10*time.Second)}, nil},
}

func init() {
	fates[len(fates)-1].run = func(t *testing.T, s *harness.Station) {
		g := s.Watched()
		s.Put(1, frontier.Entry{URL: "http://a.example/", Meta: []byte("m"), Crawl: 3})
		for i, at := range []time.Duration{0, 10 * time.Second, 50 * time.Second} {
			require.Empty(t, g.URLs())
			l := s.NextIs(at, "http://a.example/")
			require.Equal(t, i+1, l.Attempt)
			s.Done(l, visited(frontier.Failed))
		}
		s.Over()
		require.Equal(t, []string{"http://a.example/"}, g.URLs())
		requireEntry(t, frontier.Entry{URL: "http://a.example/", Meta: []byte("m"), Crawl: 3}, g.Entries[0])
		require.Equal(t, frontier.Failed, g.Results[0])
		x := s.F.Stats()
		require.Equal(t, []int64{2, 1, 3}, []int64{x.Retried, x.GivenUp, x.Done[frontier.Failed]})
		s.Put(0, frontier.Entry{URL: "http://a.example/", Crawl: 3}) // it stays known
		s.Over()
	}
}

func requireEntry(t *testing.T, want, got frontier.Entry) {
	t.Helper()
	require.True(t, bytes.Equal(want.Meta, got.Meta), "Meta is %d bytes, want %d", len(got.Meta), len(want.Meta))
	want.Meta, got.Meta = nil, nil
	require.Equal(t, want, got)
}

func requireHistory(t *testing.T, want, got frontier.History) {
	t.Helper()
	for _, x := range []struct {
		name      string
		want, got time.Time
	}{
		{"FirstVisit", want.FirstVisit, got.FirstVisit}, {"LastVisit", want.LastVisit, got.LastVisit},
		{"LastChange", want.LastChange, got.LastChange}, {"LastModified", want.LastModified, got.LastModified},
	} {
		require.True(t, x.want.Equal(x.got), "%s is %v, want %v", x.name, x.got, x.want)
	}
	require.Equal(t, [2]int{want.Visits, want.Changes}, [2]int{got.Visits, got.Changes})
}

var order = []behaviour{
	{"first in, first out within host and priority", harness.Quantum(5, frontier.Options{
		Delay: frontier.FixedDelay(0), Priorities: 3, Selector: selector.Strict(),
	}), func(t *testing.T, s *harness.Station) {
		want := map[string][]string{}
		for i := range 200 {
			for h := range 3 {
				depth := (i + h) % 3
				u := fmt.Sprintf("http://h%d.example/%d/%d", h, depth, i)
				s.Put0(frontier.Entry{URL: u, Depth: depth})
				k := fmt.Sprintf("%d %d", h, 3-depth)
				want[k] = append(want[k], u)
			}
			if i%61 == 60 {
				s.Settle()
			}
		}
		got, priority := map[string][]string{}, 3
		for i := 0; ; i++ {
			l, _, err := s.TryNext()
			if errors.Is(err, frontier.ErrExhausted) {
				break
			}
			require.NoError(t, err)
			require.LessOrEqual(t, l.Priority, priority, "strict")
			priority = l.Priority
			k := fmt.Sprintf("%s %d", l.Host[1:2], l.Priority)
			got[k] = append(got[k], l.Entry.URL)
			o := frontier.Outcome{}
			if i%7 == 0 {
				o, got[k] = harness.Requeue, got[k][:len(got[k])-1] // comes first again
			}
			require.NoError(t, s.F.Done(l, o))
			if i%97 == 96 {
				s.Settle()
			}
		}
		require.Equal(t, want, got)
	}},
	{"NotBefore holds to the nanosecond", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		at := 90*time.Minute + 7*time.Millisecond
		s.Put(2, frontier.Entry{URL: "http://a.example/later", NotBefore: harness.Dawn.Add(at)}, frontier.Entry{URL: "http://b.example/past", NotBefore: harness.Dawn.Add(-at)})
		s.Counts(1, 1, 0)
		s.Done(s.NextIs(0, "http://b.example/past"), frontier.Outcome{})
		s.NextIs(at, "http://a.example/later")
	}},
	{"a scheduled URL joins the tail when its time comes", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		s.Put(3,
			frontier.Entry{URL: "http://a.example/20s", NotBefore: harness.Dawn.Add(20 * time.Second)},
			frontier.Entry{URL: "http://a.example/10s", NotBefore: harness.Dawn.Add(10 * time.Second)},
			frontier.Entry{URL: "http://a.example/now"})
		s.Until(15 * time.Second)
		s.Counts(2, 1, 0)
		s.URLs("http://a.example/15s")
		s.Until(time.Minute)
		s.Counts(4, 0, 0)
		require.Equal(t, []string{"http://a.example/now", "http://a.example/10s", "http://a.example/15s", "http://a.example/20s"}, s.Drain())
	}},
	{"outlinks come in the order given", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		o := frontier.Outcome{}
		want := []string{}
		for i := range 300 {
			want = append(want, fmt.Sprintf("http://b.example/%d", i))
			o.Add = append(o.Add, frontier.Entry{URL: want[i]})
		}
		s.Done(s.Next(), o)
		s.Counts(300, 0, 0)
		require.Equal(t, want, s.Drain())
	}},
}

var duplicates = []behaviour{
	{"known URLs are admitted once", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		a, b, c := frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://b.example/"}, frontier.Entry{URL: "http://c.example/"}
		s.Put(2, a, b, a, a)
		s.Put(1, b, c)
		s.Put(0, a, b, c)
		x := s.F.Stats()
		require.Equal(t, []int64{3, 3, 6, 3}, []int64{x.Added, x.Known, x.Duplicates, x.Waiting})
		s.Done(s.Next(), frontier.Outcome{Add: []frontier.Entry{a, b, c}})
		require.Len(t, s.Drain(), 2)
		s.Put(0, a, b, c) // done, and known still
		s.Over()
	}},
	{"a URL is known per crawl", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		for crawl := range uint32(3) {
			s.Put(1, frontier.Entry{URL: "http://a.example/", Crawl: crawl * 1_000_000_007})
			s.Put(0, frontier.Entry{URL: "http://a.example/", Crawl: crawl * 1_000_000_007})
		}
		got := map[uint32]int{}
		for range 3 {
			l := s.NextIs(0, "http://a.example/")
			got[l.Entry.Crawl]++
			s.Done(l, frontier.Outcome{})
		}
		require.Equal(t, map[uint32]int{0: 1, 1_000_000_007: 1, 2_000_000_014: 1}, got)
		s.Over()
	}},
	{"without suppression every entry counts", frontier.Options{NoDedup: true, Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		a := frontier.Entry{URL: "http://a.example/"}
		s.Put(2, a, a)
		s.Put(1, a)
		require.Zero(t, s.F.Stats().Known)
		require.Len(t, s.Drain(), 3)
	}},
	{"many at once admit a URL once", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		total := 0
		for g := range 20 {
			wg.Go(func() {
				for i := range 30 {
					var batch []frontier.Entry
					for k := range 3 {
						batch = append(batch, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", k, (i*7+g)%30)})
					}
					n, err := s.F.Add(context.Background(), batch...)
					assert.NoError(t, err)
					mu.Lock()
					total += n
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		require.Equal(t, 90, total)
		s.Counts(90, 0, 0)
		urls := s.Drain()
		slices.Sort(urls)
		require.Len(t, slices.Compact(urls), 90)
	}},
}

var forces = []behaviour{
	{"Force moves a waiting URL to the tail with its new Meta", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/1", "http://a.example/2", "http://a.example/3")
		s.Put(1, frontier.Entry{URL: "http://a.example/1", Meta: []byte("new"), Force: true})
		s.Counts(3, 0, 0)
		s.Done(s.NextIs(0, "http://a.example/2"), frontier.Outcome{})
		s.Done(s.NextIs(0, "http://a.example/3"), frontier.Outcome{})
		l := s.NextIs(0, "http://a.example/1")
		require.Equal(t, "new", string(l.Entry.Meta))
		s.Done(l, frontier.Outcome{})
		s.Over()
	}},
	{"Force moves a waiting URL to another priority", frontier.Options{Delay: frontier.FixedDelay(0), Selector: selector.Strict()}, func(t *testing.T, s *harness.Station) {
		s.Put(2, frontier.Entry{URL: "http://a.example/1", Depth: 3}, frontier.Entry{URL: "http://a.example/2", Depth: 2})
		s.Put(1, frontier.Entry{URL: "http://a.example/1", Depth: 1, Force: true})
		require.Equal(t, []string{"http://a.example/1", "http://a.example/2"}, s.Drain())
	}},
	{"Force moves one among many", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		urls := harness.UrlsOf("a.example", 300)
		s.URLs(urls[:150]...)
		s.URLs(urls[150:]...)
		want := urls
		for _, i := range []int{299, 0, 33, 150, 31, 64} {
			s.Put(1, frontier.Entry{URL: urls[i], Force: true})
			k := slices.Index(want, urls[i])
			want = append(slices.Concat(want[:k], want[k+1:]), urls[i])
		}
		s.Counts(300, 0, 0)
		require.Equal(t, want, s.Drain())
	}},
	{"Force makes a leased URL come again after its Done", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		l := s.NextIs(0, "http://a.example/")
		s.Put(1, frontier.Entry{URL: "http://a.example/", Meta: []byte("new"), Force: true})
		s.Counts(0, 0, 1)
		s.Done(l, frontier.Outcome{})
		l = s.NextIs(time.Second, "http://a.example/")
		require.Equal(t, "new", string(l.Entry.Meta))
		s.Done(l, frontier.Outcome{})
		s.Over()
	}},
	{"Force makes a leased URL come again after its lease expired", frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		s.NextIs(0, "http://a.example/")
		s.Put(1, frontier.Entry{URL: "http://a.example/", Meta: []byte("new"), Force: true})
		s.Until(time.Minute)
		l := s.NextIs(61*time.Second, "http://a.example/")
		require.Equal(t, "new", string(l.Entry.Meta))
		require.Equal(t, 1, l.Attempt)
		s.Done(l, frontier.Outcome{})
		s.Over()
	}},
	{"Force makes a scheduled URL wait, and a waiting one scheduled", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.Put(1, frontier.Entry{URL: "http://a.example/", NotBefore: harness.Dawn.Add(time.Hour)})
		s.Put(1, frontier.Entry{URL: "http://a.example/", Force: true})
		s.Counts(1, 0, 0)
		s.Put(1, frontier.Entry{URL: "http://a.example/", NotBefore: harness.Dawn.Add(time.Minute), Force: true})
		s.Counts(0, 1, 0)
		s.Done(s.NextIs(time.Minute, "http://a.example/"), frontier.Outcome{})
		s.Over()
	}},
	{"Force admits a URL again that is done, or given up", frontier.Options{Retry: frontier.Retries(1, 0)}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/", "http://b.example/")
		s.Done(s.NextIs(0, "http://a.example/"), frontier.Outcome{})
		s.Done(s.NextIs(0, "http://b.example/"), visited(frontier.Failed))
		s.Put(2, frontier.Entry{URL: "http://a.example/", Force: true}, frontier.Entry{URL: "http://b.example/", Force: true})
		for _, u := range []string{"http://a.example/", "http://b.example/"} {
			l := s.NextIs(time.Second, u)
			require.Equal(t, 1, l.Attempt)
			s.Done(l, frontier.Outcome{})
		}
		s.Over()
	}},
	{"Force of an unknown URL is an Add", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		e := frontier.Entry{URL: "http://a.example/", Force: true}
		s.Put(2, e, e) // and of one in the same batch moves it
		s.Counts(1, 0, 0)
		require.EqualValues(t, 1, s.F.Stats().Known)
	}},
	{"an outlink can be forced", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/1", "http://b.example/1", "http://b.example/2")
		s.Done(s.NextIs(0, "http://a.example/1"), frontier.Outcome{Add: []frontier.Entry{
			{URL: "http://b.example/1", Force: true}, {URL: "http://a.example/1", Force: true},
		}})
		s.Counts(3, 0, 0)
		urls := s.Drain()
		slices.Sort(urls)
		require.Equal(t, []string{"http://a.example/1", "http://b.example/1", "http://b.example/2"}, urls)
	}},
	{"a URL forced by many at once waits once", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/1", "http://a.example/2")
		var wg sync.WaitGroup
		for g := range 20 {
			wg.Go(func() {
				n, err := s.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/1", Depth: g % 3, Force: true})
				assert.NoError(t, err)
				assert.Equal(t, 1, n)
			})
		}
		wg.Wait()
		s.Counts(2, 0, 0)
		require.Len(t, s.Drain(), 2)
	}},
}
