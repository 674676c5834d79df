// Package filter decides which URLs and answers are wanted, and returns why not.
//
//	f := filter.All(
//		filter.Allow("domains", filter.Domain("example.org", "example.net")),
//		filter.Deny("pictures", filter.Extension("png", "jpg", "gif")),
//		filter.MaxDepth(12),
//		filter.NewTraps(filter.TrapOptions{}),
//	)
//	if r := f.Refuse(filter.Split("http://example.org/a/a/a/a", 3)); r.Refused() {
//		log.Print(r) // repeating-segments: "a/b" occurs 3 times or more; at most 2
//	}
//
// A [Match] is a predicate on URLs, a function; [Allow] and [Deny] turn it into a [Filter]; [All]
// combines filters. A [Reason] contains the name of its rule, which is stable and
// meant to be counted, and details for people. A [Response] judges an answer's header, before its
// body is read.
//
// [Traps] are guards against sites without an end: URLs that repeat themselves, calendars, facets,
// session ids, paths of unlimited depth, too many pages of one pattern. They count the pages that
// were fetched, so a URL is judged when it is found and again before it is fetched.
//
// Everything here is safe for concurrent use.
package filter
