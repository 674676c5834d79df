// Package quota counts what is used of limits, and says when one is reached and when it
// has room again. A Usage is what a scope, host or crawl has used in the present period;
// it does not know the limits, which may change at any time, and are an argument of each
// question. A Census counts the URLs that wait in a domain. Both are arithmetic on what
// the caller keeps: they know no hosts, rows and events. Times are in nanoseconds, of one
// clock that the caller chooses.
//
// No lock: callers hold the frontier's.
package quota

import (
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
)

// Limits bound what may be done: see frontier.Limits, which has the same fields. Those of
// Waiting and Depth concern no period; they are not looked at here.
type Limits struct {
	Waiting int64
	Served  int64
	Bytes   int64
	Errors  int64
	Depth   int
	Period  time.Duration
}

// Amount is what is used of limits.
type Amount struct{ Served, Bytes, Errors int64 }

// Usage is what is used in a period. The zero value is a period that has not begun.
type Usage struct {
	used     Amount
	since    int64 // when the period began
	begun    bool
	reached  bool   // a limit, as far as Turn has said
	restored bool   // reached is not known: after an opening Turn says nothing of what was reached before
	first    uint64 // hand-outs of leases up to this number do not count
}

// New returns a usage for which leases up to a number do not count.
func New(youngest uint64) Usage { return Usage{first: youngest} }

// Restore makes the usage what was stored of it. Which leases do not count stays.
func (u *Usage) Restore(a Amount, since int64, begun bool) {
	u.used, u.since, u.begun, u.restored = a, since, begun, true
}

// Begun reports whether anything was counted in the period.
func (u *Usage) Begun() bool { return u.begun }

// Used is what was counted in the period.
func (u *Usage) Used() Amount { return u.used }

// Since is when the period began; meaningless if it has not.
func (u *Usage) Since() int64 { return u.since }

// Valid reports whether a usage is one that can be.
func (u *Usage) Valid() bool {
	a := u.used
	return a.Served >= 0 && a.Bytes >= 0 && a.Errors >= 0 && (u.begun || a == Amount{})
}

// Over reports whether the period has ended.
func (u *Usage) Over(l *Limits, now int64) bool {
	return u.begun && l.Period > 0 && now-u.since >= int64(l.Period)
}

// Spent says which limit is reached, and until when; instant.Never if there is no period.
// It says nothing if none is.
func (u *Usage) Spent(l *Limits, now int64) (what string, until int64) {
	switch {
	case u.Over(l, now):
		return "", 0
	case l.Served > 0 && u.used.Served >= l.Served:
		what = "served"
	case l.Bytes > 0 && u.used.Bytes >= l.Bytes:
		what = "bytes"
	case l.Errors > 0 && u.used.Errors >= l.Errors:
		what = "errors"
	default:
		return "", 0
	}
	if l.Period == 0 {
		return what, instant.Never
	}
	return what, u.since + int64(l.Period)
}

// Charge counts what a hand-out uses, or its end; less than zero gives back. A number of
// the lease that is 0 means none, and youngest is the last that was given. It reports
// whether the usage has changed, and whether that is because something was counted.
func (u *Usage) Charge(l *Limits, a Amount, lease, youngest uint64, now int64) (changed, counted bool) {
	if changed = u.EndPeriod(l, youngest, now); changed && lease > 0 && a.Served > 0 {
		u.first = lease - 1
	}
	if a.Served < 0 && lease <= u.first {
		a.Served = 0
	}
	if a == (Amount{}) {
		return changed, false
	}
	if !u.begun && (a.Served > 0 || a.Bytes > 0 || a.Errors > 0) {
		u.begun, u.since = true, now
	}
	u.used.Served = max(0, u.used.Served+a.Served)
	u.used.Bytes += a.Bytes
	if u.used.Bytes < 0 {
		u.used.Bytes = instant.Never
	}
	u.used.Errors += a.Errors
	if u.used == (Amount{}) {
		u.begun = false // all of it came back
	}
	return true, true
}

// Restart begins a period anew. Leases up to a number do not count in it.
func (u *Usage) Restart(youngest uint64) {
	u.used, u.since, u.begun = Amount{}, 0, false
	u.first = youngest
}

// EndPeriod restarts the usage if its period has ended, and reports whether it has.
func (u *Usage) EndPeriod(l *Limits, youngest uint64, now int64) bool {
	if !u.Over(l, now) {
		return false
	}
	u.Restart(youngest)
	return true
}

// Shift moves the beginning of the period that has begun.
func (u *Usage) Shift(step int64) { u.since += step }

// BeginAfter has the period begin at a time at the earliest.
func (u *Usage) BeginAfter(at int64) { u.since = max(u.since, at) }

// Merge takes in what another frontier has counted: the greater amounts, and the later
// beginning.
func (u *Usage) Merge(l *Limits, other *Usage, youngest uint64, now int64) {
	u.EndPeriod(l, youngest, now)
	if !u.begun {
		u.Restore(other.used, other.since, other.begun)
		return
	}
	u.since = max(u.since, min(other.since, now))
	u.used.Served = max(u.used.Served, other.used.Served)
	u.used.Bytes = max(u.used.Bytes, other.used.Bytes)
	u.used.Errors = max(u.used.Errors, other.used.Errors)
}

// Turn is what has become of limits.
type Turn uint8

const (
	// Same: nothing has.
	Same Turn = iota
	// Reached: one is reached, and none was.
	Reached
	// Lifted: none is reached any more.
	Lifted
)

// Turn says what became of the limits since it was asked last, and which is reached, and
// until when, as Spent does.
func (u *Usage) Turn(l *Limits, now int64) (t Turn, what string, until int64) {
	what, until = u.Spent(l, now)
	reached := what != ""
	if u.restored {
		u.restored, u.reached = false, reached
	}
	switch {
	case reached && !u.reached:
		t = Reached
	case !reached && u.reached:
		t = Lifted
	}
	u.reached = reached
	return t, what, until
}
