// These tests read headers as servers send them, and as they should not.

package link

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLinkHeader(t *testing.T) {
	const page = "http://a.example/x/y?q"
	for name, tt := range map[string]struct {
		fields []string
		want   []Link
	}{
		"canonical": {[]string{`<https://b.example/z>; rel="canonical"`},
			[]Link{{URL: "https://b.example/z", Raw: "https://b.example/z", Kind: Canonical, Rel: "canonical"}}},
		"relative to the page, token value, any case": {[]string{`<../n>;REL=Next`},
			[]Link{{URL: "http://a.example/n", Raw: "../n", Kind: Relative, Rel: "next"}}},
		"several in one field": {[]string{`<1>; rel=prev; title="a, b; c", <2> ; rel = "next" ,, <3>;rel=alternate;hreflang=de;type="text/html"`}, []Link{
			{URL: "http://a.example/x/1", Raw: "1", Kind: Relative, Rel: "prev"},
			{URL: "http://a.example/x/2", Raw: "2", Kind: Relative, Rel: "next"},
			{URL: "http://a.example/x/3", Raw: "3", Kind: Relative, Rel: "alternate"},
		}},
		"several fields": {[]string{`<1>; rel=prev`, `<2>; rel=next`}, []Link{
			{URL: "http://a.example/x/1", Raw: "1", Kind: Relative, Rel: "prev"},
			{URL: "http://a.example/x/2", Raw: "2", Kind: Relative, Rel: "next"},
		}},
		"nofollow": {[]string{`</n>; rel="next nofollow"`},
			[]Link{{URL: "http://a.example/n", Raw: "/n", Kind: Relative, Rel: "next nofollow", NoFollow: true}}},
		"style sheet": {[]string{`</s.css>; rel=stylesheet`},
			[]Link{{URL: "http://a.example/s.css", Raw: "/s.css", Kind: Stylesheet, Rel: "stylesheet"}}},
		"what is loaded early": {[]string{`</f>; rel=preload; as=font, </m>; rel=modulepreload`}, []Link{
			{URL: "http://a.example/f", Raw: "/f", Kind: Style, Rel: "preload"}, {URL: "http://a.example/m", Raw: "/m", Kind: Script, Rel: "modulepreload"}}},
		"the first rel counts": {[]string{`</a>; rel=canonical; rel=next`},
			[]Link{{URL: "http://a.example/a", Raw: "/a", Kind: Canonical, Rel: "canonical"}}},
		"the page's own anchor":               {[]string{`</a>; rel=next; anchor="#top"`}, []Link{{URL: "http://a.example/a", Raw: "/a", Kind: Relative, Rel: "next"}}},
		"another resource's link":             {[]string{`</a>; rel=next; anchor="/other"`}, nil},
		"no rel":                              {[]string{`</a>`, `</a>; rel=""`, `</a>; rel`}, nil},
		"no target":                           {[]string{`<>; rel=next`, `; rel=next`, ``, `,,,`}, nil},
		"target without its end":              {[]string{`<http://a.example/; rel=next`}, nil},
		"text before a link":                  {[]string{`what "is, this", </a>; rel=next`}, []Link{{URL: "http://a.example/a", Raw: "/a", Kind: Relative, Rel: "next"}}},
		"quote without its end":               {[]string{`</a>; rel="next, </b>; rel=prev`}, []Link{{URL: "http://a.example/a", Raw: "/a", Kind: Related, Rel: "next, </b>; rel=prev"}}},
		"escapes":                             {[]string{`</a>; title="\"<b>, \\"; rel="ne\xt"`}, []Link{{URL: "http://a.example/a", Raw: "/a", Kind: Relative, Rel: "next"}}},
		"comma and semicolon in the target":   {[]string{`</a;b,c>; rel=next`}, []Link{{URL: "http://a.example/a;b,c", Raw: "/a;b,c", Kind: Relative, Rel: "next"}}},
		"what is no place for a crawler":      {[]string{`<mailto:x@y.example>; rel=author, <javascript:1>; rel=next`}, nil},
		"rubbish between parameters":          {[]string{`</a>; ; =x; rel=next;`}, []Link{{URL: "http://a.example/a", Raw: "/a", Kind: Relative, Rel: "next"}}},
		"rubbish between target and the rest": {[]string{`</a> x; rel=next, </b>; rel=next`}, []Link{{URL: "http://a.example/b", Raw: "/b", Kind: Relative, Rel: "next"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ExtractHeader(http.Header{"Link": tt.fields}, page, Options{})
			assert.Equal(t, tt.want, append([]Link(nil), got.Links...))
		})
	}
}

func TestRefreshHeader(t *testing.T) {
	got := ExtractHeader(http.Header{"Refresh": {"5", "3; url=next"}}, "http://a.example/x/", Options{})
	assert.Equal(t, []Link{{URL: "http://a.example/x/next", Raw: "next", Kind: Refresh}}, got.Links)
}

func TestHeaderLinksAreOfTheKindsAskedFor(t *testing.T) {
	h := http.Header{"Link": {`</a>; rel=canonical, </b>; rel=icon`}, "Content-Location": {"/c"}, "X-Robots-Tag": {"bot: nofollow"}}
	got := ExtractHeader(h, "http://a.example/", Options{Kinds: Pages, Agent: "bot"})
	assert.Equal(t, []Link{{URL: "http://a.example/a", Raw: "/a", Kind: Canonical, Rel: "canonical"}}, got.Links)
	assert.Equal(t, Directives{NoFollow: true}, got.Robots)
}

func TestHeaderLinksAreBounded(t *testing.T) {
	h := http.Header{"Link": {strings.Repeat("</a>; rel=next,", 100)}}
	got := ExtractHeader(h, "http://a.example/", Options{MaxLinks: 10})
	assert.Len(t, got.Links, 10)
	assert.Positive(t, got.Dropped)
}

func FuzzExtractHeader(f *testing.F) {
	f.Add(`</a>; rel="next"; title="x, \"y", <b>;rel=canonical`, "0;url=x")
	f.Add(`<`, ";")
	f.Add(`<a>;=;"`, "")
	f.Fuzz(func(t *testing.T, links, refresh string) {
		p := ExtractHeader(http.Header{"Link": {links}, "Refresh": {refresh}}, "http://a.example/x/", Options{})
		for _, l := range p.Links {
			if l.URL == "" || l.Kind == 0 {
				t.Errorf("%q gives %+v", links, l)
			}
		}
	})
}
