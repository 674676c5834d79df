// This file learns a page's rate of change from what its fetches found.
//
// The rate has a Gamma distribution. What a fetch tells is that no change came
// in an interval (exact), that the last one came at a known time (exact), or that
// there was at least one (the moments of the true posterior are matched).

package recrawl

import (
	"math"
)

// Gamma is a distribution of rates: of mean Alpha/Beta changes per day. Beta is
// in days.
type Gamma struct{ Alpha, Beta float64 }

// Mean is the expected rate, in changes per day.
func (g Gamma) Mean() float64 { return g.Alpha / g.Beta }

// Unchanged is the posterior if no change came in so many days.
func (g Gamma) Unchanged(days float64) Gamma { return Gamma{g.Alpha, g.Beta + days} }

// ChangedAt is the posterior if the last change came so many days ago, within
// the time looked at.
func (g Gamma) ChangedAt(ago float64) Gamma { return Gamma{g.Alpha + 1, g.Beta + ago} }

// Changed is the Gamma with the mean and variance of the posterior if at least
// one change came in so many days.
func (g Gamma) Changed(days float64) Gamma {
	ln := -math.Log1p(days / g.Beta) // of r = beta/(beta+T)
	r := math.Exp(ln)
	d0 := -math.Expm1(g.Alpha * ln) // D_k = 1 - r^(alpha+k)
	d1 := 1 - (1-d0)*r
	d2 := 1 - (1-d0)*r*r
	if d0 < 1e-6 { // T is nothing beside beta: one more change
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

// chance is the probability of a change in so many days.
func (g Gamma) chance(days float64) float64 {
	return -math.Expm1(-g.Alpha * math.Log1p(days/g.Beta))
}

// atMost forgets what is known beyond a confidence of alpha; the mean stays.
func (g Gamma) atMost(alpha float64) Gamma {
	if g.Alpha > alpha {
		return Gamma{alpha, alpha / g.Mean()}
	}
	return g
}

// belief is the distribution that a state stands for.
func (s State) belief() Gamma {
	a := s.Confidence()
	return Gamma{a, a / s.Rate()}
}
