// This example shows limits: for each host, for a domain, and how to see them.

package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed-7440039f/frontier"
)

// Two pages a day of each host, and a guard against traps.
func ExampleFrontier_UpdateRule_hostLimits() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(0)})
	if err != nil {
		log.Fatal(err)
	}
	err = errors.Join(
		f.UpdateRule(frontier.All(), func(r *frontier.Rule) {
			r.HostLimits = frontier.Limits{Served: 2, Period: 24 * time.Hour, Waiting: 3}
		}),
		f.UpdateRule(frontier.Host("big.example"), func(r *frontier.Rule) { r.HostLimits = frontier.Limits{Served: 1_000_000} }), // an exception
		f.UpdateRule(frontier.Domain("example"), func(r *frontier.Rule) { r.Limits = frontier.Limits{Bytes: 1 << 40} }),          // of all of them together
	)
	if err != nil {
		log.Fatal(err)
	}
	n, err := f.Add(ctx,
		frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2"},
		frontier.Entry{URL: "http://a.example/3"}, frontier.Entry{URL: "http://a.example/calendar/2999"},
	)
	fmt.Println(n, "added;", err)
	for l, _, err := f.TryNext(); err == nil; l, _, err = f.TryNext() {
		if err := f.Done(l, frontier.Outcome{Bytes: 1000}); err != nil {
			log.Fatal(err)
		}
	}
	h, err := f.Host(ctx, "a.example")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Waiting, "waits; reason:", h.Reason, "for", h.Until.Sub(h.Used.Since))
	used, _ := f.Used(frontier.Domain("example"))
	fmt.Println(used.Served, "pages,", used.Bytes, "bytes")
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 3 added; frontier: entry 3 "http://a.example/calendar/2999": limit reached: 3 URLs of host a.example wait, 3 may
	// 1 waits; reason: limit for 24h0m0s
	// 2 pages, 2000 bytes
}
