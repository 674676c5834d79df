// Package pctenc normalizes percent-encoding (RFC 3986, section 2.1), so that equivalent texts
// become equal. It has no state.
package pctenc

import "strings"

// How a byte appears in the normal form.
const (
	encoded  = iota // as %XX
	plain           // as it is, whether it was encoded or not: RFC 3986 unreserved
	reserved        // as it came: %2F and / differ
)

// Form defines how each byte is written.
type Form [256]uint8

// NewForm returns the form in which the given ASCII characters are reserved: they stay unchanged.
// Unreserved characters (RFC 3986, section 2.3) are never encoded; all others are, including a
// percent sign that begins no escape.
func NewForm(own string) *Form {
	f := new(Form)
	for c := range 0x80 {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", byte(c)) >= 0:
			f[c] = plain
		case strings.IndexByte(own, byte(c)) >= 0:
			f[c] = reserved
		}
	}
	return f
}

// Encodes reports whether a byte is always encoded.
func (f *Form) Encodes(c byte) bool { return f[c] == encoded }

// Normalize returns s with every byte in its form; s itself if nothing changes. A lone percent sign
// becomes %25, so no decoded byte after it can complete an escape: the function is idempotent.
func (f *Form) Normalize(s string) string {
	const hex = "0123456789ABCDEF"
	i := 0
	for i < len(s) && f[s[i]] != encoded {
		i++
	}
	if i == len(s) {
		return s
	}
	b := make([]byte, i, len(s)+16)
	copy(b, s)
	for ; i < len(s); i++ {
		c, form := s[i], f[s[i]]
		if c == '%' && i+2 < len(s) {
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi >= 0 && lo >= 0 {
				c = byte(hi<<4 | lo)
				i += 2
				if form = f[c]; form == reserved {
					form = encoded // as it came
				}
			}
		}
		if form == encoded {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
