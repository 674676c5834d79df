// This file reads the links of a page that was fetched.

package crawler

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/crawler/robots"
	"github.com/seed-7440039f/frontier/internal/media"
)

// Extractor reads the links of a page.
type Extractor interface {
	// Extract returns the content of p; nil if neither its body nor its header can hold links. It
	// is called for answers that browsers show, from any goroutine: with a 2xx status, or a 3xx without a target. After an error the page
	// counts as visited, with the links that were returned.
	Extract(p *Page) (*link.Page, error)
}

// HTML is the default Extractor. It reads HTML and XHTML, and style sheets if Kinds includes what
// they refer to.
type HTML struct {
	// Options configure link.Extract. New replaces zero values by the Crawler's Normalizer, MaxLinks and
	// product token, and by link.Pages for Kinds.
	link.Options
}

func (h HTML) withDefaults(o *Options) HTML {
	h.Normalizer = cmp.Or(h.Normalizer, o.Normalizer)
	h.MaxLinks = cmp.Or(h.MaxLinks, o.MaxLinks)
	h.Kinds = cmp.Or(h.Kinds, link.Pages)
	if o.Requisites {
		h.Kinds |= link.Requisites
	}
	h.Agent = cmp.Or(h.Agent, robots.ProductToken(o.UserAgent))
	return h
}

// Extract implements Extractor. Links in the answer's header come first; answers of other types
// have only these.
func (h HTML) Extract(p *Page) (*link.Page, error) {
	head := link.ExtractHeader(p.Header, p.URL, h.Options)
	read, t := h.reader(p)
	if read == nil {
		if len(head.Links) == 0 && head.Dropped == 0 {
			return nil, nil
		}
		return head, nil
	}
	doc, err := read(p.Body.Reader(), t.String(), p.URL, h.Options)
	doc.Robots = doc.Robots.Merge(head.Robots)
	doc.Skipped += head.Skipped
	doc.Dropped += head.Dropped
	if len(head.Links) > 0 {
		doc.Links = append(head.Links, doc.Links...)
	}
	if site := siteOf(p.URL); h.Kinds&link.Image != 0 && t.HTML() && !needed(p.Lease.Entry) && strings.HasPrefix(site, "http") && !slices.ContainsFunc(doc.Links, isIcon) {
		doc.Links = append(doc.Links, link.Link{URL: site + favicon, Raw: favicon, Kind: link.Image, Rel: "icon"})
	}
	return doc, err
}

// favicon is where browsers look for the icon of a page that names none (HTML Standard, "Link type icon").
const favicon = "/favicon.ico"

func isIcon(l link.Link) bool { return slices.Contains(strings.Fields(l.Rel), "icon") }

// reader returns the function that reads links from a body of the response's type, nil if there is none,
// and that type.
func (h HTML) reader(p *Page) (read func(r io.Reader, contentType, url string, o link.Options) (*link.Page, error), t media.Type) {
	t = media.Sniff(p.Header, p.Body.Head(media.SniffSize))
	switch {
	case fetch.Coded(p.Header, p.Body.Head(512)) != "":
	case t.HTML():
		read = link.Extract
	case t.Essence == "text/css" && h.Kinds&(link.Stylesheet|link.Style) != 0:
		read = link.ExtractCSS
	}
	return read, t
}
