// This file gives a web links, and the crawler weights that it estimates from these.

package recrawlsim

import (
	"fmt"
	"math/rand/v2"
	"sort"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/importance"
)

// links are the links of a web. Half of a good page's lead to its host, the others to good pages by their weight, and one
// in a hundred to spam. Those of spam lead to other spam at random, differently at each fetch, and one in five to a good page.
type links struct {
	w      *web
	ofHost [][]int32
	good   []int32
	sums   []float64 // of the weights of good, up to each
	bad    []int32
	rng    *rand.Rand // of spam
}

const linksOfPage = 10

func newLinks(w *web) *links {
	l := &links{w: w, ofHost: make([][]int32, w.Hosts), rng: rand.New(rand.NewPCG(w.Seed, 5))}
	sum := 0.
	for i := range w.pages {
		p := &w.pages[i]
		l.ofHost[p.host] = append(l.ofHost[p.host], int32(i))
		if p.kind == spam {
			l.bad = append(l.bad, int32(i))
			continue
		}
		sum += p.weight
		l.good, l.sums = append(l.good, int32(i)), append(l.sums, sum)
	}
	return l
}

// of returns the pages to which a page links.
func (l *links) of(page int) []int32 {
	r, out := l.rng, make([]int32, linksOfPage)
	wicked := l.w.pages[page].kind == spam
	if !wicked {
		r = rand.New(rand.NewPCG(l.w.Seed, uint64(page)<<8))
	}
	for i := range out {
		switch {
		case len(l.bad) > 0 && (wicked && r.IntN(5) > 0 || !wicked && r.IntN(100) == 0):
			out[i] = l.bad[r.IntN(len(l.bad))]
		case !wicked && i%2 == 0:
			own := l.ofHost[l.w.pages[page].host]
			out[i] = own[r.IntN(len(own))]
		default:
			n := sort.SearchFloat64s(l.sums, r.Float64()*l.sums[len(l.sums)-1])
			out[i] = l.good[min(n, len(l.good)-1)]
		}
	}
	return out
}

// estimated is ours with weights from package importance alone. A page of spam counts as useless or not once and for all.
type estimated struct {
	*ours
	links  *links
	est    *importance.Estimator
	weight []float64 // of each page's Entry; -1: no link was found
	visits []int
	seen   float64 // part of spam that counts as useless
}

// Estimated gives the pages weights by an importance.Estimator that learns from the links of each fetch. useless is the part of spam
// that the crawler takes for useless pages.
func Estimated(score importance.Score, useless float64) func(*Web) Policy {
	return func(x *Web) Policy {
		est, err := importance.New(importance.Options{Score: score, Memory: 1 << 20, Key: x.w.Seed, Keep: true})
		if err != nil {
			panic(err) // the options are ours
		}
		e := &estimated{ours: newOurs(x, false), links: newLinks(x.w), est: est, weight: make([]float64, x.w.Pages), visits: make([]int, x.w.Pages), seen: useless}
		for i := range e.weight {
			e.weight[i] = -1
			e.pages[i] = e.s.Reweigh(e.pages[i], 1, start)
		}
		for i := range seeds {
			e.weight[e.seed(i)] = 0
		}
		return e
	}
}

const seeds = 10

// seed returns one of the seeds, which are good pages with great weights.
func (e *estimated) seed(i int) int32 {
	l := e.links
	n := sort.SearchFloat64s(l.sums, (float64(i)+0.5)/seeds*l.sums[len(l.sums)-1])
	return l.good[n]
}

func (e *estimated) entry(page int32) frontier.Entry {
	x := frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", e.w.pages[page].host, page), Depth: 1, Weight: max(0, e.weight[page])}
	for i := range seeds {
		if e.seed(i) == page {
			x.Depth = 0
		}
	}
	return x
}

func (e *estimated) Done(i int, v Visit) float64 {
	page, h := int32(i), frontier.History{Visits: e.visits[i]}
	host := fmt.Sprintf("h%d.example", e.w.pages[i].host)
	to := e.links.of(i)
	found := make([]frontier.Entry, len(to))
	for k, t := range to {
		found[k] = e.entry(t)
	}
	useless := e.w.pages[i].kind == spam && rand.New(rand.NewPCG(e.w.Seed, uint64(i)<<8+1)).Float64() < e.seen
	e.est.Visit(frontier.Lease{Entry: e.entry(page), Host: host, History: h}, !useless, found, nil)
	weight := e.est.Weight(e.entry(page), h)
	for k, t := range to {
		if e.weight[t] < 0 {
			e.weight[t] = found[k].Weight
			e.est.Priority(found[k], frontier.History{})
			continue
		}
		e.est.Found(found[k])
	}
	e.visits[i]++
	if w := e.pages[i].State.Weight(); weight < 0.92*w || weight > 1.08*w {
		e.pages[i] = e.s.Reweigh(e.pages[i], weight, at(v.Now))
	}
	return e.ours.Done(i, v)
}
