// This file holds the options of a store and their valid ranges.

package spill

import (
	"cmp"
	"errors"
	"log/slog"

	"github.com/seed-7440039f/frontier/internal/faults"
)

const (
	defaultMemory  = 128 << 20
	minMemory      = 64 << 20
	leastFilters   = 2 << 20 // of known URLs, beside the engine
	maxMemory      = 4 << 30
	defaultReserve = 256 << 20
)

// Options configure a Store. The zero value is ready for use.
type Options struct {
	// Sync makes Commit and Checkpoint wait until the data survives a loss of power. Without it,
	// committed data survives the death of the process, but a loss of power costs the latest batches.
	Sync bool

	// MemoryBudget is the memory, in bytes, that the engine may use. A smaller budget means smaller
	// tables, which cost more merging. To find known URLs on disk, the store takes up to half as
	// much again as their number grows. 128 MiB are plenty for 35 million URLs; with 100 million,
	// every third new URL costs a read; from 140 million on, the store takes 0.5 bytes for each,
	// whatever the budget. Zero means 128 MiB; the minimum is 64 MiB, the maximum 4 GiB.
	MemoryBudget int64

	// DiskReserve is the free space, in bytes, that must remain on the volume. Below it, Pack and
	// the Commit of batches with admissions fail with an error that wraps syscall.ENOSPC; batches
	// below 4 KB fail only below half of it. Stored data can still be opened, read and finished
	// until less than the space of four engine tables, 8 to 16 MB, is left; then Open and all calls
	// that write fail with that error. The reserve is needed because the engine writes to mapped
	// files, and a volume that is really full would kill the process: the engine allocates its logs
	// in advance, and checks for the space of each table. Zero means 256 MiB.
	DiskReserve int64

	// Logger receives messages about background work. Nil discards them.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.MemoryBudget = cmp.Or(o.MemoryBudget, defaultMemory)
	o.DiskReserve = cmp.Or(o.DiskReserve, defaultReserve)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// validate reports every fault at once; it runs after withDefaults.
func (o Options) validate() error {
	var wrong faults.List
	wrong.If(o.MemoryBudget < minMemory || o.MemoryBudget > maxMemory, "MemoryBudget is %d; want %d to %d", o.MemoryBudget, minMemory, int64(maxMemory))
	wrong.If(o.DiskReserve < 0, "DiskReserve is %d; want >= 0", o.DiskReserve)
	return errors.Join(wrong...)
}
