// This file holds predicates on URLs, and limits of their sizes.

package filter

import (
	"regexp"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/internal/hostkey"
)

// Match is a predicate on URLs. It may be any function, such as one that combines others.
type Match func(t *Target) bool

// set returns a set of names in lower case.
func set(names []string, clean func(string) string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[clean(strings.ToLower(n))] = true
	}
	return out
}

// Scheme matches URLs with one of these schemes.
func Scheme(names ...string) Match {
	s := set(names, func(s string) string { return strings.TrimSuffix(s, ":") })
	return func(t *Target) bool { return s[t.Scheme] }
}

// Host matches these hosts exactly, on any port. IPv6 addresses may be given with
// or without brackets, and names with letters beyond ASCII.
func Host(names ...string) Match {
	s := set(names, hostkey.InURL)
	return func(t *Target) bool { return s[strings.TrimSuffix(t.Host, ".")] }
}

// Domain matches these domains and all hosts below them.
func Domain(names ...string) Match {
	s := set(names, func(s string) string { return hostkey.InURL(strings.Trim(s, ".")) })
	return func(t *Target) bool {
		for rest := strings.TrimSuffix(t.Host, "."); rest != ""; {
			if s[rest] {
				return true
			}
			_, rest, _ = strings.Cut(rest, ".")
		}
		return false
	}
}

// Extension matches paths whose last segment ends in a dot and one of these names, in any case. ""
// matches paths without an extension.
func Extension(names ...string) Match {
	s := set(names, func(s string) string { return strings.TrimPrefix(s, ".") })
	return func(t *Target) bool {
		last := t.Path[strings.LastIndexByte(t.Path, '/')+1:]
		i := strings.LastIndexByte(last, '.')
		if i < 0 {
			return s[""]
		}
		return s[strings.ToLower(last[i+1:])]
	}
}

// Regexp matches URLs that match at least one of the expressions. The time is linear in the length
// of the URL for any expression.
func Regexp(res ...*regexp.Regexp) Match {
	return func(t *Target) bool {
		return slices.ContainsFunc(res, func(re *regexp.Regexp) bool { return re.MatchString(t.URL) })
	}
}

// limit returns a Filter that refuses numbers above most.
func limit(rule string, most int, of func(t *Target) int, what string) Filter {
	return Func(func(t *Target) Reason {
		if n := of(t); n > most {
			return refuse(rule, "%d %s; at most %d", n, what, most)
		}
		return Reason{}
	})
}

// MaxDepth refuses URLs that are more than n links away from a seed.
func MaxDepth(n int) Filter {
	return limit("depth", n, func(t *Target) int { return t.Depth }, "links from a seed")
}

// MaxQuery refuses queries of more bytes.
func MaxQuery(n int) Filter {
	return limit("query-length", n, func(t *Target) int { return len(t.Query) }, "bytes of query")
}

// MaxParams refuses queries with more parameters.
func MaxParams(n int) Filter {
	return limit("params", n, func(t *Target) int { return len(t.params()) }, "parameters")
}

// MaxSegments refuses paths with more segments.
func MaxSegments(n int) Filter {
	return limit("too-deep", n, func(t *Target) (n int) {
		for range t.segments() {
			n++
		}
		return n
	}, "segments of path")
}

// MaxRepeats refuses paths that run in circles: segments, one or several in a row, come more than n
// times one after the other, or two neighbours more than n times anywhere. Segments without a letter
// do not count: dates, page numbers and placeholders (/-/) are no loops, and a project has the name
// of its owner (/twisted/twisted/blob/trunk/src/twisted).
func MaxRepeats(n int) Filter {
	return Func(func(t *Target) Reason {
		if strings.Count(t.Path, "/") <= n { // as most paths
			return Reason{}
		}
		var room [16]string
		all := slices.AppendSeq(room[:0], t.segments())
		pairs := map[[2]string]int{}
		for i, s := range all {
			if !hasLetter(s) {
				continue
			}
			run := 1
			for i+run < len(all) && all[i+run] == s {
				run++
			}
			if run > n {
				return refuse("repeating-segments", "%.40q occurs %d times or more in a row; at most %d", s, run, n)
			}
			if i > 0 && all[i-1] != s && hasLetter(all[i-1]) {
				p := [2]string{all[i-1], s}
				if pairs[p]++; pairs[p] > n {
					return refuse("repeating-segments", "%.40q occurs %d times or more; at most %d", p[0]+"/"+p[1], pairs[p], n)
				}
			}
		}
		return Reason{}
	})
}

func hasLetter(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80 })
}
