// This file opens connections to permitted addresses, with a time limit for each phase, and ensures
// that they are closed when they are no longer needed.

package fetch

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier/internal/lenient"
)

// connKey identifies requests that may share a connection.
type connKey struct {
	scheme, address string     // host and port as the URL has them
	at              netip.Addr // the first of Request.Addrs, or the one that answered
}

// conn is a connection to a server, and the HTTP client that owns it. One request
// at a time is sent on it.
type conn struct {
	key   connKey
	http  *http.ClientConn
	wire  *timedConn
	http2 bool
	timer *time.Timer // of a kept connection
}

// close closes the connection: when it returns, the server is left alone.
func (c *conn) close() {
	_ = c.http.Close()
	_ = c.wire.Close()
}

// usable reports whether another request may be sent.
func (c *conn) usable() bool { return c.http.Err() == nil && c.http.Available() > 0 }

// dialling passes data between open and dial through net/http.
type dialling struct {
	addrs   []netip.Addr // to be contacted; if empty, look the host up
	contact func(netip.Addr) error
	proxy   *url.URL   // to be dialled instead; nil: none
	at      netip.Addr // the connected address; invalid if only a custom Dial knows it
	secure  bool       // https
	wire    *timedConn
	http2   bool
	res     *Result
}

type diallingKey struct{}

// open makes a new connection.
func (f *Fetcher) open(ctx context.Context, key connKey, d *dialling) (*conn, error) {
	t := &d.res.Timing
	began := time.Now()
	d.secure = key.scheme == "https"
	h, err := f.transport.NewClientConn(context.WithValue(ctx, diallingKey{}, d), key.scheme, key.address)
	if d.secure && d.wire != nil {
		t.TLS = time.Since(began) - t.DNS - t.Connect
	}
	if err != nil {
		if d.wire != nil {
			_ = d.wire.Close()
		}
		return nil, err
	}
	if key.at.IsValid() {
		key.at = d.at
	}
	return &conn{key: key, http: h, wire: d.wire, http2: d.http2}, nil
}

// dial implements the transport's DialContext.
func (f *Fetcher) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	_, c, err := f.reach(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return lenient.NewConn(c, f.opts.MaxHeader), nil
}

// dialTLS implements the transport's DialTLSContext, also for https to a proxy that forwards requests.
func (f *Fetcher) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	d, c, err := f.reach(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s, err := lenient.Secure(ctx, c, f.transport.TLSClientConfig, addr, d.secure && !f.kept.avoidsHTTP2(addr), f.opts.TLSTimeout)
	if err != nil {
		return nil, err
	}
	if d.http2 = s.ConnectionState().NegotiatedProtocol == "h2"; d.http2 {
		return s, nil
	}
	return lenient.NewConn(s, f.opts.MaxHeader), nil
}

// reach connects to addr, which may be that of a proxy, or through a tunnel.
func (f *Fetcher) reach(ctx context.Context, network, addr string) (*dialling, net.Conn, error) {
	d, ok := ctx.Value(diallingKey{}).(*dialling)
	if !ok {
		return nil, nil, errors.New("dial outside a fetch")
	}
	tunnel, to := lenient.Tunnels(d.proxy, d.secure), addr
	if tunnel {
		to = lenient.ProxyAddr(d.proxy)
	}
	limited, cancel := context.WithTimeout(ctx, f.opts.DialTimeout)
	defer cancel()
	raw, err := f.opts.connect(limited, network, to, d)
	if err != nil {
		return nil, nil, err
	}
	d.wire = &timedConn{Conn: raw}
	d.wire.limit.Store(int64(f.opts.HeaderTimeout))
	var c net.Conn = d.wire
	if tunnel {
		c, err = lenient.Through(ctx, c, d.proxy, f.transport.TLSClientConfig, f.opts.TLSTimeout, addr, f.opts.MaxHeader)
	}
	return d, c, err
}

// connect looks up the addresses of a host and connects to one that answers. Forbidden addresses
// are rejected here, after the lookup.
func (o *Options) connect(ctx context.Context, network, addr string, d *dialling) (net.Conn, error) {
	began := time.Now()
	defer func() { d.res.Timing.Connect = time.Since(began) - d.res.Timing.DNS }()
	if d.proxy != nil { // addr is the proxy's
		return o.Dial(ctx, network, addr)
	}
	to, named := o.resolve(addr)
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	var found []netip.Addr
	switch literal, err := netip.ParseAddr(host); {
	case len(d.addrs) > 0:
		found = d.addrs
	case err == nil:
		found = []netip.Addr{literal}
	case o.Lookup == nil: // the user's Dial looks names up
		c, err := o.Dial(ctx, network, to)
		return o.guarded(c, named, err)
	default:
		if found, err = o.Lookup(ctx, host); err == nil && len(found) == 0 {
			err = &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
		}
		d.res.Timing.DNS = time.Since(began)
		if err != nil {
			return nil, err
		}
		found = o.routes.ordered(found)
	}
	if found, err = o.permitted(found, named); err != nil {
		return nil, err
	}
	return o.connectTo(ctx, network, port, found, named, d)
}

// permitted keeps the addresses that may be contacted; named is one that the operator chose.
func (o *Options) permitted(addrs []netip.Addr, named netip.Addr) ([]netip.Addr, error) {
	if named.IsValid() && len(addrs) == 1 && addrs[0].Unmap() == named.Unmap() {
		return addrs, nil
	}
	return o.Networks.permitted(addrs)
}

// guarded closes a connection that a custom Dial made to a forbidden address.
func (o *Options) guarded(c net.Conn, named netip.Addr, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		if _, err := o.permitted([]netip.Addr{a.AddrPort().Addr()}, named); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	return c, nil
}

// resolve applies Resolve to a dialled address. named is the IP address that it
// names for the host, if it does.
func (o *Options) resolve(addr string) (to string, named netip.Addr) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || len(o.Resolve) == 0 {
		return addr, named
	}
	to, ok := o.Resolve[addr]
	if !ok {
		to, ok = o.Resolve[host]
	}
	for rest := host; !ok && rest != ""; {
		_, rest, _ = strings.Cut(rest, ".")
		to, ok = o.Resolve["*."+rest]
	}
	if !ok {
		to, ok = o.Resolve["*"]
	}
	if !ok {
		return addr, named
	}
	if _, _, err := net.SplitHostPort(to); err != nil {
		to = net.JoinHostPort(strings.Trim(to, "[]"), port)
	}
	host, _, _ = net.SplitHostPort(to)
	named, _ = netip.ParseAddr(host)
	return to, named
}

// timedConn sets a deadline for each read, and counts bytes.
type timedConn struct {
	net.Conn
	limit       atomic.Int64 // nanoseconds
	read, wrote atomic.Int64 // bytes since begin
	most        atomic.Int64 // of read; 0: no limit
}

// begin resets the counts, and lifts the limit of the last answer: the body of the next may come before allow.
func (c *timedConn) begin() {
	c.read.Store(0)
	c.wrote.Store(0)
	c.most.Store(0)
}

func (c *timedConn) setLimit(d time.Duration) {
	c.limit.Store(int64(d))
	_ = c.SetReadDeadline(time.Now().Add(d)) // for a Read that waits already; Read meets the error again
}

func (c *timedConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(time.Duration(c.limit.Load()))); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if most := c.most.Load(); c.read.Add(int64(n)) > most && most > 0 {
		return 0, errWaste
	}
	return n, err
}

// errWaste reports what could go on for ever without a byte of a body, such as the padding of HTTP/2.
var errWaste = errors.New("the server sends far more than the body")

// allow bounds what is read for a body of a limit: twice as much, as frames and records take room.
func (c *timedConn) allow(limit, head int64) { c.most.Store(2*limit + head + 1<<20) }

func (c *timedConn) Write(p []byte) (int, error) {
	c.wrote.Add(int64(len(p)))
	return c.Conn.Write(p)
}
