// Package dns finds the addresses of many hosts: it asks name servers, remembers
// what they say for as long as they say, and can be told ahead what will be needed.
//
//	r, err := dns.New(dns.Options{Servers: []string{"192.0.2.53", "198.51.100.53:5353"}})
//	defer r.Close()
//	f, err := fetch.New(fetch.Options{Lookup: r.Lookup})
//	c, err := crawler.New(f, crawler.Options{Fetcher: f, Prefetch: r.Prefetch})
//
// Mercator spent 70 % of its elapsed time on names, and 14 % with a resolver that
// asks in parallel (Heydon and Najork 1999, section 3.5). Here any number of lookups
// go on at once, those of one name together as one; answers are kept for their TTL,
// also those that there is no such name (RFC 2308); and [Resolver.Prefetch] looks up
// what is about to be needed, so that workers seldom wait.
//
// Without Servers the system's resolver is asked, which knows /etc/hosts and the
// like but tells no TTL; then answers are kept for [Options.SystemTTL].
//
// It is a stub resolver: the servers must be ones that recurse. It asks over UDP, and
// over TCP if an answer is cut short, with random IDs and ports; what does not repeat
// the question is not read. When no server answers, an address that has expired is
// better than none, for [Options.Stale] (RFC 8767). It does not check DNSSEC.
package dns
