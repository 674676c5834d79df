package link

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"
)

const pageURL = "http://a.example/dir/page"

func extract(t testing.TB, doc string, opts Options) *Page {
	t.Helper()
	p, err := Extract(strings.NewReader(doc), "text/html; charset=utf-8", pageURL, opts)
	require.NoError(t, err)
	return p
}

// found returns the links as "kind URL".
func found(p *Page) []string {
	var s []string
	for _, l := range p.Links {
		s = append(s, l.Kind.String()+" "+strings.TrimPrefix(l.URL, "http://a.example"))
	}
	return s
}

func TestElements(t *testing.T) {
	tests := []struct {
		name, doc string
		want      []string
	}{
		{"a", `<a href=x>1</a><a name=y>2</a><a href="">self</a>`, []string{"anchor /dir/x", "anchor /dir/page"}},
		{"area", `<map><area href="/m" alt=map></map>`, []string{"area /m"}},
		{"frames", `<frameset><frame src=f1><noframes><a href=f2></noframes></frameset><iframe src=f3><a href=no></iframe>`,
			[]string{"frame /dir/f1", "anchor /dir/f2", "iframe /dir/f3"}},
		{"link", `<link rel="Canonical" href=c><link rel="alternate stylesheet" href=s><link rel=next href=n><link rel=icon href="">`,
			[]string{"canonical /dir/c", "stylesheet /dir/s", "relative /dir/n"}},
		{"images", `<img src=i srcset="j 1x, k 2x"><input type=IMAGE src=l><input src=no><picture><source src=no srcset=m></picture>`,
			[]string{"image /dir/i", "image /dir/j", "image /dir/k", "image /dir/l", "image /dir/m"}},
		{"script", `<script src=s></script><script>document.write('<a href="no">')</script>`, []string{"script /dir/s"}},
		{"media", `<video src=v poster=p><source src=w><track src=t></video><audio src=a></audio>`,
			[]string{"media /dir/v", "image /dir/p", "media /dir/w", "media /dir/t", "media /dir/a"}},
		{"embed", `<embed src=e.swf><object data=//b.example/o.pdf?x.html></object><object data=o type="image/svg+xml"></object>`, []string{"embed /dir/e.swf", "embed http://b.example/o.pdf?x.html", "embed /dir/o"}},
		{"pages in objects", `<embed src=e><object data=o.HTML></object><object data=o.bin type="text/html; charset=utf-8"></object><object data="//b.example"></object><object data="o.php?x=1.swf#y"></object>`,
			[]string{"iframe /dir/e", "iframe /dir/o.HTML", "iframe /dir/o.bin", "iframe http://b.example/", "iframe /dir/o.php?x=1.swf"}},
		{"srcdoc", `<base href=/base/><iframe srcdoc="<a href=x>1</a>&lt;img src=&quot;i&quot;&gt;"></iframe><iframe srcdoc='<base href="http://b.example/"><a href=y></a>'></iframe><a href=z>`,
			[]string{"anchor /base/x", "image /base/i", "anchor http://b.example/y", "anchor /base/z"}},
		{"srcdoc in srcdoc", `<iframe srcdoc="<iframe srcdoc='<a href=x>'>">`, []string{"anchor /dir/x"}},
		{"bases in srcdoc", `<iframe srcdoc="<base href=r/><a href=x><iframe srcdoc='<base href=s/><a href=y>'></iframe><iframe srcdoc='<a href=z>'></iframe>"></iframe><iframe srcdoc="<base href='data:,'><a href=v>"></iframe><a href=w><base href=/base/>`,
			[]string{"anchor /base/r/x", "anchor /base/r/s/y", "anchor /base/r/z", "anchor /base/v", "anchor /base/w"}},
		{"manifest", `<link rel=manifest href=m>`, []string{"embed /dir/m"}},
		{"backgrounds", `<body background=b><table background=t><tr background=r><td background=d><p background=no>`, []string{"image /dir/b", "image /dir/t", "image /dir/r", "image /dir/d"}},
		{"icons", `<link rel="shortcut icon" href=f><link rel=apple-touch-icon href=t><link rel=mask-icon href=m>`, []string{"image /dir/f", "image /dir/t", "image /dir/m"}},
		{"loaded early", `<link rel=preload as=font href=f><link rel=preload as=style href=s><link rel=preload as=script href=j><link rel=preload as=image imagesrcset="i 1x"><link rel=preload as=fetch href=d><link rel=modulepreload href=m><link rel=preload as=video href=v>`,
			[]string{"style /dir/f", "stylesheet /dir/s", "script /dir/j", "image /dir/i", "related /dir/d", "script /dir/m", "media /dir/v"}},
		{"svg use", `<svg><use href="sprite.svg#x"/><use xlink:href="#own"/><filter><feImage href=f /></filter></svg>`, []string{"image /dir/sprite.svg", "image /dir/f"}},
		{"sound", `<bgsound src=s>`, []string{"media /dir/s"}},
		{"form", `<form action=f></form><form action=g method=POST></form><form method=get></form>`, []string{"form /dir/f"}},
		{"refresh", `<meta http-equiv=Refresh content="0; URL='/next'"><meta http-equiv=refresh content=5>`, []string{"refresh /next"}},
		{"other schemes", `<a href="mailto:x@y.example"><a href="javascript:void(0)"><a href="data:,x"><a href=x>`, []string{"anchor /dir/x"}},
		{"svg", `<svg><a xlink:href=x></a><image href=y /><style><a href=z></style><title><a href=w></title></svg>`,
			[]string{"anchor /dir/x", "image /dir/y", "anchor /dir/z", "anchor /dir/w"}},
		{"unclosed svg", `<svg><p><style><a href=no></style>`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, found(extract(t, tt.doc, Options{})))
		})
	}
}

// TestHostileMarkup holds constructs that make extractors lose links or invent
// some.
func TestHostileMarkup(t *testing.T) {
	for doc, want := range map[string][]string{
		`<noscript><a href=x></noscript>`:       {"anchor /dir/x"},
		`<a/href=x>`:                            {"anchor /dir/x"},
		`<A HREF = ' x '>`:                      {"anchor /dir/x"},
		"<a\nhref\n=\nx>":                       {"anchor /dir/x"},
		`<a href=x href=y>`:                     {"anchor /dir/x"},
		`<a title=">" href=x>`:                  {"anchor /dir/x"},
		`<a href=x`:                             nil, // a tag that does not end is none
		`<a href="x?a=1&amp;b=2&copy=3&#x2f;">`: {"anchor /dir/x?a=1&b=2&copy=3/"},
		`<!--><a href=x>-->`:                    {"anchor /dir/x"},
		`<!-- <a href=no> --><a href=x>`:        {"anchor /dir/x"},
		`<!-- <a href=no> --!><a href=x>`:       {"anchor /dir/x"},
		`<![CDATA[<a href=x>]]>`:                {}, // a comment up to the first >
		`<script><!-- <script> </script> --></script><a href=x>`: {"anchor /dir/x"},
		`<textarea><a href=no></textarea><a href=x>`:             {"anchor /dir/x"},
		`<title><a href=no></title><a href=x>`:                   {"anchor /dir/x"},
		`<style></stylex><a href=no></style ><a href=x>`:         {"anchor /dir/x"},
		`<a href="ht` + "\n" + `tp://a.exa` + "\t" + `mple/x">`:  {"anchor /x"},
		`<a href="\x">`:                                   {"anchor /x"},
		"<a href=\"\x00x\">":                              {"anchor /dir/%EF%BF%BDx"},
		`<template><a href=x></template>`:                 {"anchor /dir/x"},
		`<svg/><iframe><a href=no></iframe><a href=x>`:    {"anchor /dir/x"},
		`<svg><![CDATA[<a href=no>]]><a href=x>`:          {"anchor /dir/x"},
		`<svg><style><![CDATA[*{background:url(x)}]]>`:    {"style /dir/x"},
		`<svg><plaintext><a href=x>`:                      {"anchor /dir/x"},
		`<plaintext><a href=no>`:                          nil,
		`<noframes><iframe></noframes><a href=x>`:         {"anchor /dir/x"},
		`<noframes><a href=x></noframes><xmp><a href=no>`: {"anchor /dir/x"},
		`<picture><source src=no><video><source src=x>`:   {"media /dir/x"},
		strings.Repeat("<div>", 100_000) + `<a href=x>`:   {"anchor /dir/x"},
		`<a ` + strings.Repeat("q ", 10_000) + ` href=x>`: {"anchor /dir/x"},
	} {
		got := found(extract(t, doc, Options{}))
		if doc[:3] == "<![" {
			continue // only must not panic: implementations differ
		}
		assert.Equal(t, want, got, "%.60q", doc)
	}
}

func TestBase(t *testing.T) {
	for doc, want := range map[string]string{
		`<a href=x>`:                  "/dir/x",
		`<base href="/b/"><a href=x>`: "/b/x",
		`<a href=x><base href="/b/">`: "/b/x", // a base counts for the whole page
		`<base target=_top><base href=/b/><base href=/c/><a href=x>`: "/b/x",
		`<base href="javascript:x"><a href=x>`:                       "/dir/x",
		`<base href="//c.example"><a href=x>`:                        "http://c.example/x",
	} {
		p := extract(t, doc, Options{})
		require.Len(t, p.Links, 1, doc)
		assert.Equal(t, want, strings.TrimPrefix(p.Links[0].URL, "http://a.example"), doc)
	}
	p, err := Extract(strings.NewReader(`<a href=x><a href="http://b.example">`), "", "about:blank", Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"anchor http://b.example/"}, found(p))
	assert.Equal(t, 1, p.Skipped)
	assert.Empty(t, p.Base)
}

func TestTextAndRel(t *testing.T) {
	p := extract(t, `<title> A &amp;
 B </title><title>no</title>
<a href=1 rel="NoFollow ugc"> one <b>bold</b><script>no</script><img src=i alt="pic"> end</a> outside
<a href=2>two<a href=3>three</a><area href=4 alt=" x  y ">`, Options{Kinds: Pages})
	assert.Equal(t, "A & B", p.Title)
	var got []string
	for _, l := range p.Links {
		got = append(got, fmt.Sprintf("%s|%s|%v", l.Text, l.Rel, l.NoFollow))
	}
	assert.Equal(t, []string{"one bold pic end|nofollow ugc|true", "two||false", "three||false", "x y||false"}, got)
	p = extract(t, "<a href=1>"+strings.Repeat("é ", 100)+"</a>", Options{MaxText: 9})
	assert.Equal(t, "é é é", p.Links[0].Text)
	p = extract(t, "<title>x</title><a href=1>x</a>", Options{MaxText: -1})
	assert.Empty(t, p.Links[0].Text+p.Title)
}

func TestRobots(t *testing.T) {
	doc := `<meta name=Robots content="NoIndex , noarchive"><meta name=ExampleBot content=nofollow><meta name=other content=none>`
	assert.Equal(t, Directives{NoIndex: true, NoArchive: true}, extract(t, doc, Options{}).Robots)
	assert.Equal(t, Directives{true, true, true}, extract(t, doc, Options{Agent: "examplebot"}).Robots)

	tests := []struct {
		values []string
		want   Directives
	}{
		{[]string{"noindex, nofollow"}, Directives{NoIndex: true, NoFollow: true}},
		{[]string{"none"}, Directives{NoIndex: true, NoFollow: true}},
		{[]string{"otherbot: noindex, nofollow"}, Directives{}},
		{[]string{"otherbot: noindex", "noarchive"}, Directives{NoArchive: true}},
		{[]string{"otherbot: noindex, ExampleBot: nofollow"}, Directives{NoFollow: true}},
		{[]string{"unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"}, Directives{NoIndex: true}},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, RobotsTag(tt.values, "examplebot"), "%q", tt.values)
	}
}

func TestRefreshTarget(t *testing.T) {
	for in, want := range map[string]string{
		"0;url=x":            "x",
		"0; URL = 'x' y":     "x",
		"1.5,url=\"x":        "x",
		" 5 ; x":             "x",
		"5 url=x":            "x",
		"5;urlx":             "urlx",
		"5;url x":            "url x",
		"5":                  "",
		"5;":                 "",
		";url=x":             "",
		"x;url=x":            "",
		"5x;url=y":           "",
		"":                   "",
		"0;url=''":           "",
		"0;url=javascript:x": "javascript:x",
	} {
		got, ok := refreshTarget([]byte(in))
		assert.Equal(t, want, string(got), "%q", in)
		assert.Equal(t, want != "", ok, "%q", in)
	}
}

func TestEncodings(t *testing.T) {
	const doc = `<title>é</title><a href="/é?é">`
	latin, err := charmap.ISO8859_1.NewEncoder().String(doc)
	require.NoError(t, err)
	utf16, err := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().String(doc)
	require.NoError(t, err)
	pad := strings.Repeat("x", 5000)
	tests := []struct {
		name, body, contentType, charset, url string
	}{
		{"header", latin, "text/html; charset=ISO-8859-1", "windows-1252", "/%C3%A9?%E9"},
		{"header wins over meta", `<meta charset=koi8-r>` + doc, "text/html;charset=utf-8", "utf-8", "/%C3%A9?%C3%A9"},
		{"meta", `<meta charset=latin1>` + latin, "text/html", "windows-1252", "/%C3%A9?%E9"},
		{"byte order mark wins over header", "\uFEFF" + doc, "text/html; charset=latin1", "utf-8", "/%C3%A9?%C3%A9"},
		{"UTF-16 keeps queries in UTF-8", utf16, "", "utf-16be", "/%C3%A9?%C3%A9"},
		{"undeclared UTF-8", doc, "", "utf-8", "/%C3%A9?%C3%A9"},
		{"undeclared UTF-8, late", pad + doc, "", "windows-1252", "/%C3%A9?%C3%A9"},
		{"undeclared legacy", pad + latin, "", "windows-1252", "/%C3%A9?%C3%A9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Extract(iotest.OneByteReader(strings.NewReader(tt.body)), tt.contentType, pageURL, Options{})
			require.NoError(t, err)
			assert.Equal(t, tt.charset, p.Charset)
			assert.Equal(t, "é", p.Title)
			assert.Equal(t, []string{"anchor " + tt.url}, found(p))
		})
	}
	sjis, err := japanese.ShiftJIS.NewEncoder().String(`<a href="?q=ソ&r=1#ソ">`)
	require.NoError(t, err)
	p, err := Extract(strings.NewReader(sjis), "text/html; charset=shift_jis", pageURL, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"anchor /dir/page?q=%83%5C&r=1"}, found(p))
	assert.Equal(t, "?q=ソ&r=1#ソ", p.Links[0].Raw)
}

func TestLimits(t *testing.T) {
	p := extract(t, strings.Repeat("<a href=x>", 20)+"<meta name=robots content=noindex>", Options{MaxLinks: 5})
	assert.Len(t, p.Links, 5)
	assert.Positive(t, p.Dropped)
	assert.True(t, p.Robots.NoIndex, "wishes count wherever they stand")

	big := strings.Repeat("<a href=no> ", 10_000)
	for name, doc := range map[string]string{
		"script":   "<script>" + big + "</script><a href=x>",
		"text":     strings.Repeat("text ", 10_000) + "<a href=x>",
		"title":    "<title>" + big + "</title><a href=x>",
		"data URL": `<img src="data:,` + strings.Repeat("x", 100_000) + `"><a href=x>`,
	} {
		p := extract(t, doc, Options{MaxToken: 4096})
		assert.Equal(t, []string{"anchor /dir/x"}, found(p), name)
	}
	many := strings.Repeat(strings.Repeat("text ", 1500)+"<a href=x></a><script>"+strings.Repeat("s", 9000)+"</script>", 100)
	assert.Len(t, extract(t, many, Options{MaxToken: 4096}).Links, 100, "pieces must not lose what lies between them")
	for n := range 100 { // wherever the text is cut, the tags around the cut survive
		p := extract(t, strings.Repeat("x", 4030+n)+"<a href=x>", Options{MaxToken: 4096})
		assert.Equal(t, []string{"anchor /dir/x"}, found(p), "text of %d", 4030+n)
		p = extract(t, "<script>"+strings.Repeat("x", 4030+n)+"</script><a href=x>", Options{MaxToken: 4096})
		assert.Equal(t, []string{"anchor /dir/x"}, found(p), "script of %d", 4030+n)
	}
	p = extract(t, `<a title="`+strings.Repeat("x", 8000)+`" href=no><a href=x>`, Options{MaxToken: 4096})
	assert.Equal(t, []string{"anchor /dir/x"}, found(p), "a tag that long is none")
	p = extract(t, `<a href="`+strings.Repeat("x", 50_000)+`"><a href=x>`, Options{})
	assert.Equal(t, []string{"anchor /dir/x"}, found(p))
	assert.Equal(t, 1, p.Skipped)
}

func TestReadError(t *testing.T) {
	broken := errors.New("broken")
	for _, n := range []int{0, 1, 3000} {
		r := io.MultiReader(strings.NewReader(strings.Repeat("<a href=x>", n)), iotest.ErrReader(broken))
		p, err := Extract(r, "", pageURL, Options{})
		assert.ErrorIs(t, err, broken)
		require.NotNil(t, p)
		assert.Len(t, p.Links, n)
	}
}

func TestKind(t *testing.T) {
	assert.Equal(t, "anchor|image", (Anchor | Image).String())
	assert.Len(t, strings.Split(All.String(), "|"), len(kindNames))
	p := extract(t, `<a href=x><img src=y><link rel=canonical href=z>`, Options{Kinds: Image | Canonical})
	assert.Equal(t, []string{"image /dir/y", "canonical /dir/z"}, found(p))
}

func TestPlainNameAgreesWithTheTokenizer(t *testing.T) {
	piece := rapid.SampledFrom([]string{"<", "</", ">", "/", " ", "\n", "\f", "a", "h1", "DIV", "x-y", "\x00", "=", "\"", "é", "!", "--", "script"})
	rapid.Check(t, func(t *rapid.T) {
		z := html.NewTokenizer(strings.NewReader(strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")))
		for {
			switch z.Next() {
			case html.ErrorToken:
				return
			case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
				got := string(plainName(z.Raw()))
				name, _ := z.TagName()
				if got != "" {
					require.Equal(t, string(name), got)
				}
			}
		}
	})
	require.Equal(t, "h1", string(plainName([]byte("</h1\n>"))), "and without it")
}

func FuzzExtract(f *testing.F) {
	f.Add([]byte(`<base href=x><a href=y rel=nofollow>z<img src=i srcset="a 1x, b 2x" alt=q></a>`), "text/html")
	f.Add([]byte(`<svg><title><a href=x></svg><noscript><iframe src=y>`), "text/html; charset=shift_jis")
	f.Add([]byte("\xfe\xff\x00<\x00a"), "")
	f.Add([]byte(`<meta http-equiv=refresh content="0;url='x"><script><!--<script>`), "text/html; charset=iso-2022-jp")
	f.Add([]byte(strings.Repeat("<title>x", 2000)), "")
	f.Fuzz(func(t *testing.T, doc []byte, contentType string) {
		opts := Options{MaxLinks: 50, MaxToken: 4096, MaxText: 20, Agent: "bot"}
		p, err := Extract(strings.NewReader(string(doc)), contentType, pageURL, opts)
		if err != nil {
			t.Errorf("a page in memory gave %v", err)
		}
		if len(p.Links) > 50 || len(p.Title) > 20 {
			t.Errorf("%d links, title of %d bytes", len(p.Links), len(p.Title))
		}
		for _, l := range p.Links {
			if l.URL == "" || len(l.Text) > 20 || l.Kind.String() == "" {
				t.Errorf("bad link %+v", l)
			}
		}
	})
}

func BenchmarkExtract(b *testing.B) { // how many bytes of HTML does a core read?
	var s strings.Builder
	s.WriteString("<!doctype html><title>Benchmark</title><body>")
	for i := range 1000 {
		fmt.Fprintf(&s, `<div class="item"><p>Some text about thing number %d, and a little more of it to read.</p>`+
			`<a class="more" href="/things/%d.html">Read <b>more</b></a><img src="/img/%d.png" alt="x"></div>`+"\n", i, i, i)
	}
	doc := s.String()
	for _, kinds := range []Kind{Pages, All} {
		b.Run("kinds="+map[Kind]string{Pages: "pages", All: "all"}[kinds], func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Extract(strings.NewReader(doc), "text/html; charset=utf-8", pageURL, Options{Kinds: kinds})
			}
		})
	}
}

func TestALongBaseDoesNotMultiplyMemory(t *testing.T) {
	base := "http://a.example/" + strings.Repeat("x", 8000) + "/"
	p := extract(t, `<base href="`+base+`">`+strings.Repeat("<a href=y>", 10_000), Options{})
	total := 0
	for _, l := range p.Links {
		total += len(l.URL)
	}
	assert.Positive(t, p.Dropped)
	assert.NotEmpty(t, p.Links)
	assert.LessOrEqual(t, total, MaxURLs+len(base)+1)
}

// Feeds are distinguished from other links to alternate forms, and are not pages.
func TestFeeds(t *testing.T) {
	page := `<link rel="ALTERNATE nofeed" type=" Application/RSS+xml; charset=x" href=/rss><link rel=alternate type=application/atom+xml href=/atom>` +
		`<link rel=alternate type=text/html href=/de><link rel=alternate hreflang=fr href=/fr><link rel=stylesheet type=application/rss+xml href=/css>`
	for kinds, want := range map[Kind][]string{Feed: {"http://a.example/rss", "http://a.example/atom"}, Relative: {"http://a.example/de", "http://a.example/fr"}, Related: nil} {
		doc, err := Extract(strings.NewReader(page), "text/html", "http://a.example/", Options{Kinds: kinds})
		require.NoError(t, err)
		var got []string
		for _, l := range doc.Links {
			assert.Equal(t, kinds, l.Kind)
			got = append(got, l.URL)
		}
		assert.Equal(t, want, got, kinds.String())
	}
}

// What a reader would follow is a page; what a browser loads automatically, or another form of this
// page, is not.
func TestRelativesArePages(t *testing.T) {
	for rel, want := range map[string]Kind{
		"next": Relative, "PREV": Relative, "alternate": Relative, "up first": Relative, "help noopener": Relative, "amphtml": Relative, "license": Relative,
		"icon": Image, "preload": Related, "dns-prefetch": Related, "manifest": Embed, "search": Related, "pingback": Related, "shortlink": Related, "": Related,
		"alternate stylesheet": Stylesheet, "stylesheet alternate": Stylesheet, "next canonical": Canonical,
	} {
		doc, err := Extract(strings.NewReader(`<link rel="`+rel+`" href=/x>`), "text/html", "http://a.example/", Options{})
		require.NoError(t, err)
		require.Len(t, doc.Links, 1)
		assert.Equal(t, want, doc.Links[0].Kind, rel)
	}
	for kind, want := range map[string]Kind{"text/html": Relative, "Application/XHTML+xml;charset=x": Relative, "application/json": Related, "application/pdf": Related} {
		doc, err := Extract(strings.NewReader(`<link rel=alternate type="`+kind+`" href=/x>`), "text/html", "http://a.example/", Options{})
		require.NoError(t, err)
		assert.Equal(t, want, doc.Links[0].Kind, kind)
		head := ExtractHeader(http.Header{"Link": {`</x>; rel=alternate; type="` + kind + `"`}}, "http://a.example/", Options{})
		assert.Equal(t, want, head.Links[0].Kind, kind)
	}
}

// Bytes of a header that are no UTF-8 are sent back as they came.
func TestHeaderURL(t *testing.T) {
	for in, want := range map[string]string{"/caf\xe9?\xff": "/caf%E9?%FF", "/caf\u00e9": "/caf\u00e9", "/x%20y": "/x%20y", "": ""} {
		assert.Equal(t, want, HeaderURL(in))
	}
	head := ExtractHeader(http.Header{"Link": {"</caf\xe9>; rel=next"}, "Refresh": {"0; url=/na\xefve"}}, "http://a.example/", Options{})
	assert.Equal(t, "http://a.example/caf%E9", head.Links[0].URL)
	assert.Equal(t, "http://a.example/na%EFve", head.Links[1].URL)
}

func TestDocumentsWithTooManyBases(t *testing.T) {
	of := func(base string) string { return "<iframe srcdoc='" + base + "<a href=x>'></iframe>" }
	p := extract(t, strings.Repeat(of("<base href=/b/>"), maxBases+3)+of(""), Options{})
	require.Len(t, p.Links, maxBases+1)
	assert.Equal(t, 3, p.Dropped)
	assert.Equal(t, "http://a.example/b/x", p.Links[maxBases-1].URL)
	assert.Equal(t, "http://a.example/dir/x", p.Links[maxBases].URL)
}
