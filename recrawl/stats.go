// This file reports what a Scheduler knows about the crawl.

package recrawl

import "math"

// Stats is what a Scheduler knows about the crawl as a whole.
type Stats struct {
	Pages     int64   // known pages of a weight above 0, neither gone nor denied
	NewPages  int64   // admitted and never crawled, of a weight above 0
	Price     float64 // of a fetch, in days of weight
	Budget    float64 // fetches per second, set or measured; 0: not known yet
	Demand    float64 // fetches per second that known pages want at the price
	Promised  float64 // pages per second that become due; Recheck puts some of them off
	Freshness float64 // expected share of the weight of known pages that is up to date
	NewShare  float64 // share of fetches that never-crawled pages should have now
	Visits    uint64  // Dones
	First     uint64  // number of these that were first fetches
	Probes    uint64  // fetches requested to find pages that change at every fetch
	Late      uint64  // Dones more than a hundredth of the interval after the due time
	Held      uint64  // fetches that Recheck put off to keep to the budget
}

// Stats takes about 0.1 ms. The contribution of bound hosts to Freshness dates from the last time
// that their price was computed, at most a sixteenth of their pages ago.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := Stats{
		Pages: s.known(), NewPages: s.demand.news,
		Price: math.Exp(s.prices.log), Budget: s.budget.perDay / secondsPerDay,
		NewShare: s.newShare(),
		Visits:   s.stats.visits, First: s.stats.first, Probes: s.stats.probes, Late: s.stats.late, Held: s.stats.held,
	}
	x.Demand = (s.demand.known(&s.prices, s.least, s.most) + s.hostTake) / secondsPerDay
	x.Promised = s.promised
	for _, h := range s.hosts {
		if h.shift > 0 {
			x.Promised += h.promised
		}
	}
	x.Promised /= secondsPerDay
	c := s.demand.copied(&s.prices, s.least, s.most)
	c.add(s.hostCopy, 1)
	x.Freshness = c.share()
	return x
}
