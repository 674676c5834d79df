// This file is a clock that moves only on request.

package main

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

// clock is a frontier.Clock.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*timer // guarded by mu; those that run
}

type timer struct {
	clock *clock
	at    time.Time
	call  func()
}

func newClock(start time.Time) *clock { return &clock{now: start} }

// Now implements frontier.Clock.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Elapsed implements frontier.Clock: this one is never set.
func (c *clock) Elapsed() time.Duration { return time.Duration(c.Now().UnixNano()) }

// AfterFunc implements frontier.Clock.
func (c *clock) AfterFunc(d time.Duration, call func()) frontier.Timer {
	t := &timer{clock: c, call: call}
	t.Reset(d)
	return t
}

// Stop implements frontier.Timer.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.stopLocked()
}

func (t *timer) stopLocked() bool {
	i := slices.Index(t.clock.timers, t)
	if i >= 0 {
		t.clock.timers = slices.Delete(t.clock.timers, i, i+1)
	}
	return i >= 0
}

// Reset implements frontier.Timer.
func (t *timer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	ran := t.stopLocked()
	t.at = t.clock.now.Add(d)
	t.clock.timers = append(t.clock.timers, t)
	return ran
}

// set moves the clock on, and calls what falls due.
func (c *clock) set(now time.Time) {
	c.mu.Lock()
	c.now = now
	var due []*timer
	c.timers = slices.DeleteFunc(c.timers, func(t *timer) bool {
		if t.at.After(now) {
			return false
		}
		due = append(due, t)
		return true
	})
	c.mu.Unlock()
	for _, t := range due { // without the lock: they use the clock
		t.call()
	}
}
