// This file reads the attributes with a syntax beyond a plain URL: srcset and the content of meta
// refresh.

package link

import (
	"bytes"
	"iter"
	"strconv"
)

// srcset yields the URLs of a srcset attribute (HTML Standard, "Parsing a srcset attribute").
// Candidates with contradicting descriptors are skipped, as the standard requires; unknown
// descriptors are ignored.
func srcset(s []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			if s = bytes.TrimLeft(s, spaces+","); len(s) == 0 {
				return
			}
			i := 0
			for i < len(s) && !isSpace(s[i]) {
				i++
			}
			url := s[:i]
			s = s[i:]
			ok := true
			if t := bytes.TrimRight(url, ","); len(t) < len(url) {
				url = t
			} else {
				var d descriptors
				s = d.read(s)
				ok = !d.conflict && (!d.h || d.w)
			}
			if ok && !yield(url) {
				return
			}
		}
	}
}

// descriptors follow a candidate's URL: 2x, 100w, 50h.
type descriptors struct {
	w, x, h  bool
	conflict bool
}

// read reads descriptors up to the comma that ends the candidate and returns the rest. Commas in
// parentheses are part of a descriptor.
func (d *descriptors) read(s []byte) []byte {
	start, parens := 0, false
	for i, c := range s {
		switch {
		case parens:
			parens = c != ')'
		case c == '(':
			parens = true
		case isSpace(c):
			d.add(s[start:i])
			start = i + 1
		case c == ',':
			d.add(s[start:i])
			return s[i+1:]
		}
	}
	d.add(s[start:])
	return nil
}

func (d *descriptors) add(s []byte) {
	if len(s) < 2 || len(s) > 32 {
		return
	}
	num, unit := string(s[:len(s)-1]), s[len(s)-1]
	switch unit {
	case 'w', 'h':
		n, err := strconv.ParseUint(num, 10, 64)
		if err != nil {
			return
		}
		if unit == 'w' {
			d.conflict = d.conflict || n == 0 || d.w || d.x
			d.w = true
		} else {
			d.conflict = d.conflict || n == 0 || d.h || d.x
			d.h = true
		}
	case 'x':
		if f, err := strconv.ParseFloat(num, 64); err != nil || f < 0 {
			return
		}
		d.conflict = d.conflict || d.w || d.x || d.h
		d.x = true
	}
}

// refreshTarget returns the URL in the content of a meta refresh (HTML Standard, "shared
// declarative refresh steps"). There is none if the page only asks to be reloaded.
func refreshTarget(s []byte) ([]byte, bool) {
	s = trimSpace(s)
	rest := bytes.TrimLeft(s, "0123456789.")
	if len(rest) == 0 || len(rest) == len(s) {
		return nil, false
	}
	s = rest
	if !isSpace(s[0]) && s[0] != ';' && s[0] != ',' {
		return nil, false
	}
	s = trimSpace(s)
	if len(s) > 0 && (s[0] == ';' || s[0] == ',') {
		s = trimSpace(s[1:])
	}
	if len(s) >= 3 && bytes.EqualFold(s[:3], []byte("url")) {
		if t := trimSpace(s[3:]); len(t) > 0 && t[0] == '=' {
			s = trimSpace(t[1:])
		}
	}
	if len(s) > 0 && (s[0] == '"' || s[0] == '\'') {
		s, _, _ = bytes.Cut(s[1:], s[:1])
	}
	return s, len(s) > 0
}

// spaces are those of HTML and CSS: see isSpace.
const spaces = " \t\n\r\f"

func trimSpace(s []byte) []byte { return bytes.TrimLeft(s, spaces) }
