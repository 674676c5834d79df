// Package drift makes times like those of time.Now on a machine whose two clocks have drifted
// apart. It is for tests.
package drift

import (
	"time"
	"unsafe"
)

// Time returns t, which must come from time.Now, as if its monotonic clock were behind the wall
// clock by d, which happens when the machine is suspended, or its clock is set ahead. A negative d
// is a clock that was set back.
func Time(t time.Time, d time.Duration) time.Time {
	if t == t.Round(0) {
		panic("drift: a time without a steady clock")
	}
	was := t
	(*struct { // time.Time
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t)).ext -= int64(d)
	if was.Sub(t) != d || !was.Round(0).Equal(t.Round(0)) {
		panic("drift: package time keeps its times in another way")
	}
	return t
}
