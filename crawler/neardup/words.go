// This file turns text into the words that pages are compared by. What of a page is
// text is decided in content.go.

package neardup

import (
	"unicode"
	"unicode/utf8"
)

// maxWord is how many bytes of a word count: longer ones are no words.
const maxWord = 64

// words calls yield with each word of the text, in lower case, in a buffer of its own. A word is a run of
// letters, marks and digits; in scripts without blanks between words it is one character. Unless
// keepNumbers is set, each run of digits becomes one 0, so that all dates, times and counters are the
// same.
func words(text []byte, keepNumbers bool, yield func([]byte)) {
	var word [maxWord + utf8.UTFMax]byte
	n := 0
	flush := func() {
		if n > 0 {
			yield(word[:n])
			n = 0
		}
	}
	for i := 0; i < len(text); {
		c := rune(text[i])
		size := 1
		switch {
		case c >= 'a' && c <= 'z':
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c >= '0' && c <= '9':
			c = digit(c, word[:n], keepNumbers)
		case c < utf8.RuneSelf:
			flush()
			i++
			continue
		default:
			c, size = utf8.DecodeRune(text[i:])
			switch {
			case unbroken(c):
				flush()
				n = utf8.EncodeRune(word[:], c)
				flush()
				i += size
				continue
			case unicode.IsDigit(c):
				c = digit(c, word[:n], keepNumbers)
			case unicode.IsLetter(c) || unicode.IsMark(c):
				c = unicode.ToLower(c)
			default:
				flush()
				i += size
				continue
			}
		}
		if c != skipped && n < maxWord {
			n += utf8.EncodeRune(word[n:], c)
		}
		i += size
	}
	flush()
}

const skipped = -1

// digit returns what replaces a digit after the word's beginning; skipped if the zero before it
// already stands for it.
func digit(c rune, before []byte, keep bool) rune {
	if keep {
		return c
	}
	if len(before) > 0 && before[len(before)-1] == '0' {
		return skipped
	}
	return '0'
}

// unbroken reports whether a character's script has no spaces between words.
func unbroken(c rune) bool {
	return c >= 0x0E00 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
