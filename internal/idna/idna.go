// Package idna computes the ASCII form of internationalized host names, as used by net/http to
// contact them.
//
// It implements the profile Lookup of golang.org/x/net/idna, for all names in UTF-8 that Lookup
// accepts: the mapping of UTS 46 (case, width, separators), NFC, and punycode (RFC 3492). It also
// accepts some names that Lookup refuses: with letters in an order that the bidi rule forbids, with
// joiners or marks in unusual places, with underscores. All spellings of a name have the same form;
// a label that is already punycode is only lower-cased. The package has no state.
package idna

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

//go:generate go run ./maketable

// ToASCII returns the ASCII form of a host name.
func ToASCII(name string) (string, error) {
	if !utf8.ValidString(name) {
		return "", errors.New("host is not UTF-8")
	}
	t := load()
	runes := make([]rune, 0, len(name))
	for _, r := range name {
		var err error
		if runes, err = t.appendMapped(runes, r); err != nil {
			return "", err
		}
	}
	runes = t.compose(runes)
	for _, r := range runes { // "<" and a stroke are "\u226e"
		if r >= utf8.RuneSelf && t.refuses(r) {
			return "", fmt.Errorf("character %q in host", r)
		}
	}
	var b strings.Builder
	for {
		n := slices.Index(runes, '.')
		label := runes
		if n >= 0 {
			label = runes[:n]
		}
		if err := writeLabel(&b, label); err != nil {
			return "", err
		}
		if n < 0 {
			return b.String(), nil
		}
		b.WriteByte('.')
		runes = runes[n+1:]
	}
}

// errPunycode rejects labels that begin with xn-- and are not ASCII: UTS 46, section 4, step 4.1.
var errPunycode = errors.New("host with punycode that is not ASCII")

// errLongLabel rejects labels that would take long to encode and cannot be part of a host.
var errLongLabel = errors.New("host with a long label")

// The syllables of Hangul are made of a leading consonant, a vowel and maybe a
// trailing consonant, by arithmetic.
const (
	syllables, leads, vowels, trails  = 0xac00, 0x1100, 0x1161, 0x11a7
	leadCount, vowelCount, trailCount = 19, 21, 28
	syllableCount                     = leadCount * vowelCount * trailCount
)

// appendMapped appends the mapping of a code point, decomposed.
func (t *table) appendMapped(to []rune, r rune) ([]rune, error) {
	switch {
	case r >= 'A' && r <= 'Z':
		return append(to, r|0x20), nil
	case r < utf8.RuneSelf:
		return append(to, r), nil
	case r >= syllables && r < syllables+syllableCount:
		n := r - syllables
		to = append(to, leads+n/(vowelCount*trailCount), vowels+n/trailCount%vowelCount)
		if n %= trailCount; n > 0 {
			to = append(to, trails+n)
		}
		return to, nil
	case t.refuses(r):
		return nil, fmt.Errorf("character %q in host", r)
	}
	if m, ok := t.mapped[r]; ok {
		return append(to, m...), nil
	}
	return append(to, r), nil
}

// compose orders marks and composes, in place.
func (t *table) compose(s []rune) []rune {
	for i := 0; i < len(s); {
		n := i
		for n < len(s) && t.classes[s[n]] != 0 {
			n++
		}
		slices.SortStableFunc(s[i:n], func(a, b rune) int { return int(t.classes[a]) - int(t.classes[b]) })
		i = n + 1
	}
	starter, kept := -1, 0
	last := uint8(0) // class of the last mark kept behind the starter
	for _, r := range s {
		class := t.classes[r]
		if starter >= 0 && (kept == starter+1 || last != 0 && last < class) {
			if c, ok := t.pair(s[starter], r); ok {
				s[starter] = c
				continue
			}
		}
		if class == 0 {
			starter = kept
		}
		last = class
		s[kept] = r
		kept++
	}
	return s[:kept]
}

// pair returns the composition of two code points.
func (t *table) pair(a, b rune) (rune, bool) {
	if l, v := a-leads, b-vowels; l >= 0 && l < leadCount && v >= 0 && v < vowelCount {
		return syllables + (l*vowelCount+v)*trailCount, true
	}
	if n, tr := a-syllables, b-trails; n >= 0 && n < syllableCount && n%trailCount == 0 && tr > 0 && tr < trailCount {
		return a + tr, true
	}
	c, ok := t.pairs[[2]rune{a, b}]
	return c, ok
}

// longestLabel is the maximum length of a label, in characters, before it is encoded: a host has at
// most 253 (RFC 1035), and encoding takes quadratic time.
const longestLabel = 255

// writeLabel writes the ASCII form of a label: RFC 3492, section 6.3.
func writeLabel(b *strings.Builder, label []rune) error {
	var ascii []byte
	for _, r := range label {
		if r < utf8.RuneSelf {
			ascii = append(ascii, byte(r))
		}
	}
	if len(ascii) == len(label) {
		b.Write(ascii)
		return nil
	}
	if strings.HasPrefix(string(label), "xn--") {
		return errPunycode
	}
	if len(label) > longestLabel {
		return fmt.Errorf("%w: %d characters", errLongLabel, len(label))
	}
	b.WriteString("xn--")
	b.Write(ascii)
	if len(ascii) > 0 {
		b.WriteByte('-')
	}
	const tMin, tMax, base = 1, 26, 36
	n, delta, bias := rune(utf8.RuneSelf), 0, 72
	for done := len(ascii); done < len(label); n++ {
		next := rune(utf8.MaxRune)
		for _, r := range label {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range label {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			q := delta
			for k := base; ; k += base {
				threshold := min(max(k-bias, tMin), tMax)
				if q < threshold {
					break
				}
				b.WriteByte(digit(threshold + (q-threshold)%(base-threshold)))
				q = (q - threshold) / (base - threshold)
			}
			b.WriteByte(digit(q))
			bias = adapt(delta, done+1, done == len(ascii))
			delta = 0
			done++
		}
		delta++
	}
	return nil
}

func digit(n int) byte { return "abcdefghijklmnopqrstuvwxyz0123456789"[n] }

func adapt(delta, count int, first bool) int {
	if first {
		delta /= 700
	} else {
		delta /= 2
	}
	delta += delta / count
	k := 0
	for ; delta > 455; k += 36 {
		delta /= 35
	}
	return k + 36*delta/(delta+38)
}
