// This file is the frontier's only source of time.

package frontier

import (
	"math"
	"time"
)

// Clock tells the time and wakes the frontier. The default is the system's. A
// clock of the caller's own lets a week of politeness be simulated in a second.
// Its methods are called from any goroutine.
type Clock interface {
	// Now returns the time. If it jumps backwards the frontier's own time
	// stands still until it has caught up.
	Now() time.Time
	// AfterFunc calls f once, in a goroutine of its own or in that which moves
	// the clock, when d has passed; f may use the clock.
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

func (systemClock) Now() time.Time { return time.Now() }
func (systemClock) AfterFunc(d time.Duration, f func()) Timer {
	return time.AfterFunc(d, f)
}

// elapsed is the time since Open. The system's clock is asked for that alone: the
// time of day would cost as much again.
func (f *Frontier) elapsed() int64 {
	if _, ok := f.opts.Clock.(systemClock); ok {
		return int64(time.Since(f.start))
	}
	return min(int64(f.opts.Clock.Now().Sub(f.start)), lastMoment)
}

// moment is the time since Open for those who do not hold f.mu. It never decreases.
func (f *Frontier) moment() int64 {
	if _, ok := f.opts.Clock.(systemClock); ok {
		return f.elapsed() // it does not jump
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nowLocked()
}

// never is later than any time in nanoseconds since Open.
const never int64 = math.MaxInt64

// lastMoment is where time stands still if a clock leaps centuries ahead: what is due
// ten years later is still before never.
const lastMoment = never - int64(10*365*24*time.Hour)

// nowLocked returns the time since Open. It never decreases.
func (f *Frontier) nowLocked() int64 {
	f.last = max(f.last, f.elapsed())
	if f.last >= f.rates.next {
		f.rates.sample(f.last, &f.core.stats)
	}
	return f.last
}

// since is t in nanoseconds since Open.
func (f *Frontier) since(t time.Time) int64 { return int64(t.Sub(f.start)) }

func (f *Frontier) wall(ns int64) time.Time { return f.start.Add(time.Duration(ns)) }

// wallMillis is t in Unix milliseconds, rounded up: a stored due time is never
// earlier than the real one, but for those after maxMillis. The zero time is 0.
func wallMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	ms := t.UnixMilli()
	if t.Sub(time.UnixMilli(ms)) > 0 {
		ms++
	}
	return min(ms, maxMillis)
}

// millisTime is the inverse of wallMillis.
func millisTime(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
