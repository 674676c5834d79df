// This file renders the page of a lease, for programs without package crawler.

package frontierchromedp

import (
	"context"
	"net/http"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/internal/media"
	"github.com/seed-7440039f/frontier/polite"
)

// closing is the part of a lease, and the most, that is left for ending it.
const closing = 10 // a tenth, and at most as many seconds

// Visit fetches and renders the page of a lease. It returns the page as it was read, or nil, and the
// Outcome to pass to Done, also after an error. Outcome.Add has the page's links, one deeper than the
// page, or the target of a redirect. The error is why the page could not be fetched or rendered.
//
// Visit does not ask robots.txt about the URL of the lease, and joins no group for the host's
// address: polite.Transport.Admit does the first, package crawler both.
func (r *Renderer) Visit(ctx context.Context, l frontier.Lease) (*link.Page, frontier.Outcome, error) {
	ctx, cancel := context.WithDeadline(ctx, l.Deadline.Add(-min(closing*time.Second, l.Deadline.Sub(l.LeasedAt)/closing)))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.Entry.URL, nil)
	if err != nil {
		return nil, frontier.Outcome{Result: frontier.Denied, Uncontacted: true}, err
	}
	res, err := r.Fetch(ctx, fetch.Request{URL: l.Entry.URL})
	defer func() { res.Close() }() // of an error, too
	if class := fetch.ClassOf(err); class == fetch.Blocked || class == fetch.BadURL {
		return nil, frontier.Outcome{Result: frontier.Denied, Uncontacted: true}, err
	}
	var resp *http.Response
	if res.Status != 0 {
		resp = &http.Response{StatusCode: res.Status, Header: res.Header, Body: http.NoBody, ContentLength: res.Bytes, Request: req}
	}
	o := polite.OutcomeOf(resp, err)
	o.Ended, o.Duration, o.Bytes, o.RetryAfter = res.Ended, max(res.Duration(), 1), res.Bytes, res.RetryAfter
	if err != nil {
		return nil, o, err
	}
	if to, ok := polite.Redirect(l.Entry, resp); ok {
		o.Add = []frontier.Entry{to}
	}
	if !renderable(res) {
		return nil, o, nil
	}
	p, err := link.Extract(res.Body.Reader(), media.Of(res.Header).String(), res.URL, link.Options{})
	if err != nil {
		o.Result = frontier.Failed
		return nil, o, err
	}
	if p.Robots.NoFollow {
		return p, o, nil
	}
	for _, x := range p.Links {
		if x.Kind&(link.Anchor|link.Area) != 0 {
			o.Add = append(o.Add, frontier.Entry{URL: x.URL, Depth: l.Entry.Depth + 1, Crawl: l.Entry.Crawl})
		}
	}
	return p, o, nil
}
