package media

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

func TestParse(t *testing.T) {
	for field, want := range map[string]Type{
		"":                           {},
		"text":                       {},
		"text/":                      {},
		"/html":                      {},
		"te xt/html":                 {},
		"text/html charset=utf-8":    {},
		"text/html":                  {"text/html", ""},
		" Text/HTML\t":               {"text/html", ""},
		"text/html;charset=utf-8":    {"text/html", "utf-8"},
		"text/html ; CharSet=UTF-8 ": {"text/html", "UTF-8"},
		"text/html; charset=utf-8; charset=UTF-8":        {"text/html", "utf-8"},
		"text/html; charset=windows-1251; charset=utf-8": {"text/html", "windows-1251"},
		"text/html; charset=windows-1251; foo":           {"text/html", "windows-1251"},
		"text/html; foo; charset=windows-1251":           {"text/html", "windows-1251"},
		"text/html;;; charset=windows-1251":              {"text/html", "windows-1251"},
		"text/html; =x; charset=windows-1251":            {"text/html", "windows-1251"},
		"text/html; charset=; charset=utf-8":             {"text/html", "utf-8"},
		`text/html; charset="windows-1251`:               {"text/html", "windows-1251"},
		`text/html; charset="utf-8"foo; a=b`:             {"text/html", "utf-8"},
		`text/html; charset="u\tf\-8"`:                   {"text/html", "utf-8"},
		`text/html; charset='utf-8'`:                     {"text/html", "'utf-8'"},
		`text/html; a="; charset=x"; charset=utf-8`:      {"text/html", "utf-8"},
		"text/html; charset =utf-8":                      {"text/html", ""},
		`text/html; charset=""; charset=utf-8`:           {"text/html", ""},
		"text/html; charset=utf\v8; charset=utf-8":       {"text/html", "utf-8"},
		"text/html; charset= utf-8":                      {"text/html", " utf-8"}, // labels are trimmed
	} {
		got := Parse(field)
		assert.Equal(t, want, got, field)
		assert.Equal(t, got, Parse(got.String()), field)
	}
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		fields []string
		want   Type
	}{
		{nil, Type{}},
		{[]string{"text/plain", "text/html; charset=utf-8"}, Type{"text/html", "utf-8"}},
		{[]string{"text/html; charset=utf-8", "text/html"}, Type{"text/html", "utf-8"}},
		{[]string{"text/html", "text/html; charset=windows-1251"}, Type{"text/html", "windows-1251"}},
		{[]string{"text/html; charset=utf-8", "text/plain"}, Type{"text/plain", ""}},
		{[]string{"text/html; charset=utf-8", "nonsense"}, Type{"text/html", "utf-8"}},
		{[]string{"text/html; charset=utf-8", "*/*"}, Type{"text/html", "utf-8"}},
		{[]string{"text/plain, text/html; charset=utf-8"}, Type{"text/html", "utf-8"}},
		{[]string{`text/html; a="x, text/plain"; charset=utf-8`}, Type{"text/html", "utf-8"}},
	} {
		assert.Equal(t, c.want, Of(http.Header{"Content-Type": c.fields}), c.fields)
	}
}

func TestSniff(t *testing.T) {
	const root = `<html xmlns="http://www.w3.org/1999/xhtml">`
	utf16, _ := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(root)
	for _, c := range []struct{ field, body, want string }{
		{"", "<!DOCTYPE html>", "text/html"},
		{"", "<center>", "text/html"},
		{"unknown/unknown", "\n<center>", "text/html"},
		{"application/unknown", "<!DOCTYPE html>", "text/html"},
		{"*/*", "<a href=x>", "text/html"},
		{"html", "<a href=x>", "text/html"},
		{"", "1 < 2", "text/plain"},
		{"", "\x89PNG\r\n\x1a\n", "image/png"},
		{"text/plain", "<!DOCTYPE html>", "text/plain"},
		{"application/xml", root, xhtml},
		{"text/xml; charset=utf-8", "\ufeff<?xml version='1.0' encoding='utf-8'?><!-- x --><!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN' 'x'>\n" + root, xhtml},
		{"text/xml", utf16, xhtml},
		{"", "<?xml version='1.0'?>" + root, xhtml},
		{"application/rss+xml", "<rss>" + root, "application/rss+xml"},
		{"application/xml", "<html>", "application/xml"},
		{"application/xml", "<urlset xmlns='http://www.w3.org/1999/xhtml'>", "application/xml"},
		{xhtml, "", xhtml},
	} {
		assert.Equal(t, c.want, Sniff(http.Header{"Content-Type": {c.field}}, []byte(c.body)).Essence, "%+v", c)
	}
}

func TestText(t *testing.T) {
	const word = "\u043c\u0438\u0440"
	cyrillic := func(s string) string {
		out, err := charmap.Windows1251.NewEncoder().String(s + word)
		require.NoError(t, err)
		return out
	}
	script := "<script>" + strings.Repeat("x<meta charset=koi8-r>", 4000) + "</script>"
	html, xml := Type{Essence: "text/html"}, Type{Essence: "application/xml"}
	for _, c := range []struct {
		t          Type
		text, name string
	}{
		{html, cyrillic("<meta charset=windows-1251>"), "windows-1251"},
		{html, cyrillic("<head>" + script + "<meta charset=windows-1251>"), "windows-1251"},
		{html, cyrillic("<title>" + strings.Repeat("t", 2000) + "</title><meta http-equiv=content-type content='text/html; charset=windows-1251'>"), "windows-1251"},
		{html, cyrillic("<?xml version='1.0' encoding='windows-1251'?>"), "windows-1251"},
		{html, cyrillic("<?xml version='1.0' encoding = \"windows-1251\"?>" + strings.Repeat(" ", 2000)), "windows-1251"},
		{Type{Essence: xhtml}, cyrillic("<?xml version='1.0' encoding='windows-1251'?>"), "windows-1251"},
		{xml, cyrillic("<?xml version='1.0' encoding='windows-1251'?>"), "windows-1251"},
		{Type{Essence: "text/css"}, cyrillic(`@charset "windows-1251";`), "windows-1251"},
		{Type{"text/css", "nonsense"}, cyrillic(`@charset "windows-1251";`), "windows-1251"},
		{Type{"text/html", "windows-1251"}, cyrillic("<meta charset=utf-8>"), "windows-1251"},
		{Type{"text/html", "nonsense"}, cyrillic("<meta charset=windows-1251>"), "windows-1251"},
		{Type{"text/html", "windows-1251"}, "\ufeff" + word, "utf-8"},
		{html, "<meta charset=utf-16>" + word, "utf-8"},
		{html, word, "utf-8"},
		{html, strings.Repeat(" ", 2000) + word, "windows-1252"}, // guessed for each character
		{html, "<p>" + strings.Repeat(" ", 2000) + "<meta charset=koi8-r>" + word, "windows-1252"},
		{html, cyrillic("<html><!-- <p> --><head><link rel=x>" + strings.Repeat(" ", 2000) + "<meta charset=windows-1251>"), "windows-1251"},
		{html, cyrillic("<title><p></title>" + strings.Repeat(" ", 2000) + "<meta charset=windows-1251>"), "windows-1251"},
		{html, "</head>" + strings.Repeat(" ", 2000) + "<meta charset=koi8-r>" + word, "windows-1252"},
		{html, "<meta charset=utf-8><?xml version='1.0' encoding='koi8-r'?>" + word, "utf-8"},
		{xml, "<html><meta charset=koi8-r>" + word, "utf-8"},
		{Type{Essence: "text/css"}, word, "utf-8"},
	} {
		r, e, err := Text(iotest.OneByteReader(strings.NewReader(c.text)), c.t)
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		assert.Equal(t, c.name, e.Name, "%.60q", c.text)
		assert.True(t, strings.HasSuffix(string(got), word), "%.60q", c.text)
		assert.Equal(t, c.name == "windows-1251", e.Query != nil)
	}
}

func TestErrorsOfATextAreKept(t *testing.T) {
	broken := errors.New("broken")
	_, _, err := Text(iotest.ErrReader(broken), Type{})
	assert.ErrorIs(t, err, broken)
	long := strings.Repeat("<meta name=x>", 1000)
	r, _, err := Text(io.MultiReader(strings.NewReader(long), iotest.ErrReader(broken)), Type{})
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	assert.ErrorIs(t, err, broken)
	assert.Equal(t, long, string(got))
}

func FuzzSniff(f *testing.F) {
	f.Add("text/html; charset=x", "application/xml", []byte("<?xml version='1.0' encoding='x'?><html>"))
	f.Fuzz(func(t *testing.T, a, b string, body []byte) {
		x := Sniff(http.Header{"Content-Type": {a, b}}, body)
		assert.Equal(t, x, Parse(x.String()))
		r, _, err := Text(strings.NewReader(string(body)), x)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, r)
	})
}
