// This file reads the links and directives in the header of an answer: Link (RFC 8288), Refresh,
// X-Robots-Tag. It does not read the body.

package link

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// ExtractHeader returns the links of an answer's header: those of Link fields, with the kinds of
// link elements, and that of a Refresh field. References are relative to pageURL, whatever a base
// element says. Page.Robots holds the directives of X-Robots-Tag fields for all robots or for
// Options.Agent. Content-Location is not a link: it identifies what was sent, often wrongly.
//
// A link without rel is ignored, as is one whose anchor is another resource than the page (RFC
// 8288, section 3.2). A malformed link ends at the next comma.
func ExtractHeader(h http.Header, pageURL string, opts Options) *Page {
	x := extractor{opts: opts.withDefaults(), anchor: -1}
	for _, field := range h.Values("Link") {
		for len(field) > 0 {
			var l headerLink
			if l, field = readLink(field); l.isOf(pageURL, &x.opts) {
				x.add(relKind(l.rel, l.typ, l.as), []byte(HeaderURL(l.target)), l.rel, "")
			}
		}
	}
	for _, field := range h.Values("Refresh") {
		if target, ok := refreshTarget([]byte(field)); ok {
			x.add(Refresh, []byte(HeaderURL(string(target))), "", "")
		}
	}
	if len(x.page.Links) > 0 { // else nothing needs a base
		x.resolve(pageURL, textEncoding{Name: "utf-8"})
	}
	x.page.Robots = RobotsTag(h.Values("X-Robots-Tag"), x.opts.Agent)
	return &x.page
}

// HeaderURL returns the URL in a header field such as Location: bytes that are not UTF-8 are
// percent-encoded unchanged, as in browsers, not replaced.
func HeaderURL(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < utf8.RuneSelf {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// headerLink is one link of a Link field.
type headerLink struct {
	target, rel, anchor, typ, as string
	hasRel, hasAnchor            bool
}

// isOf reports whether l is a link of a page, rather than of another resource.
func (l *headerLink) isOf(pageURL string, o *Options) bool {
	if l.target == "" || l.rel == "" {
		return false
	}
	if !l.hasAnchor || l.anchor == "" {
		return true
	}
	anchor, err := o.Normalizer.Resolve(pageURL, l.anchor)
	page, errPage := o.Normalizer.Normalize(pageURL)
	anchor, _, _ = strings.Cut(anchor, "#")
	page, _, _ = strings.Cut(page, "#")
	return err == nil && errPage == nil && anchor == page
}

// readLink reads the first link of a field (RFC 8288, appendix B.2) and returns the rest after its
// comma. The link is empty if it is malformed.
func readLink(s string) (l headerLink, rest string) {
	s = strings.TrimLeft(s, " \t,")
	if !strings.HasPrefix(s, "<") {
		return l, afterComma(s)
	}
	target, s, ok := strings.Cut(s[1:], ">")
	if !ok {
		return l, ""
	}
	l.target = strings.TrimSpace(target)
	for {
		s = strings.TrimLeft(s, " \t")
		if !strings.HasPrefix(s, ";") {
			return l, afterComma(s)
		}
		s = l.readParam(s[1:])
	}
}

// readParam reads a parameter and returns the rest. The first rel and the first anchor count.
func (l *headerLink) readParam(s string) (rest string) {
	s = strings.TrimLeft(s, " \t")
	i := strings.IndexAny(s, " \t=;,")
	if i < 0 {
		return ""
	}
	name := strings.ToLower(s[:i])
	s = strings.TrimLeft(s[i:], " \t")
	if !strings.HasPrefix(s, "=") {
		return s
	}
	value, s := readValue(strings.TrimLeft(s[1:], " \t"))
	switch {
	case name == "rel" && !l.hasRel:
		l.hasRel, l.rel = true, lower([]byte(value))
	case name == "type":
		l.typ = lower([]byte(value))
	case name == "as":
		l.as = lower([]byte(value))
	case name == "anchor" && !l.hasAnchor:
		l.hasAnchor, l.anchor = true, strings.TrimSpace(value)
	}
	return s
}

// readValue reads a token or a quoted string. Without a closing quote, a string extends to the end.
func readValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		if i := strings.IndexAny(s, ";,"); i >= 0 {
			return strings.TrimSpace(s[:i]), s[i:]
		}
		return strings.TrimSpace(s), ""
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:]
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// afterComma skips to after the next comma outside quoted strings.
func afterComma(s string) string {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return s[i+1:]
		}
	}
	return ""
}
