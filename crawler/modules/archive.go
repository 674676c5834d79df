// This file writes what was fetched into an archive.

package modules

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/warc"
)

// Archive returns a Handler that writes each answer, with its request, to a WARC file.
// Pages, redirects, 404s and the like are written; robots.txt and failed fetches are
// not. Bodies are decoded, and in memory while they are written. The request record
// has the User-Agent given here, and nothing else that the Fetcher may have sent.
func Archive(w *warc.Writer, userAgent string) Handler {
	request := http.Header{"User-Agent": {userAgent}}
	return func(_ context.Context, p *crawler.Page) error {
		e := warc.Exchange{
			URL: p.Lease.Entry.URL, Date: p.Started, RequestHeader: request, Status: p.Status, Header: p.Header,
			Metadata: warc.Header{{Name: "depth", Value: strconv.Itoa(p.Lease.Entry.Depth)}},
		}
		if p.Remote.IsValid() {
			e.IP = p.Remote.Addr().Unmap().String()
		}
		if p.Truncated {
			e.Truncated = warc.TruncatedLength
		}
		var err error
		if p.Body != nil {
			if e.Body, err = p.Body.Bytes(); err != nil {
				return fmt.Errorf("modules: archive: %w", err)
			}
		}
		return w.WriteExchange(e)
	}
}
