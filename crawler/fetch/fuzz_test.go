// These tests read headers and bodies that make no sense.

package fetch

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func FuzzDecode(f *testing.F) {
	for encoding, body := range map[string][]byte{
		"gzip": gz("hello"), "br": br("hello"), "zstd": zst("hello"), "deflate": zl("hello"), "gzip, br": br(string(gz("hello"))), "": []byte("hello"),
		"zstd ": {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4},
	} {
		f.Add(encoding, body)
	}
	f.Fuzz(func(t *testing.T, encoding string, body []byte) {
		h := http.Header{"Content-Encoding": {encoding}}
		words, _ := codings(h)
		d, err := newDecoder(bytes.NewReader(body), words[:min(len(words), maxCodings)])
		if err != nil {
			return
		}
		defer d.close()
		_, _ = io.CopyN(io.Discard, d, 1<<20)
	})
}

func FuzzSetCookie(f *testing.F) {
	for _, s := range []string{"a=b; Domain=example; Path=/x; Max-Age=5", "a=b; Domain=a.co.uk", "=; ;;", "a=\x01", strings.Repeat("x", 5000) + "=y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		j := NewJar()
		u := &url.URL{Scheme: "http", Host: "www.a.co.uk", Path: "/"}
		j.SetCookies(u, (&http.Response{Header: http.Header{"Set-Cookie": {line, line}}}).Cookies())
		for _, other := range []string{"co.uk", "b.co.uk", "a.co.uk.example"} {
			assert.Empty(t, j.Cookies(&url.URL{Scheme: "http", Host: other, Path: "/"}))
		}
		for _, c := range j.Cookies(u) {
			assert.LessOrEqual(t, len(c.Name)+len(c.Value), maxCookieBytes)
			assert.NotContains(t, c.String(), "\n")
		}
	})
}

func FuzzRedact(f *testing.F) {
	f.Add("http://me:hunter2@a.example/x@y")
	f.Add("//@/@")
	f.Fuzz(func(t *testing.T, s string) {
		r := Redact(s)
		assert.Equal(t, r, Redact(r), "done once it is done")
		assert.LessOrEqual(t, len(r), len(s))
	})
}
