// This file brings percent-encoding to one form.

package urlnorm

import "strings"

// How a byte appears in the normal form.
const (
	encodeByte = iota // as %XX
	keepByte          // as it is, whether encoded or not: RFC 3986 unreserved
	ownByte           // as it came: RFC 3986 reserved, where %2F and / differ
)

var (
	pathByte  = byteClasses("!$&'()*+,;=:@/")
	queryByte = byteClasses("!$&'()*+,;=:@/?")
)

func byteClasses(own string) (t [256]uint8) {
	for c := range 0x80 {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", byte(c)) >= 0:
			t[c] = keepByte
		case strings.IndexByte(own, byte(c)) >= 0:
			t[c] = ownByte
		}
	}
	return t
}

// encode returns s with every byte in its class's form; s itself if it is so
// already. The percent sign belongs to encodeByte, so a lone one becomes %25 and
// nothing decoded after it can complete an escape: encoding twice changes nothing.
func encode(s string, class *[256]uint8) string {
	const hex = "0123456789ABCDEF"
	i := 0
	for i < len(s) && class[s[i]] != encodeByte {
		i++
	}
	if i == len(s) {
		return s
	}
	b := make([]byte, i, len(s)+16)
	copy(b, s)
	for ; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi >= 0 && lo >= 0 {
				c = byte(hi<<4 | lo)
				i += 2
				if class[c] == keepByte {
					b = append(b, c)
				} else {
					b = append(b, '%', hex[c>>4], hex[c&15])
				}
				continue
			}
		}
		if class[c] == encodeByte {
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
