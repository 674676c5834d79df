// This file is the model of one page: how fresh its copy stays, what a fetch is worth, and when it
// is worth a given price.

package recrawl

import "math"

// Freshness returns the share of the time for which the copy of a page is up to date, if the page
// changes rate times per day (a Poisson process) and is fetched every interval days: (1 - e^-x)/x
// with x = rate * interval.
func Freshness(rate, interval float64) float64 {
	x := rate * interval
	if !(x > 0) {
		return 1
	}
	return -math.Expm1(-x) / x
}

// Index returns the value of a fetch of a page, in days of its weight, age days after the last one:
// V = weight/rate * (1 - e^-x (1+x)) with x = rate * age. It grows with age, towards weight/rate.
func Index(rate, weight, age float64) float64 { return weight / rate * worth(rate*age) }

// Interval returns after how many days the index of a page reaches price. It is infinite if that
// never happens: the page changes too fast for its weight to be kept fresh at this price.
func Interval(rate, weight, price float64) float64 {
	return unworth(math.Log(price*rate/weight)) / rate
}

// worth is g(x) = 1 - e^-x (1+x).
func worth(x float64) float64 {
	if x < 1e-3 {
		return x * x * (0.5 - x*(1./3-x/8))
	}
	return 1 - math.Exp(-x)*(1+x)
}

// unworth is the x > 0 with g(x) = e^y; infinite for y >= 0.
func unworth(y float64) float64 {
	if !(y < 0) {
		return math.Inf(1)
	}
	s := math.Sqrt(2 * math.Exp(y))
	x := s * (1 + s/3 + s*s*11/72)
	if s < 1e-3 {
		return x
	}
	if y > -0.5 { // towards e^-x (1+x) = 1 - e^y
		rest := -math.Expm1(y)
		x = -math.Log(rest)
		x += math.Log1p(x)
		for range 6 {
			x = -math.Log(rest) + math.Log1p(x)
		}
	}
	return newton(x, math.Exp(y))
}

// newton improves x for g(x) = v; g' is x e^-x.
func newton(x, v float64) float64 {
	for range 8 {
		e := math.Exp(-x)
		d := (1 - e*(1+x) - v) / (x * e)
		if !(math.Abs(d) > 1e-12*x) {
			break
		}
		x = max(x/2, x-d)
	}
	return x
}
