// Package media reads what an answer is: its type, by the MIME Sniffing and Fetch Standards, and the
// encoding of its text, by the Encoding, HTML, CSS and XML standards.
package media

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Type is a media type. The zero value is that of an answer without one that can be read.
type Type struct {
	Essence string // such as "text/html", in lower case
	Charset string // as given; empty: none
}

// Parse reads a media type (MIME Sniffing Standard, "parse a MIME type"): what follows a type is read as far as it
// makes sense, and of several values for charset the first counts.
func Parse(field string) Type {
	essence, params, _ := strings.Cut(field, ";")
	top, sub, _ := strings.Cut(strings.Trim(essence, blanks), "/")
	if !httpguts.ValidHeaderFieldName(top) || !httpguts.ValidHeaderFieldName(sub) { // tokens
		return Type{}
	}
	t := Type{Essence: strings.ToLower(top + "/" + sub)}
	found := false
	for params != "" {
		params = strings.TrimLeft(params, blanks)
		i := strings.IndexAny(params, ";=")
		if i < 0 {
			break
		}
		name, value, empty := params[:i], "", false // whether it may be empty
		sep := params[i]
		if params = params[i+1:]; sep == ';' {
			continue
		}
		if strings.HasPrefix(params, `"`) {
			empty = true
			value, params = quoted(params[1:])
			_, params, _ = strings.Cut(params, ";")
		} else {
			value, params, _ = strings.Cut(params, ";")
			value = strings.TrimRight(value, blanks)
		}
		if !found && strings.EqualFold(name, "charset") && (empty || value != "") && !strings.ContainsFunc(value, control) {
			t.Charset, found = value, true
		}
	}
	return t
}

// control reports whether a character makes a value invalid.
func control(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// blanks are HTTP's.
const blanks = " \t\r\n"

// quoted reads a quoted string behind its first mark. Without a second mark it is all of s.
func quoted(s string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

// Of returns the declared type of an answer (Fetch Standard, "extract a MIME type"): the last one of all that are
// declared, with the charset of one before it if that is of the same type.
func Of(h http.Header) Type {
	var last Type
	for _, value := range split(strings.Join(h["Content-Type"], ",")) {
		t := Parse(value)
		if t.Essence == "" || t.Essence == "*/*" {
			continue
		}
		if t.Charset == "" && t.Essence == last.Essence {
			t.Charset = last.Charset
		}
		last = t
	}
	return last
}

// split splits a list at commas that are not quoted.
func split(list string) (values []string) {
	begin, in := 0, false
	for i := 0; i < len(list); i++ {
		switch {
		case list[i] == '\\' && in:
			i++
		case list[i] == '"':
			in = !in
		case list[i] == ',' && !in:
			values = append(values, list[begin:i])
			begin = i + 1
		}
	}
	return append(values, list[begin:])
}

// String returns the type as Parse reads it.
func (t Type) String() string {
	if t.Charset == "" {
		return t.Essence
	}
	return t.Essence + `; charset="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(t.Charset) + `"`
}

// HTML reports whether a document is read as HTML; XHTML is, too.
func (t Type) HTML() bool { return t.Essence == "text/html" || t.Essence == xhtml }

const xhtml = "application/xhtml+xml"

// XML reports whether the type is one of XML.
func (t Type) XML() bool {
	return t.Essence == "text/xml" || t.Essence == "application/xml" || strings.HasSuffix(t.Essence, "+xml")
}

// SniffSize is how much of a body Sniff looks at.
const SniffSize = 4 << 10

// Sniff returns the type of an answer, given the first SniffSize bytes of its body. An unknown type is found by the
// bytes (MIME Sniffing Standard, section 7); beyond the standard, any tag makes it HTML. XML whose root is an html
// element of XHTML is that.
func Sniff(h http.Header, head []byte) Type {
	t := Of(h)
	switch t.Essence {
	case "", "unknown/unknown", "application/unknown":
		t.Essence = Parse(http.DetectContentType(head)).Essence
		if text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n\f"); t.Essence == "text/plain" && len(text) > 1 && text[0] == '<' && letter(text[1]) {
			t.Essence = "text/html"
		}
	}
	if t.XML() && t.Essence != xhtml && isXHTML(head, t) {
		t.Essence = xhtml
	}
	return t
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isXHTML reports whether the root of a document is an html element of XHTML.
func isXHTML(head []byte, t Type) bool {
	text, _, _ := Text(bytes.NewReader(head), t)
	d := xml.NewDecoder(text)
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // decoded already
	for {
		token, err := d.RawToken()
		if err != nil {
			return false
		}
		root, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range root.Attr {
			if a.Name == (xml.Name{Local: "xmlns"}) && root.Name == (xml.Name{Local: "html"}) {
				return a.Value == "http://www.w3.org/1999/xhtml"
			}
		}
		return false
	}
}
