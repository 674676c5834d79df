// This file determines the encoding of a text and converts it to UTF-8.

package media

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

const (
	// Prescan is how many bytes the HTML Standard looks at for a declaration before it reads a page.
	Prescan = 1024
	// headMost is how far declarations are looked for in the head of a page that has none in these.
	headMost = 1 << 20
)

// Encoding is the encoding of a text.
type Encoding struct {
	Name string // canonical
	// Query encodes queries, where the encoding asks for that; nil means UTF-8.
	Query *encoding.Encoder

	decoder  transform.Transformer
	declared bool
}

// Lookup returns the encoding that a label names (Encoding Standard, "get an encoding"); ok is false if there is none.
func Lookup(label string) (e Encoding, ok bool) {
	found, name := charset.Lookup(label)
	if found == nil {
		return e, false
	}
	return encodingOf(found, name), true
}

func encodingOf(found encoding.Encoding, name string) Encoding {
	e := Encoding{Name: name, declared: true, decoder: found.NewDecoder()}
	switch {
	case name == "utf-8":
		e.decoder = unicode.UTF8.NewDecoder() // without a byte order mark
	case !strings.HasPrefix(name, "utf-16") && name != "replacement":
		e.Query = found.NewEncoder()
	}
	return e
}

// within is Lookup for a declaration in the text itself, which does not speak of UTF-16 if it can be read as ASCII.
func within(label string) (Encoding, bool) {
	e, ok := Lookup(label)
	if strings.HasPrefix(e.Name, "utf-16") {
		return Lookup("utf-8")
	}
	return e, ok
}

// EncodingOf returns the encoding of a text of a type, given at least its first Prescan bytes, or all if there are fewer.
// The first of these that is present decides: a byte order mark, the charset of the type, a declaration
// in the text. That is an @charset in a style sheet, the XML declaration in XML, and a meta element or an XML declaration in all
// else, which is read as HTML (HTML Standard, "Determining the character encoding"). The default is UTF-8 for style sheets and XML;
// for HTML it is UTF-8 if the bytes look so, and otherwise windows-1252.
func EncodingOf(head []byte, t Type) Encoding {
	for mark, label := range map[string]string{"\xef\xbb\xbf": "utf-8", "\xfe\xff": "utf-16be", "\xff\xfe": "utf-16le"} {
		if bytes.HasPrefix(head, []byte(mark)) {
			e, _ := Lookup(label)
			return e
		}
	}
	if e, ok := Lookup(t.Charset); ok {
		return e
	}
	fallback := Encoding{Name: "utf-8", decoder: guess{}}
	switch {
	case t.Essence == "text/css":
		name, found := bytes.CutPrefix(head, []byte(`@charset "`))
		if end := bytes.IndexByte(name, '"'); found && end >= 0 {
			if e, ok := within(string(name[:end])); ok {
				return e
			}
		}
		return fallback
	case t.XML():
		if e, ok := xmlDeclaration(head); ok {
			return e
		}
		return fallback
	}
	e, looks, ok := meta(head)
	if ok {
		return e
	}
	if e, ok := xmlDeclaration(head); ok {
		return e
	}
	// Most pages that declare nothing are UTF-8, and in many the first character beyond ASCII comes late; so guess decides for
	// each sequence of bytes.
	if looks == "utf-8" {
		return Encoding{Name: looks, decoder: unicode.UTF8.NewDecoder()}
	}
	return Encoding{Name: looks, decoder: guess{}}
}

// meta reads the encoding that a meta element declares. If none does, ok is false, and looks names the encoding that the
// bytes seem to be in.
func meta(head []byte) (e Encoding, looks string, ok bool) {
	if plain(head) {
		return Encoding{}, "windows-1252", false
	}
	found, name, _ := charset.DetermineEncoding(head, "")
	if found == encoding.Nop || found == encoding.Encoding(charmap.Windows1252) {
		return Encoding{}, name, false
	}
	if name == "x-user-defined" {
		e, ok = Lookup("windows-1252")
		return e, "", ok
	}
	return encodingOf(found, name), "", true
}

// plain reports whether a text is in ASCII and lacks the word that declares encodings. It spares many pages a
// tokenizer.
func plain(text []byte) bool {
	const word = "charset"
	for i, c := range text {
		if c >= utf8.RuneSelf || c|0x20 == word[0] && len(text)-i >= len(word) && strings.EqualFold(string(text[i:i+len(word)]), word) {
			return false
		}
	}
	return true
}

// xmlDeclaration reads the encoding that an XML declaration names (HTML Standard, "get an XML encoding").
func xmlDeclaration(head []byte) (Encoding, bool) {
	switch {
	case bytes.HasPrefix(head, []byte("\x00<\x00?\x00x")):
		return Lookup("utf-16be")
	case bytes.HasPrefix(head, []byte("<\x00?\x00x\x00")):
		return Lookup("utf-16le")
	case !bytes.HasPrefix(head, []byte("<?xml")):
		return Encoding{}, false
	}
	text, _, ended := bytes.Cut(head, []byte(">"))
	_, rest, found := bytes.Cut(text, []byte("encoding"))
	blank := func(r rune) bool { return r <= ' ' }
	rest, is := bytes.CutPrefix(bytes.TrimLeftFunc(rest, blank), []byte("="))
	rest = bytes.TrimLeftFunc(rest, blank)
	if !ended || !found || !is || len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return Encoding{}, false
	}
	label, _, ended := bytes.Cut(rest[1:], rest[:1])
	if !ended || bytes.ContainsFunc(label, blank) {
		return Encoding{}, false
	}
	return within(string(label))
}

// Text returns a reader of r's text in UTF-8, and the encoding that it is in. A page that declares no encoding
// within Prescan bytes may do so later in its head, as browsers accept.
func Text(r io.Reader, t Type) (io.Reader, Encoding, error) {
	br := bufio.NewReaderSize(r, 4<<10)
	head, err := br.Peek(Prescan)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		return br, Encoding{Name: "utf-8"}, err
	} // What was read before an error is usable; the error is returned again later.
	e := EncodingOf(head, t)
	text := io.Reader(br)
	if !e.declared && len(head) == Prescan && !t.XML() && t.Essence != "text/css" && !pastHead(head) {
		var read bytes.Buffer
		if late, ok := lateMeta(io.TeeReader(io.LimitReader(br, headMost), &read)); ok {
			e = late
		}
		text = io.MultiReader(&read, br)
	}
	return transform.NewReader(text, e.decoder), e, nil
}

// inHead are the elements that do not end the head of a page.
var inHead = map[string]bool{
	"html": true, "head": true, "meta": true, "title": true, "link": true, "script": true, "style": true, "base": true, "noscript": true,
	"template": true, "object": true,
}

// pastHead reports whether the beginning of a page surely has more than its head. It spares most pages a tokenizer.
func pastHead(page []byte) bool {
	for {
		_, tag, found := bytes.Cut(page, []byte("<"))
		if !found {
			return false
		}
		page = tag
		if rest, comment := bytes.CutPrefix(tag, []byte("!--")); comment {
			if _, page, found = bytes.Cut(rest, []byte("-->")); !found {
				return false
			}
			continue
		}
		end := bytes.IndexFunc(tag, func(r rune) bool { return r < 'A' || r > 'Z' && r < 'a' || r > 'z' })
		if end <= 0 { // not a start tag, or not all of its name
			continue
		}
		switch name := strings.ToLower(string(tag[:end])); {
		case !inHead[name]:
			return true
		case name == "title" || name == "script" || name == "style":
			for page = tag[end:]; found && !(len(page) > end && bytes.EqualFold(page[:end], tag[:end])); {
				_, page, found = bytes.Cut(page, []byte("</"))
			}
			if !found {
				return false
			}
		case name != "html" && name != "head" && name != "meta" && name != "link" && name != "base":
			return false // what is in it may look like a tag
		}
	}
}

// lateMeta finds the encoding that a meta element in the head of a page declares.
func lateMeta(r io.Reader) (Encoding, bool) {
	z := html.NewTokenizer(r)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return Encoding{}, false
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == "head" {
				return Encoding{}, false
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			raw := bytes.Clone(z.Raw())
			name, _ := z.TagName()
			if !inHead[string(name)] {
				return Encoding{}, false
			}
			if string(name) != "meta" {
				continue
			}
			if e, _, ok := meta(raw); ok {
				return e, true
			}
		}
	}
}

// guess decodes UTF-8, and other bytes as windows-1252.
type guess struct{ transform.NopResetter }

// Transform implements transform.Transformer.
func (guess) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		c, size := rune(src[nSrc]), 1
		if c >= utf8.RuneSelf {
			if !atEOF && !utf8.FullRune(src[nSrc:]) {
				return nDst, nSrc, transform.ErrShortSrc
			}
			if r, n := utf8.DecodeRune(src[nSrc:]); r != utf8.RuneError || n > 1 {
				c, size = r, n
			} else {
				c = charmap.Windows1252.DecodeByte(src[nSrc])
			}
		}
		if nDst+utf8.UTFMax > len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += utf8.EncodeRune(dst[nDst:], c)
		nSrc += size
	}
	return nDst, nSrc, nil
}
