// This file reads a request's body line by line, and bounds the memory of all bodies together.

package serve

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"github.com/seed-7440039f/frontier/internal/urllist"
)

const (
	maxLine   = 1 << 20  // bytes
	readAhead = 16 << 10 // of a body
	batchURLs = 1000     // lines per Add
	batchSize = 256 << 10
)

var (
	errLong  = errors.New("serve: a line is longer than 1 MiB")
	errBody  = errors.New("serve: the body breaks off, or is malformed")
	errRoom  = errors.New("serve: too many requests are being read or answered: try again")
	errNever = errors.New("serve: the request needs more memory than all requests may have (-max-buffered): send less, or ask for less, at once")
)

// room counts the bytes that requests hold in memory.
type room struct {
	most int64
	used atomic.Int64
}

// take takes n more bytes for a request that already holds has. It returns errNever if even an idle
// server has no room for them.
func (r *room) take(has, n int64) error {
	if has+n > r.most {
		return errNever
	}
	if r.used.Add(n) > r.most {
		r.used.Add(-n)
		return errRoom
	}
	return nil
}

// format is the layout of a body.
type format uint8

const (
	formatLines format = iota // a JSON object in each line
	formatArray               // a JSON array of such objects
	formatText                // one URL per line
	formatBytes               // to be detected from the first byte
)

// lines reads the lines of a body.
type lines struct {
	parser
	c      *call
	in     *bufio.Reader
	format format
	buf    []byte // a line longer than in's buffer
	held   int64  // bytes taken from s.room
	first  bool   // before the first element of an array
	ended  bool
	number int // the number of the line last read
}

// lines returns a reader of the body's lines.
func (c *call) lines() (*lines, error) {
	l := &lines{parser: parser{s: c.s}, c: c, first: true}
	kind, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	switch kind {
	case "text/plain":
		l.format = formatText
	case "", "application/x-ndjson", "application/ndjson", "application/jsonl", "application/json", "application/x-www-form-urlencoded": // curl -d
		l.format = formatBytes
	default:
		return nil, badRequest("the content type is %.80q; want application/x-ndjson, application/json or text/plain", kind)
	}
	if err := c.s.room.take(0, 2*readAhead); err != nil {
		return nil, err
	}
	l.held = 2 * readAhead
	var body io.Reader = deadlined{c}
	if l.format == formatText {
		body = urllist.NewReader(body)
	}
	l.in = bufio.NewReaderSize(body, readAhead)
	return l, nil
}

// deadlined reads the body of a call. Each read has a deadline, so a silent client loses its connection.
type deadlined struct{ c *call }

func (d deadlined) Read(b []byte) (int, error) {
	d.c.deadline()
	n, err := d.c.r.Body.Read(b)
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		d.c.undeadline() // from here the client waits for the answer
	case err != nil && !errors.As(err, &large) && !errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("%w: %w", errBody, err)
	}
	return n, err
}

// talk lets the client read answers while it sends.
func (c *call) talk() { c.talks = http.NewResponseController(c.w).EnableFullDuplex() == nil }

// DropRest reads the rest of the body of a request in full duplex that ends early. net/http would panic if it
// met the end itself, and would take the rest of a body that failed for another request. A rest that goes on
// and on costs the connection.
func DropRest(w http.ResponseWriter, body io.Reader) {
	_ = http.NewResponseController(w).Flush()
	if _, err := io.CopyN(io.Discard, body, 4*maxLine); !errors.Is(err, io.EOF) {
		panic(http.ErrAbortHandler)
	}
}

// counted takes room for the bytes that its reader buffers.
type counted struct {
	in   io.Reader
	room *room
	held int64
}

func (r *counted) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	if x := 2 * int64(n); x > 0 { // buffers double
		if err := r.room.take(r.held, x); err != nil {
			return 0, err
		}
		r.held += x
	}
	return n, err
}

// close returns the room.
func (r *counted) close() { r.room.used.Add(-r.held) }

// close returns the room.
func (l *lines) close() { l.c.s.room.used.Add(-l.held) }

// grow takes n more bytes of room.
func (l *lines) grow(n int64) error {
	if err := l.c.s.room.take(l.held, n); err != nil {
		return err
	}
	l.held += n
	return nil
}

// release returns what grow took, beyond what the current line still uses.
func (l *lines) release(to int64) {
	if n := int64(cap(l.buf)); n > readAhead {
		to += 2 * n
	}
	if l.held > to {
		l.c.s.room.used.Add(to - l.held)
		l.held = to
	}
}

// shrink returns what grow took, and drops a long line.
func (l *lines) shrink(to int64) {
	if cap(l.buf) > readAhead {
		l.buf = nil
	}
	l.release(to)
}

// next returns the next line, or element of an array, which is valid until the next call.
// At the end it returns io.EOF.
func (l *lines) next() ([]byte, error) {
	if l.format == formatBytes {
		c, err := l.peek()
		if err != nil {
			return nil, err
		}
		l.format = formatLines
		if c == '[' {
			l.format, l.number = formatArray, 0
			_, _ = l.in.Discard(1)
		}
	}
	if l.format == formatArray {
		return l.element()
	}
	for {
		b, err := l.line()
		if err != nil && (len(b) == 0 || !errors.Is(err, io.EOF)) {
			return nil, err // a line that breaks off is dropped
		}
		l.number++
		if b = bytes.TrimSpace(b); len(b) > 0 && (l.format != formatText || b[0] != '#') {
			return b, nil
		}
	}
}

// line reads up to a line feed.
func (l *lines) line() ([]byte, error) {
	b, err := l.in.ReadSlice('\n')
	if err == nil || !errors.Is(err, bufio.ErrBufferFull) {
		return b, err
	}
	l.buf = append(l.buf[:0], b...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(l.buf) > maxLine {
			return nil, errLong
		}
		if n := int64(cap(l.buf)); 2*n > l.held {
			if err := l.grow(n); err != nil {
				return nil, err
			}
		}
		b, err = l.in.ReadSlice('\n')
		l.buf = append(l.buf, b...)
	}
	if len(l.buf) > maxLine+1 {
		return nil, errLong
	}
	return l.buf, err
}

// peek returns the next byte that is not a blank.
func (l *lines) peek() (byte, error) {
	for {
		b, err := l.in.Peek(1)
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n", rune(b[0])) {
			return b[0], nil
		}
		if b[0] == '\n' && l.format == formatBytes { // in an array, objects count
			l.number++
		}
		_, _ = l.in.Discard(1)
	}
}

// element reads the next object of an array.
func (l *lines) element() ([]byte, error) {
	if l.ended {
		if _, err := l.peek(); err == nil {
			return nil, badRequest("something follows the array")
		}
		return nil, io.EOF
	}
	c, err := l.peek()
	if err == nil && c == ',' && !l.first {
		_, _ = l.in.Discard(1)
		if c, err = l.peek(); err == nil && c != '{' {
			return nil, badRequest("malformed JSON: %q where an object should be", c)
		}
	} else if err == nil && c != ']' && !l.first {
		return nil, badRequest("malformed JSON: %q where a comma should be", c)
	}
	switch {
	case err != nil:
		return nil, unended(err)
	case c == ']':
		_, _ = l.in.Discard(1)
		l.ended = true
		return l.element()
	case c != '{':
		return nil, badRequest("malformed JSON: %q where an object should be", c)
	}
	l.first = false
	l.number++
	l.buf = l.buf[:0]
	for depth, text := 0, false; ; {
		c, err := l.in.ReadByte()
		if err != nil {
			return nil, unended(err)
		}
		l.buf = append(l.buf, c)
		if len(l.buf) > maxLine {
			return nil, errLong
		}
		if n := int64(cap(l.buf)); n > readAhead && 2*n > l.held {
			if err := l.grow(n); err != nil {
				return nil, err
			}
		}
		switch {
		case text && c == '\\':
			c, err := l.in.ReadByte()
			if err != nil {
				return nil, unended(err)
			}
			l.buf = append(l.buf, c)
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return l.buf, nil
			}
		}
	}
}

// unended returns the error of an array that breaks off.
func unended(err error) error {
	if errors.Is(err, io.EOF) {
		return badRequest("malformed JSON: the array has no end")
	}
	return err
}
