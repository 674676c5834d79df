// Command bayes looks for pages about owls: a classifier that has learned from a few texts decides what a
// link counts.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/examples/cookbook/site"
	"github.com/seed-7440039f/frontier/importance"
	"github.com/seed-7440039f/frontier/selector"
)

func run(ctx context.Context, out io.Writer) error {
	web := site.Start(site.Pages{
		"http://birds.example/":      "Birds. <a href=/ducks>Ducks</a> <a href=/night>Hunters of the night</a> <a href=/owls>Owls</a>",
		"http://birds.example/ducks": "<title>Ducks</title> <a href=/teal>Teal</a> <a href=/pond>On the pond</a>",
		"http://birds.example/night": "<title>Hunters of the night</title> <a href=/moth>A moth</a>",
		"http://birds.example/owls":  "<title>Owls</title> <a href=/barn>Barn owl</a> <a href=/snowy>Snowy owl</a>",
		"http://birds.example/barn":  "<title>Barn owl</title>",
		"http://birds.example/snowy": "<title>Snowy owl</title>",
		"http://birds.example/pond":  "<title>Ponds</title>",
		"http://birds.example/moth":  "<title>A moth</title>",
		"http://birds.example/teal":  "<title>Teal</title>",
	}, nil)
	defer web.Close()

	owls := newBayes()
	owls.learn(true, "owls: the owl hunts at night, hunters with silent feathers, a barn owl, a snowy owl, hooting")
	owls.learn(false, "ducks: the duck swims on the pond, a teal, a mallard, quacking in the water, for bread")

	est, err := importance.New(importance.Options{
		Memory: 1 << 20, // a small web
		Relevance: func(p *crawler.Page, l *link.Link) float64 {
			return 2 * owls.odds(p.Doc.Title+" "+l.Text) // what is as likely as not counts as two links
		},
	})
	if err != nil {
		return err
	}
	f, err := frontier.Open(ctx, frontier.Options{
		Prioritizer: est,
		Selector:    selector.Strict(),
		Delay:       frontier.FixedDelay(0), // it is our own web
	})
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := crawler.New(f, crawler.Options{
		Workers:    1,
		Fetcher:    web.Fetcher(),
		Importance: est,
		OnDone: func(l frontier.Lease, _ frontier.Outcome) {
			fmt.Fprintln(out, l.Priority, l.Entry.URL)
		},
	})
	if err != nil {
		return err
	}
	if _, err := c.Seed(ctx, "http://birds.example/"); err != nil {
		return err
	}
	return c.Run(ctx)
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
