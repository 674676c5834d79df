// This file reads the flags of crawl that say how pages are fetched: from which
// addresses, over what, within which limits.

package main

import (
	"flag"
	"fmt"
	"net/netip"
	"time"

	"github.com/seed-7440039f/frontier/crawler/dns"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// fetchFlags are those flags before they are judged.
type fetchFlags struct {
	allow, deny list
	servers     list
	cookies     bool
	minRate     byteSize
	bodyMemory  byteSize
}

func (w *fetchFlags) define(fs *flag.FlagSet, o *fetch.Options) {
	fs.Var(&w.allow, "allow-network", "`networks` (CIDR) to contact though they are not public: 127.0.0.0/8, an intranet's; comma-separated")
	fs.Var(&w.deny, "deny-network", "`networks` never to contact, comma-separated")
	fs.Var(&w.servers, "dns", "name `servers` to ask, IP addresses with or without a port, comma-separated (default: the system's resolver)")
	fs.BoolVar(&w.cookies, "cookies", false, "keep cookies, in memory")
	fs.BoolVar(&o.NoHTTP2, "no-http2", false, "HTTP/1.1 only")
	fs.BoolVar(&o.NoKeepAlive, "no-keep-alive", false, "a new connection for each request")
	fs.DurationVar(&o.KeepAlive, "keep-alive", 15*time.Second, "how long a host's connection is kept idle for its next request")
	fs.Var(w.minRate.set(64), "min-rate", "`bytes` a second that must come at least, over 20 s")
	fs.IntVar(&o.MaxRatio, "max-ratio", 200, "how many times as large a body of more than 2 MiB may get by decoding")
	fs.Var(w.bodyMemory.set(1<<20), "body-memory", "`bytes` of a page that are kept in memory; longer ones are in a file of -temp")
	fs.StringVar(&o.TempDir, "temp", "", "`folder` for such files (default: the system's)")
}

// apply judges the flags and completes the options. The resolver is nil after an
// error.
func (w *fetchFlags) apply(o *fetch.Options) (_ *dns.Resolver, errs []error) {
	networks := func(name string, l list) (out []netip.Prefix) {
		for _, s := range l {
			p, err := netip.ParsePrefix(s)
			if err != nil {
				errs = append(errs, fmt.Errorf("-%s is %q; want networks like 192.0.2.0/24", name, s))
				continue
			}
			out = append(out, p)
		}
		return out
	}
	o.Networks = fetch.Networks{Allow: networks("allow-network", w.allow), Deny: networks("deny-network", w.deny)}
	if w.cookies {
		o.Jar = fetch.NewJar()
	}
	names, err := dns.New(dns.Options{Servers: w.servers})
	if err != nil {
		errs = append(errs, fmt.Errorf("-dns: %w", err))
	} else {
		o.Lookup = names.Lookup
	}
	o.MinRate, o.BodyMemory = int64(w.minRate), int(w.bodyMemory)
	for name, n := range map[string]int64{
		"keep-alive": int64(o.KeepAlive), "min-rate": o.MinRate, "max-ratio": int64(o.MaxRatio), "body-memory": int64(o.BodyMemory),
	} {
		if n <= 0 {
			errs = append(errs, fmt.Errorf("-%s is %d; want > 0", name, n))
		}
	}
	return names, errs
}
