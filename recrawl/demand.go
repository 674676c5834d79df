// This file counts pages by rate and weight, and finds the price at which their demand for fetches
// meets a budget.
//
// Rates and weights have the same scale, so the interval of a page at a price depends only on the
// difference of its levels, and a table of 510 intervals serves all pages. The price follows from
// demand, never from how late fetches are: a price controlled by lateness oscillates.

package recrawl

import (
	"math"
	"sync"
)

const (
	differences = 255 + 127 + 127 + 1
	leastPrice  = -50. // of the logarithm
	mostPrice   = 25.
)

// prices are the intervals of all pages at one price.
type prices struct {
	log float64              // of the price
	x   [differences]float64 // rate * interval by rate level - weight level + 127; infinite: never
	out int                  // from this difference on
}

// fineness is the number of entries of the fine table per step.
const fineness = 16

// fine is unworth from -70 to 0, in steps of step/fineness. It never changes.
var fine = sync.OnceValue(func() []float64 {
	t := make([]float64, int(70/step*fineness)+1)
	for i := range t {
		t[i] = unworth(-70 + step/fineness*float64(i))
	}
	return t
})

// set computes the intervals at a price of e^log. Between the entries of the fine
// table a straight line is wrong by a millionth; near 0 it is computed.
func (p *prices) set(log float64) {
	p.log = log
	first := log + math.Log(leastRate) - 127*step
	p.out = differences
	t := fine()
	at := (first + 70) / step * fineness
	i := int(at)
	f := at - float64(i)
	for d := range p.x {
		switch y := first + step*float64(d); {
		case y >= 0:
			p.out = min(p.out, d)
			p.x[d] = math.Inf(1)
		case y > -0.2:
			p.x[d] = unworth(y)
		default:
			p.x[d] = t[i]*(1-f) + t[i+1]*f
		}
		i += fineness
	}
}

// difference is a page's place in prices.
func difference(s State) int { return int(s[0]) - int(int8(s[2])) + 127 }

// interval is the page's at the price times e^shift, in days, not held in bounds.
func (p *prices) interval(s State, shift float64) float64 {
	d := difference(s)
	if shift == 0 {
		return p.x[d] / rates[s[0]]
	}
	return p.between(float64(d)+shift/step) / rates[s[0]]
}

// between is x at a difference that is not whole, or beyond the table.
func (p *prices) between(at float64) float64 {
	switch i := int(at); {
	case i+1 < p.out:
		f := at - float64(i)
		return p.x[i]*(1-f) + p.x[i+1]*f
	case p.out == differences:
		return unworth(p.log + math.Log(leastRate) + step*(at-127))
	}
	return math.Inf(1)
}

// demand is a histogram of pages by rate and weight. Pages of weight 0 are not in it.
type demand struct {
	cells [256][256]int32 // by rate level, by weight level + 128
	low   [256]uint8      // of a rate, the weights in use
	high  [256]uint8
	pages int64
	fresh [256]int64 // never crawled, by weight level + 128; not in cells
	news  int64      // the sum of fresh
	prior byte       // their rate level
	free  spread     // pages of hosts with a rate that does not bind them
}

func (d *demand) add(s State, n int32) {
	w := s[2] ^ 0x80
	if w == 0 {
		return
	}
	row := &d.cells[s[0]]
	if row[w]+n < 0 {
		return // a page that was never counted
	}
	switch {
	case d.high[s[0]] == 0:
		d.low[s[0]], d.high[s[0]] = w, w
	case w < d.low[s[0]]:
		d.low[s[0]] = w
	case w > d.high[s[0]]:
		d.high[s[0]] = w
	}
	row[w] += n
	d.pages += int64(n)
}

func (d *demand) addNew(s State, n int64) {
	w := s[2] ^ 0x80
	if w == 0 || d.fresh[w]+n < 0 {
		return
	}
	d.fresh[w] += n
	d.news += n
}

// at returns the demand, in fetches per day, at a price, with intervals limited to [1/most,
// 1/least] days: that of the known pages, and the later demand of the never-crawled pages that are
// worth a fetch.
func (d *demand) at(p *prices, least, most float64) float64 {
	sum := d.known(p, least, most)
	if d.news == 0 {
		return sum
	}
	rate := rates[d.prior]
	for w, n := range d.fresh {
		if n != 0 {
			sum += float64(n) * min(most, rate/p.x[int(d.prior)-w+255])
		}
	}
	return sum
}

// known is the demand of the known pages.
func (d *demand) known(p *prices, least, most float64) float64 {
	sum := d.free.at(p, 0, least, most)
	for r := range d.cells {
		if d.high[r] == 0 {
			continue
		}
		rate := rates[r]
		row := &d.cells[r]
		low, high := 0, 0 // range of rates in use
		for w := int(d.low[r]); w <= int(d.high[r]); w++ {
			if n := row[w]; n != 0 {
				sum += float64(n) * max(least, min(most, rate/p.x[r-w+255]))
				if high = w; low == 0 {
					low = w
				}
			}
		}
		d.low[r], d.high[r] = uint8(low), uint8(high)
	}
	return sum
}

// worthNew returns the number of never-crawled pages that are worth the price. They have no copy,
// however long they wait, so their index is the greatest possible.
func (d *demand) worthNew(p *prices) (n int64) {
	if d.news == 0 {
		return 0
	}
	for w, k := range d.fresh {
		if k != 0 && int(d.prior)-w+255 < p.out {
			n += k
		}
	}
	return n
}

// copied is how fresh the copy of the known pages is at a price.
func (d *demand) copied(p *prices, least, most float64) copied {
	c := d.free.copied(p, 0, least, most)
	for r := range d.cells {
		for w := int(d.low[r]); w <= int(d.high[r]) && d.high[r] != 0; w++ {
			if n := d.cells[r][w]; n != 0 {
				t := max(1/most, min(1/least, p.x[r-w+255]/rates[r]))
				weight := float64(n) * math.Exp(step*float64(w-128))
				c.fresh += weight * Freshness(rates[r], t)
				c.weight += weight
			}
		}
	}
	return c
}

// solve finds the lowest price whose demand is at most target, starting from the price of p. It
// takes about 8 evaluations, at most 60.
func (d *demand) solve(p *prices, target, least, most float64) {
	solve(p.log, target, leastPrice, mostPrice, func(log float64) float64 {
		p.set(log)
		return d.at(p, least, most)
	})
}

// solve finds where the decreasing function f crosses target, between lowest and highest. Its last
// call of f is with the result. All values are logarithms of the price.
func solve(start, target, lowest, highest float64, f func(log float64) float64) float64 {
	low, high := start, start
	fLow := f(start)
	fHigh := fLow
	for w := 0.05; fLow <= target && low > lowest; w *= 3 {
		high, fHigh = low, fLow
		low = max(lowest, low-w)
		fLow = f(low)
	}
	for w := 0.05; fHigh > target && high < highest; w *= 3 {
		low, fLow = high, fHigh
		high = min(highest, high+w)
		fHigh = f(high)
	}
	for i := 0; i < 40 && high-low > 3e-5; i++ {
		mid := (low + high) / 2
		if i%3 != 2 && fLow > fHigh { // by proportion, within the middle
			mid = low + (high-low)*max(0.02, min(0.98, (fLow-target)/(fLow-fHigh)))
		}
		v := f(mid)
		if v > target {
			low, fLow = mid, v
		} else {
			high, fHigh = mid, v
		}
		if math.Abs(v-target) <= 3e-4*target {
			return mid
		}
	}
	f(high)
	return high
}
