// This file decides whether a pattern matches a URL: the common percent-encoded
// form of both, the wildcards, and which of two rules comes first.

package robots

import (
	"cmp"
	"strings"
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/pctenc"
)

const (
	ruleSize  = int(unsafe.Sizeof(rule{}))
	rulesSize = int(unsafe.Sizeof(Rules{}))
)

// rule is one Allow or Disallow line.
//
// Invariant: pattern is in patternForm, * being a wildcard and
// nothing else; it ends in * only if end is set, and holds no ** at all.
type rule struct {
	pattern string
	octets  int32 // length of the normalized pattern as written; the longest wins
	line    int32
	size    int32 // of the literal part: what comes before the first wildcard
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
	p := patternForm.Normalize(value)
	r.octets += int32(len(p) - 2*dollars)
	for strings.Contains(p, "**") {
		p = strings.ReplaceAll(p, "**", "*")
	}
	if !r.end {
		p = strings.TrimSuffix(p, "*") // a pattern is a prefix anyway
	}
	r.pattern, r.size = strings.Clone(p), int32(len(p))
	if i := strings.IndexByte(p, '*'); i >= 0 {
		r.size = int32(i)
	}
	return r
}

func (r *rule) literal() string { return r.pattern[:r.size] }

// stars reports whether the pattern has a wildcard, plain whether it has neither that
// nor a $ at its end: then whatever begins with it matches.
func (r *rule) stars() bool { return int(r.size) < len(r.pattern) }
func (r *rule) plain() bool { return !r.end && !r.stars() }

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

// match reports whether the pattern matches a normalized path that begins with its
// literal part. x is the path's index, or nil if texts are looked for without.
//
// The parts between wildcards are looked for from left to right, each at its
// first place. Taking the first place is never wrong, because a * after it can
// stretch over the rest, so nothing is ever tried twice.
func (r *rule) match(path string, x *index) bool {
	if !r.stars() {
		return !r.end || len(path) == len(r.pattern)
	}
	at := int(r.size)
	rest, star := r.pattern[at+1:], true
	for star {
		var part string
		part, rest, star = strings.Cut(rest, "*")
		switch {
		case !star && r.end: // the last part must be at the very end
			return strings.HasSuffix(path[at:], part)
		case x != nil:
			if at = x.after(at, part); at < 0 {
				return false
			}
		default:
			i := strings.Index(path[at:], part)
			if i < 0 {
				return false
			}
			at += i + len(part)
		}
	}
	return true
}

// urlForm and patternForm are the forms in which URLs and patterns are compared (RFC
// 9309 section 2.2.2). In a pattern * is a wildcard; in a URL it is a character like
// others, so it is encoded there, and $ in both: a site writes %2A and %24 to mean the
// characters (section 2.2.3). Square brackets are reserved, but may not stand in a path
// or query, so both of their forms are one.
var (
	urlForm     = pctenc.NewForm("!&'()+,;=/:?@#")
	patternForm = pctenc.NewForm("!&'()+,;=/:?@#*")
)

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
