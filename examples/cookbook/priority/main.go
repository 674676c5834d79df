// Command priority fetches some domains before others: universities first, then
// organisations, then the rest.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/examples/cookbook/site"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
)

// byDomain is a Prioritizer: the greater, the more urgent.
func byDomain(e frontier.Entry, _ frontier.History) int {
	host, _ := frontier.HostName(e.URL)
	switch {
	case strings.HasSuffix(host, ".edu"):
		return 3
	case strings.HasSuffix(host, ".org"):
		return 2
	}
	return 1
}

func run(ctx context.Context, out io.Writer) error {
	web := site.Start(site.Pages{
		"http://shop.com/":    site.Links("http://library.edu/"),
		"http://museum.org/":  "",
		"http://college.edu/": "",
		"http://library.edu/": "",
	}, nil)
	defer web.Close()

	f, err := frontier.Open(ctx, frontier.Options{
		Priorities:  3,
		Prioritizer: frontier.PrioritizerFunc(byDomain),
		Selector:    selector.Strict(), // the default leaves the others a share
	})
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := crawler.New(f, crawler.Options{
		Workers: 1,
		Fetcher: web.Fetcher(),
		OnPage: func(_ context.Context, p *crawler.Page) error {
			fmt.Fprintln(out, p.Lease.Priority, p.URL)
			return nil
		},
	})
	if err != nil {
		return err
	}
	if err := f.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(0) }); err != nil { // it is our own web
		return err
	}
	if _, err := c.Seed(ctx, "http://shop.com/", "http://museum.org/", "http://college.edu/"); err != nil {
		return err
	}
	return c.Run(ctx)
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
