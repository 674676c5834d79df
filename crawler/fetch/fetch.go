// This file sends one request and reads its answer. It knows nothing of robots,
// links or pacing.

package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Request is what to get.
type Request struct {
	// URL is absolute, http or https. A fragment is not sent, nor is userinfo.
	URL string
	// Header is added to the Fetcher's own. Fetch does not change it.
	Header http.Header
	// MaxBody and Timeout replace those of the Fetcher's Options if positive.
	MaxBody int64
	Timeout time.Duration
	// Addr, if valid, is the address to connect to: one of Addresses. It means
	// nothing through a Proxy.
	Addr netip.Addr
}

// Result is what came back. Its times are filled in even if Fetch fails.
type Result struct {
	URL    string      // as requested
	Status int         // 0 if no answer was read
	Header http.Header // without Content-Encoding if Body is decoded
	// Body is the decoded body, or as much of it as was read.
	Body []byte
	// Truncated says that Body ends at the limit, not where the server's does.
	Truncated bool
	// Bytes is the size of the body as sent.
	Bytes int64
	// Started is before the connection was dialled. Ended is after the last byte
	// was read or, if the server might have sent more, after the connection was
	// closed.
	Started, Ended time.Time
	// RetryAfter is how long from Ended the server asked to be left alone; 0 if
	// it did not, or said it in no way that makes sense.
	RetryAfter time.Duration
}

// Duration is the time from Started to Ended.
func (r *Result) Duration() time.Duration { return r.Ended.Sub(r.Started) }

// Fetcher gets pages. It is safe for concurrent use.
type Fetcher struct {
	opts      Options // read-only after New
	transport *http.Transport
}

// New returns a Fetcher, or an error that names every option out of range.
func New(o Options) (*Fetcher, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	f := &Fetcher{opts: o}
	f.transport = &http.Transport{
		DialContext:            f.dial,
		DisableKeepAlives:      true, // a request on a kept connection may be repeated silently
		DisableCompression:     true, // decoded in body.go, within limits
		TLSHandshakeTimeout:    o.TLSTimeout,
		TLSClientConfig:        o.TLS,
		ResponseHeaderTimeout:  o.HeaderTimeout,
		MaxResponseHeaderBytes: o.MaxHeader,
		Protocols:              new(http.Protocols),
	}
	f.transport.Protocols.SetHTTP1(true) // HTTP/2 repeats requests that a server refused
	if o.Proxy != nil {
		f.transport.Proxy = http.ProxyURL(o.Proxy)
	}
	return f, nil
}

// Fetch sends a GET and reads the answer, whatever its status. Errors are of
// type *Error. The Result is never nil and may hold part of an answer beside an
// error. It returns once the connection is closed.
func (f *Fetcher) Fetch(ctx context.Context, r Request) (*Result, error) {
	res := &Result{URL: r.URL, Started: time.Now()}
	req, err := f.request(r)
	if err != nil {
		res.Ended = res.Started
		return res, &Error{URL: r.URL, Class: BadURL, Err: err}
	}
	timeout := f.opts.Timeout
	if r.Timeout > 0 {
		timeout = r.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a := newAttempt(ctx)
	if f.opts.Proxy == nil {
		a.addr = r.Addr
	}
	done, err := f.roundTrip(a, req, r, res)
	if done {
		res.Ended = time.Now() // the server has nothing more to send
	}
	a.close()
	if !done {
		res.Ended = time.Now()
	}
	if res.Header != nil {
		res.RetryAfter = retryAfter(res.Header.Get("Retry-After"), res.Ended)
	}
	if err != nil {
		return res, &Error{URL: r.URL, Class: classify(ctx, err), Err: err}
	}
	return res, nil
}

// roundTrip fills res and reports whether the answer was read to its end.
func (f *Fetcher) roundTrip(a *attempt, req *http.Request, r Request, res *Result) (done bool, err error) {
	resp, err := f.transport.RoundTrip(req.WithContext(a))
	if err != nil {
		return false, err
	}
	a.idle(f.opts.IdleTimeout)
	defer resp.Body.Close()
	res.Status, res.Header = resp.StatusCode, resp.Header
	limit := f.opts.MaxBody
	if r.MaxBody > 0 {
		limit = r.MaxBody
	}
	return readBody(resp, limit, res)
}

// request builds the request with a target that is sent as written in the URL.
func (f *Fetcher) request(r Request) (*http.Request, error) {
	scheme, rest, ok := strings.Cut(r.URL, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "http" && scheme != "https" {
		return nil, errors.New("want http:// or https://")
	}
	target := ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest, target = rest[:i], rest[i:]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil {
		return nil, err
	}
	if u.Hostname() == "" {
		return nil, errors.New("no host")
	}
	target, _, _ = strings.Cut(target, "#")
	target = sendable(target)
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	u.Opaque = target
	if strings.HasPrefix(target, "//") || f.opts.Proxy != nil && scheme == "http" {
		u.Opaque = "//" + u.Host + target // net/http puts the scheme before it: the absolute form
	}
	req := &http.Request{
		Method: http.MethodGet, URL: u, Host: u.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, len(r.Header)+4),
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	for k, v := range r.Header {
		req.Header[http.CanonicalHeaderKey(k)] = v
	}
	req.Header.Set("User-Agent", f.opts.UserAgent)
	req.Header.Set("Accept-Encoding", "gzip")
	return req, nil
}

// sendable escapes what would break a request line; all else is left alone.
func sendable(s string) string {
	clean := func(c byte) bool { return c > ' ' && c < 0x7f }
	i := 0
	for i < len(s) && clean(s[i]) {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for ; i < len(s); i++ {
		if clean(s[i]) {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
	}
	return b.String()
}
