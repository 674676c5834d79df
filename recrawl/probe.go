// This file finds pages that change at every fetch.
//
// They look like any other while they are seldom fetched. So a page that changed
// three times in a row is fetched again after so little time that a change would
// be a surprise; and if there is one, again after a sixtieth of that.

package recrawl

import (
	"time"
)

// lateProbe is after how many times its wait a probe tells nothing any more.
const lateProbe = 8

// surprise is the number of changes that are expected while a probe waits, at
// most: at least one has a probability of 0.3.
const surprise = 0.3567

// probe is how many days the first probe of a page waits.
func (s *Scheduler) probe(rate float64) float64 {
	return max(1/s.most, min(days(s.opts.Probe), surprise/rate))
}

// again is how many days the second one waits.
func (s *Scheduler) again() float64 {
	return max(days(s.opts.Probe)/60, days(time.Second))
}

// changed is what is believed of a page's rate after a fetch that found a change,
// t days after the one before. Its mode tells how far the page is with its probes.
func (s *Scheduler) changed(p *Page, v Visit, g Gamma, t float64) Gamma {
	st := &p.State
	wait := s.probe(g.Mean())
	switch st.mode() {
	case steady:
		st.setMode(changedOnce)
	case changedOnce:
		st.setMode(changedTwice)
	case changedTwice:
		if g.Mean()*wait <= surprise {
			st.setMode(probing)
			s.stats.probes++
		}
	case probing:
		if t > lateProbe*wait { // it came too late to tell anything
			st.setMode(changedTwice)
			break
		}
		s.stats.probes++
		st.setMode(probingAgain)
	case probingAgain:
		if t > days(s.opts.Probe) { // its host allows no quick one: it changes fast, no more is known
			st.setMode(changedOnce)
			if g = g.Changed(t); g.Mean() < 1/t {
				g = Gamma{1, t}
			}
			return g
		}
		st.setMode(volatile)
		return Gamma{16, 16 / (leastRate * rateSpan)}
	case volatile:
		return g
	}
	if ago, ok := s.modified(p, v, t); ok {
		return g.ChangedAt(ago)
	}
	return g.Changed(t)
}

// priced is a page's state as the price is to see it. A page that changes at every
// fetch cannot be kept fresh, whatever its weight: a high one must not make its
// fetches look worth the price, and so raise it for all.
func priced(st State) State {
	if st.mode() == volatile {
		least := int8(-127)
		st[0], st[2] = 255, byte(least)
	}
	return st
}

// probes reports whether the page's next fetch is a probe.
func probes(st State) bool { return st.mode() == probing || st.mode() == probingAgain }
