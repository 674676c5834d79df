// This file learns the rate of change of a page from the results of its fetches.
//
// The rate has a Gamma distribution. A fetch shows that there was no change in an interval (exact),
// that the last change was at a known time (exact), or that there was at least one change (matching
// the moments of the true posterior).

package recrawl

import "math"

// Gamma is a distribution of rates with the mean Alpha/Beta changes per day. Beta is in days.
type Gamma struct{ Alpha, Beta float64 }

// Mean is the expected rate, in changes per day.
func (g Gamma) Mean() float64 { return g.Alpha / g.Beta }

// Unchanged returns the posterior after the given number of days without a change.
func (g Gamma) Unchanged(days float64) Gamma { return Gamma{g.Alpha, g.Beta + days} }

// ChangedAt returns the posterior if the last change was the given number of days ago, within the
// observed interval.
func (g Gamma) ChangedAt(ago float64) Gamma { return Gamma{g.Alpha + 1, g.Beta + ago} }

// Changed returns the Gamma with the mean and variance of the posterior after at least one change
// in the given number of days.
func (g Gamma) Changed(days float64) Gamma {
	ln := -math.Log1p(days / g.Beta) // of r = beta/(beta+T)
	r := math.Exp(ln)
	d0 := -math.Expm1(g.Alpha * ln) // D_k = 1 - r^(alpha+k)
	d1 := 1 - (1-d0)*r
	d2 := 1 - (1-d0)*r*r
	if d0 < 1e-6 { // T is negligible compared with beta: one more change
		return Gamma{g.Alpha + 1, g.Beta}
	}
	m1 := g.Alpha / g.Beta * d1 / d0
	m2 := g.Alpha * (g.Alpha + 1) / (g.Beta * g.Beta) * d2 / d0
	v := m2 - m1*m1
	if !(v > 0) {
		return g
	}
	return Gamma{m1 * m1 / v, m1 / v}
}

// chance returns the probability of a change in the given number of days.
func (g Gamma) chance(days float64) float64 { return -math.Expm1(-g.Alpha * math.Log1p(days/g.Beta)) }

// atMost limits the confidence to alpha; the mean stays.
func (g Gamma) atMost(alpha float64) Gamma {
	if g.Alpha > alpha {
		return Gamma{alpha, alpha / g.Mean()}
	}
	return g
}

// belief returns the distribution that a state stands for.
func (s State) belief() Gamma {
	a := s.Confidence()
	return Gamma{a, a / s.Rate()}
}
