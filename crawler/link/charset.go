// This file determines the encoding of a page and converts it to UTF-8.

package link

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// prescan is how many bytes the HTML Standard looks at for a meta element.
const prescan = 1024

// Charset returns the canonical name of a page's encoding (HTML Standard, "Determining the
// character encoding"), given at least its first 1,024 bytes, or all if there are fewer. The first
// of these that is present decides: a byte order mark, the charset of the Content-Type header, a
// meta element, bytes that look like UTF-8. The default is windows-1252.
func Charset(head []byte, contentType string) string {
	_, name, _ := charset.DetermineEncoding(head, contentType)
	return name
}

// textEncoding is an encoding and its name.
type textEncoding struct {
	name string
	// query encodes queries, where the encoding asks for that; nil means UTF-8.
	query *encoding.Encoder
}

// decode returns a reader of r's text in UTF-8.
func decode(r io.Reader, contentType string) (io.Reader, textEncoding, error) {
	br := bufio.NewReaderSize(r, 4<<10)
	head, err := br.Peek(prescan)
	if err != nil && !errors.Is(err, io.EOF) {
		if len(head) == 0 {
			return br, textEncoding{name: "utf-8"}, err
		}
		// What was read before the error is usable; the error is returned again later.
	}
	e, name, _ := charset.DetermineEncoding(head, contentType)
	switch {
	case e == encoding.Encoding(charmap.Windows1252):
		// No encoding was declared. Most such pages are UTF-8 in which the first non-ASCII
		// character comes late, so decide for each byte sequence.
		return transform.NewReader(br, guess{}), textEncoding{name: name}, nil
	case name == "utf-8" || e == encoding.Nop:
		return transform.NewReader(br, unicode.UTF8.NewDecoder()), textEncoding{name: name}, nil
	}
	enc := textEncoding{name: name}
	if !strings.HasPrefix(name, "utf-16") && name != "replacement" {
		enc.query = e.NewEncoder()
	}
	return transform.NewReader(br, e.NewDecoder()), enc, nil
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
