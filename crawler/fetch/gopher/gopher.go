// This file requests an item.

package gopher

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// Fetcher gets items. It is safe for concurrent use.
type Fetcher struct{ *fetch.Module }

// New returns a Fetcher, or an error that names every option out of range. See fetch.NewModule for
// the options without effect; Proxy must be nil.
func New(o fetch.Options) (*Fetcher, error) {
	m, err := fetch.NewModule("gopher", "70", o, speak)
	if err != nil {
		return nil, err
	}
	return &Fetcher{m}, nil
}

// RobotsURL returns the URL to match against the rules of robots.txt: without the type of its item,
// so that "Disallow: /private" applies to both the menu and the texts of that selector.
func (f *Fetcher) RobotsURL(rawURL string) string {
	i := strings.Index(rawURL, "://") + len("://")
	if i < len("://") {
		return rawURL
	}
	slash := strings.IndexByte(rawURL[i:], '/')
	if slash < 0 || len(rawURL) < i+slash+2 || isRobots(rawURL[i+slash:]) {
		return rawURL
	}
	root, selector := rawURL[:i+slash], rawURL[i+slash+2:]
	return root + "/" + strings.TrimPrefix(selector, "/")
}

// item is the item that a URL requests.
type item struct {
	kind     byte
	selector string // with a search's words after a tab
}

func isRobots(path string) bool { return path == "/robots.txt" }

// readItem reads a URL's path (RFC 4266, section 2.1).
func readItem(path string) (item, error) {
	if isRobots(path) {
		return item{'0', path}, nil
	}
	if len(path) < 2 {
		return item{'1', ""}, nil
	}
	selector, err := url.PathUnescape(path[2:])
	switch {
	case err != nil:
		return item{}, err
	case strings.ContainsAny(selector, "\r\n\x00"):
		return item{}, errors.New("a line end in the selector")
	case path[1] == '7' && !strings.Contains(selector, "\t"):
		return item{}, errors.New("a search without words")
	case strings.IndexByte("28T", path[1]) >= 0:
		return item{}, errors.New("not an item that Gopher can fetch")
	}
	return item{path[1], selector}, nil
}

// contentTypes are the content types of item types. For others, the reader must examine the bytes.
var contentTypes = map[byte]string{
	'0': "text/plain", '1': pageType, '7': pageType, '4': "application/mac-binhex40", '5': "application/octet-stream",
	'6': "text/x-uuencode", '9': "application/octet-stream", 'g': "image/gif", 'h': "text/html", 'p': "image/png", 'P': "application/pdf", 'd': "application/pdf",
}

// speak implements Gopher for fetch.Module.
func speak(ctx context.Context, c *fetch.Contact) error {
	what, err := readItem(c.Path)
	if err != nil {
		return &fetch.Error{Class: fetch.BadURL, Err: err}
	}
	c.Result.Proto = "Gopher"
	conn, err := c.Dial(ctx)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(conn, what.selector+"\r\n"); err != nil {
		return err
	}
	// The first byte has a longer timeout than the others.
	first := make([]byte, 1)
	n, err := conn.Read(first)
	if err == io.EOF { // an empty item
		err = nil
	}
	if err != nil {
		return err
	}
	conn.Expect(c.MaxBody() + 1 - int64(n))
	r := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(first[:n]), conn), maxLine)
	if message, ok := failure(r, what.kind); ok {
		return c.Answer(http.StatusNotFound, http.Header{"Gopher-Error": {message}})
	}
	h := http.Header{}
	if t := contentTypes[what.kind]; t != "" {
		h.Set("Content-Type", t)
	}
	if err := c.Answer(http.StatusOK, h); err != nil {
		return err
	}
	switch what.kind {
	case '1', '7':
		return menu(c, conn, r)
	case '0':
		return text(c, conn, r)
	}
	return c.ReadBody(conn, r)
}

// failure reports whether an answer is a single error message: one menu line of type 3, whatever
// was requested.
func failure(r *bufio.Reader, kind byte) (message string, ok bool) {
	if kind == '3' {
		return "", false
	}
	head, err := r.Peek(1)
	if err != nil || head[0] != '3' {
		return "", false
	}
	head, err = r.Peek(maxLine)
	if err != io.EOF { // longer than a message, or not read to the end
		return "", false
	}
	lines := strings.Split(strings.TrimRight(string(head), ".\r\n"), "\n")
	fields := strings.Split(lines[0], "\t")
	for _, l := range lines[1:] {
		if l != "" && l[0] != '3' && l[0] != 'i' {
			return "", false
		}
	}
	if len(fields) < 4 {
		return "", false
	}
	return clean(strings.TrimSpace(fields[0][1:])), true
}
