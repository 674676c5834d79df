package filter

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSplit(t *testing.T) {
	for url, want := range map[string]Target{
		"http://A.example:81/b/c?d=e&f#g": {Scheme: "http", Host: "a.example", Port: "81", Path: "/b/c", Query: "d=e&f"},
		"https://a.example":               {Scheme: "https", Host: "a.example", Path: "/"},
		"HTTP://a.example?x":              {Scheme: "http", Host: "a.example", Path: "/", Query: "x"},
		"http://me:pw@[::1]:80/":          {Scheme: "http", Host: "[::1]", Port: "80", Path: "/"},
		"http://[::1]/":                   {Scheme: "http", Host: "[::1]", Path: "/"},
		"http://a.example/@b:c":           {Scheme: "http", Host: "a.example", Path: "/@b:c"},
		"mailto:x":                        {}, "": {},
	} {
		want.URL, want.Depth = url, 3
		assert.Equal(t, want, *Split(url, 3), url)
	}
}

func TestMatches(t *testing.T) {
	for name, c := range map[string]struct {
		m       Match
		yes, no string
	}{
		"scheme":            {Scheme("HTTP:", "ftp"), "http://a/ ftp://a/", "https://a/ x"},
		"host":              {Host("A.example", "::1"), "http://a.example:81/ http://a.example./ http://[::1]/", "http://b.a.example/ http://[::2]/"},
		"host in letters":   {Host("Bücher.example"), "http://xn--bcher-kva.example/", "http://b.example/"},
		"domain in letters": {Domain(".bücher.example"), "http://a.xn--bcher-kva.example/", "http://b.example/"},
		"domain":            {Domain(".a.Example"), "http://a.example/ http://c.b.a.example/ http://a.example./", "http://ba.example/ http://example/"},
		"extension":         {Extension(".JPG", "tar.gz", "png"), "http://a/x.jpg http://a/b/x.y.PNG?z=.html", "http://a/x http://a/jpg http://a.jpg/ http://a/x.gz"},
		"no extension":      {Extension(""), "http://a/x http://a/ http://a/b.c/", "http://a/x.html"},
		"regexp":            {Regexp(regexp.MustCompile(`x=\d+$`), regexp.MustCompile("^ftp")), "http://a/?x=1 ftp://a/", "http://a/?x=1&y"},
	} {
		for u := range strings.FieldsSeq(c.yes) {
			assert.True(t, c.m(Split(u, 0)), "%s: %s", name, u)
			assert.False(t, Allow("r", c.m).Refuse(Split(u, 0)).Refused())
			assert.Equal(t, Reason{"r", "among those denied"}, Deny("r", c.m).Refuse(Split(u, 0)))
		}
		for u := range strings.FieldsSeq(c.no) {
			assert.False(t, c.m(Split(u, 0)), "%s: %s", name, u)
			assert.Equal(t, "r: not among those allowed", Allow("r", c.m).Refuse(Split(u, 0)).String())
		}
	}
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		f       Filter
		yes, no string
	}{
		"query-length":       {MaxQuery(3), "http://a/long/path?abc http://a/", "http://a/?abcd"},
		"params":             {MaxParams(2), "http://a/?a=1&b=2 http://a/?&&a;", "http://a/?a&b&c http://a/?a=1;b=2;c=3"},
		"too-deep":           {MaxSegments(2), "http://a/b/c/ http://a//b//c//", "http://a/b/c/d"},
		"repeating-segments": {MaxRepeats(2), "http://a/b/b/c http://a/1/1/1/1", "http://a/b/c/b/c/d/b/c http://a/b/b/b"},
		"depth":              {MaxDepth(4), "http://a/", ""},
	} {
		for u := range strings.FieldsSeq(c.yes) {
			assert.Zero(t, c.f.Refuse(Split(u, 4)), u)
		}
		for u := range strings.FieldsSeq(c.no) {
			assert.Equal(t, name, c.f.Refuse(Split(u, 4)).Rule, u)
		}
	}
	assert.Equal(t, "depth: 5 links from a seed; at most 4", MaxDepth(4).Refuse(Split("http://a/", 5)).String())
}

// watching counts its calls.
type watching struct{ n *int }

func (watching) Refuse(*Target) Reason { return Reason{} }
func (w watching) Fetched(*Target)     { *w.n++ }

func TestCombinations(t *testing.T) {
	no := func(rule string) Filter { return Func(func(*Target) Reason { return Reason{Rule: rule} }) }
	yes := Func(func(*Target) Reason { return Reason{} })
	u := Split("http://a/", 0)
	assert.Equal(t, "b", All(yes, no("b"), no("c")).Refuse(u).String())
	assert.False(t, All().Refuse(u).Refused())
	n := 0
	All(yes, watching{&n}, All(no("a"), watching{&n})).(Watcher).Fetched(u)
	assert.Equal(t, 2, n)
}

func TestResponses(t *testing.T) {
	types := ContentTypes("text/HTML", "image/*")
	for value, wanted := range map[string]bool{
		"text/html": true, "Text/HTML; charset=x": true, "image/png": true, "": true, ";;": true, "text/html; a=b; a=c": true,
		"text/plain": false, "video/mp4": false, "imagex/png": false,
	} {
		r := types.RefuseResponse(200, http.Header{"Content-Type": {value}})
		assert.Equal(t, wanted, !r.Refused(), value)
		assert.False(t, types.RefuseResponse(404, http.Header{"Content-Type": {value}}).Refused(), "errors are short")
	}
	length := MaxLength(100)
	for value, wanted := range map[string]bool{"100": true, "": true, "many": true, "-5": true, "101": false, "99999999999": false} {
		assert.Equal(t, wanted, !length.RefuseResponse(200, http.Header{"Content-Length": {value}}).Refused(), value)
	}
	assert.False(t, length.RefuseResponse(301, http.Header{"Content-Length": {"101"}}).Refused())
}

func TestNoMedia(t *testing.T) {
	f := NoMedia(100)
	for kind, refused := range map[string]bool{
		"video/mp4": true, "application/x-iso9660-image": true, "application/octet-stream": true, "image/png": true, "application/zip": true, "APPLICATION/PDF; a=b": true,
		"text/html": false, "text/plain": false, "application/xhtml+xml": false, "application/xml": false, "application/x-gzip": false, "application/gzip": false,
		"image/svg+xml": false, "application/json": false, "application/vnd.x+xml": false, "": false,
	} {
		for length, long := range map[string]bool{"101": true, "100": false, "": false, "x": false} {
			h := http.Header{"Content-Type": {kind}, "Content-Length": {length}}
			assert.Equal(t, refused && long, f.RefuseResponse(200, h).Refused(), "%s, %s", kind, length)
			assert.False(t, f.RefuseResponse(404, h).Refused())
		}
	}
}
