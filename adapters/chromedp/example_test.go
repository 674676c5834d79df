package frontierchromedp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed-7440039f/frontier"
	frontierchromedp "github.com/seed-7440039f/frontier/adapters/chromedp"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/polite"
)

const agent = "examplebot/1.0 (+https://bot.example)"

// A crawl of pages that need JavaScript: the reference crawler with another Fetcher.
func Example() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	r, err := frontierchromedp.New(frontierchromedp.Options{Fetch: fetch.Options{UserAgent: agent}})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	c, err := crawler.New(f, crawler.Options{UserAgent: agent, Fetcher: r, Workers: 8, OnPage: func(_ context.Context, p *crawler.Page) error {
		if p.Doc != nil {
			fmt.Println(p.URL, p.Doc.Title, len(p.Doc.Links))
		}
		return nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Seed(ctx, "https://a.example/"); err != nil {
		log.Fatal(err)
	}
	if err := c.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// A loop over leases, without the reference crawler. Pages may also load scripts of other hosts, in
// the turn of these hosts.
func ExampleRenderer_Visit() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	turns := &polite.Transport{Frontier: f, Robots: &polite.Robots{Agent: agent}, MaxWait: 5 * time.Second}
	r, err := frontierchromedp.New(frontierchromedp.Options{Fetch: fetch.Options{UserAgent: agent}, Others: turns})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	turns.Base = frontierchromedp.Base(r.Fetcher)
	if _, err := f.Add(ctx, frontier.Entry{URL: "https://a.example/"}); err != nil {
		log.Fatal(err)
	}
	for l, err := range f.Leases(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if err := turns.Admit(ctx, l); errors.Is(err, polite.ErrHandedBack) {
			continue // robots.txt was read first; the page comes again
		} else if err != nil {
			err = f.Done(l, polite.OutcomeOf(nil, err))
			if err != nil {
				log.Fatal(err)
			}
			continue
		}
		page, outcome, err := r.Visit(ctx, l)
		switch {
		case err != nil:
			log.Print(err)
		case page != nil:
			fmt.Println(l.Entry.URL, page.Title, len(page.Links))
		}
		if err := f.Done(l, outcome); err != nil {
			log.Fatal(err)
		}
	}
}
