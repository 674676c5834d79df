// This file finds pages that change at every fetch.
//
// While they are seldom fetched they look like any other page. So a suspect page is fetched again
// so soon that a change would be a surprise; if it has changed, it is fetched again after a
// sixtieth of that time.

package recrawl

import (
	"math"
	"time"
)

// surprise is the greatest probability of a change during a probe, and changesExpected the number
// of changes with this probability.
const (
	surprise        = 0.3
	changesExpected = 0.3567
)

// levelOdds is the logarithm of the factor between the odds of neighbouring levels of suspicion.
const levelOdds = 0.75

// volatiles is the estimate of how many pages change at every fetch: the logarithm of the odds that
// a page without evidence does. Each probe is a prediction from the odds at that time; its result
// corrects them by stochastic gradient ascent of the likelihood.
type volatiles struct{ logOdds float64 }

const (
	firstOdds  = 0.1
	leastOdds  = 0.01
	correction = 0.05 // of the logarithm, by a completely unexpected result
)

// of is the odds that a page changes at every fetch.
func (x volatiles) of(st State) float64 {
	return math.Exp(x.logOdds + levelOdds*(float64(st.mode())-unproven))
}

// correct corrects the odds for n more volatile pages than were expected.
func (x *volatiles) correct(n float64) {
	x.logOdds = max(math.Log(leastOdds), min(0, x.logOdds+correction*n))
}

// probed predicts the result of probing a page, or with -1 reverts that.
func (x *volatiles) probed(st State, n float64) {
	odds := x.of(st)
	x.correct(-n * odds / (1 + odds))
}

// probeCost is the cost of a probe, in fetches: less than 1, because it may also find a change.
const probeCost = 0.85

// suspect decides whether the next fetch of a page that changed is a probe.
//
// A probe now instead of a fetch one interval later saves a fetch if the page changes every time;
// it saves less if the page would be fetched seldom anyway. If the page is not volatile the probe
// is wasted, because the next fetch would have found no change.
func (s *Scheduler) suspect(p *Page) {
	st := &p.State
	if st.mode() > mostSuspect {
		return
	}
	g, t := st.belief(), s.interval(p)
	if s.volatiles.of(*st)*(1-t*s.least) <= probeCost*(1-g.chance(t)) {
		return
	}
	switch {
	case st.Rate()*s.again() > changesExpected:
		// It appears to change so often that no probe could distinguish it.
		s.setVolatile(st)
	case st.Rate()*s.probe(st.Rate()) <= 1.01*changesExpected:
		s.volatiles.probed(*st, 1)
		st.setMode(probing)
		s.stats.probes++
	}
}

func (s *Scheduler) setVolatile(st *State) {
	st[0], st[1] = 255, alphaLevel(16, 0.5)
	st.setMode(volatile)
}

// probe is how many days the first probe of a page waits.
func (s *Scheduler) probe(rate float64) float64 {
	return max(1/s.most, min(days(s.opts.Probe), changesExpected/rate))
}

// again is how many days the second one waits.
func (s *Scheduler) again() float64 { return max(days(s.opts.Probe)/60, days(time.Second)) }

// late reports whether the next fetch of a page is a probe that would no longer show anything now,
// because a change would be no surprise.
func late(p Page, now time.Time) bool {
	return probes(p.State) && p.State.belief().chance(days(now.Sub(p.Last))) > surprise
}

// notProbed handles a probe that came too late.
func (s *Scheduler) notProbed(st *State) {
	st.setMode(mostSuspect)
	s.volatiles.probed(*st, -1)
}

// changed updates the belief about the rate of a page after a fetch that found a change, t days
// after the previous fetch. The mode of the page records the progress of its probes.
func (s *Scheduler) changed(p *Page, v Visit, g Gamma, t float64) Gamma {
	st := &p.State
	switch st.mode() {
	case probing:
		s.stats.probes++
		st.setMode(probingAgain)
	case probingAgain:
		s.volatiles.correct(1)
		if t > days(s.opts.Probe) { // its host allows no quick one: it changes fast, no more is known
			st.setMode(mostSuspect)
			if g = g.Changed(t); g.Mean() < 1/t {
				g = Gamma{1, t}
			}
			return g
		}
		s.setVolatile(st)
		return st.belief()
	case probed:
	case volatile:
		return g
	default:
		// A change is this much more likely for a page that changes at every fetch.
		level := float64(st.mode()) - math.Log(g.chance(t))/levelOdds
		st.setMode(byte(min(mostSuspect, level+s.uniform())))
	}
	if ago, ok := s.modified(p, v, t); ok {
		return g.ChangedAt(ago)
	}
	return g.Changed(t)
}

// priced returns the state that the price uses for a page. A page that changes at every fetch
// cannot be kept fresh: a high weight must not make its fetches seem worth the price, which would
// raise the price for all pages.
func priced(st State) State {
	if st.mode() == volatile {
		least := int8(-127)
		st[0], st[2] = 255, byte(least)
	}
	return st
}

// probes reports whether the page's next fetch is a probe.
func probes(st State) bool { return st.mode() == probing || st.mode() == probingAgain }
