// Package robots reads robots.txt files as RFC 9309 describes them and tells a
// crawler what it may fetch.
//
// [FromStatus] turns the answer to a request for /robots.txt into a [Robots];
// [Parse] is for a body alone. [Robots.Group] picks the rules for one crawler,
// and [Rules.Allowed] answers for one URL:
//
//	file := robots.FromStatus(resp.StatusCode, body)
//	rules := file.Group("examplebot")
//	if rules.Allowed("https://a.example/page?id=7") { ... }
//
// Both values are immutable and safe for concurrent use. A crawler that caches
// many hosts should keep the Rules only: they hold one group's patterns, not
// the whole file.
//
// # How rules are matched
//
// All groups that name the crawler are merged; the groups for * count only if
// none does (RFC 9309 section 2.2.1). The rule with the most octets wins, Allow
// wins a tie, no rule means allowed (section 2.2.2). Patterns and URLs are
// brought to one percent-encoded form first: what a URI cannot hold is encoded,
// what needs no encoding is decoded. So /foo/bar/ツ and /foo/bar/%e3%83%84 are
// the same, while %2F and / stay different. /robots.txt itself is always
// allowed.
//
// The largest file with a URL of 4,000 bytes costs milliseconds, whatever the file holds.
// Rules without wildcards cost one search in a table. Those with wildcards cost time in
// proportion to their own lengths, times the logarithm of the URL's length: if they are
// many, an index of the URL is built first.
//
// A URL is taken as given otherwise: dot segments are the caller's to resolve
// (see package urlnorm).
//
// # Beyond the RFC
//
// Crawl-delay and Sitemap lines are reported. Common misspellings of Disallow,
// User-agent and Sitemap are accepted, and so is a missing colon, as Google's
// parser does: the author's wish is plain. Google's treatment of index.html as
// its directory is not copied.
package robots
