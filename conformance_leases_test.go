// This file says what a lease is worth: its deadline, its token, its group, and
// the contact without a URL.

package frontier_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
)

var leases = []behaviour{
	{"a lease tells what was handed out", frontier.Options{LeaseTime: time.Hour}, func(t *testing.T, s *station) {
		s.put(1, frontier.Entry{URL: "HTTPS://user@A.example.:8443/x?y", Depth: 1, Weight: -2.5, Meta: []byte{0}, Crawl: 9})
		s.until(time.Second)
		l := s.next()
		requireEntry(t, frontier.Entry{URL: "HTTPS://user@A.example.:8443/x?y", Depth: 1, Weight: -2.5, Meta: []byte{0}, Crawl: 9}, l.Entry)
		require.Equal(t, "a.example", l.Host)
		require.Equal(t, []int{7, 1}, []int{l.Priority, l.Attempt})
		require.True(t, l.LeasedAt.Equal(dawn.Add(time.Second)))
		require.True(t, l.Deadline.Equal(dawn.Add(time.Hour+time.Second)))
		require.NotZero(t, l.Token())
		require.False(t, l.ContactOnly())
		require.Empty(t, l.Group)
	}},
	{"one lease of a host is out at a time", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *station) {
		s.urls("http://a.example/1", "http://a.example/2", "http://b.example/1")
		a, b := s.nextIs(0, "http://a.example/1"), s.nextIs(0, "http://b.example/1")
		c := s.startNext(t.Context())
		require.True(t, c.waits())
		s.done(b, frontier.Outcome{})
		require.True(t, c.waits())
		s.done(a, frontier.Outcome{})
		require.False(t, c.waits())
		require.Equal(t, "http://a.example/2", c.lease.Entry.URL)
	}},
	{"an expired lease is a failed contact until its deadline", frontier.Options{LeaseTime: time.Minute, Delay: frontier.FactorDelay(0.5, 0, time.Hour)}, func(t *testing.T, s *station) {
		s.urls("http://a.example/1", "http://a.example/2")
		l := s.nextIs(0, "http://a.example/1")
		s.settle()
		s.clk.Set(dawn.Add(75 * time.Second)) // found out late
		s.counts(2, 0, 0)
		require.ErrorIs(t, s.f.Done(l, frontier.Outcome{}), frontier.ErrNotLeased)
		x := s.f.Stats()
		require.Equal(t, []int64{1, 1}, []int64{x.Expired, x.Done[frontier.Failed]})
		s.settle()
	}},
	{"an expired lease's URL comes again at the tail", frontier.Options{LeaseTime: time.Minute, Retry: frontier.Retries(2, time.Hour)}, func(t *testing.T, s *station) {
		g := s.watched()
		s.urls("http://a.example/1", "http://a.example/2")
		s.nextIs(0, "http://a.example/1")
		s.settle()
		l := s.nextIs(61*time.Second, "http://a.example/2")
		s.done(l, frontier.Outcome{})
		l = s.nextIs(62*time.Second, "http://a.example/1")
		require.Equal(t, 2, l.Attempt)
		s.until(62*time.Second + time.Minute)
		s.over()
		synctest.Wait()
		require.Equal(t, []string{"http://a.example/1"}, g.urls(), "its tries are used up")
	}},
	{"a waiting call gets what an expired lease held", frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, s *station) {
		s.urls("http://a.example/")
		s.nextIs(0, "http://a.example/")
		c := s.startNext(t.Context())
		s.clk.Set(dawn.Add(61*time.Second - 1))
		require.True(t, c.waits())
		s.clk.Set(dawn.Add(61 * time.Second))
		require.False(t, c.waits())
		require.Equal(t, 2, c.lease.Attempt)
	}},
	{"a late Done may move the host's clock later, and nothing else", frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, s *station) {
		s.urls("http://a.example/1", "http://a.example/2")
		l := s.nextIs(0, "http://a.example/1")
		s.until(61*time.Second - 1)
		require.ErrorIs(t, s.f.Done(l, frontier.Outcome{RetryAfter: time.Hour, Add: []frontier.Entry{{URL: "http://b.example/"}}}), frontier.ErrNotLeased)
		s.counts(2, 0, 0)
		s.nextIs(61*time.Second-1+time.Hour, "http://a.example/2")
	}},
	{"Extend moves the deadline, also to an earlier time", frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, s *station) {
		s.urls("http://a.example/")
		l := s.nextIs(0, "http://a.example/")
		s.until(30 * time.Second)
		require.NoError(t, s.f.Extend(&l, time.Hour))
		require.True(t, l.Deadline.Equal(dawn.Add(30*time.Second+time.Hour)))
		s.until(time.Hour)
		s.counts(0, 0, 1)
		c := s.startNext(t.Context())
		require.NoError(t, s.f.Extend(&l, time.Second))
		s.until(time.Hour + 2*time.Second - 1)
		require.True(t, c.waits())
		s.until(time.Hour + 2*time.Second)
		require.False(t, c.waits())
		require.NoError(t, c.err)
		require.ErrorIs(t, s.f.Extend(&l, time.Second), frontier.ErrNotLeased)
	}},
	{"a lease ends once", frontier.Options{}, func(t *testing.T, s *station) {
		s.urls("http://a.example/")
		l := s.next()
		s.done(l, frontier.Outcome{Next: dawn.Add(time.Minute)})
		ended := func() {
			t.Helper()
			require.ErrorIs(t, s.f.Done(l, frontier.Outcome{}), frontier.ErrNotLeased)
			require.ErrorIs(t, s.f.Extend(&l, time.Hour), frontier.ErrNotLeased)
			require.ErrorIs(t, s.f.Join(&l, "g"), frontier.ErrNotLeased)
			_, err := s.f.HandBack(l)
			require.ErrorIs(t, err, frontier.ErrNotLeased)
		}
		ended()
		s.nextIs(time.Minute, "http://a.example/")
		ended() // the next lease of the host does not revive it
		s.counts(0, 0, 1)
	}},
	{"tokens never repeat, across openings too", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *station) {
		seen := map[uint64]bool{}
		for range 4 {
			s.put0(entriesOf("a.example", 5)...)
			for range 3 {
				l := s.next()
				require.False(t, seen[l.Token()], "token %d comes twice", l.Token())
				seen[l.Token()] = true
				l, err := s.f.HandBack(l)
				require.NoError(t, err)
				require.False(t, seen[l.Token()], "token %d comes twice", l.Token())
				seen[l.Token()] = true
				s.done(l, requeue)
			}
			if s.opts.Spill != nil {
				s.reopen()
			}
			if s.machine != nil {
				s.world = s.killed()
			}
		}
	}},
}

func entriesOf(host string, n int) []frontier.Entry {
	var out []frontier.Entry
	for _, u := range urlsOf(host, n) {
		out = append(out, frontier.Entry{URL: u})
	}
	return out
}

var groups = []behaviour{
	{"a group has one lease out at a time, and its own delay", frontier.Options{GroupDelay: frontier.FixedDelay(10 * time.Second)}, func(t *testing.T, s *station) {
		s.urls("http://a.example/1", "http://b.example/1", "http://c.example/1")
		a, b, c := s.nextIs(0, "http://a.example/1"), s.nextIs(0, "http://b.example/1"), s.nextIs(0, "http://c.example/1")
		require.NoError(t, s.f.Join(&a, "10.0.0.1"))
		require.Equal(t, "10.0.0.1", a.Group)
		require.NoError(t, s.f.Join(&a, "10.0.0.1"), "again")
		require.ErrorIs(t, s.f.Join(&b, "10.0.0.1"), frontier.ErrGroupBusy)
		s.done(b, requeue)
		s.done(c, frontier.Outcome{}) // not of the group
		s.until(time.Minute)
		_, at, err := s.tryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, a.Deadline, at)
		s.done(a, frontier.Outcome{})
		b = s.nextIs(70*time.Second, "http://b.example/1")
		require.Equal(t, "10.0.0.1", b.Group)
		require.Equal(t, 1, b.Attempt)
		require.NoError(t, s.f.Join(&b, "10.0.0.1"), "it holds the slot")
		s.done(b, frontier.Outcome{})
		s.over()
	}},
	{"a host may change its group", frontier.Options{Delay: frontier.FixedDelay(0), GroupDelay: frontier.FixedDelay(time.Minute)}, func(t *testing.T, s *station) {
		s.urls("http://a.example/1", "http://a.example/2", "http://b.example/1", "http://b.example/2")
		a := s.nextIs(0, "http://a.example/1")
		require.NoError(t, s.f.Join(&a, "old"))
		require.NoError(t, s.f.Join(&a, "new"))
		require.EqualValues(t, 2, s.f.Stats().Groups)
		b := s.nextIs(0, "http://b.example/1")
		require.ErrorIs(t, s.f.Join(&b, "new"), frontier.ErrGroupBusy)
		require.NoError(t, s.f.Join(&b, "other"))
		s.done(b, frontier.Outcome{})
		s.done(a, frontier.Outcome{})
		s.nothingUntil(time.Minute)
		a, b = s.next(), s.next()
		require.Equal(t, time.Minute, s.at())
		require.ElementsMatch(t, []string{"a.example new", "b.example other"}, []string{a.Host + " " + a.Group, b.Host + " " + b.Group})
	}},
	{"HandBack keeps the slot and returns the URL to the head", frontier.Options{}, func(t *testing.T, s *station) {
		s.put(2, frontier.Entry{URL: "http://a.example/1", Meta: []byte("m")}, frontier.Entry{URL: "http://a.example/2"})
		page := s.nextIs(0, "http://a.example/1")
		require.NoError(t, s.f.Join(&page, "g"))
		robots, err := s.f.HandBack(page)
		require.NoError(t, err)
		require.True(t, robots.ContactOnly())
		require.Equal(t, []string{"a.example", "g"}, []string{robots.Host, robots.Group})
		require.Zero(t, robots.Priority)
		s.counts(2, 0, 1)
		require.ErrorIs(t, s.f.Done(page, frontier.Outcome{}), frontier.ErrNotLeased)
		s.settle()
		s.fetched(robots, 300*ms, frontier.Outcome{})
		page = s.nextIs(1300*ms, "http://a.example/1")
		require.Equal(t, 1, page.Attempt)
		require.Equal(t, "m", string(page.Entry.Meta))
		s.done(page, frontier.Outcome{})
		s.nextIs(2300*ms, "http://a.example/2")
	}},
	{"a handed back lease may expire", frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, s *station) {
		s.urls("http://a.example/")
		_, err := s.f.HandBack(s.next())
		require.NoError(t, err)
		l := s.nextIs(61*time.Second, "http://a.example/")
		require.Equal(t, 1, l.Attempt, "the URL was not tried")
	}},
}

// startContact calls Contact.
func (s *station) startContact(ctx context.Context, host string) *call {
	return start(func() (frontier.Lease, error) { return s.f.Contact(ctx, host) })
}

var contacts = []behaviour{
	{"Contact leases a host without URLs", frontier.Options{}, func(t *testing.T, s *station) {
		l, err := s.f.Contact(t.Context(), "a.example")
		require.NoError(t, err)
		require.True(t, l.ContactOnly())
		require.Equal(t, "a.example", l.Host)
		s.counts(0, 0, 1)
		s.fetched(l, 100*ms, frontier.Outcome{})
		s.urls("http://a.example/")
		s.nextIs(1100*ms, "http://a.example/")
	}},
	{"Contact goes before the host's URLs, in order", frontier.Options{}, func(t *testing.T, s *station) {
		s.urls("http://a.example/1", "http://a.example/2")
		l := s.nextIs(0, "http://a.example/1")
		c1, c2 := s.startContact(t.Context(), "a.example"), s.startContact(t.Context(), "a.example")
		n := s.startNext(t.Context())
		s.done(l, frontier.Outcome{})
		for i, c := range []*call{c1, c2, n} {
			s.until(time.Duration(i+1)*time.Second - 1)
			require.True(t, c.waits())
			s.clk.Advance(1)
			require.False(t, c.waits())
			require.NoError(t, c.err)
			s.done(c.lease, frontier.Outcome{})
		}
		require.Equal(t, "http://a.example/2", n.lease.Entry.URL)
	}},
	{"Contact waits for the end of a lease", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *station) {
		s.urls("http://a.example/", "http://b.example/") // b's token waits meanwhile
		l := s.nextIs(0, "http://a.example/")
		c := s.startContact(t.Context(), "a.example")
		s.until(time.Minute)
		require.True(t, c.waits())
		s.done(l, frontier.Outcome{})
		require.False(t, c.waits())
		require.NoError(t, c.err)
	}},
	{"a Contact that gives up leaves the host to the others", frontier.Options{}, func(t *testing.T, s *station) {
		s.urls("http://a.example/1", "http://a.example/2")
		l := s.nextIs(0, "http://a.example/1")
		ctx, cancel := context.WithCancel(t.Context())
		c1, c2 := s.startContact(ctx, "a.example"), s.startContact(t.Context(), "a.example")
		s.done(l, frontier.Outcome{})
		cancel()
		require.False(t, c1.waits())
		require.ErrorIs(t, c1.err, context.Canceled)
		s.until(time.Second)
		require.False(t, c2.waits())
		ctx, cancel = context.WithCancel(t.Context())
		c1 = s.startContact(ctx, "a.example")
		s.done(c2.lease, requeue)
		require.False(t, c1.waits(), "uncontacted: the host is free at once")
		s.done(c1.lease, frontier.Outcome{})
		c1 = s.startContact(ctx, "a.example")
		cancel()
		require.False(t, c1.waits())
		s.nextIs(2*time.Second, "http://a.example/2")
	}},
	{"a Contact that gave up does not keep the crawl going", frontier.Options{}, func(t *testing.T, s *station) {
		s.urls("http://a.example/")
		l := s.next()
		ctx, cancel := context.WithCancel(t.Context())
		c, n := s.startContact(ctx, "a.example"), s.startNext(t.Context())
		s.done(l, frontier.Outcome{})
		require.True(t, n.waits(), "the Contact may find URLs")
		cancel()
		require.False(t, c.waits())
		require.False(t, n.waits())
		require.ErrorIs(t, n.err, frontier.ErrExhausted)
	}},
	{"Contact needs no URL to come due, and hundreds may wait", frontier.Options{}, func(t *testing.T, s *station) {
		var calls []*call
		for i := range 200 {
			calls = append(calls, s.startContact(t.Context(), fmt.Sprintf("h%d.example", i%20)))
		}
		for round := range 10 {
			for i, c := range calls {
				require.Equal(t, i/20 > round, c.waits())
				if i/20 == round {
					require.NoError(t, c.err)
					s.done(c.lease, frontier.Outcome{})
				}
			}
			s.clk.Advance(time.Second)
		}
	}},
}
