// This file decides whether a pattern matches a URL: the common percent-encoded
// form of both, the wildcards, and which of two rules comes first.

package robots

import (
	"cmp"
	"strings"
	"unsafe"
)

const (
	ruleSize  = int(unsafe.Sizeof(rule{}))
	rulesSize = int(unsafe.Sizeof(Rules{}))
)

// rule is one Allow or Disallow line.
//
// Invariant: pattern is in the form normalize gives, * being a wildcard and
// nothing else; it ends in * only if end is set, and holds no ** at all.
type rule struct {
	pattern string
	octets  int32 // length of the normalized pattern as written; the longest wins
	line    int32
	allow   bool
	end     bool // the pattern ended in $: it must match up to the URL's end
}

// newRule compiles the value of an Allow or Disallow line. The rule keeps no part
// of value.
func newRule(value string, allow bool, line int) rule {
	r := rule{allow: allow, line: int32(line)}
	if n := len(value) - 1; n >= 0 && value[n] == '$' {
		r.end, value = true, value[:n]
		r.octets++
	}
	dollars := strings.Count(value, "$") // each becomes %24, yet was written as one octet
	p := normalize(value, patternByte)
	r.octets += int32(len(p) - 2*dollars)
	for strings.Contains(p, "**") {
		p = strings.ReplaceAll(p, "**", "*")
	}
	if !r.end {
		p = strings.TrimSuffix(p, "*") // a pattern is a prefix anyway
	}
	r.pattern = strings.Clone(p)
	return r
}

// compare orders rules by decision: more octets first, Allow before Disallow.
func (r rule) compare(s rule) int {
	if c := cmp.Compare(s.octets, r.octets); c != 0 {
		return c
	}
	switch {
	case r.allow == s.allow:
		return 0
	case r.allow:
		return -1
	}
	return 1
}

// String returns the pattern, with its $ if it had one.
func (r rule) String() string {
	if r.end {
		return r.pattern + "$"
	}
	return r.pattern
}

// match reports whether the pattern matches a normalized path.
//
// The parts between wildcards are looked for from left to right, each at its
// first place. Taking the first place is never wrong, because a * after it can
// stretch over the rest, so nothing is ever tried twice and the time is bounded
// by the product of the two lengths.
func (r *rule) match(path string) bool {
	part, rest, star := strings.Cut(r.pattern, "*")
	if !strings.HasPrefix(path, part) {
		return false
	}
	path = path[len(part):]
	for star {
		part, rest, star = strings.Cut(rest, "*")
		if !star && r.end { // the last part must be at the very end
			return strings.HasSuffix(path, part)
		}
		i := strings.Index(path, part)
		if i < 0 {
			return false
		}
		path = path[i+len(part):]
	}
	return !r.end || path == ""
}

// How a byte appears in the normalized form.
const (
	encodeByte = iota // as %XX
	keepByte          // as it is, whether encoded or not: RFC 3986 unreserved
	ownByte           // as it came: RFC 3986 reserved, where %2F and / differ
)

// urlByte and patternByte say how each byte is treated. In a pattern * is a
// wildcard; in a URL it is a character like others, so it is encoded there, and
// $ in both: a site writes %2A and %24 to mean the characters (RFC 9309 section
// 2.2.3). Square brackets are reserved, but may not stand in a path or query, so
// both of their forms are one. A % that begins no escape is encoded, lest what
// is decoded after it makes it begin one.
var (
	urlByte     = byteClasses("!&'()+,;=/:?@#")
	patternByte = byteClasses("!&'()+,;=/:?@#*")
)

func byteClasses(own string) *[256]uint8 {
	var t [256]uint8
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			t[c] = keepByte
		case c < 0x80 && strings.IndexByte("-._~", byte(c)) >= 0:
			t[c] = keepByte
		case c < 0x80 && strings.IndexByte(own, byte(c)) >= 0:
			t[c] = ownByte
		}
	}
	return &t
}

func normalizeURL(path string) string { return normalize(path, urlByte) }

// normalize brings s to the form in which patterns and URLs are compared (RFC
// 9309 section 2.2.2). It returns s itself if s is in that form already. Doing it
// twice changes nothing.
func normalize(s string, class *[256]uint8) string {
	const hex = "0123456789ABCDEF"
	i := 0
	for i < len(s) && class[s[i]] != encodeByte {
		i++
	}
	if i == len(s) {
		return s
	}
	b := make([]byte, i, len(s)+16)
	copy(b, s)
	for ; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi >= 0 && lo >= 0 {
				if d := byte(hi<<4 | lo); class[d] == keepByte {
					b = append(b, d)
				} else {
					b = append(b, '%', hex[hi], hex[lo])
				}
				i += 2
				continue
			}
		}
		if class[c] == encodeByte {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// requestPath returns the path and query of a target, always with a leading
// slash and without the fragment.
func requestPath(target string) string {
	if i := strings.IndexByte(target, '#'); i >= 0 {
		target = target[:i]
	}
	if strings.HasPrefix(target, "/") {
		return target // even "//x": taking x for a host could skip a rule
	}
	if i := strings.IndexAny(target, ":/?"); i >= 0 && strings.HasPrefix(target[i:], "://") {
		target = target[i+len("://"):]
	}
	i := strings.IndexAny(target, "/?")
	switch {
	case i < 0:
		return "/"
	case target[i] == '?':
		return "/" + target[i:]
	}
	return target[i:]
}
