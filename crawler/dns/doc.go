// Package dns resolves the addresses of many hosts: it queries name servers, caches their answers
// for their TTL, and can look names up in advance.
//
//	r, err := dns.New(dns.Options{Servers: []string{"192.0.2.53", "198.51.100.53:5353"}})
//	defer r.Close()
//	f, err := fetch.New(fetch.Options{Lookup: r.Lookup})
//	c, err := crawler.New(f, crawler.Options{Fetcher: f, Prefetch: r.Prefetch})
//
// Mercator spent 70 % of its elapsed time on names, and 14 % with a resolver that asks in parallel
// (Heydon and Najork 1999, section 3.5). This resolver runs any number of lookups concurrently, and
// shares one lookup among all callers for the same name. It keeps answers for their TTL, including
// negative ones (RFC 2308). [Resolver.Prefetch] looks up names before they are needed, so that
// workers seldom wait.
//
// Without Servers it asks the system's resolver, which knows /etc/hosts and similar sources but
// does not report a TTL; these answers are kept for [Options.SystemTTL].
//
// It is a stub resolver: the servers must be recursive. It asks over UDP, and over TCP if an answer
// is truncated, with random IDs and ports; it ignores answers that do not repeat the question. Servers that do not
// understand EDNS, or drop it, are asked without for an hour (RFC 6891 section 7). An address of one kind waits
// 50 ms for an answer about the other, which is used once it comes (RFC 8305 section 3). When
// no server answers, it returns expired addresses for up to [Options.Stale] (RFC 8767). It does not
// validate DNSSEC.
package dns
