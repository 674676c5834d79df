// This example ends a crawl whose disk may answer no more.

package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed-7440039f/frontier"
)

// A shutdown that a stuck disk cannot hold up: a minute for all that is left.
func ExampleFrontier_CloseContext() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{}) // on a disk with Options.Spill
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	l, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	switch err := f.DoneContext(ctx, l, frontier.Outcome{}); {
	case errors.Is(err, frontier.ErrUnsettled):
		fmt.Println("the URL is finished or comes again: the next Open tells")
	case err != nil:
		fmt.Println("the URL comes again:", err)
	default:
		fmt.Println("the URL is finished")
	}
	if err := f.CloseContext(ctx); err != nil {
		log.Fatal(err) // what was begun goes on until the disk answers or the process ends
	}
	fmt.Println("closed")
	// Output:
	// the URL is finished
	// closed
}
