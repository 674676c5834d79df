// This file writes what was fetched into an archive.

package modules

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/warc"
)

// ArchiveOptions say what is archived.
type ArchiveOptions struct {
	// UserAgent is what the request records have. Nothing else that the Fetcher may
	// have sent is in them. Empty means that of the crawler's Options.
	UserAgent string
	// NoRobots leaves the answers to requests for robots.txt out.
	NoRobots bool
}

// AddArchive has a crawl write each answer, with its request, to a WARC file: pages,
// redirects, 404s and the like, and unless they are not wanted the answers to requests
// for robots.txt. Failed fetches are not written. Bodies are decoded, and in memory
// while they are written. It comes before the OnPage and OnRobots that o has.
func AddArchive(o *crawler.Options, w *warc.Writer, a ArchiveOptions) {
	if a.UserAgent == "" {
		a.UserAgent = o.UserAgent
	}
	o.OnPage = Chain(Archive(w, a.UserAgent), o.OnPage)
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
		depth := warc.Field{Name: "depth", Value: strconv.Itoa(p.Lease.Entry.Depth)}
		return archive(w, userAgent, p.Lease.Entry.URL, p.Result, depth)
	}
}

// ArchiveRobots returns what AddArchive has beside it for robots.txt: a
// crawler.Options.OnRobots.
func ArchiveRobots(w *warc.Writer, userAgent string) func(context.Context, *fetch.Result) error {
	return func(_ context.Context, res *fetch.Result) error {
		return archive(w, userAgent, res.URL, res)
	}
}

// archive writes one exchange.
func archive(w *warc.Writer, userAgent, url string, res *fetch.Result, metadata ...warc.Field) error {
	e := warc.Exchange{
		URL: url, Date: res.Started, RequestHeader: http.Header{"User-Agent": {userAgent}}, Status: res.Status, Header: res.Header, Metadata: metadata,
	}
	if res.Remote.IsValid() {
		e.IP = res.Remote.Addr().Unmap().String()
	}
	if res.Truncated {
		e.Truncated = warc.TruncatedLength
	}
	if res.Body != nil {
		var err error
		if e.Body, err = res.Body.Bytes(); err != nil {
			return fmt.Errorf("modules: archive: %w", err)
		}
	}
	return w.WriteExchange(e)
}
