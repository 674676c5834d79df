package crawler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/link"
)

// randomWeb has hosts with pages of random links over all of them; every page can
// be reached from the hosts' start pages, which are returned with all URLs.
func randomWeb(hosts, pages int) (w *fakeWeb, seeds, all []string) {
	w = newWeb()
	r := rand.New(rand.NewPCG(1, 2))
	url := func(h, p int) string { return fmt.Sprintf("http://h%d.example/%d", h, p) }
	for h := range hosts {
		for p := range pages {
			links := []string{url(h, (p+1)%pages), "/nothing", url(r.IntN(hosts), r.IntN(pages)) + "#top"}
			a := page(links...)
			a.takes = time.Duration(1+r.IntN(200)) * time.Millisecond
			w.always(url(h, p), a)
			all = append(all, url(h, p))
		}
		all = append(all, fmt.Sprintf("http://h%d.example/nothing", h))
		seeds = append(seeds, url(h, 0))
	}
	slices.Sort(all)
	return w, seeds, all
}

func TestCrawlFindsEveryPageOncePolitely(t *testing.T) {
	for name, delay := range map[string]frontier.DelayPolicy{
		"fixed": frontier.FixedDelay(testDelay), "factor": frontier.FactorDelay(10, 100*time.Millisecond, testDelay),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, seeds, all := randomWeb(20, 15)
				p := crawl(t, w, frontier.Options{Delay: delay}, Options{}, seeds...)
				assert.Equal(t, all, w.urls())
				assert.EqualValues(t, 300, p.Pages)
				assert.EqualValues(t, 20, p.Gone)
				assert.EqualValues(t, 20, p.Robots)
				assert.Len(t, w.requests(""), 340, "each URL once")
				w.checkPolite(t, func(r request) time.Duration {
					return delay.Delay(r.host, frontier.Outcome{Duration: r.end.Sub(r.start)})
				})
			})
		})
	}
}

func TestAnswers(t *testing.T) {
	later := 7 * time.Second
	for name, c := range map[string]struct {
		first, then answer
		asked       int
		result      frontier.Result
	}{
		"page":                {page(), page(), 1, frontier.Visited},
		"empty":               {answer{status: 204}, page(), 1, frontier.Visited},
		"not modified":        {answer{status: 304}, page(), 2, frontier.Visited},
		"choices":             {answer{status: 300}, page(), 1, frontier.Visited},
		"moved without place": {answer{status: 301}, page(), 1, frontier.Visited},
		"moved to itself":     {answer{status: 302, location: "/x"}, page(), 1, frontier.Visited},
		"bad request":         {answer{status: 400}, page(), 1, frontier.Visited},
		"unauthorized":        {answer{status: 401}, page(), 1, frontier.Visited},
		"forbidden":           {answer{status: 403}, page(), 1, frontier.Visited},
		"not found":           {answer{status: 404}, page(), 1, frontier.Gone},
		"gone":                {answer{status: 410}, page(), 1, frontier.Gone},
		"request timeout":     {answer{status: 408}, page(), 2, frontier.Visited},
		"too many requests":   {answer{status: 429, retryAfter: later}, page(), 2, frontier.Visited},
		"server error":        {answer{status: 500}, page(), 2, frontier.Visited},
		"unavailable":         {answer{status: 503, retryAfter: later}, page(), 2, frontier.Visited},
		"odd":                 {answer{status: 999}, page(), 2, frontier.Visited},
		"cut":                 {answer{class: fetch.Cut}, page(), 2, frontier.Visited},
		"slow":                {answer{class: fetch.Timeout}, page(), 2, frontier.Visited},
		"broken for ever":     {answer{status: 500}, answer{status: 502}, 3, frontier.Failed},
		"cannot be fetched":   {answer{class: fetch.BadURL}, page(), 1, frontier.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb()
				w.pages["http://a.example/x"] = func(n int) answer {
					if n == 1 {
						return c.first
					}
					return c.then
				}
				var last frontier.Outcome
				crawl(t, w, frontier.Options{Retry: frontier.Retries(3, time.Second)}, Options{
					OnDone: func(l frontier.Lease, o frontier.Outcome) { last = o },
				}, "http://a.example/x")
				assert.Equal(t, c.asked, w.asks["http://a.example/x"])
				assert.Equal(t, c.result, last.Result)
				w.checkPolite(t, fixedOwed)
			})
		})
	}
}

func TestRetryAfterIsHonouredUpToItsBound(t *testing.T) {
	for _, asked := range []time.Duration{time.Hour, 24 * time.Hour, 1000 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newWeb()
			w.pages[seed] = func(n int) answer {
				if n == 1 {
					return answer{status: 503, retryAfter: asked}
				}
				return page()
			}
			crawl(t, w, frontier.Options{}, Options{}, seed)
			rs := w.requests("") // robots.txt, the page, after a day robots.txt again, the page
			require.Greater(t, len(rs), 2)
			assert.Equal(t, min(asked, 24*time.Hour), rs[2].start.Sub(rs[1].end))
			assert.Equal(t, 2, w.asks[seed])
		})
	}
}

func TestLimits(t *testing.T) {
	chain := func() *fakeWeb {
		w := newWeb()
		for i := range 100 {
			w.always(fmt.Sprintf("http://a.example/%d", i), page(fmt.Sprintf("/%d", i+1)))
			w.always(fmt.Sprintf("http://b.example/%d", i), page(fmt.Sprintf("/%d", i+1)))
		}
		return w
	}
	for name, c := range map[string]struct {
		o     Options
		pages int64
	}{
		"depth":          {Options{Scope: Scope{MaxDepth: 4}}, 10},
		"pages":          {Options{MaxPages: 13}, 13},
		"pages of hosts": {Options{MaxPagesPerHost: 6}, 12},
		"hosts":          {Options{Scope: Scope{Hosts: []string{"A.example"}, MaxDepth: 4}}, 5},
		"filters":        {Options{Filters: []Filter{FilterFunc(func(e frontier.Entry) bool { return e.URL != "http://b.example/3" })}, Scope: Scope{MaxDepth: 9}}, 13},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := chain()
				f := openFrontier(t, frontier.Options{})
				c1 := newCrawler(t, f, w, c.o)
				_, _ = c1.Seed(t.Context(), "http://a.example/0", "http://b.example/0")
				require.NoError(t, c1.Run(t.Context()))
				assert.Equal(t, c.pages, c1.Progress().Pages)
				w.checkPolite(t, fixedOwed)
			})
		})
	}
}

func TestScope(t *testing.T) {
	re := func(s string) []*regexp.Regexp { return []*regexp.Regexp{regexp.MustCompile(s)} }
	for name, c := range map[string]struct {
		s       Scope
		yes, no string
	}{
		"anything":       {Scope{}, "https://x.example/", "mailto:x@x.example"},
		"host":           {Scope{Hosts: []string{"a.example"}}, "http://A.example:81/", "http://b.a.example/"},
		"host and port":  {Scope{Hosts: []string{"a.example:81"}}, "http://a.example:81/", "http://a.example/"},
		"domain":         {Scope{Domains: []string{".a.example"}}, "http://c.b.a.example/", "http://ba.example/"},
		"domain itself":  {Scope{Domains: []string{"a.example"}}, "http://a.example/", "http://example/"},
		"host or domain": {Scope{Hosts: []string{"x"}, Domains: []string{"a.example"}}, "http://x/", "http://y/"},
		"include":        {Scope{Include: re(`\.html$`)}, "http://a/x.html", "http://a/x.pdf"},
		"exclude":        {Scope{Exclude: re(`\?`)}, "http://a/x", "http://a/x?y"},
		"length":         {Scope{MaxURL: 10}, "http://a/1", "http://a/12"},
	} {
		f := newScopeFilter(c.s)
		assert.True(t, f.Allow(frontier.Entry{URL: c.yes}), name)
		assert.False(t, f.Allow(frontier.Entry{URL: c.no}), name)
	}
}

func TestLeaseEndsBeforeTheFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.pages["http://a.example/1"] = func(n int) answer {
			if n == 1 {
				return answer{status: 200, takes: time.Hour}
			}
			return page()
		}
		p := crawl(t, w, frontier.Options{LeaseTime: 5 * time.Second}, Options{}, "http://a.example/1")
		assert.EqualValues(t, 1, p.Pages)
		r := w.requests("http://a.example/1")[0]
		assert.Equal(t, 4500*time.Millisecond, r.end.Sub(r.start), "cut before the deadline")
		w.checkPolite(t, fixedOwed)
	})
}

func TestHandlerErrorMeansAnotherTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.site("http://a.example", 2)
		var mu sync.Mutex
		failed := map[string]bool{}
		crawl(t, w, frontier.Options{Retry: frontier.Retries(3, time.Second)}, Options{OnPage: func(_ context.Context, p *Page) error {
			mu.Lock()
			defer mu.Unlock()
			if !failed[p.URL] {
				failed[p.URL] = true
				return errors.New("no room")
			}
			return nil
		}}, seed)
		for _, u := range w.urls() {
			assert.Equal(t, 2, w.asks[u], u)
		}
		assert.Len(t, w.urls(), 4)
		w.checkPolite(t, fixedOwed)
	})
}

func TestPageReachesTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		a := page("/1", "/1#x", "http://b.example/", "mailto:x@a.example", "/")
		a.body = "<title>Hello</title>" + a.body
		a.header = http.Header{"Last-Modified": {"Fri, 02 Jan 2026 03:05:05 GMT"}}
		w.always(seed, a)
		var got *Page
		p := crawl(t, w, frontier.Options{}, Options{Scope: Scope{Hosts: []string{"a.example"}}, OnPage: func(_ context.Context, p *Page) error {
			if p.URL == seed {
				got = p
				p.Add = append(p.Add, frontier.Entry{URL: "http://a.example/extra", Depth: 9})
			}
			return nil
		}}, seed)
		require.NotNil(t, got)
		assert.Equal(t, "Hello", got.Doc.Title)
		assert.Equal(t, 2026, got.Outcome.Modified.Year())
		assert.Equal(t, []frontier.Entry{{URL: "http://a.example/1", Depth: 1}, {URL: "http://a.example/extra", Depth: 9}}, got.Add)
		assert.EqualValues(t, 2, p.Links)
		assert.Equal(t, 1, w.asks["http://a.example/extra"])
	})
}

func TestLinksThatAreNotFollowed(t *testing.T) {
	link := `<a href="/2">x</a>`
	for name, a := range map[string]answer{
		"plain text":     {status: 200, body: link, kind: "text/plain"},
		"meta nofollow":  {status: 200, body: `<meta name=robots content="none">` + link},
		"header":         {status: 200, body: link, header: http.Header{"X-Robots-Tag": {"nofollow"}}},
		"unknown coding": {status: 200, body: "\x1f\x9d\x90" + link, header: http.Header{"Content-Encoding": {"compress"}}},
		"error page":     {status: 403, body: link},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWeb()
			w.always("http://a.example/1", a)
			crawl(t, w, frontier.Options{}, Options{}, "http://a.example/1")
			assert.Zero(t, w.asks["http://a.example/2"], name)
		})
	}
	for name, a := range map[string]answer{
		"xhtml":                {status: 200, body: link, kind: "application/xhtml+xml"},
		"bad type, sniffed":    {status: 200, body: "<!DOCTYPE html>" + link, kind: ";;"},
		"no coding":            {status: 200, body: link, header: http.Header{"Content-Encoding": {"rot13"}}},
		"nofollow for another": {status: 200, body: link, header: http.Header{"X-Robots-Tag": {"otherbot: nofollow"}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWeb()
			w.always("http://a.example/1", a)
			crawl(t, w, frontier.Options{}, Options{}, "http://a.example/1")
			assert.Equal(t, 1, w.asks["http://a.example/2"], name)
		})
	}
}

// A protocol is a Fetcher of its own, found by the URL's scheme; all else is the
// same for it: robots.txt, pauses, scope, redirects.
func TestProtocols(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, files := newWeb(), newWeb()
		web.always(seed, page("ftp://a.example/dir/", "ftp://b.example:2121/x", "gopher://a.example/1", "mailto:x@a.example"))
		web.always("http://a.example/moved", answer{status: 302, location: "ftp://a.example/moved"})
		files.always("ftp://a.example/robots.txt", text("User-agent: *\nDisallow: /secret\n"))
		files.always("ftp://a.example/dir/", page("/secret", "file", seed))
		files.always("ftp://a.example/dir/file", page())
		files.always("ftp://a.example/moved", page())
		files.always("ftp://b.example:2121/x", page())
		p := crawl(t, web, frontier.Options{}, Options{Protocols: map[string]Fetcher{"ftp": files}}, seed, "http://a.example/moved")
		assert.Equal(t, []string{seed, "http://a.example/moved"}, web.urls())
		assert.Equal(t, []string{"ftp://a.example/dir/", "ftp://a.example/dir/file", "ftp://a.example/moved", "ftp://b.example:2121/x"}, files.urls())
		assert.EqualValues(t, 5, p.Pages)
		assert.EqualValues(t, 1, p.Denied)
		files.checkPolite(t, fixedOwed)
		for _, r := range files.requests("ftp://a.example/") { // the host is one, whatever it is asked with
			for _, h := range web.requests("http://a.example/") {
				assert.True(t, r.start.Sub(h.end) >= testDelay || h.start.Sub(r.end) >= testDelay, "%s and %s", r.url, h.url)
			}
		}
		w := newWeb()
		w.always(seed, page("ftp://a.example/dir/"))
		assert.EqualValues(t, 1, crawl(t, w, frontier.Options{}, Options{}, seed).Pages, "without a protocol for it a URL is out of scope")
		assert.Equal(t, []string{seed}, w.urls())
	})
}

func TestScopeSpellsHostsAsURLsDo(t *testing.T) {
	f := newScopeFilter(Scope{Hosts: []string{"a.example:80", "::1", "s.example:443"}})
	for url, want := range map[string]bool{
		"http://a.example/": true, "https://a.example/": false, "http://a.example:81/": false,
		"https://s.example/": true, "http://s.example/": false,
		"http://[::1]/": true, "http://[::1]:81/": true, "http://[::2]/": false,
	} {
		assert.Equal(t, want, f.Allow(frontier.Entry{URL: url}), url)
	}
}

func TestContentEncodingThatIsNone(t *testing.T) {
	for encoding, pages := range map[string]int64{"identity": 5, "utf-8": 5, "aws-chunked": 5, "text/html": 5, "compress": 1, "gzip, gzip, gzip, gzip": 1} {
		t.Run(encoding, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb()
				w.site("http://a.example", 3)
				start := w.pages[seed](1)
				start.header = http.Header{"Content-Encoding": {encoding}}
				if pages == 1 {
					start.body = "\x1f\x9d\x90" + start.body
				}
				w.always(seed, start)
				assert.Equal(t, pages, crawl(t, w, frontier.Options{}, Options{}, seed).Pages)
			})
		})
	}
}

// A crawl that is cut does not read a long page to its end: the page comes again.
func TestACutCrawlReadsNoLongPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always("http://a.example/", page(slices.Repeat([]string{"/x"}, 10_000)...))
		f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(testDelay)})
		ctx, stop := context.WithCancel(t.Context())
		var read int64
		extract := func(p *Page) (*link.Page, error) {
			stop()
			r := p.Body.Reader()
			_, _ = r.Read(make([]byte, 100))
			time.Sleep(2 * time.Second) // the grace passes
			n, err := io.Copy(io.Discard, r)
			read = n
			return &link.Page{Links: []link.Link{{URL: "http://a.example/x"}}}, err
		}
		c := newCrawler(t, f, w, Options{Extractor: extractorFunc(extract), Grace: time.Second})
		_, err := c.Seed(t.Context(), "http://a.example/")
		require.NoError(t, err)
		require.ErrorIs(t, c.Run(ctx), context.Canceled)
		assert.Zero(t, read)
		assert.Zero(t, c.Progress().Pages)
		assert.EqualValues(t, 1, f.Stats().Waiting, "it comes again, and nothing was taken from it")
	})
}

type extractorFunc func(*Page) (*link.Page, error)

func (f extractorFunc) Extract(p *Page) (*link.Page, error) { return f(p) }
