// This file tests that a hand-out whose URLs are being read from disk looks again,
// when they have arrived, whether its host may still be contacted.

package frontier_test

import (
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// movedWorld is a world in which all URLs of a.example are on disk.
func movedWorld(t *testing.T, o frontier.Options) *world {
	t.Helper()
	w := newStoredWorld(t, o, spill.Options{})
	w.add(urlsOf("a.example", 3)...)
	require.NoError(t, w.f.MoveNow(true))
	return w
}

// halfLeased is a world with a host that has two lanes and a lease. Its next URL
// is on disk.
func halfLeased(t *testing.T) (*world, frontier.Lease) {
	t.Helper()
	w := newStoredWorld(t, frontier.Options{HostConcurrency: 2, Delay: frontier.FixedDelay(time.Second), Backoff: exactBackoff}, spill.Options{})
	w.add("http://a.example/1")
	first := w.nextIs(0, "http://a.example/1")
	w.add("http://a.example/2")
	require.NoError(t, w.f.MoveNow(true))
	return w, first
}

// whileReading calls fn during the next read from disk.
func (w *world) whileReading(fn func()) *bool {
	called := new(bool)
	w.machine.Faults.Before(spilltest.Read, 1, func() { *called = true; fn() })
	return called
}

func TestHostIsAssignedToABusyGroupDuringALoad(t *testing.T) {
	w := movedWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), GroupDelay: frontier.FixedDelay(time.Minute)})
	w.add(urlsOf("b.example", 1)...)
	require.NoError(t, w.f.Assign("b.example", "g"))
	require.NoError(t, w.f.Pause(frontier.Host("a.example")))
	b := w.nextIs(0, "http://b.example/1")
	require.NoError(t, w.f.Resume(frontier.Host("a.example")))
	called := w.whileReading(func() { assert.NoError(t, w.f.Assign("a.example", "g")) })
	_, _, err := w.f.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.True(t, *called)
	w.why("a.example", frontier.ReasonGroup, 0)
	w.fetched(b, time.Second, frontier.Outcome{})
	a := w.nextIs(time.Minute+time.Second, "http://a.example/1")
	require.Equal(t, "g", a.Group)
	require.NoError(t, w.f.Done(a, frontier.Outcome{}))
}

func TestHostIsAssignedToAFreeGroupDuringALoad(t *testing.T) {
	w := movedWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), GroupDelay: frontier.FixedDelay(time.Minute)})
	called := w.whileReading(func() { assert.NoError(t, w.f.Assign("a.example", "g")) })
	a := w.nextIs(0, "http://a.example/1")
	require.True(t, *called)
	require.Equal(t, "g", a.Group, "it holds a slot of the group that it came to")
	g, ok := w.f.Group("g")
	require.True(t, ok)
	require.EqualValues(t, 1, g.Leased)
	require.NoError(t, w.f.Done(a, frontier.Outcome{}))
	w.nextIs(time.Minute, "http://a.example/2")
}

func TestHostLeavesItsGroupDuringALoad(t *testing.T) {
	w := movedWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), GroupDelay: frontier.FixedDelay(time.Minute)})
	w.add(urlsOf("b.example", 1)...)
	for _, h := range []string{"a.example", "b.example"} {
		require.NoError(t, w.f.Assign(h, "g"))
	}
	require.NoError(t, w.f.Pause(frontier.Host("b.example")))
	called := w.whileReading(func() {
		assert.NoError(t, w.f.Assign("a.example", ""))
		assert.NoError(t, w.f.Resume(frontier.Host("b.example")))
	})
	a := w.nextIs(0, "http://a.example/1")
	require.True(t, *called)
	require.Empty(t, a.Group)
	b := w.nextIs(0, "http://b.example/1")
	require.Equal(t, "g", b.Group, "the slot that was kept is free again")
	require.NoError(t, w.f.Done(a, frontier.Outcome{}))
	require.NoError(t, w.f.Done(b, frontier.Outcome{}))
	w.nextIs(time.Second, "http://a.example/2")
}

func TestHostLosesALaneDuringALoad(t *testing.T) {
	w, first := halfLeased(t)
	called := w.whileReading(func() { assert.NoError(t, w.f.SetConcurrency(frontier.Host("a.example"), 1)) })
	_, _, err := w.f.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.True(t, *called)
	w.why("a.example", frontier.ReasonLeased, 0)
	w.fetched(first, time.Second, frontier.Outcome{})
	w.nextIs(2*time.Second, "http://a.example/2")
}

func TestHostIsBlockedDuringALoad(t *testing.T) {
	w := movedWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)})
	called := w.whileReading(func() { assert.NoError(t, w.f.BlockUntil(frontier.All(), dawn.Add(time.Hour))) })
	_, at, err := w.f.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.True(t, *called)
	require.Equal(t, dawn.Add(time.Hour), at)
	w.nextIs(time.Hour, "http://a.example/1")
}

// A contact of the other lane that fails meanwhile slows the host down.
func TestHostIsRefusedDuringALoad(t *testing.T) {
	w, first := halfLeased(t)
	called := w.whileReading(func() { assert.NoError(t, w.f.Done(first, failing(frontier.FailureTooMany))) })
	_, _, err := w.f.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.True(t, *called)
	w.nextIs(2*time.Second, "http://a.example/2")
}

// A URL that is moved to the front while its block is read comes once: what was read
// of it is of the place that it has left.
func TestURLIsMovedDuringALoad(t *testing.T) {
	w := movedWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)})
	called := w.whileReading(func() { w.crawlNow(entry("http://a.example/2", 1)) })
	var got []string
	for i := range 3 {
		w.until(time.Duration(i) * time.Second)
		l := w.next()
		got = append(got, l.Entry.URL)
		require.NoError(t, w.f.Done(l, frontier.Outcome{}))
	}
	require.True(t, *called)
	require.ElementsMatch(t, urlsOf("a.example", 3), got)
	w.over()
}

// A host that is paused does not keep the slot of its group from others, whatever
// the selector chooses.
func TestPausedHostGivesItsSlotUp(t *testing.T) {
	highest := false
	selector := frontier.SelectorFunc(func(available []int) int {
		if highest {
			return available[len(available)-1]
		}
		return available[0]
	})
	for name, hold := range map[string]func(f *frontier.Frontier) error{
		"paused":  func(f *frontier.Frontier) error { return f.Pause(frontier.Host("a.example")) },
		"blocked": func(f *frontier.Frontier) error { return f.BlockUntil(frontier.Host("a.example"), dawn.Add(time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0), Selector: selector}, func(t *testing.T, w *world) {
				add := func(host string, depth, n int) {
					for _, u := range urlsOf(host, n) {
						_, err := w.f.Add(t.Context(), frontier.Entry{URL: u, Depth: depth})
						require.NoError(t, err)
					}
				}
				for _, h := range []string{"a.example", "b.example"} {
					require.NoError(t, w.f.Assign(h, "g"))
				}
				add("a.example", 0, 2)
				add("b.example", 7, 2)
				for _, highest = range []bool{false, true} { // both get a back queue; then a, which is more urgent, the slot
					require.NoError(t, w.f.Done(w.next(), frontier.Outcome{}))
				}
				highest = false
				add("c.example", 7, 20)
				c := w.nextIs(0, "http://c.example/1")
				require.NoError(t, hold(w.f))
				require.NoError(t, w.f.Done(c, frontier.Outcome{}))
				for range 3 {
					l := w.next()
					require.NoError(t, w.f.Done(l, frontier.Outcome{}))
					if l.Host == "b.example" {
						return
					}
				}
				require.Fail(t, "b waits for the slot of a host that is held")
			})
		})
	}
}
