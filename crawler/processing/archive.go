// This file writes fetched answers to an archive.

package processing

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/crawler/robots"
	"github.com/seed-7440039f/frontier/crawler/warc"
)

// ArchiveOptions say what is archived.
type ArchiveOptions struct {
	// UserAgent is written to the request records if the Fetcher does not report what it sent
	// (fetch.Result.Request). Empty means the UserAgent of the crawler's Options.
	UserAgent string
	// NoRobots leaves the answers to requests for robots.txt out.
	NoRobots bool
	// HonourNoArchive leaves out pages that ask not to be archived: see UnlessNoArchive. By default
	// everything is archived, as by other archiving crawlers: the request is addressed to search engines
	// that show copies, the records contain it, and the publisher of the archive can honour it. What was
	// left out cannot be added later.
	HonourNoArchive bool
}

// AddArchive makes a crawl write each answer, with its request, to a WARC file: pages, redirects,
// 404s and so on, and by default the answers to requests for robots.txt. Failed fetches are not
// written. Bodies are decoded. Pages whose last capture w does not remember are requested without
// conditions (Options.Whole), so that every "not modified" answer can refer to the capture that it
// repeats. URLs store the page that led to them (Options.Via) for the metadata. AddArchive's
// handlers run before the OnPage and OnRobots already set in o.
func AddArchive(o *crawler.Options, w *warc.Writer, a ArchiveOptions) {
	a.UserAgent = cmp.Or(a.UserAgent, o.UserAgent)
	pages := Archive(w, a.UserAgent)
	if a.HonourNoArchive {
		pages = UnlessNoArchive(pages, a.UserAgent)
	}
	o.OnPage = Chain(pages, o.OnPage)
	o.Whole, o.Via = Uncaptured(w), true
	if a.NoRobots {
		return
	}
	archive, next := ArchiveRobots(w, a.UserAgent), o.OnRobots
	o.OnRobots = func(ctx context.Context, res *fetch.Result) error {
		if err := archive(ctx, res); err != nil || next == nil {
			return err
		}
		return next(ctx, res)
	}
}

// Archive returns the Handler of AddArchive.
func Archive(w *warc.Writer, userAgent string) Handler {
	return func(_ context.Context, p *crawler.Page) error {
		via, hops := p.Via()
		about := []warc.Field{{Name: "depth", Value: strconv.Itoa(p.Lease.Entry.Depth)}, {Name: "hopsFromSeed", Value: hops}}
		if via != "" {
			about = append(about, warc.Field{Name: "via", Value: via})
		}
		return archive(w, userAgent, p.Lease.Entry.URL, p.Result, about...)
	}
}

// Uncaptured returns a crawler.Options.Whole for a crawl with Archive: pages are requested without
// conditions unless w remembers their last capture.
func Uncaptured(w *warc.Writer) func(frontier.Lease) bool {
	return func(l frontier.Lease) bool { return !w.Captured(l.Entry.URL) }
}

// UnlessNoArchive returns a Handler that calls h, except with pages that ask not to be archived: by
// a meta element, as far as the crawler's Extractor reads these, or by an X-Robots-Tag header, for
// all robots or for the product token of userAgent.
func UnlessNoArchive(h Handler, userAgent string) Handler {
	token := robots.ProductToken(userAgent)
	return func(ctx context.Context, p *crawler.Page) error {
		if p.Doc != nil && p.Doc.Robots.NoArchive || link.RobotsTag(p.Header.Values("X-Robots-Tag"), token).NoArchive {
			return nil
		}
		return h(ctx, p)
	}
}

// ArchiveRobots returns a crawler.Options.OnRobots that archives robots.txt. AddArchive uses it.
func ArchiveRobots(w *warc.Writer, userAgent string) func(context.Context, *fetch.Result) error {
	return func(_ context.Context, res *fetch.Result) error {
		return archive(w, userAgent, res.URL, res)
	}
}

// archive writes one exchange. If its crawl is cut while a long body is packed, nothing of it is
// written: see spool.Body.Until.
func archive(w *warc.Writer, userAgent, url string, res *fetch.Result, metadata ...warc.Field) error {
	e := warc.Exchange{
		URL: url, Date: res.Started, Request: res.Request, RequestHeader: http.Header{"User-Agent": {userAgent}},
		Status: res.Status, Header: res.Header, Payload: res.Body.Reader(), Metadata: metadata,
	}
	if res.Proto == "HTTP/2.0" {
		e.Protocol = "h2"
	}
	if res.Remote.IsValid() {
		e.IP = res.Remote.Addr().Unmap().String()
	}
	if e.Truncated = res.Broken; e.Truncated == "" && res.Truncated {
		e.Truncated = warc.TruncatedLength
	}
	return w.WriteExchange(e)
}
