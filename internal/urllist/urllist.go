// Package urllist reads lists of URLs as people and their programs write them: a URL in each line,
// in UTF-8 or UTF-16, with or without a byte order mark, with the line ends of any system. Blanks,
// quotes and angle brackets around a URL are no part of it; # begins a comment at the beginning of a
// line and behind a blank. It keeps no state but a reader's.
package urllist

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf16"
	"unicode/utf8"
)

const mark = "\ufeff"

// NewReader returns the text of r in UTF-8, without a byte order mark, with LF at the end of each line.
// UTF-16 is known by its mark, or by a zero in one of the first two bytes. Bytes that are not UTF-8
// stay as they are. It reads no more of r than it needs to know the encoding before it is read itself,
// and returns r's errors. Text in UTF-16 that ends within a character ends with io.ErrUnexpectedEOF.
func NewReader(r io.Reader) io.Reader { return &reader{src: r} }

type reader struct {
	src   io.Reader
	known bool // the encoding is
	cr    bool // the last byte was a CR: an LF behind it is no line of its own
}

func (r *reader) Read(b []byte) (int, error) {
	if !r.known {
		r.known = true
		r.begin()
	}
	for {
		n, err := r.src.Read(b)
		if n = r.lines(b[:n]); n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
	}
}

// begin looks at the first bytes. An error meanwhile comes behind them.
func (r *reader) begin() {
	head := make([]byte, len(mark))
	n, err := io.ReadFull(r.src, head[:2])
	if err == nil && head[0] == mark[0] {
		var more int
		more, err = io.ReadFull(r.src, head[2:])
		n += more
	}
	head = head[:n]
	rest := r.src
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // which is a short list's end, and comes again
		rest = failing{err}
	}
	whole := io.MultiReader(bytes.NewReader(head), rest)
	switch {
	case string(head) == mark:
		r.src = rest
	case n == 2 && (head[1] == 0 && head[0] != 0 || string(head) == "\xff\xfe"):
		r.src = &wide{in: bufio.NewReader(whole), order: binary.LittleEndian}
	case n == 2 && (head[0] == 0 && head[1] != 0 || string(head) == "\xfe\xff"):
		r.src = &wide{in: bufio.NewReader(whole), order: binary.BigEndian}
	default:
		r.src = whole
	}
}

// lines makes LF of each CR, and of each CR LF, and returns how many bytes are left.
func (r *reader) lines(b []byte) int {
	if !r.cr && bytes.IndexByte(b, '\r') < 0 {
		return len(b)
	}
	out := b[:0]
	for _, c := range b {
		skip := c == '\n' && r.cr
		if r.cr = c == '\r'; r.cr {
			c = '\n'
		}
		if !skip {
			out = append(out, c)
		}
	}
	return len(out)
}

// failing is a reader that has failed.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// wide reads UTF-16.
type wide struct {
	in    *bufio.Reader
	order binary.ByteOrder
	begun bool
	left  []byte // of a character that did not fit
	high  rune   // half of a pair, whose other half comes
	err   error
}

func (w *wide) Read(b []byte) (int, error) {
	n := copy(b, w.left)
	w.left = w.left[n:]
	for n < len(b) && w.err == nil {
		if n > 0 && w.in.Buffered() < 2 {
			break // what is there is not held back
		}
		r, ok := w.next()
		if !ok {
			continue
		}
		w.left = utf8.AppendRune(w.left[:0], r)
		m := copy(b[n:], w.left)
		n, w.left = n+m, w.left[m:]
	}
	if n > 0 || len(b) == 0 {
		return n, nil
	}
	return 0, w.err
}

// next returns a character, if one is complete.
func (w *wide) next() (rune, bool) {
	var unit [2]byte
	if _, w.err = io.ReadFull(w.in, unit[:]); w.err != nil {
		if high := w.high; high != 0 && errors.Is(w.err, io.EOF) {
			w.high = 0
			return utf8.RuneError, true
		}
		return 0, false
	}
	r, high := rune(w.order.Uint16(unit[:])), w.high
	begun := w.begun
	w.begun, w.high = true, 0
	switch {
	case !begun && string(r) == mark:
		return 0, false
	case high != 0:
		if pair := utf16.DecodeRune(high, r); pair != utf8.RuneError {
			return pair, true
		}
		return utf8.RuneError, true
	case utf16.IsSurrogate(r) && r < 0xdc00:
		w.high = r
		return 0, false
	}
	return r, true // AppendRune makes U+FFFD of the other half alone
}

// Line is a line of a list that is neither blank nor a comment.
type Line struct {
	Number int    // from 1
	URL    string // empty if Err is not nil
	Err    error  // the line is too long, or not UTF-8
}

// Lines yields the lines of a list, as NewReader reads it. An error of the reader is the last; its
// Line has the number alone, and the line in which it came is not yielded. Lines of more than most
// bytes are too long.
func Lines(r io.Reader, most int) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		in := bufio.NewReader(NewReader(r))
		var b []byte
		for l := (Line{Number: 1}); ; l = (Line{Number: l.Number + 1}) {
			part, err := in.ReadSlice('\n')
			b = append(b[:0], part...)
			for errors.Is(err, bufio.ErrBufferFull) {
				part, err = in.ReadSlice('\n')
				b = append(b, part[:min(len(part), max(most+2-len(b), 0))]...) // the rest of one that is too long is passed over
			}
			if err != nil && !errors.Is(err, io.EOF) {
				yield(l, err)
				return
			}
			url, fault := URL(b)
			if l.URL, l.Err = string(url), fault; len(bytes.TrimSuffix(b, []byte{'\n'})) > most {
				l.URL, l.Err = "", fmt.Errorf("the line is longer than %d bytes", most)
			}
			if (l.URL != "" || l.Err != nil) && !yield(l, nil) || err != nil {
				return
			}
		}
	}
}

// errUTF8 is the fault of a line in another encoding, in which other bytes would be asked for.
var errUTF8 = errors.New("the URL is not UTF-8")

// URL returns the URL of a line; none if it is blank or a comment. It is an error if the line is not
// UTF-8.
func URL(line []byte) ([]byte, error) {
	line = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(line), []byte(mark))) // of files put together
	for i, c := range line {
		if c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			line = bytes.TrimSpace(line[:i])
			break
		}
	}
	for _, pair := range []string{`""`, `''`, `<>`} {
		if n := len(line); n >= 2 && line[0] == pair[0] && line[n-1] == pair[1] {
			line = bytes.TrimSpace(line[1 : n-1])
			break
		}
	}
	if !utf8.Valid(line) {
		return nil, errUTF8
	}
	return line, nil
}
