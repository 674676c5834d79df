package harness

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

// Long has simulations and drains run in full size.
var Long = flag.Bool("frontier.long", false, "run the simulations and drains in full size")

// Dawn is when every virtual clock starts.
var Dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// World is a frontier on a clock that stands still, in memory or on a store with
// a disk in memory. Its frontier is checked and closed when the test ends.
type World struct {
	testing.TB
	F       *frontier.Frontier
	Clock   *simclock.Clock
	Options frontier.Options
	Machine *spilltest.Machine // nil: in memory
}

// NewWorld opens a frontier with the options and a virtual clock.
func NewWorld(tb testing.TB, o frontier.Options) *World {
	tb.Helper()
	w := &World{TB: tb, Clock: simclock.New(Dawn), Options: o}
	w.Options.Clock = w.Clock
	w.Open()
	return w
}

// NewStoredWorld is newWorld on a store.
func NewStoredWorld(tb testing.TB, o frontier.Options, so spill.Options) *World {
	tb.Helper()
	w := &World{TB: tb, Clock: simclock.New(Dawn), Options: o, Machine: spilltest.OpenMemory(tb, so)}
	w.Options.Clock, w.Options.Spill = w.Clock, w.Machine.Store
	w.Open()
	return w
}

// InBothWorlds runs a test in memory and on a store.
func InBothWorlds(t *testing.T, o frontier.Options, test func(*testing.T, *World)) {
	t.Helper()
	t.Run("in memory", func(t *testing.T) { test(t, NewWorld(t, o)) })
	t.Run("on a store", func(t *testing.T) { test(t, NewStoredWorld(t, o, spill.Options{})) })
}

// Open opens the frontier with the options as they are.
func (w *World) Open() {
	w.Helper()
	f, err := frontier.Open(context.Background(), w.Options)
	require.NoError(w, err)
	w.F = f
	w.Cleanup(func() { Ended(w, f) })
}

// Ended checks a frontier's invariants and closes it.
func Ended(tb testing.TB, f *frontier.Frontier) {
	tb.Helper()
	require.NoError(tb, f.Check())
	require.NoError(tb, f.Close())
}

// Reopen closes the frontier cleanly and opens it again.
func (w *World) Reopen() {
	w.Helper()
	Ended(w, w.F)
	w.Open()
}

// Killed is the world after the death of the process at this moment. The clock continues.
func (w *World) Killed() *World {
	w.Helper()
	return w.On(w.Machine.Kill(w))
}

// On is the world with another frontier on the same clock.
func (w *World) On(m *spilltest.Machine) *World {
	w.Helper()
	selector.Leave(w.Options.Selector) // the process that had it is dead
	x := &World{TB: w.TB, Clock: w.Clock, Options: w.Options, Machine: m}
	x.Options.Spill = m.Store
	x.Open()
	return x
}

// At is the time since dawn.
func (w *World) At() time.Duration { return w.Clock.Now().Sub(Dawn) }

// Until moves the clock to so much after dawn.
func (w *World) Until(d time.Duration) { w.Clock.Set(Dawn.Add(d)) }

// Add adds URLs that are new.
func (w *World) Add(urls ...string) {
	w.Helper()
	entries := make([]frontier.Entry, len(urls))
	for i, u := range urls {
		entries[i].URL = u
	}
	n, err := w.F.Add(context.Background(), entries...)
	require.NoError(w, err)
	require.Equal(w, len(urls), n)
}

// TryNext is TryNext after everything on its way to the store has arrived.
func (w *World) TryNext() (frontier.Lease, time.Time, error) {
	w.Helper()
	l, at, err := w.F.TryNext()
	if !errors.Is(err, frontier.ErrNotDue) {
		return l, at, err
	}
	_, err = w.F.Add(context.Background()) // waits for what was accepted before it
	require.NoError(w, err)
	return w.F.TryNext()
}

// Next lets time pass until a URL may be had, and takes it. It fails if one may
// be had a nanosecond before the time that the frontier named.
func (w *World) Next() frontier.Lease {
	w.Helper()
	for range 100 {
		l, at, err := w.TryNext()
		if !errors.Is(err, frontier.ErrNotDue) {
			require.NoError(w, err)
			return l
		}
		require.True(w, at.After(w.Clock.Now()), "told to come back at %v, which is not in the future", at.Sub(Dawn))
		w.Clock.Set(at.Add(-1))
		_, again, err := w.TryNext()
		require.ErrorIs(w, err, frontier.ErrNotDue)
		require.Equal(w, at, again)
		w.Clock.Set(at)
	}
	require.Fail(w, "nothing becomes due")
	return frontier.Lease{}
}

// NextIs requires that the next URL is this one and comes at exactly this time.
func (w *World) NextIs(at time.Duration, url string) frontier.Lease {
	w.Helper()
	l := w.Next()
	require.Equal(w, url, l.Entry.URL)
	require.Equal(w, at, w.At(), "%s may be had at the wrong time", url)
	return l
}

// NothingUntil requires that no URL may be had before this time, and goes there.
func (w *World) NothingUntil(at time.Duration) {
	w.Helper()
	w.Until(at - 1)
	l, _, err := w.TryNext()
	require.ErrorIs(w, err, frontier.ErrNotDue, "got %s", l.Entry.URL)
	w.Until(at)
}

// Over requires that the crawl is over.
func (w *World) Over() {
	w.Helper()
	_, _, err := w.TryNext()
	require.ErrorIs(w, err, frontier.ErrExhausted)
}

// Fetched lets a fetch of a lease last d, and ends it.
func (w *World) Fetched(l frontier.Lease, d time.Duration, o frontier.Outcome) {
	w.Helper()
	w.Clock.Advance(d)
	require.NoError(w, w.F.Done(l, o))
}
