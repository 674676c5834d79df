package link

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStyleSheets(t *testing.T) {
	for sheet, want := range map[string][]string{
		`@import "a.css"; @import 'b.css' screen; @import url(c.css); @import url( "d.css" ) layer(x);`: {
			"stylesheet /dir/a.css", "stylesheet /dir/b.css", "stylesheet /dir/c.css", "stylesheet /dir/d.css"},
		`b { background: URL( i.png ) no-repeat, url('j.png') }`:       {"style /dir/i.png", "style /dir/j.png"},
		`@font-face { src: url(f.woff2) format("woff2"), local("x") }`: {"style /dir/f.woff2"},
		`b { background: image-set("a.png" 1x, url(b.png) 2x type("image/png")) ; content: "no.png" }`: {
			"style /dir/a.png", "style /dir/b.png"},
		`@namespace url(http://no.example/); @namespace s "no"; i{}`:         nil,
		`/* url(no) */ b { x: url(yes) } /* @import "no"`:                    {"style /dir/yes"},
		`b { content: "url(no) /* \" "; x: url(yes) }`:                       {"style /dir/yes"},
		`b { x: url(a\)b) ; y: url("a\22 b") ; z: url(\66 oo) }`:             {"style /dir/a)b", "style /dir/a%22b", "style /dir/foo"},
		`b { x: url(#local); y: url(); z: url("") ; w: url(  ) }`:            nil,
		`b { x: url(data:image/png;base64,AAAA) }`:                           nil,
		`b { x: url(bad"url) ; y: url(good) }`:                               {"style /dir/good"},
		"b { x: \"broken\n; y: url(good) }":                                  {"style /dir/good"},
		`b { x: url(unclosed`:                                                {"style /dir/unclosed"},
		`b { x: curl(no) url-prefix(no) -url(no) }`:                          nil,
		`@media print { @import "still"; b { x: url(y) } } "no" @import "z"`: {"stylesheet /dir/still", "style /dir/y", "stylesheet /dir/z"},
		"\\": nil, "url(\\": nil, `"\`: nil, "@": nil, "/*": nil, "url(": nil, "image-set(((": nil, ")))": nil,
	} {
		p, err := ExtractCSS(strings.NewReader(sheet), "text/css", pageURL, Options{})
		require.NoError(t, err)
		assert.Equal(t, want, found(p), "%s", sheet)
	}
}

// TestStyleInPages finds the styles of a page where there are some, and reads
// their URLs relative to its base.
func TestStyleInPages(t *testing.T) {
	doc := `<base href=/b/><style>@import "s.css"; p{x:url(i)}</style><p style="background:url('j')">url(no)<a href=x style='x:url("k")'>y</a>
<svg><style>b{x:url(l)}</style><text>url(no)</text></svg><script>url(no)</script><title>url(no)</title>`
	assert.Equal(t, []string{"stylesheet /b/s.css", "style /b/i", "style /b/j", "anchor /b/x", "style /b/k", "style /b/l"}, found(extract(t, doc, Options{})))
	assert.Equal(t, []string{"anchor /b/x"}, found(extract(t, doc, Options{Kinds: Pages})))
	assert.Equal(t, []string{"stylesheet /b/s.css"}, found(extract(t, doc, Options{Kinds: Stylesheet})))
}

// TestLongSheets reads sheets in pieces that end where rules do.
func TestLongSheets(t *testing.T) {
	sheet := strings.Repeat("b { x: url(i); }\n", 20_000)
	p, err := ExtractCSS(iotest.OneByteReader(strings.NewReader(sheet)), "text/css", pageURL, Options{MaxToken: 4 << 10, MaxLinks: 1 << 20})
	require.NoError(t, err)
	assert.Len(t, p.Links, 20_000)
	_, err = ExtractCSS(iotest.TimeoutReader(strings.NewReader(sheet)), "", pageURL, Options{})
	assert.ErrorIs(t, err, iotest.ErrTimeout)
	p, err = ExtractCSS(strings.NewReader(strings.Repeat("x", 1<<20)), "", pageURL, Options{MaxToken: 4 << 10})
	require.NoError(t, err)
	assert.Empty(t, p.Links)
}

func TestSheetCharset(t *testing.T) {
	const sheet = "b { x: url(\xe9) }"
	for _, tt := range []struct{ contentType, sheet, want string }{
		{"text/css", `@charset "iso-8859-2";` + sheet, "iso-8859-2"},
		{"text/css; charset=iso-8859-5", `@charset "iso-8859-2";` + sheet, "iso-8859-5"},
		{"", `@charset "unclosed`, "utf-8"}, // what is not UTF-8 then
	} {
		p, err := ExtractCSS(strings.NewReader(tt.sheet), tt.contentType, pageURL, Options{})
		require.NoError(t, err)
		assert.Equal(t, tt.want, p.Charset, tt.sheet)
	}
}

func TestPageText(t *testing.T) {
	for doc, want := range map[string]string{
		`<title>no</title><h1>A  <b>bo</b>ld</h1><p>one<br>two</p>three`:                    "A bold\none\ntwo\nthree",
		"<ul>\n <li> a </li>\n <li>b &amp; c<ul><li>d</ul></ul>":                            "a\nb & c\nd",
		`<table><tr><td>1<td>2</table>`:                                                     "1\n2",
		`<script>no</script>yes<style>no</style> <noscript>no script</noscript><!-- no -->`: "yes no script",
		`<p>a<span> </span>b<i>c</i> <i> d</i>`:                                             "a bc d",
		`<pre>x
  y</pre>`: "x y",
		"": "", "<p> </p><div>\n</div>": "",
	} {
		assert.Equal(t, want, extract(t, doc, Options{MaxPageText: 1000}).Text, doc)
		assert.Empty(t, extract(t, doc, Options{}).Text)
	}
	p := extract(t, strings.Repeat("<p>ä b c", 1000), Options{MaxPageText: 100})
	assert.LessOrEqual(t, len(p.Text), 100)
	assert.True(t, p.TextTruncated)
	p = extract(t, `<a href=x>link <b>text</b></a> more`, Options{MaxPageText: 100})
	assert.Equal(t, "link text more", p.Text)
	assert.Equal(t, "link text", p.Links[0].Text)
	assert.False(t, p.TextTruncated)
}

func FuzzExtractCSS(f *testing.F) {
	f.Add([]byte(`@import "a"; @charset "x"; b{x:url(y);z:image-set("a" 1x)}`))
	f.Add([]byte(`/* */ url(\66 "') @namespace url(x)`))
	f.Fuzz(func(t *testing.T, sheet []byte) {
		p, err := ExtractCSS(strings.NewReader(string(sheet)), "text/css", pageURL, Options{MaxLinks: 100})
		require.NoError(t, err)
		for _, l := range p.Links {
			assert.NotEmpty(t, l.URL)
		}
	})
}
