// Package instant converts the times of a frontier to their stored form, and back. It has no state.
//
// A moment or date is in nanoseconds since the frontier was opened; the stored form is Unix
// milliseconds.
package instant

import (
	"math"
	"time"
)

// Never is later than any time in nanoseconds since Open.
const Never int64 = math.MaxInt64

// Far is a date more than 290 years after Open, whichever: int64 cannot express it.
const Far = Never - 1

// None says that there is no date: it is earlier than any. 0 is the date of Open, and dates are
// negative while a clock is set back behind that.
const None int64 = math.MinInt64

// LastMoment is where time stops if a clock leaps centuries ahead: a time ten years later is still
// before Never.
const LastMoment = Never - int64(10*365*24*time.Hour)

// MaxMillis is the latest time that is stored, the end of the year 9999 in Unix milliseconds:
// exports cannot express later ones.
const MaxMillis = 253402300799999

// KeptMillis is the stored due time of a finished URL that is kept. No other due time is equal.
const KeptMillis int64 = 1 << 56

// Millis returns t in Unix milliseconds, rounded up: a stored due time is never earlier than the
// real one, except beyond MaxMillis. The zero time is 0.
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
