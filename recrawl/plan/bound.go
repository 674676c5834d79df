// This file computes a bound on how good a plan can be: the Lagrangian dual of the linear program
// over paths.
//
// Consider a page of bucket i that was crawled in period s (0: it exists at the start) and next in
// period t. It costs oldwt times the probability that it is obsolete in each of the periods
// s+1..t-1, and in t the price of the crawl: mu_t cconst_it, and oldnwt_it times N_t, the cost of a
// new page known at the end of t. V_i(s) is the cheapest continuation from there. Duality gives
//
//	N_t   = newwt_t + N_t+1 - rho_t+1
//	rho_t = max(0, N_t (1 - newnwt_t) - mu_t dconst_t - sum_i p_i V_i(t))
//	bound = sum_i b_i0 V_i(0) - sum_t mu_t Cconst_t + sum_t N_t nconst_t + (N_1 - rho_1) n_0
//
// for any mu >= 0, with rho_t the price of (6).

package plan

import (
	"context"
	"math"
	"math/rand/v2"
)

// dual is the state of the computation of a bound.
type dual struct {
	*data
	mu, use []float64 // price, and seconds that the cheapest paths take, by period from 1
	N, rho  []float64
	value   []float64 // V_i(t), by period 0..T, n each
	next    []int32   // the next crawl on the cheapest path; T+1: none
	steps   []step    // by bucket and period
	flow    []float64 // pages at a node, scratch
	sum     []float64 // shares crawled, summed over trials

	// rounded are plans of whole pages: each bucket has a path that was drawn from the trials. As
	// neighbours draw different paths, together the buckets crawl as the average does, and each of
	// them at its best times.
	rounded [2][]float64
	random  *rand.Rand
}

// step is a period on a bucket's paths.
type step struct {
	stay, weight float64 // share that does not change, and oldwt
	crawl        float64 // cost of a crawl in this period, and of all after it
}

// bound searches for prices with a high bound, given the objective of a plan. It also returns the
// shares that its paths crawl, on average and rounded, as starting points for the descent.
func (e *data) bound(ctx context.Context, objective float64, trials int) (best float64, starts [][]float64) {
	n, T := e.n, e.T
	u := &dual{data: e, random: rand.New(rand.NewPCG(1, 2))} // fixed seed: the same model gives the same plan
	for _, s := range []*[]float64{&u.mu, &u.use, &u.N, &u.rho} {
		*s = make([]float64, T+2)
	}
	u.value, u.next = make([]float64, n*(T+2)), make([]int32, n*(T+1))
	u.steps = make([]step, n*T)
	for j := range u.steps {
		k := j%T*n + j/T
		u.steps[j] = step{stay: 1 - e.a[k], weight: e.w[k]}
	}
	u.flow, u.sum = make([]float64, n*(T+1)), make([]float64, n*T)
	for r := range u.rounded {
		u.rounded[r] = make([]float64, n*T)
	}
	copy(u.mu, e.rate) // gain per second of the plan
	for t := 1; t <= T; t++ {
		if e.budget[t] == 0 {
			u.mu[t] = 1e100 // no seconds at any price
		}
	}
	best = math.Inf(-1)
	bestMu := make([]float64, T+2)
	dir, theta, since := make([]float64, T+2), 1.0, 0
	averaged := 0.
	for k := range trials {
		d := u.evaluate()
		if d > best {
			if d > best+1e-4*math.Abs(best) {
				since = 0
			}
			best = d
			copy(bestMu, u.mu)
		} else if since++; since > 8 {
			since, theta = 0, theta*0.7
			copy(u.mu, bestMu)
			clear(dir)
			d = u.evaluate()
		}
		if ctx.Err() != nil || theta < 1e-3 || objective-best <= 1e-6*math.Abs(objective) {
			break
		}
		norm := 0.
		for t := 1; t <= T; t++ {
			g := u.use[t] - e.budget[t]
			if u.mu[t] == 0 && g < 0 || e.budget[t] == 0 {
				g = 0
			}
			dir[t] = g + 0.6*dir[t]
			norm += dir[t] * dir[t]
		}
		if norm == 0 {
			break
		}
		if k >= min(75, trials/4) {
			u.collect(theta)
			averaged += theta
			u.draw(theta / averaged)
		}
		step := theta * (objective - d) / norm
		for t := 1; t <= T; t++ {
			u.mu[t] = max(0, u.mu[t]+step*dir[t])
		}
	}
	if averaged == 0 {
		return best, nil
	}
	for j := range u.sum {
		u.sum[j] = min(1, u.sum[j]/averaged)
	}
	return best, append(starts, u.sum, u.rounded[0], u.rounded[1])
}

// evaluate computes the bound for the prices, and the seconds that the cheapest paths use.
func (u *dual) evaluate() float64 {
	n, T := u.n, u.T
	for t := T; t >= 0; t-- {
		if t == T {
			clear(u.value[T*n : (T+1)*n])
			u.N[T] = u.v[T]
		} else {
			u.paths(t)
		}
		if t == 0 {
			break
		}
		if t < T {
			u.N[t] = u.v[t] + u.N[t+1] - u.rho[t+1]
		}
		sum := 0.
		for i, v := range u.value[t*n : (t+1)*n] {
			sum += u.p[i] * v
		}
		u.rho[t] = max(0, u.N[t]*(1-u.h[t])-u.mu[t]*u.d[t]-sum)
		u.arrive(t)
	}
	total := (u.N[1] - u.rho[1]) * u.m.New
	for i, v := range u.value[:n] {
		total += u.b0[i] * v
	}
	for t := 1; t <= T; t++ {
		total += u.N[t]*u.k[t] - u.mu[t]*u.budget[t]
	}
	u.usage()
	return total
}

// paths computes V_i(s) for all buckets from those of later periods.
func (u *dual) paths(s int) {
	n, T := u.n, u.T
	value, next := u.value[s*n:(s+1)*n], u.next[s*n:(s+1)*n]
	for i := range n {
		odds := 1.0 // that the page is up to date
		if s == 0 && u.b0[i] > 0 {
			odds = 1 - u.y0[i]/u.b0[i]
		}
		wait, least, to := 0., math.Inf(1), int32(T+1)
		for k, x := range u.steps[i*T+s : (i+1)*T] {
			if v := wait + x.crawl; v < least {
				least, to = v, int32(s+k+1)
			}
			odds *= x.stay
			wait += x.weight * (1 - odds)
		}
		if wait <= least {
			least, to = wait, int32(T+1)
		}
		value[i], next[i] = least, to
	}
}

// arrive computes the cost of a crawl in period t and of the continuation. V, N and rho of the
// period are known.
func (u *dual) arrive(t int) {
	for i := range u.n {
		j := (t-1)*u.n + i
		u.steps[i*u.T+t-1].crawl = u.mu[t]*u.c[j] + u.N[t]*u.g[j] + u.value[t*u.n+i]
	}
}

// usage follows the cheapest paths, of old pages and of new ones if they are worth it.
func (u *dual) usage() {
	n, T := u.n, u.T
	clear(u.use)
	clear(u.flow)
	copy(u.flow, u.b0)
	known := u.m.New
	for t := 0; t <= T; t++ {
		if t > 0 {
			found := u.k[t]
			for i, x := range u.flow[t*n : (t+1)*n] {
				j := (t-1)*n + i
				u.use[t] += u.c[j] * x
				found += u.g[j] * x
			}
			if u.rho[t] > 0 {
				u.use[t] += u.d[t] * known
				for i := range n {
					u.flow[t*n+i] += u.p[i] * known
				}
				known *= u.h[t]
			}
			known += found
		}
		for i, to := range u.next[min(t, T-1)*n : (min(t, T-1)+1)*n] {
			if t < T && int(to) <= T {
				u.flow[int(to)*n+i] += u.flow[t*n+i]
			}
		}
	}
}

// collect adds the shares that the cheapest paths crawl.
func (u *dual) collect(weight float64) {
	n := u.n
	for t := 1; t <= u.T; t++ {
		for i := range n {
			if u.b0[i] > 0 {
				u.sum[(t-1)*n+i] += weight * min(1, u.flow[t*n+i]/u.b0[i])
			}
		}
	}
}

// draw gives each bucket its path in this trial with probability p.
func (u *dual) draw(p float64) {
	n, T := u.n, u.T
	for _, f := range u.rounded {
		for i := range n {
			if u.random.Float64() >= p {
				continue
			}
			for t := range T {
				f[t*n+i] = 0
			}
			for t := int(u.next[i]); t <= T; t = int(u.next[t*n+i]) {
				if f[(t-1)*n+i] = 1; t == T {
					break
				}
			}
		}
	}
}
