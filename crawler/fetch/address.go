// This file tells which addresses a request may be sent to, so that a crawler can
// be polite to an address before it connects to it.

package fetch

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Addresses returns the addresses of a URL's host as Fetch would find them, IPv4
// first, in order; name one of them in Request.Addr to have the request sent
// there. There are none if Fetch does not look them up: through a Proxy, or with a
// Dial but no Lookup. Errors are of type *Error.
func (f *Fetcher) Addresses(ctx context.Context, rawURL string) ([]netip.Addr, error) {
	if f.opts.Proxy != nil || f.opts.Lookup == nil {
		return nil, nil
	}
	req, err := f.request(Request{URL: rawURL})
	if err != nil {
		return nil, &Error{URL: rawURL, Class: BadURL, Err: err}
	}
	host, _, err := net.SplitHostPort(f.opts.resolve(net.JoinHostPort(req.URL.Hostname(), portOf(req.URL))))
	if err != nil {
		return nil, &Error{URL: rawURL, Class: BadURL, Err: err}
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr.Unmap()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.opts.DialTimeout)
	defer cancel()
	found, err := f.opts.Lookup(ctx, host)
	if err == nil && len(found) == 0 {
		err = &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	if err != nil {
		return nil, &Error{URL: rawURL, Class: classify(ctx, err), Err: err}
	}
	addrs := make([]netip.Addr, len(found))
	for i, a := range found {
		addrs[i] = a.Unmap()
	}
	slices.SortFunc(addrs, netip.Addr.Compare) // IPv4 before IPv6
	return slices.Compact(addrs), nil
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
}

// pinned is the address to dial instead of addr, whose port it keeps.
func pinned(addr string, to netip.Addr) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil || !to.IsValid() {
		return addr
	}
	return net.JoinHostPort(to.String(), port)
}
