// This file defines the input and output of filters, and how filters are combined.

package filter

import (
	"fmt"
	"iter"
	"strings"
)

// Target is a URL with its parts. URLs should be in the normal form of package urlnorm; others are
// judged as far as they can be parsed.
type Target struct {
	URL   string
	Depth int // links from a seed
	// Scheme and Host are in lower case; Port is empty if the URL names no port. Path begins with a
	// slash; Query does not include the question mark.
	Scheme, Host, Port, Path, Query string
	// Text stands for the text of the page, for Watchers: pages with the same text have the same one.
	// Zero if it is unknown, or short.
	Text uint64
	// Links yields the URLs that the page leads to, for Watchers; nil if they are unknown.
	Links iter.Seq[string]
}

// Split parses a URL into a Target.
func Split(url string, depth int) *Target {
	t := &Target{URL: url, Depth: depth}
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return t
	}
	t.Scheme = strings.ToLower(scheme)
	rest, _, _ = strings.Cut(rest, "#")
	rest, t.Query, _ = strings.Cut(rest, "?")
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/\\"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	t.Path = "/" + strings.TrimPrefix(path, "/")
	authority = strings.ToLower(authority[strings.LastIndexByte(authority, '@')+1:])
	t.Host = authority
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		t.Host, t.Port = authority[:i], authority[i+1:]
	}
	return t
}

// segments yields the parts of the path between slashes, without empty ones.
func (t *Target) segments() iter.Seq[string] {
	return func(yield func(string) bool) {
		for s := range strings.SplitSeq(t.Path, "/") {
			if s != "" && !yield(s) {
				return
			}
		}
	}
}

// params returns the parameters of the query, as written.
func (t *Target) params() (out []param) {
	for p := range strings.FieldsFuncSeq(t.Query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(p, "=")
		out = append(out, param{name, value})
	}
	return out
}

type param struct{ name, value string }

// Reason is why something is refused. The zero value means that it is not refused.
type Reason struct {
	Rule   string // a name to count by
	Detail string // for a human
}

// Refused reports whether r is a refusal.
func (r Reason) Refused() bool { return r.Rule != "" }

// String returns the rule with its detail.
func (r Reason) String() string {
	if r.Detail == "" {
		return r.Rule
	}
	return r.Rule + ": " + r.Detail
}

func refuse(rule, format string, args ...any) Reason {
	return Reason{rule, fmt.Sprintf(format, args...)}
}

// Filter judges a URL.
type Filter interface {
	// Refuse returns why t is not wanted, or the zero Reason.
	Refuse(t *Target) Reason
}

// Func makes a function a Filter.
type Func func(t *Target) Reason

// Refuse calls the function.
func (f Func) Refuse(t *Target) Reason { return f(t) }

// Watcher is a Filter that must know what was fetched.
type Watcher interface{ Fetched(t *Target) }

// All refuses what one of the filters refuses; the first refusal is returned.
func All(filters ...Filter) Filter { return all(filters) }

type all []Filter

func (a all) Refuse(t *Target) Reason {
	for _, f := range a {
		if r := f.Refuse(t); r.Refused() {
			return r
		}
	}
	return Reason{}
}

// Fetched informs the filters that are Watchers.
func (a all) Fetched(t *Target) {
	for _, f := range a {
		if w, ok := f.(Watcher); ok {
			w.Fetched(t)
		}
	}
}

// Allow refuses what does not match; rule is the name of the reason.
func Allow(rule string, m Match) Filter {
	return Func(func(t *Target) Reason {
		if m(t) {
			return Reason{}
		}
		return Reason{Rule: rule, Detail: "not among those allowed"}
	})
}

// Deny refuses what matches; rule is the name of the reason.
func Deny(rule string, m Match) Filter {
	return Func(func(t *Target) Reason {
		if !m(t) {
			return Reason{}
		}
		return Reason{Rule: rule, Detail: "among those denied"}
	})
}
