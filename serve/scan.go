// This file parses JSON lines of URLs and ends, where encoding/json would take most of the time. It is as
// strict: one value per line, and no unknown member.

package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// scanner parses the JSON in b.
type scanner struct {
	b []byte
	i int
}

var errSyntax = errors.New("malformed JSON")

// space skips blanks and returns the byte after them, or 0 at the end.
func (s *scanner) space() byte {
	for ; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
		default:
			return s.b[s.i]
		}
	}
	return 0
}

// take skips blanks and consumes one byte, which must be c.
func (s *scanner) take(c byte) error {
	if s.space() != c {
		return s.want(strconv.QuoteRune(rune(c)))
	}
	s.i++
	return nil
}

func (s *scanner) want(what string) error {
	if s.i >= len(s.b) {
		return fmt.Errorf("%w: it ends where %s should be", errSyntax, what)
	}
	return fmt.Errorf("%w: %q where %s should be", errSyntax, s.b[s.i:min(len(s.b), s.i+12)], what)
}

// end checks that nothing follows.
func (s *scanner) end() error {
	if s.space(); s.i < len(s.b) {
		return s.want("the end")
	}
	return nil
}

// more moves to the next element of an open object or array. It returns false at the closing byte.
func (s *scanner) more(first bool, end byte) (bool, error) {
	switch c := s.space(); {
	case c == end:
		s.i++
		return false, nil
	case first:
		return true, nil
	case c == ',':
		s.i++
		if s.space() == end {
			return false, s.want("a value")
		}
		return true, nil
	}
	return false, s.want("a comma")
}

// members are the names that an object may have, and those that it has had.
type members struct {
	names []string
	seen  uint32
}

// member reads the name of the next member whose value is not null. It returns false at the end of the
// object. Unknown and repeated names are errors, whatever their value.
func (s *scanner) member(first bool, of *members) (name []byte, ok bool, err error) {
	for ; ; first = false {
		if ok, err = s.more(first, '}'); !ok || err != nil {
			return nil, false, err
		}
		if name, err = s.name(); err != nil {
			return nil, false, err
		}
		switch i := slices.IndexFunc(of.names, func(known string) bool { return known == string(name) }); {
		case i < 0:
			return nil, false, fmt.Errorf("%.40s: %w", name, errMember)
		case of.seen&(1<<i) != 0:
			return nil, false, twice(name)
		default:
			of.seen |= 1 << i
		}
		if !bytes.HasPrefix(s.b[s.i:], []byte("null")) {
			return name, true, nil
		}
		s.i += len("null")
	}
}

// errMember reports an unknown member.
var errMember = errors.New("there is no such member")

func twice(name []byte) error { return fmt.Errorf("%.40s: it is there twice", name) }

// name reads a member's name and moves to its value.
func (s *scanner) name() ([]byte, error) {
	name, err := s.bytes()
	if err == nil {
		err = s.take(':')
	}
	s.space()
	return name, err
}

// bytes reads a string. Without escapes the result is part of b.
func (s *scanner) bytes() ([]byte, error) {
	if s.space() != '"' {
		return nil, s.want("a string")
	}
	from, ascii := s.i+1, true
	for i := from; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			if !ascii && !utf8.Valid(s.b[from:i]) {
				return nil, fmt.Errorf("%w: a string that is not UTF-8", errSyntax)
			}
			return s.b[from:i], nil
		case c == '\\':
			return s.escaped(from)
		case c < ' ':
			return nil, fmt.Errorf("%w: a control character in a string", errSyntax)
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, fmt.Errorf("%w: a string without an end", errSyntax)
}

// escaped reads a string with escapes.
func (s *scanner) escaped(from int) ([]byte, error) {
	for i := from; i < len(s.b); i++ {
		switch s.b[i] {
		case '\\':
			i++
		case '"':
			raw := s.b[from-1 : i+1]
			s.i = i + 1
			var text string
			if !utf8.Valid(raw) {
				return nil, fmt.Errorf("%w: a string that is not UTF-8", errSyntax)
			}
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, fmt.Errorf("%w: %w", errSyntax, err)
			}
			return []byte(text), nil
		}
	}
	return nil, fmt.Errorf("%w: a string without an end", errSyntax)
}

func (s *scanner) text() (string, error) {
	b, err := s.bytes()
	return string(b), err
}

// number reads a number's characters.
func (s *scanner) number() (string, error) {
	c := s.space()
	from := s.i
	if c != '-' && (c < '0' || c > '9') {
		return "", s.want("a number")
	}
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
			s.i++
			continue
		}
		break
	}
	text := s.b[from:s.i]
	if !json.Valid(text) {
		return "", fmt.Errorf("%w: the number %q", errSyntax, text)
	}
	return string(text), nil
}

func (s *scanner) float() (float64, error) {
	text, err := s.number()
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: the number %q", errSyntax, text)
	}
	return x, nil
}

func (s *scanner) int() (int64, error) {
	text, err := s.number()
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no integer", text)
	}
	return x, nil
}

func (s *scanner) bool() (bool, error) {
	s.space()
	for _, x := range []string{"true", "false"} {
		if s.i+len(x) <= len(s.b) && string(s.b[s.i:s.i+len(x)]) == x {
			s.i += len(x)
			return x == "true", nil
		}
	}
	return false, s.want("true or false")
}

// seconds reads a duration in seconds.
func (s *scanner) seconds() (time.Duration, error) {
	x, err := s.float()
	if err != nil {
		return 0, err
	}
	d := x * float64(time.Second)
	if x < 0 || d >= math.MaxInt64 {
		return 0, fmt.Errorf("%v s: want 0 or more, and less than 292 years", x)
	}
	return time.Duration(math.Round(d)), nil
}

func (s *scanner) time() (time.Time, error) {
	text, err := s.text()
	if err != nil || text == "" {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%.40q is no time; want one as 2006-01-02T15:04:05Z", text)
	}
	return t, nil
}

// meta reads an object whose values are lists of strings.
func (s *scanner) meta() (map[string][]string, error) {
	if err := s.take('{'); err != nil {
		return nil, err
	}
	m := map[string][]string{}
	for first := true; ; first = false {
		ok, err := s.more(first, '}')
		if !ok || err != nil {
			return m, err
		}
		name, err := s.name()
		if err != nil {
			return nil, err
		}
		key := string(name)
		if m[key] != nil {
			return nil, twice(name)
		}
		if err := s.take('['); err != nil {
			return nil, err
		}
		values := []string{}
		for first := true; ; first = false {
			if ok, err = s.more(first, ']'); !ok {
				break
			}
			v, err := s.text()
			if err != nil {
				return nil, err
			}
			values = append(values, v)
		}
		if err != nil {
			return nil, err
		}
		m[key] = values
	}
}
