// Package sitemap reads sitemaps (sitemaps.org) and feeds, as streams.
//
//	r := sitemap.NewReader(body, sitemap.Options{URL: "https://a.example/sitemap.xml"})
//	for e, err := range r.All() {
//		if err != nil { log.Print(err); continue } // reading goes on
//		if e.Sitemap { ... fetch e.URL, a file of an index ... } else { ... e.URL, e.Modified ... }
//	}
//
// [Walk] also follows index files, through a function that fetches.
//
// # What is read
//
// XML sitemaps, sitemap index files, text files with a URL on each line, RSS 0.9 to
// 2.0 and Atom feeds, each plain or compressed with gzip, in any encoding that the
// Encoding Standard knows. Which of them it is the bytes decide; servers' media
// types and names are often wrong, so they are not asked, but for a charset. Elements
// of other vocabularies (images, videos, news) are passed over, but for the links to
// a page's alternates (xhtml:link with hreflang), if [Options].Alternates asks for them.
//
// # What is hinted
//
// Of each URL the file may say when it changed, how often it changes, and how
// important it is among those of its site. These are claims of the site: a crawler
// should trust a date as far as earlier ones came true, and a priority only within
// its site.
//
// # Errors
//
// A file is read as far as it makes sense. XML is scanned forgivingly: an element
// that is not closed, a stray character or a bad date costs at most the entry it is
// in; only a comment or a CDATA section without an end costs the rest. Each error is
// an [*Error] with its position, and reading goes on, except after [ErrFormat],
// [ErrTooLarge], [ErrTooMany] and what the underlying reader said. Not one entry that
// stands before an error is lost.
//
// # Limits
//
// A file may have 50 MB and 50,000 URLs (sitemaps.org); [Options] say otherwise. No
// more than one entry is in memory, entities are never expanded, and Walk bounds how
// deep index files nest and how many files there are, and reads none twice.
//
// # Locations
//
// A sitemap may name URLs of its own scheme, host, port and folder only (sitemaps.org,
// "Sitemap file location"), and all of a host whose robots.txt names the sitemap
// ("Sitemaps & Cross Submits"): [Options].Hosts. Others are reported with
// [ErrLocation] and left out, unless Options.Locations is [AnyURL]. An index may name
// sitemaps of its own host or of Hosts. Feeds belong to no folder: they may name all
// of their host.
package sitemap
