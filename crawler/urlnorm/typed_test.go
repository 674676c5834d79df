package urlnorm

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTyped(t *testing.T) {
	n := New().Accept("gopher", "70")
	for in, want := range map[string]string{
		"example.org":            "http://example.org/",
		" Example.org:80/a/../b": "http://example.org/b",
		"localhost:8080":         "http://localhost:8080/",
		"localhost:8080?q":       "http://localhost:8080/?q",
		"192.0.2.1":              "http://192.0.2.1/",
		"[2001:db8::1]:81/x":     "http://[2001:db8::1]:81/x",
		"bücher.example":         "http://xn--bcher-kva.example/",
		"HTTPS://a.example":      "https://a.example/",
		"gopher://a.example":     "gopher://a.example/",
		"localhost/foo":          "http://localhost/foo",
	} {
		got, err := n.Typed(in)
		assert.NoError(t, err, in)
		assert.Equal(t, want, got)
	}
	for _, in := range []string{"", "foo", "garbage/x.html", "foo:80", "/etc/passwd", "./x", "-x", "?q", "ht!tp://x", "ht!tp:/x", "://x"} {
		_, err := n.Typed(in)
		assert.ErrorIs(t, err, ErrTyped, in)
	}
	for _, in := range []string{"http://me:secret@a.example/", "HTTPS://me@a.example", "ftp://me@a.example", "me@a.example/x"} {
		_, err := n.Typed(in)
		assert.ErrorIs(t, err, ErrLogin, in)
	}
	for _, in := range []string{"http://a.example/@me", "a.example?to=me@b.example", "a.example#@"} {
		_, err := n.Typed(in)
		assert.NoError(t, err, in)
	}
	for _, in := range []string{"mailto:a@b.example", "example.org:port/"} {
		_, err := n.Typed(in)
		assert.ErrorIs(t, err, ErrScheme, in)
	}
}
