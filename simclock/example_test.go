package simclock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/simclock"
)

// A week of a crawl that visits 1,000 pages of 50 hosts every six hours. It takes less than a second.
func Example() {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock, Delay: frontier.FixedDelay(time.Minute)})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for i := range 1000 {
		if _, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://host%d.example/%d", i%50, i)}); err != nil {
			log.Fatal(err)
		}
	}
	visits, early := 0, 0
	last := map[string]time.Time{} // contact of each host
	for end := clock.Now().Add(7 * 24 * time.Hour); clock.Now().Before(end); {
		lease, again, err := f.TryNext()
		if errors.Is(err, frontier.ErrNotDue) {
			clock.Set(again)
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		if clock.Now().Sub(last[lease.Host]) < time.Minute {
			early++
		}
		clock.Advance(20 * time.Millisecond) // the fetch
		last[lease.Host] = clock.Now()
		if err := f.Done(lease, frontier.Outcome{Next: clock.Now().Add(6 * time.Hour)}); err != nil {
			log.Fatal(err)
		}
		visits++
	}
	fmt.Println(visits, "visits,", early, "too early")
	// Output:
	// 28000 visits, 0 too early
}
