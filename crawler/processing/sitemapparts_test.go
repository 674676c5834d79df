package processing

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
)

// A sitemap of 10 MB reaches the frontier in parts, its alternates too, and in the end as a whole.
func TestALargeSitemapIsReadInParts(t *testing.T) {
	const n, more = 4000, 1000
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">`)
	long := strings.Repeat("a", 1980)
	for i := range n {
		fmt.Fprintf(&b, `<url><loc>http://a.example/%s%d</loc>`, long, i)
		if i < more { // one is an entry too, which says more, and one is an alternate twice
			fmt.Fprintf(&b, `<xhtml:link rel="alternate" hreflang="de" href="http://b.example/%s%d"/><xhtml:link rel="alternate" hreflang="fr" href="http://a.example/%s%d"/>`, long, i/2, long, i+1)
		}
		b.WriteString("</url>")
	}
	b.WriteString("</urlset>")
	s := serve(t, map[string]string{"a.example/robots.txt": "Sitemap: http://a.example/sitemap.xml", "a.example/sitemap.xml": b.String()})
	most := 0
	p := crawl(t, s, func(f *frontier.Frontier, o *crawler.Options) {
		maps := NewSitemaps(f, SitemapOptions{UserAgent: agent})
		o.Robots, o.Larger, o.MaxPages = maps, maps.Larger, 1
		o.OnPage = Chain(maps.Handle, func(_ context.Context, p *crawler.Page) error {
			for _, e := range p.Add {
				most += len(e.URL)
			}
			return nil
		})
	}, "http://a.example/sitemap.xml")
	assert.Less(t, most, partBytes, "what is left after the parts")
	assert.EqualValues(t, n+more/2, p.Frontier.Waiting)
	assert.Zero(t, p.Dropped)
	require.EqualValues(t, 1, p.Pages)
}
