// This file connects to one of a host's addresses, and to the next when one does not answer, within
// the same attempt (RFC 8305, "Happy Eyeballs").
//
// It differs from a browser in two points. IPv4 comes first, because hosts that share a server
// share its IPv4 address more often: see crawler.Groups. And no byte is sent before Request.Contact
// permits the address.

package fetch

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// stagger is the wait for an address before the next one is tried in parallel (RFC 8305 section
	// 5, "Connection Attempt Delay").
	stagger = 250 * time.Millisecond
	// maxTried is how many addresses are tried: more are no host's, but a list of strangers' addresses.
	maxTried = 16
	// routeMemory is how long a family of addresses without a route comes last.
	routeMemory = time.Minute
)

// attempt is how one address answered.
type attempt struct {
	n    int // of the address
	conn net.Conn
	err  error
}

// connectTo connects to the first of the addresses that answers. After a failure it tries the next
// address at once, after silence only after a while. When it returns, all other connections and
// attempts have ended.
func (o *Options) connectTo(ctx context.Context, network, port string, addrs []netip.Addr, named netip.Addr, d *dialling) (net.Conn, error) {
	addrs = addrs[:min(len(addrs), maxTried)]
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan attempt, len(addrs))
	next, open, agreed := 0, 0, 0
	defer func() {
		cancel()
		for ; open > 0; open-- {
			if a := <-ended; a.conn != nil {
				_ = a.conn.Close()
			}
		}
	}()
	begin := func() error {
		n := next
		if n > 0 && open == 0 { // those before have failed: this one is contacted instead
			if err := d.agree(addrs[n]); err != nil {
				return err
			}
			agreed = n
		}
		next++
		open++
		go func() {
			c, err := o.Dial(ctx, network, net.JoinHostPort(addrs[n].String(), port))
			c, err = o.guarded(c, named, err)
			ended <- attempt{n, c, err}
		}()
		return nil
	}
	if err := begin(); err != nil {
		return nil, err
	}
	timer := time.NewTimer(stagger)
	defer timer.Stop()
	var first error
	for {
		var silent <-chan time.Time
		if next < len(addrs) {
			silent = timer.C
		}
		select {
		case <-silent:
			if err := begin(); err != nil {
				return nil, err
			}
			timer.Reset(stagger)
		case a := <-ended:
			open--
			o.routes.note(addrs[a.n], a.err)
			if a.err == nil {
				d.at = addrs[a.n]
				d.res.Remote = remoteOf(a.conn)
				if a.n != agreed {
					if err := d.agree(d.at); err != nil {
						_ = a.conn.Close()
						return nil, err
					}
				}
				return a.conn, nil
			}
			first = cmp.Or(first, a.err)
			if ctx.Err() == nil {
				d.res.Failed = append(d.res.Failed, addrs[a.n])
			}
			switch {
			case next < len(addrs) && ctx.Err() == nil:
				if err := begin(); err != nil {
					return nil, err
				}
				timer.Reset(stagger)
			case open == 0:
				return nil, first
			}
		}
	}
}

// remoteOf returns the address that a connection leads to, if it is an IP address.
func remoteOf(c net.Conn) netip.AddrPort {
	a, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
}

// agree asks whether an address may be contacted instead of the first.
func (d *dialling) agree(a netip.Addr) error {
	if d.contact == nil {
		return nil
	}
	if err := d.contact(a); err != nil {
		return contactError{err}
	}
	return nil
}

// routes records for which family of addresses this machine has no route. A nil *routes records
// nothing.
type routes struct{ lost4, lost6 atomic.Pointer[time.Time] }

func (r *routes) of(a netip.Addr) *atomic.Pointer[time.Time] {
	if a.Is4() {
		return &r.lost4
	}
	return &r.lost6
}

// note records how a connection to an address ended.
func (r *routes) note(a netip.Addr, err error) {
	switch {
	case r == nil:
	case err == nil:
		r.of(a).Store(nil)
	case noRoute(err):
		now := time.Now()
		r.of(a).Store(&now)
	}
}

func noRoute(err error) bool {
	return errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// lost reports whether there was no route to addresses of a's family lately.
func (r *routes) lost(a netip.Addr) bool {
	if r == nil {
		return false
	}
	at := r.of(a).Load()
	return at != nil && time.Since(*at) < routeMemory
}

// ordered returns the addresses without repetition, IPv4 and IPv6 alternating (RFC 8305 section 4), IPv4
// first unless there is no route.
func (r *routes) ordered(found []netip.Addr) []netip.Addr {
	addrs := make([]netip.Addr, len(found))
	for i, a := range found {
		addrs[i] = a.Unmap()
	}
	slices.SortFunc(addrs, netip.Addr.Compare) // IPv4 before IPv6
	addrs = slices.Compact(addrs)
	n := len(addrs)
	if i := slices.IndexFunc(addrs, netip.Addr.Is6); i >= 0 {
		n = i
	}
	a, b := addrs[:n], addrs[n:]
	if len(a) == 0 || len(b) == 0 {
		return addrs
	}
	if r.lost(a[0]) && !r.lost(b[0]) {
		a, b = b, a
	}
	out := make([]netip.Addr, 0, len(addrs))
	for i := range max(len(a), len(b)) {
		out = append(append(out, a[min(i, len(a)):min(i+1, len(a))]...), b[min(i, len(b)):min(i+1, len(b))]...)
	}
	return out
}
