// Command focused looks for pages about owls: a link is worth as much as the
// page that it stands on is about them.
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
	"github.com/seed-7440039f/frontier/selector"
)

// score is how much a text is about owls, from 0 to 1.
func score(text string) float64 {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' })
	owls := 0
	for _, w := range words {
		if strings.HasPrefix(w, "owl") {
			owls++
		}
	}
	return min(1, 10*float64(owls)/float64(len(words)+1))
}

func run(ctx context.Context, out io.Writer) error {
	web := site.Start(site.Pages{
		"http://birds.example/":        "Birds. <a href=/owls>Owls</a> <a href=/ducks>Ducks</a>",
		"http://birds.example/owls":    "Owls! An owl, two owls. <a href=/barn>Barn owl</a> <a href=/snowy>Snowy owl</a>",
		"http://birds.example/ducks":   "Ducks swim and quack. <a href=/teal>Teal</a> <a href=/mallard>Mallard</a>",
		"http://birds.example/barn":    "The barn owl is an owl.",
		"http://birds.example/snowy":   "The snowy owl is an owl.",
		"http://birds.example/teal":    "The teal is a duck.",
		"http://birds.example/mallard": "The mallard is a duck.",
	}, nil)
	defer web.Close()

	f, err := frontier.Open(ctx, frontier.Options{
		Prioritizer: frontier.ByWeight(8, 1), // Entry.Weight from 0 to 1, in 8 levels
		Selector:    selector.Strict(),
		Delay:       frontier.FixedDelay(0), // it is our own web
	})
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := crawler.New(f, crawler.Options{
		Workers:  1,
		MaxPages: 5,
		Fetcher:  web.Fetcher(),
		OnPage: func(_ context.Context, p *crawler.Page) error {
			text, err := io.ReadAll(p.Body.Reader())
			if err != nil {
				return err
			}
			s := score(string(text))
			fmt.Fprintf(out, "%.1f %s\n", s, p.URL)
			for i := range p.Add { // the links, before the frontier gets them
				p.Add[i].Weight = s
			}
			return nil
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
