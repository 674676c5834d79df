package importance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier"
)

// web is a small web: good hosts whose pages link to what is well known, and a farm whose hosts link to
// each other's first pages from all their pages.
type web struct {
	links [][]int
	host  []int
	spam  []bool
}

func newWeb(seed uint64) *web {
	const goodHosts, farmHosts, pages, leak = 200, 150, 40, 100
	r := rand.New(rand.NewPCG(seed, 1))
	w := &web{}
	for h := range goodHosts + farmHosts {
		for range pages {
			w.links, w.host, w.spam = append(w.links, nil), append(w.host, h), append(w.spam, h >= goodHosts)
		}
	}
	known := rand.NewZipf(r, 1.3, 20, goodHosts-1)
	for i := range w.links {
		h := w.host[i]
		for range 3 {
			w.links[i] = append(w.links[i], h*pages+r.IntN(pages)) // of its own host
		}
		for range 4 {
			to := int(known.Uint64())*pages + min(r.IntN(pages), r.IntN(pages))
			if w.spam[i] || r.IntN(leak) == 0 { // a good page's comment leads to the farm
				to = (goodHosts+r.IntN(farmHosts))*pages + r.IntN(8)
			}
			w.links[i] = append(w.links[i], to)
		}
	}
	return w
}

// crawl fetches pages in the order of their levels until n were fetched, and returns how many of them
// are spam, and the part of the cash that was fetched.
func (w *web) crawl(x *Estimator, n int) (spam int, covered float64) {
	const levels, rest = 8, 150
	var queues [levels + 1][]int
	at, weight := make([]int, len(w.links)), make([]float64, len(w.links)) // at: its level; -1: visited
	put := func(i, level int) {
		at[i] = level
		queues[level] = append(queues[level], i)
	}
	known, fetched, cash := 0.0, 0.0, make([]float64, len(w.links))
	get := func(i int, share float64) { // what pages that were visited get does not count
		if at[i] >= 0 {
			cash[i] += share
			known += share
		}
	}
	entry := func(i int) frontier.Entry {
		return frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", w.host[i], i), Depth: 1, Weight: weight[i]}
	}
	for i := range 20 {
		seed := 40 * i
		if i == 19 {
			seed = len(at) - 1 // somebody was deceived
		}
		x.Priority(entry(seed), frontier.History{})
		put(seed, levels)
		get(seed, stray)
	}
	ready := map[int]int{} // hosts rest for a while after each page
	for now := range n {
		page := -1
		for level := levels; level > 0 && page < 0; level-- {
			queues[level] = slices.DeleteFunc(queues[level], func(i int) bool { return at[i] != level }) // it has risen
			if k := slices.IndexFunc(queues[level], func(i int) bool { return ready[w.host[i]] <= now }); k >= 0 {
				page = queues[level][k]
			}
		}
		if page < 0 {
			continue
		}
		ready[w.host[page]] = now + rest
		at[page] = -1
		fetched += cash[page]
		if w.spam[page] {
			spam++
		}
		links := make([]frontier.Entry, len(w.links[page]))
		for k, to := range w.links[page] {
			links[k] = entry(to)
		}
		x.Visit(frontier.Lease{Entry: entry(page), Host: "h"}, true, links, nil)
		for k, to := range w.links[page] {
			level := x.Priority(links[k], frontier.History{})
			get(to, links[k].Weight)
			if at[to] == 0 {
				weight[to] = links[k].Weight
				put(to, level)
			} else if level := x.Found(links[k]); level > at[to] && at[to] > 0 {
				e := entry(to)
				e.Weight = x.Rise(e)
				if level := x.Priority(e, frontier.History{}); level > at[to] {
					weight[to] = e.Weight
					put(to, level)
				}
			}
		}
	}
	return spam, fetched / known
}

// Farms link to their pages as often as they like, but the trust of good pages does not grow by that.
func TestTrustAvoidsFarms(t *testing.T) {
	links, trust := 0, 0
	for seed := range uint64(3) {
		w := newWeb(seed)
		byLinks, _ := w.crawl(estimator(t, Options{Memory: 1 << 20}), 3000)
		byTrust, _ := w.crawl(estimator(t, Options{Memory: 1 << 20, Score: Trust}), 3000)
		links, trust = links+byLinks, trust+byTrust
	}
	t.Logf("spam among 9,000 pages: links %d, trust %d", links, trust)
	assert.Less(t, 3*trust, links)
}

// Covered is the part of the cash that was fetched, though what a few links give is not known before the
// visit.
func TestCovered(t *testing.T) {
	for _, n := range []int{300, 1000, 3000} {
		x := estimator(t, Options{Memory: 1 << 20, Score: Trust})
		_, covered := newWeb(1).crawl(x, n)
		assert.InDelta(t, covered, x.Counts().Covered, 0.01, "%d pages", n)
	}
	x := estimator(t, Options{Memory: 1 << 20})
	newWeb(1).crawl(x, 300)
	assert.Zero(t, x.Counts().Covered)
	assert.Zero(t, estimator(t, Options{Score: Trust}).Counts().Covered)
}

// What a second link gave is known at the visit, if the URL did not rise before.
func TestCoveredByAVisit(t *testing.T) {
	x := estimator(t, Options{Score: Trust})
	of := func(i int, share float64) frontier.Entry {
		e := entry(i)
		e.Weight = share
		return e
	}
	for _, e := range []frontier.Entry{of(1, 0.5), of(2, 1), of(1, 0.5)} {
		x.Priority(e, frontier.History{})
	}
	x.Found(of(1, 0.5))
	x.Visit(frontier.Lease{Entry: of(1, 0.5)}, true, nil, nil)
	assert.InEpsilon(t, 0.5, x.Counts().Covered, 0.01)
}
