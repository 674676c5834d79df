// This file splits XML into tags and text. It is not an XML parser: it accepts malformed input,
// does not expand entities, and holds one tag or text at a time. entries.go interprets the tags.

package sitemap

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind uint8

const (
	startTag kind = iota
	endTag
	emptyTag // <a/>
	textRun  // text between tags, or a CDATA section
)

// token is one tag or text. Its bytes are the scanner's, until the next token.
type token struct {
	kind kind
	line int    // where it begins
	name []byte // of a tag, with its prefix
	rest []byte // of a tag: its attributes
	text []byte // decoded, of a text
}

// local returns a tag's name without its prefix.
func (t *token) local() string {
	if i := bytes.LastIndexByte(t.name, ':'); i >= 0 {
		return string(t.name[i+1:])
	}
	return string(t.name)
}

// scanner reads tokens from UTF-8 text.
type scanner struct {
	in   *bufio.Reader
	line int // of the next byte
	buf  []byte
	// bad, if set, is called with malformed XML; scanning continues.
	bad func(line int, text string, err error)
}

func (s *scanner) complain(line int, why, text string) {
	s.bad(line, text, fmt.Errorf("%w: %s", ErrSyntax, why))
}

// next returns the next token; after an error there are no more.
func (s *scanner) next() (token, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return token{}, err
		}
		if c != '<' {
			_ = s.in.UnreadByte()
			return s.text()
		}
		line := s.line
		c, err = s.in.ReadByte()
		if err != nil {
			s.complain(line, "the file ends in a tag", "<")
			return token{}, err
		}
		switch c {
		case '?':
			err = s.skipTo(line, "?>", "a processing instruction is not closed")
		case '!':
			t, ok, declErr := s.declaration(line)
			if ok {
				return t, declErr
			}
			err = declErr
		default:
			_ = s.in.UnreadByte()
			t, ok, tagErr := s.tag(line)
			if ok {
				return t, nil
			}
			err = tagErr
		}
		if err != nil {
			return token{}, err
		}
	}
}

// text reads up to the next tag. A text that exceeds the buffer is returned in pieces.
func (s *scanner) text() (token, error) {
	line := s.line
	s.buf = s.buf[:0]
	for len(s.buf) < bufferSize {
		c, err := s.in.ReadByte()
		if err != nil && len(s.buf) > 0 {
			break // the error is returned again
		}
		if err != nil {
			return token{}, err
		}
		if c == '<' {
			_ = s.in.UnreadByte()
			break
		}
		if c == '\n' {
			s.line++
		}
		s.buf = append(s.buf, c)
	}
	return token{kind: textRun, line: line, text: unescape(s.buf)}, nil
}

// declaration reads a construct that begins with "<!"; ok is true for a CDATA section.
func (s *scanner) declaration(line int) (t token, ok bool, err error) {
	if p, _ := s.in.Peek(2); string(p) == "--" {
		_, _ = s.in.Discard(2)
		return token{}, false, s.skipTo(line, "-->", "a comment is not closed")
	}
	if p, _ := s.in.Peek(7); string(p) == "[CDATA[" {
		_, _ = s.in.Discard(7)
		s.buf = s.buf[:0]
		err = s.until("]]>", true)
		if err != nil {
			s.complain(line, "a CDATA section is not closed", "")
		}
		return token{kind: textRun, line: line, text: s.buf}, len(s.buf) > 0 || err == nil, nil
	}
	for depth := 0; ; { // DOCTYPE, possibly with declarations in brackets
		c, err := s.in.ReadByte()
		if err != nil {
			return token{}, false, err
		}
		switch c {
		case '\n':
			s.line++
		case '[':
			depth++
		case ']':
			depth--
		case '>':
			if depth <= 0 {
				return token{}, false, nil
			}
		}
	}
}

// skipTo reads past end.
func (s *scanner) skipTo(line int, end, why string) error {
	err := s.until(end, false)
	if err == io.EOF {
		s.complain(line, why, "")
	}
	return err
}

// until reads past end, which has at most three bytes. With keep, it keeps what precedes end, up to
// the buffer's size.
func (s *scanner) until(end string, keep bool) error {
	var window [3]byte
	tail := window[3-len(end):]
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return err
		}
		if c == '\n' {
			s.line++
		}
		if keep && len(s.buf) < bufferSize {
			s.buf = append(s.buf, c)
		}
		copy(tail, tail[1:])
		tail[len(tail)-1] = c
		if string(tail) == end {
			s.buf = bytes.TrimSuffix(s.buf, []byte(end))
			return nil
		}
	}
}

// tag reads a tag after its "<". If it is malformed, ok is false, and the next token begins at the
// first wrong character.
func (s *scanner) tag(line int) (t token, ok bool, err error) {
	s.buf = s.buf[:0]
	var quote byte
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			s.complain(line, "the file ends in a tag", "<"+string(s.buf))
			return token{}, false, err
		}
		if c == '>' && quote == 0 {
			break
		}
		if c == '<' { // not even in quotes
			_ = s.in.UnreadByte()
			s.complain(line, "a tag is not closed", "<"+string(s.buf))
			return token{}, false, nil
		}
		switch {
		case c == '\n':
			s.line++
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		}
		if len(s.buf) == bufferSize {
			s.complain(line, "a tag is too long", "<"+string(s.buf))
			return token{}, false, nil
		}
		s.buf = append(s.buf, c)
	}
	b := s.buf
	t = token{kind: startTag, line: line}
	if len(b) > 0 && b[0] == '/' {
		t.kind, b = endTag, b[1:]
	} else if len(b) > 0 && b[len(b)-1] == '/' {
		t.kind, b = emptyTag, b[:len(b)-1]
	}
	end := bytes.IndexAny(b, " \t\r\n")
	if end < 0 {
		end = len(b)
	}
	t.name, t.rest = b[:end], b[end:]
	if !isName(t.name) {
		s.complain(line, "no element has that name", "<"+string(s.buf)+">")
		return token{}, false, nil
	}
	return t, true, nil
}

// isName accepts the names of XML, and some more.
func isName(b []byte) bool {
	return len(b) > 0 && isLetter(b[0]) && !slices.ContainsFunc(b, func(c byte) bool {
		return !isLetter(c) && (c < '0' || c > '9') && c != '-' && c != '.'
	})
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':' || c >= utf8.RuneSelf
}

// attr returns the value of an attribute, by its full name.
func (t *token) attr(name string) string {
	rest := t.rest
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		eq := bytes.IndexByte(rest, '=')
		if eq < 0 {
			return ""
		}
		key := bytes.TrimRight(rest[:eq], " \t\r\n")
		if i := bytes.LastIndexAny(key, " \t\r\n"); i >= 0 { // an attribute without a value precedes it
			key = key[i+1:]
		}
		rest = bytes.TrimLeft(rest[eq+1:], " \t\r\n")
		var value []byte
		if len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') {
			value, rest, _ = bytes.Cut(rest[1:], rest[:1])
		} else {
			end := bytes.IndexAny(rest, " \t\r\n")
			if end < 0 {
				end = len(rest)
			}
			value, rest = rest[:end], rest[end:]
		}
		if string(key) == name {
			return string(unescape(bytes.Clone(value)))
		}
	}
}

// unescape replaces XML's five entities and character references, in place, once. Any other
// ampersand is kept: authors forget to escape, and "?a=1&copy=2" contains no copyright sign.
func unescape(b []byte) []byte {
	amp := bytes.IndexByte(b, '&')
	if amp < 0 {
		return b
	}
	out := b[:amp]
	for i := amp; i < len(b); {
		if b[i] == '&' {
			if end := bytes.IndexByte(b[i:min(len(b), i+12)], ';'); end > 0 {
				if r, ok := reference(string(b[i+1 : i+end])); ok {
					out = utf8.AppendRune(out, r)
					i += end + 1
					continue
				}
			}
		}
		out = append(out, b[i])
		i++
	}
	return out
}

// entities are XML's.
var entities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

func reference(name string) (rune, bool) {
	digits, ok := strings.CutPrefix(name, "#")
	if !ok {
		r, ok := entities[name]
		return r, ok
	}
	base := 10
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "x"); ok {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil || n == 0 || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return 0, false
	}
	return rune(n), true
}
