// This file converts the bytes of a file to UTF-8 text; compression and encoding are recognized
// from the bytes.

package sitemap

import (
	"bufio"
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/seed-7440039f/frontier/internal/media"
)

const (
	headSize   = 4 << 10  // for recognizing formats
	bufferSize = 32 << 10 // longer texts and tags are cut
)

// decompress unpacks gzip, twice if a server compressed a compressed file, and limits the result.
func decompress(src io.Reader, limit int64) io.Reader {
	r := bufio.NewReaderSize(&limited{src: src, left: limit}, headSize)
	for range 2 {
		if magic, _ := r.Peek(2); string(magic) != "\x1f\x8b" {
			break
		}
		z, err := gzip.NewReader(r)
		if err != nil {
			return failing{err}
		}
		r = bufio.NewReaderSize(&limited{src: z, left: limit}, headSize)
	}
	return r
}

// limited returns ErrTooLarge after a number of bytes. It returns errors repeatedly, because a
// bufio.Reader that peeked reads again.
type limited struct {
	src  io.Reader
	left int64
	err  error
}

func (l *limited) Read(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	var n int
	if l.left > 0 {
		n, l.err = l.src.Read(p[:min(int64(len(p)), l.left)])
		l.left -= int64(n)
		return n, l.err
	}
	var one [1]byte
	if n, l.err = l.src.Read(one[:]); n > 0 {
		l.err = ErrTooLarge
	}
	return 0, l.err
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// decode returns src's text in UTF-8. What counts is, in this order: a byte order
// mark, UTF-16 that begins with an ASCII character, the Content-Type header, the XML
// declaration, and UTF-8.
func decode(src io.Reader, contentType string) (io.Reader, error) {
	r := bufio.NewReaderSize(src, headSize)
	head, err := r.Peek(headSize)
	if len(head) == 0 && err != nil && err != io.EOF {
		return nil, err
	}
	var enc encoding.Encoding
	switch {
	case bytes.HasPrefix(head, []byte("\uFEFF")):
		_, _ = r.Discard(len("\uFEFF"))
	case bytes.HasPrefix(head, []byte{0xFE, 0xFF}), bytes.HasPrefix(head, []byte{0xFF, 0xFE}):
		enc = unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM)
	case len(head) > 1 && head[0] == 0 && head[1] != 0:
		enc = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case len(head) > 1 && head[0] != 0 && head[1] == 0:
		enc = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	default:
		label := media.Parse(contentType).Charset
		if e, _ := charset.Lookup(label); e == nil {
			label = declared(head)
		}
		// A declaration that can be read as ASCII does not speak of UTF-16.
		if e, name := charset.Lookup(label); e != nil && name != "utf-8" && name != "utf-16le" && name != "utf-16be" && name != "replacement" {
			enc = e
		}
	}
	if enc == nil {
		return r, nil // bytes that are not UTF-8 are noticed where they matter, in URLs
	}
	return transform.NewReader(r, enc.NewDecoder()), nil
}

// declared returns the encoding that an XML declaration names.
func declared(head []byte) string {
	i := bytes.Index(head, []byte("<?xml"))
	if i < 0 {
		return ""
	}
	decl, _, _ := bytes.Cut(head[i:], []byte("?>"))
	_, rest, ok := bytes.Cut(decl, []byte("encoding"))
	if !ok {
		return ""
	}
	rest = bytes.TrimLeft(rest, " \t\r\n=")
	if len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return ""
	}
	name, _, _ := bytes.Cut(rest[1:], rest[:1])
	return string(name)
}

// rootTags begin the files that are read as XML.
var rootTags = []string{"<?xml", "<urlset", "<sitemapindex", "<rss", "<feed", "<rdf:rdf"}

// looksLikeXML reports whether to read a file as XML: it begins with a tag, or has a known tag
// after something that a server put in front.
func looksLikeXML(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n\x00"), []byte{'<'}) || firstRoot(head) >= 0
}

// firstRoot returns the position of the first of rootTags; negative if there is none.
func firstRoot(head []byte) int {
	head = bytes.ToLower(head)
	first := -1
	for _, tag := range rootTags {
		if i := bytes.Index(head, []byte(tag)); i >= 0 && (first < 0 || i < first) && endsName(head[i+len(tag):]) {
			first = i
		}
	}
	return first
}

// endsName reports whether a tag's name ends here: <feedback> is no <feed>.
func endsName(rest []byte) bool {
	return len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n/>:"), rest[0]) >= 0
}

// Recognize reports whether an unknown file begins like a sitemap or feed: one of their elements comes
// before any of a page, or the first line is an absolute URL. It accepts what a Reader does: compressed
// files, any encoding, text before the XML. The first 4 KiB suffice.
func Recognize(head []byte, contentType string) bool {
	text, err := decode(decompress(bytes.NewReader(head), 16*headSize), contentType)
	if err != nil {
		return false
	}
	b := make([]byte, headSize)
	n, _ := io.ReadFull(text, b) // a compressed head ends early
	b = bytes.TrimSpace(bytes.ToLower(b[:n]))
	if bytes.HasPrefix(b, []byte("http://")) || bytes.HasPrefix(b, []byte("https://")) {
		return true
	}
	for _, tag := range []string{"<!doctype html", "<html", "<head", "<body"} {
		if before, _, found := bytes.Cut(b, []byte(tag)); found && len(before) < len(b) {
			b = before
		}
	}
	b = bytes.ReplaceAll(b, []byte("<?xml"), nil) // pages and pictures begin so, too
	if firstRoot(b) >= 0 {
		return true
	}
	for name := range entryElements { // a file that lacks its root
		if rest, ok := bytes.CutPrefix(b, []byte("<"+name)); ok && endsName(rest) {
			return true
		}
	}
	return false
}
