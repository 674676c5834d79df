// This file lets commits fail that end leases, and looks at what stays of them.

package conformance

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// A Done whose URL is finished says so, whatever becomes of an outlink that is forced
// after that. An Add that has admitted some says so as well.
func TestForcedEntryThatCannotBeCommitted(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Add("http://a.example/1", "http://b.example/1", "http://b.example/2")
	forced := func(n int) []frontier.Entry {
		return []frontier.Entry{
			{URL: fmt.Sprintf("http://c.example/%d", n)},
			{URL: "http://b.example/1", Force: true}, {URL: "http://b.example/2", Force: true},
		}
	}
	w.Machine.Faults.FailNth(spilltest.Write, 2, harness.ErrDisk)
	err := w.F.Done(w.NextIs(0, "http://a.example/1"), frontier.Outcome{Add: forced(1)})
	require.ErrorIs(t, err, harness.ErrDisk)
	bad := frontier.EntryErrors(err)
	require.Len(t, bad, 1)
	require.Equal(t, 1, bad[0].Index)
	require.Equal(t, "http://b.example/1", bad[0].URL)
	s, err := inspect.New(w.F).Status(t.Context(), frontier.Entry{URL: "http://a.example/1"})
	require.NoError(t, err)
	require.Equal(t, inspect.URLKnown, s.State, "it is finished")

	w.Machine.Faults.FailNth(spilltest.Write, 3, harness.ErrDisk)
	n, err := w.F.Add(t.Context(), forced(2)...)
	require.Equal(t, 2, n)
	bad = frontier.EntryErrors(err)
	require.Len(t, bad, 1)
	require.Equal(t, "http://b.example/2", bad[0].URL)

	ctx, cancel := context.WithCancel(t.Context())
	w.Machine.Faults.Before(spilltest.Write, 2, cancel)
	n, err = w.F.Add(ctx, forced(3)...)
	require.GreaterOrEqual(t, n, 1, "the cancellation came after the first commit")
	require.Len(t, frontier.EntryErrors(err), 3-n, "the write under way may have ended first")
	require.ErrorIs(t, err, context.Canceled)
	require.ElementsMatch(t, []string{"http://b.example/1", "http://b.example/2", "http://c.example/1", "http://c.example/2", "http://c.example/3"}, w.Rest())
}

// A Done that failed may leave its host alone for longer, never for less: the last confirmed
// Crawl-delay holds, and so do the effects of failures.
func TestFailedDoneMakesNoHostFaster(t *testing.T) {
	for name, shorter := range map[string]time.Duration{"shorter": time.Second, "none": -1} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
			w.Add(harness.UrlsOf("a.example", 5)...)
			w.Fetched(w.Next(), 0, frontier.Outcome{CrawlDelay: 20 * time.Second})
			l := w.NextIs(20*time.Second, "http://a.example/2")
			w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
			require.ErrorIs(t, w.F.Done(l, frontier.Outcome{CrawlDelay: shorter}), harness.ErrDisk)
			w.Fetched(w.NextIs(40*time.Second, "http://a.example/2"), 0, frontier.Outcome{})
			w.NextIs(60*time.Second, "http://a.example/3")
			w = w.Killed()
			w.NextIs(80*time.Second, "http://a.example/3") // the delay after a crash is what was stored
		})
	}
}

// That a host in quarantine answers again counts when it is confirmed.
func TestFailedDoneEndsNoQuarantine(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(time.Second), Backoff: harness.ExactBackoff, Quarantine: frontier.Quarantine{After: 3}}
	w := harness.NewStoredWorld(t, o, spill.Options{})
	w.AddMany("a.example", 10)
	for range 3 {
		require.NoError(t, w.F.Done(w.Next(), harness.Failing(frontier.FailureConnect)))
	}
	require.EqualValues(t, 1, w.F.Stats().Quarantined)
	l := w.Next()
	probed := w.At()
	w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
	require.ErrorIs(t, w.F.Done(l, frontier.Outcome{}), harness.ErrDisk)
	require.EqualValues(t, 1, w.F.Stats().Quarantined)
	require.NoError(t, w.F.Check())
	w.Next()
	require.GreaterOrEqual(t, w.At()-probed, 10*time.Minute)
}

// What a failed commit would have ended is counted once, when it has ended.
func TestFailedDoneIsNotCounted(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1, 0)}, spill.Options{})
	w.Add("http://a.example/1")
	for _, fails := range []bool{true, false} {
		if fails {
			w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
		}
		err := w.F.Done(w.Next(), harness.Failing(frontier.FailureTimeout))
		require.Equal(t, fails, errors.Is(err, harness.ErrDisk), err)
	}
	require.EqualValues(t, 1, w.F.Stats().GivenUp)
}

// full is a Spill without room for URLs.
type full struct {
	storage.Spill
	isFull  bool
	batches int
}

func (s *full) Commit(b *storage.Batch) error {
	s.batches++
	if s.isFull && len(b.Admit) > 0 {
		return fmt.Errorf("commit: %w", syscall.ENOSPC)
	}
	return s.Spill.Commit(b)
}

// An Add that is refused for want of room takes no Done down that came with it, and
// nothing else that needs none. What relies on the Add fails as it does.
func TestRefusedAddTakesNoDoneDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), HostConcurrency: 8}, spill.Options{})
		s := &full{Spill: w.Machine.Store}
		harness.Ended(t, w.F)
		w.Options.Spill = s
		f, err := frontier.Open(t.Context(), w.Options)
		require.NoError(t, err)
		w.F = f
		w.Add(harness.UrlsOf("a.example", 5)...)
		var leases []frontier.Lease
		for range 4 {
			leases = append(leases, w.LeaseOf(t))
		}
		gate := make(chan struct{})
		w.Machine.Faults.Before(spilltest.Write, 1, func() { <-gate })
		first := harness.Start(func() (l frontier.Lease, err error) { return l, f.Pause(scope.Host("z.example")) })
		require.True(t, first.Waits())
		s.isFull, s.batches = true, 0
		add := func(url string) *harness.Call {
			return harness.Start(func() (l frontier.Lease, err error) {
				_, err = f.Add(context.Background(), frontier.Entry{URL: url})
				return l, err
			})
		}
		done := func(i int, o frontier.Outcome) *harness.Call {
			return harness.Start(func() (l frontier.Lease, err error) { return l, f.Done(leases[i], o) })
		}
		fail := []*harness.Call{add("http://b.example/1"), add("http://b.example/1")}
		pass := []*harness.Call{done(0, frontier.Outcome{})}
		fail = append(fail, done(1, frontier.Outcome{Add: []frontier.Entry{{URL: "http://b.example/1"}}}))
		pass = append(pass, done(2, frontier.Outcome{Result: frontier.Gone}),
			harness.Start(func() (l frontier.Lease, err error) { return l, f.Pause(scope.Host("y.example")) }))
		close(gate)
		for _, c := range append(pass, first) {
			require.False(t, c.Waits())
			require.NoError(t, c.Err)
		}
		for _, c := range fail {
			require.False(t, c.Waits())
			require.ErrorIs(t, c.Err, syscall.ENOSPC)
		}
		require.Equal(t, 2, s.batches)
		require.NoError(t, f.Check())
		s.isFull = false
		w.Add("http://b.example/1")
		require.NoError(t, f.Done(leases[3], frontier.Outcome{}))
		x := w.Killed()
		r, _ := x.F.Rule(scope.Host("y.example"))
		require.Equal(t, scope.On, r.Paused)
		require.Equal(t, []string{"http://a.example/2", "http://a.example/5", "http://b.example/1"}, x.Rest())
		require.Equal(t, []string{"http://a.example/2", "http://a.example/5", "http://b.example/1"}, w.Rest())
		harness.Ended(t, f)
	})
}
