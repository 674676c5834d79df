// Package addrgroup names the groups of hosts that share an address.
package addrgroup

import (
	"net/netip"
	"slices"
)

// Name returns the name of an address's group: the address or, for IPv6, its network of
// the given number of bits, 1 to 128. A NAT64 address, in 64:ff9b::/96, counts as the
// IPv4 address that it contains.
func Name(a netip.Addr, ipv6Bits int) string {
	if a = a.Unmap().WithZone(""); nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if a.Is4() || ipv6Bits == 128 {
		return a.String()
	}
	p, _ := a.Prefix(ipv6Bits)
	return p.String()
}

var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Assigned reports whether a group is not named after an address: an operator put the
// host there, and it stays there.
func Assigned(group string) bool {
	if group == "" {
		return false
	}
	_, noAddress := netip.ParseAddr(group)
	_, noNetwork := netip.ParsePrefix(group)
	return noAddress != nil && noNetwork != nil
}

// Exempt reports whether an address is in one of some networks, whose hosts make no group.
func Exempt(in []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(in, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}
