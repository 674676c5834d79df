// This file returns the addresses that a request may be sent to, so that a crawler can apply
// politeness to an address before connecting to it.

package fetch

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// Addresses returns the addresses of a URL's host in the order in which Fetch would try them, without
// forbidden ones: IPv4 and IPv6 alternate, and a family without a route from this machine comes last.
// Pass them in Request.Addrs to send the request to one of them. The result is empty if Fetch does not
// look addresses up: through a proxy, or with a Dial but no Lookup. With Options.ProxyLookup, the
// result for a host behind a proxy has all addresses found, or none. Errors are of type *Error.
func (f *Fetcher) Addresses(ctx context.Context, rawURL string) ([]netip.Addr, error) {
	if f.opts.Lookup == nil {
		return nil, nil
	}
	req, err := f.request(Request{URL: rawURL})
	if err != nil {
		return nil, &Error{URL: rawURL, Class: BadURL, Err: err}
	}
	if err := f.CheckPort(rawURL); err != nil {
		return nil, &Error{URL: rawURL, Class: Blocked, Err: err}
	}
	if req.proxy != nil {
		return f.behind(ctx, req.URL.Hostname()), nil
	}
	return f.opts.addresses(ctx, rawURL, net.JoinHostPort(req.URL.Hostname(), portOf(req.URL)))
}

// behind returns the addresses of a host behind a proxy if the Options ask for a lookup and it succeeds.
// The Fetcher contacts none of them, so none is forbidden.
func (f *Fetcher) behind(ctx context.Context, host string) []netip.Addr {
	if !f.opts.ProxyLookup {
		return nil
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}
	}
	ctx, cancel := context.WithTimeout(ctx, f.opts.DialTimeout)
	defer cancel()
	found, err := f.opts.Lookup(ctx, host)
	if err != nil {
		return nil // the proxy may know the name
	}
	return f.opts.routes.ordered(found)
}

// addresses looks up where the host and port of a URL may be contacted.
func (o *Options) addresses(ctx context.Context, rawURL, to string) ([]netip.Addr, error) {
	to, named := o.resolve(to)
	host, _, err := net.SplitHostPort(to)
	if err != nil {
		return nil, &Error{URL: rawURL, Class: BadURL, Err: err}
	}
	var found []netip.Addr
	if addr, err := netip.ParseAddr(host); err == nil {
		found = []netip.Addr{addr}
	} else {
		ctx, cancel := context.WithTimeout(ctx, o.DialTimeout)
		defer cancel()
		found, err = o.Lookup(ctx, host)
		if err == nil && len(found) == 0 {
			err = &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
		}
		if err != nil {
			return nil, &Error{URL: rawURL, Class: classify(ctx, err), Err: err}
		}
	}
	found, err = o.permitted(o.routes.ordered(found), named)
	if err != nil {
		return nil, &Error{URL: rawURL, Class: Blocked, Err: err}
	}
	return found, nil
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
}
