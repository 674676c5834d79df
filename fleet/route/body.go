// This file reads a request's body, and takes JSON objects apart without changing what a part must judge.

package route

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"time"
	"unicode/utf8"

	"github.com/seed-7440039f/frontier/internal/urllist"
)

const (
	maxLine   = 1 << 20 // bytes
	readAhead = 64 << 10
	batchSize = 256 << 10
	copies    = 4 // of a line, taken apart and put together, and of its answer
)

var errBody = errors.New("the body breaks off, or is malformed")

// deadlined reads the body of a call. A silent client loses its connection.
type deadlined struct {
	c    *call
	kept bool // count what was read
}

func (d deadlined) Read(b []byte) (int, error) {
	control := http.NewResponseController(d.c.w)
	_ = control.SetReadDeadline(time.Now().Add(idle))
	n, err := d.c.q.Body.Read(b)
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		_ = control.SetReadDeadline(time.Time{}) // from here the client waits for the answer
	case err != nil && !errors.As(err, &large) && !errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("%w: %w", errBody, err)
	}
	if d.kept {
		err = cmp.Or(d.c.grow(2*n), err) // buffers double
	}
	return n, err
}

// body reads a whole body.
func (c *call) body() ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(c.w, io.NopCloser(deadlined{c, true}), maxLine))
}

// talk lets the client read answers while it sends.
func (c *call) talk() { c.talks = http.NewResponseController(c.w).EnableFullDuplex() == nil }

// lines reads the lines of a body, or the objects of an array.
type lines struct {
	c      *call
	in     *bufio.Reader
	text   bool          // a URL in each line
	array  *json.Decoder // nil: lines
	left   int           // bytes that the next object of the array may have
	began  bool
	number int // of the line read last
}

func (c *call) lines() (*lines, error) {
	kind, _, _ := mime.ParseMediaType(c.q.Header.Get("Content-Type"))
	l := &lines{c: c}
	var body io.Reader = deadlined{c: c}
	switch kind {
	case "text/plain":
		l.text, l.began, body = true, true, urllist.NewReader(body)
	case "", linesType, "application/ndjson", "application/jsonl", jsonType, "application/x-www-form-urlencoded": // curl -d
	default:
		return nil, badRequest("the content type is %.80q; want application/x-ndjson, application/json or text/plain", kind)
	}
	l.in = bufio.NewReaderSize(body, readAhead)
	c.hold(2 * readAhead)
	return l, nil
}

// Read reads for the decoder of an array.
func (l *lines) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLong
	}
	n, err := l.in.Read(b[:min(len(b), l.left)])
	if l.left -= n; l.left < maxLine {
		err = cmp.Or(l.c.grow(2*n), err)
	}
	return n, err
}

// next returns the next line that is not blank, or the next object; at the end io.EOF.
func (l *lines) next() ([]byte, error) {
	for !l.began {
		b, err := l.in.Peek(1)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains([]byte(" \t\r\n"), b) {
			if l.began = true; b[0] == '[' {
				l.array, l.left, l.number = json.NewDecoder(l), maxLine, 0
				_, _ = l.array.Token()
			}
			break
		}
		if b[0] == '\n' {
			l.number++
		}
		_, _ = l.in.Discard(1)
	}
	if l.array != nil {
		return l.object()
	}
	for {
		line, err := l.line()
		if line = bytes.TrimSpace(line); err != nil || len(line) > 0 && (!l.text || line[0] != '#') {
			return line, err
		}
	}
}

// line returns the next line, without its end.
func (l *lines) line() (line []byte, err error) {
	for {
		b, err := l.in.ReadSlice('\n')
		if line = append(line, b...); len(line) > maxLine+1 {
			return nil, errLong
		}
		if err == nil || len(line) > 0 && errors.Is(err, io.EOF) {
			l.number++
			return bytes.TrimSuffix(line, []byte("\n")), nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			err = l.c.grow(2 * len(b))
		}
		if err != nil {
			return nil, err
		}
	}
}

// object returns the next object of an array, in one line.
func (l *lines) object() ([]byte, error) {
	l.left = maxLine + readAhead // the decoder reads ahead
	if !l.array.More() {
		if _, err := l.array.Token(); err != nil {
			return nil, badRequest("malformed JSON: the array has no end: %v", err)
		}
		if _, err := l.array.Token(); !errors.Is(err, io.EOF) {
			return nil, badRequest("something follows the array")
		}
		return nil, io.EOF
	}
	var raw json.RawMessage
	if err := l.array.Decode(&raw); err != nil {
		if _, ok := errors.AsType[*json.SyntaxError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = badRequest("malformed JSON: %v", err)
		}
		return nil, err
	}
	if raw[0] != '{' {
		return nil, badRequest("malformed JSON: %.20q where an object should be", raw)
	}
	var one bytes.Buffer
	_ = json.Compact(&one, raw)
	l.number++
	return one.Bytes(), nil
}

// batch reads up to most lines. It ends earlier when the client waits for an answer. The error io.EOF comes
// with the last ones.
func (l *lines) batch(most int, eager bool, take func(line []byte)) error {
	size := 0
	for n := 0; n < most && size < batchSize; n++ {
		b, err := l.next()
		if err != nil {
			return err
		}
		take(b)
		if size += len(b); eager && l.array == nil && l.in.Buffered() == 0 {
			break
		}
	}
	return nil
}

// object is a JSON object whose members keep their order, and are there as often as they were.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

// objectOf takes an object apart. Its values are parts of b.
func objectOf(b []byte) (o object, err error) {
	if b = bytes.TrimLeft(b, " \t\r\n"); len(b) == 0 || b[0] != '{' || !json.Valid(b) {
		return nil, errBody
	}
	for i := 1; ; { // all that is left to find is where values end
		name := valueAt(b, i)
		if name == nil {
			return o, nil
		}
		var m member
		if m.name = string(name[1 : len(name)-1]); bytes.IndexByte(name, '\\') >= 0 || !utf8.Valid(name) {
			err = json.Unmarshal(name, &m.name)
		}
		i = cap(b) - cap(name) + len(name)
		m.value = valueAt(b, i+bytes.IndexByte(b[i:], ':')+1)
		i = cap(b) - cap(m.value) + len(m.value)
		if o = append(o, m); err != nil {
			return nil, err
		}
	}
}

// valueAt returns the next value of valid JSON, or nil at the end of the object.
func valueAt(b []byte, i int) json.RawMessage {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n' || b[i] == ',' {
		i++
	}
	if b[i] == '}' {
		return nil
	}
	depth, text := 0, false
	for end := i; ; end++ {
		switch c := b[end]; {
		case text && c == '\\':
			end++
		case c == '"':
			text = !text
			if !text && depth == 0 {
				return b[i : end+1]
			}
		case text:
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']') && depth > 0:
			if depth--; depth == 0 {
				return b[i : end+1]
			}
		case depth == 0 && (c == ',' || c == '}' || c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			return b[i:end]
		}
	}
}

// find returns the value of a member, nil if it is missing or null, and whether it is there more than once.
func (o object) find(name string) (value json.RawMessage, twice bool) {
	n := 0
	for _, m := range o {
		if m.name == name {
			n++
			if value = m.value; string(value) == "null" {
				value = nil
			}
		}
	}
	return value, n > 1
}

// text returns a member that is a text.
func (o object) text(name string) (s string) {
	v, _ := o.find(name)
	_ = json.Unmarshal(v, &s)
	return s
}

// set sets a member.
func (o *object) set(name string, x any) {
	b, _ := json.Marshal(x)
	for i := range *o {
		if (*o)[i].name == name {
			(*o)[i].value = b
			return
		}
	}
	*o = append(*o, member{name, b})
}

// bytes puts the object together.
func (o object) bytes() []byte {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(m.name)
		b = append(append(append(b, name...), ':'), m.value...)
	}
	return append(b, '}')
}
