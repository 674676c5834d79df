// This file says how it ends: exhausted, drained, closed, and opened again.

package conformance

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
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

var endings = []behaviour{
	{"an empty frontier is exhausted, and not for ever", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		for _, u := range []string{"http://a.example/", "http://b.example/"} {
			_, err := s.F.Next(t.Context())
			require.ErrorIs(t, err, frontier.ErrExhausted)
			s.Over()
			s.URLs(u)
			l, err := s.F.Next(t.Context())
			require.NoError(t, err)
			s.Done(l, frontier.Outcome{})
		}
	}},
	{"nothing is exhausted while a lease is out", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		l := s.Next()
		c1, c2 := s.StartNext(t.Context()), s.StartNext(t.Context())
		s.Until(time.Minute)
		require.True(t, c1.Waits() && c2.Waits())
		s.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://b.example/"}}})
		require.False(t, c1.Waits())
		require.True(t, c2.Waits())
		s.Done(c1.Lease, frontier.Outcome{})
		require.False(t, c2.Waits())
		require.ErrorIs(t, c2.Err, frontier.ErrExhausted)
	}},
	{"nothing is exhausted while a URL is scheduled", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.Put(1, frontier.Entry{URL: "http://a.example/", NotBefore: harness.Dawn.Add(1000 * time.Hour)})
		c := s.StartNext(t.Context())
		s.Until(1000*time.Hour - 1)
		require.True(t, c.Waits())
		s.Clock.Advance(1)
		require.False(t, c.Waits())
		require.Equal(t, "http://a.example/", c.Lease.Entry.URL)
	}},
	{"nothing is exhausted while an Add commits", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		if s.Machine == nil {
			t.Skip("needs a disk that waits")
		}
		gate := make(chan struct{})
		s.Machine.Faults.Before(spilltest.Write, 1, func() { <-gate })
		add := harness.Start(func() (l frontier.Lease, err error) {
			_, err = s.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
			return l, err
		})
		next := s.StartNext(t.Context())
		require.True(t, add.Waits() && next.Waits())
		_, at, err := s.F.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.True(t, at.IsZero())
		known := harness.Start(func() (l frontier.Lease, err error) {
			_, err = s.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
			return l, err
		})
		require.True(t, known.Waits(), "a URL that is being admitted is not known yet")
		close(gate)
		require.False(t, add.Waits() || next.Waits() || known.Waits())
		require.NoError(t, add.Err)
		require.NoError(t, known.Err)
		require.Equal(t, "http://a.example/", next.Lease.Entry.URL)
	}},
	{"KeepOpen waits for another Add", frontier.Options{KeepOpen: true}, func(t *testing.T, s *harness.Station) {
		c := s.StartNext(t.Context())
		_, at, err := s.F.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.True(t, at.IsZero(), "only another call can change anything")
		require.True(t, c.Waits())
		s.URLs("http://a.example/")
		require.False(t, c.Waits())
		s.Done(c.Lease, frontier.Outcome{})
		ctx, cancel := context.WithCancel(t.Context())
		c = s.StartNext(ctx)
		require.True(t, c.Waits())
		cancel()
		require.False(t, c.Waits())
		require.ErrorIs(t, c.Err, context.Canceled)
	}},
	{"a call with an ended context takes nothing", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.F.Next(ctx)
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.F.Contact(ctx, "a.example")
		require.ErrorIs(t, err, context.Canceled)
		n, err := s.F.Add(ctx, frontier.Entry{URL: "http://b.example/"})
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, n)
		s.Counts(1, 0, 0)
		s.NextIs(0, "http://a.example/")
	}},
	{"TryNext tells when to come back", harness.ParkAfter(5*time.Minute, frontier.Options{LeaseTime: time.Minute}), func(t *testing.T, s *harness.Station) {
		told := func(want time.Duration) {
			t.Helper()
			_, at, err := s.TryNext()
			require.ErrorIs(t, err, frontier.ErrNotDue)
			require.Equal(t, want, at.Sub(harness.Dawn))
		}
		s.URLs("http://a.example/1", "http://a.example/2")
		l := s.NextIs(0, "http://a.example/1")
		told(time.Minute) // the lease's deadline
		s.Put(1, frontier.Entry{URL: "http://b.example/", NotBefore: harness.Dawn.Add(30 * time.Second)})
		told(30 * time.Second)
		s.Done(l, frontier.Outcome{RetryAfter: 20 * time.Second})
		told(20 * time.Second)
		l = s.NextIs(20*time.Second, "http://a.example/2")
		s.Done(l, frontier.Outcome{RetryAfter: time.Hour})
		told(30 * time.Second)
		s.Done(s.NextIs(30*time.Second, "http://b.example/"), frontier.Outcome{})
		s.URLs("http://a.example/3")
		told(time.Hour + 20*time.Second) // parked
	}},
	{"Leases ends when the crawl is over", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		s.URLs(harness.UrlsOf("a.example", 10)...)
		got := []string{}
		for l, err := range s.F.Leases(t.Context()) {
			require.NoError(t, err)
			got = append(got, l.Entry.URL)
			o := frontier.Outcome{}
			if len(got) == 10 {
				o.Add = []frontier.Entry{{URL: "http://a.example/11"}}
			}
			s.Done(l, o)
		}
		require.Equal(t, harness.UrlsOf("a.example", 11), got)
		for range s.F.Leases(t.Context()) {
			require.Fail(t, "nothing is left")
		}
	}},
	{"Leases can be left, and tells the context's end", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		s.URLs(harness.UrlsOf("a.example", 3)...)
		for l, err := range s.F.Leases(t.Context()) {
			require.NoError(t, err)
			s.Done(l, frontier.Outcome{})
			break
		}
		s.Counts(2, 0, 0)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		errs := 0
		for l, err := range s.F.Leases(ctx) {
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				errs++
				continue
			}
			s.Done(l, frontier.Outcome{})
			cancel()
		}
		require.Equal(t, 1, errs)
		s.Counts(1, 0, 0)
	}},
	{"Drain hands out no more and waits for the leases", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/", "http://b.example/", "http://c.example/", "http://a.example/2")
		a, b := s.NextIs(0, "http://a.example/"), s.NextIs(0, "http://b.example/")
		c := s.StartContact(t.Context(), "a.example")
		d := harness.Start(func() (l frontier.Lease, err error) { return l, s.F.Drain(t.Context()) })
		require.False(t, c.Waits())
		require.ErrorIs(t, c.Err, frontier.ErrClosed)
		require.True(t, d.Waits())
		s.Clock.Advance(time.Second) // with URLs that could be had: no timer may spin
		_, err := s.F.Next(t.Context())
		require.ErrorIs(t, err, frontier.ErrClosed)
		_, _, err = s.F.TryNext()
		require.ErrorIs(t, err, frontier.ErrClosed)
		_, err = s.F.Contact(t.Context(), "c.example")
		require.ErrorIs(t, err, frontier.ErrClosed)
		s.URLs("http://d.example/")
		s.Done(a, frontier.Outcome{Add: []frontier.Entry{{URL: "http://e.example/"}}})
		require.True(t, d.Waits())
		s.Done(b, frontier.Outcome{})
		require.False(t, d.Waits())
		require.NoError(t, d.Err)
		require.NoError(t, s.F.Drain(t.Context()))
		s.Counts(4, 0, 0)
	}},
	{"a lease's deadline ends Drain", frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/", "http://b.example/")
		s.NextIs(0, "http://a.example/")
		d := harness.Start(func() (l frontier.Lease, err error) { return l, s.F.Drain(t.Context()) })
		s.Clock.Advance(time.Minute - 1)
		require.True(t, d.Waits())
		s.Clock.Advance(1)
		require.False(t, d.Waits())
		require.NoError(t, d.Err)
		s.Counts(2, 0, 0)
	}},
	{"Drain can be given up", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		l := s.Next()
		ctx, cancel := context.WithCancel(t.Context())
		d := harness.Start(func() (l frontier.Lease, err error) { return l, s.F.Drain(ctx) })
		cancel()
		require.False(t, d.Waits())
		require.ErrorIs(t, d.Err, context.Canceled)
		s.Done(l, frontier.Outcome{})
		require.NoError(t, s.F.Drain(t.Context()))
	}},
	{"after Close every call answers ErrClosed", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/", "http://b.example/", "http://a.example/2")
		l := s.NextIs(0, "http://a.example/")
		s.Done(s.NextIs(0, "http://b.example/"), frontier.Outcome{})
		waiting := []*harness.Call{
			s.StartNext(t.Context()), s.StartContact(t.Context(), "a.example"), s.StartContact(t.Context(), "b.example"),
			harness.Start(func() (l frontier.Lease, err error) { return l, s.F.Drain(t.Context()) }),
		}
		closed := []*harness.Call{}
		for range 3 {
			closed = append(closed, harness.Start(func() (l frontier.Lease, err error) { return l, s.F.Close() }))
		}
		for _, c := range closed {
			require.False(t, c.Waits())
			require.NoError(t, c.Err)
		}
		for i, c := range waiting {
			require.False(t, c.Waits(), "call %d", i)
			if i < 3 {
				require.ErrorIs(t, c.Err, frontier.ErrClosed, "call %d", i)
			}
		}
		_, err := s.F.Next(t.Context())
		require.ErrorIs(t, err, frontier.ErrClosed)
		_, _, err = s.F.TryNext()
		require.ErrorIs(t, err, frontier.ErrClosed)
		_, err = s.F.Contact(t.Context(), "a.example")
		require.ErrorIs(t, err, frontier.ErrClosed)
		for _, e := range [][]frontier.Entry{nil, {{URL: "http://a.example/"}}, {{URL: "http://new.example/"}}, {{URL: "http://a.example/", Force: true}}} {
			n, err := s.F.Add(t.Context(), e...)
			require.ErrorIs(t, err, frontier.ErrClosed)
			require.Zero(t, n)
		}
		require.ErrorIs(t, s.F.Done(l, frontier.Outcome{}), frontier.ErrClosed)
		require.ErrorIs(t, s.F.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://new.example/"}}}), frontier.ErrClosed)
		require.ErrorIs(t, s.F.Extend(&l, time.Second), frontier.ErrClosed)
		require.ErrorIs(t, s.F.Join(&l, "g"), frontier.ErrClosed)
		_, err = s.F.HandBack(l)
		require.ErrorIs(t, err, frontier.ErrClosed)
		require.ErrorIs(t, s.F.Drain(t.Context()), frontier.ErrClosed)
		for range s.F.Leases(t.Context()) {
			require.Fail(t, "nothing is handed out")
		}
		s.Clock.Advance(24 * time.Hour)
		s.F.Stats()
		require.NoError(t, s.F.Close())
	}},
}

var reports = []behaviour{
	{"Stats follow the URLs", frontier.Options{Priorities: 4, Retry: frontier.Retries(2, time.Minute)}, func(t *testing.T, s *harness.Station) {
		s.Put(6,
			frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2", Depth: 1}, frontier.Entry{URL: "http://a.example/3", Depth: 9},
			frontier.Entry{URL: "http://b.example/1"}, frontier.Entry{URL: "http://b.example/2", NotBefore: harness.Dawn.Add(time.Hour)}, frontier.Entry{URL: "http://b.example/3", Depth: 9},
		)
		s.Put(0, frontier.Entry{URL: "http://a.example/1"})
		x := s.F.Stats()
		require.Equal(t, []int64{2, 0, 1, 2}, reversedInts(x.WaitingBy))
		require.Equal(t, []int64{5, 1, 0, 2, 6, 6, 1}, []int64{x.Waiting, x.Scheduled, x.Leased, x.Hosts, x.Known, x.Added, x.Duplicates})
		require.Positive(t, x.MemoryBytes)
		a, b := s.Next(), s.Next()
		require.NotEqual(t, a.Host, b.Host)
		require.NoError(t, s.F.Join(&a, "g"))
		x = s.F.Stats()
		require.Equal(t, []int64{3, 1, 2, 2, 1, 2}, []int64{x.Waiting, x.Scheduled, x.Leased, x.Bound, x.Groups, x.HandedOut})
		s.Done(a, visited(frontier.Failed))
		s.Done(b, visited(frontier.Gone))
		x = s.F.Stats()
		require.Equal(t, []int64{3, 2, 0, 1, 1, 1, 0}, []int64{x.Waiting, x.Scheduled, x.Leased, x.Done[frontier.Failed], x.Done[frontier.Gone], x.Retried, x.GivenUp})
		require.Len(t, s.Drain(), 5)
		x = s.F.Stats()
		require.Equal(t, []int64{0, 0, 0, 0, 0, 0, 0}, append([]int64{x.Waiting, x.Scheduled, x.Leased}, x.WaitingBy...))
		require.Equal(t, []int64{6, 7, 5}, []int64{x.Known, x.HandedOut, x.Done[frontier.Visited]})
		x.WaitingBy[0] = 99 // the caller's own
		require.Zero(t, s.F.Stats().WaitingBy[0])
	}},
}

func reversedInts(x []int64) []int64 {
	x = slices.Clone(x)
	slices.Reverse(x)
	return []int64{x[0], x[2], x[1], x[3]}
}

var sizes = []behaviour{
	{"Meta and URLs of any content and of all sizes come back", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
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
		s.Put(len(entries), entries...)
		for i, e := range entries {
			entries[i].Meta = append([]byte(nil), e.Meta...)
			clear(e.Meta) // Add copied it
		}
		for _, e := range entries {
			l := s.NextIs(0, e.URL)
			requireEntry(t, e, l.Entry)
			clear(l.Entry.Meta) // the caller's own
			l.Entry.Meta = nil
			meta := random(len(e.Meta))
			s.Done(l, frontier.Outcome{Next: harness.Dawn.Add(time.Hour), Meta: meta})
			want[e.URL] = bytes.Clone(meta)
			clear(meta)
		}
		s.Until(time.Hour)
		for range entries {
			l := s.Next()
			if w := want[l.Entry.URL]; len(w) > 0 || l.Entry.Meta != nil {
				require.True(t, bytes.Equal(w, l.Entry.Meta), "Meta of %d bytes", len(w))
			}
			s.Done(l, frontier.Outcome{})
		}
		s.Over()
	}},
	{"ten thousand entries in one Add", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		var entries []frontier.Entry
		for i := range 10_000 {
			entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%97, i), Depth: i % 5})
		}
		s.Put(10_000, entries...)
		s.Put(0, entries...)
		urls := s.Drain()
		slices.Sort(urls)
		require.Len(t, slices.Compact(urls), 10_000)
	}},
}

var reopenings = []behaviour{
	{"a clean reopening continues where it was", frontier.Options{Retry: frontier.Retries(3, time.Hour), LeaseTime: time.Hour}, func(t *testing.T, s *harness.Station) {
		if s.Options.Spill == nil {
			t.Skip("gone when closed")
		}
		s.Put(5,
			frontier.Entry{URL: "http://a.example/1", Meta: []byte("m"), Weight: 1.5}, frontier.Entry{URL: "http://a.example/2"},
			frontier.Entry{URL: "http://b.example/1"}, frontier.Entry{URL: "http://c.example/1"},
			frontier.Entry{URL: "http://d.example/1", NotBefore: harness.Dawn.Add(90 * time.Minute)},
		)
		a, b := s.NextIs(0, "http://a.example/1"), s.NextIs(0, "http://b.example/1")
		s.Done(b, frontier.Outcome{Result: frontier.Failed, CrawlDelay: 7 * time.Second})
		s.Counts(2, 2, 1)
		s.Clock.Advance(100 * time.Millisecond)
		s.Reopen()
		s.Counts(3, 2, 0)
		require.EqualValues(t, 5, s.F.Stats().Known)
		s.Put(0, frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://b.example/1"})
		require.ErrorIs(t, s.F.Done(a, harness.Requeue), frontier.ErrNotLeased)
		s.Put(1, frontier.Entry{URL: "http://b.example/2"})
		s.Done(s.NextIs(100*time.Millisecond, "http://c.example/1"), frontier.Outcome{})
		l := s.NextIs(1100*time.Millisecond, "http://a.example/1") // it was leased: it counts as contacted at the reopening
		require.Equal(t, 1, l.Attempt)
		requireEntry(t, frontier.Entry{URL: "http://a.example/1", Meta: []byte("m"), Weight: 1.5}, l.Entry)
		s.Done(l, frontier.Outcome{})
		s.Done(s.NextIs(2100*time.Millisecond, "http://a.example/2"), frontier.Outcome{})
		s.Done(s.NextIs(7*time.Second, "http://b.example/2"), frontier.Outcome{}) // its crawl delay was kept
		s.Reopen()
		l = s.NextIs(time.Hour, "http://b.example/1")
		require.Equal(t, 2, l.Attempt)
		s.Done(l, frontier.Outcome{})
		s.Done(s.NextIs(90*time.Minute, "http://d.example/1"), frontier.Outcome{})
		s.Over()
	}},
	{"a random crawl, reopened over and over, shows every URL once", harness.Quantum(3, frontier.Options{Delay: frontier.FixedDelay(0)}), func(t *testing.T, s *harness.Station) {
		if s.Options.Spill == nil {
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
						e.NotBefore = s.Clock.Now().Add(time.Duration(r.IntN(3600)) * time.Second)
					}
					want = append(want, u)
					batch = append(batch, e)
				}
				s.Put0(batch...)
				for range r.IntN(60) {
					if l, _, err := s.TryNext(); err == nil {
						out = append(out, l)
					}
					if len(out) > 3 || len(out) > 0 && r.IntN(2) == 0 {
						i := r.IntN(len(out))
						require.NoError(t, s.F.Done(out[i], frontier.Outcome{}))
						got = append(got, out[i].Entry.URL)
						out = slices.Delete(out, i, i+1)
					}
				}
				if r.IntN(3) == 0 {
					s.Settle()
				}
				s.Clock.Advance(time.Minute)
			}
			if out = nil; s.Machine != nil && round%2 == 1 {
				s.World = s.Killed() // without delays nothing is held
			} else {
				s.Reopen()
			}
		}
		got = append(got, s.Drain()...)
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got)
	}},
}
