// This file tests models of all kinds: however odd, there is a plan or an error.

package plan_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier/recrawl/plan"
)

// anyModel draws a model of up to 6 buckets and periods, of numbers that are odd.
func anyModel(t *rapid.T) *plan.Model {
	n, T := rapid.IntRange(1, 6).Draw(t, "buckets"), rapid.IntRange(1, 6).Draw(t, "periods")
	number := rapid.SampledFrom([]float64{0, 0, 1e-30, 1e-9, 0.3, 1, 2.5, 100, 1e9, 1e60})
	share := rapid.SampledFrom([]float64{0, 0, 1e-30, 1e-9, 0.3, 0.5, 1 - 1e-9, 1, 1})
	series := func(of *rapid.Generator[float64]) plan.Series {
		return rapid.SliceOfN(of, T, T).Draw(t, "series")[:rapid.SampledFrom([]int{1, T}).Draw(t, "length")]
	}
	buckets := func(of *rapid.Generator[float64]) (all []plan.Series) {
		for range rapid.SampledFrom([]int{0, 1, n}).Draw(t, "series of buckets") {
			all = append(all, series(of))
		}
		return all
	}
	m := &plan.Model{Periods: T, Pages: rapid.SliceOfN(number, n, n).Draw(t, "pages"), New: number.Draw(t, "new"),
		Change: buckets(share), Budget: series(number), CostOld: buckets(number), CostNew: series(number),
		OldWeight: buckets(number), NewWeight: series(number), FindOld: buckets(share), FindNew: series(share), Arrivals: series(number)}
	for _, b := range m.Pages {
		m.Obsolete = append(m.Obsolete, b*share.Draw(t, "obsolete"))
	}
	return m
}

func finite(x ...float64) bool {
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

func TestAnyModelHasAPlanOrAnError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyModel(t)
		p, err := plan.Solve(context.Background(), m, plan.Options{})
		if err != nil {
			mayFail(t, err)
			return
		}
		if !finite(p.Objective, p.Bound) || p.Bound < 0 || p.Bound > p.Objective || math.IsNaN(p.Gap()) {
			t.Fatalf("objective %v, bound %v, gap %v", p.Objective, p.Bound, p.Gap())
		}
		for k := 1; k <= m.Periods; k++ {
			buckets, news := p.Probabilities(k)
			for _, f := range append(buckets, news) {
				if !(f >= 0 && f <= 1+1e-9) {
					t.Fatalf("period %d: a probability is %v", k, f)
				}
			}
			if !finite(p.New[k], p.Known[k], p.Spent[k]) || !finite(p.Old[k]...) || !finite(p.Obsolete[k]...) || !finite(p.Pages[k]...) {
				t.Fatalf("period %d: %v %v %v %v", k, p.New[k], p.Old[k], p.Obsolete[k], p.Pages[k])
			}
		}
	})
}

func TestAnyModelIsCoveredOrAnError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyModel(t)
		budget, p, err := m.Cover()
		if err != nil {
			mayFail(t, err)
			return
		}
		if !finite(budget, p.Objective) || budget < 0 {
			t.Fatalf("budget %v, objective %v", budget, p.Objective)
		}
		for i, b := range m.Pages {
			sum := 0.
			for _, x := range p.Old {
				sum += x[i]
			}
			if math.Abs(sum-b) > 1e-6*b {
				t.Fatalf("of bucket %d %v of %v pages are crawled", i+1, sum, b)
			}
		}
	})
}

// mayFail refuses errors other than those that such numbers deserve: a plan that
// violates a constraint above all.
func mayFail(t *rapid.T, err error) {
	if text := err.Error(); !strings.Contains(text, "exceed what a float64 holds") && !strings.Contains(text, "Pages are 0") {
		t.Fatal(err)
	}
}
