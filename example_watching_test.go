// This example shows how to watch a frontier.

package frontier_test

import (
	"context"
	"encoding/json"
	"expvar"
	"fmt"
	"log"

	"github.com/seed-7440039f/frontier"
)

// What happens in a frontier, and what it looks like from outside.
func ExampleOptions_onEvent() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{
		Retry:   frontier.Retries(1, 0), // give up at once
		OnEvent: func(e frontier.Event) { fmt.Println(e.Kind, e.URL, e.Failure) },
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
	if err := f.Close(); err != nil { // all events are told when it returns
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
