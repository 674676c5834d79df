// This file runs the tokenizer over a page and tracks the context of links: text, title, raw and
// foreign content. element.go decides which attribute of which element is a link.

package link

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"

	"github.com/seed-7440039f/frontier/crawler/urlnorm"
	"github.com/seed-7440039f/frontier/internal/media"
)

// Extract reads an HTML document from r to its end and returns its links. contentType is the
// Content-Type header; it counts for the encoding only (see [Charset]). Relative links are resolved against
// pageURL; if it cannot be crawled, only absolute links are returned.
//
// The Page is never nil: if reading fails, it holds what was found before, and the reader's error
// is returned. Malformed HTML is not an error.
func Extract(r io.Reader, contentType, pageURL string, opts Options) (*Page, error) {
	x := extractor{opts: opts.withDefaults(), anchor: -1}
	x.body.limit = x.opts.MaxPageText
	text, enc, err := media.Text(r, media.Parse(contentType))
	x.page.Charset = enc.Name
	if err == nil {
		err = x.run(text)
	}
	x.endAnchor()
	x.page.Title = x.title.String()
	x.page.Text, x.page.TextTruncated = x.body.String(), x.body.truncated()
	x.resolve(pageURL, textEncoding(enc))
	return &x.page, err
}

// extractor is the state of one Extract.
type extractor struct {
	opts Options
	page Page
	z    *html.Tokenizer

	raw      string // current element with raw text: script, title, ...
	foreign  int    // open svg and math elements
	noFrames bool   // inside noframes
	picture  bool   // inside picture
	anchor   int    // index of the link that collects text; -1 if none
	text     collapser
	title    collapser
	body     pageText
	inTitle  bool
	inStyle  bool
	hasTitle bool
	base     string
	hasBase  bool
	attrs    attributes
	// documents is how many documents in attributes this one is in.
	documents int
	inner     []innerBase // of documents in attributes that have one
	of        []int       // by link, as far as needed: 1 more than the index in inner of its base; 0 for the page's
	tail      []byte      // start of a tag that ended the last text
}

// run reads all tokens. A token that is too long ends a tokenizer; a new one continues after the
// piece that it held. If that was inside a script or similar element, a start tag puts the new
// tokenizer into the same state.
func (x *extractor) run(r io.Reader) error {
	x.z = html.NewTokenizer(r)
	for {
		x.z.SetMaxBuf(x.opts.MaxToken)
		x.tokens()
		if err := x.z.Err(); !errors.Is(err, html.ErrBufferExceeded) {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		rest := append(x.tail, x.z.Buffered()...)
		x.tail = nil
		r = io.MultiReader(bytes.NewReader(rest), r)
		if x.raw == "" {
			x.z = html.NewTokenizer(r)
			continue
		}
		r = io.MultiReader(strings.NewReader("<"+x.raw+">"), r)
		x.z = html.NewTokenizer(r)
		x.z.Next()
	}
}

func (x *extractor) tokens() {
	for {
		x.z.AllowCDATA(x.foreign > 0)
		switch x.z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			x.tail = openTag(x.z.Raw())
			x.onText()
		case html.StartTagToken:
			x.onStart(false)
		case html.SelfClosingTagToken:
			x.onStart(true)
		case html.EndTagToken:
			x.onEnd()
		}
	}
}

// openTag returns the unfinished tag at the end of a text, which is there if the text was cut at
// its maximum length.
func openTag(text []byte) []byte {
	text = text[max(0, len(text)-len("</textarea")-1):]
	if i := bytes.LastIndexByte(text, '<'); i >= 0 {
		return bytes.Clone(text[i:])
	}
	return nil
}

func (x *extractor) onText() {
	switch {
	case x.inTitle:
		x.title.add(x.z.Text(), x.opts.MaxText)
	case x.inStyle:
		x.css(x.z.Text())
	case x.raw == "" && (x.anchor >= 0 || x.body.limit > 0):
		text := x.z.Text()
		if x.anchor >= 0 {
			x.text.add(text, x.opts.MaxText)
		}
		x.body.add(text)
	}
}

func (x *extractor) onStart(closed bool) {
	// Only foreign elements can be closed by their start tags: <script/> opens a script.
	x.raw, x.inTitle, x.inStyle = "", false, false
	every := x.opts.Kinds&(Style|Image) != 0 // any element may have a style, and some a background
	if tag := plainName(x.z.Raw()); tag != nil && elements[string(tag)] == "" && !every {
		x.body.tag(tag) // as most
		return
	}
	tag, more := x.z.TagName()
	x.body.tag(tag)
	name := elements[string(tag)] // empty for irrelevant elements
	if name == "" {
		if more && every {
			x.attrs.read(x.z, more)
			x.css(x.attrs.style)
			x.background(tag)
		}
		return
	}
	if x.foreign > 0 && breaksOut[name] {
		x.foreign = 0
	}
	switch name {
	case "svg", "math":
		if !closed {
			x.foreign++
		}
	case "iframe", "noembed", "plaintext", "script", "style", "textarea", "xmp", "title":
		x.inStyle = name == "style"
		if x.foreign > 0 || x.noFrames { // all of noframes is text, and ends where its own tag ends
			x.z.NextIsNotRawText()
			break
		}
		x.raw = name
		if name == "title" && !x.hasTitle {
			x.hasTitle, x.inTitle = true, true
		}
	case "noscript", "noframes":
		x.z.NextIsNotRawText() // a crawler runs no scripts and shows no frames
		x.noFrames = x.noFrames || name == "noframes"
	case "picture", "audio", "video":
		x.picture = name == "picture"
	}
	if wanted[name] || every {
		x.attrs.read(x.z, more)
		x.element(name)
		x.css(x.attrs.style)
		x.background(tag)
	}
}

// background adds the image behind an element.
func (x *extractor) background(tag []byte) {
	if x.attrs.background != nil && backgrounds[string(tag)] {
		x.addFilled(Image, x.attrs.background, "")
	}
}

func (x *extractor) onEnd() {
	tag := plainName(x.z.Raw())
	if tag == nil {
		tag, _ = x.z.TagName()
	}
	x.raw, x.inStyle = "", false
	x.body.tag(tag)
	switch string(tag) {
	case "a":
		x.endAnchor()
	case "title":
		x.inTitle = false
	case "svg", "math":
		x.foreign = max(0, x.foreign-1)
	case "noframes":
		x.noFrames = false
	case "picture":
		x.picture = false
	}
}

// plainName returns the name of a tag, given as written in the page, without the copy that the
// tokenizer would make; nil if it is not all lower-case letters and digits.
func plainName(raw []byte) []byte {
	raw = bytes.TrimPrefix(bytes.TrimPrefix(raw, []byte("<")), []byte("/"))
	for i, c := range raw {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c == '>' || c == '/' || isSpace(c):
			return raw[:i]
		default:
			return nil
		}
	}
	return nil
}

func (x *extractor) endAnchor() {
	if x.anchor >= 0 {
		x.page.Links[x.anchor].Text = x.text.String()
	}
	x.anchor = -1
	x.text = collapser{}
}

// add keeps a link until its base is known. It reports whether it did.
func (x *extractor) add(kind Kind, raw []byte, rel, text string) bool {
	switch {
	case kind&x.opts.Kinds == 0:
		return false
	case len(bytes.TrimSpace(raw)) > urlnorm.MaxLength:
		x.page.Skipped++
		return false
	case len(x.page.Links) >= x.opts.MaxLinks:
		x.page.Dropped++
		return false
	}
	l := Link{Raw: string(raw), Kind: kind, Rel: rel, Text: text}
	for token := range strings.FieldsSeq(rel) {
		l.NoFollow = l.NoFollow || token == "nofollow" || token == "ugc" || token == "sponsored"
	}
	x.page.Links = append(x.page.Links, l)
	return true
}

// MaxURLs is how many bytes the URLs of a page's links have together: a long base makes each of many
// short links long. It is twice what is needed by the largest of 15,000 pages of documentation, an
// index with 25,000 links.
const MaxURLs = 4 << 20

// resolve sets the URLs of all links, and drops those without a usable one.
func (x *extractor) resolve(pageURL string, enc textEncoding) {
	n := x.opts.Normalizer
	base, _ := n.Base(pageURL)
	x.page.Base = pageURL
	if base == nil {
		x.page.Base = ""
	}
	if x.hasBase {
		if b, s, ok := x.under(pageURL, x.base); ok {
			base, x.page.Base = b, s
		}
	}
	kept := x.page.Links[:0]
	room := MaxURLs
	for i, l := range x.page.Links {
		if room <= 0 {
			x.page.Dropped += len(x.page.Links) - i
			break
		}
		ref := enc.encodeQuery(l.Raw)
		base := base
		if i < len(x.of) {
			base = x.innerBase(x.of[i], base)
		}
		var err error
		if base != nil {
			l.URL, err = base.Resolve(ref)
		} else {
			l.URL, err = n.Normalize(ref)
		}
		if err != nil {
			room -= len(ref)
			if base != nil {
				room -= len(x.page.Base)
			}
			x.page.Skipped++
			continue
		}
		room -= len(l.URL)
		kept = append(kept, l)
	}
	clear(x.page.Links[len(kept):])
	x.page.Links = kept
}

// under returns the base URL that a base element of a document gives, from the document's own.
func (x *extractor) under(from, href string) (*urlnorm.Base, string, bool) {
	var parse urlnorm.Normalizer // keeps what rules for keys would remove
	s, err := parse.Resolve(from, href)
	if err != nil {
		return nil, "", false
	}
	b, err := x.opts.Normalizer.Base(s)
	return b, s, err == nil
}

// innerBase is the base of a document in an attribute.
type innerBase struct {
	href   string
	parent int // as in extractor.of
	known  bool
	url    string
	base   *urlnorm.Base // nil if href gives none
}

// innerBase returns a base that extractor.of names; page is the page's. A base that cannot be used counts for nothing.
func (x *extractor) innerBase(k int, page *urlnorm.Base) *urlnorm.Base {
	for ; k > 0; k = x.inner[k-1].parent {
		if x.find(k); x.inner[k-1].base != nil {
			return x.inner[k-1].base
		}
	}
	return page
}

// find resolves an inner base, once, relative to the nearest document around it that has one.
func (x *extractor) find(k int) {
	d := &x.inner[k-1]
	if d.known {
		return
	}
	d.known = true
	from := x.page.Base
	for p := d.parent; p > 0; p = x.inner[p-1].parent {
		if x.find(p); x.inner[p-1].base != nil {
			from = x.inner[p-1].url
			break
		}
	}
	if b, s, ok := x.under(from, d.href); ok {
		d.base, d.url = b, s
	}
}

// collapser gathers text with runs of blanks made one.
type collapser struct {
	b     strings.Builder
	blank bool
}

// add appends s as far as the whole stays within limit bytes.
func (c *collapser) add(s []byte, limit int) {
	for len(s) > 0 && c.b.Len() < limit {
		i := 0
		for i < len(s) && isSpace(s[i]) {
			i++
		}
		if i > 0 {
			c.blank = c.b.Len() > 0
			s = s[i:]
			continue
		}
		for i < len(s) && !isSpace(s[i]) {
			i++
		}
		if c.blank {
			c.b.WriteByte(' ')
			c.blank = false
		}
		if room := limit - c.b.Len(); i > room { // this may cut a character
			c.b.Write(bytes.ToValidUTF8(s[:max(0, room)], nil))
			return
		}
		c.b.Write(s[:i])
		s = s[i:]
	}
}

func (c *collapser) String() string { return strings.TrimRight(c.b.String(), " ") }

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' || b == '\f' }
