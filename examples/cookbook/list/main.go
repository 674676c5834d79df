// Command list fetches the URLs of a list, politely, and nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/examples/cookbook/site"
	"github.com/seed-7440039f/frontier/transfer"
)

const urls = `# a URL in each line; yours is a file
http://a.example/1
http://a.example/2
http://b.example/
not a URL
http://a.example/1
`

func run(ctx context.Context, out io.Writer) error {
	web := site.Start(site.Pages{"http://a.example/1": site.Links("/3"), "http://a.example/2": ""}, nil)
	defer web.Close()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(0)}) // it is our own web
	if err != nil {
		return err
	}
	defer f.Close()
	took, err := transfer.Import(ctx, f, strings.NewReader(urls), transfer.ImportOptions{SkipBad: true})
	if bad, ok := errors.AsType[*transfer.LineError](err); ok {
		fmt.Fprintf(out, "line %d: %s\n", bad.Line, bad.Text)
	} else if err != nil {
		return err
	}
	fmt.Fprintln(out, took.URLs, "URLs,", took.KnownURLs, "twice")

	c, err := crawler.New(f, crawler.Options{
		Workers: 1,
		Fetcher: web.Fetcher(),
		OnPage: func(_ context.Context, p *crawler.Page) error {
			fmt.Fprintln(out, p.Status, p.URL)
			p.Add = nil // no links, no redirects
			return nil
		},
	})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
