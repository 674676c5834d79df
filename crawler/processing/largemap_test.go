// This file tests sitemaps that are larger than pages may be.

package processing

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

func TestSitemapsAreReadBeyondTheLimitOfPages(t *testing.T) {
	const urls = 300
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
	for i := range urls {
		fmt.Fprintf(&b, "<url><loc>http://a.example/p%d</loc><lastmod>2024-01-01</lastmod></url>\n", i)
	}
	b.WriteString("</urlset>")
	for name, x := range map[string]struct {
		page     string
		maxBytes int64
		found    bool // all of them
		warned   string
	}{
		"larger than pages":   {b.String(), 0, true, ""},
		"larger than that":    {b.String(), 10_000, false, `level=WARN msg="a sitemap is too large: its rest is left out"`},
		"a page is no map":    {"<html><!-- <urlset> -->" + b.String(), 0, false, ""},
		"it ends in an URL":   {b.String()[:b.Len()-20], 0, true, `level=INFO msg="a sitemap has errors"`},
		"just what it may be": {b.String(), int64(b.Len()), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string]string{"a.example/robots.txt": "User-agent: *\nDisallow: /p\n", "a.example/sitemap.xml": x.page})
			var logged bytes.Buffer
			p := crawl(t, s, func(f *frontier.Frontier, o *crawler.Options) {
				sm := NewSitemaps(f, SitemapOptions{UserAgent: agent, MaxBytes: x.maxBytes, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
				o.Robots, o.OnPage, o.Larger = sm, sm.Handle, sm.Larger
				networks := fetch.Networks{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
				var err error
				o.Fetcher, err = fetch.New(fetch.Options{UserAgent: agent, Dial: dialTo(s.Listener.Addr().String()), Networks: networks, MaxBody: 4 << 10, BodyMemory: 1 << 10})
				require.NoError(t, err)
			}, "http://a.example/sitemap.xml")
			if x.found {
				assert.GreaterOrEqual(t, p.Denied, int64(urls-1))
			} else {
				assert.Less(t, p.Denied, int64(urls/2))
			}
			if x.warned == "" {
				assert.Empty(t, logged.String())
			}
			assert.Contains(t, logged.String(), x.warned)
		})
	}
}
