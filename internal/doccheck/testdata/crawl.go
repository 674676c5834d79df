// This file is README.md's program, with a fetch of pages without links.

package main

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
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
	f, err := frontier.Open(ctx, frontier.Options{
		Spill:     store, // without it: in memory
		Normalize: urlnorm.New().Normalize,
	})
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://example.org/"}); err != nil {
		return err
	}
	return f.Work(ctx, 100, func(ctx context.Context, lease frontier.Lease) (frontier.Outcome, error) {
		links, err := fetch(ctx, lease.Entry.URL) // yours
		if err != nil {
			return frontier.Outcome{Result: frontier.Failed}, nil // it is tried again; an error would stop the crawl
		}
		out := frontier.Outcome{}
		for _, u := range links { // absolute URLs: a relative one stops Work
			out.Add = append(out.Add, frontier.Entry{URL: u}) // a page's links are of its crawl, one deeper
		}
		return out, nil
	})
}

func fetch(_ context.Context, url string) (links []string, err error) {
	fmt.Println(url)
	return nil, nil
}
