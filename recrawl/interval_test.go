package recrawl_test

import (
	"math"
	"testing"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// The interval is the age at which the index reaches the price.
func TestIntervalIsWhereTheIndexReachesThePrice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := math.Exp(rapid.Float64Range(-9, 9).Draw(t, "rate"))
		weight := math.Exp(rapid.Float64Range(-9, 9).Draw(t, "weight"))
		price := math.Exp(rapid.Float64Range(-30, 20).Draw(t, "price"))
		at := recrawl.Interval(rate, weight, price)
		if price*rate >= weight {
			assert.True(t, math.IsInf(at, 1), "a page that changes too fast is never worth it")
			return
		}
		assert.Greater(t, at, 0.)
		if rest := 1 - price*rate/weight; rest > 1e-9 {
			assert.InEpsilon(t, price, recrawl.Index(rate, weight, at), 1e-6)
		}
	})
}

func TestFreshness(t *testing.T) {
	assert.Equal(t, 1., recrawl.Freshness(0, 10))
	assert.Equal(t, 1., recrawl.Freshness(1, 0))
	assert.InDelta(t, 1-1/math.E, recrawl.Freshness(1, 1), 1e-12)
	assert.InDelta(t, 0, recrawl.Freshness(1e4, math.Inf(1)), 1e-12)
	assert.InDelta(t, 1, recrawl.Freshness(1e-12, 1), 1e-11, "no digits are lost")
}

// The posterior is compared with the integral over all rates.
func TestChangedHasTheMomentsOfThePosterior(t *testing.T) {
	for _, g := range []recrawl.Gamma{{Alpha: 0.5, Beta: 15}, {Alpha: 3, Beta: 2}, {Alpha: 16, Beta: 400}} {
		for _, days := range []float64{0.1, 3, 100} {
			var m0, m1, m2 float64
			for y := -30.; y < 8; y += 1e-3 { // lambda = e^y, d lambda = lambda dy
				l := math.Exp(y)
				p := math.Exp(g.Alpha*y-g.Beta*l) * -math.Expm1(-l*days)
				m0 += p
				m1 += p * l
				m2 += p * l * l
			}
			mean := m1 / m0
			got := g.Changed(days)
			assert.InEpsilon(t, mean, got.Mean(), 1e-3, "%v after %v days", g, days)
			assert.InEpsilon(t, m2/m0-mean*mean, got.Alpha/got.Beta/got.Beta, 1e-3, "%v after %v days", g, days)
		}
	}
	assert.InEpsilon(t, 1.5/15, recrawl.Gamma{Alpha: 0.5, Beta: 15}.Changed(1e-12).Mean(), 1e-6, "at once")
}
