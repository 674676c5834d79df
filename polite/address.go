// This file makes hosts that share an address take turns: before each contact the address is looked
// up and the lease joins its group.

package polite

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/addrgroup"
	"github.com/seed-7440039f/frontier/internal/lenient"
)

const (
	addressTTL  = time.Minute // after this Lookup is called again; it may cache for longer
	addressesAt = 1 << 16     // hosts remembered at most
	ipv6Bits    = 64
	dialTimeout = 10 * time.Second // for each address
	tunnelTime  = time.Minute      // for a proxy to open one; as net/http
)

// addressBook remembers the addresses of hosts.
type addressBook struct {
	mu    sync.Mutex
	hosts map[string]addresses // guarded by mu
}

type addresses struct {
	list    []netip.Addr // best first
	expires time.Time
}

// find returns the addresses of a host, best first.
func (b *addressBook) find(ctx context.Context, host string, lookup func(context.Context, string) ([]netip.Addr, error)) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	now := time.Now()
	b.mu.Lock()
	known := b.hosts[host]
	b.mu.Unlock()
	if now.Before(known.expires) {
		return known.list, nil
	}
	list, err := lookup(ctx, host)
	if err == nil && len(list) == 0 {
		err = &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	if len(known.list) > 0 { // a kept connection may lead to the address of the last contact
		first(list, known.list[0])
	}
	b.put(host, addresses{list, now.Add(addressTTL)})
	return list, nil
}

func (b *addressBook) put(host string, a addresses) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hosts == nil {
		b.hosts = map[string]addresses{}
	}
	for old := range b.hosts {
		if len(b.hosts) < addressesAt {
			break
		}
		delete(b.hosts, old) // any: it costs a lookup
	}
	b.hosts[host] = a
}

// answered makes an address the first to be tried.
func (b *addressBook) answered(host string, a netip.Addr) {
	b.mu.Lock()
	known, ok := b.hosts[host]
	b.mu.Unlock()
	if !ok || known.list[0] == a {
		return
	}
	known.list = slices.Clone(known.list)
	first(known.list, a)
	b.put(host, known)
}

// first moves a to the front of list, if it is there.
func first(list []netip.Addr, a netip.Addr) {
	if i := slices.Index(list, a); i > 0 {
		copy(list[1:i+1], list[:i])
		list[0] = a
	}
}

// join makes a contact's lease join the group of the address to contact first. frontier.ErrGroupBusy
// means that the group may not be contacted now.
func (c *contact) join(req *http.Request) error {
	t := c.t
	lookup := t.Lookup
	if lookup == nil {
		if t.Base != nil {
			return nil
		}
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	name, err := frontier.HostName(contacted(req.URL))
	c.tunnel, c.fault = "", nil // of a turn that was missed
	if t.proxy != nil {
		if c.proxy, c.fault = t.proxy(req); c.fault != nil || c.proxy != nil { // the address is the proxy's affair
			if err == nil && t.tunnels && lenient.Tunnels(c.proxy, req.URL.Scheme == "https") {
				c.tunnel = net.JoinHostPort(name, cmp.Or(req.URL.Port(), strings.TrimPrefix(defaultPorts[req.URL.Scheme], ":")))
			}
			return nil
		}
	}
	if err != nil {
		return nil // HostKey knows better: Base decides where to connect
	}
	list, err := t.book.find(req.Context(), name, lookup)
	if err != nil {
		c.fault = err
		return nil
	}
	c.name, c.addrs = name, list
	return c.joinAddress(list[0])
}

// joinAddress makes the lease join the group of an address before the address is contacted.
func (c *contact) joinAddress(a netip.Addr) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.ended.IsZero():
		return frontier.ErrNotLeased
	case addrgroup.Exempt(c.t.Exempt, a) || addrgroup.Assigned(c.lease.Group):
		return nil
	}
	return c.f.Join(&c.lease, addrgroup.Name(a, ipv6Bits))
}

// newBase returns a transport that connects to the address whose turn it is, and reads odd answers. It
// leaves TLS and tunnels to net/http if the program has set how http.DefaultTransport opens them.
func (t *Transport) newBase() *http.Transport {
	base := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if std, ok := http.DefaultTransport.(*http.Transport); ok {
		base = std.Clone()
	}
	maxHead := cmp.Or(base.MaxResponseHeaderBytes, 10<<20) // as net/http
	t.proxy, base.Proxy = base.Proxy, func(req *http.Request) (*url.URL, error) {
		c := contactOn(req.Context())
		if c.tunnel != "" {
			return nil, nil
		}
		return c.proxy, nil
	}
	handshake := cmp.Or(base.TLSHandshakeTimeout, time.Hour)
	dial := func(ctx context.Context, network, to string) (*contact, net.Conn, error) {
		c := contactOn(ctx)
		if c.tunnel == "" {
			conn, err := t.dial(ctx, network, to)
			return c, conn, err
		}
		conn, err := t.dial(ctx, network, lenient.ProxyAddr(c.proxy))
		if err == nil {
			limited, cancel := context.WithTimeout(ctx, tunnelTime)
			defer cancel()
			conn, err = lenient.Through(limited, conn, c.proxy, base.TLSClientConfig, handshake, c.tunnel, maxHead)
		}
		return c, conn, err
	}
	base.DialContext = func(ctx context.Context, network, to string) (net.Conn, error) {
		c, conn, err := dial(ctx, network, to)
		if err != nil || c.tunnel == "" && c.proxy != nil && lenient.IsSOCKS(c.proxy) {
			return conn, err
		}
		return lenient.NewConn(conn, maxHead), nil
	}
	//lint:ignore SA1019 a program may have set it
	if base.DialTLSContext != nil || base.DialTLS != nil || base.ProxyConnectHeader != nil || base.GetProxyConnectHeader != nil || base.OnProxyConnectResponse != nil {
		return base
	}
	t.tunnels = true
	base.DialTLSContext = func(ctx context.Context, network, to string) (net.Conn, error) {
		c, conn, err := dial(ctx, network, to)
		if err != nil {
			return nil, err
		}
		http2 := !c.upgrades && (c.proxy == nil || c.tunnel != "")
		s, err := lenient.Secure(ctx, conn, base.TLSClientConfig, cmp.Or(c.tunnel, to), http2, handshake)
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		if s.ConnectionState().NegotiatedProtocol == "h2" {
			return s, nil
		}
		return secured{lenient.NewConn(s, maxHead), s}, nil
	}
	return base
}

// secured is a connection over TLS on which HTTP/1 is spoken.
type secured struct {
	net.Conn
	tls *tls.Conn
}

func contactOn(ctx context.Context) *contact {
	c, _ := ctx.Value(contactKey{}).(*contact)
	return c
}

// dial connects to the addresses of its contact, in their order. The group of each later address must
// allow a contact, too.
func (t *Transport) dial(ctx context.Context, network, to string) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTimeout}
	c := contactOn(ctx)
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	if c.sent.Load() {
		return nil, errNoAnswer // a connection for a second try
	}
	if c.name == "" || !strings.EqualFold(strings.TrimRight(host, "."), c.name) {
		return d.DialContext(ctx, network, to)
	}
	var failed error
	for i, a := range c.addrs {
		if i > 0 && (ctx.Err() != nil || c.joinAddress(a) != nil) {
			break
		}
		conn, err := d.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			t.book.answered(c.name, a)
			return conn, nil
		}
		failed = cmp.Or(failed, err)
	}
	return nil, failed
}
