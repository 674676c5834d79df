// This file is what is known of single hosts: the price of those whose pages
// want more fetches than politeness allows, and the record of their claims.

package recrawl

// binWidth is how many levels share a bin of a host's histogram.
const binWidth = 2

const bins = (differences + binWidth - 1) / binWidth

// host is kept of hosts that have a rate or have made claims.
type host struct {
	most     float64 // fetches per day that politeness allows; 0: enough
	own      *spread // its pages, if it ever had a rate
	shift    float64 // its price is the price times e^shift; 0: it is not bound
	take     float64 // fetches per day that it takes if it is bound; else it is in Scheduler.free
	promised float64 // sum of 1/interval of its pages, per day
	blank    int64   // of its pages, those of which it is not known when they were fetched last
	wait     int64   // Dones until its price is found again

	hits, misses uint8  // claims that turned out true, and false
	pending      uint16 // claims that wait for their fetch
}

// spread is a histogram of pages by the difference of their levels, which alone
// decides how their demand depends on the price.
type spread struct {
	count [bins]int32
	rates [bins]float64 // sums
	pages int64
}

// add counts n pages, and returns n if they were.
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

// merge adds n times all that o counts.
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

// reprice finds the price of a host with pages of its own: the shift, and what
// they take.
func (h *host) reprice(p *prices, least, most float64) {
	h.wait = max(32, h.own.pages/16)
	d := h.own.at(p, 0, least, most)
	if h.most == 0 || d <= h.most {
		h.shift, h.take = 0, 0
		return
	}
	h.shift = solve(h.shift, h.most, 1e-9, mostPrice-leastPrice, func(shift float64) float64 { return h.own.at(p, shift, least, most) })
	h.take = h.most
}

// verified counts a claim that turned out true or false. Old ones fade.
func (h *host) verified(hit bool) {
	if h.hits == 255 || h.misses == 255 {
		h.hits /= 2
		h.misses /= 2
	}
	if hit {
		h.hits++
	} else {
		h.misses++
	}
}

// trust is the probability that a claim of the host is true.
func (h *host) trust() float64 {
	if h == nil {
		return 0.5
	}
	return float64(h.hits+1) / float64(int(h.hits)+int(h.misses)+2)
}
