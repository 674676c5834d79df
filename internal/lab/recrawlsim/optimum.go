// This file is the best that can be done if all rates are known: the optimum of
// Cho and Garcia-Molina, and Azar et al., with bounds on hosts.

package recrawlsim

import (
	"cmp"
	"math"

	"github.com/seed-7440039f/frontier/recrawl"
)

// optimum holds the interval of each page that makes the weighted freshness
// greatest, and that freshness.
type optimum struct {
	interval  []float64
	freshness float64
	price     float64
	host      []float64 // of each host, its price
}

// wanted is a page's fetches per day at a price.
func wanted(p *page, rate, price float64) float64 {
	if p.kind == spam || p.weight == 0 {
		return 0
	}
	return 1 / recrawl.Interval(rate, p.weight, price)
}

// best finds the optimum for the rates at a time.
func (w *web) best(now, budget float64) optimum {
	byHost := make([][]*page, w.Hosts)
	for i := range w.pages {
		p := &w.pages[i]
		byHost[p.host] = append(byHost[p.host], p)
	}
	demand := func(pages []*page, log float64) float64 {
		sum := 0.
		for _, p := range pages {
			sum += wanted(p, w.rateOf(p, now), math.Exp(log))
		}
		return sum
	}
	most := w.HostMost
	most = cmp.Or(most, math.Inf(1))
	log := bisect(func(log float64) bool {
		sum := 0.
		for _, pages := range byHost {
			sum += min(most, demand(pages, log))
		}
		return sum > budget
	})
	o := optimum{price: math.Exp(log), interval: make([]float64, w.Pages), host: make([]float64, w.Hosts)}
	for h, pages := range byHost {
		o.host[h] = o.price
		if demand(pages, log) > most {
			o.host[h] = math.Exp(bisect(func(log float64) bool { return demand(pages, log) > most }))
		}
	}
	sum, all := 0., 0.
	for i := range w.pages {
		p := &w.pages[i]
		rate := w.rateOf(p, now)
		o.interval[i] = 1 / wanted(p, rate, o.host[p.host])
		sum += p.weight * recrawl.Freshness(rate, o.interval[i])
		all += p.weight
	}
	o.freshness = sum / all
	return o
}

// bisect finds the logarithm at which over becomes false.
func bisect(over func(log float64) bool) float64 {
	low, high := -40., 25.
	for range 50 {
		if mid := (low + high) / 2; over(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// Optimum returns the greatest weighted freshness that any crawl of the scenario can reach in the
// long run, for pages that change at random.
func Optimum(s Scenario) float64 {
	w := newWeb(s)
	return w.best(s.Length, s.Budget).freshness
}
