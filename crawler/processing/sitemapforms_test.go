// This file tests what is taken for a sitemap.

package processing

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/crawllog"
)

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return b.String()
}

func inUTF16(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		b.Write([]byte{byte(u), byte(u >> 8)})
	}
	return b.String()
}

// What a robots.txt, or an index that it names, calls a sitemap is read, whatever its name, its media
// type, its coding, its encoding, the line that names it and the redirects to it. What cannot be read
// is recorded and counted.
func TestWhateverIsCalledASitemapIsRead(t *testing.T) {
	const urlset = `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://a.example/x</loc></url></urlset>`
	for name, c := range map[string]struct {
		line, path, kind, body string
		unread                 bool
	}{
		"any name":                  {path: "/list", body: urlset},
		"gzip of any name":          {path: "/Google_map.xml.gz", body: gzipped(urlset)},
		"gzip named XML":            {path: "/sitemap.xml", body: gzipped(urlset)},
		"gzip, a script":            {path: "/map.php?id=7", body: gzipped(urlset), kind: "application/octet-stream"},
		"gzip twice":                {path: "/map", body: gzipped(gzipped(urlset))},
		"HTML by its type":          {path: "/map", body: urlset, kind: "text/html"},
		"text by its type":          {path: "/map", body: urlset, kind: "text/plain"},
		"a picture by its type":     {path: "/map", body: urlset, kind: "image/png"},
		"UTF-16":                    {path: "/map", body: "\xff\xfe" + inUTF16(urlset)},
		"UTF-16 without a mark":     {path: "/map", body: inUTF16(urlset)},
		"UTF-16 in gzip":            {path: "/map", body: gzipped("\xff\xfe" + inUTF16(urlset))},
		"Latin-1":                   {path: "/map", body: strings.Replace(strings.Replace(urlset, "UTF-8", "iso-8859-1", 1), "<url>", "<url><loc>/caf\xe9</loc></url><url>", 1)},
		"text in front":             {path: "/map", body: "Warning: <b>headers</b> already sent\n" + urlset},
		"no root":                   {path: "/map", body: "<url><loc>http://a.example/x</loc></url>"},
		"text":                      {path: "/list", body: "# pages\r\n\"http://a.example/x\"\r\n"},
		"text, no scheme at first":  {path: "/list.txt", body: "a.example/y\nhttp://a.example/x\n"},
		"text, in UTF-16":           {path: "/list", body: "\xff\xfe" + inUTF16("http://a.example/x\r\n")},
		"text, only paths":          {path: "/list", body: "/y\n/x\n"},
		"a feed":                    {path: "/f", body: "<rss><channel><item><link>http://a.example/x</link></item></channel></rss>"},
		"relative line":             {line: "/maps/all", path: "/maps/all", body: urlset},
		"relative, no slash":        {line: "all.xml", path: "/all.xml", body: urlset},
		"a line without its scheme": {line: "a.example/map", path: "/map", body: urlset},
		"a line with two slashes":   {line: "//a.example/map", path: "/map", body: urlset},
		"a line in brackets":        {line: "<http://a.example/map>", path: "/map", body: urlset},
		"an error in text":          {path: "/map", body: "no such file", unread: true},
		"an error in HTML":          {path: "/map", body: "<html><p>no such file", kind: "text/html", unread: true},
		"binary":                    {path: "/map", body: "\x7fELF\x00\x00", unread: true},
		"nothing":                   {path: "/map", unread: true},
	} {
		for _, way := range []string{"robots.txt", "an index", "a redirect"} {
			t.Run(name+", named by "+way, func(t *testing.T) {
				if c.line == "" {
					c.line = "http://a.example" + c.path
				}
				named := c.line
				switch {
				case way == "an index" && c.line != "http://a.example"+c.path, way == "a redirect" && c.line != "http://a.example"+c.path:
					t.Skip("the line is the case")
				case way != "robots.txt":
					named = "/first"
				}
				asked := map[string]bool{}
				var mu sync.Mutex
				s := &site{Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					asked[r.URL.Path] = true
					mu.Unlock()
					switch r.URL.RequestURI() {
					case "/robots.txt":
						fmt.Fprintf(w, "User-agent: *\nDisallow:\nSitemaps: %s\n", named)
					case "/first":
						if way == "a redirect" {
							http.Redirect(w, r, c.path, http.StatusFound)
						} else {
							fmt.Fprintf(w, "<sitemapindex><sitemap><loc>http://a.example%s</loc></sitemap></sitemapindex>", c.path)
						}
					case c.path:
						w.Header().Set("Content-Type", c.kind)
						_, _ = w.Write([]byte(c.body))
					case "/":
					default:
						http.NotFound(w, r)
					}
				}))}
				t.Cleanup(s.Close)
				var reasons []string
				p := crawl(t, s, func(f *frontier.Frontier, o *crawler.Options) {
					sm := NewSitemaps(f, SitemapOptions{UserAgent: agent, Logger: slog.New(slog.DiscardHandler)})
					o.Robots, o.OnPage, o.Larger = sm, sm.Handle, sm.Larger
					o.OnEnd = func(x crawllog.Record) {
						mu.Lock()
						defer mu.Unlock()
						if x.Outcome == crawllog.Fetched && x.Reason != "" {
							reasons = append(reasons, x.Reason)
						}
					}
				}, "http://a.example/")
				assert.Equal(t, !c.unread, asked["/x"], "the page that it lists is asked for")
				assert.Equal(t, c.unread, p.Unread == 1)
				assert.Equal(t, c.unread, len(reasons) == 1, "%q", reasons)
			})
		}
	}
}

// A file that nothing calls a sitemap is one if it begins like one.
func TestWhatIsNotCalledASitemap(t *testing.T) {
	f, err := frontier.Open(t.Context(), frontier.Options{})
	require.NoError(t, err)
	sm := NewSitemaps(f, SitemapOptions{MaxBytes: 7})
	for head, want := range map[string]int64{
		"<urlset>": 7, "<!-- --><rss version='2.0'>": 7, "http://a.example/\n": 7, gzipped("<feed xmlns='a'>"): 7, inUTF16("<?xml?><urlset>"): 7,
		"<html><pre><urlset>": 0, "<feedback>": 0, "<?xml version='1.0'?><svg>": 0, "text": 0, "": 0, gzipped("text"): 0, "\x1f\x8b": 0,
	} {
		assert.Equal(t, want, sm.Larger(frontier.Entry{URL: "http://a.example/page"}, http.Header{}, []byte(head)), "%q", head)
	}
	assert.EqualValues(t, 7, sm.Larger(frontier.Entry{URL: "http://a.example/page", Meta: crawler.ListMeta()}, http.Header{}, []byte("text")))
	require.NoError(t, f.Close())
}
