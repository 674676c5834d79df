// This file counts the pages of a host by the difference of their levels of rate and weight, in a
// hundredth of the space of the full histogram, since there may be many hosts.

package recrawl

import "math"

// binWidth is how many levels share a bin of a host's histogram.
const binWidth = 2

const bins = (differences + binWidth - 1) / binWidth

// spread is a histogram of pages by the difference of their levels, which alone determines how
// their demand depends on the price.
type spread struct {
	count [bins]int32
	rates [bins]float64 // sums
	pages int64
}

// add counts n pages and returns n; it returns 0 if they cannot be counted.
func (h *spread) add(s State, n int32) int64 {
	b := difference(s) / binWidth
	if h.count[b]+n < 0 {
		return 0 // it was never counted
	}
	h.count[b] += n
	h.pages += int64(n)
	h.rates[b] += float64(n) * rates[s[0]]
	if h.count[b] == 0 {
		h.rates[b] = 0
	}
	return int64(n)
}

// merge adds n times the counts of o.
func (h *spread) merge(o *spread, n int32) {
	h.pages += int64(n) * o.pages
	for b := range h.count {
		h.count[b] += n * o.count[b]
		h.rates[b] += float64(n) * o.rates[b]
		if h.count[b] == 0 {
			h.rates[b] = 0
		}
	}
}

// at is the pages' demand at e^shift times the price.
func (h *spread) at(p *prices, shift, least, most float64) float64 {
	sum := 0.
	if h.pages == 0 {
		return 0
	}
	first := shift/step + (binWidth-1)/2.
	for b, n := range h.count {
		if n == 0 {
			continue
		}
		f := h.rates[b] / p.between(first+binWidth*float64(b))
		sum += max(float64(n)*least, min(float64(n)*most, f))
	}
	return sum
}

// copied holds the weight of some pages, and how much of it is expected to be up to date.
type copied struct{ fresh, weight float64 }

func (c *copied) add(o copied, n float64) {
	c.fresh = max(0, c.fresh+n*o.fresh)
	c.weight = max(0, c.weight+n*o.weight)
}

// share is the share of the weight; of no pages it is 0.
func (c copied) share() float64 {
	if c.weight < leastWeight/2 { // left over by rounding
		return 0
	}
	return min(1, c.fresh/c.weight)
}

// copied returns the weights of the pages at e^shift times the price. It uses the mean rate and
// weight of each bin for its pages; their value depends on the difference.
func (h *spread) copied(p *prices, shift, least, most float64) (c copied) {
	if h.pages == 0 {
		return c
	}
	for b, n := range h.count {
		if n == 0 {
			continue
		}
		at := middle(b)
		rate := h.rate(b)
		weight := float64(n) * weightAt(rate, at)
		t := max(1/most, min(1/least, p.between(at+shift/step)/rate))
		c.fresh += weight * Freshness(rate, t)
		c.weight += weight
	}
	return c
}

// rate returns the mean rate of the pages of a bin that is not empty.
func (h *spread) rate(b int) float64 { return max(leastRate, h.rates[b]/float64(h.count[b])) }

// middle is the difference in the middle of a bin.
func middle(b int) float64 { return binWidth*float64(b) + (binWidth-1)/2. }

// weightAt is the weight of a page of a rate at a difference.
func weightAt(rate, at float64) float64 { return rate / leastRate * math.Exp(-step*(at-127)) }
