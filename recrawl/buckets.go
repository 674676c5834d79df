// This file shows the histogram of the pages by rate of change.

package recrawl

import "math"

// Bucket is the pages of one rate byte.
type Bucket struct {
	Rate      float64 // changes per day
	Weight    float64 // of a page, on average
	Pages     int64
	Freshness float64 // expected fresh share of these pages at the price
}

// Buckets returns the known pages by rate, the slowest first, without empty buckets: at most 256.
// Pages of hosts with a rate (SetHostRate) are counted at the mean rate of similar pages there.
func (s *Scheduler) Buckets() []Bucket {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pages [256]int64
	var weight, fresh [256]float64
	add := func(level int, n int64, rate, w, x float64) {
		t := max(1/s.most, min(1/s.least, x/rate))
		pages[level] += n
		weight[level] += float64(n) * w
		fresh[level] += float64(n) * Freshness(rate, t)
	}
	for r := range s.demand.cells {
		for w := int(s.demand.low[r]); w <= int(s.demand.high[r]) && s.demand.high[r] != 0; w++ {
			if n := s.demand.cells[r][w]; n != 0 {
				add(r, int64(n), rates[r], math.Exp(step*float64(w-128)), s.prices.x[r-w+255])
			}
		}
	}
	for _, h := range s.hosts {
		if h.own == nil {
			continue
		}
		for b, n := range h.own.count {
			if n == 0 {
				continue
			}
			at, rate := middle(b), h.own.rate(b)
			add(int(rateLevel(rate, 0.5)), int64(n), rate, weightAt(rate, at), s.prices.between(at+h.shift/step))
		}
	}
	var out []Bucket
	for r, n := range pages {
		if n > 0 {
			out = append(out, Bucket{rates[r], weight[r] / float64(n), n, fresh[r] / float64(n)})
		}
	}
	return out
}
