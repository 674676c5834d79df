// This file holds the rules that make different URLs of one page equal.

package urlnorm

import (
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/internal/pctenc"
)

// pathForm and queryForm define which characters stay unchanged.
var (
	pathForm  = pctenc.NewForm("!$&'()*+,;=:@/")
	queryForm = pctenc.NewForm("!$&'()*+,;=:@/?")
)

// Rule brings a parsed URL closer to its normal form. Apply must be idempotent and safe for
// concurrent use.
type Rule struct {
	Name  string // for logs and configuration, such as "sort-query"
	Apply func(*URL)
}

// Default returns the rules that keep the meaning of a URL on practically every
// server: [PercentEncoding], [DropFragment], [DropUserinfo], [TrimHostDot],
// [CleanQuery].
func Default() []Rule {
	return []Rule{PercentEncoding(), DropFragment(), DropUserinfo(), TrimHostDot(), CleanQuery()}
}

// Thorough returns the rules of [Default] and further rules that help a crawler of the open web
// although some servers treat such URLs differently: [DropParams] with [TrackingParams] and
// [SessionParams], [DropPathSession], [SortQuery].
func Thorough() []Rule {
	return append(Default(),
		DropParams(append(TrackingParams(), SessionParams()...)...),
		DropPathSession(SessionParams()...),
		SortQuery())
}

// PercentEncoding gives each character of path and query one form: unreserved characters are
// decoded, characters that RFC 3986 does not allow there are encoded, a percent sign that does not
// begin an escape becomes %25, and hexadecimal digits are upper-case (RFC 3986 section 6.2.2).
// Reserved characters stay unchanged: %2F is not a slash.
func PercentEncoding() Rule {
	return Rule{"percent-encoding", func(u *URL) {
		u.Path = pathForm.Normalize(u.Path)
		u.Query = queryForm.Normalize(u.Query)
	}}
}

// DropFragment removes the fragment, which servers never see.
func DropFragment() Rule {
	return Rule{"drop-fragment", func(u *URL) { u.Fragment, u.HasFragment = "", false }}
}

// DropUserinfo removes user name and password: a crawler should not use credentials found in a
// page.
func DropUserinfo() Rule {
	return Rule{"drop-userinfo", func(u *URL) { u.Userinfo = "" }}
}

// TrimHostDot removes the dot that makes a host name fully qualified.
func TrimHostDot() Rule {
	return Rule{"trim-host-dot", func(u *URL) {
		// If there are two dots both stay: the name is invalid, and without them its last label
		// might read as a number.
		if h, ok := strings.CutSuffix(u.Host, "."); ok && h != "" && !strings.HasSuffix(h, ".") {
			u.Host = h
		}
	}}
}

// CleanQuery removes empty parameters, and the question mark if nothing is left:
// "?&a=1&&b=" becomes "?a=1&b=".
func CleanQuery() Rule {
	return Rule{"clean-query", func(u *URL) {
		q := u.Query
		if q == "" || q[0] == '&' || q[len(q)-1] == '&' || strings.Contains(q, "&&") {
			filterParams(u, func(p string) bool { return p != "" })
		}
	}}
}

// SortQuery sorts parameters by name; parameters with the same name keep their order, which may
// matter.
func SortQuery() Rule {
	return Rule{"sort-query", func(u *URL) {
		if !strings.Contains(u.Query, "&") {
			return
		}
		params := strings.Split(u.Query, "&")
		slices.SortStableFunc(params, func(a, b string) int { return strings.Compare(paramName(a), paramName(b)) })
		u.Query = strings.Join(params, "&")
	}}
}

// DropParams removes query parameters by name, ignoring case. A name that ends in * matches all
// names that begin with what precedes it.
func DropParams(names ...string) Rule {
	set := newNameSet(names)
	return Rule{"drop-params", func(u *URL) {
		if u.Query != "" {
			filterParams(u, func(p string) bool { return !set.has(paramName(p)) })
		}
	}}
}

// DropPathSession removes session ids that are written as path parameters, as in
// "/shop;jsessionid=1A2B". Names are as for [DropParams].
func DropPathSession(names ...string) Rule {
	set := newNameSet(names)
	return Rule{"drop-path-session", func(u *URL) {
		if !strings.Contains(u.Path, ";") {
			return
		}
		segments := strings.Split(u.Path, "/")
		for i, s := range segments {
			parts := strings.Split(s, ";")
			kept := parts[:1]
			for _, p := range parts[1:] {
				if !set.has(paramName(p)) {
					kept = append(kept, p)
				}
			}
			if t := strings.Join(kept, ";"); t != "." && t != ".." { // no new dot segments
				segments[i] = t
			}
		}
		u.Path = strings.Join(segments, "/")
	}}
}

// CollapseSlashes replaces consecutive slashes in the path by one. It is in no list, because some
// servers distinguish such paths.
func CollapseSlashes() Rule {
	return Rule{"collapse-slashes", func(u *URL) {
		for strings.Contains(u.Path, "//") {
			u.Path = strings.ReplaceAll(u.Path, "//", "/")
		}
	}}
}

// TrackingParams returns names of query parameters that record where a visitor came from, for
// [DropParams].
func TrackingParams() []string {
	return []string{
		"utm_*", "gclid", "gclsrc", "gbraid", "wbraid", "dclid", "fbclid", "msclkid", "yclid",
		"twclid", "ttclid", "igshid", "mc_cid", "mc_eid", "_ga", "_gl", "_hsenc", "_hsmi",
	}
}

// SessionParams returns names of parameters that carry a session id, for
// [DropParams] and [DropPathSession].
func SessionParams() []string {
	return []string{
		"phpsessid", "jsessionid", "aspsessionid*", "sessionid", "session_id", "sessid", "sid", "bv_sessionid", "cfid", "cftoken",
	}
}

// filterParams keeps the parameters that keep accepts, and drops the question mark if none is left.
func filterParams(u *URL, keep func(string) bool) {
	drop := false
	for p := range strings.SplitSeq(u.Query, "&") {
		drop = drop || !keep(p)
	}
	if !drop {
		return
	}
	kept := make([]string, 0, 8)
	for p := range strings.SplitSeq(u.Query, "&") {
		if keep(p) {
			kept = append(kept, p)
		}
	}
	u.Query = strings.Join(kept, "&")
	u.HasQuery = u.Query != ""
}

func paramName(p string) string {
	name, _, _ := strings.Cut(p, "=")
	return name
}

// nameSet is a list of lower-case names and of prefixes.
type nameSet struct {
	names    map[string]bool
	prefixes []string
}

func newNameSet(names []string) nameSet {
	s := nameSet{names: make(map[string]bool)}
	for _, n := range names {
		n = strings.ToLower(n)
		if p, ok := strings.CutSuffix(n, "*"); ok {
			s.prefixes = append(s.prefixes, p)
		} else {
			s.names[n] = true
		}
	}
	return s
}

func (s *nameSet) has(name string) bool {
	name = strings.ToLower(name) // no allocation if it is lower-case already
	return s.names[name] || slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
