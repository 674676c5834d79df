// This file reads URLs by the WHATWG URL Standard, through whatwg-url, and recognizes URLs that
// need no parser.

package urlnorm

import (
	"encoding/hex"
	"net/url"
	"strings"
	"unicode/utf8"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/idna"

	hostname "github.com/seed-7440039f/frontier/internal/idna"
)

// MaxLength is the maximum length of a URL in bytes. Common servers accept no more, and a page
// should not be able to fill a crawler's memory with one link.
const MaxLength = 8 << 10

// maxAt limits the at signs of a URL. The parser copies what came before each of them, so a link
// made of at signs would cost a tenth of a second.
const maxAt = 64

var parser = whatwg.NewParser(
	whatwg.WithPreParseHostFunc(shieldHost),
	whatwg.WithPostParseHostFunc(unshieldHost),
	whatwg.WithPathPercentEncodeSet(whatwg.PathPercentEncodeSet.Set('^')), // as the standard has done since 2023
)

// shieldMark begins what stands for a name that is not plain while the parser reads it: the mark and the name in
// hexadecimal. The parser's own reading of names is not the standard's: it refuses ASCII beyond letters, digits and hyphens beside
// international labels, and takes -1 for a number.
const shieldMark = "_"

// shieldHost reads a host as the URL Standard does, and returns what the parser reads in the same way.
func shieldHost(u *whatwg.Url, host string) string {
	const refused = " " // the parser refuses hosts with a blank
	if strings.HasPrefix(host, "[") {
		if strings.Count(host, "[") > 1 || strings.Count(host, "]") > 1 { // the parser drops all of them
			return host + refused
		}
		return host
	}
	if plainHost(host) || !u.IsSpecialScheme() { // others are opaque
		return host
	}
	name, ok := domain(host)
	switch {
	case !ok:
		return host + refused
	case !endsInNumber(name):
		return shieldMark + hex.EncodeToString([]byte(name))
	case strings.ContainsAny(name, "+-"): // the parser reads signs
		return host + refused
	}
	return name
}

// unshieldHost returns the name that shieldHost has hidden.
func unshieldHost(_ *whatwg.Url, host string) string {
	hidden, ok := strings.CutPrefix(host, shieldMark)
	if !ok {
		return host
	}
	name, _ := hex.DecodeString(hidden)
	return string(name)
}

// names is the profile of the URL Standard ("domain to ASCII", beStrict false).
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.VerifyDNSLength(false), idna.StrictDomainName(false),
	idna.ValidateLabels(true), idna.CheckHyphens(false), idna.CheckJoiners(true), idna.Transitional(false))

// domain returns the ASCII form of a name, which may be an IPv4 address; ok is false if the URL Standard refuses the name.
// Beyond the standard, a name in ASCII may have labels with invalid punycode.
func domain(host string) (name string, ok bool) {
	name, err := url.PathUnescape(host)
	if err != nil {
		return "", false // a percent sign is left, which is forbidden
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		if !utf8.ValidString(name) {
			return "", false
		}
		// UTS 46 maps the capital sharp s to the small one since Unicode 15.1, and idna has the tables of an older one.
		name = strings.ReplaceAll(name, "\u1e9e", "\u00df")
		ascii, err := names.ToASCII(name)
		if err != nil {
			return "", false
		}
		for label := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune(".\u3002\uff0e\uff61", r) }) {
			if len(label) >= len("xn--") && strings.EqualFold(label[:len("xn--")], "xn--") {
				if mapped, err := hostname.ToASCII(label); err != nil || mapped == "xn--" { // names reads it otherwise
					return "", false
				}
			}
		}
		name = ascii
	}
	return strings.ToLower(name), name != "" && !strings.ContainsFunc(name, forbidden)
}

// forbidden reports whether a character is a forbidden domain code point.
func forbidden(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune("#%/:<>?@[\\]^|", r)
}

// endsInNumber reports whether a name is read as an IPv4 address (URL Standard, "ends in a number checker").
func endsInNumber(name string) bool {
	name = strings.TrimSuffix(name, ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	digits, hexadecimal := strings.CutPrefix(last, "0x")
	return last != "" && strings.Trim(last, "0123456789") == "" || hexadecimal && strings.Trim(digits, "0123456789abcdef") == ""
}

func crawlable(scheme string) bool { return scheme == "http" || scheme == "https" || scheme == "ftp" }

// check rejects, before parsing, URLs of other schemes and URLs that would be expensive to parse.
func check(raw string) error {
	if s := schemeOf(raw); isScheme(s) && !crawlable(s) {
		return ErrScheme
	}
	return bounded(raw)
}

// schemeOf returns what is before the first colon of raw, in lower case; empty if that is not ASCII or long: the Kelvin
// sign in lower case is k.
func schemeOf(raw string) string {
	s, _, ok := strings.Cut(raw[:min(len(raw), 64)], ":")
	if !ok || strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return ""
	}
	return strings.ToLower(strings.TrimLeft(s, " "))
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
