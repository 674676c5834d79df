package fetch

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCookies(t *testing.T) {
	addr := web(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/set" {
			for _, c := range []string{"own=1", "wide=1; Domain=a.co.uk", "suffix=1; Domain=co.uk", "other=1; Domain=b.co.uk", "deep=1; Path=/deep"} {
				w.Header().Add("Set-Cookie", c)
			}
		}
		fmt.Fprint(w, r.Header.Get("Cookie"))
	})
	f := newFetcher(t, Options{Jar: NewJar(), Resolve: map[string]string{"*": addr}})
	for _, c := range []struct{ url, want string }{
		{"http://www.a.co.uk/set", ""},
		{"http://www.a.co.uk/", "own=1; wide=1"},
		{"http://www.a.co.uk/deep/x?y", "deep=1; own=1; wide=1"},
		{"http://me.a.co.uk/", "wide=1"},
		{"http://b.co.uk/", ""},
	} {
		res, err := get(t, f, c.url)
		require.NoError(t, err)
		assert.Equal(t, c.want, body(t, res), c.url)
	}
	res, err := get(t, newFetcher(t, Options{Resolve: map[string]string{"*": addr}}), "http://www.a.co.uk/set")
	require.NoError(t, err)
	assert.Empty(t, body(t, res), "without a jar")
}

func TestJarIsBounded(t *testing.T) {
	j := NewJar()
	set := func(host string, n int, value string) *url.URL {
		u := &url.URL{Scheme: "http", Host: host, Path: "/"}
		for i := range n {
			j.SetCookies(u, []*http.Cookie{{Name: fmt.Sprint("c", i), Value: value}})
		}
		return u
	}
	assert.LessOrEqual(t, len(j.Cookies(set("many.example", 1000, "x"))), maxDomainCookies)
	assert.Empty(t, j.Cookies(set("long.example", 3, strings.Repeat("x", maxCookieBytes))))
	first := set("first.example", 1, "x")
	assert.Len(t, j.Cookies(first), 1)
	for i := range maxJarDomains {
		set(fmt.Sprintf("h%d.example", i), 1, "x")
	}
	assert.Empty(t, j.Cookies(first), "forgotten")
	assert.Len(t, j.domains, maxJarDomains)
	assert.Equal(t, maxJarDomains, j.order.Len())
}
