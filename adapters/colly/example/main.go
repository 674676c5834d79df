// Example crawls a small web on loopback with colly and a durable, polite queue.
//
//	go run ./adapters/colly/example
//	go run ./adapters/colly/example -dir state    # kill it, and run it again: it continues
//
// To crawl the real web, leave the site and Options.Transport out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/seed-7440039f/frontier"
	frontiercolly "github.com/seed-7440039f/frontier/adapters/colly"
	"github.com/seed-7440039f/frontier/adapters/colly/internal/web"
	"github.com/seed-7440039f/frontier/polite"
	"github.com/seed-7440039f/frontier/spill"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", "", "folder of the crawl; empty: a temporary one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := crawl(ctx, *dir); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func crawl(ctx context.Context, dir string) (err error) {
	const delay = 200 * time.Millisecond
	sites := &web.Web{Hosts: 50, Pages: 5, Seeds: 5, Delay: delay}
	if err := sites.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sites.Close()) }()
	if dir == "" {
		if dir, err = os.MkdirTemp("", "colly-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}

	db, err := spill.Open(dir, spill.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	f, err := frontier.Open(ctx, frontier.Options{Spill: db, Delay: frontier.FixedDelay(delay)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	q, err := frontiercolly.New(f, frontiercolly.Options{
		Transport: &polite.Transport{Base: web.Transport(sites.Addrs())},
		OnRefused: func(r *colly.Request, err error) { log.Printf("refused: %s: %v", r.URL, err) },
	})
	if err != nil {
		return err
	}

	c := colly.NewCollector(colly.UserAgent("examplebot"), colly.StdlibContext(ctx))
	var pages atomic.Int64
	c.OnHTML("title", func(e *colly.HTMLElement) {
		pages.Add(1)
		fmt.Println(e.Request.URL, e.Text)
	})
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		if err := q.Visit(e.Request, e.Attr("href")); err != nil {
			log.Print(err)
		}
	})
	c.OnError(func(r *colly.Response, err error) { log.Printf("%s: %v", r.Request.URL, err) })
	for _, u := range sites.SeedURLs() {
		if err := q.AddURL(u); err != nil {
			return err
		}
	}
	if err := q.Run(c); err != nil {
		return err
	}
	seen := sites.Log()
	fmt.Printf("%d pages of %d hosts; by the servers' log %d requests came too early\n", pages.Load(), seen.Hosts, seen.Early+seen.Together)
	return nil
}
