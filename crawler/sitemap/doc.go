// Package sitemap reads sitemaps (sitemaps.org) and feeds, as streams.
//
//	r := sitemap.NewReader(body, sitemap.Options{URL: "https://a.example/sitemap.xml"})
//	for e, err := range r.All() {
//		if err != nil { log.Print(err); continue } // reading goes on
//		if e.Sitemap { ... fetch e.URL, a file of an index ... } else { ... e.URL, e.Modified ... }
//	}
//
// # What is read
//
// XML sitemaps, sitemap index files, text files with a URL on each line, RSS 0.9 to 2.0 and Atom
// feeds, each plain or compressed with gzip, in any encoding of the Encoding Standard. The format
// is recognized from the bytes: media types and names given by servers are often wrong, and ignored
// except for a charset. Elements of other vocabularies (images, videos, news) are skipped, except
// the links to a page's alternates (xhtml:link with hreflang), if [Options].Alternates is set.
//
// # What an entry claims
//
// For each URL the file may state when it changed, how often it changes, and how important it is
// within its site. These are claims of the site: a crawler should trust a date only as far as
// earlier ones proved true, and a priority only within its site.
//
// # Errors
//
// A file is read as far as possible. The scanner tolerates malformed XML: an element that is not
// closed, a stray character or a bad date costs at most the entry that contains it; only a comment
// or a CDATA section without an end costs the rest. Each error is an [*Error] with its position,
// and reading continues, except after [ErrFormat], [ErrTooLarge], [ErrTooMany] and errors of the
// underlying reader. No entry before an error is lost.
//
// # Limits
//
// A file may have 50 MB and 50,000 URLs (sitemaps.org); [Options] can change these limits. Only one
// entry is in memory at a time, and entities are never expanded. Index files are not followed: the
// caller does so, and limits their number.
//
// # Locations
//
// A sitemap may list only URLs with its own scheme, host, port and folder (sitemaps.org, "Sitemap
// file location"), and all URLs of a host whose robots.txt lists the sitemap ("Sitemaps & Cross
// Submits"): [Options].Hosts. Other URLs are reported with [ErrLocation] and skipped, unless
// Options.Locations is [AnyURL]. An index may list sitemaps of its own host or of Hosts. Feeds
// belong to no folder: they may list all URLs of their host.
package sitemap
