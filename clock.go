// This file is the frontier's only source of time.

package frontier

import (
	"cmp"
	"math"
	"time"
)

// Clock tells the time and wakes the frontier. The default is the system's. A
// clock of the caller's own lets a week of politeness be simulated in a second.
// Its methods are called from any goroutine.
type Clock interface {
	// Now returns the time of day. It may jump, as when somebody sets the clock or
	// the machine was suspended: what has a date (NotBefore, visits, blocks, periods
	// of limits) comes when it says so, and all that is stored or told follows it.
	Now() time.Time
	// Elapsed returns how much time has passed since any fixed moment, by a clock
	// that cannot be set. It may stand still while the machine is suspended. What
	// is owed to hosts, and leases, are timed by it. A clock that never jumps may
	// return time.Duration(Now().UnixNano()). If it jumps backwards the frontier's own time
	// stands still until it has caught up.
	Elapsed() time.Duration
	// AfterFunc calls f once, in a goroutine of its own or in that which moves
	// the clock, when d has passed by Elapsed; f may use the clock.
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

// The frontier knows two kinds of time, both in nanoseconds since Open. A moment is
// counted by Clock.Elapsed: when a host or group may be contacted, when a lease
// ends, what now is. A date is counted by Clock.Now: when a scheduled URL comes, a
// block or the period of a limit ends. They differ by core.lead, which is 0 at Open.

// anchor ties moments to the time of day.
type anchor struct {
	wall time.Time // the time of day
	at   int64     // at this moment
	lead int64     // how far dates are ahead of moments
}

const (
	// lookEvery is how often the time of day is looked at, at most.
	lookEvery = int64(time.Millisecond)
	// leastStep is the least difference between the clocks that counts as a step of
	// one of them. Less comes of reading them one after the other.
	leastStep = int64(time.Millisecond)
	// lookAgain is how long a timer waits for a date at most: it stands still with
	// the machine, and knows nothing of a clock that is set.
	lookAgain = time.Minute
)

// elapsed is the time since Open. The system's clock is asked for that alone: the
// time of day would cost as much again.
func (f *Frontier) elapsed() int64 {
	if _, ok := f.opts.Clock.(systemClock); ok {
		return int64(time.Since(f.start))
	}
	return min(int64(f.opts.Clock.Elapsed()-f.startElapsed), lastMoment)
}

// moment is the time since Open for those who do not hold f.mu. It never decreases,
// and what f.wall tells of it is as the clock shows it.
func (f *Frontier) moment() int64 {
	if _, ok := f.opts.Clock.(systemClock); ok {
		if at := f.elapsed(); at < f.nextLook.Load() {
			return at // it does not jump
		}
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
	if f.last >= f.nextLook.Load() {
		f.lookAtClockLocked()
	}
	if f.last >= f.rates.next {
		f.rates.sample(f.last, &f.core.stats)
	}
	return f.last
}

// lookAtClockLocked finds out what time of day it is at f.last.
func (f *Frontier) lookAtClockLocked() {
	system := f.opts.Clock == (systemClock{})
	if system {
		f.nextLook.Store(f.last + lookEvery) // another clock may jump while no time passes
	}
	old := f.anchor.Load()
	now := &anchor{}
	for range 3 {
		before := f.elapsed()
		now.wall = f.opts.Clock.Now()
		f.last = max(f.last, f.elapsed())
		if now.at = f.last; system {
			now.at = int64(now.wall.Sub(f.start)) // both were read at once
		}
		now.lead = max(min(f.date(now.wall), lastMoment)-now.at, -lastMoment)
		if d := now.lead - old.lead; d == 0 || system && d > -leastStep && d < leastStep {
			return
		}
		if f.last-before < leastStep/4 {
			break // else somebody else ran between the readings
		}
	}
	f.anchor.Store(now)
	f.core.lead, f.core.leastLead = now.lead, min(f.core.leastLead, now.lead)
	f.timerAt = 0 // what waits for a date may come sooner
	switch step := now.lead - f.takenLead; {
	case step >= leastStep || step <= -leastStep:
		f.takenLead = now.lead
		f.clockSteppedLocked(step)
	case !f.trembles:
		f.trembles = true
		f.clockSteppedLocked(0) // rows that were written so far are exact
	}
}

// wall is the time of day at a moment, which may be any, by the clock as it is now.
func (f *Frontier) wall(moment int64) time.Time {
	a := f.anchor.Load()
	return a.wall.Add(time.Duration(moment - a.at))
}

// owed is the moment of a time of day, by the clock as it is now.
func (f *Frontier) owed(t time.Time) int64 {
	a := f.anchor.Load()
	d := int64(t.Sub(a.wall))
	if at := a.at + d; (at > d) == (a.at > 0) || a.at == 0 {
		return at
	}
	return never // t is centuries ahead
}

// storedLocked is what a row says of a moment until which a host or group is left alone:
// no earlier one if the clocks drift apart by less than a step.
func (f *Frontier) storedLocked(moment int64) int64 {
	at := f.wall(moment)
	if f.trembles {
		at = at.Add(time.Duration(f.takenLead + leastStep - f.core.lead))
	}
	return wallMillis(at)
}

// date is the date of a time of day.
func (f *Frontier) date(t time.Time) int64 { return int64(t.Sub(f.startDate)) }

// dueDate is date for what comes then; 0 for what comes at once, because that is not
// later than now.
func (f *Frontier) dueDate(t time.Time) int64 {
	if !t.After(f.opts.Clock.Now()) {
		return 0
	}
	return cmp.Or(f.date(t), 1)
}

// day is the time of day of a date.
func (f *Frontier) day(date int64) time.Time { return f.startDate.Add(time.Duration(date)) }

// date is the date at a moment.
func (c *core) date(moment int64) int64 { return moment + c.lead }

// moment is the moment at which a date comes if no clock is set; never for never.
func (c *core) moment(date int64) int64 {
	m := date - c.lead
	switch {
	case date == never, c.lead < 0 && m < date:
		return never
	case c.lead > 0 && m > date:
		return math.MinInt64
	}
	return m
}

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
