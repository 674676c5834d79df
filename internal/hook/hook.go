// Package hook lets tests outside of the root package reach into a frontier. The root sets it; only
// tests call it.
package hook

import "time"

// Of returns the Frontier of a *frontier.Frontier.
var Of func(f any) Frontier

// Tuning holds settings that are not public. Zero fields leave a setting unchanged.
type Tuning struct {
	Quantum   int           // hand-outs after which a host passes its back queue on to another
	ParkAfter time.Duration // a host whose next contact is farther away gives up its back queue
	LookAgain time.Duration // a timer waits for a date this long at most: the clock may be set
}

// Tune changes the tuning of a *frontier.Options.
var Tune func(options any, change func(*Tuning))

// Frontier holds the actions that only tests need.
type Frontier interface {
	// MoveNow moves everything from the log to blocks and, with evict set, keeps as
	// little as possible in memory.
	MoveNow(evict bool) error

	// ReadTimed reads the timed blocks that are due.
	ReadTimed()

	// CommitNow writes changes that wait for the next batch.
	CommitNow() error

	// Sweep waits until nothing in memory is dead that was deleted, and what deserves more has risen.
	Sweep()

	// Resident reports whether the host is in memory.
	Resident(host string) bool

	// LeaseGroup returns the group in which a current lease holds a slot, or "". It takes a
	// frontier.Lease.
	LeaseGroup(lease any) string

	// NotesSize returns the memory of the notes about waiting URLs, in bytes.
	NotesSize() int64

	// LockComesFree reports whether the lock can be acquired soon. If not, the caller holds it:
	// nothing else does for longer than a moment.
	LockComesFree() bool
}
