// This file writes a listing as a page with links.

package ftp

import (
	"bufio"
	"bytes"
	"fmt"
	"html"
	"io"
	"net/url"
	"time"
)

// pageType is the type of a converted listing.
const pageType = "text/html; charset=utf-8"

// page is a folder's page as it grows.
type page struct {
	b       bytes.Buffer
	limit   int64
	full    bool // it would have exceeded limit
	unknown int  // lines that were not understood
}

func newPage(path string, limit int64) *page {
	p := &page{limit: limit}
	fmt.Fprintf(&p.b, "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Index of /%s</title>\n<ul>\n", html.EscapeString(clean(path)))
	return p
}

// maxEntry is the maximum length of a line of a listing; systems allow names of 255 bytes.
const maxEntry = 4 << 10

// read reads a listing to its end.
func (p *page) read(r io.Reader) error {
	br := bufio.NewReaderSize(r, maxEntry)
	for !p.full {
		line, more, err := br.ReadLine()
		whole := !more
		text := string(line)
		for more && err == nil {
			_, more, err = br.ReadLine()
		}
		switch e, ok := parseLine(text); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case !ok || !whole:
			p.unknown++
		case e.name != "":
			p.add(e)
		}
	}
	return nil
}

// add appends an entry. With ./ before it a name with a colon is no scheme.
func (p *page) add(e entry) {
	var b bytes.Buffer
	slash := ""
	if e.folder {
		slash = "/"
	}
	fmt.Fprintf(&b, "<li><a href=\"./%s%s\">%s%s</a>", html.EscapeString(url.PathEscape(e.name)), slash, html.EscapeString(clean(e.name)), slash)
	if !e.folder && e.size >= 0 {
		fmt.Fprintf(&b, " %d", e.size)
	}
	if !e.time.IsZero() {
		fmt.Fprintf(&b, " <time>%s</time>", e.time.Format(time.RFC3339))
	}
	b.WriteString("</li>\n")
	if p.full = int64(p.b.Len()+b.Len()) > p.limit; !p.full {
		p.b.Write(b.Bytes())
	}
}

// write completes the page and writes it.
func (p *page) write(w io.Writer) error {
	p.b.WriteString("</ul>\n")
	if p.unknown > 0 {
		fmt.Fprintf(&p.b, "<p>%d lines not understood</p>\n", p.unknown)
	}
	_, err := w.Write(p.b.Bytes())
	return err
}

// contentTypes are the types of well-known extensions. For others, the reader must examine the
// bytes.
var contentTypes = map[string]string{
	"html": "text/html", "htm": "text/html", "xhtml": "application/xhtml+xml", "xml": "application/xml", "css": "text/css",
	"txt": "text/plain", "md": "text/markdown", "csv": "text/csv", "json": "application/json", "js": "text/javascript",
	"pdf": "application/pdf", "ps": "application/postscript", "rtf": "application/rtf",
	"png": "image/png", "gif": "image/gif", "jpg": "image/jpeg", "jpeg": "image/jpeg", "svg": "image/svg+xml", "webp": "image/webp",
	"mp3": "audio/mpeg", "ogg": "audio/ogg", "mp4": "video/mp4", "mpg": "video/mpeg", "webm": "video/webm",
	"gz": "application/gzip", "tgz": "application/gzip", "zip": "application/zip", "tar": "application/x-tar",
	"bz2": "application/x-bzip2", "xz": "application/x-xz", "zst": "application/zstd", "7z": "application/x-7z-compressed",
	"iso": "application/octet-stream", "exe": "application/octet-stream", "bin": "application/octet-stream",
}
