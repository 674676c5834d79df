// This file tests modules in whole crawls of hosts on loopback.

package processing

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/crawler/neardup"
	"github.com/seed-7440039f/frontier/crawler/spool"
	"github.com/seed-7440039f/frontier/crawler/warc"
)

const agent = "testbot/1.0"

// site serves pages by host and path.
type site struct {
	*httptest.Server
	pages map[string]string

	mu   sync.Mutex
	asks map[string]int // guarded by mu
}

func serve(t testing.TB, pages map[string]string) *site {
	s := &site{pages: pages, asks: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Host + r.URL.RequestURI()
		s.mu.Lock()
		s.asks[key]++
		s.mu.Unlock()
		body, ok := s.pages[key]
		switch {
		case !ok:
			http.NotFound(w, r)
		case strings.HasPrefix(body, "->"):
			http.Redirect(w, r, body[2:], http.StatusFound)
		default:
			kind := "text/html"
			if strings.HasSuffix(key, ".xml") || strings.HasSuffix(key, ".txt") {
				kind = "text/plain"
			}
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(body))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// dialTo connects to addr whatever was asked for.
func dialTo(addr string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}

// options are for a quick crawl of the server at addr.
func options(addr string) (frontier.Options, crawler.Options, error) {
	networks := fetch.Networks{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	fetcher, err := fetch.New(fetch.Options{UserAgent: agent, Dial: dialTo(addr), Networks: networks})
	return frontier.Options{Delay: frontier.FixedDelay(0)}, crawler.Options{Workers: 4, UserAgent: agent, Fetcher: fetcher}, err
}

// crawl crawls a site from its seeds.
func crawl(t testing.TB, s *site, use func(*frontier.Frontier, *crawler.Options), seeds ...string) crawler.Progress {
	fo, co, err := options(s.Listener.Addr().String())
	require.NoError(t, err)
	f, err := frontier.Open(t.Context(), fo)
	require.NoError(t, err)
	use(f, &co)
	c, err := crawler.New(f, co)
	require.NoError(t, err)
	_, err = c.Seed(t.Context(), seeds...)
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
	return c.Progress()
}

// prose is a text, another for each seed.
func prose(seed int) string {
	var b strings.Builder
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	for range 80 {
		fmt.Fprintf(&b, "%c%c%c%c ", 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26))
	}
	return b.String()
}

func TestArchive(t *testing.T) {
	s := serve(t, map[string]string{"a.example/": "<a href=/two>two</a> <a href=/moved>m</a> <a href=/none>n</a>", "a.example/two": "two", "a.example/moved": "->/three", "a.example/three": "two"})
	dir := t.TempDir()
	w, err := warc.Open(dir, warc.Options{Remember: 10})
	require.NoError(t, err)
	crawl(t, s, func(_ *frontier.Frontier, o *crawler.Options) { AddArchive(o, w, ArchiveOptions{}) }, "http://a.example/")
	require.NoError(t, w.Close())
	assert.Equal(t, []string{"http://a.example/ response", "http://a.example/moved response", "http://a.example/none revisit", "http://a.example/robots.txt response", "http://a.example/three revisit", "http://a.example/two response"}, archived(t, dir))
}

// AddArchive keeps existing handlers, and leaves robots.txt out on request.
func TestArchiveBesideOthers(t *testing.T) {
	for _, noRobots := range []bool{false, true} {
		s := serve(t, map[string]string{"a.example/": "x", "a.example/robots.txt": "User-agent: *\nDisallow: /x\n"})
		dir := t.TempDir()
		w, err := warc.Open(dir, warc.Options{})
		require.NoError(t, err)
		var pages, robots atomic.Int64
		crawl(t, s, func(_ *frontier.Frontier, o *crawler.Options) {
			o.OnPage = func(context.Context, *crawler.Page) error { pages.Add(1); return nil }
			o.OnRobots = func(context.Context, *fetch.Result) error { robots.Add(1); return nil }
			AddArchive(o, w, ArchiveOptions{NoRobots: noRobots})
		}, "http://a.example/")
		require.NoError(t, w.Close())
		want := []string{"http://a.example/ response", "http://a.example/robots.txt response"}
		if noRobots {
			want = want[:1]
		}
		assert.Equal(t, want, archived(t, dir))
		assert.EqualValues(t, 1, pages.Load())
		assert.EqualValues(t, 1, robots.Load())
	}
}

// Pages that ask not to be archived are archived, except with HonourNoArchive.
func TestNoArchive(t *testing.T) {
	tags := map[string]string{"/all": "noindex, noarchive", "/us": "Test: noarchive", "/others": "otherbot: noarchive", "/file": "noarchive"}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := "text/html"
		if r.URL.Path == "/file" {
			kind = "application/pdf"
		}
		w.Header().Set("Content-Type", kind)
		if tag := tags[r.URL.Path]; tag != "" {
			w.Header().Set("X-Robots-Tag", tag)
		}
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/":
			fmt.Fprint(w, "<a href=/all>1</a><a href=/us>2</a><a href=/others>3</a><a href=/file>4</a><a href=/meta>5</a>")
		case "/meta":
			fmt.Fprint(w, "<meta name=robots content=noarchive>")
		default:
			fmt.Fprint(w, r.URL.Path)
		}
	}))
	t.Cleanup(s.Close)
	for honour, want := range map[bool][]string{false: {"/", "/all", "/file", "/meta", "/others", "/us"}, true: {"/", "/others"}} {
		dir := t.TempDir()
		w, err := warc.Open(dir, warc.Options{})
		require.NoError(t, err)
		crawl(t, &site{Server: s}, func(_ *frontier.Frontier, o *crawler.Options) {
			AddArchive(o, w, ArchiveOptions{NoRobots: true, HonourNoArchive: honour, UserAgent: "test/1.0"})
		}, "http://a.example/")
		require.NoError(t, w.Close())
		for i := range want {
			want[i] = "http://a.example" + want[i] + " response"
		}
		assert.Equal(t, want, archived(t, dir))
	}
}

// archived are the URLs and types of answers in a folder's files, which must be whole.
func archived(t testing.TB, dir string) (all []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	require.NoError(t, err)
	for _, name := range files {
		f, err := os.Open(name)
		require.NoError(t, err)
		r := warc.NewReader(f)
		r.Verify = true
		for rec, err := range r.Records() {
			require.NoError(t, err)
			if rec.Type == warc.Response || rec.Type == warc.Revisit {
				all = append(all, rec.TargetURI+" "+rec.Type)
				resp, err := rec.HTTP()
				require.NoError(t, err)
				assert.NotZero(t, resp.StatusCode)
			}
		}
		require.NoError(t, f.Close())
	}
	slices.Sort(all)
	return all
}

func TestContentSeen(t *testing.T) {
	pages := map[string]string{}
	for i := range 12 {
		links := fmt.Sprintf("<nav><a href=/%d>next</a></nav><p>", i+1)
		if i == 0 {
			links += "<a href=http://mirror.example/0>m</a>"
		}
		pages[fmt.Sprint("a.example/", i)] = links + prose(i)
		pages[fmt.Sprint("mirror.example/", i)] = links + prose(i)
	}
	var mu sync.Mutex
	var mirrors []neardup.Mirror
	for _, skip := range []bool{false, true} {
		s := serve(t, pages)
		x, err := neardup.Open("", neardup.Options{OnMirror: func(m neardup.Mirror) {
			mu.Lock()
			defer mu.Unlock()
			mirrors = append(mirrors, m)
		}})
		require.NoError(t, err)
		duplicates := 0
		use := func(_ *frontier.Frontier, o *crawler.Options) {
			o.OnPage = ContentSeen(x, SeenOptions{SkipLinks: skip, OnMatch: func(p *crawler.Page, m neardup.Match) {
				mu.Lock()
				defer mu.Unlock()
				if assert.Equal(t, m.Kind.Duplicate(), p.Duplicate); p.Duplicate {
					duplicates++
				}
			}})
		}
		p := crawl(t, s, use, "http://a.example/0")
		if !skip {
			assert.Equal(t, 12, duplicates)
			assert.EqualValues(t, 24, p.Pages)
			require.NotEmpty(t, mirrors)
			assert.ElementsMatch(t, []string{"a.example", "mirror.example"}, []string{mirrors[0].Host, mirrors[0].Of})
		} else {
			assert.Less(t, p.Pages, int64(24), "the mirror's links are not followed")
		}
		require.NoError(t, x.Close())
	}
}

// The pages of a list have the same words, and lead to other items: none is passed over.
func TestListsAreNoDuplicates(t *testing.T) {
	pages := map[string]string{}
	for i := range 10 {
		text := fmt.Sprintf("<p>%s<p>page %d<ul>", prose(100), i)
		for j := range 5 {
			text += fmt.Sprintf("<li><a href=/item/%d>%d</a>", 5*i+j, 5*i+j)
			pages[fmt.Sprint("a.example/item/", 5*i+j)] = prose(5*i + j)
		}
		pages[fmt.Sprint("a.example/", i)] = text + fmt.Sprintf("</ul><a href=/%d>next</a>", i+1)
	}
	x, err := neardup.Open("", neardup.Options{})
	require.NoError(t, err)
	same := 0
	p := crawl(t, serve(t, pages), func(_ *frontier.Frontier, o *crawler.Options) {
		o.Workers = 1
		o.OnPage = ContentSeen(x, SeenOptions{SkipLinks: true, OnMatch: func(_ *crawler.Page, m neardup.Match) {
			if m.Kind.Duplicate() {
				same++
			}
		}})
	}, "http://a.example/0")
	assert.Equal(t, 9, same, "their words are the same")
	assert.EqualValues(t, 60, p.Pages)
	require.NoError(t, x.Close())
}

// A page that is fetched again is reported as changed only if its words changed.
func TestChangesAreTold(t *testing.T) {
	x, err := neardup.Open("", neardup.Options{})
	require.NoError(t, err)
	defer x.Close()
	handle := ContentSeen(x, SeenOptions{})
	for i, row := range []struct {
		body string
		want frontier.Result
	}{
		{"<p>one</p><footer>10:15</footer>", frontier.Visited},
		{"<p>one</p><footer>10:15</footer>", frontier.Unchanged},
		{"<p>One</p><footer>10:16</footer>", frontier.Unchanged},
		{"<p>two</p><footer>10:17</footer>", frontier.Changed},
	} {
		p := &crawler.Page{
			Lease:  frontier.Lease{Entry: frontier.Entry{URL: "http://a.example/"}, History: frontier.History{Visits: i}},
			Result: &fetch.Result{Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: spool.Of([]byte(row.body))},
		}
		require.NoError(t, handle(t.Context(), p))
		assert.Equal(t, row.want, p.Outcome.Result, row.body)
	}
}

func TestSitemaps(t *testing.T) {
	s := serve(t, map[string]string{
		"a.example/":               "no links",
		"a.example/robots.txt":     "User-agent: *\nDisallow: /secret\nSitemap: http://a.example/maps/index.xml\nSitemap: nonsense\n",
		"a.example/maps/index.xml": "<sitemapindex><sitemap><loc>/maps/one.xml</loc></sitemap><sitemap><loc>/maps/two.txt</loc></sitemap><sitemap><loc>/maps/index.xml</loc></sitemap></sitemapindex>",
		"a.example/maps/one.xml":   "<urlset><url><loc>/1</loc><priority>0.9</priority></url><url><loc>/secret</loc></url><url><loc>http://b.example/</loc></url></urlset>",
		"a.example/maps/two.txt":   "http://a.example/2\nhttp://a.example/1\n",
		"a.example/1":              "one", "a.example/2": "two",
		"b.example/":            "not named by b.example",
		"c.example/":            "no robots.txt",
		"c.example/sitemap.xml": "<urlset><url><loc>/3</loc></url></urlset>", "c.example/3": "three",
	})
	weights := map[string]float64{}
	var mu sync.Mutex
	crawl(t, s, func(f *frontier.Frontier, o *crawler.Options) {
		sm := NewSitemaps(f, SitemapOptions{UserAgent: agent})
		assert.Equal(t, []string{"http://c.example/sitemap.xml"}, sm.Places("http://c.example/x", "http://c.example/y", "mailto:x"))
		o.Robots, o.OnPage = sm, sm.Handle
		o.OnDone = func(l frontier.Lease, _ frontier.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			weights[l.Entry.URL] = l.Entry.Weight
		}
	}, "http://a.example/", "http://c.example/", "http://c.example/sitemap.xml")
	for _, key := range []string{"a.example/1", "a.example/2", "a.example/maps/index.xml", "a.example/maps/one.xml", "c.example/3"} {
		assert.Equal(t, 1, s.asks[key], key)
	}
	for _, key := range []string{"a.example/secret", "b.example/"} {
		assert.Zero(t, s.asks[key], key)
	}
	assert.Contains(t, []float64{0.9, 0.5}, weights["http://a.example/1"]) // whichever file came first
}

// Pages in other languages that a sitemap lists are links of it, at any location; one that has an
// entry is added with the data of the entry.
func TestAlternatesOfSitemaps(t *testing.T) {
	link := func(url string) string { return `<xhtml:link rel="alternate" hreflang="x" href="` + url + `"/>` }
	s := serve(t, map[string]string{
		"a.example/": "no links", "a.example/1": "one", "a.example/2": "two", "a.example/de": "de", "b.example/fr": "fr",
		"a.example/robots.txt":  "Sitemap: http://a.example/sitemap.xml\nDisallow: /secret",
		"a.example/sitemap.xml": "<urlset><url><loc>/1</loc>" + link("/2") + link("/de") + link("http://b.example/fr") + link("/secret") + "</url><url><loc>/2</loc><priority>0.9</priority>" + link("/de") + "</url></urlset>",
	})
	weights := map[string]float64{}
	var mu sync.Mutex
	crawl(t, s, func(f *frontier.Frontier, o *crawler.Options) {
		sm := NewSitemaps(f, SitemapOptions{UserAgent: agent})
		o.Robots, o.OnPage = sm, sm.Handle
		o.OnDone = func(l frontier.Lease, _ frontier.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			weights[l.Entry.URL] = l.Entry.Weight
		}
	}, "http://a.example/")
	for _, key := range []string{"a.example/1", "a.example/2", "a.example/de", "b.example/fr"} {
		assert.Equal(t, 1, s.asks[key], key)
	}
	assert.Equal(t, 0.9, weights["http://a.example/2"])
	assert.Equal(t, 0.5, weights["http://b.example/fr"])
}

// A sitemap may list URLs of hosts whose robots.txt lists it, or its index, on any host; but of no
// other host.
func TestSitemapsOfOtherHosts(t *testing.T) {
	s := serve(t, map[string]string{
		"a.example/": "no links", "b.example/": "no links", "c.example/": "no links",
		"a.example/robots.txt":   "Sitemap: http://maps.example/index.xml\n",
		"b.example/robots.txt":   "Sitemap: http://maps.example/index.xml\n",
		"maps.example/index.xml": "<sitemapindex><sitemap><loc>/all.xml</loc></sitemap></sitemapindex>",
		"maps.example/all.xml":   "<urlset><url><loc>http://a.example/1</loc></url><url><loc>http://b.example/1</loc></url><url><loc>http://c.example/1</loc></url><url><loc>/1</loc></url></urlset>",
		"a.example/1":            "a", "b.example/1": "b", "c.example/1": "c", "maps.example/1": "maps",
	})
	crawl(t, s, func(f *frontier.Frontier, o *crawler.Options) {
		sm := NewSitemaps(f, SitemapOptions{UserAgent: agent})
		for _, site := range []string{"http://a.example", "http://b.example"} { // both before the sitemap is fetched
			sm.Read(site, 200, []byte(s.pages["a.example/robots.txt"]))
		}
		o.Robots, o.OnPage = sm, sm.Handle
	}, "http://a.example/", "http://b.example/", "http://c.example/")
	for _, key := range []string{"a.example/1", "b.example/1", "maps.example/1"} {
		assert.Equal(t, 1, s.asks[key], key)
	}
	assert.Zero(t, s.asks["c.example/1"], "c.example names no sitemap")
}

// The content of a robots.txt is known when the crawl continues in another process.
func TestSitemapsOfOtherHostsLater(t *testing.T) {
	f, err := frontier.Open(t.Context(), frontier.Options{})
	require.NoError(t, err)
	before, after := NewSitemaps(f, SitemapOptions{}), NewSitemaps(f, SitemapOptions{})
	_, ok := before.Read("http://a.example", 200, []byte("Sitemap: http://maps.example/all.xml\nSitemap: http://a.example/own.xml\n"))
	require.True(t, ok)
	got := map[string][]string{}
	for range 2 {
		l, err := f.Next(t.Context())
		require.NoError(t, err)
		hosts, named := after.vouched(l.Entry)
		assert.True(t, named)
		got[l.Entry.URL] = hosts
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}
	assert.Equal(t, map[string][]string{"http://maps.example/all.xml": {"a.example"}, "http://a.example/own.xml": nil}, got)
	for i := range maxVouchers + 10 {
		after.vouch(frontier.Entry{URL: fmt.Sprintf("http://maps.example/%d", i)}, "a.example")
	}
	for i := range maxHosts + 10 {
		after.vouch(frontier.Entry{URL: "http://maps.example/1"}, fmt.Sprintf("h%d.example", i))
	}
	assert.Len(t, after.vouchers, maxVouchers)
	assert.Len(t, after.vouchers["http://maps.example/1"], maxHosts)
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
}

// A feed that a page links to with rel=alternate is read, whatever it calls itself.
func TestFeedsOfPages(t *testing.T) {
	s := serve(t, map[string]string{
		"a.example/":      "<link rel=alternate type='application/rss+xml' href=/feed><p>text",
		"a.example/feed":  "<?xml version='1.0'?><rss version='2.0'><channel><item><link>http://a.example/news</link></item></channel></rss>",
		"a.example/news":  "news",
		"a.example/xhtml": "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><body><a href='/more'>more</a></body></html>",
		"a.example/more":  "more",
	})
	crawl(t, s, func(f *frontier.Frontier, o *crawler.Options) {
		sm := NewSitemaps(f, SitemapOptions{UserAgent: agent})
		o.Robots, o.OnPage = sm, sm.Handle
		o.Extractor = crawler.HTML{Options: link.Options{Kinds: link.Pages | link.Feed}}
	}, "http://a.example/", "http://a.example/xhtml")
	for _, key := range []string{"a.example/feed", "a.example/news", "a.example/more"} {
		assert.Equal(t, 1, s.asks[key], key)
	}
}

func TestChainStopsAtErrors(t *testing.T) {
	bad := errors.New("bad")
	var calls []int
	h := func(i int, err error) Handler {
		return func(context.Context, *crawler.Page) error { calls = append(calls, i); return err }
	}
	assert.ErrorIs(t, Chain(h(1, nil), nil, h(2, bad), h(3, nil))(t.Context(), nil), bad)
	assert.Equal(t, []int{1, 2}, calls)
}
