// This file finds the registrable domain of a host, by the Public Suffix List.

package urlnorm

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// ErrNoDomain is returned for hosts without a registrable domain: addresses, and
// names that are public suffixes themselves, such as com and co.uk.
var ErrNoDomain = errors.New("no registrable domain")

// RegistrableDomain returns the registrable domain of a host name, one label more than the public
// suffix: example.co.uk for www.example.co.uk. host is a name without port, in any case, in Unicode
// or punycode; the result is in lower case and punycode, as in normalized URLs. It fails with
// [ErrNoDomain], or with [ErrSyntax] if host is not a host name.
//
// The list comes from golang.org/x/net/publicsuffix (publicsuffix.org), including its private part:
// a.github.io is a registrable domain. If the suffix of a name is not in the list, its last label
// counts as the suffix.
func RegistrableDomain(host string) (string, error) {
	host = strings.TrimSuffix(host, ".")
	if host == "" || len(host) > MaxLength || strings.HasPrefix(host, ".") || strings.Contains(host, "..") || strings.ContainsAny(host, ":/\\?#@[]%") {
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
			return "", fmt.Errorf("%w: %s is an address", ErrNoDomain, host)
		}
		return "", fmt.Errorf("%w: %q is no host name", ErrSyntax, host)
	}
	u, err := parse("http://"+host+"/", nil)
	if err != nil {
		return "", err
	}
	if _, err := netip.ParseAddr(u.Host); err == nil {
		return "", fmt.Errorf("%w: %s is an address", ErrNoDomain, u.Host)
	}
	name := strings.TrimSuffix(u.Host, ".")
	domain, err := publicsuffix.EffectiveTLDPlusOne(name)
	if err != nil {
		return "", fmt.Errorf("%w: %s is a public suffix", ErrNoDomain, name)
	}
	return domain, nil
}
