// This file gathers the text of a page, for an indexer or for comparing pages.

package link

import "golang.org/x/net/html/atom"

// blocks are the elements that begin and end a line of text (HTML Standard,
// "Rendering", the elements displayed as blocks, cells and list items).
var blocks = setOf("address", "article", "aside", "blockquote", "body", "br", "button", "caption", "center", "dd", "details",
	"dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "head",
	"header", "hgroup", "hr", "html", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup", "option", "p", "plaintext",
	"pre", "search", "section", "select", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "ul", "xmp")

// pageText is the text of a page: a line for each block, blanks collapsed.
type pageText struct {
	collapser
	limit int
	line  bool // the next text begins a line
}

// add appends a piece of text.
func (t *pageText) add(s []byte) {
	if t.limit <= 0 || len(trimSpace(s)) == 0 && (t.line || t.b.Len() == 0) {
		return
	}
	if t.line && t.b.Len() > 0 && t.b.Len() < t.limit {
		t.b.WriteByte('\n')
		t.blank = false
		s = trimSpace(s)
	}
	t.line = false
	t.collapser.add(s, t.limit)
}

// tag ends the line at the start and the end of a block.
func (t *pageText) tag(name []byte) {
	if t.limit > 0 && !t.line && blocks[atom.String(name)] {
		t.line = true
	}
}

func (t *pageText) truncated() bool { return t.limit > 0 && t.b.Len() >= t.limit }
