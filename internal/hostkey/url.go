// Package hostkey computes the keys of hosts: it finds the host to which politeness applies for a
// URL, in any spelling, and orders keys by domain. It has no state.
package hostkey

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-7440039f/frontier/internal/idna"
)

// Of returns the key of a URL's host: see frontier.HostName.
//
// It examines only the scheme and the authority of the URL: the rest matters only to the fetcher
// and the host, and is no reason to lose a URL.
func Of(rawURL string) (string, error) {
	if h, ok := plainHost(rawURL); ok {
		return h, nil
	}
	for i := range len(rawURL) {
		if b := rawURL[i]; b <= ' ' || b == 0x7f {
			return "", fmt.Errorf("character %q in URL", b)
		}
	}
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok || !isScheme(scheme) {
		return "", errors.New("not an absolute URL with a host")
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	if strings.IndexByte(rest, '\\') >= 0 {
		return "", errors.New("backslash before the path") // browsers and Go disagree on its host
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	host, port, err := splitPort(rest)
	if err != nil {
		return "", err
	}
	if port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return "", fmt.Errorf("invalid port %q; want 0 to 65535", port)
		}
	}
	if isASCII(host) {
		host = strings.ToLower(host)
	} else if host, err = idna.ToASCII(host); err != nil {
		return "", err
	}
	host = strings.TrimSuffix(host, ".")
	if emptyLabel(host) {
		return "", fmt.Errorf("host %q has an empty label, and no DNS resolves it", host)
	}
	if a, ok := ipv4(host); ok {
		host = a.String()
	}
	switch {
	case host == "":
		return "", errors.New("no host")
	case len(host) > 255:
		return "", fmt.Errorf("host has %d bytes; want at most 255", len(host))
	}
	return host, nil
}

// emptyLabel reports whether a host without its final dot has dots with nothing between or before
// them. The URL standard takes such names, but they are none of the DNS.
func emptyLabel(host string) bool {
	return strings.HasPrefix(host, ".") || strings.HasSuffix(host, ".") || strings.Contains(host, "..")
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isScheme(s string) bool {
	for i := range len(s) {
		switch b := s[i] | 0x20; {
		case b >= 'a' && b <= 'z' && s[i] >= 'A':
		case i > 0 && (s[i] >= '0' && s[i] <= '9' || strings.IndexByte("+-.", s[i]) >= 0):
		default:
			return false
		}
	}
	return s != ""
}

// splitPort splits an authority without user into host and port. A host in brackets is an IPv6 address,
// which is returned in its shortest form; an IPv4-mapped address is returned as the IPv4 address.
func splitPort(s string) (host, port string, err error) {
	if strings.HasPrefix(s, "[") {
		inner, rest, ok := strings.Cut(s[1:], "]")
		addr, err := netip.ParseAddr(inner)
		if !ok || err != nil || !addr.Is6() || rest != "" && rest[0] != ':' {
			return "", "", fmt.Errorf("invalid host %q", s)
		}
		return addr.Unmap().String(), strings.TrimPrefix(rest, ":"), nil
	}
	host, port, _ = strings.Cut(s, ":")
	if i := strings.IndexAny(host, "\"%<>[\\]^`{|}"); i >= 0 {
		return "", "", fmt.Errorf("character %q in host", host[i])
	}
	return host, port, nil
}

// plainHost quickly finds the host of the usual kind of URL: http or https, and a host of lower-case
// letters, digits, dots and hyphens before a slash or the end, without spaces and controls anywhere.
func plainHost(s string) (string, bool) {
	rest, ok := strings.CutPrefix(s, "http://")
	if !ok {
		if rest, ok = strings.CutPrefix(s, "https://"); !ok {
			return "", false
		}
	}
	n := 0
	for n < len(rest) && (rest[n] >= 'a' && rest[n] <= 'z' || rest[n] >= '0' && rest[n] <= '9' || rest[n] == '-' || rest[n] == '.') {
		n++
	}
	if n == 0 || n > 253 || rest[n-1] == '.' || n < len(rest) && rest[n] != '/' {
		return "", false
	}
	if oddNumber(rest[:n]) || emptyLabel(rest[:n]) {
		return "", false
	}
	for i := n; i < len(rest); i++ {
		if b := rest[i]; b <= ' ' || b == 0x7f {
			return "", false
		}
	}
	return rest[:n], true
}

// oddNumber reports whether a host may be an IPv4 address in a notation other than that of keys.
func oddNumber(host string) bool {
	if b := host[strings.LastIndexByte(host, '.')+1]; b < '0' || b > '9' {
		return false
	}
	_, err := netip.ParseAddr(host)
	return err != nil
}

// ipv4 reads an IPv4 address according to the URL Standard: up to four numbers, each decimal, octal
// (0177) or hexadecimal (0x7f), the last of which fills the remaining bytes. It returns false for
// names, and for what no resolver accepts as an address.
func ipv4(host string) (netip.Addr, bool) {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" || last[0] < '0' || last[0] > '9' || strings.Count(host, ".") > 3 {
		return netip.Addr{}, false
	}
	var ip uint64
	for room := 4; ; room-- { // bytes of this part and those after it
		part, rest, more := strings.Cut(host, ".")
		n, ok := ipv4Number(part)
		switch {
		case !ok || more && n > 255 || n >= 1<<(8*room):
			return netip.Addr{}, false
		case !more:
			ip |= n
			return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)}), true
		}
		ip |= n << (8 * (room - 1))
		host = rest
	}
}

func ipv4Number(s string) (uint64, bool) {
	base := 10
	switch {
	case strings.HasPrefix(s, "0x"):
		if s, base = s[2:], 16; s == "" {
			return 0, true
		}
	case len(s) > 1 && s[0] == '0':
		s, base = s[1:], 8
	}
	n, err := strconv.ParseUint(s, base, 64)
	return n, err == nil
}

// HasScheme reports whether a URL is absolute. Links of the web are, once they are resolved,
// and may be malformed all the same.
func HasScheme(url string) bool {
	i := strings.IndexAny(url, ":/?#")
	return i > 0 && url[i] == ':'
}
