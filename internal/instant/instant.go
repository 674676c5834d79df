// Package instant turns the times of a frontier into what is stored of them, and back.
//
// A moment or date is nanoseconds since the frontier was opened; what is stored is Unix
// milliseconds.
package instant

import (
	"math"
	"time"
)

// Never is later than any time in nanoseconds since Open.
const Never int64 = math.MaxInt64

// LastMoment is where time stands still if a clock leaps centuries ahead: what is due
// ten years later is still before never.
const LastMoment = Never - int64(10*365*24*time.Hour)

// MaxMillis is the latest time that is stored, the end of the year 9999 in Unix
// milliseconds: later ones have no name in exports.
const MaxMillis = 253402300799999

// Millis is t in Unix milliseconds, rounded up: a stored due time is never
// earlier than the real one, but for those after MaxMillis. The zero time is 0.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	ms := t.UnixMilli()
	if t.Sub(time.UnixMilli(ms)) > 0 {
		ms++
	}
	return min(ms, MaxMillis)
}

// FromMillis is the inverse of Millis.
func FromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
