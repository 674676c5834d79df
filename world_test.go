package frontier_test

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

var long = flag.Bool("frontier.long", false, "run the simulations and drains in full size")

// dawn is when every virtual clock starts.
var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a frontier on a clock that stands still, in memory or on a store with
// a disk in memory. Its frontier is checked and closed when the test ends.
type world struct {
	testing.TB
	f       *frontier.Frontier
	clk     *simclock.Clock
	opts    frontier.Options
	machine *spilltest.Machine // nil: in memory
}

// newWorld opens a frontier with the options and a virtual clock.
func newWorld(tb testing.TB, o frontier.Options) *world {
	tb.Helper()
	w := &world{TB: tb, clk: simclock.New(dawn), opts: o}
	w.opts.Clock = w.clk
	w.open()
	return w
}

// newStoredWorld is newWorld on a store.
func newStoredWorld(tb testing.TB, o frontier.Options, so spill.Options) *world {
	tb.Helper()
	w := &world{TB: tb, clk: simclock.New(dawn), opts: o, machine: spilltest.OpenMemory(tb, so)}
	w.opts.Clock, w.opts.Spill = w.clk, w.machine.Store
	w.open()
	return w
}

// inBothWorlds runs a test in memory and on a store.
func inBothWorlds(t *testing.T, o frontier.Options, test func(*testing.T, *world)) {
	t.Helper()
	t.Run("in memory", func(t *testing.T) { test(t, newWorld(t, o)) })
	t.Run("on a store", func(t *testing.T) { test(t, newStoredWorld(t, o, spill.Options{})) })
}

func (w *world) open() {
	w.Helper()
	f, err := frontier.Open(context.Background(), w.opts)
	require.NoError(w, err)
	w.f = f
	w.Cleanup(func() { ended(w, f) })
}

// ended checks a frontier's invariants and closes it.
func ended(tb testing.TB, f *frontier.Frontier) {
	tb.Helper()
	require.NoError(tb, f.Check())
	require.NoError(tb, f.Close())
}

// reopen closes the frontier cleanly and opens it again.
func (w *world) reopen() {
	w.Helper()
	ended(w, w.f)
	w.open()
}

// killed is the world as it goes on after the death of the process at this
// moment. The clock goes on.
func (w *world) killed() *world {
	w.Helper()
	return w.on(w.machine.Kill(w))
}

func (w *world) on(m *spilltest.Machine) *world {
	w.Helper()
	x := &world{TB: w.TB, clk: w.clk, opts: w.opts, machine: m}
	x.opts.Spill = m.Store
	x.open()
	return x
}

// at is the time since dawn.
func (w *world) at() time.Duration { return w.clk.Now().Sub(dawn) }

// until moves the clock to so much after dawn.
func (w *world) until(d time.Duration) { w.clk.Set(dawn.Add(d)) }

func (w *world) add(urls ...string) {
	w.Helper()
	entries := make([]frontier.Entry, len(urls))
	for i, u := range urls {
		entries[i].URL = u
	}
	n, err := w.f.Add(context.Background(), entries...)
	require.NoError(w, err)
	require.Equal(w, len(urls), n)
}

// tryNext is TryNext after all that is on its way to the store has arrived.
func (w *world) tryNext() (frontier.Lease, time.Time, error) {
	w.Helper()
	l, at, err := w.f.TryNext()
	if !errors.Is(err, frontier.ErrNotDue) {
		return l, at, err
	}
	_, err = w.f.Add(context.Background()) // waits for what was accepted before it
	require.NoError(w, err)
	return w.f.TryNext()
}

// next lets time pass until a URL may be had, and takes it. It fails if one may
// be had a nanosecond before the time that the frontier told.
func (w *world) next() frontier.Lease {
	w.Helper()
	for range 100 {
		l, at, err := w.tryNext()
		if !errors.Is(err, frontier.ErrNotDue) {
			require.NoError(w, err)
			return l
		}
		require.True(w, at.After(w.clk.Now()), "told to come back at %v, which is not in the future", at.Sub(dawn))
		w.clk.Set(at.Add(-1))
		_, again, err := w.tryNext()
		require.ErrorIs(w, err, frontier.ErrNotDue)
		require.Equal(w, at, again)
		w.clk.Set(at)
	}
	require.Fail(w, "nothing becomes due")
	return frontier.Lease{}
}

// nextIs requires that the next URL is this one and comes at exactly this time.
func (w *world) nextIs(at time.Duration, url string) frontier.Lease {
	w.Helper()
	l := w.next()
	require.Equal(w, url, l.Entry.URL)
	require.Equal(w, at, w.at(), "%s may be had at the wrong time", url)
	return l
}

// nothingUntil requires that no URL may be had before this time, and goes there.
func (w *world) nothingUntil(at time.Duration) {
	w.Helper()
	w.until(at - 1)
	l, _, err := w.tryNext()
	require.ErrorIs(w, err, frontier.ErrNotDue, "got %s", l.Entry.URL)
	w.until(at)
}

// over requires that the crawl is over.
func (w *world) over() {
	w.Helper()
	_, _, err := w.tryNext()
	require.ErrorIs(w, err, frontier.ErrExhausted)
}

// fetched lets a fetch of a lease last d, and ends it.
func (w *world) fetched(l frontier.Lease, d time.Duration, o frontier.Outcome) {
	w.Helper()
	w.clk.Advance(d)
	require.NoError(w, w.f.Done(l, o))
}
