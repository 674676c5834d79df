// This file is the basis of fetchers for other protocols than HTTP: addresses, time limits, a
// contact that is over when Fetch returns. The protocol defines what is sent on the connections.

package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/crawler/spool"
)

// Module is a Fetcher for another protocol than HTTP, built on a function that implements the
// protocol: a protocol module in Mercator's terms. See packages ftp and gopher. It is safe for
// concurrent use if the function is.
type Module struct {
	scheme, port string
	opts         Options
	speak        func(context.Context, *Contact) error
}

// NewModule returns a Fetcher for URLs of a scheme with a default port. For each URL it calls speak,
// which sends at most one request on connections of the Contact, and fills in its Result: Status in
// HTTP's terms, Header, Body. The error of speak is classified; it may be an *Error with a Class.
//
// The Options UserAgent, TLS, cookies, headers of Sites and those about HTTP have no effect. Proxy
// must be nil, because bypassing a proxy would not be what its user wants; hosts to which Sites give
// a proxy are not contacted. Otherwise the error names every option out of range.
func NewModule(scheme, port string, o Options, speak func(context.Context, *Contact) error) (*Module, error) {
	o = o.withDefaults()
	err := o.validate()
	if o.Proxy != nil {
		err = errors.Join(err, fmt.Errorf("fetch: options: Proxy is set; %s cannot go through one", scheme))
	}
	if err != nil {
		return nil, err
	}
	return &Module{scheme: scheme, port: port, opts: o, speak: speak}, nil
}

// Addresses works like Fetcher.Addresses.
func (m *Module) Addresses(ctx context.Context, rawURL string) ([]netip.Addr, error) {
	c, err := m.contact(rawURL)
	if err != nil || m.opts.Lookup == nil {
		return nil, err
	}
	return m.opts.addresses(ctx, rawURL, c.address)
}

// contact parses a URL into a Contact.
func (m *Module) contact(rawURL string) (*Contact, error) {
	u, path, err := takeApart(rawURL, m.scheme)
	if err != nil {
		return nil, &Error{URL: rawURL, Class: BadURL, Err: err}
	}
	if err := m.opts.checkPort(u, m.port); err != nil {
		return nil, &Error{URL: rawURL, Class: Blocked, Err: err}
	}
	if m.opts.extras(u).proxy != nil {
		return nil, &Error{URL: rawURL, Class: Blocked, Err: fmt.Errorf("the host has a proxy; %s cannot go through one", m.scheme)}
	}
	port := cmp.Or(u.Port(), m.port)
	return &Contact{Path: path, opts: &m.opts, address: net.JoinHostPort(u.Hostname(), port)}, nil
}

// Fetch works like Fetcher.Fetch. When it returns, all connections are closed.
func (m *Module) Fetch(ctx context.Context, r Request) (*Result, error) {
	res := &Result{URL: r.URL, Started: time.Now()}
	c, err := m.contact(r.URL)
	if err != nil {
		res.Ended = res.Started
		return res, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(max(0, r.Timeout), m.opts.Timeout))
	defer cancel()
	c.Request, c.Result = r, res
	stop := context.AfterFunc(ctx, c.close)
	err = m.speak(ctx, c)
	stop()
	c.close()
	res.Ended = time.Now()
	if err == nil {
		return res, nil
	}
	class := classify(ctx, err)
	if e, ok := errors.AsType[*Error](err); ok && ctx.Err() == nil {
		class, err = e.Class, e.Err
	}
	res.broke(class)
	return res, &Error{URL: r.URL, Class: class, Err: err}
}

// Contact is one fetch in progress. It may be used only by the goroutine that received it.
type Contact struct {
	Request Request
	Result  *Result
	// Path is the part of the URL after the host, as written and without a fragment; it may be empty.
	Path string

	opts    *Options
	address string         // host and port, as in the URL
	remote  netip.AddrPort // that answered first
	asked   time.Time      // when the first connection was there

	mu     sync.Mutex
	conns  []net.Conn // guarded by mu
	closed bool       // guarded by mu
}

// Dial connects to the URL's host and port, at one of Request.Addrs if there are any, otherwise at
// a permitted address that answers.
func (c *Contact) Dial(ctx context.Context) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.DialTimeout)
	defer cancel()
	raw, err := c.opts.connect(ctx, "tcp", c.address, &dialling{addrs: c.Request.Addrs, contact: c.Request.Contact, res: c.Result})
	if err != nil {
		return nil, err
	}
	c.remote = remoteOf(raw)
	c.Result.Remote = c.remote
	c.asked = time.Now()
	return c.keep(raw)
}

// DialPort makes another connection, after Dial: to the same address, at another port.
func (c *Contact) DialPort(ctx context.Context, port uint16) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.DialTimeout)
	defer cancel()
	number := strconv.Itoa(int(port))
	var raw net.Conn
	var err error
	if a := c.remote.Addr(); a.IsValid() {
		raw, err = c.opts.connectTo(ctx, "tcp", number, []netip.Addr{a}, a, &dialling{res: new(Result)}) // judged before
	} else { // a custom Dial finds the address
		host, _, _ := net.SplitHostPort(c.address)
		raw, err = c.opts.Dial(ctx, "tcp", net.JoinHostPort(host, number))
	}
	if err != nil {
		return nil, err
	}
	return c.keep(raw)
}

// keep closes a connection when the contact ends.
func (c *Contact) keep(raw net.Conn) (*Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	c.conns = append(c.conns, raw)
	return &Conn{Conn: raw, opts: c.opts, wait: c.opts.HeaderTimeout, left: c.opts.MaxHeader, large: c.Request.Large}, nil
}

func (c *Contact) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, x := range c.conns {
		_ = x.Close()
	}
}

// Answer is called when the kind of the answer is known, before its body: it sets the Result's
// status and header, and calls Request.Admit. Its error ends the contact.
func (c *Contact) Answer(status int, h http.Header) error {
	c.Result.Status, c.Result.Header = status, h
	if !c.asked.IsZero() {
		c.Result.Timing.Header = time.Since(c.asked)
	}
	if c.Request.Admit != nil {
		if err := c.Request.Admit(status, h); err != nil {
			return unwantedError{err}
		}
	}
	return nil
}

// MaxBody returns the maximum size of a body in bytes, as sent and as stored.
func (c *Contact) MaxBody() int64 { return cmp.Or(max(0, c.Request.MaxBody), c.opts.MaxBody) }

// ReadBody stores as the Result's Body what r decodes from conn; a nil r is conn itself. It reads
// to the end or to the size limit, with the time limits of bodies.
func (c *Contact) ReadBody(conn *Conn, r io.Reader) error {
	limit := c.MaxBody()
	conn.Expect(limit + 1)
	if r == nil {
		r = conn
	}
	body := spool.New(spool.Options{Memory: c.opts.BodyMemory, Dir: c.opts.TempDir})
	c.Result.Body = body
	began := time.Now()
	_, err := io.Copy(storeWriter{body}, io.LimitReader(r, limit+1))
	c.Result.Timing.Body = time.Since(began)
	c.Result.Bytes = conn.Received()
	if conn.Cut() || body.Size() > limit {
		c.Result.Truncated = true
		return notStored(body.Truncate(limit))
	}
	return err
}

// MakeBody stores what write writes as the Result's Body. An existing Body can be read meanwhile,
// and is closed afterwards.
func (c *Contact) MakeBody(write func(io.Writer) error) error {
	body := spool.New(spool.Options{Memory: c.opts.BodyMemory, Dir: c.opts.TempDir})
	err := write(storeWriter{body})
	err = errors.Join(err, c.Result.Body.Close())
	c.Result.Body = body
	return err
}

// storeWriter separates errors of the store from those of the network.
type storeWriter struct{ body *spool.Body }

func (w storeWriter) Write(p []byte) (int, error) {
	n, err := w.body.Write(p)
	return n, notStored(err)
}

// Conn is a connection of a Contact. Each read has a time limit. It may be used by one goroutine at
// a time.
type Conn struct {
	net.Conn
	opts     *Options
	wait     time.Duration // of one read
	left     int64         // bytes that may still be read
	cut      bool
	received int64
	// of a body:
	body   bool
	window time.Time // when the present stretch of Options.RateWindow began
	before int64     // bytes received until then
	passed int       // stretches before it
	slow   error     // once too little came
	large  func()    // called when the body is no longer small; nil if it was, or there is none
}

// Expect starts a body of at most n bytes, after which a read returns io.EOF. Before Expect, at
// most MaxHeader bytes may be read.
func (c *Conn) Expect(n int64) {
	c.wait, c.left, c.body = c.opts.IdleTimeout, n, true
	c.window, c.before = time.Now(), c.received
}

// Cut reports whether the limit of bytes was met.
func (c *Conn) Cut() bool { return c.cut }

// Received returns how many bytes were received.
func (c *Conn) Received() int64 { return c.received }

// Read implements io.Reader.
func (c *Conn) Read(p []byte) (int, error) {
	switch {
	case c.slow != nil:
		return 0, c.slow
	case c.left <= 0:
		c.cut = true
		return 0, io.EOF
	}
	if err := c.SetReadDeadline(time.Now().Add(c.wait)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	c.received += int64(n)
	if c.left <= 0 {
		c.cut = true
	}
	if c.body && c.received > small && c.large != nil {
		c.large()
		c.large = nil
	}
	if err == nil && c.body {
		c.slow = c.pace()
		err = c.slow
	}
	return n, err
}

// pace fails if too little came in a stretch of time.
func (c *Conn) pace() error {
	if time.Since(c.window) < c.opts.RateWindow {
		return nil
	}
	if c.received-c.before < c.opts.least(c.passed) {
		return errTooSlow
	}
	c.window, c.before = time.Now(), c.received
	c.passed++
	return nil
}
