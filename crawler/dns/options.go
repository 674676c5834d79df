// This file holds the options of a Resolver.

package dns

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Options configure a Resolver. The zero value asks the system's resolver.
type Options struct {
	// Servers are IP addresses of recursive name servers, with a port or for port 53. The Resolver
	// keeps using the first that answers, and tries the others when it does not. Empty means the
	// system's resolver.
	Servers []string
	// Timeout limits the wait for an answer to one question. Zero means 2 s.
	Timeout time.Duration
	// Tries is the number of questions, over the servers in turn, until a lookup fails. Zero means
	// 2 for each server, and at least 3.
	Tries int
	// NoIPv6 asks for IPv4 addresses only.
	NoIPv6 bool

	// MinTTL and MaxTTL limit how long an answer is kept. Zero means 1 s and 24 h.
	MinTTL, MaxTTL time.Duration
	// NegativeTTL limits how long it is cached that a name has no address. It also limits how long
	// other failures are cached, which is at most 5 s. Zero means 15 minutes.
	NegativeTTL time.Duration
	// SystemTTL is how long answers of the system's resolver are kept. Zero means
	// 10 minutes.
	SystemTTL time.Duration
	// Stale is how long an expired answer may be used when no server answers. Zero means 24 h.
	Stale time.Duration
	// MaxNames is the number of names in the cache, at about 300 bytes each; the least recently
	// used is evicted. Zero means 65,536.
	MaxNames int
	// MaxPrefetch is the number of concurrent lookups in advance; further ones are skipped. Zero
	// means 32.
	MaxPrefetch int

	// Dial opens connections to servers. Nil means a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Now returns the time. Nil means time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.MinTTL = cmp.Or(o.MinTTL, time.Second)
	o.MaxTTL = cmp.Or(o.MaxTTL, 24*time.Hour)
	o.NegativeTTL = cmp.Or(o.NegativeTTL, 15*time.Minute)
	o.SystemTTL = cmp.Or(o.SystemTTL, 10*time.Minute)
	o.Stale = cmp.Or(o.Stale, 24*time.Hour)
	o.Tries = cmp.Or(o.Tries, max(3, 2*len(o.Servers)))
	o.MaxNames = cmp.Or(o.MaxNames, 1<<16)
	o.MaxPrefetch = cmp.Or(o.MaxPrefetch, 32)
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o Options) validate() error { // runs after withDefaults; reports every fault at once
	var wrong faults.List
	for _, s := range o.Servers {
		_, err := serverAddr(s)
		wrong.If(err != nil, "Servers has %q; want an IP address, with or without a port", s)
	}
	wrong.Add(unit.CheckAll("", o)...)
	wrong.If(o.MaxTTL < o.MinTTL, "MinTTL is %v, MaxTTL %v; want MinTTL <= MaxTTL", o.MinTTL, o.MaxTTL)
	wrong.If(o.Tries < 1, "Tries is %d; want > 0", o.Tries)
	wrong.If(o.MaxNames < 1, "MaxNames is %d; want > 0", o.MaxNames)
	wrong.If(o.MaxPrefetch < 1, "MaxPrefetch is %d; want > 0", o.MaxPrefetch)
	return wrong.Of("dns: options")
}

// serverAddr parses a server's address and port.
func serverAddr(s string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(a, 53), nil
	}
	return netip.ParseAddrPort(s)
}
