package fetch

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
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

// What a host sets comes back byte for byte: RFC 6265 sections 5.2 and 5.4. Attributes are read leniently.
func TestCookiesComeBackAsTheyCame(t *testing.T) {
	set := ""
	addr := web(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a/set" {
			w.Header()["Set-Cookie"] = []string{set}
		}
		fmt.Fprint(w, r.Header.Get("Cookie"))
	})
	for in, want := range map[string]string{
		"a=1": "a=1", "a=1,2": "a=1,2", "a=b c": "a=b c", `a=b\c`: `a=b\c`, "a=caf\u00e9": "a=caf\u00e9", "a=caf\xe9": "a=caf\xe9", `a="x y"`: `a="x y"`, `a="x`: `a="x`,
		"my name=1": "my name=1", "a[b]=1": "a[b]=1", "a/b@c=1": "a/b@c=1", "\u00fc=1": "\u00fc=1", "a==1=": "a==1=", " a \t= b\t ; Path=/": "a=b", "a=": "a=", "a=1,b=2": "a=1,b=2",
		"bare": "bare", "=bare": "bare", "": "", "=": "", ";Path=/": "", "a={\"b\":[1,2]}": "a={\"b\":[1,2]}", "a\tb=c\td": "a\tb=c\td",
		"a=1; Path=": "a=1", "a=1; Path=a": "a=1", "a=1; path=/A": "", "a=1; PATH=/b; Path=/a": "a=1", "a=1; Domain=": "a=1", "a=1; Domain=.A.TEST": "a=1",
		"a=1; Domain=b.test": "", "a=1; Domain=b.test; Domain=a.test": "a=1", "a=1; Domain=test": "", "a=1; Secure": "", "a=1; HttpOnly; SameSite=Strict; Priority=High; Foo": "a=1",
		"a=1; Max-Age=0": "", "a=1; Max-Age=-5": "", "a=1; Max-Age=soon": "a=1", "a=1; Max-Age=1.5": "a=1", "a=1; Max-Age=99999999999999999999": "a=1", "a=1; Max-Age=+5": "a=1",
		"a=1; Expires=Thu, 01-Jan-1970 00:00:00 GMT": "", "a=1; expires=Thu, 01 Jan 70 0:0:1": "", "a=1; Expires=Fri, 02 Jan 2099 03:04:05 +0000": "a=1",
		"a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60": "a=1", "a=1; Expires=0": "a=1", "a=1; Expires=Session": "a=1",
		"a=1; Path=/" + strings.Repeat("x", 2000): "a=1", "a=1;;; ;": "a=1",
	} {
		set = in
		f := newFetcher(t, Options{Jar: NewJar(), Resolve: map[string]string{"*": addr}})
		_, err := get(t, f, "http://a.test/a/set")
		require.NoError(t, err, in)
		res, err := get(t, f, "http://a.test/a/b")
		require.NoError(t, err, in)
		assert.Equal(t, want, body(t, res), in)
	}
	assert.Nil(t, readCookie("a=b\x01"))
	assert.Equal(t, "xn--bcher-kva.test", readCookie("a=b; Domain=b\u00fccher.test").Domain)
}

// A host that renews its cookies keeps them, and one that sets too many keeps the last.
// TestCookiesOfWebPlatformTests takes what a host sets, and compares what is sent to it.
func TestCookiesOfWebPlatformTests(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "cookies_wpt.json"))
	require.NoError(t, err)
	var cases []struct {
		Set  []string
		Sent string
	}
	require.NoError(t, json.Unmarshal(raw, &cases))
	require.Len(t, cases, 34)
	u := &url.URL{Scheme: "http", Host: "a.test", Path: "/"}
	for _, c := range cases {
		jar := NewJar()
		jar.SetCookies(u, cookiesOf(http.Header{"Set-Cookie": c.Set}))
		assert.Equal(t, c.Sent, cookieField(jar.Cookies(u)), "%q", c.Set)
	}
}

func TestCookiesAreReplaced(t *testing.T) {
	j := NewJar()
	u := &url.URL{Scheme: "http", Host: "[::1]:8080", Path: "/a/b"}
	j.SetCookies(u, []*http.Cookie{{Name: "gate", Value: "1"}})
	for i := range 3 * maxDomainCookies {
		j.SetCookies(u, []*http.Cookie{{Name: "session", Value: fmt.Sprint(i)}})
	}
	assert.Equal(t, "gate=1; session=149", cookieField(j.Cookies(u)))
	for i := range maxDomainCookies - 1 {
		j.SetCookies(u, []*http.Cookie{{Name: fmt.Sprint("c", i), Value: "x", Path: "/"}})
	}
	assert.NotContains(t, cookieField(j.Cookies(u)), "gate", "the oldest goes")
	assert.Contains(t, cookieField(j.Cookies(u)), "session=149; c0=x; c1=x")
	assert.Len(t, j.Cookies(u), maxDomainCookies)
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
