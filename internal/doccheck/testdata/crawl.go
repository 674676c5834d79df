// This file is README.md's program, with a fetch of pages without links.

package main

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
)

func main() {
	if err := crawl(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func crawl(ctx context.Context) error {
	store, err := spill.Open("crawl", spill.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	f, err := frontier.Open(ctx, frontier.Options{Spill: store}) // without Spill: in memory
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://example.org/"}); err != nil {
		return err
	}
	for lease, err := range f.Leases(ctx) { // run many of these loops at once
		if err != nil {
			return err
		}
		outcome := fetch(ctx, lease) // yours: by lease.Deadline; its links have Depth: lease.Entry.Depth + 1
		if err := f.Done(lease, outcome); err != nil {
			return err
		}
	}
	return nil
}

func fetch(_ context.Context, lease frontier.Lease) frontier.Outcome {
	fmt.Println(lease.Entry.URL)
	return frontier.Outcome{}
}
