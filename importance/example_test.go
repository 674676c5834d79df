package importance_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/importance"
)

// An Estimator with the reference crawler.
func Example() {
	ctx := context.Background()
	est, err := importance.New(importance.Options{Score: importance.Links})
	if err != nil {
		log.Fatal(err)
	}
	f, err := frontier.Open(ctx, frontier.Options{Prioritizer: est})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	c, err := crawler.New(f, crawler.Options{Importance: est})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Run(ctx)) // there are no seeds
	// Output: <nil>
}

// A crawler of one's own reports each page with its links before Done.
func ExampleEstimator_Visit() {
	ctx := context.Background()
	est, err := importance.New(importance.Options{Memory: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	f, err := frontier.Open(ctx, frontier.Options{Prioritizer: est, Delay: frontier.FixedDelay(0)})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	web := map[string][]string{
		"http://a.example/":      {"http://a.example/1", "http://a.example/2", "http://a.example/known"},
		"http://a.example/1":     {"http://a.example/known"},
		"http://a.example/2":     {"http://a.example/known", "http://a.example/"},
		"http://a.example/known": nil,
	}
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	for l, err := range f.Leases(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		var links []frontier.Entry
		for _, url := range web[l.Entry.URL] {
			links = append(links, frontier.Entry{URL: url})
		}
		useful := true
		standing, moved := est.Visit(l, useful, links, nil)
		if moved {
			if err := f.SetStanding(l.Host, standing); err != nil {
				log.Fatal(err)
			}
		}
		if err := f.Done(l, frontier.Outcome{Add: links}); err != nil {
			log.Fatal(err)
		}
	}
	x := est.Explain(frontier.Entry{URL: "http://a.example/1"})
	fmt.Printf("about %.0f link found (level %d); its host: %d pages, %.0f %% useful\n", x.Worth, x.Level, x.Pages, 100*x.Useful)
	// Output: about 1 link found (level 4); its host: 4 pages, 100 % useful
}
