package recrawl_test

import (
	"fmt"
	"log"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
)

// A hundred fetches a day for a thousand pages, some of which change every day, some every month
// and some every year.
func Example() {
	s, err := recrawl.New(recrawl.Options{Budget: 100. / (24 * 60 * 60)})
	if err != nil {
		log.Fatal(err)
	}
	now := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	lifetimes := []float64{0.2, 30, 365} // days
	var pages []recrawl.Page
	for i := range 999 {
		p := recrawl.Page{State: recrawl.Known(1/lifetimes[i%3], 1), Due: now}
		pages = append(pages, s.Learn(p))
	}
	for i, p := range pages {
		pages[i], _ = s.Done(p, recrawl.Visit{At: now, Outcome: recrawl.Visited})
	}
	for i, lifetime := range lifetimes {
		every := s.Interval(pages[i])
		fmt.Printf("changes each %5.1f days: fetched each %3.0f days\n", lifetime, every.Hours()/24)
	}
	x := s.Stats()
	fmt.Printf("demand %.0f of %.0f fetches a day; %.0f%% of the copy is up to date\n", x.Demand*86400, x.Budget*86400, 100*x.Freshness)
	// Output:
	// changes each   0.2 days: fetched each 365 days
	// changes each  30.0 days: fetched each   4 days
	// changes each 365.0 days: fetched each  14 days
	// demand 100 of 100 fetches a day; 64% of the copy is up to date
}

// A life of a page: found, changed, probed and quiet, gone.
func ExampleScheduler_Done() {
	s, err := recrawl.New(recrawl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	now := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	p, v := s.Admit(1, 1, now)
	for _, o := range []recrawl.Outcome{recrawl.Changed, recrawl.Changed, recrawl.Unchanged, recrawl.Gone, recrawl.Gone} {
		at := p.Due
		p, v = s.Done(p, recrawl.Visit{At: at, Outcome: o})
		fmt.Printf("again after %v, drop %v: %v\n", p.Due.Sub(at).Round(time.Hour), v.Drop, p.State)
	}
	// Output:
	// again after 207h0m0s, drop false: 0.0323 changes/day (alpha 0.5), weight 1, unproven
	// again after 1h0m0s, drop false: 0.077 changes/day (alpha 1.4), weight 1, probing
	// again after 142h0m0s, drop false: 0.077 changes/day (alpha 1.4), weight 1, probed
	// again after 142h0m0s, drop false: 0.077 changes/day (alpha 1.4), weight 1, gone
	// again after 720h0m0s, drop true: 0.077 changes/day (alpha 1.4), weight 1, gone
}
