// This file says how it ends: exhausted, drained, closed, and opened again.

package frontier_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

var endings = []behaviour{
	{"an empty frontier is exhausted, and not for ever", frontier.Options{}, func(t *testing.T, s *station) {
		for _, u := range []string{"http://a.example/", "http://b.example/"} {
			_, err := s.f.Next(t.Context())
			require.ErrorIs(t, err, frontier.ErrExhausted)
			s.over()
			s.urls(u)
			l, err := s.f.Next(t.Context())
			require.NoError(t, err)
			s.done(l, frontier.Outcome{})
		}
	}},
	{"nothing is exhausted while a lease is out", frontier.Options{}, func(t *testing.T, s *station) {
		s.urls("http://a.example/")
		l := s.next()
		c1, c2 := s.startNext(t.Context()), s.startNext(t.Context())
		s.until(time.Minute)
		require.True(t, c1.waits() && c2.waits())
		s.done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://b.example/"}}})
		require.False(t, c1.waits())
		require.True(t, c2.waits())
		s.done(c1.lease, frontier.Outcome{})
		require.False(t, c2.waits())
		require.ErrorIs(t, c2.err, frontier.ErrExhausted)
	}},
	{"nothing is exhausted while a URL is scheduled", frontier.Options{}, func(t *testing.T, s *station) {
		s.put(1, frontier.Entry{URL: "http://a.example/", NotBefore: dawn.Add(1000 * time.Hour)})
		c := s.startNext(t.Context())
		s.until(1000*time.Hour - 1)
		require.True(t, c.waits())
		s.clk.Advance(1)
		require.False(t, c.waits())
		require.Equal(t, "http://a.example/", c.lease.Entry.URL)
	}},
	{"nothing is exhausted while an Add commits", frontier.Options{}, func(t *testing.T, s *station) {
		if s.machine == nil {
			t.Skip("needs a disk that waits")
		}
		gate := make(chan struct{})
		s.machine.Faults.Before(spilltest.Write, 1, func() { <-gate })
		add := start(func() (l frontier.Lease, err error) {
			_, err = s.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
			return l, err
		})
		next := s.startNext(t.Context())
		require.True(t, add.waits() && next.waits())
		_, at, err := s.f.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.True(t, at.IsZero())
		known := start(func() (l frontier.Lease, err error) {
			_, err = s.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
			return l, err
		})
		require.True(t, known.waits(), "a URL that is being admitted is not known yet")
		close(gate)
		require.False(t, add.waits() || next.waits() || known.waits())
		require.NoError(t, add.err)
		require.NoError(t, known.err)
		require.Equal(t, "http://a.example/", next.lease.Entry.URL)
	}},
	{"KeepOpen waits for another Add", frontier.Options{KeepOpen: true}, func(t *testing.T, s *station) {
		c := s.startNext(t.Context())
		_, at, err := s.f.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.True(t, at.IsZero(), "only another call can change anything")
		require.True(t, c.waits())
		s.urls("http://a.example/")
		require.False(t, c.waits())
		s.done(c.lease, frontier.Outcome{})
		ctx, cancel := context.WithCancel(t.Context())
		c = s.startNext(ctx)
		require.True(t, c.waits())
		cancel()
		require.False(t, c.waits())
		require.ErrorIs(t, c.err, context.Canceled)
	}},
	{"a call with an ended context takes nothing", frontier.Options{}, func(t *testing.T, s *station) {
		s.urls("http://a.example/")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.f.Next(ctx)
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.f.Contact(ctx, "a.example")
		require.ErrorIs(t, err, context.Canceled)
		n, err := s.f.Add(ctx, frontier.Entry{URL: "http://b.example/"})
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, n)
		s.counts(1, 0, 0)
		s.nextIs(0, "http://a.example/")
	}},
	{"TryNext tells when to come back", frontier.Options{LeaseTime: time.Minute, ParkAfter: 5 * time.Minute}, func(t *testing.T, s *station) {
		told := func(want time.Duration) {
			t.Helper()
			_, at, err := s.tryNext()
			require.ErrorIs(t, err, frontier.ErrNotDue)
			require.Equal(t, want, at.Sub(dawn))
		}
		s.urls("http://a.example/1", "http://a.example/2")
		l := s.nextIs(0, "http://a.example/1")
		told(time.Minute) // the lease's deadline
		s.put(1, frontier.Entry{URL: "http://b.example/", NotBefore: dawn.Add(30 * time.Second)})
		told(30 * time.Second)
		s.done(l, frontier.Outcome{RetryAfter: 20 * time.Second})
		told(20 * time.Second)
		l = s.nextIs(20*time.Second, "http://a.example/2")
		s.done(l, frontier.Outcome{RetryAfter: time.Hour})
		told(30 * time.Second)
		s.done(s.nextIs(30*time.Second, "http://b.example/"), frontier.Outcome{})
		s.urls("http://a.example/3")
		told(time.Hour + 20*time.Second) // parked
	}},
	{"Leases ends when the crawl is over", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *station) {
		s.urls(urlsOf("a.example", 10)...)
		got := []string{}
		for l, err := range s.f.Leases(t.Context()) {
			require.NoError(t, err)
			got = append(got, l.Entry.URL)
			o := frontier.Outcome{}
			if len(got) == 10 {
				o.Add = []frontier.Entry{{URL: "http://a.example/11"}}
			}
			s.done(l, o)
		}
		require.Equal(t, urlsOf("a.example", 11), got)
		for range s.f.Leases(t.Context()) {
			require.Fail(t, "nothing is left")
		}
	}},
	{"Leases can be left, and tells the context's end", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *station) {
		s.urls(urlsOf("a.example", 3)...)
		for l, err := range s.f.Leases(t.Context()) {
			require.NoError(t, err)
			s.done(l, frontier.Outcome{})
			break
		}
		s.counts(2, 0, 0)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		errs := 0
		for l, err := range s.f.Leases(ctx) {
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				errs++
				continue
			}
			s.done(l, frontier.Outcome{})
			cancel()
		}
		require.Equal(t, 1, errs)
		s.counts(1, 0, 0)
	}},
	{"Drain hands out no more and waits for the leases", frontier.Options{}, func(t *testing.T, s *station) {
		s.urls("http://a.example/", "http://b.example/", "http://c.example/", "http://a.example/2")
		a, b := s.nextIs(0, "http://a.example/"), s.nextIs(0, "http://b.example/")
		c := s.startContact(t.Context(), "a.example")
		d := start(func() (l frontier.Lease, err error) { return l, s.f.Drain(t.Context()) })
		require.False(t, c.waits())
		require.ErrorIs(t, c.err, frontier.ErrClosed)
		require.True(t, d.waits())
		s.clk.Advance(time.Second) // with URLs that could be had: no timer may spin
		_, err := s.f.Next(t.Context())
		require.ErrorIs(t, err, frontier.ErrClosed)
		_, _, err = s.f.TryNext()
		require.ErrorIs(t, err, frontier.ErrClosed)
		_, err = s.f.Contact(t.Context(), "c.example")
		require.ErrorIs(t, err, frontier.ErrClosed)
		s.urls("http://d.example/")
		s.done(a, frontier.Outcome{Add: []frontier.Entry{{URL: "http://e.example/"}}})
		require.True(t, d.waits())
		s.done(b, frontier.Outcome{})
		require.False(t, d.waits())
		require.NoError(t, d.err)
		require.NoError(t, s.f.Drain(t.Context()))
		s.counts(4, 0, 0)
	}},
	{"a lease's deadline ends Drain", frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, s *station) {
		s.urls("http://a.example/", "http://b.example/")
		s.nextIs(0, "http://a.example/")
		d := start(func() (l frontier.Lease, err error) { return l, s.f.Drain(t.Context()) })
		s.clk.Advance(time.Minute - 1)
		require.True(t, d.waits())
		s.clk.Advance(1)
		require.False(t, d.waits())
		require.NoError(t, d.err)
		s.counts(2, 0, 0)
	}},
	{"Drain can be given up", frontier.Options{}, func(t *testing.T, s *station) {
		s.urls("http://a.example/")
		l := s.next()
		ctx, cancel := context.WithCancel(t.Context())
		d := start(func() (l frontier.Lease, err error) { return l, s.f.Drain(ctx) })
		cancel()
		require.False(t, d.waits())
		require.ErrorIs(t, d.err, context.Canceled)
		s.done(l, frontier.Outcome{})
		require.NoError(t, s.f.Drain(t.Context()))
	}},
	{"after Close every call answers ErrClosed", frontier.Options{}, func(t *testing.T, s *station) {
		s.urls("http://a.example/", "http://b.example/", "http://a.example/2")
		l := s.nextIs(0, "http://a.example/")
		s.done(s.nextIs(0, "http://b.example/"), frontier.Outcome{})
		waiting := []*call{
			s.startNext(t.Context()), s.startContact(t.Context(), "a.example"), s.startContact(t.Context(), "b.example"),
			start(func() (l frontier.Lease, err error) { return l, s.f.Drain(t.Context()) }),
		}
		closed := []*call{}
		for range 3 {
			closed = append(closed, start(func() (l frontier.Lease, err error) { return l, s.f.Close() }))
		}
		for _, c := range closed {
			require.False(t, c.waits())
			require.NoError(t, c.err)
		}
		for i, c := range waiting {
			require.False(t, c.waits(), "call %d", i)
			if i < 3 {
				require.ErrorIs(t, c.err, frontier.ErrClosed, "call %d", i)
			}
		}
		_, err := s.f.Next(t.Context())
		require.ErrorIs(t, err, frontier.ErrClosed)
		_, _, err = s.f.TryNext()
		require.ErrorIs(t, err, frontier.ErrClosed)
		_, err = s.f.Contact(t.Context(), "a.example")
		require.ErrorIs(t, err, frontier.ErrClosed)
		for _, e := range [][]frontier.Entry{nil, {{URL: "http://a.example/"}}, {{URL: "http://new.example/"}}, {{URL: "http://a.example/", Force: true}}} {
			n, err := s.f.Add(t.Context(), e...)
			require.ErrorIs(t, err, frontier.ErrClosed)
			require.Zero(t, n)
		}
		require.ErrorIs(t, s.f.Done(l, frontier.Outcome{}), frontier.ErrClosed)
		require.ErrorIs(t, s.f.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://new.example/"}}}), frontier.ErrClosed)
		require.ErrorIs(t, s.f.Extend(&l, time.Second), frontier.ErrClosed)
		require.ErrorIs(t, s.f.Join(&l, "g"), frontier.ErrClosed)
		_, err = s.f.HandBack(l)
		require.ErrorIs(t, err, frontier.ErrClosed)
		require.ErrorIs(t, s.f.Drain(t.Context()), frontier.ErrClosed)
		for range s.f.Leases(t.Context()) {
			require.Fail(t, "nothing is handed out")
		}
		s.clk.Advance(24 * time.Hour)
		s.f.Stats()
		require.NoError(t, s.f.Close())
	}},
}

var reports = []behaviour{
	{"Stats follow the URLs", frontier.Options{Priorities: 4, Retry: frontier.Retries(2, time.Minute)}, func(t *testing.T, s *station) {
		s.put(6,
			frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2", Depth: 1}, frontier.Entry{URL: "http://a.example/3", Depth: 9},
			frontier.Entry{URL: "http://b.example/1"}, frontier.Entry{URL: "http://b.example/2", NotBefore: dawn.Add(time.Hour)}, frontier.Entry{URL: "http://b.example/3", Depth: 9},
		)
		s.put(0, frontier.Entry{URL: "http://a.example/1"})
		x := s.f.Stats()
		require.Equal(t, []int64{2, 0, 1, 2}, reversedInts(x.WaitingBy))
		require.Equal(t, []int64{5, 1, 0, 2, 6, 6, 1}, []int64{x.Waiting, x.Scheduled, x.Leased, x.Hosts, x.Known, x.Added, x.Duplicates})
		require.Positive(t, x.MemoryBytes)
		a, b := s.next(), s.next()
		require.NotEqual(t, a.Host, b.Host)
		require.NoError(t, s.f.Join(&a, "g"))
		x = s.f.Stats()
		require.Equal(t, []int64{3, 1, 2, 2, 1, 2}, []int64{x.Waiting, x.Scheduled, x.Leased, x.Bound, x.Groups, x.HandedOut})
		s.done(a, visited(frontier.Failed))
		s.done(b, visited(frontier.Gone))
		x = s.f.Stats()
		require.Equal(t, []int64{3, 2, 0, 1, 1, 1, 0}, []int64{x.Waiting, x.Scheduled, x.Leased, x.Done[frontier.Failed], x.Done[frontier.Gone], x.Retried, x.GivenUp})
		require.Len(t, s.drain(), 5)
		x = s.f.Stats()
		require.Equal(t, []int64{0, 0, 0, 0, 0, 0, 0}, append([]int64{x.Waiting, x.Scheduled, x.Leased}, x.WaitingBy...))
		require.Equal(t, []int64{6, 7, 5}, []int64{x.Known, x.HandedOut, x.Done[frontier.Visited]})
		x.WaitingBy[0] = 99 // the caller's own
		require.Zero(t, s.f.Stats().WaitingBy[0])
	}},
}

func reversedInts(x []int64) []int64 {
	x = slices.Clone(x)
	slices.Reverse(x)
	return []int64{x[0], x[2], x[1], x[3]}
}

var sizes = []behaviour{
	{"Meta and URLs of any content and of all sizes come back", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *station) {
		r := rand.New(rand.NewPCG(1, 2))
		random := func(n int) []byte {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			return b
		}
		want := map[string][]byte{}
		var entries []frontier.Entry
		for i, n := range []int{0, 1, 127, 128, 1000, 4095, 16384, 65535, frontier.MaxMeta} {
			for _, long := range []int{30, 2000, frontier.MaxURL} {
				u := fmt.Sprintf("http://a.example/%d/", i)
				u += strings.Repeat("x", long-len(u))
				want[u] = random(n)
				entries = append(entries, frontier.Entry{URL: u, Meta: want[u], Weight: float64(i)})
			}
		}
		s.put(len(entries), entries...)
		for i, e := range entries {
			entries[i].Meta = append([]byte(nil), e.Meta...)
			clear(e.Meta) // Add copied it
		}
		for _, e := range entries {
			l := s.nextIs(0, e.URL)
			requireEntry(t, e, l.Entry)
			clear(l.Entry.Meta) // the caller's own
			l.Entry.Meta = nil
			meta := random(len(e.Meta))
			s.done(l, frontier.Outcome{Next: dawn.Add(time.Hour), Meta: meta})
			want[e.URL] = bytes.Clone(meta)
			clear(meta)
		}
		s.until(time.Hour)
		for range entries {
			l := s.next()
			if w := want[l.Entry.URL]; len(w) > 0 || l.Entry.Meta != nil {
				require.True(t, bytes.Equal(w, l.Entry.Meta), "Meta of %d bytes", len(w))
			}
			s.done(l, frontier.Outcome{})
		}
		s.over()
	}},
	{"ten thousand entries in one Add", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *station) {
		var entries []frontier.Entry
		for i := range 10_000 {
			entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%97, i), Depth: i % 5})
		}
		s.put(10_000, entries...)
		s.put(0, entries...)
		urls := s.drain()
		slices.Sort(urls)
		require.Len(t, slices.Compact(urls), 10_000)
	}},
}

var reopenings = []behaviour{
	{"a clean reopening continues where it was", frontier.Options{Retry: frontier.Retries(3, time.Hour), LeaseTime: time.Hour}, func(t *testing.T, s *station) {
		if s.opts.Spill == nil {
			t.Skip("gone when closed")
		}
		s.put(5,
			frontier.Entry{URL: "http://a.example/1", Meta: []byte("m"), Weight: 1.5}, frontier.Entry{URL: "http://a.example/2"},
			frontier.Entry{URL: "http://b.example/1"}, frontier.Entry{URL: "http://c.example/1"},
			frontier.Entry{URL: "http://d.example/1", NotBefore: dawn.Add(90 * time.Minute)},
		)
		a, b := s.nextIs(0, "http://a.example/1"), s.nextIs(0, "http://b.example/1")
		s.done(b, frontier.Outcome{Result: frontier.Failed, CrawlDelay: 7 * time.Second})
		s.counts(2, 2, 1)
		s.clk.Advance(100 * ms)
		s.reopen()
		s.counts(3, 2, 0)
		require.EqualValues(t, 5, s.f.Stats().Known)
		s.put(0, frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://b.example/1"})
		require.ErrorIs(t, s.f.Done(a, requeue), frontier.ErrNotLeased)
		s.put(1, frontier.Entry{URL: "http://b.example/2"})
		s.done(s.nextIs(100*ms, "http://c.example/1"), frontier.Outcome{})
		l := s.nextIs(1100*ms, "http://a.example/1") // it was leased: it counts as contacted at the reopening
		require.Equal(t, 1, l.Attempt)
		requireEntry(t, frontier.Entry{URL: "http://a.example/1", Meta: []byte("m"), Weight: 1.5}, l.Entry)
		s.done(l, frontier.Outcome{})
		s.done(s.nextIs(2100*ms, "http://a.example/2"), frontier.Outcome{})
		s.done(s.nextIs(7*time.Second, "http://b.example/2"), frontier.Outcome{}) // its crawl delay was kept
		s.reopen()
		l = s.nextIs(time.Hour, "http://b.example/1")
		require.Equal(t, 2, l.Attempt)
		s.done(l, frontier.Outcome{})
		s.done(s.nextIs(90*time.Minute, "http://d.example/1"), frontier.Outcome{})
		s.over()
	}},
	{"a random crawl, reopened over and over, shows every URL once", frontier.Options{Delay: frontier.FixedDelay(0), Quantum: 3}, func(t *testing.T, s *station) {
		if s.opts.Spill == nil {
			t.Skip("gone when closed")
		}
		r := rand.New(rand.NewPCG(3, 4))
		want, got := []string{}, []string{}
		var out []frontier.Lease
		for round := range 12 {
			for range 5 {
				var batch []frontier.Entry
				for range r.IntN(40) {
					u := fmt.Sprintf("http://h%d.example/%d", r.IntN(6), len(want))
					e := frontier.Entry{URL: u, Depth: r.IntN(4)}
					if r.IntN(4) == 0 {
						e.NotBefore = s.clk.Now().Add(time.Duration(r.IntN(3600)) * time.Second)
					}
					want = append(want, u)
					batch = append(batch, e)
				}
				s.put0(batch...)
				for range r.IntN(60) {
					if l, _, err := s.tryNext(); err == nil {
						out = append(out, l)
					}
					if len(out) > 3 || len(out) > 0 && r.IntN(2) == 0 {
						i := r.IntN(len(out))
						require.NoError(t, s.f.Done(out[i], frontier.Outcome{}))
						got = append(got, out[i].Entry.URL)
						out = slices.Delete(out, i, i+1)
					}
				}
				if r.IntN(3) == 0 {
					s.settle()
				}
				s.clk.Advance(time.Minute)
			}
			if out = nil; s.machine != nil && round%2 == 1 {
				s.world = s.killed() // without delays nothing is held
			} else {
				s.reopen()
			}
		}
		got = append(got, s.drain()...)
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got)
	}},
}
