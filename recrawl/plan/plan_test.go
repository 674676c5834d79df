package plan_test

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/seed-7440039f/frontier/recrawl/plan"
)

func solve(t testing.TB, m *plan.Model) *plan.Plan {
	t.Helper()
	p, err := plan.Solve(context.Background(), m, plan.Options{})
	require.NoError(t, err)
	check(t, m, p)
	return p
}

var papers = map[[2]int]*plan.Plan{}

// paper is a plan of the paper's model for 14 periods; tests share them.
func paper(t testing.TB, version int, s plan.Strategy) *plan.Plan {
	key := [2]int{version, int(s)}
	if papers[key] == nil {
		papers[key] = solve(t, plan.WebFountain(version, 14, s))
	}
	return papers[key]
}

// check evaluates a plan by a second implementation of the paper's formulas.
func check(t testing.TB, m *plan.Model, p *plan.Plan) {
	t.Helper()
	n := len(m.Pages)
	b, y := append([]float64(nil), m.Pages...), make([]float64, n)
	copy(y, m.Obsolete)
	total := 0.
	for _, v := range b {
		total += v
	}
	at := func(s []plan.Series, i, t int, none float64) float64 {
		switch len(s) {
		case 0:
			return none
		case 1:
			return s[0].At(t)
		}
		return s[i].At(t)
	}
	known, objective := m.New, 0.
	for k := 1; k <= m.Periods; k++ {
		z := p.New[k]
		d := 1.
		if len(m.CostNew) > 0 {
			d = m.CostNew.At(k)
		}
		spent, found := d*z, m.Arrivals.At(k)
		require.True(t, z >= 0 && z <= known*(1+1e-9)+1e-6, "(6) %v of %v", z, known)
		for i, x := range p.Old[k] {
			require.True(t, x >= 0 && x <= b[i]*(1+1e-9), "(5) %v of %v", x, b[i])
			spent += x * at(m.CostOld, i, k, 1)
			found += x * at(m.FindOld, i, k, 0)
			a := at(m.Change, i, k, 0)
			if b[i] > 0 {
				y[i] = (1 - x/b[i]) * ((1-a)*y[i] + a*b[i])
			}
			b[i] += m.Pages[i] / total * z
			objective += at(m.OldWeight, i, k, 0) * y[i]
		}
		require.LessOrEqual(t, spent, m.Budget.At(k)*(1+1e-9)+1e-9, "(1)")
		known += found + (m.FindNew.At(k)-1)*z
		objective += m.NewWeight.At(k) * known
	}
	require.InDelta(t, objective, p.Objective, 1e-9*(1+objective))
	require.LessOrEqual(t, p.Bound, p.Objective)
}

// The linear programs' optima were computed with another solver (HiGHS).
func TestThePapersPlansAreNearTheBound(t *testing.T) {
	for _, c := range []struct {
		version  int
		s        plan.Strategy
		lp, most float64
	}{
		{1, plan.Even, 31.4558e7, 0.005}, {1, plan.Last, 1.70186e7, 0.008}, {1, plan.Mixed, 2.16188e7, 0.008},
		{2, plan.Even, 36.6394e7, 0.005}, {2, plan.Mixed, 2.46042e7, 0.015},
	} {
		p := paper(t, c.version, c.s)
		assert.Less(t, p.Objective/c.lp-1, c.most, "version %d, strategy %d", c.version, c.s)
		assert.Less(t, p.Bound, c.lp*1.00001, "a bound is below the optimum")
		assert.Greater(t, p.Bound, c.lp*0.999, "and not far below")
	}
}

// More work does not make plans worse.
func TestManyPrices(t *testing.T) {
	m := plan.WebFountain(1, 14, plan.Even)
	p, err := plan.Solve(context.Background(), m, plan.Options{Prices: 5000})
	require.NoError(t, err)
	check(t, m, p)
	assert.Less(t, p.Gap(), 0.005)
}

// What costs nothing needs no budget.
func TestFreeCrawls(t *testing.T) {
	m := &plan.Model{Periods: 2, Pages: []float64{100, 100}, Obsolete: []float64{50, 50}, New: 30, Change: []plan.Series{{0.1}},
		Budget: plan.Series{0}, CostOld: []plan.Series{{0}, {1}}, CostNew: plan.Series{0}, OldWeight: []plan.Series{{1}}, NewWeight: plan.Series{1}}
	p := solve(t, m)
	assert.InDelta(t, 55+61., p.Objective, 1e-9, "only the second bucket is obsolete")
	assert.Zero(t, p.Gap())
	m.Budget = plan.Series{0, 50} // a sweep scales down what does not fit, and not what is free
	assert.Equal(t, []float64{100, 0}, solve(t, m).Old[1])
}

// What the paper says of its plans in words.
func TestThePapersPlansLookLikeItsOwn(t *testing.T) {
	crawls := func(s plan.Strategy) (never, once, more float64) {
		n := paper(t, 1, s).Crawls()
		for _, v := range n {
			switch {
			case v < 0.01:
				never++
			case v < 1.01:
				once++
			default:
				more++
			}
		}
		all := float64(len(n))
		return never / all, once / all, more / all
	}
	never, _, _ := crawls(plan.Even)
	assert.InDelta(t, 0.40, never, 0.05, "strategy 1 does not crawl the slowest 40 %")
	_, once, _ := crawls(plan.Last)
	assert.Greater(t, once, 0.9, "strategy 2 crawls each page just once")
	never, _, _ = crawls(plan.Mixed)
	assert.Less(t, never, 0.01, "strategy 3 crawls all")
}

// Any plan of any model is feasible, and no random plan goes below its bound.
func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n, T := 1+r.IntN(4), 1+r.IntN(4)
		m := &plan.Model{Periods: T, New: 30 * r.Float64(), CostNew: plan.Series{r.Float64() * 2}, Arrivals: plan.Series{10 * r.Float64()}, FindNew: plan.Series{r.Float64() * 0.9}}
		series := func(scale float64) plan.Series {
			s := make(plan.Series, T)
			for t := range s {
				s[t] = scale * r.Float64()
			}
			return s
		}
		for range n {
			b := 100 * r.Float64()
			m.Pages, m.Obsolete = append(m.Pages, b), append(m.Obsolete, b*r.Float64())
			m.Change, m.CostOld = append(m.Change, series(1)), append(m.CostOld, series(2))
			m.OldWeight, m.FindOld = append(m.OldWeight, series(1)), append(m.FindOld, series(0.5))
		}
		m.NewWeight, m.Budget = series(3), series(100*float64(n))
		p, err := plan.Solve(context.Background(), m, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			x, z := make([][]float64, T+1), make([]float64, T+1)
			x[0] = make([]float64, n)
			for k := 1; k <= T; k++ {
				x[k] = make([]float64, n)
			}
			for k := 1; k <= T; k++ { // step by step, as far as the seconds reach
				so, _ := m.Evaluate(x, z, 1e9)
				left := m.Budget.At(k)
				z[k] = so.Known[k-1] * r.Float64()
				if c := m.CostNew[0]; z[k]*c > left {
					z[k] = left / c
				}
				left -= z[k] * m.CostNew[0]
				for _, i := range r.Perm(n) {
					x[k][i] = min(so.Pages[k-1][i]*min(1, 1.5*r.Float64()), max(0, left)/m.CostOld[i][k-1])
					left -= x[k][i] * m.CostOld[i][k-1]
				}
			}
			so, err := m.Evaluate(x, z, 1e-9)
			if err != nil {
				t.Fatal(err)
			}
			if so.Objective < p.Bound*(1-1e-9)-1e-9 {
				t.Fatalf("a plan has %v, below the bound %v", so.Objective, p.Bound)
			}
			if so.Objective < p.Objective*0.9-1e-6 {
				t.Fatalf("a random plan has %v, the solver's %v (bound %v)", so.Objective, p.Objective, p.Bound)
			}
		}
	})
}

// The example that shows that the model wastes something: crawling at random.
func TestOneBucket(t *testing.T) {
	m := &plan.Model{Periods: 2, Pages: []float64{100}, Change: []plan.Series{{0.5}}, Budget: plan.Series{50}}
	m.Weigh(plan.Last)
	p := solve(t, m)
	assert.InDelta(t, 31.25, p.Objective, 1e-9)
	share, news := p.Probabilities(2)
	assert.InDelta(t, 0.5, share[0], 1e-9)
	assert.Zero(t, news)
}

func TestCover(t *testing.T) {
	m := plan.WebFountain(1, 14, plan.Last)
	budget, p, err := m.Cover()
	require.NoError(t, err)
	with := *m
	with.Budget = plan.Series{budget}
	check(t, &with, p)
	for i, b := range m.Pages {
		sum := 0.
		for k := 1; k <= 14; k++ {
			sum += p.Old[k][i]
		}
		assert.InEpsilon(t, b, sum, 1e-6, "bucket %d", i+1)
	}
	assert.InEpsilon(t, 510e6/14, budget, 0.03)
}

func TestAModelOfALiveCrawl(t *testing.T) {
	s, err := recrawl.New(recrawl.Options{Budget: 100. / 86400})
	require.NoError(t, err)
	require.NoError(t, s.SetHostRate(1, 10./86400))
	now := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	for i := range 1000 {
		p := s.Learn(recrawl.Page{State: recrawl.Known(1/(1+float64(i%100)), 2), Host: uint32(i % 5), Due: now})
		s.Done(p, recrawl.Visit{At: now, Outcome: recrawl.Visited})
	}
	m := plan.Live(s, 500, 24*time.Hour, 14, 100./86400, plan.Even)
	p := solve(t, m)
	assert.Less(t, p.Gap(), 0.03)
	sum := 0.
	for _, b := range m.Pages {
		sum += b
	}
	assert.EqualValues(t, 1000, sum)
	budget, _, err := m.Cover()
	require.NoError(t, err)
	assert.InEpsilon(t, 1500./14, budget, 0.05, "pages that were never crawled are seen within the periods too, not in the first")
}

func TestAModelSurvivesJSON(t *testing.T) {
	m := plan.WebFountain(2, 14, plan.Mixed)
	text, err := json.Marshal(m)
	require.NoError(t, err)
	var back plan.Model
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, m, &back)
}

func TestBadModels(t *testing.T) {
	nan := math.NaN()
	for _, m := range []*plan.Model{
		{}, {Periods: 1}, {Periods: 1, Pages: []float64{nan}}, {Periods: 1, Pages: []float64{0}},
		{Periods: 2, Pages: []float64{1}, Change: []plan.Series{{2}}},
		{Periods: 2, Pages: []float64{1}, Budget: plan.Series{1, 2, 3}},
		{Periods: 2, Pages: []float64{1}, Budget: plan.Series{math.Inf(1)}},
		{Periods: 2, Pages: []float64{1}, Obsolete: []float64{2}},
		{Periods: 2, Pages: []float64{1, 2, 3}, CostOld: []plan.Series{{1}, {1}}},
		{Periods: 2, Pages: []float64{1e300}, Obsolete: []float64{1e300}, OldWeight: []plan.Series{{1e300}}, CostOld: []plan.Series{{1e300}}},
	} {
		_, err := plan.Solve(context.Background(), m, plan.Options{})
		assert.Error(t, err, "%+v", m)
		_, _, err = m.Cover()
		assert.Error(t, err)
	}
	for _, m := range []*plan.Model{ // odd, but plans
		{Periods: 1, Pages: []float64{1}},
		{Periods: 3, Pages: []float64{0, 5}, Change: []plan.Series{{1}}, Budget: plan.Series{1e18}, OldWeight: []plan.Series{{1}}},
		{Periods: 3, Pages: []float64{5}, Change: []plan.Series{{0.1}}, Budget: plan.Series{0, 3, 0}, CostOld: []plan.Series{{0}}, OldWeight: []plan.Series{{1}}, New: 3, CostNew: plan.Series{0}, NewWeight: plan.Series{1}},
	} {
		p := solve(t, m)
		assert.False(t, math.IsNaN(p.Objective) || math.IsNaN(p.Bound))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := plan.WebFountain(1, 14, plan.Even)
	p, err := plan.Solve(ctx, m, plan.Options{})
	assert.ErrorIs(t, err, context.Canceled)
	check(t, m, p)
}

// BenchmarkSolve is how long a plan takes, with its bound.
func BenchmarkSolve(b *testing.B) {
	for _, size := range []struct {
		name       string
		times, per int
	}{{"B=255/T=14", 1, 14}, {"B=255/T=28", 1, 28}, {"B=4096/T=14", 16, 14}} {
		b.Run(size.name, func(b *testing.B) {
			m := plan.WebFountain(1, size.per, plan.Even)
			if size.times > 1 {
				wide := *m
				wide.Pages, wide.Obsolete, wide.Change = nil, nil, nil
				for j := range 4096 {
					i := min(254, j/size.times)
					wide.Pages = append(wide.Pages, m.Pages[i]/float64(size.times))
					wide.Obsolete = append(wide.Obsolete, m.Obsolete[i]/float64(size.times))
					wide.Change = append(wide.Change, m.Change[i])
				}
				m = &wide
			}
			for b.Loop() {
				p := solve(b, m)
				b.ReportMetric(100*p.Gap(), "gap-%")
			}
		})
	}
}
