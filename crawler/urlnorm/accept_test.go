// These tests spell URLs of further schemes.

package urlnorm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAccept(t *testing.T) {
	n := New().Accept("gopher", "70").Accept("gemini", "1965").Accept("http", "8080")
	for raw, want := range map[string]string{
		"GOPHER://A.Example:70/1/x y":        "gopher://a.example/1/x%20y",
		"gopher://a.example":                 "gopher://a.example/",
		"gopher://a.example/1":               "gopher://a.example/",
		"gopher://a.example/1/":              "gopher://a.example/1/",
		"gopher://a.example:80/0":            "gopher://a.example:80/0",
		"gopher://a.example:7070/0a%7Eb#top": "gopher://a.example:7070/0a~b",
		"gopher://me:pw@Bücher.example./0":   "gopher://xn--bcher-kva.example/0",
		"gopher://xn--bcher-kva.example/0":   "gopher://xn--bcher-kva.example/0",
		"gopher://0x7f.1/0":                  "gopher://127.0.0.1/0",
		"gopher://[::0:1]:70/9":              "gopher://[::1]/9",
		`gopher://a.example/0\x`:             "gopher://a.example/0%5Cx",
		"gopher://a.example/7/find%09words":  "gopher://a.example/7/find%09words",
		" gemini://a.example:1965/1":         "gemini://a.example/1",
		"http://a.example:80/1":              "http://a.example/1",
	} {
		got, err := n.Normalize(raw)
		require.NoError(t, err, raw)
		assert.Equal(t, want, got)
		again, err := n.Normalize(got)
		require.NoError(t, err, got)
		assert.Equal(t, got, again)
	}
	for raw, want := range map[string]error{
		"gopher:x": ErrSyntax, "gopher:///x": ErrSyntax, "gopher://a.example:99999/": ErrSyntax, "mailto:x@a.example": ErrScheme,
		"gophers://a.example/": ErrScheme, "gopher://a.example/" + strings.Repeat("x", MaxLength): ErrTooLong, "gopher://" + strings.Repeat("@", 100): ErrSyntax,
	} {
		_, err := n.Normalize(raw)
		assert.ErrorIs(t, err, want, raw)
	}
	_, err := New().Normalize("gopher://a.example/")
	assert.ErrorIs(t, err, ErrScheme, "who accepts makes another Normalizer")
}

func TestAcceptedResolve(t *testing.T) {
	n := New().Accept("gopher", "70")
	for _, tt := range []struct{ base, ref, want string }{
		{"gopher://a.example/h/dir/page", "other", "gopher://a.example/h/dir/other"},
		{"gopher://a.example/h/dir/page", "/0/x", "gopher://a.example/0/x"},
		{"gopher://a.example/h/dir/page", "//B.example", "gopher://b.example/"},
		{"gopher://a.example/h/dir/page", "http://B.example", "http://b.example/"},
		{"gopher://a.example/h/dir/page", "ftp://b.example:21/x", "ftp://b.example/x"},
		{"http://a.example/x/", "gopher://b.example:70/", "gopher://b.example/"},
		{"http://a.example/x/", "y?z", "http://a.example/x/y?z"},
		{"http://a.example/x/", `\y`, "http://a.example/y"},
	} {
		got, err := n.Resolve(tt.base, tt.ref)
		require.NoError(t, err, "%+v", tt)
		assert.Equal(t, tt.want, got, "%+v", tt)
	}
	for _, ref := range []string{"mailto:x", "javascript:x", "gopher:x"} {
		_, err := n.Resolve("gopher://a.example/", ref)
		assert.Error(t, err, ref)
	}
}
