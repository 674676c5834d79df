// This file finds the references in style sheets (CSS Syntax Level 3).

package link

import (
	"bytes"
	"cmp"
	"io"
	"iter"
	"strconv"
	"unicode/utf8"

	"github.com/seed-7440039f/frontier/internal/media"
)

// ExtractCSS reads a style sheet from r to its end and returns its references: imported sheets as
// [Stylesheet], all other resources as [Style]. It takes the same arguments and returns the same errors
// as [Extract]; the base is sheetURL.
//
// The encoding is given by a byte order mark, by contentType, or by an @charset at the very
// beginning; the default is UTF-8 (CSS Syntax, section 3.2).
func ExtractCSS(r io.Reader, contentType, sheetURL string, opts Options) (*Page, error) {
	x := extractor{opts: opts.withDefaults(), anchor: -1}
	text, enc, err := media.Text(r, media.Type{Essence: "text/css", Charset: media.Parse(contentType).Charset})
	x.page.Charset = enc.Name
	if err == nil {
		err = x.sheet(text)
	}
	x.resolve(sheetURL, textEncoding(enc))
	return &x.page, err
}

// sheet reads a style sheet piece by piece: a piece ends at the end of a rule, if there is one
// within MaxToken.
func (x *extractor) sheet(r io.Reader) error {
	buf := make([]byte, 0, 16<<10)
	for {
		if len(buf) == cap(buf) {
			if cap(buf) < x.opts.MaxToken {
				buf = append(make([]byte, 0, min(2*cap(buf), x.opts.MaxToken)), buf...)
			} else {
				n := bytes.LastIndexAny(buf, ";}") + 1
				n = cmp.Or(n, len(buf))
				x.css(buf[:n])
				buf = buf[:copy(buf, buf[n:])]
			}
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil {
			x.css(buf)
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

// css adds the references in a piece of style.
func (x *extractor) css(s []byte) {
	if x.opts.Kinds&(Stylesheet|Style) == 0 {
		return
	}
	for kind, ref := range cssLinks(s) {
		if ref[0] != '#' { // otherwise an element of the page itself
			x.add(kind, ref, "", "")
		}
	}
}

// cssLinks yields the references of a style sheet or a style attribute: url() except in @namespace,
// the strings of @import, and those of image-set().
func cssLinks(s []byte) iter.Seq2[Kind, []byte] {
	return func(yield func(Kind, []byte) bool) {
		c := cssScanner{s: s}
		for c.i < len(c.s) {
			if kind, ref := c.next(); len(trimSpace(ref)) > 0 && !yield(kind, trimSpace(ref)) {
				return
			}
		}
	}
}

// cssScanner is a position in a style sheet.
type cssScanner struct {
	s     []byte
	i     int
	rule  string // the at-rule whose prelude is being read: import, namespace or other
	depth int    // of parentheses within image-set; 0: outside
}

// next reads one token. It returns a reference, or nil if the token is not one.
func (c *cssScanner) next() (Kind, []byte) {
	switch b := c.s[c.i]; {
	case b == '/' && c.at(1) == '*':
		end := bytes.Index(c.s[c.i+2:], []byte("*/"))
		if end < 0 {
			c.i = len(c.s)
		} else {
			c.i += 2 + end + 2
		}
	case b == '"' || b == '\'':
		return c.reference(c.quoted(), c.rule == "import" || c.depth > 0)
	case b == '@':
		c.i++
		c.rule = lower(c.name())
	case b == ';' || b == '{' || b == '}':
		c.i++
		c.rule, c.depth = "", 0
	case b == '(':
		c.i++
		c.nest(1)
	case b == ')':
		c.i++
		c.nest(-1)
	case isNameStart(b):
		return c.word()
	default:
		c.i++
	}
	return 0, nil
}

// nest counts parentheses within image-set.
func (c *cssScanner) nest(by int) {
	if c.depth > 0 {
		c.depth += by
	}
}

func (c *cssScanner) at(n int) byte {
	if c.i+n < len(c.s) {
		return c.s[c.i+n]
	}
	return 0
}

// reference returns ref with its kind, if it counts here.
func (c *cssScanner) reference(ref []byte, counts bool) (Kind, []byte) {
	switch {
	case !counts || c.rule == "namespace":
		return 0, nil
	case c.rule == "import":
		c.rule = "imported" // conditions follow
		return Stylesheet, ref
	}
	return Style, ref
}

// word reads a name and, if it is a function that holds references, its start.
func (c *cssScanner) word() (Kind, []byte) {
	name := c.name()
	if c.at(0) != '(' {
		return 0, nil
	}
	switch lower(name) {
	case "url", "src":
		c.i++
		c.nest(1) // it ends with a parenthesis like any other
		for c.i < len(c.s) && isSpace(c.s[c.i]) {
			c.i++
		}
		if b := c.at(0); b == '"' || b == '\'' {
			return c.reference(c.quoted(), true)
		}
		return c.reference(c.unquoted(), true)
	case "image-set", "-webkit-image-set":
		c.i++
		c.depth++
	case "type", "format": // of image-set and of @font-face: a string that is no reference
		c.i++
		c.nest(1)
		for c.i < len(c.s) && c.s[c.i] != ')' && c.s[c.i] != ';' && c.s[c.i] != '}' {
			c.i++
		}
	}
	return 0, nil
}

// name reads a name; escapes in it are kept.
func (c *cssScanner) name() []byte {
	start := c.i
	for c.i < len(c.s) && (isNameStart(c.s[c.i]) || c.s[c.i] >= '0' && c.s[c.i] <= '9') {
		c.i++
	}
	return c.s[start:c.i]
}

func isNameStart(b byte) bool {
	return b|0x20 >= 'a' && b|0x20 <= 'z' || b == '-' || b == '_' || b >= utf8.RuneSelf
}

// quoted reads a string. A string that is cut by the end of a line is invalid and ignored.
func (c *cssScanner) quoted() []byte {
	quote := c.s[c.i]
	c.i++
	out := []byte{}
	for c.i < len(c.s) {
		switch b := c.s[c.i]; {
		case b == quote:
			c.i++
			return out
		case b == '\n':
			return nil
		case b == '\\':
			out = c.escape(out)
		default:
			out = append(out, b)
			c.i++
		}
	}
	return out
}

// unquoted reads the rest of a url( up to its parenthesis, which it leaves.
func (c *cssScanner) unquoted() []byte {
	out := []byte{}
	for c.i < len(c.s) && c.s[c.i] != ')' {
		switch b := c.s[c.i]; {
		case b == '\\':
			out = c.escape(out)
		case b == '"' || b == '\'' || b == '(': // a bad URL: ignored up to its end
			for c.i < len(c.s) && c.s[c.i] != ')' {
				c.i++
			}
			return nil
		default:
			out = append(out, b)
			c.i++
		}
	}
	return bytes.TrimRight(out, spaces)
}

// escape reads a backslash and the character that it encodes: up to six hexadecimal digits and one
// space, the end of a line, or any character.
func (c *cssScanner) escape(out []byte) []byte {
	c.i++
	start := c.i
	for c.i < len(c.s) && c.i < start+6 && isHex(c.s[c.i]) {
		c.i++
	}
	if c.i > start {
		n, _ := strconv.ParseUint(string(c.s[start:c.i]), 16, 32)
		if c.i < len(c.s) && isSpace(c.s[c.i]) {
			c.i++
		}
		r := rune(n)
		if n == 0 || !utf8.ValidRune(r) {
			r = utf8.RuneError
		}
		return utf8.AppendRune(out, r)
	}
	if c.i < len(c.s) {
		if c.s[c.i] != '\n' {
			out = append(out, c.s[c.i])
		}
		c.i++
	}
	return out
}

func isHex(b byte) bool {
	return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'f'
}
