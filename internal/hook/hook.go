// Package hook is how tests outside of the root package reach into a frontier. The
// root sets it; nothing but tests calls it.
package hook

import "time"

// Of takes a *frontier.Frontier.
var Of func(f any) Frontier

// Tuning are settings that users need not know. What is zero stays as it is.
type Tuning struct {
	Quantum   int           // hand-outs after which a host gives its back queue to another
	ParkAfter time.Duration // how far away the next contact of a host without back queue may be
}

// Tune changes the tuning of a *frontier.Options.
var Tune func(options any, change func(*Tuning))

// Frontier is what tests do to a frontier beside its calls.
type Frontier interface {
	// MoveNow moves everything from the log to blocks and, with evict set, keeps as
	// little as possible in memory.
	MoveNow(evict bool) error

	// ReadTimed reads what is due of the timed blocks.
	ReadTimed()

	// CommitNow writes what waits for a batch to go with.
	CommitNow() error

	// Sweep waits until nothing in memory is dead that was deleted.
	Sweep()

	// Resident reports whether the host is in memory.
	Resident(host string) bool

	// GroupOf returns the group that a host belongs to, or "". If the host is not in
	// memory that is the one it will come back to.
	GroupOf(host string) string

	// DueOf returns when a host may be contacted as far as its own clock is concerned.
	DueOf(host string) time.Time

	// LeaseGroup returns the group of which a lease that is out holds a slot, or "". It
	// takes a frontier.Lease.
	LeaseGroup(lease any) string

	// LockComesFree reports whether the lock can be had soon. If not, the caller holds
	// it: nothing else does for longer than a moment.
	LockComesFree() bool
}
