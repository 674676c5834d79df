// This file tells how fast a frontier goes: what happened within the last minute.
//
// The totals are noted when a new second begins and anybody asks for the time;
// before that nothing happened.

package frontier

import "time"

// Rates are events for each second, over the last minute or since Open if that is
// less; the first second counts as a whole one.
type Rates struct {
	Added     float64 // URLs admitted
	HandedOut float64 // leases
	Done      float64 // calls of Done that ended a lease, and leases that expired
}

// rateSamples is enough for the seconds of a minute, and a power of 2.
const rateSamples = 64

// rates are the totals of the last minute.
//
// Invariant: samples are in order of time, one second or more apart but for their
// beginnings, which whole seconds lie between.
//
// The zero value has none.
type rates struct {
	next    int64 // when the next sample is due
	n       int   // taken since Open
	samples [rateSamples]rateSample
}

// rateSample is what had happened when a second began.
type rateSample struct {
	at                     int64
	added, handedOut, done int64
}

func (s *Stats) rateSample(at int64) rateSample {
	x := rateSample{at: at, added: s.Added, handedOut: s.HandedOut}
	for _, n := range s.Done {
		x.done += n
	}
	return x
}

// sample notes the totals: nothing has changed them since the time before now.
func (r *rates) sample(now int64, s *Stats) {
	r.samples[r.n%rateSamples] = s.rateSample(now)
	r.n++
	r.next = now - now%int64(time.Second) + int64(time.Second)
}

// over returns the rates of the minute before now.
func (r *rates) over(now int64, s *Stats) Rates {
	const minute = int64(time.Minute)
	first := rateSample{at: now}
	if r.n > 0 {
		first = s.rateSample(now)
	}
	for i := r.n - 1; i >= max(0, r.n-rateSamples); i-- {
		x := r.samples[i%rateSamples]
		if x.at < now-minute {
			break
		}
		first = x
	}
	seconds := float64(min(max(now, int64(time.Second)), minute)) / float64(time.Second)
	last := s.rateSample(now)
	return Rates{
		Added:     float64(last.added-first.added) / seconds,
		HandedOut: float64(last.handedOut-first.handedOut) / seconds,
		Done:      float64(last.done-first.done) / seconds,
	}
}
