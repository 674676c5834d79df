// This file decides whether a pattern matches a URL: their common percent-encoded form, the
// wildcards, and the order of rules.

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
// Invariant: pattern is in the form of URLs, except for its wildcards. It ends in one only if end is
// set, and never contains two in a row.
type rule struct {
	pattern string
	octets  int32 // length of the normalized pattern as written; the longest wins
	line    int32
	size    int32 // length of the literal part, before the first wildcard
	allow   bool
	end     bool // the pattern ended in $: it must match to the end of the URL
}

// newRule compiles the value of an Allow or Disallow line. The rule keeps no part of value.
func newRule(value string, allow bool, line int) rule {
	r := rule{allow: allow, line: int32(line)}
	if n := len(value) - 1; n >= 0 && value[n] == '$' {
		r.end, value = true, value[:n]
		r.octets++
	}
	p := patternForm.Normalize(value)
	r.octets += int32(len(p))
	for strings.Contains(p, "**") {
		p = strings.ReplaceAll(p, "**", "*")
	}
	if !r.end {
		p = strings.TrimSuffix(p, "*") // a pattern is a prefix anyway
	}
	p = compiled.Replace(p)
	r.pattern, r.size = strings.Clone(p), int32(len(p))
	if i := strings.Index(p, wildcard); i >= 0 {
		r.size = int32(i)
	}
	return r
}

func (r *rule) literal() string { return r.pattern[:r.size] }

// stars reports whether the pattern has a wildcard, plain whether it has neither a wildcard nor a $
// at its end, so that it is a prefix.
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
	p := written.Replace(r.pattern)
	if r.end {
		return p + "$"
	}
	return p
}

// match reports whether the pattern matches a normalized path that begins with its literal part. x
// is the path's index, or nil to search without one.
//
// The parts between wildcards are searched from left to right, each at its first occurrence. The
// first occurrence is always sufficient, because a * after it can cover the rest, so no
// backtracking is needed.
func (r *rule) match(path string, x *index) bool {
	if !r.stars() {
		return !r.end || len(path) == len(r.pattern)
	}
	at := int(r.size)
	rest, star := r.pattern[at+1:], true
	for star {
		var part string
		part, rest, star = strings.Cut(rest, wildcard)
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

// urlForm and patternForm are the forms in which URLs and patterns are compared (RFC 9309 section
// 2.2.2). A site writes %2A and %24 to mean the characters (section 2.2.3). In a URL * and $ are
// ordinary characters, encoded or not, and compared as one byte: *A does not match the end of %2A.
// Square brackets are reserved, but
// not allowed in a path or query, so both of their forms are treated as the same.
var (
	urlForm     = newForm("!&'()+,;=/:?@#")
	patternForm = newForm("!&'()+,;=/:?@#*")
)

func newForm(own string) *pctenc.Form {
	f := pctenc.NewForm(own)
	f['$'] = f['a']
	if f.Encodes('*') {
		f['*'] = f['a']
	}
	return f
}

// wildcard stands for the * of a pattern, because a literal * may be part of a URL.
const wildcard = "\x00"

var (
	compiled = strings.NewReplacer("*", wildcard, "%2A", "*")
	written  = strings.NewReplacer(wildcard, "*", "*", "%2A", "$", "%24")
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
