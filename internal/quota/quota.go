// Package quota counts the use of limits, and reports when a limit is reached and when there is room
// again. A Usage is what a scope, host or crawl has used in the current period; it does not contain the
// limits, which may change at any time, and are an argument of each call. A Census counts the waiting
// URLs of a domain. Both are arithmetic on data that the caller stores: they do not depend on hosts,
// rows or events. Times are in nanoseconds, of one clock that the caller chooses.
//
// It has no lock: callers hold the frontier's.
package quota

import (
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
)

// Limits are the limits of a period: see scope.Limits, which has the same fields. Waiting and
// Depth do not concern a period, and are ignored here.
type Limits struct {
	Waiting int64
	Served  int64
	Bytes   int64
	Errors  int64
	Depth   int
	Period  time.Duration
}

// Amount is an amount of use.
type Amount struct{ Served, Bytes, Errors int64 }

// Usage is the use in a period. The zero value is a period that has not begun.
type Usage struct {
	used     Amount
	since    int64 // when the period began
	begun    bool
	reached  bool   // a limit is reached, according to Turn
	restored bool   // reached is unknown: after opening, Turn does not report limits that were reached before
	first    uint64 // hand-outs of leases up to this number do not count
}

// New returns a usage for which leases up to youngest do not count.
func New(youngest uint64) Usage { return Usage{first: youngest} }

// Restore sets the usage to its stored value. The leases that do not count stay the same.
func (u *Usage) Restore(a Amount, since int64, begun bool) {
	u.used, u.since, u.begun, u.restored = a, since, begun, true
}

// Begun reports whether anything was counted in the period.
func (u *Usage) Begun() bool { return u.begun }

// Used returns the amount counted in the period.
func (u *Usage) Used() Amount { return u.used }

// Since returns when the period began; meaningless if it has not.
func (u *Usage) Since() int64 { return u.since }

// Valid reports whether a usage is consistent.
func (u *Usage) Valid() bool {
	a := u.used
	return a.Served >= 0 && a.Bytes >= 0 && a.Errors >= 0 && (u.begun || a == Amount{})
}

// Over reports whether the period has ended.
func (u *Usage) Over(l *Limits, now int64) bool {
	return u.begun && l.Period > 0 && now-u.since >= int64(l.Period)
}

// Spent returns which limit is reached, and until when; instant.Never if there is no period. It
// returns "" and instant.None if none is.
func (u *Usage) Spent(l *Limits, now int64) (what string, until int64) {
	switch {
	case u.Over(l, now):
		return "", instant.None
	case l.Served > 0 && u.used.Served >= l.Served:
		what = "served"
	case l.Bytes > 0 && u.used.Bytes >= l.Bytes:
		what = "bytes"
	case l.Errors > 0 && u.used.Errors >= l.Errors:
		what = "errors"
	default:
		return "", instant.None
	}
	if l.Period == 0 {
		return what, instant.Never
	}
	return what, u.since + int64(l.Period)
}

// Charge counts the use by a hand-out, or its end; negative amounts are returned. lease is the
// number of the lease, 0 for none, and youngest the last number in use. It reports whether the
// usage has changed, and whether that is because something was counted.
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

// Restart begins a new period. Leases up to youngest do not count in it.
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

// Shift moves the beginning of the current period.
func (u *Usage) Shift(step int64) { u.since += step }

// BeginAfter makes the period begin no earlier than at.
func (u *Usage) BeginAfter(at int64) { u.since = max(u.since, at) }

// Merge adds the counts of another frontier: the greater amounts, and the later beginning.
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

// Turn is a change of whether limits are reached.
type Turn uint8

const (
	// Same: nothing has.
	Same Turn = iota
	// Reached: one is reached, and none was.
	Reached
	// Lifted: none is reached any more.
	Lifted
)

// Turn returns the change since the last call, and which limit is reached and until when, as Spent
// does.
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
