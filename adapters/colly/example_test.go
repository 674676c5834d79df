package frontiercolly_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/seed-7440039f/frontier"
	frontiercolly "github.com/seed-7440039f/frontier/adapters/colly"
	"github.com/seed-7440039f/frontier/adapters/colly/internal/web"
	"github.com/seed-7440039f/frontier/polite"
)

// The program of colly's README, with a queue. The web is a site on loopback.
func Example() {
	site := &web.Web{Hosts: 1, Pages: 3, Seeds: 1}
	if err := site.Start(); err != nil {
		log.Fatal(err)
	}
	defer site.Close()
	loopback := web.Transport(site.Addrs())
	defer loopback.CloseIdleConnections()

	f, err := frontier.Open(context.Background(), frontier.Options{Delay: frontier.FixedDelay(10 * time.Millisecond)})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	q, err := frontiercolly.New(f, frontiercolly.Options{Transport: &polite.Transport{Base: loopback}})
	if err != nil {
		log.Fatal(err)
	}
	c := colly.NewCollector()
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		if err := q.Visit(e.Request, e.Attr("href")); err != nil {
			log.Print(err)
		}
	})
	c.OnRequest(func(r *colly.Request) { fmt.Println("Visiting", r.URL) })
	if err := q.AddURL("http://h0.example/0"); err != nil {
		log.Fatal(err)
	}
	if err := q.Run(c); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Visiting http://h0.example/0
	// Visiting http://h0.example/1
	// Visiting http://h0.example/2
}
