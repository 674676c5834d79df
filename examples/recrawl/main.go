// Recrawl keeps a copy of a site fresh with a frontier whose scheduler is package recrawl's: it
// learns from each Done, decides when to fetch the page again, and decides once more when that time
// has come. A year passes in a moment.
//
//	go run ./examples/recrawl
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/seed-7440039f/frontier/recrawl/adapter"
	"github.com/seed-7440039f/frontier/simclock"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal("recrawl: ", err)
	}
}

const perDay = 10 // fetches

// site is a hundred pages; the n-th changes about every n days.
type site struct{ next [100]time.Time }

func (s *site) changed(r *rand.Rand, page int, now time.Time) bool {
	changed := false
	for !s.next[page].After(now) {
		from := s.next[page]
		if from.IsZero() {
			from = now
		}
		s.next[page] = from.Add(time.Duration(r.ExpFloat64()*float64(page+1)*24) * time.Hour)
		changed = true
	}
	return changed
}

func run(w io.Writer) error {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock, random := simclock.New(start), rand.New(rand.NewPCG(1, 2))
	s, err := recrawl.New(recrawl.Options{Budget: perDay / 86400., Seed: 1})
	if err != nil {
		return err
	}
	f, err := frontier.Open(context.Background(), frontier.Options{
		Clock: clock, KeepOpen: true, Delay: frontier.FixedDelay(time.Minute), Scheduler: adapter.New(s, adapter.Options{}),
	})
	if err != nil {
		return err
	}
	defer f.Close()
	var entries []frontier.Entry
	for i := range 100 {
		entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://site.example/%d", i)})
	}
	if _, err := f.Add(context.Background(), entries...); err != nil {
		return err
	}
	var web site
	var fetches [100]int
	for day := 0; day < 365; day++ {
		for range perDay {
			clock.Advance(24 * time.Hour / perDay)
			if err := visit(f, func(page int) bool {
				fetches[page]++
				return web.changed(random, page, clock.Now())
			}); err != nil {
				return err
			}
		}
	}
	for _, n := range []int{1, 3, 10, 30, 100} {
		fmt.Fprintf(w, "a page that changes each %3d days was fetched %3d times\n", n, fetches[n-1])
	}
	fmt.Fprintf(w, "visits put off: %d\n", f.Stats().Done[frontier.PutOff])
	fmt.Fprintf(w, "expected freshness of the copy: %.0f%%\n", 100*s.Stats().Freshness)
	return f.Check()
}

// visit fetches the next page that is due and worth it, if there is one.
func visit(f *frontier.Frontier, fetch func(page int) (changed bool)) error {
	lease, _, err := f.TryNext()
	if errors.Is(err, frontier.ErrNotDue) {
		return nil
	}
	if err != nil {
		return err
	}
	var n int
	if _, err := fmt.Sscanf(lease.Entry.URL, "http://site.example/%d", &n); err != nil {
		return err
	}
	out := frontier.Outcome{Result: frontier.Unchanged}
	if fetch(n) {
		out.Result = frontier.Changed
	}
	return f.Done(lease, out)
}
