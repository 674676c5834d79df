package measure

import "time"

// rateSamples is enough for the seconds of a minute, and a power of 2.
const rateSamples = 64

// Rates holds the totals of the last minute: one sample for each second that began with a call of
// Sample, since nothing happens between two calls.
//
// Invariant: samples are in order of time and one second or more apart, except at their beginnings,
// which are separated by whole seconds.
//
// The zero value is empty.
type Rates struct {
	Next    int64 // when the next sample is due
	n       int   // taken since Open
	samples [rateSamples]Totals
}

// Totals counts what happened up to a time.
type Totals struct {
	At                     int64 // nanoseconds since Open
	Added, HandedOut, Done int64
}

// Sample records the totals, which have not changed since the previous sample.
func (r *Rates) Sample(now Totals) {
	r.samples[r.n%rateSamples] = now
	r.n++
	r.Next = now.At - now.At%int64(time.Second) + int64(time.Second)
}

// Over returns the rates per second, over the minute before now.At or since Open if that is less;
// the first second counts as a whole one.
func (r *Rates) Over(now Totals) (added, handedOut, done float64) {
	const minute = int64(time.Minute)
	first := Totals{At: now.At}
	if r.n > 0 {
		first = now
	}
	for i := r.n - 1; i >= max(0, r.n-rateSamples); i-- {
		x := r.samples[i%rateSamples]
		if x.At < now.At-minute {
			break
		}
		first = x
	}
	seconds := float64(min(max(now.At, int64(time.Second)), minute)) / float64(time.Second)
	return float64(now.Added-first.Added) / seconds,
		float64(now.HandedOut-first.HandedOut) / seconds,
		float64(now.Done-first.Done) / seconds
}
