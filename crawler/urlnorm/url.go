// This file splits serialized URLs and joins them again. It trusts its input: parse.go has checked
// the syntax.

package urlnorm

import "strings"

// URL is a parsed URL, as rules see it. All parts are in their serialized, percent-encoded form. A
// rule that changes a part must leave it valid.
type URL struct {
	Scheme   string // "http", "https", "ftp", or one that was accepted
	Userinfo string // "user" or "user:password", without the @
	Host     string // lower-case ASCII name, IPv4 address, or IPv6 address in brackets
	Port     string // empty for the scheme's default
	Path     string // begins with a slash
	Query    string // without the question mark
	Fragment string // without the hash sign

	HasQuery    bool // there is a question mark, even if nothing follows it
	HasFragment bool // there is a hash sign, even if nothing follows it
}

// String puts u together.
func (u *URL) String() string {
	var b strings.Builder
	b.Grow(len(u.Scheme) + len(u.Userinfo) + len(u.Host) + len(u.Port) + len(u.Path) + len(u.Query) + len(u.Fragment) + 8)
	b.WriteString(u.Scheme)
	b.WriteString("://")
	if u.Userinfo != "" {
		b.WriteString(u.Userinfo)
		b.WriteByte('@')
	}
	b.WriteString(u.Host)
	if u.Port != "" {
		b.WriteByte(':')
		b.WriteString(u.Port)
	}
	b.WriteString(u.Path)
	if u.HasQuery {
		b.WriteByte('?')
		b.WriteString(u.Query)
	}
	if u.HasFragment {
		b.WriteByte('#')
		b.WriteString(u.Fragment)
	}
	return b.String()
}

// split is the inverse of String for the parser's output, in which each delimiter occurs only as a
// delimiter.
func split(s string) URL {
	var u URL
	s, u.Fragment, u.HasFragment = strings.Cut(s, "#")
	s, u.Query, u.HasQuery = strings.Cut(s, "?")
	u.Scheme, s, _ = strings.Cut(s, "://")
	if i := strings.IndexByte(s, '/'); i >= 0 {
		s, u.Path = s[:i], s[i:]
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		u.Userinfo, s = s[:i], s[i+1:]
	}
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') {
		s, u.Port = s[:i], s[i+1:]
	}
	u.Host = s
	return u
}
