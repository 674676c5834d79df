// This file proves how good a plan can be: the Lagrangian dual of the linear
// program over paths.
//
// A page of bucket i that was crawled in period s (0: it was there at the start)
// and next in t costs oldwt times the probability that it is obsolete in each of
// the periods s+1..t-1, and in t the price of the crawl: mu_t cconst_it, and
// oldnwt_it times N_t, the worth of a new page known at the end of t. V_i(s) is
// the cheapest way on from there. Duality gives
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
)

// dual is what the bound is computed with.
type dual struct {
	*data
	mu, use []float64 // price, and seconds that the cheapest paths take, by period from 1
	N, rho  []float64
	value   []float64 // V_i(t), by period 0..T, n each
	next    []int32   // the next crawl on the cheapest path; T+1: none
	wait    []float64 // cost of waiting, scratch by bucket
	odds    []float64 // that the page is up to date, scratch
	flow    []float64 // pages at a node, scratch
	sum     []float64 // shares crawled, summed over trials
}

// bound searches prices with a high bound, given a plan's objective. It leaves
// the shares that its paths crawl, on average, in f.
func (e *data) bound(ctx context.Context, objective float64, trials int) float64 {
	n, T := e.n, e.T
	u := &dual{data: e}
	for _, s := range []*[]float64{&u.mu, &u.use, &u.N, &u.rho} {
		*s = make([]float64, T+2)
	}
	u.value, u.next = make([]float64, n*(T+2)), make([]int32, n*(T+1))
	for _, s := range []*[]float64{&u.wait, &u.odds} {
		*s = make([]float64, n)
	}
	u.flow, u.sum = make([]float64, n*(T+1)), make([]float64, n*T)
	copy(u.mu, e.rate) // what the plan's last seconds gained
	best, bestMu := math.Inf(-1), make([]float64, T+2)
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
			u.evaluate()
		}
		if ctx.Err() != nil || theta < 1e-3 || objective-best <= 1e-6*math.Abs(objective) {
			break
		}
		norm := 0.
		for t := 1; t <= T; t++ {
			g := u.use[t] - e.budget[t]
			if u.mu[t] == 0 && g < 0 {
				g = 0
			}
			dir[t] = g + 0.6*dir[t]
			norm += dir[t] * dir[t]
		}
		if norm == 0 {
			break
		}
		if k >= trials/4 {
			u.collect(theta)
			averaged += theta
		}
		step := theta * (objective - d) / norm
		for t := 1; t <= T; t++ {
			u.mu[t] = max(0, u.mu[t]+step*dir[t])
		}
	}
	if averaged > 0 {
		for j := range e.f {
			e.f[j] = min(1, u.sum[j]/averaged)
		}
	}
	return best
}

// evaluate computes the bound for the prices, and what the cheapest paths use.
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

// paths finds V_i(s), for all buckets, from those of later periods. N and rho of
// later periods are known.
func (u *dual) paths(s int) {
	n, T := u.n, u.T
	value, next := u.value[s*n:(s+1)*n], u.next[s*n:(s+1)*n]
	for i := range n {
		u.wait[i], value[i], next[i] = 0, math.Inf(1), int32(T+1)
		u.odds[i] = 1
		if s == 0 && u.b0[i] > 0 {
			u.odds[i] = 1 - u.y0[i]/u.b0[i]
		}
	}
	for t := s + 1; t <= T; t++ {
		at := (t - 1) * n
		later := u.value[t*n : (t+1)*n]
		c, g, a, w := u.c[at:at+n], u.g[at:at+n], u.a[at:at+n], u.w[at:at+n]
		mu, N := u.mu[t], u.N[t]
		for i := range n {
			if v := u.wait[i] + mu*c[i] + N*g[i] + later[i]; v < value[i] {
				value[i], next[i] = v, int32(t)
			}
			u.odds[i] *= 1 - a[i]
			u.wait[i] += w[i] * (1 - u.odds[i])
		}
	}
	for i := range n {
		if u.wait[i] <= value[i] {
			value[i], next[i] = u.wait[i], int32(T+1)
		}
	}
}

// usage follows the cheapest paths, of old pages and of new ones if they pay.
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
