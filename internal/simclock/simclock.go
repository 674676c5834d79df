// Package simclock provides a clock that moves only on request, so that tests can simulate a week
// in a second.
package simclock

import (
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

// Clock is a frontier.Clock. Time passes only in Advance and Set. Safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	began   time.Time
	now     time.Time     // by the steady clock
	stepped time.Duration // how far the time of day is ahead of that
	timers  map[*timer]struct{}
}

type timer struct {
	c      *Clock
	f      func()
	at     time.Time
	active bool
}

// New returns a clock that starts at start.
func New(start time.Time) *Clock {
	return &Clock{began: start, now: start, timers: map[*timer]struct{}{}}
}

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

// Step moves the time of day by d, and nothing else, as when a clock is set, or the machine is
// suspended for that time, during which timers and the monotonic clock stand still.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stepped += d
}

// AfterFunc calls f during the Advance or Set that reaches d from now. If d is not positive, it
// calls f in the next one.
func (c *Clock) AfterFunc(d time.Duration, f func()) frontier.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{c: c, f: f, at: c.now.Add(d), active: true}
	c.timers[t] = struct{}{}
	return t
}

func (t *timer) Stop() bool {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	was := t.active
	t.active = false
	delete(t.c.timers, t)
	return was
}

func (t *timer) Reset(d time.Duration) bool {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	was := t.active
	t.at, t.active = t.c.now.Add(d), true
	t.c.timers[t] = struct{}{}
	return was
}

// Advance moves the clock by d, stopping at each timer to call it. Of two concurrent calls, the one
// that moves further determines the time.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	t := c.now.Add(d)
	c.mu.Unlock()
	c.pass(t)
}

// Set moves the clock to t, stopping at each timer to call it. A t in the past is a Step back: no
// time passes.
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

// pass moves the monotonic clock to t, unless it is already there.
func (c *Clock) pass(t time.Time) {
	for {
		c.mu.Lock()
		var first *timer
		for x := range c.timers {
			if !x.at.After(t) && (first == nil || x.at.Before(first.at)) {
				first = x
			}
		}
		if first == nil {
			if t.After(c.now) {
				c.now = t
			}
			c.mu.Unlock()
			return
		}
		if first.at.After(c.now) {
			c.now = first.at
		}
		first.active = false
		delete(c.timers, first)
		c.mu.Unlock()
		first.f()
	}
}

// Next returns when the first timer is due, and false if there is none.
func (c *Clock) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var at time.Time
	ok := false
	for x := range c.timers {
		if !ok || x.at.Before(at) {
			at, ok = x.at, true
		}
	}
	return at.Add(c.stepped), ok
}
