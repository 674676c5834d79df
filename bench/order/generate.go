// This file makes webs with farms and traps.

package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// shape is what a web is made of.
type shape struct {
	pages       int
	spam, traps float64 // parts of the pages
	farm        [2]int  // least and most hosts of a farm
	seed        uint64
}

// web makes a graph. Hosts have Pareto sizes; a page links to the first pages of its host, to its children
// in the host's tree, and some link to other hosts: most of these links go to any host, some by Zipf. In a farm
// the pages link to hosts of the farm, and above all to its first one. A trap's pages link to ever more of it.
func (s shape) web() *graph {
	w := &weaver{graph: &graph{}, random: rand.New(rand.NewPCG(s.seed, 3))}
	spammed, trapped := int(s.spam*float64(s.pages)), int(s.traps*float64(s.pages))
	w.sites(s.pages - spammed - trapped)
	goods := w.hosts
	var farms [][2]int // first host, and that after the last
	for end := w.pages() + spammed; w.pages() < end; {
		from := w.hosts
		for n := s.farm[0] + w.random.IntN(s.farm[1]-s.farm[0]+1); n > 0 && w.pages() < end; n-- {
			w.site(min(int(23*math.Exp(1.15*w.random.NormFloat64()))+1, end-w.pages()), spam)
		}
		farms = append(farms, [2]int{from, w.hosts})
	}
	first := w.hosts
	for ; trapped > 0; trapped -= s.pages/95 + 1 {
		w.site(min(trapped, s.pages/95+1), trap)
	}
	w.weave(goods, first, farms)
	for range 20 {
		w.seeds = append(w.seeds, w.home[w.random.IntN(min(goods, 1+s.pages/280))]) // of the popular
	}
	slices.Sort(w.seeds)
	w.seeds = slices.Compact(w.seeds)
	w.reach = w.reached(w.seeds)
	w.rank()
	return w.graph
}

// weaver makes a graph.
type weaver struct {
	*graph
	random  *rand.Rand
	home    []int32 // first page of each host
	pagesOf []int
}

// sites makes good hosts with these numbers of pages, the popular ones first, which tend to be large.
func (w *weaver) sites(pages int) {
	type site struct {
		size int
		rank float64
	}
	var sites []site
	for left := pages; left > 0; {
		n := min(int(3.5*math.Pow(1-w.random.Float64(), -0.87)), left, pages/28)
		left -= n
		sites = append(sites, site{n, math.Log(float64(n)) + 1.5*w.random.NormFloat64()})
	}
	slices.SortFunc(sites, func(a, b site) int { return int(math.Copysign(1, b.rank-a.rank)) })
	for _, x := range sites {
		w.site(x.size, good)
	}
}

func (w *weaver) site(pages int, kind byte) {
	w.home = append(w.home, int32(w.pages()))
	w.pagesOf = append(w.pagesOf, pages)
	for range pages {
		w.kind = append(w.kind, kind)
		w.host = append(w.host, int32(w.hosts))
	}
	w.hosts++
}

// weave links the pages: hosts up to goods are good, those from traps on are traps.
func (w *weaver) weave(goods, traps int, farms [][2]int) {
	r := w.random
	var out []int32
	link := func(host, page int) { out = append(out, w.home[host]+int32(page)) }
	elsewhere := func() { // to a good host
		host := r.IntN(goods)
		if r.IntN(10) < 3 {
			host = int(math.Exp(r.Float64()*math.Log(float64(goods)+1))) - 1
		}
		host = min(host, goods-1)
		page := 0
		if r.IntN(5) < 2 {
			page = int(float64(w.pagesOf[host]) * math.Pow(r.Float64(), 3))
		}
		link(host, page)
	}
	farm := 0
	for host := range w.hosts {
		size, nav, children := w.pagesOf[host], 1+r.IntN(12), 3+r.IntN(10)
		if len(farms) > farm+1 && host >= farms[farm][1] {
			farm++
		}
		for page := range size {
			w.first = append(w.first, int32(len(w.links)))
			out = out[:0]
			if host >= traps {
				for _, by := range []int{-page, -1, 1, 2, 7, 30} {
					if 0 <= page+by && page+by < size {
						link(host, page+by)
					}
				}
			} else {
				for i := range min(nav, size) {
					link(host, i)
				}
				for i := page*children + 1; i <= (page+1)*children && i < size; i++ {
					link(host, i)
				}
				switch {
				case host >= goods:
					of := farms[farm]
					link(of[0], 0)
					for range r.IntN(8) {
						link(of[0]+r.IntN(of[1]-of[0]), 0)
					}
					if r.IntN(5) == 0 {
						elsewhere()
					}
				case r.IntN(3) == 0:
					for n := 1 + int(5*r.ExpFloat64()); n > 0; n-- {
						switch x := r.IntN(1000); {
						case len(farms) > 0 && x < 6:
							of := farms[r.IntN(len(farms))]
							link(of[0]+r.IntN(of[1]-of[0]), 0)
						case w.hosts > traps && x == 8 && r.IntN(4) == 0:
							link(traps+r.IntN(w.hosts-traps), 0)
						default:
							elsewhere()
						}
					}
				}
			}
			slices.Sort(out)
			w.links = append(w.links, slices.Compact(out)...)
		}
	}
	w.first = append(w.first, int32(len(w.links)))
}
