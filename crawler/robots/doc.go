// Package robots reads robots.txt files as RFC 9309 describes them and decides what a crawler may
// fetch.
//
// [FromStatus] converts the answer to a request for /robots.txt into a [Robots]; [Parse] reads only
// a body. [Robots.Group] selects the rules for one crawler, and [Rules.Allowed] decides about one
// URL:
//
//	file := robots.FromStatus(resp.StatusCode, body)
//	rules := file.Group("examplebot")
//	if rules.Allowed("https://a.example/page?id=7") { ... }
//
// Both values are immutable and safe for concurrent use. A crawler that caches many hosts should
// keep only the Rules: they hold one group's patterns, not the whole file.
//
// # How rules are matched
//
// All groups that name the crawler are merged; the groups for * apply only if none does (RFC 9309
// section 2.2.1). The rule with the most octets wins, Allow wins a tie, and without a matching rule
// the URL is allowed (section 2.2.2). Patterns and URLs are first converted to the same
// percent-encoded form: characters that a URI cannot contain are encoded, characters that need no
// encoding are decoded. So /foo/bar/ツ and /foo/bar/%e3%83%84 are the same, while %2F and / stay
// different. /robots.txt itself is always allowed.
//
// The largest file with a URL of 4,000 bytes costs milliseconds, whatever the file contains. Rules
// without wildcards cost one search in a table. Rules with wildcards cost time proportional to
// their lengths, times the logarithm of the URL's length: if there are many, an index of the URL is
// built first.
//
// Apart from that, a URL is taken as given: the caller resolves dot segments (see package urlnorm).
//
// # Beyond the RFC
//
// Crawl-delay and Sitemap lines are reported. Like Google's parser, this package accepts common
// misspellings of Disallow, User-agent and Sitemap, and a missing colon, because the author's
// intention is clear. Unlike Google's, it does not treat index.html as its directory.
package robots
