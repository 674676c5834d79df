// This file holds the orders that are compared.

package main

import (
	"math"
	"math/bits"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/selector"
)

// order is a way to decide which page comes first.
type order struct {
	name string
	open func(c *crawl, seed uint64, o *frontier.Options)
}

const levels = 8

var orders = []order{
	{"default", func(_ *crawl, seed uint64, o *frontier.Options) { o.Selector = selector.BiasedRandom(seed) }},
	{"bfs", func(_ *crawl, _ uint64, o *frontier.Options) { o.Priorities, o.Selector = 64, selector.Strict() }},
	{"round robin", func(_ *crawl, _ uint64, o *frontier.Options) { o.Prioritizer = frontier.Constant(1) }},
	exact("in-links exact", newInlinks),
	exact("in-links at admission", func(c *crawl) scorer {
		c.fixed = true
		return newInlinks(c)
	}),
	exact("trust exact", newTrust),
	exact("oracle", func(c *crawl) scorer { return oracle{c} }),
}

// exact is an order of the bench's own.
func exact(name string, open func(c *crawl) scorer) order {
	return order{name, func(c *crawl, _ uint64, o *frontier.Options) {
		c.scorer = open(c)
		o.Selector = selector.Strict()
		o.Prioritizer = frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int { return int(c.at[pageOf(e.URL)]) })
	}}
}

// inlinks counts the links that were found to each page. Level 2 begins with 3 links, level 3 with 7, and so on.
type inlinks struct {
	*crawl
	links []int32
}

func newInlinks(c *crawl) scorer { return &inlinks{c, make([]int32, c.pages())} }

func (s *inlinks) visit(page int32) {
	for _, t := range s.out(page) {
		s.links[t]++
	}
}

func (s *inlinks) level(page int32) int {
	return max(1, min(levels, bits.Len32(uint32(s.links[page]+1))-1))
}

// trust is cash from the seeds times the square of the in-links. A page that is fetched passes 0.85 of
// its cash to its links; what it gets later stays with it. Levels are shares of the pages that wait.
type trust struct {
	inlinks
	cash    []float64
	step    []uint8 // of the score of each page that waits; 0: it does not
	waiting [256]int
	levels  [256]uint8 // of each step
	visits  int
}

func newTrust(c *crawl) scorer {
	t := &trust{inlinks: inlinks{c, make([]int32, c.pages())}, cash: make([]float64, c.pages()), step: make([]uint8, c.pages())}
	for _, p := range c.start {
		t.cash[p] = 1
	}
	return t
}

func (s *trust) visit(page int32) {
	s.inlinks.visit(page)
	if i := s.step[page]; i > 0 {
		s.waiting[i]--
		s.step[page] = 0
	}
	links := s.out(page)
	for _, t := range links {
		s.cash[t] += 0.85 * s.cash[page] / float64(len(links))
	}
	s.cash[page] = 0
	for _, t := range links {
		if s.fetched[t] {
			continue
		}
		if i := s.step[t]; i > 0 {
			s.waiting[i]--
		}
		links := float64(s.links[t])
		s.step[t] = uint8(max(1, min(255, 200+4*math.Log2(s.cash[t]*links*links))))
		s.waiting[s.step[t]]++
	}
	if s.visits++; s.visits%100 == 1 {
		s.divide()
	}
}

// divide puts 30 % of what waits into the lowest level, and half of the rest into each next one.
func (s *trust) divide() {
	all, sum, level, limit := 0, 0, 1, 0.3
	for _, n := range s.waiting {
		all += n
	}
	for i, n := range s.waiting {
		s.levels[i] = uint8(level)
		for sum += n; level < levels && float64(sum) >= limit*float64(all); level++ {
			limit += (1 - limit) / 2
		}
	}
}

func (s *trust) level(page int32) int { return max(1, int(s.levels[s.step[page]])) }

// oracle knows the PageRank of each page.
type oracle struct{ *crawl }

func (oracle) visit(int32) {}
func (o oracle) level(page int32) int {
	return max(1, min(levels, 3+int(math.Floor(math.Log2(o.worth[page]*float64(o.pages()))))))
}
