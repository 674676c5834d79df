// This file is the transport of the collector's client: it sends the requests of pages under
// their leases, and hops of followed redirects in their hosts' turns.

package frontiercolly

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/polite"
)

// wire is an http.RoundTripper.
type wire struct {
	f      *frontier.Frontier
	polite *polite.Transport

	mu       sync.Mutex
	expected map[*url.URL]expected // guarded by mu; by the URL that OnRequest saw, the same pointer
}

// expected is a request between OnRequest and its end: a page's, or one that must fail.
type expected struct {
	page *page
	err  error
}

func (w *wire) expect(u *url.URL, e expected) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected[u] = e
}

func (w *wire) forget(u *url.URL) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.expected, u)
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	first := req
	for first.Response != nil && first.Response.Request != nil { // net/http follows a redirect
		first = first.Response.Request
	}
	w.mu.Lock()
	e := w.expected[first.URL]
	w.mu.Unlock()
	if e.err != nil {
		w.forget(first.URL)
		return unsent(req, e.err)
	}
	p := e.page
	if p == nil {
		return w.polite.RoundTrip(req) // of another collector that shares the client
	}
	ctx := req.Context()
	if p.visit == nil {
		ctx, p.visit = polite.WithLease(ctx, p.lease)
	} else if err := w.hop(p, req, &ctx); err != nil {
		return unsent(req, err)
	}
	p.resp, p.err = w.polite.RoundTrip(req.WithContext(ctx))
	if p.err == nil {
		p.resp.Request = req // colly compares its URL, and net/http continues from it
	}
	return p.resp, p.err
}

// unsent ends a request with an error.
func unsent(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close() // a RoundTripper must, on errors too
	}
	return nil, err
}

// hop prepares a page's request for the target of a redirect. For another host the transport waits
// for that host's turn. The page's host is under the page's lease, so the same gap passes here.
func (w *wire) hop(p *page, req *http.Request, ctx *context.Context) error {
	p.hops++
	host, err := w.f.HostKey(req.URL.String())
	if err != nil || host != p.lease.Host {
		return err
	}
	o := p.visit.Outcome()
	info, err := inspect.New(w.f).Host(*ctx, host)
	if err != nil {
		return err
	}
	gap := max(w.f.DelayOf(host).Delay(host, o), info.CrawlDelay, info.Backoff.Gap, o.RetryAfter)
	if w.polite.MaxWait > 0 && gap > w.polite.MaxWait {
		return &polite.BusyError{Host: host, Until: time.Now().Add(gap)}
	}
	select {
	case <-(*ctx).Done():
		return (*ctx).Err()
	case <-time.After(gap):
	}
	*ctx, p.visit = polite.WithLease(*ctx, p.lease)
	return nil
}
