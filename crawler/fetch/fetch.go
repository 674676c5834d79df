// This file sends one request and reads its answer. It does not deal with robots.txt, links or pacing.

package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/crawler/spool"
	"github.com/seed-7440039f/frontier/internal/lenient"
	"github.com/seed-7440039f/frontier/internal/reply"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Request says what to fetch.
type Request struct {
	// URL is absolute, http or https. A fragment is not sent, nor is userinfo.
	URL string
	// Header is added to the Fetcher's own. Fetch does not change it.
	Header http.Header
	// MaxBody and Timeout, if positive, replace those of the Fetcher's Options.
	MaxBody int64
	Timeout time.Duration
	// Larger, if set, is called once a body reaches MaxBody, with its header and beginning. It
	// returns how many bytes to read in all. Such a body is stored in a file.
	Larger func(h http.Header, head []byte) int64
	// Large, if set, is called once a body is no longer small: when more than 256 KiB of it are
	// decoded. It may wait; nothing more is read until it returns.
	Large func()
	// Addrs, if not empty, are the addresses to connect to, best first: the result of Addresses.
	// The others are tried when the first does not answer. They have no effect with a Proxy.
	Addrs []netip.Addr
	// Contact, if set, is called before another address than the first of Addrs is contacted: when the
	// addresses before it have failed or, if it was dialled because they did not respond, before a byte
	// is sent. If it returns an error, Fetch sends nothing and returns the error, wrapped.
	Contact func(netip.Addr) error
	// Admit, if set, is called with the response's header. If it returns an error, the body is not read:
	// the Result has no body, and Fetch returns an *Error of class Unwanted that wraps it.
	Admit func(status int, h http.Header) error
}

// Result is the answer. Its times are set even if Fetch fails.
type Result struct {
	URL    string      // as requested
	Status int         // 0 if no answer was read
	Proto  string      // "HTTP/1.1" or "HTTP/2.0"
	Header http.Header // without Content-Encoding if Body is decoded
	// Request is the head of the request as sent, including the empty line at its end; for HTTP/2
	// it is written in the form of HTTP/1.1.
	Request []byte
	// Body is the decoded body, as far as it was read; nil if nothing was. It may be in a temporary
	// file: Close the Result.
	Body *spool.Body
	// Truncated means that Body was cut at a limit. Bomb means that the limit was MaxRatio.
	Truncated, Bomb bool
	// Broken is why the end of Body is missing when Fetch returned an error, in WARC's terms
	// (WARC-Truncated). Truncated is set, too.
	Broken string
	// Bytes is the size of the body as sent.
	Bytes int64
	// Cookies is the number of the answer's cookies passed to the Jar; 0 without a Jar.
	Cookies int
	// Remote is the connected address, or the proxy's. Failed are the addresses that were tried
	// before and refused a connection.
	Remote netip.AddrPort
	Failed []netip.Addr
	// Started is the time before the connection was dialled. Ended is the time after the last byte
	// was read or, if the server might have sent more, after the connection was closed.
	Started, Ended time.Time
	// RetryAfter is the pause that the server asked for, counted from Ended; 0 if it asked for
	// none, or not in a valid form.
	RetryAfter time.Duration
	Timing     Timing
}

// Timing holds the durations of the phases of a fetch; 0 for a phase that was not reached, or not
// needed on a kept connection.
type Timing struct {
	DNS, Connect, TLS time.Duration
	Header            time.Duration // from sending the request to the end of the header
	Body              time.Duration
	Reused            bool // the connection was one kept from an earlier fetch
}

// broke records what an error means for a body that was partly read.
func (r *Result) broke(c Class) {
	if r.Body.Size() == 0 {
		return
	}
	switch c {
	case Cut, Protocol:
		r.Broken = "disconnect"
	case Timeout:
		r.Broken = "time"
	case Decode:
		r.Broken = "unspecified"
	}
	r.Truncated = r.Truncated || r.Broken != ""
}

// Duration returns the time from Started to Ended.
func (r *Result) Duration() time.Duration { return r.Ended.Sub(r.Started) }

// Close releases the Body. A Result without a Body need not be closed.
func (r *Result) Close() error { return r.Body.Close() }

// Fetcher gets pages. It is safe for concurrent use.
type Fetcher struct {
	opts      Options // read-only after New
	transport *http.Transport
	kept      keeper
}

// New returns a Fetcher, or an error that names every option out of range.
func New(o Options) (*Fetcher, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	f := &Fetcher{opts: o}
	f.transport = &http.Transport{ // opens connections, and does not keep them; see keep.go
		DialContext:            f.dial,
		DialTLSContext:         f.dialTLS,
		DisableKeepAlives:      o.NoKeepAlive,
		DisableCompression:     true, // decoded in decode.go, within limits
		TLSClientConfig:        o.tlsConfig(),
		ResponseHeaderTimeout:  o.HeaderTimeout,
		MaxResponseHeaderBytes: o.MaxHeader,
		Protocols:              new(http.Protocols),
	}
	f.transport.Protocols.SetHTTP1(true)
	f.transport.Protocols.SetHTTP2(!o.NoHTTP2)
	f.transport.Proxy = func(r *http.Request) (*url.URL, error) { // r is made up by net/http, and lacks the port
		if d, ok := r.Context().Value(diallingKey{}).(*dialling); ok {
			if lenient.Tunnels(d.proxy, d.secure) { // see dial
				return nil, nil
			}
			return d.proxy, nil
		}
		return nil, errors.New("dial outside a fetch")
	}
	return f, nil
}

// CloseIdle closes the connections kept for later requests. The Fetcher remains usable.
func (f *Fetcher) CloseIdle() { f.kept.closeAll() }

// Fetch sends a GET and reads the answer, whatever its status. Errors are of type *Error. The
// Result is never nil, and may hold part of an answer in addition to an error. When Fetch returns,
// the connection is closed, or idle after an answer that was read to its end.
func (f *Fetcher) Fetch(ctx context.Context, r Request) (*Result, error) {
	res := &Result{URL: r.URL, Started: time.Now()}
	req, err := f.request(r)
	if err != nil {
		res.Ended = res.Started
		return res, &Error{URL: r.URL, Class: BadURL, Err: err}
	}
	if err := f.CheckPort(r.URL); err != nil {
		res.Ended = res.Started
		return res, &Error{URL: r.URL, Class: Blocked, Err: err}
	}
	if err := unit.Check("Request.Timeout", max(0, r.Timeout), unit.Measured); err != nil {
		res.Ended = res.Started
		return res, &Error{URL: r.URL, Class: BadURL, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(max(0, r.Timeout), f.opts.Timeout))
	defer cancel()
	key := connKey{scheme: req.URL.Scheme, address: net.JoinHostPort(req.URL.Hostname(), portOf(req.URL))}
	if req.proxy == nil {
		if len(r.Addrs) > 0 {
			key.at = r.Addrs[0]
		}
	} else if a, err := netip.ParseAddr(req.URL.Hostname()); err == nil { // names are the proxy's to judge
		if err := f.opts.Networks.Check(a); err != nil {
			res.Ended = res.Started
			return res, &Error{URL: r.URL, Class: Blocked, Err: err}
		}
	}
	stale, err := f.exchange(ctx, key, req, r, res)
	if res.Ended.IsZero() {
		res.Ended = time.Now()
	}
	if res.Header != nil {
		res.RetryAfter = reply.RetryAfter(res.Header, res.Ended)
	}
	if err != nil {
		class := classify(ctx, err)
		if class == TLS && !f.opts.OldTLS && wantsOldTLS(err) {
			err = oldTLSError{err}
		}
		res.broke(class)
		return res, &Error{URL: r.URL, Class: class, Stale: stale, Err: err}
	}
	return res, nil
}

// exchange sends the request on a kept connection or a new one and fills res. The request is sent
// once: another connection is tried only if no byte of it was sent on the kept one. stale means
// that the server closed a kept connection instead of answering.
func (f *Fetcher) exchange(ctx context.Context, key connKey, req *request, r Request, res *Result) (stale bool, err error) {
	if c := f.kept.take(key); c != nil {
		res.Timing.Reused = true
		c.wire.begin()
		c.wire.setLimit(f.opts.HeaderTimeout)
		err := f.roundTrip(ctx, c, req, r, res)
		silent := err != nil && ctx.Err() == nil && res.Status == 0 && c.wire.read.Load() == 0 && !reply.IsTimeout(err)
		if !silent {
			return false, err
		}
		f.kept.spoil(key)
		if c.wire.wrote.Load() > 0 {
			return true, err
		}
		res.Timing, res.Ended = Timing{}, time.Time{}
	}
	c, err := f.open(ctx, key, &dialling{addrs: r.Addrs, contact: r.Contact, proxy: req.proxy, res: res})
	if err != nil {
		return false, err
	}
	return false, f.roundTrip(ctx, c, req, r, res)
}

// roundTrip fills res, and keeps the connection or closes it.
func (f *Fetcher) roundTrip(ctx context.Context, c *conn, req *request, r Request, res *Result) (err error) {
	done, keep := false, false
	defer func() {
		if done {
			res.Ended = time.Now() // the server has nothing more to send
		}
		if c.http2 && err != nil && (classify(ctx, err) == Protocol || strings.Contains(err.Error(), "HTTP_1_1_REQUIRED")) {
			f.kept.avoidHTTP2(c.key.address)
		}
		if keep && done && err == nil {
			f.kept.put(c, &f.opts)
		} else {
			c.close()
		}
		if !done {
			res.Ended = time.Now()
		}
	}()
	res.Remote = remoteOf(c.wire)
	sent := time.Now()
	head := &requestHead{req: req.Request, shown: maps.Clone(req.shown)}
	resp, err := c.http.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, head.trace())))
	res.Request = head.bytes()
	res.Timing.Header = time.Since(sent)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	c.wire.setLimit(f.opts.IdleTimeout)
	limit := cmp.Or(max(0, r.MaxBody), f.opts.MaxBody)
	c.wire.allow(limit, f.opts.MaxHeader)
	res.Status, res.Proto, res.Header = resp.StatusCode, resp.Proto, resp.Header
	if f.opts.Jar != nil {
		cookies := cookiesOf(resp.Header)
		f.opts.Jar.SetCookies(cookieURL(req.Request), cookies)
		res.Cookies = len(cookies)
	}
	if n := fields(resp.Header); n > f.opts.MaxHeaderFields {
		return fmt.Errorf("%d header fields; want at most %d", n, f.opts.MaxHeaderFields)
	}
	if r.Admit != nil {
		if err := r.Admit(resp.StatusCode, resp.Header); err != nil {
			return unwantedError{err}
		}
	}
	began := time.Now()
	done, err = f.readBody(resp, c, limit, r, res)
	res.Timing.Body = time.Since(began)
	keep = !resp.Close && resp.StatusCode != http.StatusSwitchingProtocols
	return err
}

// fields counts the fields of a header.
func fields(h http.Header) (n int) {
	for _, v := range h {
		n += len(v)
	}
	return n
}

// request is an HTTP request on its way.
type request struct {
	*http.Request
	proxy *url.URL // nil: none
	// shown are the header fields that Result.Request shows otherwise than they are sent, because of
	// what is secret in them.
	shown http.Header
}

// request builds the request with a target that is sent as written in the URL.
func (f *Fetcher) request(r Request) (*request, error) {
	u, target, err := takeApart(r.URL, "http", "https")
	if err != nil {
		return nil, err
	}
	target = sendable(target)
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	u.Opaque = target
	x := f.opts.extras(u)
	forwards := x.proxy != nil && !lenient.Tunnels(x.proxy, u.Scheme == "https")
	if strings.HasPrefix(target, "//") || forwards {
		u.Opaque = "//" + u.Host + target // net/http puts the scheme before it: the absolute form
	}
	req := &request{proxy: x.proxy, shown: http.Header{"Proxy-Authorization": nil}, Request: &http.Request{
		Method: http.MethodGet, URL: u, Host: u.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, len(r.Header)+len(x.header)+4),
	}}
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	for name, values := range x.header {
		req.Header[name] = values
		if x.secret[name] {
			req.shown[name] = slices.Repeat([]string{redacted}, len(values))
		}
	}
	for k, v := range r.Header {
		req.Header[http.CanonicalHeaderKey(k)] = v
	}
	req.Header.Set("User-Agent", f.opts.UserAgent)
	req.Header.Set("Accept-Encoding", acceptEncoding)
	var stored []*http.Cookie
	if f.opts.Jar != nil {
		stored = f.opts.Jar.Cookies(cookieURL(req.Request))
	}
	if shown := x.addCookies(req.Request, stored); shown != nil {
		req.shown["Cookie"] = shown
	}
	return req, nil
}

// takeApart returns scheme and host of a URL, and the rest as written, without a fragment.
func takeApart(rawURL string, schemes ...string) (_ *url.URL, target string, err error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	scheme = strings.ToLower(scheme)
	if !ok || !slices.Contains(schemes, scheme) {
		return nil, "", fmt.Errorf("want %s://", strings.Join(schemes, ":// or "))
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest, target = rest[:i], rest[i:]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil {
		return nil, "", err
	}
	if u.Hostname() == "" {
		return nil, "", errors.New("no host")
	}
	target, _, _ = strings.Cut(target, "#")
	return u, target, nil
}

// sendable escapes what would break a request line, and nothing else.
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
