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
// first, in order, without those that may not be contacted; name one of them in Request.Addr to have the request sent
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
	to, named := f.opts.resolve(net.JoinHostPort(req.URL.Hostname(), portOf(req.URL)))
	host, _, err := net.SplitHostPort(to)
	if err != nil {
		return nil, &Error{URL: rawURL, Class: BadURL, Err: err}
	}
	var found []netip.Addr
	if addr, err := netip.ParseAddr(host); err == nil {
		found = []netip.Addr{addr}
	} else {
		ctx, cancel := context.WithTimeout(ctx, f.opts.DialTimeout)
		defer cancel()
		found, err = f.opts.Lookup(ctx, host)
		if err == nil && len(found) == 0 {
			err = &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
		}
		if err != nil {
			return nil, &Error{URL: rawURL, Class: classify(ctx, err), Err: err}
		}
	}
	found, err = f.permitted(ordered(found), named)
	if err != nil {
		return nil, &Error{URL: rawURL, Class: Blocked, Err: err}
	}
	return found, nil
}

// ordered are addresses without repetition, IPv4 before IPv6.
func ordered(found []netip.Addr) []netip.Addr {
	addrs := make([]netip.Addr, len(found))
	for i, a := range found {
		addrs[i] = a.Unmap()
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
}
