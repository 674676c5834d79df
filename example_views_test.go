package frontier_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/simclock"
)

// Why is nothing of a host handed out, and what waits?
func ExampleFrontier_Host() {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // yours is the system's
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	_, err = f.Add(ctx,
		frontier.Entry{URL: "http://example.org/1"},
		frontier.Entry{URL: "http://example.org/2"},
		frontier.Entry{URL: "http://www.example.org/", NotBefore: clock.Now().Add(time.Hour)},
	)
	if err != nil {
		log.Fatal(err)
	}
	lease, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := f.Done(lease, frontier.Outcome{RetryAfter: time.Minute}); err != nil {
		log.Fatal(err)
	}
	for h := range f.Hosts(frontier.Domain("example.org"), "") {
		fmt.Printf("%s: %d wait, not served now: %v\n", h.Host, h.Waiting, h.Reason)
	}
	for name := range f.HostNames(frontier.All(), "example.org") { // behind it
		fmt.Println("and", name)
	}
	h, err := f.Host(ctx, "example.org")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("again in", h.Until.Sub(clock.Now()))
	for u, err := range f.URLs(ctx, frontier.All(), "") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("waits:", u.Entry.URL)
	}
	s, err := f.Status(ctx, 0, "http://www.example.org/")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.State, "for", s.Until.UTC().Format(time.TimeOnly))
	urls := 0
	for _, err := range f.Scan(ctx) { // all that is held, whatever it waits for
		if err != nil {
			log.Fatal(err)
		}
		urls++
	}
	fmt.Println(urls, "URLs in all")
	// Output:
	// example.org: 1 wait, not served now: retry after
	// www.example.org: 0 wait, not served now: not before
	// and www.example.org
	// again in 1m0s
	// waits: http://example.org/2
	// scheduled for 01:00:00
	// 2 URLs in all
}
