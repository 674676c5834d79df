// Command tenants runs the crawls of two customers in one frontier: one pays for
// three times the share of the other, however many URLs either has.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/examples/cookbook/site"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

const small, large = 1, 2 // numbers of crawls

func run(ctx context.Context, out io.Writer) error {
	web := site.Start(nil, func(string) (string, bool) { return "a page", true })
	defer web.Close()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(0)}) // it is our own web
	if err != nil {
		return err
	}
	defer f.Close()
	err = errors.Join(
		f.UpdateRule(scope.Crawl(small), func(r *frontier.Rule) { r.Limits.Depth = 3 }),
		f.UpdateRule(scope.Crawl(large), func(r *frontier.Rule) { r.Weight = 3 }),
	)
	if err != nil {
		return err
	}
	for i := range 100 { // the links of a page belong to its crawl
		_, err := f.Add(ctx,
			frontier.Entry{Crawl: small, URL: fmt.Sprintf("http://small.example/%d", i)},
			frontier.Entry{Crawl: large, URL: fmt.Sprintf("http://large.example/%d", i)},
		)
		if err != nil {
			return err
		}
	}
	c, err := crawler.New(f, crawler.Options{Workers: 1, MaxPages: 40, Fetcher: web.Fetcher()})
	if err != nil {
		return err
	}
	if err := c.Run(ctx); err != nil {
		return err
	}
	for _, id := range []uint32{small, large} {
		s, _ := inspect.New(f).Crawl(id)
		fmt.Fprintln(out, "crawl", id, "has fetched", s.Done[frontier.Visited])
	}
	return nil
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
