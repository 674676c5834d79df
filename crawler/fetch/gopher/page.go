// This file converts menus to pages, and removes Gopher's framing from texts.

package gopher

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// pageType is the type of a converted menu.
const pageType = "text/html; charset=utf-8"

// maxLine is the maximum length of a line of a menu; the rest is skipped. RFC 1436 allows 255 bytes
// of selector and 70 of display text.
const maxLine = 4 << 10

// page is a menu's page as it grows.
type page struct {
	b     bytes.Buffer
	limit int64
	full  bool // it would have exceeded limit
	last  byte // the type of the item before
}

// menu converts a menu, up to its end or the line with a single dot.
func menu(c *fetch.Contact, conn *fetch.Conn, r *bufio.Reader) error {
	began := time.Now()
	p := &page{limit: c.MaxBody()}
	fmt.Fprintf(&p.b, "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>%s</title>\n", html.EscapeString(clean(fetch.Redact(c.Request.URL))))
	err := p.read(r)
	c.Result.Timing.Body = time.Since(began)
	c.Result.Bytes, c.Result.Truncated = conn.Received(), conn.Cut() || p.full
	return errors.Join(err, c.MakeBody(func(w io.Writer) error { _, err := w.Write(p.b.Bytes()); return err }))
}

func (p *page) read(r *bufio.Reader) error {
	for !p.full {
		line, more, err := r.ReadLine()
		text := string(line)
		for more && err == nil {
			_, more, err = r.ReadLine()
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case text == ".":
			return nil
		case text != "":
			p.add(text)
		}
	}
	return nil
}

// add appends an item's line: type, words, and after tabs selector, host and port.
func (p *page) add(line string) {
	fields := strings.Split(line, "\t")
	var kind, words string
	if fields[0] != "" { // otherwise the line begins with a tab
		kind, words = fields[0][:1], html.EscapeString(clean(fields[0][1:]))
	}
	out := words + "<br>\n"
	if kind == "+" {
		kind = string(p.last)
	} else if kind != "" {
		p.last = kind[0]
	}
	if to := target(kind, fields); to != "" {
		out = fmt.Sprintf("<a href=\"%s\">%s</a><br>\n", html.EscapeString(to), words)
	}
	if p.full = int64(p.b.Len()+len(out)) > p.limit; !p.full {
		p.b.WriteString(out)
	}
}

// target returns the URL of an item; empty if it cannot be crawled.
func target(kind string, fields []string) string {
	if kind == "" || kind[0] <= ' ' || kind[0] > '~' || strings.Contains("i3278T+%/?#", kind) || len(fields) < 4 {
		return ""
	}
	selector, host := fields[1], strings.ToLower(strings.TrimSpace(fields[2]))
	if kind == "h" {
		for _, prefix := range []string{"URL:", "/URL:"} {
			if to, ok := strings.CutPrefix(selector, prefix); ok {
				return clean(to)
			}
		}
	}
	port, err := strconv.ParseUint(strings.TrimSpace(fields[3]), 10, 16)
	if err != nil || port == 0 || host == "" {
		return ""
	}
	if a, err := netip.ParseAddr(host); err != nil || !a.Is6() {
		if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || strings.ContainsRune("/?#@\\<>\"%:[]\x7f", r) }) || !utf8.ValidString(host) {
			return ""
		}
	}
	return "gopher://" + net.JoinHostPort(host, strconv.FormatUint(port, 10)) + "/" + kind + escape(selector)
}

// escape writes a selector as a part of a URL.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~/!$&'()*+,;=:@", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// clean makes server text safe to print on one line of a terminal. Text that is not UTF-8 is read
// as Latin 1, which old servers use.
func clean(s string) string {
	if !utf8.ValidString(s) {
		runes := make([]rune, len(s))
		for i := range len(s) {
			runes[i] = rune(s[i])
		}
		s = string(runes)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// text stores a text. If it ends in a line with a single dot, that line is removed, and so is the
// first dot of lines that begin with two.
func text(c *fetch.Contact, conn *fetch.Conn, r io.Reader) error {
	err := c.ReadBody(conn, r)
	body := c.Result.Body
	if body == nil || c.Result.Truncated {
		return err
	}
	tail := make([]byte, min(body.Size(), 4))
	if _, readErr := body.ReadAt(tail, body.Size()-int64(len(tail))); readErr != nil && readErr != io.EOF {
		return errors.Join(err, readErr)
	}
	end := bytes.TrimRight(tail, "\r\n")
	if !bytes.Equal(end, []byte(".")) && !bytes.HasSuffix(end, []byte("\n.")) || len(end) == len(tail) {
		return err
	}
	// The text is complete, whether the server closes the connection or not.
	return c.MakeBody(func(w io.Writer) error { return unstuff(w, bufio.NewReader(body.Reader())) })
}

// unstuff copies lines up to the line with a single dot.
func unstuff(w io.Writer, r *bufio.Reader) error {
	begins := true // a line
	for {
		piece, err := r.ReadSlice('\n')
		if begins && len(piece) > 0 && piece[0] == '.' {
			if piece = piece[1:]; len(bytes.TrimRight(piece, "\r\n")) == 0 {
				return nil
			}
		}
		if _, err := w.Write(piece); err != nil {
			return err
		}
		begins = err == nil
		if err == io.EOF {
			return nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
	}
}
