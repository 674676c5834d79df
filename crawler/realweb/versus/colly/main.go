// Command colly crawls hosts with gocolly, as its documentation says how, for
// comparison with `frontier crawl`: in memory, without delay, robots.txt obeyed.
//
// Fragments are cut off before Visit, as gocolly takes each for a page of its own and
// would fetch those of a manual hundreds of times.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
)

func main() {
	proxy := flag.String("proxy", "", "proxy `URL`")
	workers := flag.Int("workers", 64, "pages fetched at once at most")
	flag.Parse()
	var hosts []string
	for _, seed := range flag.Args() {
		u, err := url.Parse(seed)
		if err != nil {
			log.Fatal(err)
		}
		hosts = append(hosts, u.Hostname())
	}
	c := colly.NewCollector(colly.Async(true), colly.AllowedDomains(hosts...), colly.UserAgent("colly"), colly.MaxBodySize(10<<20))
	c.IgnoreRobotsTxt = false
	p, err := url.Parse(*proxy)
	if err != nil {
		log.Fatal(err)
	}
	c.WithTransport(&http.Transport{Proxy: http.ProxyURL(p), MaxIdleConns: 256, MaxIdleConnsPerHost: *workers, IdleConnTimeout: 15 * time.Second})
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: *workers}); err != nil {
		log.Fatal(err)
	}
	var pages, failed atomic.Int64
	c.OnResponse(func(*colly.Response) { pages.Add(1) })
	c.OnError(func(*colly.Response, error) { failed.Add(1) })
	follow := func(e *colly.HTMLElement, ref string) {
		if ref, _, _ = strings.Cut(ref, "#"); ref != "" {
			_ = e.Request.Visit(ref) // known, or of another host
		}
	}
	c.OnHTML("a[href], area[href]", func(e *colly.HTMLElement) { follow(e, e.Attr("href")) })
	c.OnHTML("frame[src], iframe[src]", func(e *colly.HTMLElement) { follow(e, e.Attr("src")) })
	c.OnHTML("meta[http-equiv][content]", func(e *colly.HTMLElement) {
		content := e.Attr("content")
		if i := strings.Index(strings.ToLower(content), "url="); i >= 0 && strings.EqualFold(e.Attr("http-equiv"), "refresh") {
			follow(e, strings.Trim(content[i+len("url="):], " '\""))
		}
	})
	for _, seed := range flag.Args() {
		if err := c.Visit(seed); err != nil {
			log.Print(err)
		}
	}
	c.Wait()
	fmt.Printf("%d pages, %d failed\n", pages.Load(), failed.Load())
}
