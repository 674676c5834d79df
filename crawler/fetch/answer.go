// This file lets net/http read answers that it calls malformed and browsers read: their heads and
// chunks are rewritten on the way. It does not deal with their meaning.

package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"
)

// answerConn is a connection on which a server answers GET requests in HTTP/1. What is read from it
// is well formed if the answer can be understood, and as it was sent if not:
//   - A line of a head without a colon, or without a valid name before it, is left out. Control
//     characters in values become blanks. Up to four bytes before the status line are skipped, and a
//     missing status is 200.
//   - The body is chunked if chunked is one of its transfer codings, whatever length is given with it;
//     other transfer codings count as content codings. A list of equal lengths is one length, which
//     ends where its digits end. Different lengths are an error.
//   - Lines may end in LF alone, sizes of chunks in blanks. The end of the last chunk may be missing.
//
// An answer that was understood only in this way is odd. A program between may have seen its end
// elsewhere, so its connection must not be used again: otherwise the rest of one answer could pass
// for the next.
type answerConn struct {
	net.Conn
	in      *bufio.Reader
	maxHead int64
	odd     atomic.Bool

	out   []byte                                 // to be read before anything else
	state func(*answerConn, []byte) (int, error) // reads on, or fills out
	left  int64                                  // of a body or a chunk; negative: to the end of the connection
}

func newAnswerConn(c net.Conn, maxHead int64) *answerConn {
	return &answerConn{Conn: c, in: bufio.NewReader(c), maxHead: maxHead, state: (*answerConn).head}
}

// Read implements io.Reader.
func (a *answerConn) Read(p []byte) (int, error) {
	for len(a.out) == 0 {
		if n, err := a.state(a, p); n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
	n := copy(p, a.out)
	a.out = a.out[n:]
	return n, nil
}

// raw leaves what was read, and all that follows, to net/http.
func (a *answerConn) raw(read []byte) {
	a.odd.Store(true)
	a.out, a.left, a.state = read, -1, (*answerConn).body
}

// line reads to the end of a line, or until more bytes than most are read.
func (a *answerConn) line(most int64) (line []byte, err error) {
	for {
		part, err := a.in.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) || int64(len(line)) > most {
			return line, err
		}
	}
}

// head reads the lines before a body.
func (a *answerConn) head([]byte) (int, error) {
	var read []byte
	for begun := false; ; {
		l, err := a.line(a.maxHead)
		read = append(read, l...)
		blank := len(bytes.TrimRight(l, "\r\n")) == 0
		switch {
		case err != nil && len(read) == 0:
			return 0, err
		case err != nil, int64(len(read)) > a.maxHead, blank && !begun && len(read) > maxSlop:
			a.raw(read)
			return 0, nil
		case !blank:
			begun = true
		case begun:
			a.begin(read)
			return 0, nil
		}
	}
}

// begin passes a head on, and prepares for its body.
func (a *answerConn) begin(read []byte) {
	h, ok := rewrite(read)
	if !ok || h.status == http.StatusSwitchingProtocols {
		a.raw(read)
		return
	}
	if h.odd {
		a.odd.Store(true)
	}
	a.out, a.left, a.state = h.text, h.length, (*answerConn).body
	switch {
	case h.status/100 == 1, h.status == http.StatusNoContent, h.status == http.StatusNotModified:
		a.left = 0
		if h.status/100 > 1 {
			a.over()
		}
	case h.chunked:
		a.state = (*answerConn).chunkSize
	}
}

// over notes the end of an answer: a server that has sent more does not speak of the next request.
func (a *answerConn) over() {
	a.state = (*answerConn).head
	if a.in.Buffered() > 0 {
		a.odd.Store(true)
	}
}

// take reads bytes of which left counts.
func (a *answerConn) take(p []byte) (int, error) {
	if a.left >= 0 {
		p = p[:min(int64(len(p)), a.left)]
	}
	n, err := a.in.Read(p)
	if a.left >= 0 {
		a.left -= int64(n)
	}
	return n, err
}

// body reads a body without chunks.
func (a *answerConn) body(p []byte) (int, error) {
	if a.left == 0 {
		a.state = (*answerConn).head
		return 0, nil
	}
	n, err := a.take(p)
	if a.left == 0 {
		a.over()
	}
	return n, err
}

// maxChunkLine is the longest line with the size of a chunk.
const maxChunkLine = 4 << 10

func (a *answerConn) chunkSize([]byte) (int, error) {
	l, err := a.line(maxChunkLine)
	if err != nil {
		a.out = l
		return 0, err
	}
	size, _, _ := bytes.Cut(l, []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 63)
	if err != nil {
		a.raw(l)
		return 0, nil
	}
	if size[0] == ' ' || !bytes.HasSuffix(l, []byte("\r\n")) {
		a.odd.Store(true)
	}
	if n == 0 {
		a.state = (*answerConn).trailer
		return 0, nil
	}
	a.out, a.left, a.state = fmt.Appendf(nil, "%x\r\n", n), int64(n), (*answerConn).chunk
	return 0, nil
}

func (a *answerConn) chunk(p []byte) (int, error) {
	if a.left > 0 {
		return a.take(p)
	}
	l, err := a.line(maxChunkLine)
	if err != nil {
		return 0, err
	}
	if len(bytes.TrimSpace(l)) > 0 {
		a.raw(l)
		return 0, nil
	}
	if string(l) != "\r\n" {
		a.odd.Store(true)
	}
	a.out, a.state = []byte("\r\n"), (*answerConn).chunkSize
	return 0, nil
}

// trailer skips the fields behind a body.
func (a *answerConn) trailer([]byte) (int, error) {
	for read := 0; int64(read) <= a.maxHead; {
		l, err := a.line(a.maxHead)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if err != nil {
			a.odd.Store(true)
		}
		if err != nil || len(bytes.TrimSpace(l)) == 0 {
			a.out = []byte("0\r\n\r\n")
			a.over()
			return 0, nil
		}
		read += len(l)
	}
	return 0, errors.New("the fields behind the body are too long")
}

// maxSlop is how many bytes may come before a status line.
const maxSlop = 4

// head is the head of an answer, and what it says about the body.
type head struct {
	text    []byte
	status  int
	old     bool // HTTP/1.0, which has no chunks
	chunked bool
	length  int64 // negative: to the end of the connection
	odd     bool
}

// rewrite makes a head well formed; ok is false if it cannot be understood.
func rewrite(read []byte) (h head, ok bool) {
	if bytes.IndexByte(read, 0) >= 0 { // browsers and curl refuse it
		return h, false
	}
	slop := 0
	for len(read) < slop+4 || !bytes.EqualFold(read[slop:slop+4], []byte("HTTP")) {
		if slop++; slop > maxSlop {
			return h, false
		}
	}
	h.odd = slop > 0
	h.text = make([]byte, 0, len(read)+64)
	first, rest, _ := bytes.Cut(read[slop:], []byte("\n"))
	if !h.begin(string(h.clean(first))) {
		return h, false
	}
	var name, value []byte
	var lengths, codings []string
	end := func() {
		switch {
		case name == nil:
		case bytes.EqualFold(name, []byte("Content-Length")):
			lengths = append(lengths, string(value))
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			codings = append(codings, string(value))
		default:
			h.add(name, value)
		}
	}
	for line := range bytes.Lines(rest) {
		if more := h.clean(line); line[0] == ' ' || line[0] == '\t' { // it belongs to the field before
			value = append(append(slices.Clip(value), ' '), more...)
			h.odd = h.odd || name == nil && len(more) > 0
			continue
		}
		end()
		before, after, found := bytes.Cut(line, []byte(":"))
		name, value = bytes.TrimRight(before, " \t"), h.clean(after)
		h.odd = h.odd || len(name) < len(before)
		if !found || !httpguts.ValidHeaderFieldName(string(name)) {
			h.odd = h.odd || len(bytes.TrimSpace(line)) > 0
			name = nil
		}
	}
	end()
	h.transfer(codings, len(lengths) > 0)
	if h.length = -1; !h.chunked && len(lengths) > 0 {
		if h.length, ok = h.lengthOf(lengths); !ok {
			return h, false
		}
	}
	if h.length >= 0 {
		h.add([]byte("Content-Length"), strconv.AppendInt(nil, h.length, 10))
	}
	h.text = append(h.text, "\r\n"...)
	return h, true
}

func (h *head) add(name, value []byte) {
	value = bytes.Trim(value, " \t")
	h.text = append(append(append(append(h.text, name...), ": "...), value...), "\r\n"...)
}

// clean trims a value, and replaces its control characters.
func (h *head) clean(value []byte) []byte {
	value = bytes.Trim(value, " \t\r\n")
	bad := func(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f }
	if !slices.ContainsFunc(value, bad) {
		return value
	}
	h.odd = true
	value = bytes.Clone(value)
	for i, c := range value {
		if bad(c) {
			value[i] = ' '
		}
	}
	return bytes.Trim(value, " ")
}

// begin reads the status line.
func (h *head) begin(line string) bool {
	version, rest := line[len("HTTP"):], ""
	if i := strings.IndexAny(version, " \t"); i >= 0 {
		version, rest = version[:i], strings.TrimLeft(version[i:], " \t")
	}
	if version != "" && version[0] != '/' {
		return false
	}
	code := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	reason := rest[len(code):]
	switch {
	case code == "" && version != "":
		code, reason = "200", " OK"
	case len(code) != 3:
		return false
	case reason != "" && reason[0] != ' ':
		reason = " " + strings.TrimLeft(reason, "\t")
	}
	h.status, _ = strconv.Atoi(code)
	h.old = version == "" || strings.HasPrefix(version, "/0") || version == "/1.0"
	text := "HTTP/1.1 "
	if h.old {
		text = "HTTP/1.0 "
	}
	text += code + reason
	h.odd = h.odd || text != line
	h.text = append(append(h.text, text...), "\r\n"...)
	return true
}

// lengthOf reads the fields Content-Length. The length is negative if none is a number; ok is false
// if they contradict each other.
func (h *head) lengthOf(fields []string) (length int64, ok bool) {
	length = -1
	words := strings.Split(strings.Join(fields, ","), ",")
	h.odd = h.odd || len(words) > 1
	for _, w := range words {
		digits := strings.TrimPrefix(strings.TrimSpace(w), "+")
		if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
			digits = digits[:i]
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		h.odd = h.odd || err != nil || digits != w
		if err == nil && length >= 0 && length != n {
			return 0, false
		}
		if err == nil {
			length = n
		}
	}
	return length, true
}

// transfer reads the fields Transfer-Encoding.
func (h *head) transfer(fields []string, length bool) {
	if len(fields) == 0 || h.old {
		return
	}
	h.odd = h.odd || length || len(fields) > 1 || !strings.EqualFold(fields[0], "chunked")
	for coding := range strings.SplitSeq(strings.ToLower(strings.Join(fields, ",")), ",") {
		coding, _, _ = strings.Cut(coding, ";")
		switch coding = strings.TrimSpace(coding); coding {
		case "chunked":
			h.chunked = true
		case "gzip", "x-gzip", "deflate":
			h.add([]byte("Content-Encoding"), []byte(coding))
		}
	}
	if h.chunked {
		h.add([]byte("Transfer-Encoding"), []byte("chunked"))
	}
}
