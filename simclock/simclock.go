// Package simclock provides a virtual clock for a frontier: time passes only when the program says
// so, and a week of politeness takes less than a second.
//
// Give the clock to a frontier as Options.Clock. Then ask for leases with TryNext. When nothing is
// due, TryNext returns the time to ask again, and Set moves the clock there:
//
//	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
//	f, err := frontier.Open(ctx, frontier.Options{Clock: clock})
//	...
//	lease, again, err := f.TryNext()
//	if errors.Is(err, frontier.ErrNotDue) {
//		clock.Set(again)
//	}
//
// A zero time instead means that only another call can change anything, such as a Done: do not Set it.
//
// # What moves the clock
//
// Only Advance, Set and Step move a Clock. Nothing else takes time: a fetch, a call of the frontier
// and a write to disk all end at the moment at which they began. To give a fetch a duration,
// advance the clock between the hand-out and Done.
//
// Advance and Set stop at each timer on their way. They call its function, without any lock, in
// the goroutine that moves the clock, and wait for the function to return. Timers are called in
// the order of their times, and those of the same time in the order in which they were set. While
// a function runs, Now is the time for which it was set. A function may use the clock; a timer
// that it sets is called by the same Advance or Set, if it falls due before the end of that.
//
// # Goroutines that wait
//
// When a timer wakes a goroutine, as the frontier's does with a caller of Next, Advance does not
// wait for what that goroutine does next. One goroutine that calls TryNext, works and moves the
// clock is therefore simplest, and its runs are repeatable. A program with many goroutines that
// wait can run in a bubble of testing/synctest instead, on the system's clock.
package simclock

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

// Clock is a frontier.Clock that only moves on request. Make one with New. Its methods may be called
// from any goroutine.
type Clock struct {
	began time.Time // read-only

	mu      sync.Mutex
	now     time.Time     // by the steady clock
	stepped time.Duration // how far the time of day is ahead of that
	timers  []*timer      // that run, by time
}

type timer struct {
	c  *Clock
	f  func()
	at time.Time // guarded by c.mu
}

// New returns a clock that starts at start.
func New(start time.Time) *Clock { return &Clock{began: start, now: start} }

// Now returns the time of day.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Add(c.stepped)
}

// Elapsed returns how much time has passed since New, without steps.
func (c *Clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Sub(c.began)
}

// Advance moves the clock by d, and stops at each timer to call it. A negative d is taken as 0. Of
// two concurrent calls, the one that moves further determines the time.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	t := c.now.Add(max(d, 0))
	c.mu.Unlock()
	c.pass(t)
}

// Set moves the clock to the time of day t, and stops at each timer to call it. A t in the past is a
// Step back: no time passes.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	t = t.Add(-c.stepped)
	if t.Before(c.now) {
		c.stepped += t.Sub(c.now)
		t = c.now
	}
	c.mu.Unlock()
	c.pass(t)
}

// Step moves the time of day by d, and nothing else, as when a clock is set, or the machine is
// suspended for that time: timers and Elapsed stand still. A negative d moves it back.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stepped += d
}

// Next returns the time of day at which the next timer is due, for Set. It returns false if no timer
// is set.
func (c *Clock) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return time.Time{}, false
	}
	return c.timers[0].at.Add(c.stepped), true
}

// AfterFunc calls f during the Advance or Set that reaches d from now. If d is not positive, it
// calls f in the next one.
func (c *Clock) AfterFunc(d time.Duration, f func()) frontier.Timer {
	t := &timer{c: c, f: f}
	t.Reset(d)
	return t
}

// Stop implements frontier.Timer.
func (t *timer) Stop() bool {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.stopLocked()
}

// Reset implements frontier.Timer.
func (t *timer) Reset(d time.Duration) bool {
	c := t.c
	c.mu.Lock()
	defer c.mu.Unlock()
	ran := t.stopLocked()
	t.at = c.now.Add(d)
	behind, _ := slices.BinarySearchFunc(c.timers, t.at, func(x *timer, at time.Time) int {
		return cmp.Or(x.at.Compare(at), -1) // behind those of the same time
	})
	c.timers = slices.Insert(c.timers, behind, t)
	return ran
}

// stopLocked takes a timer out, and reports whether it was set.
func (t *timer) stopLocked() bool {
	i := slices.Index(t.c.timers, t)
	if i >= 0 {
		t.c.timers = slices.Delete(t.c.timers, i, i+1)
	}
	return i >= 0
}

// pass moves the steady clock to t, unless it is there or beyond.
func (c *Clock) pass(t time.Time) {
	for {
		c.mu.Lock()
		if len(c.timers) == 0 || c.timers[0].at.After(t) {
			if t.After(c.now) {
				c.now = t
			}
			c.mu.Unlock()
			return
		}
		first := c.timers[0]
		first.stopLocked()
		if first.at.After(c.now) {
			c.now = first.at
		}
		c.mu.Unlock()
		first.f()
	}
}
