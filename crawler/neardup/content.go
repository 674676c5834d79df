// This file extracts the content of a page: its text without what its site puts around every page.
// It handles elements; words.go handles words.

package neardup

import (
	"bytes"
	"io"
	"strings"

	"golang.org/x/net/html"

	"github.com/seed-7440039f/frontier/internal/media"
)

// invisible elements hold no text of the page.
var invisible = set("script", "style", "template", "noscript", "svg", "math", "head", "iframe", "object", "textarea", "select")

// around are elements that a site puts around its pages' content.
var around = set("nav", "header", "footer", "aside", "form", "button", "menu", "dialog")

// roles are the values of the attribute role for such elements.
var roles = set("navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar", "toolbar", "alert", "dialog")

// inline elements do not end a block of text.
var inline = set("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "ins", "kbd",
	"label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr")

// void elements have no end tag.
var void = set("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")

// classWords are parts of class and id attributes that mark such elements. Parts are separated by
// hyphens, underscores and spaces.
var classWords = set("nav", "navbar", "navigation", "menu", "sidebar", "footer", "header", "masthead", "breadcrumb", "breadcrumbs", "cookie", "cookies",
	"banner", "share", "sharing", "social", "advert", "advertisement", "ad", "ads", "pagination", "pager", "toolbar", "toc", "skip", "related", "copyright", "sphinxsidebar")

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// content is the text of a page.
type content struct {
	main  []byte // without what is around it
	whole []byte
}

// blockReader gathers text block by block.
type blockReader struct {
	content
	block   []byte // text of the block being read
	letters int    // bytes of it that are no blanks
	linked  int    // number of these inside links
	inLink  bool
	skip    string // element whose content is not main; empty if none
	depth   int    // elements of that name open inside it
	hidden  string // element whose content is not text; empty if none
	hiding  int
}

// read reads a page's text as far as possible; it reports no errors, so that damaged pages are
// read, too.
func read(body []byte, contentType string, limit int) content {
	r, _, _ := media.Text(bytes.NewReader(body), media.Parse(contentType)) // a body in memory has no errors
	z := html.NewTokenizer(io.LimitReader(r, int64(limit)))
	var b blockReader
	for {
		switch z.Next() {
		case html.ErrorToken:
			b.endBlock()
			return b.content
		case html.TextToken:
			b.text(z.Text())
		case html.StartTagToken:
			name, more := z.TagName()
			b.start(string(name), more, z)
		case html.EndTagToken:
			name, _ := z.TagName()
			b.end(string(name))
		case html.SelfClosingTagToken:
			name, _ := z.TagName()
			if !inline[string(name)] {
				b.endBlock()
			}
		}
	}
}

func (b *blockReader) text(t []byte) {
	if b.hidden != "" {
		return
	}
	for _, c := range t {
		if c > ' ' {
			b.letters++
			if b.inLink {
				b.linked++
			}
		}
	}
	b.block = append(b.block, t...)
}

func (b *blockReader) start(name string, attrs bool, z *html.Tokenizer) {
	if b.hidden != "" {
		if name == b.hidden {
			b.hiding++
		}
		if name != "body" || b.hidden != "head" { // </head> may be missing
			return
		}
		b.hidden = ""
	}
	if name == "noscript" {
		z.NextIsNotRawText()
	}
	if !inline[name] {
		b.endBlock()
	}
	if void[name] {
		return
	}
	if invisible[name] {
		b.hidden, b.hiding = name, 1
		return
	}
	if name == "a" {
		b.inLink = true
	}
	switch {
	case b.skip == name:
		b.depth++
	case b.skip == "" && name != "body" && name != "html" && name != "main" && name != "article" && (around[name] || attrs && saysAround(z)):
		b.skip, b.depth = name, 1
	}
}

// saysAround reports whether a start tag's attributes say that the element is not
// content.
func saysAround(z *html.Tokenizer) bool {
	for {
		key, value, more := z.TagAttr()
		switch string(key) {
		case "role":
			if roles[strings.ToLower(string(value))] {
				return true
			}
		case "class", "id":
			for _, part := range bytes.FieldsFunc(bytes.ToLower(value), func(c rune) bool { return c <= ' ' || c == '-' || c == '_' }) {
				if classWords[string(part)] {
					return true
				}
			}
		}
		if !more {
			return false
		}
	}
}

func (b *blockReader) end(name string) {
	if b.hidden != "" {
		if name == b.hidden {
			if b.hiding--; b.hiding == 0 {
				b.hidden = ""
			}
		}
		return
	}
	if !inline[name] {
		b.endBlock()
	}
	if name == "a" {
		b.inLink = false
	}
	if name == b.skip {
		if b.depth--; b.depth == 0 {
			b.skip = ""
		}
	}
}

// endBlock decides whether a block is content: text that is mostly links is not.
func (b *blockReader) endBlock() {
	if b.letters > 0 {
		b.whole = append(append(b.whole, b.block...), '\n')
		if b.skip == "" && 2*b.linked <= b.letters {
			b.main = append(append(b.main, b.block...), '\n')
		}
	}
	b.block, b.letters, b.linked = b.block[:0], 0, 0
}

// Text returns the text of an HTML page, in UTF-8, a line for each block: without scripts and
// similar elements, and without what its site puts around every page, such as menus, headers,
// footers, and lists of links. If little is left, as for a page that is a list of links, it returns
// all of the page's text.
func Text(page []byte, contentType string) string { return string(mainText(page, contentType)) }

func mainText(page []byte, contentType string) []byte {
	c := read(page, contentType, maxPage)
	if len(c.main) < minMain && len(c.main) < len(c.whole)/4 {
		return c.whole
	}
	return c.main
}

const (
	maxPage = 16 << 20 // bytes of a page that are read
	minMain = 400      // bytes of text that suffice, whatever is around them
)
