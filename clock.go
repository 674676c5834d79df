// This file has the clock that callers may set, and what a frontier does when it jumps.
//
// Package clock separates moments from dates. When the two drift apart, because the wall clock was set
// or the machine was suspended, each timer follows its own clock. But the store has moments as the time
// of day at which they were written. So rows are rewritten for hosts that would be contacted too early
// if the process were killed now, or late by as much as the clock was set back.

package frontier

import (
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/clock"
	"github.com/seed-7440039f/frontier/internal/mercator"
)

// Clock returns the time and wakes the frontier. The default is the system's. With that of
// package simclock a week of politeness can be simulated in a second. Its methods are
// called from any goroutine.
type Clock interface {
	// Now returns the time of day. It may jump, as when the clock is set or the machine
	// was suspended: what has a date (NotBefore, visits, blocks, periods of limits)
	// follows it, and so does everything that is stored or reported.
	Now() time.Time
	// Elapsed returns how much time has passed since any fixed moment, by a clock that cannot be set.
	// It may stand still while the machine is suspended. It times politeness and leases. A clock that
	// never jumps may return time.Duration(Now().UnixNano()). If it jumps backwards the frontier's own
	// time stands still until it has caught up.
	Elapsed() time.Duration
	// AfterFunc calls f once, in a new goroutine or in the one that moves the clock, when
	// d has passed by Elapsed; f may use the clock.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of AfterFunc. A *time.Timer is one.
type Timer interface {
	// Stop keeps the call from happening and reports whether it was in time.
	Stop() bool
	// Reset moves the call to d from now, also if it has happened or was stopped.
	Reset(d time.Duration) bool
}

type systemClock struct{}

var began = time.Now()

func (systemClock) Now() time.Time         { return time.Now() }
func (systemClock) Elapsed() time.Duration { return time.Since(began) }
func (systemClock) AfterFunc(d time.Duration, f func()) Timer {
	return time.AfterFunc(d, f)
}

const (
	// lookAgain is how long a timer waits for a date at most: it stands still with
	// the machine, and knows nothing of a clock that is set.
	lookAgain    = time.Minute
	toldStep     = time.Second // a step of less is not worth an event
	restateHosts = 256         // hosts that are looked at under one lock
)

// clockSteps are steps of the wall clock that restateClocks has not dealt with.
type clockSteps struct {
	pending int
	back    int64 // the longest of them that went back
}

// newClock returns a reader of a Clock.
func newClock(c Clock) *clock.Clock {
	if c == (systemClock{}) {
		return clock.New(nil)
	}
	return clock.New(c)
}

// Now is the time of day by Options.Clock, which what is stored and reported follows.
func (f *Frontier) Now() time.Time { return f.clock.Wall(f.moment()) }

// moment is the time since Open for callers without f.mu. It never decreases, and f.wall
// converts it to the time that the clock shows.
func (f *Frontier) moment() int64 {
	at, ok := f.clock.Fresh()
	if ok {
		return at
	}
	if f.mu.TryLock() {
		defer f.mu.Unlock()
		return f.nowLocked()
	}
	if at > 0 {
		return at // the holder of the lock looks at the clock
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nowLocked()
}

// nowLocked returns the time since Open. It never decreases.
func (f *Frontier) nowLocked() int64 {
	f.last = max(f.last, f.clock.Elapsed())
	if f.clock.Stale(f.last) {
		f.lookAtClockLocked()
	}
	if f.last >= f.rates.Next {
		f.rates.Sample(f.core.Stats.Totals(f.last))
	}
	return f.last
}

// lookAtClockLocked finds out what time of day it is.
func (f *Frontier) lookAtClockLocked() {
	now, change := f.clock.Look(f.last)
	f.last = now
	if change.Moved {
		f.timerAt = 0 // what waits for a date may come sooner
	}
	if change.Restate {
		f.clockSteppedLocked(change.Step)
	}
}

// A finished URL that is kept is one scheduled for a date that never comes, instant.Never.
// All other due dates are before.

// clockSteppedLocked takes in that dates are further ahead of moments by step than they were.
func (f *Frontier) clockSteppedLocked(step int64) {
	if d := time.Duration(step); d >= toldStep || d <= -toldStep {
		way := "ahead"
		if d < 0 {
			way = "back"
		}
		f.emitLocked(event.Event{Kind: event.ClockStepped, Reason: fmt.Sprintf("by %v %s", d.Abs().Round(time.Millisecond), way)})
	}
	if step < 0 {
		f.core.ShiftPeriods(step)
	}
	if f.opts.Spill == nil || f.ledger.Stopping() == nil || f.closed {
		return
	}
	f.steps.pending++
	f.steps.back = max(f.steps.back, -step)
	if f.steps.pending > 1 {
		return // who is at it begins again
	}
	f.sweepers.Add(1)
	go f.restateClocks()
}

// restateClocks rewrites the rows of hosts whose times in the store would be wrong after
// a crash, until the clock was not set meanwhile.
func (f *Frontier) restateClocks() {
	defer f.sweepers.Done()
	f.mu.Lock()
	defer f.mu.Unlock()
	for seen := 0; f.steps.pending > seen; {
		seen = f.steps.pending
		for id := uint32(1); id <= f.core.Hosts.Top && !f.closed; {
			id = f.restateSomeYieldingLocked(id)
		}
		if f.closed {
			break
		}
	}
	f.steps = clockSteps{}
}

// restateSomeYieldingLocked writes the rows of some hosts from number id on, and returns the
// number to go on with. It releases the lock while they are written.
func (f *Frontier) restateSomeYieldingLocked(id uint32) uint32 {
	c := f.core
	now := f.nowLocked()
	rows, pinned, next := c.RestateRows(id, restateHosts, f.steps.back, now)
	if len(pinned) == 0 {
		f.yield()
		return next
	}
	o := newOp()
	o.Rows = append(o.Rows, rows...)
	err := f.ledger.SubmitAndUnlock(&o.Op)
	o.free()
	f.mu.Lock()
	for _, host := range pinned {
		if err != nil {
			c.Hosts.At(host).Set(mercator.Unsaved)
		}
		f.ledger.Unpin(host, f.last)
	}
	return next
}
