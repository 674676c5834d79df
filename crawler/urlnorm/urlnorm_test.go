package urlnorm

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRules(t *testing.T) {
	tests := []struct {
		rule     Rule
		in, want string
	}{
		{PercentEncoding(), "http://a.example/%7e%2f%c3?%41=%3d", "http://a.example/~%2F%C3?A=%3D"},
		{PercentEncoding(), "http://a.example/%%341", "http://a.example/%2541"},
		{DropFragment(), "http://a.example/#x", "http://a.example/"},
		{DropUserinfo(), "http://u:p@a.example:81/", "http://a.example:81/"},
		{TrimHostDot(), "http://a.example./", "http://a.example/"},
		{TrimHostDot(), "http://1.2.3../", "http://1.2.3../"},
		{CleanQuery(), "http://a.example/?", "http://a.example/"},
		{CleanQuery(), "http://a.example/?&&", "http://a.example/"},
		{CleanQuery(), "http://a.example/?&a=1&&b=&", "http://a.example/?a=1&b="},
		{SortQuery(), "http://a.example/?b=1&a=2&b=0&a", "http://a.example/?a=2&a&b=1&b=0"},
		{DropParams(TrackingParams()...), "http://a.example/?id=1&UTM_Source=x&gclid=y", "http://a.example/?id=1"},
		{DropParams(TrackingParams()...), "http://a.example/?fbclid=x", "http://a.example/"},
		{DropParams(SessionParams()...), "http://a.example/?side=1&PHPSESSID=2", "http://a.example/?side=1"},
		{DropPathSession("jsessionid"), "http://a.example/a;v=1;jsessionid=2/b", "http://a.example/a;v=1/b"},
		{DropPathSession("jsessionid"), "http://a.example/..;jsessionid=2/b", "http://a.example/..;jsessionid=2/b"},
		{CollapseSlashes(), "http://a.example//a///b", "http://a.example/a/b"},
	}
	for _, tt := range tests {
		got, err := New(tt.rule).Normalize(tt.in)
		assert.NoError(t, err)
		assert.Equal(t, tt.want, got, "%s on %s", tt.rule.Name, tt.in)
	}
	var names []string
	for _, r := range New().rules {
		names = append(names, r.Name)
	}
	assert.Equal(t, []string{"percent-encoding", "drop-fragment", "drop-userinfo", "trim-host-dot", "clean-query"}, names)
}

func TestErrors(t *testing.T) {
	n := New()
	for raw, want := range map[string]error{
		"mailto:a@b.example":                 ErrScheme,
		"  JavaScript:void(0)":               ErrScheme,
		"data:" + strings.Repeat("x", 1<<20): ErrScheme,
		"ws://a.example":                     ErrScheme,
		"x-y+z:1":                            ErrScheme,
		"http://a.example/" + strings.Repeat("x", 1<<20): ErrTooLong,
		"http://a.example/" + strings.Repeat("é", 3000):  ErrTooLong,
		"/relative":               ErrSyntax,
		"":                        ErrSyntax,
		"http://":                 ErrSyntax,
		"http://a b/":             ErrSyntax,
		"http://a.example:99999/": ErrSyntax,
	} {
		_, err := n.Normalize(raw)
		assert.ErrorIs(t, err, want, raw[:min(len(raw), 40)])
	}
	_, err := n.Resolve("mailto:x", "/y")
	assert.ErrorIs(t, err, ErrScheme)
	got, err := n.Resolve("mailto:x", "HTTP://a.example")
	assert.NoError(t, err, "an absolute link needs no base")
	assert.Equal(t, "http://a.example/", got)
}

func TestInvalidPunycodeIsKept(t *testing.T) {
	n := New()
	for in, want := range map[string]string{
		"http://XN--pokxncvks.example/":     "http://xn--pokxncvks.example/",
		"http://www.xn--a.example/":         "http://www.xn--a.example/",
		"http://xn--bcher-kva.example/":     "http://xn--bcher-kva.example/",
		"http://my_shop.b\u00fccher.test/":  "http://my_shop.xn--bcher-kva.test/", // UseSTD3ASCIIRules is false
		"http://b\u00fc_cher.test/":         "http://xn--b_cher-3ya.test/",
		"http://a$b!.B\u00dcCHER.test./":    "http://a$b!.xn--bcher-kva.test/",
		"http://a_b%2Eb%C3%BCcher.test/":    "http://a_b.xn--bcher-kva.test/",
		"http://a_b\u3002b\u00fccher.test/": "http://a_b.xn--bcher-kva.test/",
		"http://\uff10\uff58\uff17f.1/":     "http://127.0.0.1/",
		"http://0x7f.1/":                    "http://127.0.0.1/",
		"http://2130706433/":                "http://127.0.0.1/",
		"http://0177.0.0.0x1/":              "http://127.0.0.1/",
		"http://127.0.0.1./":                "http://127.0.0.1/",
		"http://[::FFFF:7f00:1]/":           "http://[::ffff:7f00:1]/",
		"http://a_b.xn--/":                  "http://a_b.xn--/",
	} {
		got, err := n.Normalize(in)
		assert.NoError(t, err, in)
		assert.Equal(t, want, got)
	}
}

// What the parser reads otherwise than the URL Standard.
func TestTheStandardRules(t *testing.T) {
	var n Normalizer
	for in, want := range map[string]string{
		"http://1.2.3.-1/":                 "http://1.2.3.-1/", // its last label is no number
		"http://a.example.+1":              "http://a.example.+1/",
		"http://1.2.3.-1a/":                "http://1.2.3.-1a/",
		"http://b\u00fc{c}her.example/":    "http://xn--b{c}her-n2a.example/",
		"http://stra\u1e9ee.example/":      "http://xn--strae-oqa.example/",
		"http://z61/":                      "http://z61/",
		"http://a.example/a^b?c^d#e^f":     "http://a.example/a%5Eb?c^d#e^f",
		"http://\uff11\uff0e2/":            "http://1.0.0.2/",
		"http://\uff38n--bcher-kva.test/":  "http://xn--bcher-kva.test/",
		"http://b\u00fccher.xn--a%2D/":     "",
		"http://b\u00fccher.xn--/":         "",
		"http://xn--\ufeff.a/":             "",
		"http://xn--b\u00fc.a/":            "",
		"http://\u2260/":                   "http://xn--1ch/",
		"http://a)\uff0c/":                 "http://a),/",
		"http://imgxn--a\uff0cb/":          "http://imgxn--a,b/",
		"http://1.2.+3.4/":                 "",
		"http://1.-2.3.4/":                 "",
		"http://1.2.3.4294967295/":         "",
		"http://[[::1]/":                   "",
		"http://[::1]]/":                   "",
		"http://a%zz/":                     "",
		"http://a%e4/":                     "",
		"http://\u00ad/":                   "",
		"http://a.\u05d0.\u0661a.example/": "",
	} {
		got, err := n.Normalize(in)
		assert.Equal(t, want, got, in)
		if want == "" {
			assert.ErrorIs(t, err, ErrSyntax, in)
		}
	}
	for ref, want := range map[string]string{ // the letters of no scheme: the Kelvin sign, and the dotted capital I
		"\u212a:x": "http://a.example/%E2%84%AA:x",
		"\u0130:x": "http://a.example/%C4%B0:x",
	} {
		got, err := n.Resolve("http://a.example/", ref)
		assert.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

func TestResolveLikeABrowser(t *testing.T) {
	n := New()
	base, err := n.Base("https://a.example/dir/page?q#f")
	require.NoError(t, err)
	for ref, want := range map[string]string{
		"":                      "https://a.example/dir/page?q",
		"#top":                  "https://a.example/dir/page?q",
		"?x":                    "https://a.example/dir/page?x",
		"next":                  "https://a.example/dir/next",
		"a/b:c":                 "https://a.example/dir/a/b:c",
		"/x//y":                 "https://a.example/x//y",
		"//b.example":           "https://b.example/",
		"\\\\b.example\\c":      "https://b.example/c",
		"https:x":               "https://a.example/dir/x",
		"http:/b.example":       "http://b.example/",
		" \n/li\tnk\r\n":        "https://a.example/link",
		"../é?é":                "https://a.example/%C3%A9?%C3%A9",
		"http://0x7f.1/":        "http://127.0.0.1/",
		"http://a.example:080/": "http://a.example/",
	} {
		got, err := base.Resolve(ref)
		assert.NoError(t, err, ref)
		assert.Equal(t, want, got, "%q", ref)
	}
	_, err = base.Resolve("c:d")
	assert.ErrorIs(t, err, ErrScheme)
}

// urlGen draws URLs and references, most of them plain, many with what the fast
// path must recognize and refuse.
func urlGen() *rapid.Generator[string] {
	part := rapid.SampledFrom([]string{
		"http://", "https://", "HTTP://", "ftp://", "http:", "//", "a.example", "b.a", "1.2", "0x1", "xn--a", "--", "user@",
		":80", ":443", ":", "/", "/", "/", "a", "b", "~", "é", "%41", "%7e", "%2e", "%2F", "%", "%%34", ".", "..", "/.", "/..",
		"\\", "?", "?", "#", "&", "=", "'", "[", "|", " ", "\t", ";sid=1", "utm_x=1", "sid=2", "z=1", "$", "_61", "\xff", "\x00",
	})
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(part, 0, 8), func(p []string) string { return strings.Join(p, "") }),
		rapid.Map(rapid.SliceOfN(part, 0, 8), func(p []string) string { return "http://a.example/" + strings.Join(p, "") }),
		rapid.StringMatching(`https?://[a-z0-9.-]{1,8}/[a-z.?&=/]{0,10}`),
	)
}

func allRules() []Rule { return append(Thorough(), CollapseSlashes()) }

func checkIdempotent(t require.TestingT, n *Normalizer, raw string) {
	once, err := n.Normalize(raw)
	if err != nil {
		return
	}
	twice, err := n.Normalize(once)
	require.NoError(t, err, "of %q, from %q", once, raw)
	require.Equal(t, once, twice, "from %q", raw)
	u := split(once)
	require.Equal(t, once, u.String())
}

func TestIdempotent(t *testing.T) {
	sets := []*Normalizer{{}, New(), New(allRules()...)}
	for _, raw := range []string{"http://_61%7e", "http://_/", "http://_61/", "http://xn--a._~/"} {
		for _, n := range sets {
			checkIdempotent(t, n, raw)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := urlGen().Draw(t, "url")
		for _, n := range sets {
			checkIdempotent(t, n, raw)
		}
	})
}

// checkFastPath compares Normalize and Resolve with the parser alone.
func checkFastPath(t require.TestingT, n *Normalizer, b *Base, raw string) {
	slow := func(u URL, err error) (string, error) {
		if err != nil {
			return "", err
		}
		return n.apply(u, "")
	}
	if u, ok := parsePlain(raw); ok {
		full, err := parseFully(raw, nil)
		require.NoError(t, err, "%q", raw)
		require.Equal(t, full, u, "%q", raw)
	}
	if check(raw) != nil {
		return
	}
	want, wantErr := slow(parseFully(raw, b.url))
	got, err := b.Resolve(raw)
	require.Equal(t, want, got, "%q", raw)
	require.Equal(t, wantErr == nil, err == nil, "%q: %v, want %v", raw, err, wantErr)
}

func TestFastPathAgreesWithParser(t *testing.T) {
	keeping := New(PercentEncoding()) // fragments too
	var bases []*Base
	for _, n := range []*Normalizer{New(), keeping} {
		for _, raw := range []string{"http://a.example/x/y?z", "http://a.example/", "http://a.example/x/w//v/", "http://a.example/%7Ex/y"} {
			b, err := n.Base(raw)
			require.NoError(t, err)
			bases = append(bases, b)
		}
	}
	piece := rapid.SampledFrom([]string{"../", "./", "..", ".", "/", "a", "b.html", "#", "f:g", "?", "q=1", "%7e", "//", ":"})
	rapid.Check(t, func(t *rapid.T) {
		ref := urlGen().Draw(t, "url")
		if rapid.Bool().Draw(t, "relative") {
			ref = strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(t, "pieces"), "")
		}
		for _, b := range bases {
			checkFastPath(t, b.n, b, ref)
		}
	})
}

func TestCommonLinksAreResolvedWithoutTheParser(t *testing.T) {
	base, err := New().Base("http://a.example/x/y/z.html")
	require.NoError(t, err)
	for ref, want := range map[string]string{
		"w.html#part":         "http://a.example/x/y/w.html",
		"#part":               "http://a.example/x/y/z.html",
		"../w.html":           "http://a.example/x/w.html",
		"./w.html":            "http://a.example/x/y/w.html",
		"../../../w.html#p:q": "http://a.example/w.html",
		"w.html?a=b:c":        "http://a.example/x/y/w.html?a=b:c",
	} {
		s, ok := base.plain(ref)
		require.True(t, ok, ref)
		_, ok = parsePlain(s)
		require.True(t, ok, ref)
		got, err := base.Resolve(ref)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestResolveOfNormalIsItself(t *testing.T) {
	n := New()
	base, err := n.Base("https://user@b.example:8080/x/y?z")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		s, err := n.Normalize(urlGen().Draw(t, "url"))
		if err != nil {
			return
		}
		got, err := base.Resolve(s)
		require.NoError(t, err)
		require.Equal(t, s, got)
	})
}

func FuzzNormalize(f *testing.F) {
	for _, c := range loadWPT(f) {
		f.Add(c.Input)
	}
	parse, def, all := &Normalizer{}, New(), New(allRules()...)
	base, err := def.Base("http://a.example/x/y?z")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, raw string) {
		for _, n := range []*Normalizer{parse, def, all} {
			checkIdempotent(t, n, raw)
		}
		checkFastPath(t, def, base, raw)
		if _, err := base.Resolve(raw); err != nil && !errors.Is(err, ErrScheme) && !errors.Is(err, ErrTooLong) && !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: undocumented error %v", raw, err)
		}
	})
}

func BenchmarkNormalize(b *testing.B) { // what does one URL cost, plain and not?
	for name, raw := range map[string]string{
		"url=plain":   "https://www.a.example/section/page.html?id=12345&lang=en",
		"url=escapes": "https://www.a.example/section/%7Epage.html?id=12345&lang=en",
		"url=idn":     "https://www.bücher.example/section/page.html?id=12345",
	} {
		b.Run(name, func(b *testing.B) {
			n := New()
			b.ReportAllocs()
			for b.Loop() {
				_, _ = n.Normalize(raw)
			}
		})
	}
}

func BenchmarkResolve(b *testing.B) { // what does one link of a page cost?
	for name, ref := range map[string]string{
		"ref=path":     "/section/page.html?id=12345",
		"ref=relative": "page.html",
		"ref=dots":     "../page.html",
		"ref=fragment": "page.html#part",
	} {
		b.Run(name, func(b *testing.B) {
			base, _ := New().Base("https://www.a.example/x/y")
			b.ReportAllocs()
			for b.Loop() {
				_, _ = base.Resolve(ref)
			}
		})
	}
}

func TestRegistrableDomain(t *testing.T) {
	for host, want := range map[string]string{
		"a.b.example.co.uk":    "example.co.uk",
		"EXAMPLE.com.":         "example.com",
		"www.bücher.example":   "xn--bcher-kva.example",
		"pages.me.github.io":   "me.github.io",
		"host.internal.corp":   "internal.corp",
		"xn--bcher-kva.a.test": "a.test",
	} {
		got, err := RegistrableDomain(host)
		assert.NoError(t, err, host)
		assert.Equal(t, want, got, host)
	}
	for host, want := range map[string]error{
		"co.uk": ErrNoDomain, "localhost": ErrNoDomain, "192.168.1.1": ErrNoDomain, "0x7f.1": ErrNoDomain, "[::1]": ErrNoDomain, "::1": ErrNoDomain,
		"": ErrSyntax, ".": ErrSyntax, ".com": ErrSyntax, "a..com": ErrSyntax, "a.com:80": ErrSyntax, "http://a.com": ErrSyntax, "user@a.com": ErrSyntax, "a b.com": ErrSyntax,
	} {
		got, err := RegistrableDomain(host)
		assert.ErrorIs(t, err, want, host)
		assert.Empty(t, got, host)
	}
}
