// This file reads URLs by the WHATWG URL Standard, through whatwg-url, and recognizes URLs that
// need no parser.

package urlnorm

import (
	"net/url"
	"strings"
	"unicode/utf8"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/idna"
)

// MaxLength is the maximum length of a URL in bytes. Common servers accept no more, and a page
// should not be able to fill a crawler's memory with one link.
const MaxLength = 8 << 10

// maxAt limits the at signs of a URL. The parser copies what came before each of them, so a link
// made of at signs would cost a tenth of a second.
const maxAt = 64

// aceMark replaces the xn-- of a label during parsing, since the parser would reject labels whose
// punycode is invalid. A page that contains the mark only gets what it could have written directly.
const aceMark = "{ace}"

var parser = whatwg.NewParser(
	whatwg.WithPreParseHostFunc(shieldHost),
	whatwg.WithPostParseHostFunc(unshieldHost),
)

// unshieldHost reverts shieldHost, and leaves marks unchanged that shieldHost would not have set.
func unshieldHost(_ *whatwg.Url, host string) string {
	if plain := strings.ReplaceAll(host, aceMark, "xn--"); shieldHost(nil, plain) == host {
		return plain
	}
	return host
}

// names is the profile of the URL Standard ("domain to ASCII", beStrict false). The parser's own has
// UseSTD3ASCIIRules, and so refuses underscores beside international labels.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.VerifyDNSLength(false), idna.StrictDomainName(false),
	idna.ValidateLabels(true), idna.CheckHyphens(false), idna.CheckJoiners(true), idna.Transitional(false))

// toASCII returns the ASCII form of an international name; other hosts, and what is no name, unchanged.
func toASCII(host string) string {
	name := host
	if strings.Contains(name, "%") {
		name, _ = url.PathUnescape(name)
	}
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) || !utf8.ValidString(name) {
		return host
	}
	if ascii, err := names.ToASCII(name); err == nil && ascii != "" && !strings.ContainsFunc(ascii, forbidden) {
		return ascii
	}
	return host
}

// forbidden reports whether a character is no part of a plain host name: it is forbidden in domains, or of aceMark.
func forbidden(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("#%/:<>?@[\\]^{|}", r)
}

// shieldHost replaces the xn-- of labels in plain host names by aceMark.
func shieldHost(u *whatwg.Url, host string) string {
	if u != nil && crawlable(u.Scheme()) { // hosts of other schemes may be opaque
		host = toASCII(host)
	}
	if !strings.Contains(host, "--") {
		return host
	}
	if strings.ContainsFunc(host, forbidden) {
		return host
	}
	labels := strings.Split(host, ".")
	for i, l := range labels {
		if len(l) >= len("xn--") && strings.EqualFold(l[:len("xn--")], "xn--") {
			labels[i] = aceMark + l[len("xn--"):]
		}
	}
	return strings.Join(labels, ".")
}

func crawlable(scheme string) bool {
	return scheme == "http" || scheme == "https" || scheme == "ftp"
}

// check rejects, before parsing, URLs of other schemes and URLs that would be expensive to parse.
func check(raw string) error {
	if s, _, ok := strings.Cut(raw[:min(len(raw), 64)], ":"); ok {
		s = strings.ToLower(strings.TrimLeft(s, " "))
		if isScheme(s) && !crawlable(s) {
			return ErrScheme
		}
	}
	return bounded(raw)
}

// isScheme reports whether s is all lower-case letters. Rarer schemes are left to
// the parser.
func isScheme(s string) bool {
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return false
		}
	}
	return s != ""
}

// parse returns raw's parts, relative to base unless that is nil.
func parse(raw string, base *whatwg.Url) (URL, error) {
	if err := check(raw); err != nil {
		return URL{}, err
	}
	if u, ok := parsePlain(raw); ok {
		return u, nil
	}
	return parseFully(raw, base)
}

func parseFully(raw string, base *whatwg.Url) (URL, error) {
	w, err := parser.BasicParser(raw, base, nil, whatwg.NoState)
	switch {
	case err != nil:
		return URL{}, syntaxError{err}
	case !crawlable(w.Scheme()):
		return URL{}, ErrScheme
	}
	return split(w.Href(false)), nil
}

// parsePlain splits a URL that the parser would return unchanged: lower-case scheme and host name,
// no port, no percent-encoding present or needed, no dot segments. In doubt it returns false.
func parsePlain(raw string) (URL, bool) {
	var u URL
	rest, ok := strings.CutPrefix(raw, "http")
	if !ok {
		return u, false
	}
	u.Scheme = raw[:len("http")]
	if r, ok := strings.CutPrefix(rest, "s"); ok {
		u.Scheme, rest = raw[:len("https")], r
	}
	rest, ok = strings.CutPrefix(rest, "://")
	if !ok {
		return u, false
	}
	i := strings.IndexByte(rest, '/')
	if i < 0 {
		return u, false
	}
	u.Host, rest = rest[:i], rest[i:]
	rest, u.Fragment, u.HasFragment = strings.Cut(rest, "#")
	if !plainHost(u.Host) || !plainPath(rest) || !plainFragment(u.Fragment) {
		return u, false
	}
	u.Path, u.Query, u.HasQuery = strings.Cut(rest, "?")
	return u, true
}

// plainHost reports whether s is a lower-case name that is no IPv4 address, has
// no punycode and no empty label.
func plainHost(s string) bool {
	label := 0 // where the current label begins
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c == '-' && i > label && s[i-1] != '-': // hyphens at the start or in pairs are rare
		case c == '.' && i > label:
			label = i + 1
		default:
			return false
		}
	}
	// A last label that begins with a digit may be a number, also 0x10.
	return label < len(s) && (s[label] < '0' || s[label] > '9')
}

// plainPath reports whether s, a path and a query, contains only characters that the URL Standard
// leaves unchanged.
func plainPath(s string) bool {
	for i := range len(s) {
		if !plainByte[s[i]] || s[i] == '.' && s[i-1] == '/' {
			return false
		}
	}
	return true
}

// plainFragment reports the same of a fragment.
func plainFragment(s string) bool {
	for i := range len(s) {
		if !plainByte[s[i]] {
			return false
		}
	}
	return true
}

// plainByte is RFC 3986's pchar, slash and question mark, except the percent sign and the
// apostrophe, which is encoded in queries and not in paths.
var plainByte = func() (t [256]bool) {
	for c := range t {
		t[c] = !pathForm.Encodes(byte(c))
	}
	t['%'], t['\''], t['?'] = false, false, true
	return t
}()
