// This file applies rules to parsed URLs, for single URLs and for the links of a
// page.

package urlnorm

import (
	"slices"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// Normalizer converts URLs to their normal form: it parses them and applies its rules in order.
//
// It is safe for concurrent use if its rules are. The zero value applies no rules and returns the
// serialization of the URL Standard.
type Normalizer struct {
	rules  []Rule            // read-only
	others map[string]string // read-only; ports of further schemes, see Accept
}

// New returns a Normalizer with the given rules, or with those of [Default] if
// there are none.
func New(rules ...Rule) *Normalizer {
	if len(rules) == 0 {
		rules = Default()
	}
	return &Normalizer{rules: slices.Clone(rules)}
}

// Normalize returns the normal form of an absolute URL. It fails with [ErrScheme], [ErrTooLong] or
// [ErrSyntax]. A URL that is already in normal form is returned unchanged, usually without parsing.
func (n *Normalizer) Normalize(raw string) (string, error) {
	read := parse
	if n.other(raw) {
		read = n.parseOther
	}
	u, err := read(raw, nil)
	if err != nil {
		return "", err
	}
	return n.apply(u, raw)
}

// Resolve returns the normal form of ref, a link as written in a page, relative to base. It fails
// as Normalize does, for the base only if it is needed. For many links of one page use
// [Normalizer.Base].
func (n *Normalizer) Resolve(base, ref string) (string, error) {
	if n.other(ref) {
		return n.Normalize(ref)
	}
	if err := check(ref); err != nil {
		return "", err
	}
	if u, ok := parsePlain(ref); ok {
		return n.apply(u, ref)
	}
	b, err := n.Base(base)
	if err != nil {
		if s, err := n.Normalize(ref); err == nil {
			return s, nil
		}
		return "", err
	}
	return b.Resolve(ref)
}

// apply runs the rules. It returns was, the text that u was read from, if the result is the same
// text, possibly without a fragment.
func (n *Normalizer) apply(u URL, was string) (string, error) {
	for i := range n.rules {
		n.rules[i].Apply(&u)
	}
	if s, _, _ := strings.Cut(was, "#"); u.spells(s) {
		return s, nil
	}
	s := u.String()
	if len(s) > MaxLength { // percent-encoding can make a URL three times as long
		return "", ErrTooLong
	}
	return s, nil
}

// spells reports whether u.String() is s, without building it.
func (u *URL) spells(s string) bool {
	if u.Userinfo != "" || u.Port != "" || u.HasFragment {
		return false // rare enough not to look further
	}
	s, ok := strings.CutPrefix(s, u.Scheme)
	if !ok {
		return false
	}
	if s, ok = strings.CutPrefix(s, "://"); !ok {
		return false
	}
	if s, ok = strings.CutPrefix(s, u.Host); !ok {
		return false
	}
	if s, ok = strings.CutPrefix(s, u.Path); !ok {
		return false
	}
	if !u.HasQuery {
		return s == ""
	}
	s, ok = strings.CutPrefix(s, "?")
	return ok && s == u.Query
}

// Base resolves the links of one page. It is immutable and safe for concurrent
// use.
type Base struct {
	n   *Normalizer
	url *whatwg.Url
	// origin, dir and self are the prefixes that plain references are put behind;
	// empty if the base itself is not plain.
	origin string // "http://a.example"
	dir    string // "http://a.example/x/"
	self   string // "http://a.example/x/y?z"
}

// Base returns a resolver for links relative to raw, the URL of the page or of its base element. It
// fails as Normalize does.
func (n *Normalizer) Base(raw string) (*Base, error) {
	judge := check
	if n.other(raw) {
		judge = func(raw string) error {
			_, err := n.parseOther(raw, nil)
			return err
		}
	}
	if err := judge(raw); err != nil {
		return nil, err
	}
	w, err := parser.Parse(raw)
	if err != nil {
		return nil, syntaxError{err}
	}
	if _, ok := n.others[w.Scheme()]; !ok && !crawlable(w.Scheme()) {
		return nil, ErrScheme
	}
	w.SearchParams() // made on first use; make it now, so that Resolve only reads
	b := &Base{n: n, url: w}
	if href := w.Href(true); len(href) <= MaxLength {
		if u, ok := parsePlain(href); ok {
			b.origin = u.Scheme + "://" + u.Host
			b.dir = b.origin + u.Path[:strings.LastIndexByte(u.Path, '/')+1]
			b.self = href
		}
	}
	return b, nil
}

// Resolve returns the normal form of ref relative to b. It fails as Normalize does.
func (b *Base) Resolve(ref string) (string, error) {
	if b.n.other(ref) {
		return b.n.Normalize(ref)
	}
	if err := check(ref); err != nil {
		return "", err
	}
	if s, ok := b.plain(ref); ok {
		if u, ok := parsePlain(s); ok && len(s) <= MaxLength {
			return b.n.apply(u, s)
		}
	}
	read := parseFully
	if len(b.n.others) > 0 {
		read = b.n.parseOther
	}
	u, err := read(ref, b.url)
	if err != nil {
		return "", err
	}
	return b.n.apply(u, ref)
}

// plain appends ref to the base without parsing, if that is certainly correct once parsePlain
// accepts the result.
func (b *Base) plain(ref string) (string, bool) {
	switch {
	case strings.HasPrefix(ref, "http://"), strings.HasPrefix(ref, "https://"):
		return ref, true
	case b.origin == "" || ref == "":
		return "", false
	}
	switch ref[0] {
	case '/':
		return b.origin + ref, !strings.HasPrefix(ref, "//")
	case '#':
		return b.self + ref, true
	case '?':
		return "", false
	case '.':
		return b.climb(ref), true
	}
	i := strings.IndexAny(ref, ":/?#")
	return b.dir + ref, i < 0 || ref[i] != ':' // else it could be a scheme
}

// climb follows the dot segments that ref begins with.
func (b *Base) climb(ref string) string {
	dir := b.dir
	for {
		if rest, ok := strings.CutPrefix(ref, "./"); ok {
			ref = rest
			continue
		}
		rest, ok := strings.CutPrefix(ref, "../")
		if !ok {
			return dir + ref // dots that are left are not plain
		}
		ref = rest
		if len(dir) > len(b.origin)+len("/") { // above the root is the root
			dir = dir[:strings.LastIndexByte(dir[:len(dir)-1], '/')+1]
		}
	}
}
