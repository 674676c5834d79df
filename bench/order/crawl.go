// This file crawls a graph with a real frontier, politely, in virtual time.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/importance"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
)

// config is what all crawls have in common.
type config struct {
	rate float64 // fetches in a tick
	seed uint64  // of the selectors
	disk int64   // memory of a frontier on disk; 0: in memory
	free bool    // pages are fetched while the frontier moves what has risen
	again
}

const (
	tick = time.Second
	rest = 10 // ticks, of a host after a page
)

// marks are the shares of the time at which a crawl is judged.
var marks = [...]float64{0.01, 0.05, 0.1, 0.3, 0.5}

// result is what a crawl has reached at each of the marks, and what it cost.
type result struct {
	worth  [len(marks)]float64 // share of the PageRank
	spam   [len(marks)]float64 // share of spam and traps among the pages
	pages  int                 // at the last mark
	moves  float64             // of waiting URLs, for each page known
	read   float64             // records looked at for them, for each page known
	cpu    time.Duration       // for each page, of everything
	memory float64             // bytes for each page known, of the frontier and the order
	took   time.Duration
}

// A crawl is under way. A page is known from its first link on, and waits until it is fetched.
type crawl struct {
	*graph
	*frontier.Frontier
	scorer           // nil: the frontier orders by itself
	reach    int     // pages
	start    []int32 // seeds
	fixed    bool    // the level at admission stays
	at       []uint8 // level at which a page waits or waited; 0: it is unknown
	fetched  []bool
	outlinks func(l *frontier.Lease, links []frontier.Entry) error // of an estimator, or nil
	moves    int                                                   // by Force
	closed   frontier.Stats                                        // of the frontier before the restart

	dir string                // of the frontier's store; empty: it is in memory
	db  *spill.Store          // or nil
	est *importance.Estimator // or nil
}

// A scorer is an exact order without bounds of memory: the level that each page deserves.
type scorer interface {
	visit(page int32) // it was fetched
	level(page int32) int
}

func (c *crawl) url(page int32) string {
	return "http://h" + strconv.Itoa(int(c.host[page])) + ".example/" + strconv.Itoa(int(page))
}

func pageOf(url string) int32 {
	n, err := strconv.Atoi(url[strings.LastIndexByte(url, '/')+1:])
	if err != nil {
		panic(err) // it is one of ours
	}
	return int32(n)
}

// run crawls a graph from seeds, in an order.
func (k *config) run(g *graph, seeds []int32, o *order) (r result, err error) {
	ctx, before := context.Background(), memory()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c := &crawl{graph: g, reach: g.reached(seeds), start: seeds, at: make([]uint8, g.pages()), fetched: make([]bool, g.pages())}
	if k.disk > 0 {
		c.dir, err = os.MkdirTemp("", "order")
		defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
		if err != nil {
			return r, err
		}
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.open(k, clock, o, ""); err != nil {
		return r, err
	}
	began, cpu := time.Now(), harness.CPUTime()
	if _, err := c.Add(ctx, c.entries(seeds, 0)...); err != nil {
		return r, err
	}
	if err := c.crawl(k, clock, o, &r); err != nil {
		return r, err
	}
	r.took, r.cpu = time.Since(began), (harness.CPUTime()-cpu)/time.Duration(r.pages)
	st := c.Stats()
	known := float64(st.Known)
	r.moves, r.read = float64(int64(c.moves)+c.closed.Risen+st.Risen)/known, float64(c.closed.Walked+st.Walked)/known
	r.memory = max(0, memory()-before) / known
	return r, c.Check()
}

func memory() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// crawl fetches until the last mark.
func (c *crawl) crawl(k *config, clock *simclock.Clock, o *order, r *result) error {
	var worth, rotten float64
	last := make([]int, c.hosts) // contact of each host
	mark, over := 0, false
	for t := 1; mark < len(marks); t++ {
		for n := int(float64(t)*k.rate) - int(float64(t-1)*k.rate); n > 0 && !over; n-- {
			l, _, err := c.TryNext()
			if over = errors.Is(err, frontier.ErrExhausted); over || errors.Is(err, frontier.ErrNotDue) {
				break
			}
			if err != nil {
				return err
			}
			p := pageOf(l.Entry.URL)
			host := &last[c.host[p]]
			if c.fetched[p] || *host > 0 && t-*host < rest {
				return fmt.Errorf("page %d at tick %d: its host was last asked at %d; fetched before: %t", p, t, *host, c.fetched[p])
			}
			c.fetched[p], *host = true, t
			r.pages++
			worth += c.worth[p]
			if c.kind[p] != good {
				rotten++
			}
			if c.scorer != nil {
				c.visit(p)
			}
			links := c.entries(c.out(p), l.Entry.Depth+1)
			if c.outlinks != nil {
				if err := c.outlinks(&l, links); err != nil {
					return err
				}
			}
			if err := c.Done(l, frontier.Outcome{Add: links}); err != nil {
				return err
			}
			if !k.free {
				c.settle()
			}
		}
		for ; mark < len(marks) && float64(t)*k.rate >= marks[mark]*float64(c.reach); mark++ {
			r.worth[mark], r.spam[mark] = worth, rotten/float64(max(1, r.pages))
		}
		clock.Advance(tick)
		if c.due(k, t) {
			if err := c.reopen(k, clock, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// entries returns links to pages for the frontier. A page that waits and has risen is forced.
func (c *crawl) entries(pages []int32, depth int) []frontier.Entry {
	entries := make([]frontier.Entry, 0, len(pages))
	for _, p := range pages {
		e, level := frontier.Entry{URL: c.url(p), Depth: depth}, uint8(1)
		if c.scorer != nil {
			level = uint8(c.scorer.level(p))
		}
		if c.at[p] == 0 {
			c.at[p] = level
		} else if !c.fetched[p] && !c.fixed && level > c.at[p] {
			c.at[p], e.Force = level, true
			c.moves++
		}
		entries = append(entries, e)
	}
	return entries
}
