// This file tests what the suite does not: damage, limits, encodings, locations.

package sitemap

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"
)

const home = "https://a.example/sitemap.xml"

// read returns the URLs of a file and its errors.
func read(body string, o Options) (urls []string, errs []error) {
	if o.URL == "" {
		o.URL = home
	}
	for e, err := range NewReader(strings.NewReader(body), o).All() {
		if err != nil {
			errs = append(errs, err)
		} else {
			urls = append(urls, e.URL)
		}
	}
	return urls, errs
}

func urlset(entries string) string {
	return `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + entries + `</urlset>`
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return b.String()
}

// Links to the same page in other languages are given out, each before its entry, if
// they are asked for.
func TestAlternates(t *testing.T) {
	body := urlset(`<url><xhtml:link rel="alternate" hreflang="de" href="https://a.example/de"/>
		<loc>https://a.example/en</loc>
		<xhtml:link rel="ALTERNATE" hreflang="fr" href="https://b.example/fr?a=1&amp;b=2"></xhtml:link>
		<xhtml:link rel="canonical" href="https://a.example/c"/><xhtml:link rel="alternate" hreflang="x"/>
		<lastmod>2026-01-02</lastmod></url><xhtml:link rel="alternate" href="https://a.example/outside"/>
		<url><loc>https://a.example/last</loc></url>`)
	var got []string
	var errs []error
	for e, err := range NewReader(strings.NewReader(body), Options{URL: home, Alternates: true}).All() {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		got = append(got, fmt.Sprint(e.URL, " ", e.Alternate, " ", e.Modified.IsZero()))
	}
	assert.Equal(t, []string{
		"https://a.example/de true true", "https://b.example/fr?a=1&b=2 true true", "https://a.example/en false false", "https://a.example/last false true",
	}, got)
	require.Len(t, errs, 1, "one has no address")
	assert.ErrorIs(t, errs[0], ErrURL)
	urls, errs := read(body, Options{})
	assert.Equal(t, []string{"https://a.example/en", "https://a.example/last"}, urls)
	assert.Empty(t, errs)
}

func TestDamage(t *testing.T) {
	const a, b, c = "<url><loc>https://a.example/a</loc></url>", "<url><loc>https://a.example/b</loc></url>", "<url><loc>https://a.example/c</loc></url>"
	for name, row := range map[string]struct {
		body string
		want string // last letters of the URLs
		errs []error
	}{
		"nothing":                 {urlset(a + b + c), "abc", nil},
		"no root":                 {a + b, "ab", nil},
		"entry not closed":        {urlset("<url><loc>https://a.example/a</loc>" + b), "ab", []error{ErrSyntax}},
		"loc not closed":          {urlset("<url><loc>https://a.example/a</url>" + b), "ab", []error{ErrSyntax}},
		"loc not closed, date":    {urlset("<url><loc>https://a.example/a<lastmod>2020</lastmod></url>" + b), "ab", []error{ErrSyntax}},
		"cut in a URL":            {urlset(a) + "<url><loc>https://a.example/b", "a", []error{ErrSyntax}},
		"cut in a tag":            {urlset(a) + "<url><lo", "a", []error{ErrSyntax, ErrSyntax}},
		"cut after the URL":       {"<urlset>" + a + "<url><loc>https://a.example/b</loc><lastmod>20", "ab", []error{ErrSyntax}},
		"tag not closed":          {urlset(a + "<url <loc>x</loc></url>" + c), "ac", []error{ErrSyntax}},
		"quote not closed":        {urlset(a + `<url x="y><loc>https://a.example/b</loc></url>` + c), "ac", []error{ErrSyntax}},
		"stray characters":        {urlset(a + " & < ]]> \x01 " + b), "ab", []error{ErrSyntax}},
		"stray end tags":          {urlset(a + "</loc></url></x>" + b), "ab", nil},
		"no loc":                  {urlset("<url><lastmod>2020</lastmod></url>" + b), "b", []error{ErrURL}},
		"empty loc":               {urlset("<url><loc> </loc></url>" + b), "b", []error{ErrURL}},
		"mail address":            {urlset("<url><loc>mailto:me@a.example</loc></url>" + b), "b", []error{ErrURL}},
		"bad date":                {urlset("<url><loc>/a</loc><lastmod>soon</lastmod></url>" + b), "ab", []error{ErrDate}},
		"bad priority":            {urlset("<url><loc>/a</loc><priority>7</priority></url>" + b), "ab", []error{ErrPriority}},
		"comment not closed":      {urlset(a + "<!-- " + b), "a", []error{ErrSyntax}},
		"comments":                {urlset("<!-- " + a + " -->" + b + "<!----->" + c), "bc", nil},
		"text in front":           {"\n Warning: PHP is not well\n" + urlset(a), "a", nil},
		"document type":           {`<!DOCTYPE urlset [<!ENTITY x "<url>">]>` + urlset(a), "a", nil},
		"entities are not those":  {`<!DOCTYPE urlset [<!ENTITY x "a">]>` + urlset("<url><loc>/&x;</loc></url>"+b), ";b", nil},
		"ampersands not escaped":  {urlset("<url><loc>/?x=1&copy=a</loc></url>" + b), "ab", nil},
		"CDATA and references":    {urlset("<url><loc><![CDATA[https://a.example/]]>&#97;</loc></url>" + b), "ab", nil},
		"elements with prefix":    {strings.NewReplacer("<url>", "<s:url>", "</url>", "</s:url>", "<loc", "<s:loc", "</loc", "</s:loc").Replace(urlset(a + b)), "ab", nil},
		"upper-case reference":    {urlset("<url><loc>/&#X61;</loc></url>"), "a", nil},
		"not in its encoding":     {urlset("<url><loc>/\xe9</loc></url>" + b), "b", []error{ErrURL}},
		"a page":                  {"<!DOCTYPE html><html><body>" + a, "", []error{ErrFormat}},
		"nothing of ours":         {"<note><to>you</to></note>", "", []error{ErrFormat}},
		"empty":                   {"", "", []error{ErrFormat}},
		"binary":                  {"GIF89a;;\x00\x00\x00", "", []error{ErrFormat}},
		"compressed, cut":         {zipped(urlset(a + b))[:60], "", []error{io.ErrUnexpectedEOF}},
		"compressed twice":        {zipped(zipped(urlset(a + b))), "ab", nil},
		"index and pages mixed":   {"<sitemapindex><sitemap><loc>/a</loc></sitemap>" + b + "</sitemapindex>", "ab", nil},
		"images are passed over":  {urlset("<url><image:image><image:loc>https://a.example/x.png</image:loc></image:image><loc>/a</loc></url>" + b), "ab", nil},
		"also without prefix":     {urlset("<url><image xmlns='i'><loc>https://a.example/x.png</loc></image><loc>/a</loc></url>" + b), "ab", nil},
		"also at the wrong place": {urlset("<url><image:loc>https://a.example/x.png</image:loc><loc>/a</loc><xhtml:link rel='alternate' hreflang='de' href='/de'/></url>" + b), "ab", nil},
	} {
		t.Run(name, func(t *testing.T) {
			urls, errs := read(row.body, Options{})
			got := ""
			for _, u := range urls {
				got += u[len(u)-1:]
			}
			assert.Equal(t, row.want, got)
			require.Len(t, errs, len(row.errs), "%v", errs)
			for i := range errs {
				assert.ErrorIs(t, errs[i], row.errs[i])
			}
		})
	}
}

func TestErrorsHavePositions(t *testing.T) {
	_, errs := read("<urlset>\n<url><loc>/a</loc></url>\n\n<url>\n<loc>https://b.example/</loc></url>\n", Options{})
	require.Len(t, errs, 1)
	var e *Error
	require.ErrorAs(t, errs[0], &e)
	assert.Equal(t, Error{URL: home, Line: 4, Text: "https://b.example/", Err: ErrLocation}, *e)
	_, errs = read("https://a.example/\r\nb\rhttps://a.example/c\n\nmailto:x", Options{})
	require.Len(t, errs, 2)
	assert.ErrorContains(t, errs[0], `line 2: no usable URL`)
	assert.ErrorContains(t, errs[1], `line 5: no usable URL`)
}

// Whatever is put into a file, wherever: no entry but the one it is put into is lost
// or changed.
func TestDamageStaysWhereItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "entries")
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf("<url>\n<loc>https://a.example/%d</loc>\n<lastmod>2020-01-01</lastmod></url>\n", i))
		}
		hit := rapid.IntRange(0, n-1).Draw(t, "hit")
		at := rapid.IntRange(0, len(parts[hit])).Draw(t, "at")
		junk := rapid.SampledFrom([]string{"<", ">", "&", "\"", "'", "<url>", "</url>", "<loc>", "</loc>", "<b>", "</b>", "<lastmod>", "\x01", "\xff", "]]>", "--", "<x y='", "<>", "&#0;", "<?x?>"}).Draw(t, "junk")
		parts[hit] = parts[hit][:at] + junk + parts[hit][at:]
		urls, _ := read("<urlset>"+strings.Join(parts, "")+"</urlset>", Options{})
		for i := range n {
			if i != hit {
				assert.Contains(t, urls, fmt.Sprintf("https://a.example/%d", i))
			}
		}
	})
}

func TestWhatIsBeforeAFailureIsKept(t *testing.T) {
	gone := errors.New("connection lost")
	for _, body := range []string{"<urlset><url><loc>https://a.example/a</loc></url><url>", "https://a.example/a\n"} {
		src := io.MultiReader(strings.NewReader(body), iotest.ErrReader(gone))
		var urls []string
		var last error
		for e, err := range NewReader(src, Options{URL: home}).All() {
			if last = err; err == nil {
				urls = append(urls, e.URL)
			}
		}
		assert.Equal(t, []string{"https://a.example/a"}, urls)
		assert.ErrorIs(t, last, gone)
	}
}

func TestLimits(t *testing.T) {
	entry := "<url><loc>/a</loc></url>\n"
	urls, errs := read(urlset(strings.Repeat(entry, 12)), Options{MaxURLs: 10})
	assert.Len(t, urls, 10)
	require.Len(t, errs, 1)
	assert.ErrorIs(t, errs[0], ErrTooMany)

	_, errs = read(urlset(strings.Repeat(entry, 10)), Options{MaxURLs: 10})
	assert.Empty(t, errs)

	body := urlset(strings.Repeat(entry, 1000))
	for _, b := range []string{body, zipped(body)} {
		urls, errs = read(b, Options{MaxBytes: 20_000})
		assert.InDelta(t, 20_000/len(entry), len(urls), 4)
		require.NotEmpty(t, errs)
		assert.ErrorIs(t, errs[len(errs)-1], ErrTooLarge)
		_, errs = read(b, Options{MaxBytes: int64(len(body))})
		assert.Empty(t, errs)
	}

	r := NewReader(strings.NewReader(urlset(strings.Repeat("<url></url>", 500))), Options{})
	n := 0
	for range r.All() {
		n++
	}
	assert.Equal(t, 100, n)
	assert.Equal(t, 500, r.Errors())
	assert.Equal(t, URLSet, r.Format())

	long := strings.Repeat("x", 3*bufferSize)
	urls, _ = read(urlset("<url><loc>/"+long+"</loc></url><"+long+"><url><loc>/b</loc></url><url a='"+long+"'><loc>/c</loc></url><url><loc>/d</loc></url>"), Options{})
	assert.Equal(t, []string{"https://a.example/b", "https://a.example/d"}, urls)
	urls, _ = read("/"+long+"\nhttps://a.example/b", Options{})
	assert.Equal(t, []string{"https://a.example/b"}, urls)
}

func TestEncodings(t *testing.T) {
	body := `<?xml version="1.0" encoding='%s'?><urlset><url><loc>https://a.example/é</loc></url></urlset>`
	encode := func(name string, e interface {
		Bytes([]byte) ([]byte, error)
	}) string {
		b, err := e.Bytes([]byte(fmt.Sprintf(body, name)))
		require.NoError(t, err)
		return string(b)
	}
	latin := charmap.ISO8859_1.NewEncoder()
	for name, row := range map[string]struct{ body, contentType string }{
		"UTF-8":                       {fmt.Sprintf(body, "UTF-8"), ""},
		"UTF-8 with a mark":           {"\uFEFF" + fmt.Sprintf(body, "UTF-8"), ""},
		"declared":                    {encode("ISO-8859-1", latin), ""},
		"the header counts more":      {encode("UTF-8", latin), "text/xml; charset=iso-8859-1"},
		"an unknown charset does not": {encode("ISO-8859-1", latin), "text/xml; charset=bogus"},
		"UTF-16 with a mark":          {encode("UTF-16", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder()), ""},
		"UTF-16 without one":          {encode("UTF-16", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder()), ""},
		"UTF-16, the other":           {encode("UTF-16", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder()), ""},
		"UTF-16 that is none":         {fmt.Sprintf(body, "UTF-16"), ""},
	} {
		urls, errs := read(row.body, Options{ContentType: row.contentType})
		assert.Equal(t, []string{"https://a.example/%C3%A9"}, urls, name)
		assert.Empty(t, errs, name)
	}
}

func TestLocations(t *testing.T) {
	urls := []string{
		"https://a.example/shop/x", "https://a.example/", "http://a.example/shop/x", "https://a.example:8443/shop/x", "https://b.example/x", "https://c.example/",
	}
	body := urlset("<url><loc>" + strings.Join(urls, "</loc></url><url><loc>") + "</loc></url>")
	file := "https://a.example/shop/sitemap.xml?x=/y/"
	for name, row := range map[string]struct {
		o    Options
		want []int
	}{
		"own folder": {Options{URL: file}, []int{0}},
		"own host":   {Options{URL: file, Locations: OwnHost}, []int{0, 1, 2, 3}},
		"any":        {Options{URL: file, Locations: AnyURL}, []int{0, 1, 2, 3, 4, 5}},
		"no place":   {Options{URL: "shop.xml"}, []int{0, 1, 2, 3, 4, 5}},
		"robots.txt": {Options{URL: file, Hosts: []string{"B.example"}}, []int{0, 4}},
	} {
		var want []string
		for _, i := range row.want {
			want = append(want, urls[i])
		}
		got, errs := read(body, row.o)
		assert.Equal(t, want, got, name)
		assert.Len(t, errs, len(urls)-len(want), name)
	}
	got, _ := read(strings.NewReplacer("urlset", "sitemapindex", "url>", "sitemap>").Replace(body), Options{URL: file})
	assert.Equal(t, urls[:4], got, "an index may name files of its host")
}

func TestHints(t *testing.T) {
	body := urlset(`<url><loc>/a</loc><lastmod>2024-05-06T07:08:09+02:00</lastmod><changefreq> Weekly</changefreq><priority>0,5</priority></url><url><loc>/b</loc></url>`)
	var got []Entry
	for e, err := range NewReader(strings.NewReader(body), Options{URL: home}).All() {
		require.NoError(t, err)
		got = append(got, e)
	}
	assert.Equal(t, []Entry{
		{URL: "https://a.example/a", Modified: time.Date(2024, 5, 6, 5, 8, 9, 0, time.UTC), Changes: Weekly, Priority: .5, HasPriority: true, Line: 1},
		{URL: "https://a.example/b", Priority: .5, Line: 1},
	}, got)
	for f := Unstated; f <= Never; f++ {
		assert.Equal(t, f, parseFrequency(f.String()))
	}
	d, ok := Daily.Interval()
	assert.Equal(t, 24*time.Hour, d)
	assert.True(t, ok)
	_, ok = Unstated.Interval()
	assert.False(t, ok)
}

func TestDates(t *testing.T) {
	at := time.Date(2009, 9, 6, 16, 20, 0, 0, time.UTC)
	for _, s := range []string{
		"2009-09-06T16:20:00Z", "2009-09-06T16:20:00.000Z", "2009-09-06T18:20+02:00", "2009-09-06 16:20:00", "2009-09-06T16:20:00+0000", "2009-09-06 18:20:00 +0200",
		"2009-09-06t16:20:00z", "2009-09-06T16:20Z", "20090906T162000Z", "2009-09-06 16:20:00 UTC", "2009/09/06 16:20:00", "2009-9-6 16:20", "2009-09-06 18:20:00 CEST", "1252254000", "1252254000000",
		"Sun Sep 06 2009 18:20:00 GMT+0200 (Central European Summer Time)", "Sun Sep  6 16:20:00 2009", "Sun Sep 06 18:20:00 CEST 2009", "Sunday, 06-Sep-09 16:20:00 GMT", "Sep 6, 2009 4:20 PM",
		"September 6, 2009 16:20", "6 Sept. 2009 16:20", "06 september 2009 16:20:00 utc", "Sun, 06 Sep 2009 18:20:00 +02:00", "6.9.2009 16:20",
		"Sun, 06 Sep 2009 16:20:00 +0000", "Sun, 6 Sep 09 12:20 EDT", "6 Sep 2009 16:20:00 GMT", "dim, 06 Sep 2009  16:20:00 UT",
	} {
		got, ok := parseDate(s)
		assert.True(t, ok, s)
		assert.Equal(t, at, got, s)
	}
	for s, want := range map[string]string{"2009": "2009-01-01", "2009-09": "2009-09-01", "2009-09-06": "2009-09-06", "20090906": "2009-09-06", "2009-09-06Z": "2009-09-06", "2009-09-06+02:00": "2009-09-05", "2009-09z": "2009-09-01", "2009Z": "2009-01-01",
		"September 6, 2009": "2009-09-06", "6 sep 2009": "2009-09-06", "2009/09/06": "2009-09-06", "Sunday, September 6, 2009": "2009-09-06"} {
		got, ok := parseDate(s)
		assert.True(t, ok, s)
		assert.Equal(t, want, got.Format(time.DateOnly), s)
	}
	for _, s := range []string{"", "0000-00-00", "yesterday", "2009-13-01", strings.Repeat("2009 ", 40)} {
		_, ok := parseDate(s)
		assert.False(t, ok, s)
	}
}

func TestFeeds(t *testing.T) {
	urls, errs := read(`<rdf:RDF xmlns:dc="d"><channel><link>/</link></channel><item rdf:about="/x"><title>t</title><link>/a</link><dc:date>2020-01-01</dc:date></item></rdf:RDF>`, Options{})
	assert.Equal(t, []string{"https://a.example/a"}, urls)
	assert.Empty(t, errs)
	urls, errs = read(`<rss><channel><item><atom:link rel="self" href="/self"/><link>/a</link></item><item><guid>tag:1</guid></item></channel></rss>`, Options{})
	assert.Equal(t, []string{"https://a.example/a"}, urls)
	require.Len(t, errs, 1)
	assert.ErrorIs(t, errs[0], ErrURL)
	urls, errs = read(`<feed xml:base="/blog/"><link href="/"/><entry><link rel="edit" href="e"/><link rel='alternate' href='a'/><link href="b"/></entry><entry xml:base="/new/"><link href="c"/></entry></feed>`, Options{URL: "https://a.example/feeds/atom"})
	assert.Equal(t, []string{"https://a.example/blog/a", "https://a.example/new/c"}, urls)
	assert.Empty(t, errs)
}

func TestAllMayBeLeft(t *testing.T) {
	r := NewReader(strings.NewReader(urlset(strings.Repeat("<url><loc>/a</loc></url>", 5))), Options{URL: home})
	for range r.All() {
		break
	}
	for range r.All() {
		t.Error("it is read once")
	}
}

// Any bytes are read to an end, within the limits, and what comes out is what
// normalizing makes of it again.
func FuzzReader(f *testing.F) {
	raw, err := os.ReadFile("testdata/sitemaps_crawlercommons.json")
	require.NoError(f, err)
	var suite struct {
		Cases []struct {
			Body    string
			BodyB64 []byte `json:"body_b64"`
		}
	}
	require.NoError(f, json.Unmarshal(raw, &suite))
	for _, c := range suite.Cases {
		f.Add(append(c.BodyB64, c.Body...))
	}
	f.Add([]byte(urlset("<url><loc>/a</loc><lastmod>2020-01-01</lastmod><priority>.5</priority></url>")))
	f.Add([]byte("<sitemapindex><sitemap><loc><![CDATA[/a]]></loc></sitemap>"))
	f.Add([]byte("<rss><channel><item><link>/a?b&amp;c</link><pubDate>Sun, 06 Sep 2009 16:20:00 +0000</pubDate></item>"))
	f.Add([]byte(`<feed xml:base="/x/"><entry><link href="a"/></entry></feed>`))
	f.Add([]byte("\uFEFFhttps://a.example/a\r\nwww.a.example/\r"))
	f.Add([]byte(zipped("https://a.example/a")))
	f.Add([]byte("<urlset><!DOCTYPE [[>]]><url <loc a='>'></url>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := NewReader(bytes.NewReader(body), Options{URL: home, MaxURLs: 50, MaxErrors: 50})
		n, errs := 0, 0
		for e, err := range r.All() {
			if err != nil {
				if errs++; err.Error() == "" {
					t.Error("an error that says nothing")
				}
				continue
			}
			n++
			if again, err := r.opts.Normalizer.Normalize(e.URL); err != nil || again != e.URL {
				t.Errorf("%q is %q when normalized again, %v", e.URL, again, err)
			}
			if !strings.HasPrefix(e.URL, "https://a.example/") && r.format != Index && r.format != RSS && r.format != Atom {
				t.Errorf("%q is outside", e.URL)
			}
			if e.Priority < 0 || e.Priority > 1 || e.Line < 1 {
				t.Errorf("%+v", e)
			}
		}
		if n > 50 || errs > 52 {
			t.Errorf("%d entries, %d errors", n, errs)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	body := urlset(strings.Repeat("  <url>\n    <loc>https://a.example/catalog/item?id=12345678</loc>\n    <lastmod>2024-05-06T07:08:09+02:00</lastmod>\n  </url>\n", 10_000))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		read(body, Options{})
	}
}

func TestPlaces(t *testing.T) {
	assert.Contains(t, Places("http://A.example:8080/x/y?z"), "http://a.example:8080/sitemap.xml")
	assert.Nil(t, Places("mailto:x"))
}
