// These examples show how to look into a frontier: hosts, and URLs.

package inspect_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/simclock"
)

// Why is nothing of a host handed out, and what waits?
func ExampleInspector_Host() {
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
	for h := range inspect.New(f).Hosts(scope.Domain("example.org"), "") {
		fmt.Printf("%s: %d wait, not served now: %v\n", h.Host, h.Waiting, h.Reason)
	}
	for name := range inspect.New(f).HostNames(scope.All(), "example.org") { // behind it
		fmt.Println("and", name)
	}
	h, err := inspect.New(f).Host(ctx, "example.org")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("again in", h.Until.Sub(clock.Now()))
	for u, err := range inspect.New(f).URLs(ctx, scope.All(), "") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("waits:", u.Entry.URL)
	}
	s, err := inspect.New(f).Status(ctx, frontier.Entry{URL: "http://www.example.org/"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.State, "for", s.Until.UTC().Format(time.TimeOnly))
	urls := 0
	for _, err := range inspect.New(f).Scan(ctx, scope.All()) { // all that is held, whatever it waits for
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

// The largest hosts, and those that come next.
func ExampleInspector_Largest() {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // yours is the system's
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for i := range 30 {
		urls := []frontier.Entry{{URL: fmt.Sprintf("http://big.example/%d", i), Depth: i}}
		if i < 5 {
			urls = append(urls, frontier.Entry{URL: fmt.Sprintf("http://www.big.example/%d", i), Depth: i})
		}
		if i == 29 {
			urls = append(urls, frontier.Entry{URL: "http://small.example/"})
		}
		if _, err := f.Add(ctx, urls...); err != nil {
			log.Fatal(err)
		}
	}
	for _, h := range inspect.New(f).Largest(2) {
		fmt.Println(h.Host, h.Waiting, h.Queues[0].Priority)
	}
	for h := range inspect.New(f).Hosts(scope.Domain("big.example"), "") { // in domain order
		fmt.Println(h.Host, "of big.example:", h.Reason)
	}
	coming, err := inspect.New(f).Upcoming(ctx, 3, true) // to look up their names ahead
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(coming), "come soon, all of priority", coming[2].Priority)

	lease, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := f.Done(lease, frontier.Outcome{Duration: time.Second}); err != nil {
		log.Fatal(err)
	}
	if coming, err = inspect.New(f).Upcoming(ctx, 3, false); err != nil {
		log.Fatal(err)
	}
	for _, u := range coming {
		fmt.Println("in", max(0, u.Due.Sub(clock.Now())))
	}
	// Output:
	// big.example 30 8
	// www.big.example 5 8
	// big.example of big.example: back queue
	// www.big.example of big.example: back queue
	// 3 come soon, all of priority 8
	// in 0s
	// in 0s
	// in 10s
}

// What waits, page by page, and what became of one URL.
func ExampleInspector_URLs() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for i := range 5 {
		if _, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i)}); err != nil {
			log.Fatal(err)
		}
	}
	after := ""
	for page := 1; ; page++ {
		n := 0
		for u, err := range inspect.New(f).URLs(ctx, scope.Domain("example"), after) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println("page", page, u.Entry.URL)
			if after = u.Cursor(); n == 2 { // fit for a query string
				break
			}
			n++
		}
		if n < 2 {
			break
		}
	}
	for _, u := range []string{"http://a.example/4", "http://a.example/5"} {
		s, err := inspect.New(f).Status(ctx, frontier.Entry{URL: u})
		fmt.Println(u, s.State, err)
	}
	// Output:
	// page 1 http://a.example/0
	// page 1 http://a.example/1
	// page 1 http://a.example/2
	// page 2 http://a.example/3
	// page 2 http://a.example/4
	// http://a.example/4 waiting <nil>
	// http://a.example/5 unknown <nil>
}

// With Options.Count the frontier counts the URLs of each host, and with Options.Keep those
// that are done, too.
func ExampleInspector_Counts() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Count: true, Keep: true})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	_, err = f.Add(ctx,
		frontier.Entry{URL: "http://a.example/1"},
		frontier.Entry{URL: "http://a.example/2"},
		frontier.Entry{URL: "http://b.example/", Finished: true},
	)
	if err != nil {
		log.Fatal(err)
	}
	q, ok, err := inspect.New(f).Counts("a.example", 0)
	fmt.Println(q.Waiting, "wait:", ok, err)
	for host, q := range inspect.New(f).Queues(0, "") {
		fmt.Printf("%s: %d waiting, %d finished\n", host, q.Waiting, q.Finished)
	}
	// Output:
	// 2 wait: true <nil>
	// a.example: 2 waiting, 0 finished
	// b.example: 0 waiting, 1 finished
}

// Politeness that is owed to another host than the URL's own.
func ExampleInspector_Status_host() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	e := frontier.Entry{URL: "doi:10.1000/182", Host: "api.example"}
	if _, err := f.Add(ctx, e); err != nil {
		log.Fatal(err)
	}
	s, err := inspect.New(f).Status(ctx, e)
	fmt.Println(s.State, s.Host, err)
	l, err := f.Next(ctx)
	fmt.Println(l.Entry.URL, l.Host, err)
	// Output:
	// waiting api.example <nil>
	// doi:10.1000/182 api.example <nil>
}
