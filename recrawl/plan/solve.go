// This file finds a good plan: block descent over the periods.

package plan

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// Options of Solve. The zero value is for plans of the paper's size.
type Options struct {
	// Sweeps is the maximum number of sweeps over all periods from each start. Zero means 200.
	Sweeps int
	// Prices is the number of prices tried for the bound. Each takes B T^2/2 steps of one or two
	// nanoseconds. Zero means 300.
	Prices int
}

// near is the gap below which no more starts are tried.
const near = 3e-3

// data is the model in a form that is quick to read: by period and bucket, one
// slice, period t at (t-1)*n.
type data struct {
	m                   *Model
	n, T                int
	a, c, w, g          []float64 // Change, CostOld, OldWeight, FindOld
	d, v, h, k, budget  []float64 // by period from 1
	b0, y0, p           []float64
	all                 float64
	f                   []float64 // the plan: share of each bucket crawled
	pi, beta            []float64 // value of one more obsolete page, and of one more page, at the end of a period
	news                []float64 // worth of one known page more
	rate                []float64 // of the knapsack: gain of the last second
	b, y                []float64 // at the end of the previous period
	bs, shares          []float64 // before each period: number of pages, and their obsolete share
	order               []int32
	gain                []float64
	x, z, known, before []float64
}

func (m *Model) data() *data {
	n, T := len(m.Pages), m.Periods
	e := &data{m: m, n: n, T: T, b0: m.Pages, y0: make([]float64, n), p: make([]float64, n)}
	copy(e.y0, m.Obsolete)
	for _, s := range []*[]float64{&e.a, &e.c, &e.w, &e.g, &e.f, &e.pi, &e.beta, &e.x, &e.bs, &e.shares} {
		*s = make([]float64, n*T)
	}
	for _, s := range []*[]float64{&e.d, &e.v, &e.h, &e.k, &e.budget, &e.news, &e.rate, &e.z, &e.known} {
		*s = make([]float64, T+2)
	}
	for _, s := range []*[]float64{&e.b, &e.y, &e.gain, &e.before} {
		*s = make([]float64, n)
	}
	e.order = make([]int32, n*T)
	for j := range e.order {
		e.order[j] = int32(j % n)
	}
	for _, b := range m.Pages {
		e.all += b
	}
	for i := range n {
		e.p[i] = m.Pages[i] / e.all
	}
	for t := 1; t <= T; t++ {
		e.d[t], e.v[t], e.h[t], e.k[t], e.budget[t] = m.costNew(t), m.NewWeight.At(t), m.FindNew.At(t), m.Arrivals.At(t), m.Budget.At(t)
		for i := range n {
			j := (t-1)*n + i
			e.a[j], e.c[j], e.w[j], e.g[j] = of(m.Change, i, t), m.costOld(i, t), of(m.OldWeight, i, t), of(m.FindOld, i, t)
		}
	}
	return e
}

// Solve finds a plan, and a lower bound for all plans. The plan satisfies all constraints. When ctx
// ends, Solve returns the best plan so far and the error of ctx.
func Solve(ctx context.Context, m *Model, o Options) (*Plan, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	o.Sweeps = cmp.Or(max(0, o.Sweeps), 200)
	o.Prices = cmp.Or(max(0, o.Prices), 300)
	e := m.data()
	best := math.Inf(1)
	var x, z []float64
	try := func(start []float64, patience int) {
		copy(e.f, start)
		if value := e.descend(ctx, o.Sweeps, patience); value < best {
			best = value
			x, z = slices.Clone(e.x), slices.Clone(e.z)
		}
	}
	try(e.alike(0.2), 12)
	bound, starts := e.bound(ctx, best, o.Prices)
	enough := func() bool { return ctx.Err() != nil || !(best-bound > near*math.Abs(best)) }
	for _, f := range append(starts, e.alike(0.9), e.alike(0.05)) {
		if !enough() {
			try(f, 12)
		}
	}
	random := rand.New(rand.NewPCG(3, 4)) // fixed seed: the same model gives the same plan
	for k := range min(24, 90000/len(e.f)) {
		if !enough() {
			try(e.shaken(e.asShares(x, z), []int{5, 20}[k%2], random), 3)
		}
	}
	if x == nil {
		return nil, errGrows
	}
	p, err := e.plan(x, z)
	if err != nil {
		return nil, err
	}
	if p.Bound = min(bound, p.Objective); !(p.Bound > 0) { // nothing in an objective is negative
		p.Bound = 0
	}
	return p, ctx.Err()
}

// alike is the same share of all buckets in all periods.
func (e *data) alike(share float64) []float64 {
	return slices.Repeat([]float64{share}, len(e.f))
}

// asShares are old pages to crawl as shares of their buckets, with z new ones crawled.
func (e *data) asShares(x, z []float64) []float64 {
	f := make([]float64, len(x))
	news := 0.
	for j := range f {
		i, t := j%e.n, j/e.n
		if i == 0 && t > 0 {
			news += z[t]
		}
		if b := e.b0[i] + e.p[i]*news; b > 0 {
			f[j] = min(1, x[j]/b)
		}
	}
	return f
}

// shaken lets one in oneIn buckets copy a bucket nearby. From such a start a short descent finds
// another plan, sometimes a better one.
func (e *data) shaken(f []float64, oneIn int, random *rand.Rand) []float64 {
	from := slices.Clone(f)
	for i := range e.n {
		if random.IntN(oneIn) > 0 {
			continue
		}
		near := min(e.n-1, max(0, i+random.IntN(7)-3))
		for t := range e.T {
			f[t*e.n+i] = from[t*e.n+near]
		}
	}
	return f
}

// plan turns x and z into a Plan, by the independent evaluation.
func (e *data) plan(x, z []float64) (*Plan, error) {
	old := make([][]float64, e.T+1)
	old[0] = make([]float64, e.n)
	for t := 1; t <= e.T; t++ {
		old[t] = x[(t-1)*e.n : t*e.n]
	}
	return e.m.Evaluate(old, z[:e.T+1], 1e-9)
}

// descend improves f until more than patience sweeps gain nothing: from the last period to the first
// as long as that helps, then from the first to the last. It leaves the best plan
// that it met in x and z, and returns its objective.
func (e *data) descend(ctx context.Context, sweeps, patience int) float64 {
	best, since := math.Inf(1), 0
	x, z := make([]float64, len(e.x)), make([]float64, len(e.z))
	clear(e.rate)
	e.simulate()
	for k, back := 0, true; k < sweeps && since <= patience; k++ {
		var v float64
		if back {
			e.backward()
			v = e.simulate()
			back = v < best*(1-1e-6) && k < sweeps/2
		} else {
			for t := e.T; t >= 1; t-- {
				e.adjointAt(t)
			}
			v = e.forward()
		}
		if since++; v < best*(1-1e-6) {
			since = 0
		}
		if v < best {
			best = v
			copy(x, e.x)
			copy(z, e.z)
		}
		if ctx.Err() != nil {
			break
		}
	}
	copy(e.x, x)
	copy(e.z, z)
	return best
}
