// Package urlnorm resolves links as browsers do and gives each URL one normal form.
//
// A crawler meets the same page under many spellings and must fetch it once. It also meets links
// that only work because browsers are lenient: backslashes, tabs, http:/x, IPv4 addresses in octal.
// So URLs are read by the WHATWG URL Standard, not by RFC 3986:
//
//	n := urlnorm.New()
//	u, err := n.Normalize("HTTP://Bücher.example:80/a/../%7euser#top")
//	// http://xn--bcher-kva.example/~user
//
// # Parsing
//
// The parser lower-cases scheme and host, drops the scheme's default port, resolves dot segments,
// replaces an empty path by a slash, converts international host names to punycode and normalizes
// IP addresses. These steps cannot be turned off. Only http, https and ftp URLs are accepted;
// others return [ErrScheme], unless [Normalizer.Accept] adds their scheme. [Reference] resolves a
// link of any scheme.
//
// A plain ASCII host name with an xn-- label is kept even if its punycode is invalid: DNS accepts
// such names, and such sites exist.
//
// # Rules
//
// After parsing, a [Normalizer] applies an ordered list of named rules. [Default] lists those that
// keep a URL's meaning on practically every server; [Thorough] adds rules that a crawler of the
// open web needs although some servers disagree. Custom rules are ordinary functions on a [URL].
//
// Normalizing is idempotent with the package's own rules, provided that [PercentEncoding] comes
// before the rules that compare names.
package urlnorm
