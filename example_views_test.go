// These examples show counts and events.

package frontier_test

import (
	"context"
	"encoding/json"
	"expvar"
	"fmt"
	"log"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
)

// All figures. A log line shows them too (slog.Info("crawl", "frontier", s)), and
// package expvar: expvar.Func(func() any { return f.Stats() }).
func ExampleFrontier_Stats() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	_, err = f.Add(ctx, frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://a.example/1", Depth: 1})
	if err != nil {
		log.Fatal(err)
	}
	s := f.Stats()
	fmt.Println(s.Waiting, "waiting, by priority", s.WaitingBy)
	fmt.Println("budget kept:", s.MemoryBytes < 256<<20)
	// Output:
	// 2 waiting, by priority [0 0 0 0 0 0 1 1]
	// budget kept: true
}

// What happens in a frontier, and what it looks like from outside.
func ExampleOptions_onEvent() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{
		Retry:   frontier.Retries(1, 0), // give up at once
		OnEvent: func(e event.Event) { fmt.Println(e.Kind, e.URL, e.Failure) },
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	for l, err := range f.Leases(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if err := f.Done(l, frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureDNS}); err != nil {
			log.Fatal(err)
		}
	}
	if err := f.Close(); err != nil { // all events have been delivered when it returns
		log.Fatal(err)
	}
	v := expvar.Func(func() any { return f.Stats() }) // for expvar.Publish
	var seen struct {
		Added   int `json:"added"`
		GivenUp int `json:"given_up"`
	}
	if err := json.Unmarshal([]byte(v.String()), &seen); err != nil {
		log.Fatal(err)
	}
	fmt.Println(seen.Added, "added,", seen.GivenUp, "given up")
	// Output:
	// url given up http://a.example/ dns
	// 1 added, 1 given up
}

// Contact, Host and the rules take a host's key; HostKey finds it for a URL.
func ExampleFrontier_HostKey() {
	f, err := frontier.Open(context.Background(), frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	host, err := f.HostKey("https://A.example:8443/page")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(host)
	// Output: a.example
}
