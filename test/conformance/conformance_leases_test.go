// This file says what a lease is worth: its deadline, its token, its group, and
// the contact without a URL.

package conformance

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

var leases = []behaviour{
	{"a lease tells what was handed out", frontier.Options{LeaseTime: time.Hour}, func(t *testing.T, s *harness.Station) {
		s.Put(1, frontier.Entry{URL: "HTTPS://user@A.example.:8443/x?y", Depth: 1, Weight: -2.5, Meta: []byte{0}, Crawl: 9})
		s.Until(time.Second)
		l := s.Next()
		requireEntry(t, frontier.Entry{URL: "HTTPS://user@A.example.:8443/x?y", Depth: 1, Weight: -2.5, Meta: []byte{0}, Crawl: 9}, l.Entry)
		require.Equal(t, "a.example", l.Host)
		require.Equal(t, []int{7, 1}, []int{l.Priority, l.Attempt})
		require.True(t, l.LeasedAt.Equal(harness.Dawn.Add(time.Second)))
		require.True(t, l.Deadline.Equal(harness.Dawn.Add(time.Hour+time.Second)))
		require.NotZero(t, l.Token())
		require.False(t, l.ContactOnly())
		require.Empty(t, l.Group)
	}},
	{"one lease of a host is out at a time", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/1", "http://a.example/2", "http://b.example/1")
		a, b := s.NextIs(0, "http://a.example/1"), s.NextIs(0, "http://b.example/1")
		c := s.StartNext(t.Context())
		require.True(t, c.Waits())
		s.Done(b, frontier.Outcome{})
		require.True(t, c.Waits())
		s.Done(a, frontier.Outcome{})
		require.False(t, c.Waits())
		require.Equal(t, "http://a.example/2", c.Lease.Entry.URL)
	}},
	{"an expired lease is a failed contact until its deadline", frontier.Options{LeaseTime: time.Minute, Delay: frontier.FactorDelay(0.5, 0, time.Hour)}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/1", "http://a.example/2")
		l := s.NextIs(0, "http://a.example/1")
		s.Settle()
		s.Clock.Set(harness.Dawn.Add(75 * time.Second)) // found out late
		s.Counts(2, 0, 0)
		require.ErrorIs(t, s.F.Done(l, frontier.Outcome{}), frontier.ErrNotLeased)
		x := s.F.Stats()
		require.Equal(t, []int64{1, 1}, []int64{x.Expired, x.Done[frontier.Failed]})
		s.Settle()
	}},
	{"an expired lease's URL comes again at the tail", frontier.Options{LeaseTime: time.Minute, Retry: frontier.Retries(2, time.Hour)}, func(t *testing.T, s *harness.Station) {
		g := s.Watched()
		s.URLs("http://a.example/1", "http://a.example/2")
		s.NextIs(0, "http://a.example/1")
		s.Settle()
		l := s.NextIs(61*time.Second, "http://a.example/2")
		s.Done(l, frontier.Outcome{})
		l = s.NextIs(62*time.Second, "http://a.example/1")
		require.Equal(t, 2, l.Attempt)
		s.Until(62*time.Second + time.Minute)
		s.Over()
		synctest.Wait()
		require.Equal(t, []string{"http://a.example/1"}, g.URLs(), "its tries are used up")
	}},
	{"a waiting call gets what an expired lease held", frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		s.NextIs(0, "http://a.example/")
		c := s.StartNext(t.Context())
		s.Clock.Set(harness.Dawn.Add(61*time.Second - 1))
		require.True(t, c.Waits())
		s.Clock.Set(harness.Dawn.Add(61 * time.Second))
		require.False(t, c.Waits())
		require.Equal(t, 2, c.Lease.Attempt)
	}},
	{"a late Done may move the host's clock later, and nothing else", frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/1", "http://a.example/2")
		l := s.NextIs(0, "http://a.example/1")
		s.Until(61*time.Second - 1)
		require.ErrorIs(t, s.F.Done(l, frontier.Outcome{RetryAfter: time.Hour, Add: []frontier.Entry{{URL: "http://b.example/"}}}), frontier.ErrNotLeased)
		s.Counts(2, 0, 0)
		s.NextIs(61*time.Second-1+time.Hour, "http://a.example/2")
	}},
	{"Extend moves the deadline, also to an earlier time", frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		l := s.NextIs(0, "http://a.example/")
		s.Until(30 * time.Second)
		require.NoError(t, s.F.Extend(&l, time.Hour))
		require.True(t, l.Deadline.Equal(harness.Dawn.Add(30*time.Second+time.Hour)))
		s.Until(time.Hour)
		s.Counts(0, 0, 1)
		c := s.StartNext(t.Context())
		require.NoError(t, s.F.Extend(&l, time.Second))
		s.Until(time.Hour + 2*time.Second - 1)
		require.True(t, c.Waits())
		s.Until(time.Hour + 2*time.Second)
		require.False(t, c.Waits())
		require.NoError(t, c.Err)
		require.ErrorIs(t, s.F.Extend(&l, time.Second), frontier.ErrNotLeased)
	}},
	{"a lease ends once", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		l := s.Next()
		s.Done(l, frontier.Outcome{Next: harness.Dawn.Add(time.Minute)})
		ended := func() {
			t.Helper()
			require.ErrorIs(t, s.F.Done(l, frontier.Outcome{}), frontier.ErrNotLeased)
			require.ErrorIs(t, s.F.Extend(&l, time.Hour), frontier.ErrNotLeased)
			require.ErrorIs(t, s.F.Join(&l, "g"), frontier.ErrNotLeased)
			_, err := s.F.HandBack(l)
			require.ErrorIs(t, err, frontier.ErrNotLeased)
		}
		ended()
		s.NextIs(time.Minute, "http://a.example/")
		ended() // the next lease of the host does not revive it
		s.Counts(0, 0, 1)
	}},
	{"tokens never repeat, across openings too", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		seen := map[uint64]bool{}
		for range 4 {
			s.Put0(harness.EntriesOf("a.example", 5)...)
			for range 3 {
				l := s.Next()
				require.False(t, seen[l.Token()], "token %d comes twice", l.Token())
				seen[l.Token()] = true
				l, err := s.F.HandBack(l)
				require.NoError(t, err)
				require.False(t, seen[l.Token()], "token %d comes twice", l.Token())
				seen[l.Token()] = true
				s.Done(l, harness.Requeue)
			}
			if s.Options.Spill != nil {
				s.Reopen()
			}
			if s.Machine != nil {
				s.World = s.Killed()
			}
		}
	}},
}

var groups = []behaviour{
	{"a group has one lease out at a time, and its own delay", frontier.Options{GroupDelay: frontier.FixedDelay(10 * time.Second)}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/1", "http://b.example/1", "http://c.example/1")
		a, b, c := s.NextIs(0, "http://a.example/1"), s.NextIs(0, "http://b.example/1"), s.NextIs(0, "http://c.example/1")
		require.NoError(t, s.F.Join(&a, "10.0.0.1"))
		require.Equal(t, "10.0.0.1", a.Group)
		require.NoError(t, s.F.Join(&a, "10.0.0.1"), "again")
		require.ErrorIs(t, s.F.Join(&b, "10.0.0.1"), frontier.ErrGroupBusy)
		s.Done(b, harness.Requeue)
		s.Done(c, frontier.Outcome{}) // not of the group
		s.Until(time.Minute)
		_, at, err := s.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, a.Deadline, at)
		s.Done(a, frontier.Outcome{})
		b = s.NextIs(70*time.Second, "http://b.example/1")
		require.Equal(t, "10.0.0.1", b.Group)
		require.Equal(t, 1, b.Attempt)
		require.NoError(t, s.F.Join(&b, "10.0.0.1"), "it holds the slot")
		s.Done(b, frontier.Outcome{})
		s.Over()
	}},
	{"a host may change its group", frontier.Options{Delay: frontier.FixedDelay(0), GroupDelay: frontier.FixedDelay(time.Minute)}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/1", "http://a.example/2", "http://b.example/1", "http://b.example/2")
		a := s.NextIs(0, "http://a.example/1")
		require.NoError(t, s.F.Join(&a, "old"))
		require.NoError(t, s.F.Join(&a, "new"))
		require.EqualValues(t, 2, s.F.Stats().Groups)
		b := s.NextIs(0, "http://b.example/1")
		require.ErrorIs(t, s.F.Join(&b, "new"), frontier.ErrGroupBusy)
		require.NoError(t, s.F.Join(&b, "other"))
		s.Done(b, frontier.Outcome{})
		s.Done(a, frontier.Outcome{})
		s.NothingUntil(time.Minute)
		a, b = s.Next(), s.Next()
		require.Equal(t, time.Minute, s.At())
		require.ElementsMatch(t, []string{"a.example new", "b.example other"}, []string{a.Host + " " + a.Group, b.Host + " " + b.Group})
	}},
	{"HandBack keeps the slot and returns the URL to the head", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.Put(2, frontier.Entry{URL: "http://a.example/1", Meta: []byte("m")}, frontier.Entry{URL: "http://a.example/2"})
		page := s.NextIs(0, "http://a.example/1")
		require.NoError(t, s.F.Join(&page, "g"))
		robots, err := s.F.HandBack(page)
		require.NoError(t, err)
		require.True(t, robots.ContactOnly())
		require.Equal(t, []string{"a.example", "g"}, []string{robots.Host, robots.Group})
		require.Zero(t, robots.Priority)
		s.Counts(2, 0, 1)
		require.ErrorIs(t, s.F.Done(page, frontier.Outcome{}), frontier.ErrNotLeased)
		s.Settle()
		s.Fetched(robots, 300*time.Millisecond, frontier.Outcome{})
		page = s.NextIs(1300*time.Millisecond, "http://a.example/1")
		require.Equal(t, 1, page.Attempt)
		require.Equal(t, "m", string(page.Entry.Meta))
		s.Done(page, frontier.Outcome{})
		s.NextIs(2300*time.Millisecond, "http://a.example/2")
	}},
	{"a handed back lease may expire", frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		_, err := s.F.HandBack(s.Next())
		require.NoError(t, err)
		l := s.NextIs(61*time.Second, "http://a.example/")
		require.Equal(t, 1, l.Attempt, "the URL was not tried")
	}},
}

var contacts = []behaviour{
	{"Contact leases a host without URLs", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		l, err := s.F.Contact(t.Context(), "a.example")
		require.NoError(t, err)
		require.True(t, l.ContactOnly())
		require.Equal(t, "a.example", l.Host)
		s.Counts(0, 0, 1)
		s.Fetched(l, 100*time.Millisecond, frontier.Outcome{})
		s.URLs("http://a.example/")
		s.NextIs(1100*time.Millisecond, "http://a.example/")
	}},
	{"Contact goes before the host's URLs, in order", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/1", "http://a.example/2")
		l := s.NextIs(0, "http://a.example/1")
		c1, c2 := s.StartContact(t.Context(), "a.example"), s.StartContact(t.Context(), "a.example")
		n := s.StartNext(t.Context())
		s.Done(l, frontier.Outcome{})
		for i, c := range []*harness.Call{c1, c2, n} {
			s.Until(time.Duration(i+1)*time.Second - 1)
			require.True(t, c.Waits())
			s.Clock.Advance(1)
			require.False(t, c.Waits())
			require.NoError(t, c.Err)
			s.Done(c.Lease, frontier.Outcome{})
		}
		require.Equal(t, "http://a.example/2", n.Lease.Entry.URL)
	}},
	{"Contact waits for the end of a lease", frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/", "http://b.example/") // b's token waits meanwhile
		l := s.NextIs(0, "http://a.example/")
		c := s.StartContact(t.Context(), "a.example")
		s.Until(time.Minute)
		require.True(t, c.Waits())
		s.Done(l, frontier.Outcome{})
		require.False(t, c.Waits())
		require.NoError(t, c.Err)
	}},
	{"a Contact that gives up leaves the host to the others", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/1", "http://a.example/2")
		l := s.NextIs(0, "http://a.example/1")
		ctx, cancel := context.WithCancel(t.Context())
		c1, c2 := s.StartContact(ctx, "a.example"), s.StartContact(t.Context(), "a.example")
		s.Done(l, frontier.Outcome{})
		cancel()
		require.False(t, c1.Waits())
		require.ErrorIs(t, c1.Err, context.Canceled)
		s.Until(time.Second)
		require.False(t, c2.Waits())
		ctx, cancel = context.WithCancel(t.Context())
		c1 = s.StartContact(ctx, "a.example")
		s.Done(c2.Lease, harness.Requeue)
		require.False(t, c1.Waits(), "uncontacted: the host is free at once")
		s.Done(c1.Lease, frontier.Outcome{})
		c1 = s.StartContact(ctx, "a.example")
		cancel()
		require.False(t, c1.Waits())
		s.NextIs(2*time.Second, "http://a.example/2")
	}},
	{"a Contact that gave up does not keep the crawl going", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		s.URLs("http://a.example/")
		l := s.Next()
		ctx, cancel := context.WithCancel(t.Context())
		c, n := s.StartContact(ctx, "a.example"), s.StartNext(t.Context())
		s.Done(l, frontier.Outcome{})
		require.True(t, n.Waits(), "the Contact may find URLs")
		cancel()
		require.False(t, c.Waits())
		require.False(t, n.Waits())
		require.ErrorIs(t, n.Err, frontier.ErrExhausted)
	}},
	{"Contact needs no URL to come due, and hundreds may wait", frontier.Options{}, func(t *testing.T, s *harness.Station) {
		var calls []*harness.Call
		for i := range 200 {
			calls = append(calls, s.StartContact(t.Context(), fmt.Sprintf("h%d.example", i%20)))
		}
		for round := range 10 {
			for i, c := range calls {
				require.Equal(t, i/20 > round, c.Waits())
				if i/20 == round {
					require.NoError(t, c.Err)
					s.Done(c.Lease, frontier.Outcome{})
				}
			}
			s.Clock.Advance(time.Second)
		}
	}},
}
