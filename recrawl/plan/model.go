// This file holds the data of the model and its validation.

package plan

import (
	"errors"
	"fmt"
	"math"
)

// Series is a value for each period; a single value applies to all periods.
type Series []float64

// At is the value of period t, from 1.
func (s Series) At(t int) float64 {
	switch len(s) {
	case 0:
		return 0
	case 1:
		return s[0]
	}
	return s[t-1]
}

// Model is the data of a plan. In slices over buckets (Change, CostOld, OldWeight, FindOld), a
// single series applies to all buckets, and an empty slice means zeros. All values are finite and
// not negative. Pages and times may be in any unit.
type Model struct {
	Periods  int       `json:"periods"`            // T
	Pages    []float64 `json:"pages"`              // b_i0: pages in each bucket at the start
	Obsolete []float64 `json:"obsolete,omitempty"` // y_i0: number of these that are obsolete; none: 0
	New      float64   `json:"new,omitempty"`      // n_0: known, never crawled

	Change []Series `json:"change"` // a_it: share of the bucket's pages that change in a period, 0 to 1

	Budget  Series   `json:"budget"`            // Cconst_t: seconds for crawling in a period
	CostOld []Series `json:"costOld,omitempty"` // cconst_it: seconds to crawl an old page; none: 1
	CostNew Series   `json:"costNew,omitempty"` // dconst_t: seconds to crawl a new page; none: 1

	OldWeight []Series `json:"oldWeight"` // oldwt_it
	NewWeight Series   `json:"newWeight"` // newwt_t

	FindOld  []Series `json:"findOld,omitempty"`  // oldnwt_it: new pages found by crawling an old page
	FindNew  Series   `json:"findNew,omitempty"`  // newnwt_t: by crawling a new one, at most 1
	Arrivals Series   `json:"arrivals,omitempty"` // nconst_t: new pages reported to the crawler
}

// Strategy is one of the paper's ways to weigh the periods of a cycle.
type Strategy int

const (
	Even  Strategy = 1 + iota // strategy 1: all periods alike
	Last                      // strategy 2: the last one only
	Mixed                     // strategy 3: the last one, and the others a little
)

// Low is the weight of the periods before the last in strategy Mixed.
const Low = 0.01

// Weigh sets the weights of old and new pages according to a strategy. The paper advises strategy 2
// in early cycles, to reduce the number of obsolete pages quickly, then 1 or 3 to keep it stable.
func (m *Model) Weigh(s Strategy) {
	w := make(Series, m.Periods)
	for t := range w {
		switch {
		case s == Even || t == m.Periods-1:
			w[t] = 1
		case s == Mixed:
			w[t] = Low
		}
	}
	m.OldWeight, m.NewWeight = []Series{w}, w
}

// of is the value of a bucket and period.
func of(s []Series, i, t int) float64 {
	switch len(s) {
	case 0:
		return 0
	case 1:
		return s[0].At(t)
	}
	return s[i].At(t)
}

// Validate returns all faults of the model.
func (m *Model) Validate() error {
	var errs []error
	fault := func(format string, a ...any) {
		if len(errs) < 10 {
			errs = append(errs, fmt.Errorf("plan: "+format, a...))
		}
	}
	if m.Periods < 1 || m.Periods > 10000 {
		fault("Periods is %d; want 1 to 10000", m.Periods)
		return errors.Join(errs...)
	}
	if len(m.Pages) == 0 {
		fault("Pages is empty; want a bucket at least")
	}
	least := func(name string, s Series, most float64) {
		if n := len(s); n > 1 && n != m.Periods {
			fault("%s has %d periods; want 0, 1 or %d", name, n, m.Periods)
		}
		for t, v := range s {
			if !(v >= 0 && v <= most) || math.IsInf(v, 1) {
				fault("%s of period %d is %v; want 0 to %v", name, t+1, v, most)
			}
		}
	}
	all := func(name string, s []Series, most float64) {
		if n := len(s); n > 1 && n != len(m.Pages) {
			fault("%s has %d buckets; want 0, 1 or %d", name, n, len(m.Pages))
		}
		for i, x := range s {
			least(fmt.Sprintf("%s of bucket %d", name, i+1), x, most)
		}
	}
	inf := math.Inf(1)
	sum := 0.
	for i, b := range m.Pages {
		if !(b >= 0) || math.IsInf(b, 1) {
			fault("Pages of bucket %d is %v; want a finite number >= 0", i+1, b)
		}
		sum += b
	}
	if len(errs) == 0 && !(sum > 0) {
		fault("Pages are 0; want some")
	}
	if n := len(m.Obsolete); n != 0 && n != len(m.Pages) {
		fault("Obsolete has %d buckets; want 0 or %d", n, len(m.Pages))
	} else {
		for i, y := range m.Obsolete {
			if !(y >= 0 && y <= m.Pages[i]) {
				fault("Obsolete of bucket %d is %v; want 0 to %v", i+1, y, m.Pages[i])
			}
		}
	}
	if !(m.New >= 0) || math.IsInf(m.New, 1) {
		fault("New is %v; want a finite number >= 0", m.New)
	}
	all("Change", m.Change, 1)
	all("CostOld", m.CostOld, inf)
	all("OldWeight", m.OldWeight, inf)
	all("FindOld", m.FindOld, inf)
	least("Budget", m.Budget, inf)
	least("CostNew", m.CostNew, inf)
	least("NewWeight", m.NewWeight, inf)
	least("FindNew", m.FindNew, 1)
	least("Arrivals", m.Arrivals, inf)
	return errors.Join(errs...)
}

// Plan is a solution: what to crawl in each period, and the result. Slices over periods have T+1
// elements; element 0 is the start.
type Plan struct {
	Old       [][]float64 `json:"old"`      // x_it: old pages to crawl, by period and bucket; those of 0 are 0
	New       []float64   `json:"new"`      // z_t: new pages to crawl
	Pages     [][]float64 `json:"pages"`    // b_it, by period and bucket
	Obsolete  [][]float64 `json:"obsolete"` // y_it, by period and bucket
	Known     []float64   `json:"known"`    // n_t: known pages that were never crawled
	Spent     []float64   `json:"spent"`    // seconds
	Objective float64     `json:"objective"`
	Bound     float64     `json:"bound"` // no plan has a lower objective
}

// Gap returns how far the objective is above the bound, relative to the bound.
func (p *Plan) Gap() float64 {
	if p.Bound <= 0 {
		if p.Objective <= 0 {
			return 0
		}
		return math.Inf(1)
	}
	return p.Objective/p.Bound - 1
}

// Probabilities returns what the paper's Figure 1 needs in period t, from 1: the share of each
// bucket that is crawled, and the share of all crawls that goes to never-crawled pages, which is
// the probability p with which a crawler takes from that queue.
func (p *Plan) Probabilities(t int) (bucket []float64, newShare float64) {
	bucket = make([]float64, len(p.Old[t]))
	sum := p.New[t]
	for i, x := range p.Old[t] {
		sum += x
		if b := p.Pages[t-1][i]; b > 0 {
			bucket[i] = x / b
		}
	}
	if sum == 0 {
		return bucket, 0
	}
	return bucket, p.New[t] / sum
}

// Crawls returns how often a page of each bucket is crawled in the cycle, on average.
func (p *Plan) Crawls() []float64 {
	n := make([]float64, len(p.Pages[0]))
	for t := 1; t < len(p.Old); t++ {
		share, _ := p.Probabilities(t)
		for i, f := range share {
			n[i] += f
		}
	}
	return n
}

// Stale is the sum of obsolete pages over the buckets, for each period.
func (p *Plan) Stale() []float64 {
	s := make([]float64, len(p.Obsolete))
	for t, y := range p.Obsolete {
		for _, v := range y {
			s[t] += v
		}
	}
	return s
}
