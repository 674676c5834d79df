// This file defines which attributes of which elements are links (HTML Standard, "Attributes", and
// its obsolete features).

package link

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// wanted are the elements whose attributes are read.
var wanted = setOf("a", "area", "audio", "base", "bgsound", "embed", "feimage", "form", "frame", "iframe", "image", "img", "input",
	"link", "meta", "object", "script", "source", "track", "use", "video")

// backgrounds are the elements that can have a background attribute (HTML Standard, "Rendering").
var backgrounds = setOf("body", "table", "thead", "tbody", "tfoot", "tr", "td", "th")

// breaksOut are the elements that end unclosed SVG and MathML content (HTML Standard, "The rules
// for parsing tokens in foreign content").
var breaksOut = setOf("b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed",
	"h1", "h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre",
	"ruby", "s", "small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var")

// elements interns the names of all relevant elements.
var elements = func() map[string]string {
	all := make(map[string]string)
	for _, n := range []string{"iframe", "math", "noembed", "noframes", "noscript", "picture", "plaintext", "script", "style", "svg", "textarea", "title", "xmp"} {
		all[n] = n
	}
	for n := range wanted {
		all[n] = n
	}
	for n := range breaksOut {
		all[n] = n
	}
	return all
}()

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// attributes are the values of the attributes that matter, nil if absent. They
// point into the tokenizer's buffer and are good until its next token.
type attributes struct {
	action, alt, as, background, content, data, equiv, href, method, name, poster, rel, src, srcdoc, srcset, style, typ, xlink []byte
}

// fields are where attributes are kept, by name.
var fields = map[string]func(*attributes) *[]byte{
	"action":      func(a *attributes) *[]byte { return &a.action },
	"alt":         func(a *attributes) *[]byte { return &a.alt },
	"as":          func(a *attributes) *[]byte { return &a.as },
	"background":  func(a *attributes) *[]byte { return &a.background },
	"content":     func(a *attributes) *[]byte { return &a.content },
	"data":        func(a *attributes) *[]byte { return &a.data },
	"http-equiv":  func(a *attributes) *[]byte { return &a.equiv },
	"href":        func(a *attributes) *[]byte { return &a.href },
	"method":      func(a *attributes) *[]byte { return &a.method },
	"name":        func(a *attributes) *[]byte { return &a.name },
	"poster":      func(a *attributes) *[]byte { return &a.poster },
	"rel":         func(a *attributes) *[]byte { return &a.rel },
	"src":         func(a *attributes) *[]byte { return &a.src },
	"srcdoc":      func(a *attributes) *[]byte { return &a.srcdoc },
	"srcset":      func(a *attributes) *[]byte { return &a.srcset },
	"imagesrcset": func(a *attributes) *[]byte { return &a.srcset },
	"style":       func(a *attributes) *[]byte { return &a.style },
	"type":        func(a *attributes) *[]byte { return &a.typ },
	"xlink:href":  func(a *attributes) *[]byte { return &a.xlink },
}

// read reads all attributes of the current tag. If one is repeated, the first counts.
func (a *attributes) read(z *html.Tokenizer, more bool) {
	*a = attributes{}
	for more {
		var key, val []byte
		key, val, more = z.TagAttr()
		field := fields[string(key)]
		if field == nil {
			continue
		}
		if into := field(a); *into == nil {
			if val == nil {
				val = []byte{} // present, though empty
			}
			*into = val
		}
	}
}

// element reports the links of the current start tag.
func (x *extractor) element(name string) {
	a := &x.attrs
	switch name {
	case "a":
		x.endAnchor() // anchors do not nest
		href := a.href
		if href == nil {
			href = a.xlink
		}
		if href != nil && x.add(Anchor, href, lower(a.rel), "") {
			x.anchor = len(x.page.Links) - 1 // the next text is this link's
		}
	case "area":
		x.addAttr(Area, a.href, lower(a.rel), x.clip(a.alt))
	case "base":
		if a.href != nil && !x.hasBase {
			x.hasBase, x.base = true, string(a.href)
		}
	case "frame":
		x.addAttr(Frame, a.src, "", "")
	case "iframe":
		x.addAttr(IFrame, a.src, "", "")
		x.document(a.srcdoc)
	case "form":
		if m := lower(a.method); m != "post" && m != "dialog" {
			x.addFilled(Form, a.action, lower(a.rel))
		}
	case "link":
		x.linkElement()
	case "meta":
		x.meta()
	case "img":
		if x.anchor >= 0 && len(a.alt) > 0 {
			x.text.add([]byte{' '}, x.opts.MaxText)
			x.text.add(a.alt, x.opts.MaxText)
			x.text.add([]byte{' '}, x.opts.MaxText)
		}
		if len(bytes.TrimSpace(a.src)) > 0 {
			x.add(Image, a.src, "", x.clip(a.alt))
		}
		x.addSrcset(a.srcset)
	case "image": // in SVG; elsewhere an old misspelling of img
		x.addFilled(Image, a.src, "")
		x.addFilled(Image, a.href, "")
		x.addFilled(Image, a.xlink, "")
	case "input":
		if lower(a.typ) == "image" {
			x.addFilled(Image, a.src, "")
		}
	case "script":
		x.addFilled(Script, a.src, "")
		if a.src == nil { // SVG
			x.addFilled(Script, a.href, "")
			x.addFilled(Script, a.xlink, "")
		}
	case "use", "feimage": // in SVG
		for _, ref := range [][]byte{a.href, a.xlink} {
			if !bytes.HasPrefix(trimSpace(ref), []byte("#")) { // otherwise an element of the page itself
				x.addFilled(Image, ref, "")
			}
		}
	case "audio", "bgsound", "track":
		x.addFilled(Media, a.src, "")
	case "video":
		x.addFilled(Media, a.src, "")
		x.addFilled(Image, a.poster, "")
	case "source":
		if !x.picture {
			x.addFilled(Media, a.src, "")
		}
		x.addSrcset(a.srcset)
	case "embed":
		x.addFilled(embedded(a.src, a.typ), a.src, "")
	case "object":
		x.addFilled(embedded(a.data, a.typ), a.data, "")
	}
}

// embedded returns the kind of what an object or embed element shows: a page, by its type or, without one, by its
// name.
func embedded(ref, contentType []byte) Kind {
	path, _, _ := strings.Cut(string(ref), "?")
	path, _, _ = strings.Cut(path, "#")
	t := lower(contentType)
	if _, more, ok := strings.Cut(path, "//"); ok {
		_, path, _ = strings.Cut(more, "/")
	}
	switch ext := lower([]byte(path[strings.LastIndexByte(path, '/')+1:])); {
	case !maybePage(t):
		return Embed
	case strings.TrimSpace(t) == "" && strings.Contains(ext, ".") && !pageNames[ext[strings.LastIndexByte(ext, '.')+1:]]:
		return Embed
	}
	return IFrame
}

// pageNames are the ends of the names of pages.
var pageNames = setOf("htm", "html", "xhtml", "xht", "shtml", "php", "asp", "aspx", "jsp", "cgi", "pl", "cfm", "do")

// maxDocuments is how deep documents in srcdoc attributes are read.
const maxDocuments = 3

// maxBases is how many documents in srcdoc attributes of a page may have a base of their own. A base as long as a URL
// may be takes megabytes and milliseconds.
const maxBases = 64

// document adds the links of a document in an attribute (srcdoc). Its base is the page's, and its base
// element is relative to that (HTML Standard, "fallback base URL").
func (x *extractor) document(srcdoc []byte) {
	if len(srcdoc) == 0 || x.documents == maxDocuments {
		return
	}
	inner := extractor{opts: x.opts, anchor: -1, documents: x.documents + 1}
	inner.opts.MaxLinks -= len(x.page.Links)
	if inner.opts.MaxLinks > 0 {
		_ = inner.run(bytes.NewReader(srcdoc)) // there is nothing to go wrong in memory
	}
	inner.endAnchor()
	x.page.Skipped += inner.page.Skipped
	x.page.Dropped += inner.page.Dropped
	own, bases := 0, len(inner.inner)
	if inner.hasBase {
		own, bases = len(x.inner)+1, bases+1
	}
	if bases > 0 && len(x.inner)+bases > maxBases {
		x.page.Dropped += len(inner.page.Links)
		return
	}
	if inner.hasBase {
		x.inner = append(x.inner, innerBase{href: inner.base})
	}
	shift := len(x.inner)
	at := func(k int) int { // what inner calls k
		if k == 0 {
			return own
		}
		return k + shift
	}
	for _, d := range inner.inner {
		x.inner = append(x.inner, innerBase{href: d.href, parent: at(d.parent)})
	}
	for i, l := range inner.page.Links {
		k := own
		if i < len(inner.of) {
			k = at(inner.of[i])
		}
		if k > 0 {
			x.of = append(x.of, make([]int, len(x.page.Links)-len(x.of))...)
			x.of = append(x.of, k)
		}
		x.page.Links = append(x.page.Links, l)
	}
}

// addAttr adds a link; an empty value means the page itself.
func (x *extractor) addAttr(kind Kind, val []byte, rel, text string) {
	if val != nil {
		x.add(kind, val, rel, text)
	}
}

// addFilled adds a link; an empty value means that there is none.
func (x *extractor) addFilled(kind Kind, val []byte, rel string) {
	if len(bytes.TrimSpace(val)) > 0 {
		x.add(kind, val, rel, "")
	}
}

func (x *extractor) addSrcset(val []byte) {
	if Image&x.opts.Kinds == 0 {
		return
	}
	for candidate := range srcset(val) {
		x.add(Image, candidate, "", "")
	}
}

func (x *extractor) linkElement() {
	a := &x.attrs
	rel := lower(a.rel)
	kind := relKind(rel, lower(a.typ), lower(a.as))
	if kind == Related && isFeed(rel, lower(a.typ)) {
		kind = Feed
	}
	x.addFilled(kind, a.href, rel)
	x.addSrcset(a.srcset)
}

// isFeed reports whether a link element leads to a feed (HTML Standard, "Link type
// alternate").
func isFeed(rel, contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	switch strings.TrimSpace(t) {
	case "application/rss+xml", "application/atom+xml", "application/rdf+xml":
		return slices.Contains(strings.Fields(rel), "alternate")
	}
	return false
}

// relatives are the relations to another page, which a reader would follow (HTML Standard, "Link
// types", those that make a hyperlink, and those of older versions). shortlink is not included: its
// target is the page itself.
var relatives = setOf("alternate", "amphtml", "appendix", "archives", "author", "chapter", "contents", "copyright", "first", "glossary", "help",
	"index", "last", "license", "next", "prev", "previous", "privacy-policy", "section", "start", "subsection", "terms-of-service", "toc", "up")

// relKind returns the kind of a link with these relations, in an element or a header.
// as is what a preloaded resource is used as.
func relKind(rel, contentType, as string) Kind {
	kind := Related
	for token := range strings.FieldsSeq(rel) {
		if kind == Related && relatives[token] && maybePage(contentType) {
			kind = Relative
		}
		switch token {
		case "canonical":
			kind = Canonical
		case "stylesheet":
			if kind == Related || kind == Relative {
				kind = Stylesheet
			}
		case "manifest":
			if kind == Related {
				kind = Embed
			}
		case "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "preload", "modulepreload":
			if kind == Related {
				kind = loadedAs(token, strings.TrimSpace(as))
			}
		}
	}
	return kind
}

// loadedAs returns the kind of what browsers load because of a link.
func loadedAs(token, as string) Kind {
	switch {
	case token == "modulepreload":
		return Script
	case token != "preload":
		return Image
	}
	switch as {
	case "style":
		return Stylesheet
	case "script", "worker", "sharedworker", "serviceworker":
		return Script
	case "image":
		return Image
	case "font":
		return Style
	case "audio", "video", "track":
		return Media
	}
	return Related
}

// maybePage reports whether the declared type of a link's target may be a page.
func maybePage(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	return slices.Contains([]string{"", "text/html", "application/xhtml+xml"}, strings.TrimSpace(t))
}

func (x *extractor) meta() {
	a := &x.attrs
	if lower(a.equiv) == "refresh" {
		if target, ok := refreshTarget(a.content); ok {
			x.addAttr(Refresh, target, "", "")
		}
	}
	if name := strings.TrimSpace(lower(a.name)); name != "" && (name == "robots" || strings.EqualFold(name, x.opts.Agent)) {
		for word := range strings.FieldsFuncSeq(string(a.content), func(r rune) bool { return r == ',' || r == ';' || r <= ' ' }) { // "noindex, nofollow"
			x.page.Robots.add(word)
		}
	}
}

// clip returns text in the form of Link.Text.
func (x *extractor) clip(s []byte) string {
	var c collapser
	c.add(s, x.opts.MaxText)
	return c.String()
}

// lower returns a short attribute value in lower case, and nothing of a long one.
func lower(s []byte) string {
	if len(s) > 256 {
		return ""
	}
	return strings.ToLower(string(s))
}
