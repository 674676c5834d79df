// This file holds what every frontier does, whatever it is kept in: one list of
// behaviours, run over a table of stores.

package conformance

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

var stores = []struct {
	name     string
	open     func(*testing.T) (storage.Spill, *spilltest.Machine)
	inBlocks bool
}{
	{"in memory", func(*testing.T) (storage.Spill, *spilltest.Machine) { return nil, nil }, false},
	{"on a disk in memory", openDisk, false},
	{"in blocks on a disk in memory", openDisk, true},
	{"in blocks on badger", openBadger, true},
}

func openDisk(t *testing.T) (storage.Spill, *spilltest.Machine) {
	m := spilltest.OpenMemory(t, spill.Options{})
	return m.Store, m
}

func openBadger(t *testing.T) (storage.Spill, *spilltest.Machine) {
	s, err := spill.Open(t.TempDir(), spill.Options{MemoryBudget: 64 << 20, DiskReserve: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, nil
}

// behaviour is one thing that a frontier promises. It runs in a bubble, so that
// synctest.Wait returns when all calls wait; its clock stands still unless moved.
type behaviour struct {
	name string
	opts frontier.Options
	run  func(*testing.T, *harness.Station)
}

func TestConformance(t *testing.T) {
	all := slices.Concat(outcomeTable(), fates, order, duplicates, forces, leases, groups, contacts, endings, reports, sizes, reopenings)
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			for _, b := range all {
				t.Run(b.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := &harness.World{TB: t, Clock: simclock.New(harness.Dawn), Options: b.opts}
						w.Options.Clock = w.Clock
						if w.Options.Delay == nil {
							w.Options.Delay = frontier.FixedDelay(time.Second)
						}
						if sp, m := s.open(t); sp != nil {
							w.Options.Spill, w.Machine = sp, m
						}
						w.Open()
						b.run(t, &harness.Station{World: w, InBlocks: s.inBlocks})
					})
				})
			}
		})
	}
}

func visited(result frontier.Result) frontier.Outcome { return frontier.Outcome{Result: result} }
