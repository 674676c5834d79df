// This file crawls as WebFountain would: a plan per cycle, pages taken at random
// within their bucket.

package recrawlsim

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/seed-7440039f/frontier/recrawl/plan"
)

const (
	buckets = 64
	cycle   = 14 // days
)

// planned fetches the pages of each bucket with the plan's probability each day.
type planned struct {
	plain
	bucket []int
	share  [cycle][]float64
	rng    *rand.Rand
}

// WebFountain is the paper's plan with known rates in 64 buckets of equal size, in the steady state
// of its third cycle.
func WebFountain(s plan.Strategy) func(*Web) Policy {
	return func(x *Web) Policy {
		w := x.w
		p := &planned{bucket: make([]int, w.Pages), rng: rand.New(rand.NewPCG(w.Seed, 4))}
		order := make([]int, w.Pages)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int {
			switch a, b := w.pages[i].rate, w.pages[j].rate; {
			case a < b:
				return -1
			case a > b:
				return 1
			}
			return i - j
		})
		m := &plan.Model{Periods: cycle, Pages: make([]float64, buckets), Obsolete: make([]float64, buckets), Change: make([]plan.Series, buckets), Budget: plan.Series{w.Budget}}
		sums := make([]float64, buckets)
		for k, i := range order {
			b := k * buckets / w.Pages
			p.bucket[i] = b
			m.Pages[b]++
			sums[b] += -math.Expm1(-w.pages[i].rate)
		}
		for b := range buckets {
			m.Change[b] = plan.Series{sums[b] / m.Pages[b]}
		}
		m.Weigh(s)
		for range 3 {
			so, err := plan.Solve(context.Background(), m, plan.Options{Prices: 1})
			if err != nil {
				panic(err)
			}
			for t := range cycle {
				p.share[t], _ = so.Probabilities(t + 1)
			}
			copy(m.Obsolete, so.Obsolete[cycle])
		}
		return p
	}
}

func (p *planned) Done(i int, v Visit) float64 {
	for day := math.Floor(v.Now) + 1; ; day++ {
		if p.rng.Float64() < p.share[int(day)%cycle][p.bucket[i]] || day > v.Now+1000 {
			return day + p.rng.Float64()
		}
	}
}
