// This file tests that a hand-out whose URLs are being read from disk looks again,
// when they have arrived, whether its host may still be contacted.

package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
)

// movedWorld is a world in which all URLs of a.example are on disk.
func movedWorld(t *testing.T, o frontier.Options) *harness.World {
	t.Helper()
	w := harness.NewStoredWorld(t, o, spill.Options{})
	w.Add(harness.UrlsOf("a.example", 3)...)
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	return w
}

// halfLeased is a world with a host that has two lanes and a lease. Its next URL
// is on disk.
func halfLeased(t *testing.T) (*harness.World, frontier.Lease) {
	t.Helper()
	w := harness.NewStoredWorld(t, frontier.Options{HostConcurrency: 2, Delay: frontier.FixedDelay(time.Second), Backoff: harness.ExactBackoff}, spill.Options{})
	w.Add("http://a.example/1")
	first := w.NextIs(0, "http://a.example/1")
	w.Add("http://a.example/2")
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	return w, first
}

func TestHostIsAssignedToABusyGroupDuringALoad(t *testing.T) {
	w := movedWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), GroupDelay: frontier.FixedDelay(time.Minute)})
	w.Add(harness.UrlsOf("b.example", 1)...)
	require.NoError(t, w.F.Assign("b.example", "g"))
	require.NoError(t, w.F.Pause(scope.Host("a.example")))
	b := w.NextIs(0, "http://b.example/1")
	require.NoError(t, w.F.Resume(scope.Host("a.example")))
	called := w.WhileReading(func() { assert.NoError(t, w.F.Assign("a.example", "g")) })
	_, _, err := w.F.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.True(t, *called)
	w.Why("a.example", inspect.ReasonGroup, 0)
	w.Fetched(b, time.Second, frontier.Outcome{})
	a := w.NextIs(time.Minute+time.Second, "http://a.example/1")
	require.Equal(t, "g", a.Group)
	require.NoError(t, w.F.Done(a, frontier.Outcome{}))
}

func TestHostIsAssignedToAFreeGroupDuringALoad(t *testing.T) {
	w := movedWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), GroupDelay: frontier.FixedDelay(time.Minute)})
	called := w.WhileReading(func() { assert.NoError(t, w.F.Assign("a.example", "g")) })
	a := w.NextIs(0, "http://a.example/1")
	require.True(t, *called)
	require.Equal(t, "g", a.Group, "it holds a slot of the group that it came to")
	g, ok := inspect.New(w.F).Group("g")
	require.True(t, ok)
	require.EqualValues(t, 1, g.Leased)
	require.NoError(t, w.F.Done(a, frontier.Outcome{}))
	w.NextIs(time.Minute, "http://a.example/2")
}

func TestHostLeavesItsGroupDuringALoad(t *testing.T) {
	w := movedWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), GroupDelay: frontier.FixedDelay(time.Minute)})
	w.Add(harness.UrlsOf("b.example", 1)...)
	for _, h := range []string{"a.example", "b.example"} {
		require.NoError(t, w.F.Assign(h, "g"))
	}
	require.NoError(t, w.F.Pause(scope.Host("b.example")))
	called := w.WhileReading(func() {
		assert.NoError(t, w.F.Assign("a.example", ""))
		assert.NoError(t, w.F.Resume(scope.Host("b.example")))
	})
	a := w.NextIs(0, "http://a.example/1")
	require.True(t, *called)
	require.Empty(t, a.Group)
	b := w.NextIs(0, "http://b.example/1")
	require.Equal(t, "g", b.Group, "the slot that was kept is free again")
	require.NoError(t, w.F.Done(a, frontier.Outcome{}))
	require.NoError(t, w.F.Done(b, frontier.Outcome{}))
	w.NextIs(time.Second, "http://a.example/2")
}

func TestHostLosesALaneDuringALoad(t *testing.T) {
	w, first := halfLeased(t)
	called := w.WhileReading(func() {
		assert.NoError(t, w.F.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.Concurrency = 1 }))
	})
	_, _, err := w.F.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.True(t, *called)
	w.Why("a.example", inspect.ReasonLeased, 0)
	w.Fetched(first, time.Second, frontier.Outcome{})
	w.NextIs(2*time.Second, "http://a.example/2")
}

func TestHostIsBlockedDuringALoad(t *testing.T) {
	w := movedWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)})
	called := w.WhileReading(func() { assert.NoError(t, w.F.BlockUntil(scope.All(), harness.Dawn.Add(time.Hour))) })
	_, at, err := w.F.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.True(t, *called)
	require.Equal(t, harness.Dawn.Add(time.Hour), at)
	w.NextIs(time.Hour, "http://a.example/1")
}

// A contact of the other lane that fails meanwhile slows the host down.
func TestHostIsRefusedDuringALoad(t *testing.T) {
	w, first := halfLeased(t)
	called := w.WhileReading(func() { assert.NoError(t, w.F.Done(first, harness.Failing(frontier.FailureTooMany))) })
	_, _, err := w.F.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.True(t, *called)
	w.NextIs(2*time.Second, "http://a.example/2")
}

// A URL that is moved to the front while its block is read comes once: what was read
// of it is of the place that it has left.
func TestURLIsMovedDuringALoad(t *testing.T) {
	w := movedWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)})
	called := w.WhileReading(func() { w.CrawlNow(frontier.Entry{URL: "http://a.example/2", Depth: 2}) })
	var got []string
	for i := range 3 {
		w.Until(time.Duration(i) * time.Second)
		l := w.Next()
		got = append(got, l.Entry.URL)
		require.NoError(t, w.F.Done(l, frontier.Outcome{}))
	}
	require.True(t, *called)
	require.ElementsMatch(t, harness.UrlsOf("a.example", 3), got)
	w.Over()
}

// A host that is paused does not keep the slot of its group from others, whatever
// the selector chooses.
func TestPausedHostGivesItsSlotUp(t *testing.T) {
	highest := false
	selector := selector.Func(func(available []int) int {
		if highest {
			return available[len(available)-1]
		}
		return available[0]
	})
	for name, hold := range map[string]func(f *frontier.Frontier) error{
		"paused": func(f *frontier.Frontier) error { return f.Pause(scope.Host("a.example")) },
		"blocked": func(f *frontier.Frontier) error {
			return f.BlockUntil(scope.Host("a.example"), harness.Dawn.Add(time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0), Selector: selector}, func(t *testing.T, w *harness.World) {
				add := func(host string, depth, n int) {
					for _, u := range harness.UrlsOf(host, n) {
						_, err := w.F.Add(t.Context(), frontier.Entry{URL: u, Depth: depth})
						require.NoError(t, err)
					}
				}
				for _, h := range []string{"a.example", "b.example"} {
					require.NoError(t, w.F.Assign(h, "g"))
				}
				add("a.example", 0, 2)
				add("b.example", 7, 2)
				for _, highest = range []bool{false, true} { // both get a back queue; then a, which is more urgent, the slot
					require.NoError(t, w.F.Done(w.Next(), frontier.Outcome{}))
				}
				highest = false
				add("c.example", 7, 20)
				c := w.NextIs(0, "http://c.example/1")
				require.NoError(t, hold(w.F))
				require.NoError(t, w.F.Done(c, frontier.Outcome{}))
				for range 3 {
					l := w.Next()
					require.NoError(t, w.F.Done(l, frontier.Outcome{}))
					if l.Host == "b.example" {
						return
					}
				}
				require.Fail(t, "b waits for the slot of a host that is held")
			})
		})
	}
}
