// This file makes times as time.Now returns them when the two clocks of a machine have
// drifted apart.

package simclock

import (
	"time"
	"unsafe"
)

// Drift returns t, which comes of time.Now, as if its steady clock had been behind that
// of the wall by d: so it is after the machine was suspended, or its clock set ahead. A
// negative d is a clock that was set back.
func Drift(t time.Time, d time.Duration) time.Time {
	if t == t.Round(0) {
		panic("simclock: a time without a steady clock")
	}
	was := t
	(*struct { // time.Time
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t)).ext -= int64(d)
	if was.Sub(t) != d || !was.Round(0).Equal(t.Round(0)) {
		panic("simclock: package time keeps its times in another way")
	}
	return t
}
