// This file answers what the browser requests: with the page, from its host, or not at all.

package frontierchromedp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdpfetch "github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// errNotSent is why a request of a page is not sent.
var errNotSent = errors.New("not sent")

// answer answers one request.
func (p *page) answer(e *cdpfetch.EventRequestPaused) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy--
		p.since = time.Now()
		p.signalLocked()
	}()
	status, header, body, err := 0, http.Header(nil), []byte(nil), errNotSent
	reason := network.ErrorReasonBlockedByClient
	switch {
	case !strings.HasPrefix(e.Request.URL, "http://") && !strings.HasPrefix(e.Request.URL, "https://"):
		_, _ = cdp.Call(p.ctx, p.tab, cdpfetch.ContinueRequest, cdpfetch.ContinueRequestParams{RequestID: e.RequestID}) // data: and the like need no network
		return
	case e.ResourceType == network.ResourceTypeDocument && e.FrameID == p.frame:
		if status, header, body, err = p.document(e.Request.URL); err != nil {
			reason = network.ErrorReasonAborted // the page stays
		}
	case e.Request.Method != http.MethodGet:
	case e.ResourceType == network.ResourceTypeScript || e.ResourceType == network.ResourceTypeXHR || e.ResourceType == network.ResourceTypeFetch:
		status, header, body, err = p.resource(e)
	}
	if err != nil {
		if !errors.Is(err, errNotSent) {
			reason = network.ErrorReasonFailed
		}
		_, _ = cdp.Call(p.ctx, p.tab, cdpfetch.FailRequest, cdpfetch.FailRequestParams{RequestID: e.RequestID, ErrorReason: reason})
		return
	}
	_, _ = cdp.Call(p.ctx, p.tab, cdpfetch.FulfillRequest, cdpfetch.FulfillRequestParams{
		RequestID: e.RequestID, ResponseCode: int64(status), ResponseHeaders: entries(header), Body: body,
	})
}

// document returns the page as it was fetched, once. Then it notes where the page wants to go.
func (p *page) document(target string) (status int, h http.Header, body []byte, err error) {
	p.mu.Lock()
	given := p.given
	if p.given = true; given {
		p.goesLocked(target)
	}
	p.mu.Unlock()
	if given {
		return 0, nil, nil, errNotSent
	}
	body, err = p.doc.Body.Bytes()
	return p.doc.Status, p.doc.Header, body, err
}

// resource returns what a script requests, or a script.
func (p *page) resource(e *cdpfetch.EventRequestPaused) (status int, h http.Header, body []byte, err error) {
	isScript := e.ResourceType == network.ResourceTypeScript
	if isScript {
		if x := p.r.scripts.find(e.Request.URL); x != nil {
			return http.StatusOK, x.header, x.body, nil
		}
	}
	u, err := url.Parse(e.Request.URL)
	if err != nil {
		return 0, nil, nil, errNotSent
	}
	host, err := p.r.opts.HostKey(e.Request.URL)
	switch {
	case err != nil:
		return 0, nil, nil, errNotSent
	case host == p.host:
		status, h, body, err = p.own(u, asked(e.Request.Headers))
	case p.r.opts.Others != nil:
		status, h, body, err = p.others(u, asked(e.Request.Headers))
	default:
		return 0, nil, nil, errNotSent
	}
	if isScript && err == nil && status == http.StatusOK {
		p.r.scripts.keep(e.Request.URL, h, body)
	}
	return status, h, body, err
}

// asked returns the header fields of a browser's request that are sent: without those that identify the
// browser or the referring page.
func asked(all network.Headers) http.Header {
	h := http.Header{}
	for name, value := range all {
		name = http.CanonicalHeaderKey(name)
		switch text, ok := value.(string); {
		case !ok, strings.HasPrefix(name, "Sec-"), strings.HasPrefix(name, "Proxy-"):
		case name == "User-Agent", name == "Referer", name == "Cookie", name == "Accept-Encoding", name == "Upgrade-Insecure-Requests", name == "Range", name == "Host":
		default:
			h.Set(name, text)
		}
	}
	return h
}

// own requests something from the page's host, as part of the contact with it.
func (p *page) own(u *url.URL, h http.Header) (int, http.Header, []byte, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-p.ctx.Done():
		return 0, nil, nil, errNotSent
	}
	if !p.allowed(u) {
		return 0, nil, nil, errNotSent
	}
	res, err := p.send(fetch.Request{URL: u.String(), Header: h})
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Close()
	body, err := res.Body.Bytes()
	return res.Status, res.Header, body, err
}

// send sends a request to the page's host. The caller holds turn. The Result is nil if there is an
// error.
func (p *page) send(q fetch.Request) (*fetch.Result, error) {
	p.mu.Lock()
	ok := !p.closed && !p.refused && p.requests < p.r.opts.MaxRequests
	if ok {
		p.requests++
	}
	p.mu.Unlock()
	if !ok || !sleep(p.ctx, time.Until(p.ended.Add(p.r.opts.Pause))) {
		return nil, errNotSent
	}
	if len(p.q.Addrs) > 0 && p.doc.Remote.IsValid() { // its group is joined
		q.Addrs = []netip.Addr{p.doc.Remote.Addr()}
	}
	res, err := p.r.Fetcher.Fetch(p.ctx, q)
	p.ended = res.Ended
	p.bytes += res.Bytes
	p.retryAfter = max(p.retryAfter, res.RetryAfter)
	p.mu.Lock()
	p.refused = p.refused || res.Status == http.StatusTooManyRequests || res.Status == http.StatusServiceUnavailable
	p.mu.Unlock()
	if err != nil {
		return nil, errors.Join(err, res.Close())
	}
	return res, nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// others requests something from another host, in that host's turn.
func (p *page) others(u *url.URL, h http.Header) (int, http.Header, []byte, error) {
	p.mu.Lock()
	ok := !p.closed && p.requests < p.r.opts.MaxRequests
	if ok {
		p.requests++
	}
	p.mu.Unlock()
	if !ok {
		return 0, nil, nil, errNotSent
	}
	req, err := http.NewRequestWithContext(p.ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header = h
	resp, err := p.r.opts.Others.RoundTrip(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, p.r.opts.Fetch.MaxBody+1))
	if err == nil && int64(len(body)) > p.r.opts.Fetch.MaxBody {
		err = fmt.Errorf("%d bytes; want at most %d", len(body), p.r.opts.Fetch.MaxBody)
	}
	return resp.StatusCode, resp.Header, body, err
}

// Base returns an http.RoundTripper that sends GET requests by a Fetcher, with its limits and
// permitted networks. It follows no redirects, and waits for no turn.
func Base(f *fetch.Fetcher) http.RoundTripper { return base{f} }

type base struct{ f *fetch.Fetcher }

// RoundTrip implements http.RoundTripper.
func (b base) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if req.Method != http.MethodGet && req.Method != "" {
		return nil, fmt.Errorf("frontierchromedp: method %s; want GET", req.Method)
	}
	res, err := b.f.Fetch(req.Context(), fetch.Request{URL: req.URL.String(), Header: req.Header})
	if err != nil {
		return nil, errors.Join(err, res.Close())
	}
	return &http.Response{
		Status: fmt.Sprint(res.Status, " ", http.StatusText(res.Status)), StatusCode: res.Status, Proto: res.Proto, Header: res.Header,
		Body: body{res.Body.Reader(), res}, ContentLength: res.Body.Size(), Request: req,
	}, nil
}

type body struct {
	io.Reader
	io.Closer
}
