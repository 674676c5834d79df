// This file computes the results of a plan from the paper's formulas, independently of the solver.

package plan

import (
	"errors"
	"fmt"
	"math"
)

var errGrows = errors.New("plan: numbers of pages, seconds or weights exceed what a float64 holds")

// Evaluate computes b, y, n, the seconds spent and the objective of crawling x_it old pages (by
// period and bucket, [t][i]; period 0 is unused) and z_t new pages. The error names the constraints
// that are violated by more than the relative tolerance.
func (m *Model) Evaluate(x [][]float64, z []float64, tolerance float64) (*Plan, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if len(x) != m.Periods+1 || len(z) != m.Periods+1 {
		return nil, fmt.Errorf("plan: x and z have %d and %d periods; want %d", len(x), len(z), m.Periods+1)
	}
	n := len(m.Pages)
	p := &Plan{Old: x, New: z, Known: []float64{m.New}, Spent: []float64{0}}
	p.Pages = append(p.Pages, m.Pages)
	y0 := make([]float64, n)
	copy(y0, m.Obsolete)
	p.Obsolete = append(p.Obsolete, y0)
	all := 0.
	for _, b := range m.Pages {
		all += b
	}
	var errs []error
	violated := func(is, most, scale float64, format string, a ...any) {
		if (is > most+tolerance*scale || is < -tolerance*scale) && len(errs) < 10 {
			errs = append(errs, fmt.Errorf("plan: "+format, a...))
		}
	}
	for t := 1; t <= m.Periods; t++ {
		if len(x[t]) != n {
			return nil, fmt.Errorf("plan: x of period %d has %d buckets; want %d", t, len(x[t]), n)
		}
		b, y := make([]float64, n), make([]float64, n)
		spent := m.costNew(t) * z[t]
		known := p.Known[t-1] + (m.FindNew.At(t)-1)*z[t] + m.Arrivals.At(t) // (3)
		for i, xi := range x[t] {
			was := p.Pages[t-1][i]
			violated(xi, was, was, "(5): bucket %d, period %d: %v of %v pages", i+1, t, xi, was)
			spent += m.costOld(i, t) * xi
			known += of(m.FindOld, i, t) * xi
			a := of(m.Change, i, t)
			if was > 0 {
				y[i] = max(0, 1-xi/was) * ((1-a)*p.Obsolete[t-1][i] + a*was) // (2)
			}
			b[i] = was + m.Pages[i]/all*z[t] // (4)
			p.Objective += of(m.OldWeight, i, t) * y[i]
		}
		violated(z[t], p.Known[t-1], p.Known[t-1]+1e-9*all, "(6): period %d: %v of %v new pages", t, z[t], p.Known[t-1])
		violated(spent, m.Budget.At(t), m.Budget.At(t)+1e-9*all, "(1): period %d: %v of %v seconds", t, spent, m.Budget.At(t))
		known = max(0, known) // rounding; more than that violates (6)
		p.Objective += m.NewWeight.At(t) * known
		p.Pages, p.Obsolete = append(p.Pages, b), append(p.Obsolete, y)
		p.Known, p.Spent = append(p.Known, known), append(p.Spent, spent)
	}
	if math.IsInf(p.Objective, 0) || math.IsNaN(p.Objective) {
		errs = append(errs, errGrows)
	}
	return p, errors.Join(errs...)
}

func (m *Model) costOld(i, t int) float64 {
	if len(m.CostOld) == 0 {
		return 1
	}
	return of(m.CostOld, i, t)
}

func (m *Model) costNew(t int) float64 {
	if len(m.CostNew) == 0 {
		return 1
	}
	return m.CostNew.At(t)
}
