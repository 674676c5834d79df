package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each difference gets the cause that its page shows, and none if it shows nothing.
func TestCauses(t *testing.T) {
	pages := map[string]string{
		"/": `<a href="/first"><a href="\"><a href="http:/odd"><link rel="canonical" href="/canonical"><img src="/image.png">
			<script>x = "<a href='/script'>"</script><!-- <a href="/comment"> --><iframe src="/frame"/> <a href="/iframe">
			</iframe><a href="/lost"><a href="/found"><a href="/moving">`,
		"/style.css": `body { background: url(/background.png) }`,
		"/nofollow":  `<meta name="robots" content="nofollow"><a href="/forbidden">`,
		"/odd":       `<a href="/behind">`,
		"/plain.txt": `<a href="/text">`,
		"/long":      strings.Repeat("long", maxBody/4+1),
		"/gone":      "", // the crawler hung up although it is short
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		switch {
		case r.URL.Path == "/behind":
			http.Redirect(w, r, "/target", http.StatusMovedPermanently)
		case !ok:
			http.NotFound(w, r)
		default:
			types := map[string]string{"css": "text/css", "txt": "text/plain", "": "text/html"}
			_, ext, _ := strings.Cut(r.URL.Path, ".")
			w.Header().Set("Content-Type", types[ext])
			fmt.Fprint(w, body)
		}
	}))
	defer proxy.Close()
	set := func(from string, paths ...string) answers {
		a := answers{}
		for _, p := range paths {
			r := request{Host: "a.test", Path: p, Status: http.StatusOK, Referer: "http://a.test" + from}
			if p == "/behind" {
				r.Status = http.StatusMovedPermanently
			}
			a[r.url()] = r
		}
		return a
	}
	both := []string{"/", "/first", "/style.css", "/nofollow", "/plain.txt", "/~x"}
	mine := set("/", append(both, "/odd", "/behind", "/target", "/canonical", "/found")...)
	theirs := set("/", append(both, "/%5C", "/script", "/comment", "/iframe", "/image.png", "/lost", "/%7Ex", "/long", "/gone", "/a/b/a/b/a/b")...)
	for from, to := range map[string]string{"/style.css": "/background.png", "/nofollow": "/forbidden", "/iframe": "/deeper", "/plain.txt": "/text"} {
		for u, r := range set(from, to) {
			theirs[u] = r
		}
	}
	x, err := newExplainer(t.Context(), strings.TrimPrefix(proxy.URL, "http://"), mine, set("/", "/long", "/gone"), theirs)
	require.NoError(t, err)
	defer x.fetcher.CloseIdle()
	got := map[string]string{}
	for _, d := range x.differences() {
		x.explain(d)
		kind, _, _ := strings.Cut(d.cause, ":")
		got[d.Path] = kind
	}
	assert.Equal(t, map[string]string{
		"/odd": "spelling", "/behind": "spelling", "/target": "spelling", "/canonical": "canonical", "/found": "",
		"/%5C": "spelling", "/script": "markup", "/comment": "markup", "/iframe": "markup", "/deeper": "markup", "/image.png": "kind", "/lost": "", "/gone": "",
		"/%7Ex": "spelling", "/long": "longer than -max-body", "/a/b/a/b/a/b": "trap guard", "/background.png": "style", "/forbidden": "robots",
		"/text": "content type",
	}, got)
}

func TestOddity(t *testing.T) {
	for raw, want := range map[string]string{
		"page.html": "", "http://a.test/": "", "HTTP:/a": "spelling", `a\b`: "spelling", "a\nb": "spelling", " a ": "", "ä": "encoding",
	} {
		var r reference
		r.Raw = raw
		kind, _, _ := strings.Cut(oddity(r), ":")
		assert.Equal(t, want, kind, "%q", raw)
	}
}

// The output of the crawl and of the garbage collector is parsed, whatever is in between.
func TestWhatIsTold(t *testing.T) {
	m := collected.FindStringSubmatch("gc 14 @1.204s 2%: 0.03+1.2+0.01 ms clock, 0.06+0.1/1.1/0+0.02 ms cpu, 14->15->7 MB, 15 MB goal, 0 MB stacks, 0 MB globals, 2 P")
	require.NotNil(t, m)
	assert.Equal(t, "7", m[1])
	m = progress.FindStringSubmatch(`time=x level=INFO msg=crawling elapsed=15s pages=1929 redirects=0 busy=64 lookup_share=0 waiting=56022 scheduled=0`)
	require.NotNil(t, m)
	assert.Equal(t, []string{"1929", "56022"}, m[1:])
}

// A crowd has one contact in 16 with an address, and two more at the begin.
func TestWhatACrowdLeaves(t *testing.T) {
	assert.InDelta(t, 48.0/54, company{crowd: 300}.due(54), 1e-9, "a minute")
	assert.Greater(t, company{crowd: 300}.due(114), 0.9, "two")
	assert.Greater(t, company{crowd: 300}.due(1e6), 0.937)
	assert.EqualValues(t, 1, company{silent: 100}.due(54))
}
