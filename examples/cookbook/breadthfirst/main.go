// Command breadthfirst fetches all pages of a depth before any that is deeper.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/examples/cookbook/site"
	"github.com/seed-7440039f/frontier/selector"
)

func run(ctx context.Context, out io.Writer) error {
	web := site.Start(site.Pages{
		"http://a.example/":    site.Links("/1", "/2", "http://b.example/"),
		"http://a.example/1":   site.Links("/1/1", "/1/2"),
		"http://a.example/2":   site.Links("/2/1"),
		"http://b.example/":    site.Links("http://a.example/1/2", "/deep"),
		"http://a.example/1/1": "", "http://a.example/1/2": "", "http://a.example/2/1": "",
	}, nil)
	defer web.Close()

	const levels = 64 // what is deeper is all of one priority
	f, err := frontier.Open(ctx, frontier.Options{
		Priorities:  levels,
		Prioritizer: frontier.ByDepth(levels),
		Selector:    selector.Strict(),
		Delay:       frontier.FixedDelay(0), // it is our own web
	})
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := crawler.New(f, crawler.Options{
		Workers: 1,
		Fetcher: web.Fetcher(),
		Scope:   crawler.Scope{MaxDepth: 2},
		OnPage: func(_ context.Context, p *crawler.Page) error {
			fmt.Fprintln(out, p.Lease.Entry.Depth, p.Status, p.URL)
			return nil
		},
	})
	if err != nil {
		return err
	}
	if _, err := c.Seed(ctx, "http://a.example/"); err != nil {
		return err
	}
	return c.Run(ctx)
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
