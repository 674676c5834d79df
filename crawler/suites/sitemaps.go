// This file runs suites about sitemaps and feeds: sitemaps*.json.

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/crawler/sitemap"
)

// sitemapCase is a file and its contents, in any order.
type sitemapCase struct {
	ID          string
	URL         string
	ContentType string `json:"content_type"`
	Type        string
	Strict      *bool // only URLs that the file may list; true if missing
	Body        string
	BodyB64     []byte `json:"body_b64"`
	Entries     []struct {
		Loc     string
		Lastmod *time.Time
	}
	Contested []string
}

type sitemapsFile struct{ Cases []sitemapCase }

func runSitemaps(r *report, file sitemapsFile) error {
	for i, c := range file.Cases {
		c.ID = cmp.Or(c.ID, fmt.Sprintf("cases/%d", i))
		want, got := c.want(), c.read()
		if c.Contested != nil && want != got {
			r.add(c.ID, contested, fmt.Sprintf("got %q, want %q", got, want))
			continue
		}
		r.expect(c.ID, want, got)
	}
	return nil
}

func (c *sitemapCase) want() string {
	var lines []string
	for _, e := range c.Entries {
		lines = append(lines, sitemapLine(e.Loc, *cmp.Or(e.Lastmod, new(time.Time))))
	}
	return sitemapText(c.Type, lines)
}

func (c *sitemapCase) read() string {
	body := c.BodyB64
	if body == nil {
		body = []byte(c.Body)
	}
	o := sitemap.Options{URL: c.URL, ContentType: c.ContentType}
	if c.Strict != nil && !*c.Strict {
		o.Locations = sitemap.AnyURL
	}
	var lines []string
	f := sitemap.NewReader(bytes.NewReader(body), o)
	for e, err := range f.All() {
		if err == nil {
			lines = append(lines, sitemapLine(e.URL, e.Modified))
		}
	}
	format := ""
	if c.Type != "" {
		format = strings.ToUpper(f.Format().String())
		if f.Format() == sitemap.URLSet {
			format = "XML"
		}
	}
	return sitemapText(format, lines)
}

func sitemapLine(url string, modified time.Time) string {
	if modified.IsZero() {
		return url
	}
	return url + " " + modified.UTC().Format(time.RFC3339)
}

func sitemapText(format string, lines []string) string {
	slices.Sort(lines)
	return strings.TrimSpace(format + "\n" + strings.Join(lines, "\n"))
}
