// Package jsonl reads and writes objects of JSON, one per line, where encoding/json would take most of the
// time. It has no state but that of its callers, and no lock.
//
// It reads as strictly as it can: one value per line, strings of UTF-8, and no member that is unknown or there twice.
package jsonl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Scanner parses a line. It may be used again.
type Scanner struct {
	b []byte
	i int

	of      reflect.Type // of what the last line was read into
	members members
}

// Value is a value with a form of its own.
type Value interface{ Scan(*Scanner) error }

// ErrSyntax reports what is not JSON, or not the type of JSON that is wanted; ErrMember an unknown member.
var (
	ErrSyntax = errors.New("malformed JSON")
	ErrMember = errors.New("there is no such member")
)

// Line reads the object that b consists of; see Object. b must not change until then.
func (s *Scanner) Line(b []byte, x any) error {
	s.b, s.i = b, 0
	v := reflect.ValueOf(x).Elem()
	if t := v.Type(); s.of != t {
		s.of, s.members = t, membersOf(t)
	}
	if err := s.object(v); err != nil {
		return err
	}
	if s.Peek(); s.i < len(s.b) {
		return s.want("the end")
	}
	return nil
}

// Decode reads the value that r consists of, as Line does. With nothing or null x stays as it is.
func Decode(r io.Reader, x any) error {
	b, err := io.ReadAll(r)
	s := Scanner{b: b}
	if err != nil || s.Peek() == 0 && s.i == len(b) {
		return err
	}
	if !s.literal("null") {
		err = s.value(reflect.ValueOf(x).Elem(), false)
	}
	if s.Peek(); err == nil && s.i < len(b) {
		err = s.want("the end")
	}
	return err
}

// Peek skips blanks and returns the byte after them, or 0 at the end.
func (s *Scanner) Peek() byte {
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
func (s *Scanner) take(c byte) error {
	if s.Peek() != c {
		return s.want(strconv.QuoteRune(rune(c)))
	}
	s.i++
	return nil
}

func (s *Scanner) want(what string) error {
	if s.i >= len(s.b) {
		return fmt.Errorf("%w: it ends where %s should be", ErrSyntax, what)
	}
	return fmt.Errorf("%w: %q where %s should be", ErrSyntax, s.b[s.i:min(len(s.b), s.i+12)], what)
}

// more moves to the next element of an open object or array. It returns false at the closing byte.
func (s *Scanner) more(first bool, end byte) (bool, error) {
	c := s.Peek()
	if c == end {
		s.i++
		return false, nil
	}
	if !first {
		if c != ',' {
			return false, s.want("a comma")
		}
		if s.i++; s.Peek() == end {
			return false, s.want("a value")
		}
	}
	return true, nil
}

// Elements reads an array; each reads an element.
func (s *Scanner) Elements(each func() error) error {
	ok, err := true, s.take('[')
	for first := true; err == nil; first = false {
		if ok, err = s.more(first, ']'); ok {
			err = each()
		} else {
			break
		}
	}
	return err
}

// name reads the name of the next member of an open object; nil at its end.
func (s *Scanner) name(first bool) ([]byte, error) {
	if ok, err := s.more(first, '}'); !ok {
		return nil, err
	}
	name, err := s.Bytes()
	if err == nil {
		err = s.take(':')
	}
	return name, err
}

// Members reads an object; each reads the value of a member.
func (s *Scanner) Members(each func(name []byte) error) error {
	err := s.take('{')
	for first := true; err == nil; first = false {
		var name []byte
		if name, err = s.name(first); name == nil || err != nil {
			break
		}
		err = each(name)
	}
	return err
}

// Twice is the error of a member that an object has twice.
func Twice(name []byte) error { return fmt.Errorf("%.40s: it is there twice", name) }

// members are the members of the objects of a type, in the order in which they are written.
type members []member

type member struct {
	name  string
	index []int // of the field
	own   bool  // it has a form of its own
}

// hasForm says whether values of a type have a form of their own: text for times and durations, or as they say.
func hasForm(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t == reflect.TypeFor[time.Duration]() || p.Implements(reflect.TypeFor[Value]()) || p.Implements(reflect.TypeFor[json.Unmarshaler]())
}

var known sync.Map // reflect.Type -> members

func membersOf(t reflect.Type) (all members) {
	if m, ok := known.Load(t); ok {
		return m.(members)
	}
	for _, f := range reflect.VisibleFields(t) {
		m := member{index: f.Index, own: hasForm(f.Type)}
		m.name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			continue
		case m.name == "" && f.Name == strings.ToUpper(f.Name):
			m.name = strings.ToLower(f.Name)
		case m.name == "":
			m.name = strings.ToLower(f.Name[:1]) + f.Name[1:]
		}
		all = append(all, m)
	}
	if len(all) > 64 {
		panic("jsonl: more than 64 members")
	}
	known.Store(t, all)
	return all
}

// Object reads an object into the struct that x points to. A member has the name of the tag json of its field,
// or that of the field with a small letter. A member that is missing or null leaves its field as it is.
func (s *Scanner) Object(x any) error { return s.object(reflect.ValueOf(x).Elem()) }

func (s *Scanner) object(v reflect.Value) error {
	all := s.members
	if s.of != v.Type() {
		all = membersOf(v.Type())
	}
	if err := s.take('{'); err != nil {
		return err
	}
	var seen uint64
	at := -1 // the last member: mostly they come in order
	for first := true; ; first = false {
		name, err := s.name(first)
		if name == nil || err != nil {
			return err
		}
		for tried := 0; ; tried++ {
			if tried == len(all) {
				return fmt.Errorf("%.40s: %w", name, ErrMember)
			}
			if at++; at == len(all) {
				at = 0
			}
			if all[at].name == string(name) {
				break
			}
		}
		if seen&(1<<at) != 0 {
			return Twice(name)
		}
		seen |= 1 << at
		if s.literal("null") {
			continue
		}
		if err := s.value(v.FieldByIndex(all[at].index), all[at].own); err != nil {
			return fmt.Errorf("%.40s: %w", name, err)
		}
	}
}

// value reads a value of any type that lines have; own says that it has a form of its own.
func (s *Scanner) value(v reflect.Value, own bool) error {
	if own {
		switch x := v.Addr().Interface().(type) {
		case Value:
			return x.Scan(s)
		case *time.Time:
			text, err := s.Bytes()
			if err != nil || len(text) == 0 {
				return err
			}
			if *x, err = time.Parse(time.RFC3339Nano, string(text)); err != nil {
				err = fmt.Errorf("%.40q is no time; want one as 2006-01-02T15:04:05Z", text)
			}
			return err
		case *time.Duration:
			text, err := s.Text()
			if err == nil {
				*x, err = time.ParseDuration(text)
			}
			return err
		case json.Unmarshaler:
			d := json.NewDecoder(bytes.NewReader(s.b[s.i:]))
			err := d.Decode(x)
			s.i += int(d.InputOffset())
			return err
		}
	}
	switch v.Kind() {
	case reflect.String:
		text, err := s.Bytes()
		v.SetString(string(text))
		return err
	case reflect.Bool:
		x, err := s.Bool()
		v.SetBool(x)
		return err
	case reflect.Float64:
		x, err := s.Float()
		v.SetFloat(x)
		return err
	case reflect.Struct:
		return s.object(v)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		return s.Members(func(name []byte) error {
			k, x := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			err := errors.Join((&Scanner{b: name}).value(k, false), s.value(x, false))
			if err != nil {
				return fmt.Errorf("%.40s: %w", name, err)
			}
			v.SetMapIndex(k, x)
			return nil
		})
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return s.value(v.Elem(), hasForm(v.Type().Elem()))
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			text, err := s.Bytes()
			if err == nil {
				text, err = base64.StdEncoding.AppendDecode([]byte{}, text)
			}
			v.SetBytes(text)
			return err
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return s.Elements(func() error {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			return s.value(v.Index(v.Len()-1), false)
		})
	}
	n, err := s.Int()
	switch {
	case err != nil:
		return err
	case v.CanInt() && !v.OverflowInt(n):
		v.SetInt(n)
	case v.CanUint() && n >= 0 && !v.OverflowUint(uint64(n)):
		v.SetUint(uint64(n))
	default:
		return fmt.Errorf("%d is out of range", n)
	}
	return nil
}

// Bytes reads a string. Without escapes the result is part of the line.
func (s *Scanner) Bytes() ([]byte, error) {
	if s.Peek() != '"' {
		return nil, s.want("a string")
	}
	from, plain, ascii := s.i+1, true, true
	for i := from; i < len(s.b); i++ {
		c := s.b[i]
		if c > '\\' && c < utf8.RuneSelf || c > '"' && c < '\\' {
			continue // most do nothing
		}
		switch {
		case c == '"':
			raw := s.b[s.i : i+1]
			s.i = i + 1
			if !ascii && !utf8.Valid(raw) {
				return nil, fmt.Errorf("%w: a string that is not UTF-8", ErrSyntax)
			}
			if plain {
				return raw[1 : len(raw)-1], nil
			}
			var text string
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
			}
			return []byte(text), nil
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			plain = false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, fmt.Errorf("%w: a string without an end", ErrSyntax)
}

// Text reads a string.
func (s *Scanner) Text() (string, error) {
	b, err := s.Bytes()
	return string(b), err
}

// number reads a number's characters.
func (s *Scanner) number() ([]byte, error) {
	if c := s.Peek(); c != '-' && (c < '0' || c > '9') {
		return nil, s.want("a number")
	}
	rest := s.b[s.i:]
	n := len(rest) - len(bytes.TrimLeft(rest, "0123456789+-.eE"))
	if s.i += n; !json.Valid(rest[:n]) {
		return nil, fmt.Errorf("%w: the number %q", ErrSyntax, rest[:n])
	}
	return rest[:n], nil
}

// Float reads a number.
func (s *Scanner) Float() (float64, error) {
	text, err := s.number()
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		err = fmt.Errorf("%w: the number %q", ErrSyntax, text)
	}
	return x, err
}

// Int reads an integer.
func (s *Scanner) Int() (int64, error) {
	if n := int64(s.Peek()) - '0'; n > 0 && n <= 9 { // mostly it has digits only
		i := s.i + 1
		for ; i < min(len(s.b), s.i+18) && s.b[i] >= '0' && s.b[i] <= '9'; i++ {
			n = 10*n + int64(s.b[i]-'0')
		}
		if i < len(s.b) && (s.b[i] == ',' || s.b[i] == '}') {
			s.i = i
			return n, nil
		}
	}
	text, err := s.number()
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		err = fmt.Errorf("%q is no integer", text)
	}
	return x, err
}

// Bool reads true or false.
func (s *Scanner) Bool() (bool, error) {
	is := s.literal("true")
	if !is && !s.literal("false") {
		return false, s.want("true or false")
	}
	return is, nil
}

// literal consumes x, if that comes next.
func (s *Scanner) literal(x string) bool {
	if s.Peek() != x[0] || !bytes.HasPrefix(s.b[s.i:], []byte(x)) {
		return false
	}
	s.i += len(x)
	return true
}
