// This file measures how many fetches a crawl makes, and spreads the fetches that became due during
// a pause.

package recrawl

import (
	"cmp"
	"math"
	"time"
)

const secondsPerDay = 24 * 60 * 60

// perDay converts fetches per second to fetches per day; the result is finite.
func perDay(perSecond float64) float64 { return min(perSecond*secondsPerDay, math.MaxFloat64) }

// budget is how many fetches per day there are.
type budget struct {
	perDay float64
	given  bool // by the caller

	// Of the window that is being measured:
	last    time.Time // the last Done
	done    int64
	late    int64   // number of these fetched after more than 1.01 intervals
	elapsed float64 // days, long gaps cut
	gap     float64 // the usual days between two Dones
}

// set sets the caller's budget, in fetches per second; 0 means to measure it.
func (b *budget) set(perSecond float64) {
	if b.given = perSecond > 0; b.given {
		b.perDay = perDay(perSecond)
	}
}

// paced is the budget that fetches are held to, per day; 0: none.
func (b *budget) paced() float64 {
	if !b.given {
		return 0
	}
	return b.perDay
}

// tally counts a Done for the measurement.
func (s *Scheduler) tally(p Page, at time.Time) {
	b := &s.budget
	s.flow.visits++
	b.done++
	if !p.Due.IsZero() && p.State.Crawled() {
		if t := days(p.Due.Sub(p.Last)); t > 0 && days(at.Sub(p.Due)) > t/100 {
			b.late++
			s.stats.late++
		}
	} else if !p.State.Crawled() {
		b.late++ // it waited for nothing but the crawl
	}
	if gap := days(at.Sub(b.last)); !b.last.IsZero() && gap > 0 {
		if b.gap > 0 {
			gap = min(gap, 100*b.gap) // a pause is not slowness
		}
		b.elapsed += gap
		b.gap = cmp.Or(b.gap, gap)
		b.gap += (gap - b.gap) / 64
	}
	b.last = at
}

// close ends a window. If fetches were late, the crawl made as many as it can; if they were on
// time, it can make more, and the budget grows until they are late.
func (b *budget) close(at time.Time) {
	if !b.given && b.done > 0 && b.elapsed > 0 {
		rate := float64(b.done) / b.elapsed
		switch {
		case b.perDay == 0:
			b.perDay = rate
		case 2*b.late > b.done:
			b.perDay += (rate - b.perDay) / 4
		default:
			b.perDay = min(max(b.perDay, rate)*1.05, 4*rate)
		}
		b.perDay = min(b.perDay, math.MaxFloat64)
	}
	b.done, b.late, b.elapsed = 0, 0, 0
}

// SetBudget sets the budget, in fetches per second. Zero means that the Scheduler measures the capacity
// of the crawl: the fetches that it makes while they are late, and 5 % more after each window in which
// they are on time, up to four times what it makes. Pauses do not count. With a budget too small for
// any price, each page gets its MaxInterval; with one too large, its MinInterval.
func (s *Scheduler) SetBudget(perSecond float64) error {
	if err := checkBudget(perSecond); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.set(perSecond)
	s.resolve()
	return nil
}

// few is the number of fetches that any budget lets through at once. longest is the longest time
// that a fetch is put off before Recheck decides again.
const (
	few     = 64
	longest = 365 * 24 * time.Hour
)

// pace lets fetches through at a budget, after a burst.
type pace struct {
	next time.Time // when the next would be let through without a burst
	held float64   // about how many were put off, and not let through since
}

// ask returns 0 if a fetch may happen now, otherwise how long to put it off.
func (p *pace) ask(now time.Time, perDay float64, burst time.Duration, uniform func() float64) time.Duration {
	if perDay <= 0 {
		return 0
	}
	gap := min(longest, span(1/(1.25*perDay)))
	allow := max(burst, few*gap) // of a small budget, a few at once
	if p.next.Before(now) || p.next.Sub(now)/2 > allow {
		p.next = now // also if the clock went back
	}
	if p.next.Sub(now) > allow {
		p.held++
		return min(longest, gap+span(uniform()*(p.held+1)/perDay))
	}
	p.next = p.next.Add(gap)
	p.held = max(0, p.held-1)
	return 0
}
