// Sequencers is Figure 1 of the WebFountain paper (Edwards, McCurley and Tomlin,
// "An adaptive model for optimizing performance of an incremental web crawler",
// WWW10 2001) on one frontier: an operator's queue above all others, sites that
// are crawled in turn, and for each of them a queue of pages never crawled and one
// of pages to be crawled again, mixed by a probability that is changed while the
// crawl runs. Minutes pass in a moment.
//
//	go run ./examples/sequencers
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/simclock"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal("sequencers: ", err)
	}
}

const (
	recrawl      = 1 // front queue of pages that are scheduled for a recrawl
	neverCrawled = 2

	workers = 30
	fetch   = 300 * time.Millisecond
	pause   = 10 * time.Second // of a site, after each fetch
)

// queue is the frontier's Prioritizer: it sees whether a page was ever crawled.
func queue(_ frontier.Entry, h frontier.History) int {
	if h.Visits == 0 {
		return neverCrawled
	}
	return recrawl
}

func run(w io.Writer) error {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	// CrawlNow needs no queue: what it adds comes before all of them.
	mix := selector.Mix(1, 1, 0)
	setP := func(p float64) error { return mix.Set(1-p, p) } // at any time; pages keep their queues
	f, err := frontier.Open(ctx, frontier.Options{
		Clock: clock, KeepOpen: true, Priorities: 2, Prioritizer: frontier.PrioritizerFunc(queue), Selector: mix,
		Delay: frontier.FixedDelay(pause),
		// Package recrawl/adapter has a better one.
		Scheduler: frontier.SchedulerFunc(func(v frontier.Visit) time.Time { return v.Outcome.Ended.Add(time.Minute) }),
	})
	if err != nil {
		return err
	}
	defer f.Close()
	for site := range 2000 {
		entries := make([]frontier.Entry, 25)
		for page := range entries {
			entries[page].URL = fmt.Sprintf("http://site%d.example/%d", site, page)
		}
		if _, err := f.Add(ctx, entries...); err != nil {
			return err
		}
	}
	c := &crawl{f: f, clock: clock, left: map[string]time.Time{}, gap: time.Hour}
	if err := setP(0.8); err != nil {
		return err
	}
	if err := c.run(2 * time.Minute); err != nil { // until there is something to crawl again
		return err
	}
	for _, p := range []float64{0.8, 0.3} {
		if err := setP(p); err != nil { // the crawl continues
			return err
		}
		c.fetches, c.fresh = 0, 0
		if err := c.run(90 * time.Second); err != nil {
			return err
		}
		fmt.Fprintf(w, "p = %.1f: %.0f%% of the fetches, to the nearest ten, were of pages never crawled\n", p, 10*math.Round(10*float64(c.fresh)/float64(c.fetches)))
	}
	active := f.Stats().Bound
	fmt.Fprintf(w, "about 1,000 sites are active: %v\n", active > 800 && active < 1200)
	fmt.Fprintf(w, "each site was left alone for 10 s or more: %v\n", c.gap >= pause)

	urgent := "http://operator.example/now"
	if _, err := f.CrawlNow(ctx, frontier.Entry{URL: urgent}); err != nil {
		return err
	}
	c.next = ""
	if err := c.run(fetch); err != nil {
		return err
	}
	fmt.Fprintf(w, "after CrawlNow the next fetch is of %s\n", c.next)
	return f.Check()
}

// crawl is the workers, and what they saw.
type crawl struct {
	f              *frontier.Frontier
	clock          *simclock.Clock
	out            []job // in order of their ends, since all fetches take as long
	left           map[string]time.Time
	gap            time.Duration
	fetches, fresh int
	next           string // the first URL fetched since it was ""
}

type job struct {
	lease frontier.Lease
	ends  time.Time
}

// run lets the workers continue for a while.
func (c *crawl) run(d time.Duration) error {
	for end := c.clock.Now().Add(d); ; {
		var at time.Time
		for len(c.out) < workers {
			lease, again, err := c.f.TryNext()
			if errors.Is(err, frontier.ErrNotDue) {
				at = again
				break
			}
			if err != nil {
				return err
			}
			c.begin(lease)
		}
		if len(c.out) > 0 && (at.IsZero() || c.out[0].ends.Before(at)) {
			at = c.out[0].ends
		}
		if at.After(end) {
			c.clock.Set(end)
			return nil
		}
		c.clock.Set(at)
		for len(c.out) > 0 && !c.out[0].ends.After(at) {
			done := c.out[0]
			c.out = c.out[1:]
			c.left[done.lease.Host] = at
			if err := c.f.Done(done.lease, frontier.Outcome{Result: frontier.Changed}); err != nil {
				return err
			}
		}
	}
}

func (c *crawl) begin(l frontier.Lease) {
	now := c.clock.Now()
	if left, ok := c.left[l.Host]; ok {
		c.gap = min(c.gap, now.Sub(left))
	}
	if c.next == "" {
		c.next = l.Entry.URL
	}
	c.fetches++
	if l.History.Visits == 0 {
		c.fresh++
	}
	c.out = append(c.out, job{l, now.Add(fetch)})
}
