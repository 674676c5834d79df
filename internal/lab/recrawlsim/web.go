// Package recrawlsim simulates a web that changes in virtual time, and crawls that keep a copy of
// it fresh under different recrawl policies.
//
// The changes depend only on the scenario and its seed: all policies see the same web. Time is in
// days since the start.
package recrawlsim

import (
	"math"
	"math/rand/v2"
)

// Scenario is a web and the crawl's means.
type Scenario struct {
	Name      string
	Pages     int
	Hosts     int
	Budget    float64 // fetches per day
	HostMost  float64 // fetches per day of one host; 0: no bound
	Weights   bool    // Pareto(1.2); else all 1
	Kinds     bool    // spam, office hours, periodic and fast pages
	Spam      float64 // share of pages that differ at each fetch
	SpamSites bool    // spam is on hosts of its own
	SpamPays  float64 // factor by which the crawler overestimates the weight of spam
	Opposed   bool    // the faster a page changes, the greater its weight
	Lies      bool    // Last-Modified is always the time of the fetch
	Dates     bool    // half of the hosts send a correct Last-Modified
	Drift     float64 // the day on which half of the rates are drawn again; 0: never
	Steps     []Step  // changes of the budget
	Length    float64 // days; the second half is scored
	Seed      uint64
}

// Step multiplies the budget from a day on.
type Step struct{ Day, Times float64 }

const (
	poisson uint8 = iota
	office        // Monday to Friday, 5 to 17 o'clock
	periodic
	spam // differs at each fetch
)

type page struct {
	host   int32
	kind   uint8
	rate   float64 // changes per day
	then   float64 // from the drift on
	weight float64 // in the score
	seen   float64 // by the crawler
	rng    rand.PCG
	next   float64 // first change after what was looked at
	last   float64 // the change before it; -1: none
}

// web is the pages of a scenario.
type web struct {
	Scenario
	pages []page
}

func newWeb(s Scenario) *web {
	w := &web{Scenario: s, pages: make([]page, s.Pages)}
	r := rand.New(rand.NewPCG(s.Seed, 1))
	host, wicked := zipf(r, s.Hosts), s.Hosts
	if s.SpamSites {
		wicked = max(1, s.Hosts-int(s.Spam*float64(s.Hosts)))
		host = zipf(r, wicked)
	}
	for i := range w.pages {
		p := &w.pages[i]
		*p = page{host: host(), rate: 1 / lifetime(r.Float64()), weight: 1, last: -1}
		p.then = p.rate
		if s.Weights {
			p.weight = math.Pow(1-r.Float64(), -1/1.2)
		}
		if kind, fast := r.Float64(), r.Float64(); s.Kinds {
			switch {
			case kind < 0.40:
				p.kind = office
			case kind < 0.55:
				p.kind = periodic
			}
			if fast < 0.05 {
				p.rate = math.Pow(24, r.Float64()) // lifetimes of 1 hour to 1 day
				p.then = p.rate
			}
		}
		if s.Opposed {
			p.weight = max(0.1, math.Sqrt(p.rate*30))
		}
		if p.seen = p.weight; r.Float64() < s.Spam {
			if s.SpamSites && wicked < s.Hosts {
				p.host = int32(wicked + i%(s.Hosts-wicked))
			}
			p.kind, p.weight = spam, 0
			p.seen *= max(1, s.SpamPays)
			p.rate, p.then = 1e6, 1e6
		}
		if s.Drift > 0 && r.Float64() < 0.5 && p.kind != spam {
			p.then = 1 / lifetime(r.Float64())
		}
		p.rng = *rand.NewPCG(s.Seed, uint64(i)+2)
		p.next = w.after(p, 0)
	}
	return w
}

// lifetime is WebFountain's Table 2, mean lifetimes in days, between its points
// straight on a logarithmic scale.
func lifetime(u float64) float64 {
	points := [...][2]float64{{0, 1}, {0.12, 10}, {0.40, 100}, {1, 600}}
	for i := 1; ; i++ {
		if a, b := points[i-1], points[i]; u <= b[0] || i == len(points)-1 {
			return a[1] * math.Pow(b[1]/a[1], (u-a[0])/(b[0]-a[0]))
		}
	}
}

// zipf draws hosts, the n-th with a probability like 1/n.
func zipf(r *rand.Rand, n int) func() int32 {
	sums := make([]float64, n)
	sum := 0.
	for i := range sums {
		sum += 1 / float64(i+1)
		sums[i] = sum
	}
	return func() int32 {
		u := r.Float64() * sum
		low, high := 0, n-1
		for low < high {
			if mid := (low + high) / 2; sums[mid] < u {
				low = mid + 1
			} else {
				high = mid
			}
		}
		return int32(low)
	}
}

// rateOf is how often a page changes at a time.
func (w *web) rateOf(p *page, now float64) float64 {
	if w.Drift > 0 && now >= w.Drift {
		return p.then
	}
	return p.rate
}

// after draws the first change after a change, or the start, at t.
func (w *web) after(p *page, t float64) float64 {
	rate := w.rateOf(p, t)
	next := w.draw(p, t, rate)
	if w.Drift > 0 && t < w.Drift && next > w.Drift && p.then != p.rate {
		next = w.draw(p, w.Drift, p.then)
	}
	return next
}

func (w *web) draw(p *page, t, rate float64) float64 {
	r := rand.New(&p.rng)
	switch p.kind {
	case office:
		return fromOffice(toOffice(t) + r.ExpFloat64()/rate)
	case periodic:
		return t + max(0.1, 1+0.1*r.NormFloat64())/rate
	}
	return t + r.ExpFloat64()/rate
}

// Office time passes in working hours only, 2.8 times as fast as the other.
const officeSpeed = 168. / 60

func toOffice(t float64) float64 {
	week := math.Floor(t / 7)
	day := math.Floor(t - 7*week)
	in := max(0, min(0.5, t-7*week-day-5./24))
	if day >= 5 {
		day, in = 5, 0
	}
	return 7*week + (0.5*day+in)*officeSpeed
}

func fromOffice(o float64) float64 {
	week := math.Floor(o / 7)
	rest := (o - 7*week) / officeSpeed
	day := min(4, math.Floor(rest/0.5))
	return 7*week + day + 5./24 + rest - 0.5*day
}

// fetch returns when a page changed last (-1: never), and when it will change next. Times must not
// decrease.
func (w *web) fetch(p *page, now float64) (last, next float64) {
	if p.kind == spam {
		return now, now
	}
	for p.next <= now {
		p.last = p.next
		p.next = w.after(p, p.next)
	}
	return p.last, p.next
}
