// This file lets commits fail that end leases, and looks at what stays of them.

package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

// A Done whose URL is finished says so, whatever becomes of an outlink that is forced
// after that. An Add that has admitted some says so as well.
func TestForcedEntryThatCannotBeCommitted(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.add("http://a.example/1", "http://b.example/1", "http://b.example/2")
	forced := func(n int) []frontier.Entry {
		return []frontier.Entry{
			{URL: fmt.Sprintf("http://c.example/%d", n)},
			{URL: "http://b.example/1", Force: true}, {URL: "http://b.example/2", Force: true},
		}
	}
	w.machine.Faults.FailNth(spilltest.Write, 2, errDisk)
	err := w.f.Done(w.nextIs(0, "http://a.example/1"), frontier.Outcome{Add: forced(1)})
	require.ErrorIs(t, err, errDisk)
	bad := frontier.EntryErrors(err)
	require.Len(t, bad, 1)
	require.Equal(t, 1, bad[0].Index)
	require.Equal(t, "http://b.example/1", bad[0].URL)
	s, err := w.f.Status(t.Context(), 0, "http://a.example/1")
	require.NoError(t, err)
	require.Equal(t, frontier.URLKnown, s.State, "it is finished")

	w.machine.Faults.FailNth(spilltest.Write, 3, errDisk)
	n, err := w.f.Add(t.Context(), forced(2)...)
	require.Equal(t, 2, n)
	bad = frontier.EntryErrors(err)
	require.Len(t, bad, 1)
	require.Equal(t, "http://b.example/2", bad[0].URL)

	ctx, cancel := context.WithCancel(t.Context())
	w.machine.Faults.Before(spilltest.Write, 1, cancel)
	n, err = w.f.Add(ctx, forced(3)...)
	require.Equal(t, 1, n)
	require.Len(t, frontier.EntryErrors(err), 2)
	require.ErrorIs(t, err, context.Canceled)
	require.ElementsMatch(t, []string{"http://b.example/1", "http://b.example/2", "http://c.example/1", "http://c.example/2", "http://c.example/3"}, w.rest())
}

// A Done that failed may leave its host alone for longer, never for less: the
// Crawl-delay that was confirmed last holds, and what failures have taught.
func TestFailedDoneMakesNoHostFaster(t *testing.T) {
	for name, shorter := range map[string]time.Duration{"shorter": time.Second, "none": -1} {
		t.Run(name, func(t *testing.T) {
			w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
			w.add(urlsOf("a.example", 5)...)
			w.fetched(w.next(), 0, frontier.Outcome{CrawlDelay: 20 * time.Second})
			l := w.nextIs(20*time.Second, "http://a.example/2")
			w.machine.Faults.FailNth(spilltest.Write, 1, errDisk)
			require.ErrorIs(t, w.f.Done(l, frontier.Outcome{CrawlDelay: shorter}), errDisk)
			w.fetched(w.nextIs(40*time.Second, "http://a.example/2"), 0, frontier.Outcome{})
			w.nextIs(60*time.Second, "http://a.example/3")
			w = w.killed()
			w.nextIs(80*time.Second, "http://a.example/3") // the delay after a crash is what was stored
		})
	}
}

// That a host in quarantine answers again counts when it is confirmed.
func TestFailedDoneEndsNoQuarantine(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(sec), Backoff: exactBackoff, Quarantine: frontier.Quarantine{After: 3}}
	w := newStoredWorld(t, o, spill.Options{})
	w.addMany("a.example", 10)
	for range 3 {
		require.NoError(t, w.f.Done(w.next(), failing(frontier.FailureConnect)))
	}
	require.EqualValues(t, 1, w.f.Stats().Quarantined)
	l := w.next()
	probed := w.at()
	w.machine.Faults.FailNth(spilltest.Write, 1, errDisk)
	require.ErrorIs(t, w.f.Done(l, frontier.Outcome{}), errDisk)
	require.EqualValues(t, 1, w.f.Stats().Quarantined)
	require.NoError(t, w.f.Check())
	w.next()
	require.GreaterOrEqual(t, w.at()-probed, 10*time.Minute)
}

// What a failed commit would have ended is counted once, when it has ended.
func TestFailedDoneIsNotCounted(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1, 0)}, spill.Options{})
	w.add("http://a.example/1")
	for _, fails := range []bool{true, false} {
		if fails {
			w.machine.Faults.FailNth(spilltest.Write, 1, errDisk)
		}
		err := w.f.Done(w.next(), failing(frontier.FailureTimeout))
		require.Equal(t, fails, errors.Is(err, errDisk), err)
	}
	require.EqualValues(t, 1, w.f.Stats().GivenUp)
}

// full is a Spill without room for URLs.
type full struct {
	frontier.Spill
	isFull  bool
	batches int
}

func (s *full) Commit(b *frontier.Batch) error {
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
		w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), HostConcurrency: 8}, spill.Options{})
		s := &full{Spill: w.machine.Store}
		ended(t, w.f)
		w.opts.Spill = s
		f, err := frontier.Open(t.Context(), w.opts)
		require.NoError(t, err)
		w.f = f
		w.add(urlsOf("a.example", 5)...)
		var leases []frontier.Lease
		for range 4 {
			leases = append(leases, w.leaseOf(t))
		}
		gate := make(chan struct{})
		w.machine.Faults.Before(spilltest.Write, 1, func() { <-gate })
		first := start(func() (l frontier.Lease, err error) { return l, f.Pause(frontier.Host("z.example")) })
		require.True(t, first.waits())
		s.isFull, s.batches = true, 0
		add := func(url string) *call {
			return start(func() (l frontier.Lease, err error) {
				_, err = f.Add(context.Background(), frontier.Entry{URL: url})
				return l, err
			})
		}
		done := func(i int, o frontier.Outcome) *call {
			return start(func() (l frontier.Lease, err error) { return l, f.Done(leases[i], o) })
		}
		fail := []*call{add("http://b.example/1"), add("http://b.example/1")}
		pass := []*call{done(0, frontier.Outcome{})}
		fail = append(fail, done(1, frontier.Outcome{Add: []frontier.Entry{{URL: "http://b.example/1"}}}))
		pass = append(pass, done(2, frontier.Outcome{Result: frontier.Gone}),
			start(func() (l frontier.Lease, err error) { return l, f.Pause(frontier.Host("y.example")) }))
		close(gate)
		for _, c := range append(pass, first) {
			require.False(t, c.waits())
			require.NoError(t, c.err)
		}
		for _, c := range fail {
			require.False(t, c.waits())
			require.ErrorIs(t, c.err, syscall.ENOSPC)
		}
		require.Equal(t, 2, s.batches)
		require.NoError(t, f.Check())
		s.isFull = false
		w.add("http://b.example/1")
		require.NoError(t, f.Done(leases[3], frontier.Outcome{}))
		x := w.killed()
		r, _ := x.f.Rule(frontier.Host("y.example"))
		require.Equal(t, frontier.On, r.Paused)
		require.Equal(t, []string{"http://a.example/2", "http://a.example/5", "http://b.example/1"}, x.rest())
		require.Equal(t, []string{"http://a.example/2", "http://a.example/5", "http://b.example/1"}, w.rest())
		ended(t, f)
	})
}

// leaseOf leases a URL that may be had now, of a host that may have several leases.
func (w *world) leaseOf(t *testing.T) frontier.Lease {
	l, _, err := w.f.TryNext()
	require.NoError(t, err)
	return l
}
