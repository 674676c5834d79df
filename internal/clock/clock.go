// Package clock relates the two kinds of time of a frontier, and detects when the wall clock was
// set. It owns the last readings of both clocks.
//
// Both kinds are in nanoseconds since the clock was made. A moment is measured by a monotonic clock,
// which cannot be set: when a host may be contacted, when a lease ends, the current time. A date is
// measured by the wall clock: when a scheduled URL is due, when a block or the period of a limit ends.
// Their difference is the lead, which is 0 at first. The time of day is that of the wall clock.
//
// Look must not run twice at once: its caller holds the frontier's lock. All other methods need no
// lock.
package clock

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
)

// Source provides the readings of a Clock.
type Source interface {
	Now() time.Time         // the time of day
	Elapsed() time.Duration // since any fixed moment
}

const (
	// LeastStep is the smallest difference between the two clocks that counts as a step of one of
	// them. Smaller differences result from reading them one after the other.
	LeastStep = int64(time.Millisecond)
	// lookEvery is how often the wall clock of the system is looked at, at most.
	lookEvery = int64(time.Millisecond)
)

// Clock relates moments, dates and the time of day. Make one with New.
type Clock struct {
	source Source // nil: the system's
	start  time.Time
	day0   time.Time     // start without its reading of the steady clock
	began  time.Duration // reading of source at start
	anchor atomic.Pointer[anchor]
	next   atomic.Int64 // moment at which to look at the wall clock again
}

// anchor ties moments to the time of day. It does not change.
type anchor struct {
	wall  time.Time // the time of day
	at    int64     // at this moment
	lead  int64     // how far dates are ahead of moments
	least int64     // the least that lead was
	taken int64     // lead at the last detected step of the wall clock
	shaky bool      // the clocks drifted apart by less than a step
}

// New returns a clock that begins now. A nil source means the system's clocks; one reading of these
// provides both kinds of time.
func New(source Source) *Clock {
	c := &Clock{source: source}
	if source == nil {
		c.start = time.Now()
	} else {
		c.start, c.began = source.Now(), source.Elapsed()
	}
	c.day0 = c.start.Round(0)
	c.anchor.Store(&anchor{wall: c.start})
	return c
}

// Start returns the time of day at which the clock was made.
func (c *Clock) Start() time.Time { return c.start }

// Elapsed returns the current moment. Reading the time of day, too, would double the cost.
func (c *Clock) Elapsed() int64 {
	if c.source == nil {
		return int64(time.Since(c.start))
	}
	return min(int64(c.source.Elapsed()-c.began), instant.LastMoment)
}

// Fresh is Elapsed as long as Wall is accurate for it; ok is false if Look must be called first.
func (c *Clock) Fresh() (moment int64, ok bool) {
	if c.source != nil {
		return 0, false // it may jump
	}
	moment = c.Elapsed()
	return moment, !c.Stale(moment)
}

// Steady reports whether moments are read from the system's clock, which does not jump.
func (c *Clock) Steady() bool { return c.source == nil }

// Stale reports whether it is time to call Look.
func (c *Clock) Stale(moment int64) bool { return moment >= c.next.Load() }

// Change is the result of Look.
type Change struct {
	Moved   bool  // dates correspond to other moments than before
	Step    int64 // change of dates relative to moments, if one of the clocks stepped
	Restate bool  // earlier results of Stored may be too early now
}

// Look reads both clocks. It returns the current moment, which is not before last, and what has
// changed.
func (c *Clock) Look(last int64) (moment int64, x Change) {
	if c.source == nil {
		c.next.Store(last + lookEvery) // another clock may jump while no time passes
	}
	old := c.anchor.Load()
	now := *old
	for range 3 {
		before := c.Elapsed()
		now.wall = c.timeOfDay()
		last = max(last, c.Elapsed())
		if now.at = last; c.source == nil {
			now.at = int64(now.wall.Sub(c.start)) // both were read at once
		}
		now.lead = max(min(c.Date(now.wall), instant.LastMoment)-now.at, -instant.LastMoment)
		if d := now.lead - old.lead; d == 0 || c.source == nil && d > -LeastStep && d < LeastStep {
			return last, Change{}
		}
		if last-before < LeastStep/4 {
			break // else another goroutine ran between the readings
		}
	}
	now.least = min(old.least, now.lead)
	x.Moved = true
	switch step := now.lead - old.taken; {
	case step >= LeastStep || step <= -LeastStep:
		now.taken, x.Step, x.Restate = now.lead, step, true
	case !old.shaky:
		now.shaky, x.Restate = true, true // what was stored so far is exact
	}
	c.anchor.Store(&now)
	return last, x
}

func (c *Clock) timeOfDay() time.Time {
	if c.source == nil {
		return time.Now()
	}
	return c.source.Now()
}

// MovedSince reports whether the clocks were seen to drift apart after a moment.
func (c *Clock) MovedSince(moment int64) bool { return c.anchor.Load().at > moment }

// Wall returns the time of day at a moment, by the wall clock as it is now; the end of the year 9999
// for instant.Far and instant.Never.
func (c *Clock) Wall(moment int64) time.Time {
	if moment >= instant.Far {
		return c.end()
	}
	a := c.anchor.Load()
	return a.wall.Add(time.Duration(moment - a.at))
}

// end is what is shown for dates that are centuries ahead: none may come back earlier than it was given.
func (c *Clock) end() time.Time { return time.UnixMilli(instant.MaxMillis).In(c.day0.Location()) }

// Moment is the inverse of Wall; instant.Never for a time that is centuries ahead.
func (c *Clock) Moment(t time.Time) int64 {
	a := c.anchor.Load()
	d := int64(t.Sub(a.wall))
	if at := a.at + d; (at > d) == (a.at > 0) || a.at == 0 {
		return at
	}
	return instant.Never
}

// Stored returns the time stored in a row for a moment before which a host or group must not be
// contacted, in Unix milliseconds. It is never too early as long as the clocks differ by less than
// a step.
func (c *Clock) Stored(moment int64) int64 {
	at := c.Wall(moment)
	if a := c.anchor.Load(); a.shaky {
		at = at.Add(time.Duration(a.taken + LeastStep - a.lead))
	}
	return instant.Millis(at)
}

// Gained returns how much the lead has grown since its minimum.
func (c *Clock) Gained() int64 {
	a := c.anchor.Load()
	return a.lead - a.least
}

// Date is the date of a time of day.
func (c *Clock) Date(t time.Time) int64 { return int64(t.Sub(c.day0)) }

// Due is Date for the due time of a URL: 0 if the time is not later than now, instant.Far at most. The time at
// which the clock was made is the nanosecond before, which is stored as that time.
func (c *Clock) Due(t time.Time) int64 {
	if !t.After(c.timeOfDay()) {
		return 0
	}
	return min(cmp.Or(c.Date(t), -1), instant.Far)
}

// Day is the time of day of a date; the end of the year 9999 for instant.Far and instant.Never.
func (c *Clock) Day(date int64) time.Time {
	if date >= instant.Far {
		return c.end()
	}
	return c.day0.Add(time.Duration(date))
}

// StoredDue returns the due date of a record that has a stored due time, in Unix milliseconds.
func (c *Clock) StoredDue(ms int64) int64 {
	if ms == instant.KeptMillis {
		return instant.Never
	}
	return min(c.Date(instant.FromMillis(ms)), instant.Far)
}

// DueMillis is the inverse of StoredDue.
func (c *Clock) DueMillis(date int64) int64 {
	if date == instant.Never {
		return instant.KeptMillis
	}
	return cmp.Or(instant.Millis(c.Day(date)), 1)
}

// DateAt is the date at a moment.
func (c *Clock) DateAt(moment int64) int64 { return moment + c.anchor.Load().lead }

// MomentOf returns the moment of a date, assuming that no clock is set: instant.Far and instant.Never
// stay what they are.
func (c *Clock) MomentOf(date int64) int64 {
	lead := c.anchor.Load().lead
	m := date - lead
	switch {
	case date >= instant.Far:
		return date
	case lead < 0 && m < date:
		return instant.Never
	case lead > 0 && m > date:
		return math.MinInt64
	}
	return m
}
