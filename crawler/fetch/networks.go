// This file decides which addresses may be contacted, so that a hostile page cannot make the
// crawler send requests into its own network.
//
// A name is judged by the addresses to which it resolves, when connecting; see dial.

package fetch

import (
	"fmt"
	"net/netip"
	"slices"
)

// Networks decides which addresses may be contacted. The zero value permits the public internet. It
// forbids loopback, private and link-local addresses (including those of cloud metadata services,
// also where these are public), shared address space of carriers, multicast, reserved,
// documentation and benchmarking networks, and addresses that stand for another one (IPv4-mapped
// and -compatible, NAT64, 6to4, Teredo).
type Networks struct {
	// Allow lists exceptions: 127.0.0.0/8 for a demonstration, 10.0.0.0/8 for an intranet. For an
	// address in 64:ff9b::/96 (NAT64), both it and the IPv4 address that it contains must be
	// allowed. Addresses in Options.Resolve and the address of Options.Proxy need no exception.
	Allow []netip.Prefix
	// Deny lists further forbidden networks. It takes precedence over Allow.
	Deny []netip.Prefix
}

// AddressError reports a forbidden address.
type AddressError struct {
	Addr netip.Addr
	Kind string // of network, as "loopback"
}

// Error implements error.
func (e *AddressError) Error() string {
	return fmt.Sprintf("address %v is not to be contacted: %s", e.Addr, e.Kind)
}

// special lists the networks that are not public, according to IANA's registries of special-purpose
// addresses (RFC 6890 and its amendments), and public addresses of services inside clouds,
// according to:
//   - Azure: learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
//   - IBM: cloud.ibm.com/docs/vpc, "Service endpoints" (161.26.0.0/16)
//   - Equinix, formerly Packet: metadata.packet.net is 192.80.8.124
var special = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared address space"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("161.26.0.0/16"), "a cloud's own"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's own"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.80.8.124/32"), "a cloud's own"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::/96"), "IPv4-compatible"},
	{netip.MustParsePrefix("64:ff9b::/96"), "NAT64"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local NAT64"},
	{netip.MustParsePrefix("2001::/32"), "Teredo"},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var (
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
	globalUnicast = netip.MustParsePrefix("2000::/3")
)

// Check returns an *AddressError if an address may not be contacted. An IPv4-mapped address is
// judged as the IPv4 address to which a system connects.
func (n *Networks) Check(addr netip.Addr) error {
	a := addr.WithZone("").Unmap()
	if !a.IsValid() {
		return &AddressError{addr, "no address"}
	}
	if slices.ContainsFunc(n.Deny, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return &AddressError{addr, "denied"}
	}
	if nat64.Contains(a) && n.allows(a) {
		b := a.As16()
		return n.Check(netip.AddrFrom4([4]byte(b[12:])))
	}
	if n.allows(a) {
		return nil
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return &AddressError{addr, s.kind}
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return &AddressError{addr, "not global"}
	}
	return nil
}

func (n *Networks) allows(a netip.Addr) bool {
	return slices.ContainsFunc(n.Allow, func(p netip.Prefix) bool { return p.Contains(a) })
}

// permitted returns the addresses that may be contacted. If there are none, it returns the first
// address's error.
func (n *Networks) permitted(addrs []netip.Addr) ([]netip.Addr, error) {
	var out []netip.Addr
	var first error
	for _, a := range addrs {
		if err := n.Check(a); err == nil {
			out = append(out, a)
		} else if first == nil {
			first = err
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	return nil, first
}
