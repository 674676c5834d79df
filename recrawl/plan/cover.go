// This file computes what it takes to crawl every page within a cycle, and makes a model of a
// running crawl.

package plan

import (
	"math"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
)

// Cover returns the smallest budget, the same in each period, with which every page that exists at
// the start, crawled before or not, is crawled once within the cycle, and every page found later in
// the period after it became known; and a plan that does so, with the buckets that change most last. It ignores the budget of
// the model.
//
// Within a bucket, crawl the oldest pages first. The figures of the plan assume that pages are
// crawled at random, and so are too high.
func (m *Model) Cover() (budget float64, p *Plan, err error) {
	if err := m.Validate(); err != nil {
		return 0, nil, err
	}
	order := make([]int, len(m.Pages))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch a, b := of(m.Change, i, 1), of(m.Change, j, 1); {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	low, high := 0., 1.
	for {
		if _, _, ok := m.cover(order, high); ok {
			break
		}
		if low, high = high, 2*high; math.IsInf(high, 1) {
			return 0, nil, errGrows
		}
	}
	for range 60 {
		mid := (low + high) / 2
		if _, _, ok := m.cover(order, mid); ok {
			high = mid
		} else {
			low = mid
		}
	}
	x, z, _ := m.cover(order, high)
	with := *m
	with.Budget = Series{high}
	p, err = with.Evaluate(x, z, 1e-9)
	return high, p, err
}

// cover spends a budget on pages found lately, on those that were never crawled at the start, then on
// buckets in order, each page once.
func (m *Model) cover(order []int, budget float64) (x [][]float64, z []float64, ok bool) {
	n := len(m.Pages)
	x, z = make([][]float64, m.Periods+1), make([]float64, m.Periods+1)
	x[0] = make([]float64, n)
	known, backlog, at, done := m.New, m.New, 0, 0.
	ok = true
	for t := 1; t <= m.Periods; t++ {
		x[t] = make([]float64, n)
		left := budget
		z[t] = known - backlog
		cost := m.costNew(t)
		if cost*z[t] > left {
			z[t], ok = left/cost, false
		}
		left -= cost * z[t]
		some := backlog
		if cost*some > left {
			some = left / cost
		}
		backlog -= some
		z[t] += some
		left -= cost * some
		known = known + (m.FindNew.At(t)-1)*z[t] + m.Arrivals.At(t)
		for at < n && left > 0 {
			i := order[at]
			rest, cost := m.Pages[i]-done, m.costOld(i, t)
			if cost*rest > left {
				rest = left / cost
				done, left = done+rest, 0
			} else {
				left -= cost * rest
				at, done = at+1, 0
			}
			x[t][i] += rest
		}
		for i, xi := range x[t] { // in the order in which Evaluate adds
			known += of(m.FindOld, i, t) * xi
		}
	}
	return x, z, ok && at == n && backlog == 0
}

// Live returns the model of a running crawl: the pages that a recrawl.Scheduler knows, in one
// bucket per rate byte, and unseen pages that were never crawled, for a number of periods of the given length, with a budget in fetches per
// second, and a strategy. Each fetch counts as one second.
func Live(s *recrawl.Scheduler, unseen float64, period time.Duration, periods int, budget float64, strategy Strategy) *Model {
	m := &Model{Periods: periods, New: unseen, Budget: Series{budget * period.Seconds()}}
	m.Weigh(strategy)
	w := m.OldWeight[0]
	m.OldWeight = nil
	days := period.Hours() / 24
	for _, b := range s.Buckets() {
		m.Pages = append(m.Pages, float64(b.Pages))
		m.Obsolete = append(m.Obsolete, float64(b.Pages)*(1-b.Freshness))
		m.Change = append(m.Change, Series{-math.Expm1(-b.Rate * days)})
		weights := make(Series, len(w))
		for t := range w {
			weights[t] = w[t] * b.Weight
		}
		m.OldWeight = append(m.OldWeight, weights)
	}
	return m
}
