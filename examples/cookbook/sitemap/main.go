// Command sitemap fetches what a site's sitemap names, and follows no links.
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
	"github.com/seed-7440039f/frontier/crawler/processing"
	"github.com/seed-7440039f/frontier/examples/cookbook/site"
	"github.com/seed-7440039f/frontier/selector"
)

// noLinks is an Extractor that finds nothing.
type noLinks struct{}

// Extract implements crawler.Extractor.
func (noLinks) Extract(*crawler.Page) (*link.Page, error) { return nil, nil }

func run(ctx context.Context, out io.Writer) error {
	web := site.Start(site.Pages{
		"http://a.example/robots.txt": "User-agent: *\nDisallow: /private\nSitemap: http://a.example/map.xml\n",
		"http://a.example/map.xml": `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
			<url><loc>http://a.example/1</loc></url>
			<url><loc>http://a.example/2</loc><priority>0.9</priority></url>
			<url><loc>http://a.example/private</loc></url></urlset>`,
		"http://a.example/1": site.Links("/3"),
		"http://a.example/2": site.Links("/4"),
	}, nil)
	defer web.Close()

	f, err := frontier.Open(ctx, frontier.Options{
		Prioritizer: frontier.ByWeight(8, 1), // the sitemap's priority, 0.5 unless it says another
		Selector:    selector.Strict(),
		Delay:       frontier.FixedDelay(0), // it is our own web
	})
	if err != nil {
		return err
	}
	defer f.Close()
	sitemaps := processing.NewSitemaps(f, processing.SitemapOptions{})
	show := func(_ context.Context, p *crawler.Page) error {
		fmt.Fprintln(out, p.Status, p.URL)
		return nil
	}
	c, err := crawler.New(f, crawler.Options{
		Workers:   1,
		Fetcher:   web.Fetcher(),
		Robots:    sitemaps, // finds those that robots.txt names
		Extractor: noLinks{},
		OnPage:    processing.Chain(sitemaps.Handle, show),
	})
	if err != nil {
		return err
	}
	if _, err := c.Seed(ctx, sitemaps.Places("http://a.example/")...); err != nil {
		return err
	}
	return c.Run(ctx)
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
