package jsonl

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Writer appends objects to a slice. Members whose value is zero are left out, unless their method says otherwise.
type Writer []byte

// Open begins an object; Close ends it.
func (w *Writer) Open() { *w = append(*w, '{') }

// Close ends an object.
func (w *Writer) Close() { *w = append(*w, '}') }

// Name begins a member.
func (w *Writer) Name(name string) {
	b := *w
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	*w = append(append(append(b, '"'), name...), '"', ':')
}

// Text writes a string.
func (w *Writer) Text(name, s string) {
	if s != "" {
		w.Word(name, s)
	}
}

// Word writes a string, also if it is empty. U+FFFD stands for what is not UTF-8.
func (w *Writer) Word(name, s string) {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	w.Name(name)
	b, from := append(*w, '"'), 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		if c >= ' ' {
			b = append(b, '\\', c)
		} else {
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	*w = append(append(b, s[from:]...), '"')
}

const hexDigits = "0123456789abcdef"

// Int writes an integer.
func (w *Writer) Int(name string, n int64) {
	if n != 0 {
		w.Number(name, n)
	}
}

// Number writes an integer, also if it is 0.
func (w *Writer) Number(name string, n int64) {
	w.Name(name)
	*w = strconv.AppendInt(*w, n, 10)
}

// Bool writes true.
func (w *Writer) Bool(name string, x bool) {
	if x {
		w.Name(name)
		*w = append(*w, "true"...)
	}
}

// Float writes a number that is finite, also if it is 0, as strconv formats it.
func (w *Writer) Float(name string, x float64, format byte) {
	w.Name(name)
	*w = strconv.AppendFloat(*w, x, format, -1, 64)
}

// Time writes a time in Unix milliseconds, as text if its year has four digits.
func (w *Writer) Time(name string, ms int64) {
	if ms == 0 {
		return
	}
	if t := time.UnixMilli(ms).UTC(); t.Year() >= 0 && t.Year() <= 9999 {
		w.Name(name)
		*w = append(t.AppendFormat(append(*w, '"'), "2006-01-02T15:04:05.000Z"), '"')
		return
	}
	w.Number(name, ms)
}
