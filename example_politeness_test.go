// This example is what docs/politeness.md advises to set for whom.

package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed-7440039f/frontier"
)

// What to set for whom.
func Example_politeness() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	// A site of your own:
	err = f.UpdateRule(frontier.Domain("mine.example"), func(r *frontier.Rule) {
		r.Delay, r.Concurrency = frontier.FixedDelay(50*time.Millisecond), 4
	})
	if err != nil {
		log.Fatal(err)
	}
	// A site that complains, and a hoster that does:
	err = errors.Join(
		f.Pause(frontier.Domain("theirs.example")),
		f.SetGroup("203.0.113.7", frontier.GroupSettings{Delay: frontier.FixedDelay(10 * time.Second)}),
	)
	if err != nil {
		log.Fatal(err)
	}
	// A site that is larger than you want:
	err = errors.Join(
		f.UpdateRule(frontier.All(), func(r *frontier.Rule) {
			r.HostLimits = frontier.Limits{Served: 1000, Period: 24 * time.Hour}
		}),
		f.UpdateRule(frontier.Domain("theirs.example"), func(r *frontier.Rule) {
			r.Limits = frontier.Limits{Served: 100_000}
		}),
	)
	if err != nil {
		log.Fatal(err)
	}
	for s, r := range f.Rules() {
		fmt.Println(s, r.Delay != nil, r.Concurrency, r.Paused == frontier.On, r.Limits.Served, r.HostLimits.Served)
	}
	// Output:
	// * false 0 false 0 1000
	// *.mine.example true 4 false 0 0
	// *.theirs.example false 0 true 100000 0
}
