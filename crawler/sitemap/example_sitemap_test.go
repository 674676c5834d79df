package sitemap_test

import (
	"fmt"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/sitemap"
)

func Example() {
	body := strings.NewReader(`<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
  <url><loc>https://a.example/</loc><lastmod>2026-11-03</lastmod><priority>0.9</priority></url>
  <url><loc>https://b.example/</loc></url>
  <url><loc>https://a.example/news?a=1&amp;b=2</loc><changefreq>daily</changefreq></url>
`) // the end was lost on the way
	r := sitemap.NewReader(body, sitemap.Options{URL: "https://a.example/sitemap.xml"})
	for e, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(e.URL, e.Modified.Format("2006-01-02"), e.Priority, e.Changes == sitemap.Daily)
	}
	// Output:
	// https://a.example/ 2026-11-03 0.9 false
	// sitemap: https://a.example/sitemap.xml: line 4: outside the sitemap's location: "https://b.example/"
	// https://a.example/news?a=1&b=2 0001-01-01 0.5 true
}
