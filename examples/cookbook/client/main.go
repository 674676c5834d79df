// Command client crawls with an http.Client of its own, politely: the frontier
// says when, package polite what answers mean, and robots.txt is obeyed.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
	"github.com/seed-7440039f/frontier/examples/cookbook/site"
	"github.com/seed-7440039f/frontier/polite"
)

const agent = "examplebot/1.0 (+https://bot.example)"

// crawl visits all pages that links lead to, each once.
func crawl(ctx context.Context, out io.Writer, base http.RoundTripper, o frontier.Options, seeds ...frontier.Entry) error {
	o.Normalize = urlnorm.New().Normalize // a fragment makes no other page
	f, err := frontier.Open(ctx, o)
	if err != nil {
		return err
	}
	defer f.Close()
	client := &http.Client{CheckRedirect: polite.LastResponse, Transport: &polite.Transport{
		Frontier: f, Base: base, Robots: &polite.Robots{Agent: agent}, Timeout: time.Minute,
	}}
	if _, err := f.Add(ctx, seeds...); err != nil {
		return err
	}
	return f.Work(ctx, 2, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
		_, visit := polite.WithLease(ctx, l)
		var add []frontier.Entry
		if resp, err := visit.Get(client); err != nil {
			fmt.Fprintln(out, err)
		} else if page, err := link.Extract(resp.Body, resp.Header.Get("Content-Type"), l.Entry.URL, link.Options{}); err == nil {
			fmt.Fprintln(out, resp.StatusCode, l.Entry.URL)
			for _, to := range page.Links {
				add = append(add, frontier.Entry{URL: to.URL, Depth: l.Entry.Depth + 1})
			}
		}
		o := visit.Outcome() // it ends the contact
		o.Add = append(o.Add, add...)
		return o, nil
	})
}

func run(ctx context.Context, out io.Writer) error {
	web := site.Start(site.Pages{
		"http://a.example/":           site.Links("/news#today", "/news#yesterday", "/private/", "/lost"),
		"http://a.example/news":       site.Links("/"),
		"http://a.example/robots.txt": "User-agent: *\nDisallow: /private/\n",
	}, nil)
	defer web.Close()
	// They are our own pages: leave FixedDelay(0) out elsewhere.
	return crawl(ctx, out, web.Transport(), frontier.Options{Delay: frontier.FixedDelay(0)}, frontier.Entry{URL: "http://a.example"})
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
