// Package spilltest provides tests of this module with stores that fail on demand.
//
// A Machine has a disk in memory. Its store can be closed, killed or lose power, and be opened
// again on what is left.
package spilltest

import (
	"testing"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/internal/kvtest"
)

// Point is a place where the disk can fail.
type Point = kvtest.Point

// The points. Write fails before anything is applied, Sync after everything is, Read when a value
// is read, Open when a file is opened or created.
const (
	Write = kvtest.Write
	Sync  = kvtest.Sync
	Read  = kvtest.Read
	Open  = kvtest.Open
)

// Machine is a store on a disk in memory with injected faults.
type Machine struct {
	Store  *spill.Store
	Faults *kvtest.Faulty
	Disk   *kvtest.Disk
	opts   spill.Options
}

// OpenMemory returns a machine with an empty disk. Its store is closed when the test ends.
func OpenMemory(tb testing.TB, o spill.Options) *Machine {
	tb.Helper()
	return Boot(tb, kvtest.NewDisk(), o)
}

// Boot opens a store on a disk.
func Boot(tb testing.TB, disk *kvtest.Disk, o spill.Options) *Machine {
	tb.Helper()
	m := &Machine{Disk: disk, Faults: &kvtest.Faulty{DB: disk}, opts: o}
	s, err := spill.OpenOn(m.Faults, o)
	if err != nil {
		tb.Fatalf("open a store in memory: %v", err)
	}
	m.Store = s
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close the store: %v", err)
		}
	})
	return m
}

// Kill returns a machine with what would remain if the process died now. The old machine continues
// as if nothing had happened.
func (m *Machine) Kill(tb testing.TB) *Machine {
	tb.Helper()
	return Boot(tb, m.Disk.Copy(), m.opts)
}

// PowerLoss returns a machine with what would remain after a loss of power now, if the first kept
// of the writes since the last sync had reached the medium, and nothing of unsynced files.
func (m *Machine) PowerLoss(tb testing.TB, kept int) *Machine {
	tb.Helper()
	return m.PowerLossWith(tb, kept, kvtest.FilesLost)
}

// PowerLossWith is PowerLoss with a given fate of unsynced files.
func (m *Machine) PowerLossWith(tb testing.TB, kept int, fate kvtest.Fate) *Machine {
	tb.Helper()
	return Boot(tb, m.Disk.PowerLoss(kept, fate), m.opts)
}

// Damage replaces each stored value, and the content of each file, by the result of fn; nil removes it.
func (m *Machine) Damage(fn func(key, value []byte) []byte) { m.Disk.Damage(fn) }
