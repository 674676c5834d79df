// Package lenient lets net/http read answers that it calls malformed and browsers read: their heads
// and chunks are rewritten on the way. It does not deal with their meaning. Its state is that of one
// connection.
package lenient

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

// Conn is a connection on which a server answers requests in HTTP/1. What is read from it is well
// formed if the answer can be understood, and as it was sent if not:
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
// for the next. To net/http the connection ends there: the last bytes of the answer come with io.EOF.
type Conn struct {
	net.Conn
	in      *bufio.Reader
	maxHead int64

	asks   atomic.Bool                      // what is written next begins a request
	noBody atomic.Bool                      // the request was HEAD
	bare   atomic.Bool                      // the request was CONNECT: no HTTP/1 follows its answer
	odd    bool                             // an answer was
	ended  bool                             // of the last answer: nothing of it is left but out
	out    []byte                           // to be read before anything else
	state  func(*Conn, []byte) (int, error) // reads on, or fills out
	left   int64                            // of a body or a chunk; negative: to the end of the connection
}

// NewConn returns a Conn over c. Heads of more than maxHead bytes are left to net/http.
func NewConn(c net.Conn, maxHead int64) *Conn {
	a := &Conn{Conn: c, in: bufio.NewReader(c), maxHead: maxHead, state: (*Conn).head}
	a.asks.Store(true)
	return a
}

// Write implements io.Writer.
func (a *Conn) Write(p []byte) (int, error) {
	if a.asks.CompareAndSwap(true, false) {
		a.noBody.Store(bytes.HasPrefix(p, []byte("HEAD ")))
		a.bare.Store(bytes.HasPrefix(p, []byte("CONNECT ")))
	}
	return a.Conn.Write(p)
}

// Read implements io.Reader.
func (a *Conn) Read(p []byte) (n int, err error) {
	for len(a.out) == 0 && n == 0 {
		if a.ended && a.odd {
			return 0, io.EOF
		}
		if n, err = a.state(a, p); err != nil || len(p) == 0 {
			return n, err
		}
	}
	if n == 0 {
		n = copy(p, a.out)
		a.out = a.out[n:]
	}
	if a.ended && a.odd && len(a.out) == 0 {
		err = io.EOF
	}
	return n, err
}

// raw leaves what was read, and all that follows, to net/http, which refuses it unless the protocol changes.
func (a *Conn) raw(read []byte) {
	a.out, a.left, a.state, a.ended = read, -1, (*Conn).body, false
}

// line reads to the end of a line, or until more bytes than most are read.
func (a *Conn) line(most int64) (line []byte, err error) {
	for {
		part, err := a.in.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) || int64(len(line)) > most {
			return line, err
		}
	}
}

// head reads the lines before a body.
func (a *Conn) head([]byte) (int, error) {
	read, whole, err := a.lines()
	if len(read) == 0 {
		return 0, err
	}
	if bytes.IndexByte(read, 0) >= 0 {
		return 0, errors.New("a zero byte in the head of an answer") // browsers and curl refuse it, too
	}
	h, ok := head{}, false
	if whole {
		h, ok = rewrite(read)
	}
	if !ok || h.status == http.StatusSwitchingProtocols || a.bare.Load() && h.status/100 == 2 {
		a.raw(read)
		return 0, nil
	}
	a.odd = a.odd || h.odd
	a.out, a.left, a.state, a.ended = h.text, h.length, (*Conn).body, false
	switch {
	case h.status/100 == 1:
		a.left, a.state = 0, (*Conn).head
	case a.noBody.Load(), h.status == http.StatusNoContent, h.status == http.StatusNotModified, h.length == 0:
		a.over()
	case h.chunked:
		a.state = (*Conn).chunkSize
	}
	return 0, nil
}

// lines reads a head; whole is false if that fails, or if it is too long.
func (a *Conn) lines() (read []byte, whole bool, err error) {
	for begun := false; ; {
		l, err := a.line(a.maxHead)
		read = append(read, l...)
		blank := len(bytes.TrimRight(l, "\r\n")) == 0
		switch {
		case err != nil, int64(len(read)) > a.maxHead, blank && !begun && len(read) > maxSlop:
			return read, false, err
		case !blank:
			begun = true
		case begun:
			return read, true, nil
		}
	}
}

// over notes the end of an answer: a server that has sent more does not speak of the next request.
func (a *Conn) over() {
	a.state, a.ended = (*Conn).head, true
	a.odd = a.odd || a.in.Buffered() > 0
	a.asks.Store(true)
}

// take reads bytes of which left counts.
func (a *Conn) take(p []byte) (int, error) {
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
func (a *Conn) body(p []byte) (int, error) {
	n, err := a.take(p)
	if a.left == 0 {
		a.over()
	}
	return n, err
}

// maxChunkLine is the longest line with the size of a chunk.
const maxChunkLine = 4 << 10

func (a *Conn) chunkSize([]byte) (int, error) {
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
		a.odd = true
	}
	if n == 0 {
		a.state = (*Conn).trailer
		return 0, nil
	}
	a.out, a.left, a.state = fmt.Appendf(nil, "%x\r\n", n), int64(n), (*Conn).chunk
	return 0, nil
}

func (a *Conn) chunk(p []byte) (int, error) {
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
		a.odd = true
	}
	a.out, a.state = []byte("\r\n"), (*Conn).chunkSize
	return 0, nil
}

// trailer reads the fields behind a body. net/http reads about as many as a line is long.
func (a *Conn) trailer([]byte) (int, error) {
	var read []byte
	for int64(len(read)) <= a.maxHead {
		l, err := a.line(a.maxHead)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if err != nil || len(bytes.TrimSpace(l)) == 0 {
			h := head{odd: err != nil}
			if h.fields(read, h.add); len(h.text) > maxChunkLine-64 {
				h.text = nil
			}
			a.odd = a.odd || h.odd
			a.out = append(append([]byte("0\r\n"), h.text...), "\r\n"...)
			a.over()
			return 0, nil
		}
		read = append(read, l...)
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
	var lengths, codings []string
	h.fields(rest, func(name, value []byte) {
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			lengths = append(lengths, string(value))
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			codings = append(codings, string(value))
		default:
			h.add(name, value)
		}
	})
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

// fields calls take for each field that has a valid name.
func (h *head) fields(lines []byte, take func(name, value []byte)) {
	var name, value []byte
	for line := range bytes.Lines(lines) {
		if more := h.clean(line); line[0] == ' ' || line[0] == '\t' { // it belongs to the field before
			value = append(append(value, ' '), more...)
			h.odd = h.odd || name == nil && len(more) > 0
			continue
		}
		if name != nil {
			take(name, value)
		}
		before, after, found := bytes.Cut(line, []byte(":"))
		name, value = bytes.TrimRight(before, " \t"), slices.Clip(h.clean(after)) // lines is not appended to
		h.odd = h.odd || len(name) < len(before)
		if !found || !httpguts.ValidHeaderFieldName(string(name)) {
			h.odd = h.odd || len(bytes.TrimSpace(line)) > 0
			name = nil
		}
	}
	if name != nil {
		take(name, value)
	}
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
