package sitemap_test

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/robots"
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

// What a robots.txt names is followed through index files.
func ExampleWalk() {
	site := map[string]string{
		"https://a.example/index.xml": `<sitemapindex><sitemap><loc>/one.xml</loc></sitemap><sitemap><loc>/two.txt</loc></sitemap></sitemapindex>`,
		"https://a.example/one.xml":   `<urlset><url><loc>https://a.example/1</loc></url></urlset>`,
		"https://a.example/two.txt":   "https://a.example/2\nhttps://a.example/3\n",
	}
	fetch := func(_ context.Context, url string) (sitemap.File, error) {
		return sitemap.File{Body: io.NopCloser(strings.NewReader(site[url]))}, nil
	}
	named := robots.Parse([]byte("Sitemap: https://a.example/index.xml\n")).Sitemaps()
	o := sitemap.WalkOptions{Options: sitemap.Options{Hosts: []string{"a.example"}}}
	for e, err := range sitemap.Walk(context.Background(), fetch, o, named...) {
		fmt.Println(e.URL, err)
	}
	// Output:
	// https://a.example/1 <nil>
	// https://a.example/2 <nil>
	// https://a.example/3 <nil>
}
