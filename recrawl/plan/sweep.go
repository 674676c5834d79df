// This file is one sweep of the descent: the value of a page in each period, and the distribution
// of the seconds.

package plan

import "slices"

// backward visits the periods from the last to the first, and distributes the seconds of each by
// gain, given the current shares of all other periods.
func (e *data) backward() {
	n := e.n
	for t := e.T; t >= 1; t-- {
		sum := 0.
		e.adjointAt(t)
		for i := range n {
			j := (t-1)*n + i
			sum += e.p[i] * e.beta[j]
			e.gain[i] = (e.pi[j]*e.shares[j] - e.news[t]*e.g[j]) / max(e.c[j], 1e-300)
		}
		known := e.m.New
		if t > 1 {
			known = e.known[t-1]
		}
		e.knapsack(t, known, (e.news[t]*(1-e.h[t])-sum)/max(e.d[t], 1e-300))
		for i := range n {
			if j := (t-1)*n + i; e.bs[j] > 0 {
				e.f[j] = e.x[j] / e.bs[j]
			}
		}
	}
}

// adjointAt computes the value of one more page at the end of a period from that at the end of the next one, if the
// shares f stay as they are.
func (e *data) adjointAt(t int) {
	n, first := e.n, (t-1)*e.n
	if t == e.T {
		copy(e.pi[first:], e.w[first:])
		clear(e.beta[first:])
		e.news[t] = e.v[t]
		return
	}
	sum := 0.
	for i := range n {
		j := first + i
		l := j + n // in the next period
		stay := 1 - e.f[l]
		e.pi[j] = e.w[j] + stay*(1-e.a[l])*e.pi[l]
		e.beta[j] = e.beta[l] + stay*e.a[l]*e.pi[l] + e.f[l]*e.g[l]*e.news[t+1]
		sum += e.p[i] * e.beta[l]
	}
	take := e.news[t+1]*(1-e.h[t+1]) - sum - e.rate[t+1]*e.d[t+1]
	e.news[t] = e.v[t] + e.news[t+1] - max(0, take)
}

// simulate visits the periods with the shares f, reduced where there are too few seconds. It
// returns the objective.
func (e *data) simulate() float64 {
	n := e.n
	copy(e.b, e.b0)
	copy(e.y, e.y0)
	known, value := e.m.New, 0.
	for t := 1; t <= e.T; t++ {
		first := (t - 1) * n
		z := known
		if cost := e.d[t] * z; cost > e.budget[t] {
			z = e.budget[t] / e.d[t]
		}
		cost := 0.
		for i := range n {
			cost += e.c[first+i] * e.f[first+i] * e.b[i]
		}
		scale := 1.
		if left := e.budget[t] - e.d[t]*z; cost > left {
			scale = max(0, left) / cost
		}
		known = known + (e.h[t]-1)*z + e.k[t] // in the order in which Evaluate adds
		for i := range n {
			j := first + i
			if e.c[j] > 0 {
				e.f[j] *= scale
			}
			e.bs[j], e.shares[j] = e.b[i], 0
			e.x[j] = e.f[j] * e.b[i]
			before := (1-e.a[j])*e.y[i] + e.a[j]*e.b[i]
			if e.b[i] > 0 {
				e.shares[j] = before / e.b[i]
			}
			known += e.g[j] * e.x[j]
			e.y[i] = (1 - e.f[j]) * before
			e.b[i] += e.p[i] * z
			value += e.w[j] * e.y[i]
		}
		e.z[t], e.known[t] = z, known
		value += e.v[t] * known
	}
	return value
}

// forward visits the periods, and distributes the seconds of each to the buckets and new pages by
// gain: the optimum for this period if the later shares stay. It returns the objective.
func (e *data) forward() float64 {
	n := e.n
	copy(e.b, e.b0)
	copy(e.y, e.y0)
	known, value := e.m.New, 0.
	for t := 1; t <= e.T; t++ {
		sum := 0.
		for i := range n {
			j := (t-1)*n + i
			e.before[i] = (1-e.a[j])*e.y[i] + e.a[j]*e.b[i]
			sum += e.p[i] * e.beta[j]
			e.bs[j], e.shares[j] = e.b[i], 0
			if e.b[i] > 0 {
				e.shares[j] = e.before[i] / e.b[i]
			}
			e.gain[i] = (e.pi[j]*e.shares[j] - e.news[t]*e.g[j]) / max(e.c[j], 1e-300)
		}
		newGain := (e.news[t]*(1-e.h[t]) - sum) / max(e.d[t], 1e-300)
		z := e.knapsack(t, known, newGain)
		known = known + (e.h[t]-1)*z + e.k[t] // in the order in which Evaluate adds
		for i := range n {
			j := (t-1)*n + i
			known += e.g[j] * e.x[j]
			e.f[j] = 0
			if e.b[i] > 0 {
				e.f[j] = e.x[j] / e.b[i]
			}
			e.y[i] = (1 - e.f[j]) * e.before[i]
			e.b[i] += e.p[i] * z
			value += e.w[j] * e.y[i]
		}
		e.z[t], e.known[t] = z, known
		value += e.v[t] * known
	}
	return value
}

// knapsack spends the seconds of a period where the gain per second is highest.
func (e *data) knapsack(t int, known, newGain float64) float64 {
	order := e.order[(t-1)*e.n : t*e.n] // as it was in the last sweep: it hardly changes
	slices.SortFunc(order, func(a, b int32) int {
		switch x, y := e.gain[a], e.gain[b]; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return int(a - b)
	})
	left := e.budget[t]
	z, pending := 0., known > 0 && newGain > 0
	e.rate[t] = 0
	takeNew := func() {
		pending = false
		z = known
		if cost := e.d[t] * known; cost > left {
			z = left / e.d[t]
			e.rate[t] = max(e.rate[t], newGain) // a bucket may have taken the last second
		}
		left -= z * e.d[t]
	}
	for _, i := range order {
		j := (t-1)*e.n + int(i)
		if pending && newGain >= e.gain[i] {
			takeNew()
		}
		if e.x[j] = 0; !(e.gain[i] > 0) || left <= 0 && e.c[j] > 0 {
			continue
		}
		x := e.bs[j]
		if cost := e.c[j] * x; cost > left {
			x = left / e.c[j]
			e.rate[t] = e.gain[i]
			left = 0
		} else {
			left -= cost
		}
		e.x[j] = x
	}
	if pending {
		takeNew()
	}
	return z
}
