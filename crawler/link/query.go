// This file writes the queries of links as browsers do on pages of a legacy
// encoding (URL Standard, "percent-encode after encoding").

package link

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// encodeQuery percent-encodes the query of a link in the page's encoding.
// Characters that the encoding lacks are written as character references, as in
// forms.
func (e textEncoding) encodeQuery(ref string) string {
	if e.Query == nil {
		return ref
	}
	end := len(ref)
	if i := strings.IndexByte(ref, '#'); i >= 0 {
		end = i
	}
	start := strings.IndexByte(ref[:end], '?') + 1
	if start == 0 || isPlain(ref[start:end]) {
		return ref
	}
	q := queryWriter{enc: e}
	q.b.WriteString(ref[:start])
	for _, c := range ref[start:end] {
		q.add(c)
	}
	q.flush()
	q.b.WriteString(ref[end:])
	return q.b.String()
}

// queryWriter writes one query.
type queryWriter struct {
	enc textEncoding
	b   strings.Builder
	run []rune // encoded together, since an encoding may have states
}

func (q *queryWriter) add(c rune) {
	c, ok := q.enc.substitute(c)
	if ok && (c < utf8.RuneSelf || q.encodes(c)) {
		q.run = append(q.run, c)
		return
	}
	q.flush()
	q.b.WriteString("%26%23" + strconv.Itoa(int(c)) + "%3B")
}

// encodes reports whether the encoding has c. For other characters, encoders of
// golang.org/x/net/html write a character reference.
func (q *queryWriter) encodes(c rune) bool {
	q.enc.Query.Reset()
	s, err := q.enc.Query.String(string(c))
	return err == nil && !strings.HasPrefix(s, "&#")
}

func (q *queryWriter) flush() {
	if len(q.run) == 0 {
		return
	}
	q.enc.Query.Reset()
	encoded, err := q.enc.Query.String(string(q.run))
	if err != nil {
		encoded = string(q.run)
	}
	q.run = q.run[:0]
	for i := range len(encoded) {
		if c := encoded[i]; inQuerySet(c) {
			fmt.Fprintf(&q.b, "%%%02X", c)
		} else {
			q.b.WriteByte(c)
		}
	}
}

// inQuerySet reports whether c is in the special-query percent-encode set.
func inQuerySet(c byte) bool {
	return c <= ' ' || c > '~' || c == '"' || c == '#' || c == '<' || c == '>' || c == '\''
}

// substitute returns the character that the Encoding Standard's encoder uses for c where
// golang.org/x/text differs, and whether c can be encoded.
func (e textEncoding) substitute(c rune) (rune, bool) {
	switch e.Name {
	case "iso-2022-jp":
		if c == 0x0e || c == 0x0f || c == 0x1b { // it would change the state
			return utf8.RuneError, false
		}
		if c == '\u2212' {
			return '\uff0d', true
		}
	case "shift_jis", "euc-jp":
		switch c {
		case '\u00a5':
			return '\\', true
		case '\u203e':
			return '~', true
		case '\u2212':
			return '\uff0d', true
		}
	case "gb18030", "gbk":
		return c, c != '\ue5e5'
	}
	return c, true
}

// isPlain reports whether every encoding writes s as it is.
func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf || c == 0x0e || c == 0x0f || c == 0x1b })
}
