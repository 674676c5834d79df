// This file holds what every frontier does, whatever it is kept in: one list of
// behaviours, run over a table of stores.

package frontier_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

// station is a world on one of the stores.
type station struct {
	*world
	inBlocks bool // settle leaves as little as possible in memory
}

var stores = []struct {
	name     string
	open     func(*testing.T) (frontier.Spill, *spilltest.Machine)
	inBlocks bool
}{
	{"in memory", func(*testing.T) (frontier.Spill, *spilltest.Machine) { return nil, nil }, false},
	{"on a disk in memory", openDisk, false},
	{"in blocks on a disk in memory", openDisk, true},
	{"in blocks on badger", openBadger, true},
}

func openDisk(t *testing.T) (frontier.Spill, *spilltest.Machine) {
	m := spilltest.OpenMemory(t, spill.Options{})
	return m.Store, m
}

func openBadger(t *testing.T) (frontier.Spill, *spilltest.Machine) {
	s, err := spill.Open(t.TempDir(), spill.Options{MemoryBudget: 64 << 20, DiskReserve: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, nil
}

// behaviour is one thing that a frontier promises. It runs in a bubble, so that
// synctest.Wait tells when all calls wait; its clock stands still unless moved.
type behaviour struct {
	name string
	opts frontier.Options
	run  func(*testing.T, *station)
}

func TestConformance(t *testing.T) {
	all := slices.Concat(outcomeTable(), fates, order, duplicates, forces, leases, groups, contacts, endings, reports, sizes, reopenings)
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			for _, b := range all {
				t.Run(b.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := &world{TB: t, clk: simclock.New(dawn), opts: b.opts}
						w.opts.Clock = w.clk
						if w.opts.Delay == nil {
							w.opts.Delay = frontier.FixedDelay(time.Second)
						}
						if sp, m := s.open(t); sp != nil {
							w.opts.Spill, w.machine = sp, m
						}
						w.open()
						b.run(t, &station{w, s.inBlocks})
					})
				})
			}
		})
	}
}

// settle moves everything to blocks, on a store where it can.
func (s *station) settle() {
	s.Helper()
	if s.inBlocks {
		require.NoError(s, s.f.MoveNow(true))
	}
}

// put adds entries of which so many are new.
func (s *station) put(fresh int, entries ...frontier.Entry) {
	s.Helper()
	n, err := s.f.Add(s.Context(), entries...)
	require.NoError(s, err)
	require.Equal(s, fresh, n)
	s.settle()
}

// put0 adds entries without looking.
func (s *station) put0(entries ...frontier.Entry) {
	s.Helper()
	_, err := s.f.Add(s.Context(), entries...)
	require.NoError(s, err)
}

func (s *station) urls(urls ...string) { s.Helper(); s.add(urls...); s.settle() }

func (s *station) done(l frontier.Lease, o frontier.Outcome) {
	s.Helper()
	require.NoError(s, s.f.Done(l, o))
	s.settle()
}

// drain takes and finishes all that is left, and returns the URLs.
func (s *station) drain() []string {
	s.Helper()
	urls := []string{}
	for {
		l, at, err := s.tryNext()
		switch {
		case errors.Is(err, frontier.ErrExhausted):
			return urls
		case errors.Is(err, frontier.ErrNotDue):
			s.clk.Set(at)
		default:
			require.NoError(s, err)
			urls = append(urls, l.Entry.URL)
			require.NoError(s, s.f.Done(l, frontier.Outcome{}))
		}
	}
}

// counts compares the three states of a URL with Stats.
func (s *station) counts(waiting, scheduled, leased int64) {
	s.Helper()
	s.f.Stats() // ends the leases that are due
	synctest.Wait()
	x := s.f.Stats()
	require.Equal(s, []int64{waiting, scheduled, leased}, []int64{x.Waiting, x.Scheduled, x.Leased}, "waiting, scheduled, leased")
}

// call is a call in a goroutine of its own.
type call struct {
	lease frontier.Lease
	err   error
	over  chan struct{}
}

// start calls fn, and returns when fn waits or has returned.
func start(fn func() (frontier.Lease, error)) *call {
	c := &call{over: make(chan struct{})}
	go func() {
		defer close(c.over)
		c.lease, c.err = fn()
	}()
	synctest.Wait()
	return c
}

func (s *station) startNext(ctx context.Context) *call {
	return start(func() (frontier.Lease, error) { return s.f.Next(ctx) })
}

// waits reports whether the call has not returned and nothing is left to happen.
func (c *call) waits() bool {
	synctest.Wait()
	select {
	case <-c.over:
		return false
	default:
		return true
	}
}

func visited(result frontier.Result) frontier.Outcome { return frontier.Outcome{Result: result} }
