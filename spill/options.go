// This file holds the options of a store and what they must be.

package spill

import (
	"errors"
	"fmt"
	"log/slog"
)

const (
	defaultMemory  = 128 << 20
	minMemory      = 64 << 20
	maxMemory      = 4 << 30
	defaultReserve = 256 << 20
)

// Options configure a Store. The zero value is ready for use.
type Options struct {
	// Sync makes Commit and Checkpoint wait until the data survives a loss of
	// power. Without it they survive the death of the process, and a loss of power
	// costs the latest batches.
	Sync bool

	// MemoryBudget is how many bytes of memory the engine may use. Less of it
	// means smaller tables, which cost more merging. Up to half as many come on
	// top as the known URLs grow, to find them on disk. 128 MiB are plenty for 35
	// million; with 100 million every third new URL costs a read, and from 140
	// million on 0.5 bytes for each are taken in any case. Zero means 128 MiB; at
	// least 64 MiB, at most 4 GiB.
	MemoryBudget int64

	// DiskReserve is how many bytes of the volume must stay free: below it Pack,
	// and Commit of batches that admit something, fail with an error that wraps
	// syscall.ENOSPC; batches below 4 KB do below half of it. What is stored can
	// still be opened, read and finished, down to the space of four tables of the
	// engine, 8 to 16 MB: below, calls that write, and Open, fail with that error.
	// The engine writes to mapped files, and would be killed by a volume that is
	// really full: its logs have their space before, that of its tables is looked
	// at before each. Zero means 256 MiB.
	DiskReserve int64

	// Logger receives what goes on in the background. Nil is silent.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.MemoryBudget == 0 {
		o.MemoryBudget = defaultMemory
	}
	if o.DiskReserve == 0 {
		o.DiskReserve = defaultReserve
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// validate reports every fault at once; it runs after withDefaults.
func (o Options) validate() error {
	var errs []error
	if o.MemoryBudget < minMemory || o.MemoryBudget > maxMemory {
		errs = append(errs, fmt.Errorf("MemoryBudget is %d; want %d to %d", o.MemoryBudget, minMemory, int64(maxMemory)))
	}
	if o.DiskReserve < 0 {
		errs = append(errs, fmt.Errorf("DiskReserve is %d; want >= 0", o.DiskReserve))
	}
	return errors.Join(errs...)
}
