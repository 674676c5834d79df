// This file follows one contact from its turn to the end of the answer's body.

package polite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
)

// contact is the use of a lease for one request.
type contact struct {
	t        *Transport
	f        described
	lease    frontier.Lease
	own      bool      // the lease is the transport's, which ends it; otherwise it is a Visit's
	question *question // for robots.txt; the contact then ends with Close, not at the end of the body; nil: for another request
	delay    time.Duration
	name     string       // of the machine; empty: its addresses are not known here
	addrs    []netip.Addr // of it, best first
	proxy    *url.URL     // that contacts it; nil: none
	tunnel   string       // host and port to which the proxy opens a tunnel; empty: none, or net/http asks for it
	upgrades bool         // the request asks for another protocol than HTTP, which HTTP/2 does not have
	tls      *tls.Conn    // that the request is sent on; nil: none, or net/http knows it
	fault    error        // of the lookup
	cancel   context.CancelFunc
	sent     atomic.Bool // the request

	mu     sync.Mutex
	began  time.Time
	waited time.Duration // since RoundTrip was called, until began
	bytes  int64
	resp   *http.Response
	ended  time.Time // zero: the contact goes on
	out    frontier.Outcome
	err    error // of Done
}

func (t *Transport) newContact(req *http.Request) *contact {
	return &contact{t: t, f: t.f, question: questionOf(req.Context())}
}

// left returns how long the lease lasts yet. The frontier's clock may be virtual: a deadline on another
// day than the system's clock counts from now.
func (c *contact) left() time.Duration {
	d := c.lease.Deadline.Sub(c.lease.LeasedAt)
	if left := time.Until(c.lease.Deadline); left > -24*time.Hour && left < d {
		d = left
	}
	return d
}

// lasts returns how long the contact may last.
func (c *contact) lasts() time.Duration {
	d := c.left()
	if c.t.Timeout > 0 {
		d = min(d, c.t.Timeout)
	}
	return d
}

// outcomeNow returns the contact's outcome, and ends the contact if it is still open. err is the caller's
// error from reading the body.
func (c *contact) outcomeNow(err error) frontier.Outcome {
	if err == nil || errors.Is(err, io.EOF) {
		err = nil
	}
	c.end(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.out
	if err != nil && o.Result != frontier.Failed && o.Result != frontier.Requeue {
		ended := o
		o = c.t.judge(c.resp, err)
		o.Ended, o.Duration, o.Bytes, o.CrawlDelay = ended.Ended, ended.Duration, ended.Bytes, ended.CrawlDelay
	}
	return o
}

// end records the end of the contact, and ends its lease if that is the transport's. err is why the
// response is missing or incomplete. Only the first call counts.
func (c *contact) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended.IsZero() {
		return
	}
	c.ended = time.Now()
	if c.cancel != nil {
		defer c.cancel()
	}
	c.out = c.judgeLocked(err)
	if !c.own {
		return
	}
	o := c.out
	if o.Result != frontier.Failed && o.Result != frontier.Requeue {
		o.Result = frontier.Visited // there is no page
	}
	c.err = c.f.Done(c.lease, o)
	switch {
	case errors.Is(c.err, frontier.ErrNotLeased), errors.Is(c.err, frontier.ErrClosed):
		c.err = nil // it expired: the host's pause began then
	case c.err != nil: // of a Judge that makes no sense: the lease must end all the same
		c.err = errors.Join(c.err, c.f.Done(c.lease, frontier.Outcome{Result: frontier.Requeue, Ended: c.ended}))
	}
}

// judge asks Judge. It gets the answer without its body, which has ended.
func (t *Transport) judge(resp *http.Response, err error) frontier.Outcome {
	if t.Judge == nil {
		return outcomeOf(resp, err)
	}
	if resp != nil {
		head := *resp
		head.Body = http.NoBody
		resp = &head
	}
	return t.Judge(resp, err)
}

// judgeLocked returns the outcome of a contact that ended with err.
func (c *contact) judgeLocked(err error) frontier.Outcome {
	o := c.t.judge(c.resp, err)
	o.Ended, o.Duration, o.Bytes = c.ended, max(c.ended.Sub(c.began), 1), c.bytes
	if c.delay != 0 {
		o.CrawlDelay = c.delay
	}
	if o.Uncontacted = false; o.Failure != 0 && c.question != nil && c.question.sibling {
		o.Failure = frontier.FailureOther // the host answers by another scheme: no reason to slow it down
	}
	return o
}

// roundTrip sends req under the contact's lease.
func (c *contact) roundTrip(req *http.Request, called time.Time) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(req.Context(), contactKey{}, c), c.lasts())
	c.mu.Lock()
	c.cancel, c.began = cancel, time.Now()
	c.waited = c.began.Sub(called)
	c.mu.Unlock()
	answered := false
	defer func() {
		if !answered { // Base panicked
			c.end(errPanicked)
		}
	}()
	if err := c.fault; err != nil {
		answered = true
		c.end(c.blame(req.Context(), err))
		closeBody(req)
		return nil, err
	}
	c.upgrades = req.Header.Get("Upgrade") != ""
	once := c.once(ctx)
	out := req.WithContext(once)
	if r := c.t.Robots; r != nil && r.Agent != "" && req.Header["User-Agent"] == nil {
		if out.Header = req.Header.Clone(); out.Header == nil {
			out.Header = http.Header{}
		}
		out.Header.Set("User-Agent", r.Agent)
	}
	if c.tunnel != "" { // net/http keeps connections by their URL's host; each proxy needs its own
		there := *req.URL
		there.Host = fmt.Sprintf("%x:%s", sha256.Sum256([]byte(c.proxy.String()+" "+c.tunnel)), there.Port())
		out.URL, out.Host = &there, cmp.Or(req.Host, req.URL.Host)
	}
	resp, err := c.t.sending.RoundTrip(out)
	answered = true
	if err != nil {
		if context.Cause(once) == errNoAnswer {
			err = errNoAnswer
		}
		c.end(c.blame(req.Context(), err))
		return nil, err
	}
	resp.Request = req
	c.mu.Lock()
	c.resp = resp
	if c.tls != nil {
		state := c.tls.ConnectionState()
		resp.TLS = &state
	}
	c.mu.Unlock()
	b := &body{ReadCloser: resp.Body, c: c, caller: req.Context()}
	switch w, writes := resp.Body.(io.Writer); {
	case resp.Body == nil || resp.Body == http.NoBody:
		b.ReadCloser = http.NoBody
		resp.Body = b
		if c.question == nil {
			c.end(nil)
		}
	case writes: // 101 Switching Protocols: the connection is the caller's, whatever the context
		context.AfterFunc(ctx, func() { _ = b.ReadCloser.Close() })
		resp.Body = writableBody{b, w}
	default:
		resp.Body = b
	}
	return resp, nil
}

// once returns a context under which an http.Transport sends the request once. If the server closes
// a kept connection instead of answering, it would send it again at once, on another.
func (c *contact) once(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx) // ends with the contact's
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { c.sent.Store(true) },
		GotConn: func(g httptrace.GotConnInfo) {
			if s, ok := g.Conn.(secured); ok {
				c.mu.Lock()
				c.tls = s.tls
				c.mu.Unlock()
			}
		},
		GetConn: func(string) {
			if c.sent.Load() {
				cancel(errNoAnswer)
			}
		},
	})
}

var errNoAnswer = fmt.Errorf("polite: the server closed the connection without an answer: %w", io.ErrUnexpectedEOF)

var errPanicked = errors.New("polite: the base transport panicked")

// blame returns the error to judge by. A request that its caller ended says nothing about the host,
// unless the host had most of the time.
func (c *contact) blame(caller context.Context, err error) error {
	if err != nil && caller.Err() != nil && time.Since(c.began) < c.waited {
		return context.Canceled
	}
	if errors.Is(caller.Err(), context.Canceled) {
		return context.Canceled
	}
	return err
}

// body reports the end of an answer to its contact.
type body struct {
	io.ReadCloser
	c      *contact
	caller context.Context
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.c.mu.Lock()
	b.c.bytes += int64(n)
	b.c.mu.Unlock()
	switch {
	case err == nil:
	case err != io.EOF:
		b.c.end(b.c.blame(b.caller, err))
	case b.c.question == nil:
		b.c.end(nil)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.c.end(nil)
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	return errors.Join(err, b.c.err)
}

func (b *body) contact() *contact { return b.c }

// writableBody is the body of an answer that switches protocols.
type writableBody struct {
	*body
	io.Writer
}

// contactOf returns the contact that an answer came with; nil if that is not known.
func contactOf(resp *http.Response) *contact {
	if b, ok := resp.Body.(interface{ contact() *contact }); ok {
		return b.contact()
	}
	return nil
}

type contactKey struct{}
