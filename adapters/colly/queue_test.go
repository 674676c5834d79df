package frontiercolly_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"
	"github.com/seed-7440039f/frontier"
	frontiercolly "github.com/seed-7440039f/frontier/adapters/colly"
	"github.com/seed-7440039f/frontier/adapters/colly/internal/web"
	"github.com/stretchr/testify/require"
)

// A program that uses colly's queue uses this one by the same calls.
var _, _ interface {
	AddRequest(*colly.Request) error
	AddURL(string) error
	IsEmpty() bool
	Run(*colly.Collector) error
	Size() (int, error)
	Stop()
} = (*queue.Queue)(nil), (*frontiercolly.Queue)(nil)

func TestEveryPageOnceAndNoneEarly(t *testing.T) {
	w := &web.Web{Hosts: 300, Pages: 5, Seeds: 10}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		c.follow()
		c.run(w.SeedURLs()...)
		log := w.Log()
		require.Equal(c, 1500, log.Pages)
		require.Zero(c, log.Again)
		require.Equal(c, 300, log.Robots)
		require.Len(c, c.visited, 1500)
		require.Empty(c, c.errors)
		require.Empty(c, c.refused)
	})
}

// The line that every colly program has works unchanged: it adds to the queue instead of contacting
// a host that the page holds.
func TestVisitInCallbacksAddsToTheQueue(t *testing.T) {
	w := &web.Web{Hosts: 60, Pages: 5, Seeds: 10}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		c.c.OnHTML("a[href]", func(e *colly.HTMLElement) { require.NoError(c, e.Request.Visit(e.Attr("href"))) })
		c.run(w.SeedURLs()...)
		require.Equal(c, 300, w.Log().Pages)
		require.Zero(c, w.Log().Again)
		c.visited = nil
		require.NoError(c, c.c.Visit("http://h0.example/0?again"), "after Run, and outside a callback")
		require.Empty(c, c.visited)
		c.run()
		require.Equal(c, []string{"http://h0.example/0?again"}, c.visited)
	})
}

// A link is durable with the end of its page, not before: a crash between the two would otherwise
// fetch it under a page that comes again.
func TestLinksAreAdmittedWithTheirPage(t *testing.T) {
	w := &web.Web{Hosts: 1, Pages: 3, Seeds: 1}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		c.follow()
		c.c.OnScraped(func(r *colly.Response) {
			if r.Request.URL.Path != "/0" {
				return
			}
			n, err := r.Request.New("GET", "http://h0.example/2?new", nil)
			require.NoError(c, err)
			require.NoError(c, c.q.AddRequest(n))
			require.EqualValues(c, 1, c.f.Stats().Added)
			require.True(c, c.q.IsEmpty())
		})
		c.run("http://h0.example/0")
		require.EqualValues(c, 4, c.f.Stats().Added)
		require.Len(c, c.visited, 4)
	})
}

func TestBodyHeadersAndCtxTravel(t *testing.T) {
	var got []string
	w := &web.Web{Hosts: 1, Pages: 2, Seeds: 1, Special: func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.URL.Path+" "+string(body)+" "+r.Header.Get("X-Key")+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("User-Agent"))
		return true
	}}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		c.c.UserAgent = "examplebot"
		c.c.OnHTML("title", func(e *colly.HTMLElement) {
			e.Request.Ctx.Put("from", e.Text)
			require.NoError(c, e.Request.Post("/form", map[string]string{"a": "1"}))
			require.NoError(c, e.Request.Post("/form", map[string]string{"a": "2"}), "another body is another request")
			require.NoError(c, e.Request.Post("/form", map[string]string{"a": "2"}), "known")
		})
		var from []string
		c.c.OnResponse(func(r *colly.Response) {
			if r.Request.Method == http.MethodPost {
				from = append(from, r.Ctx.Get("from")+" "+r.Request.URL.String())
			}
		})
		r, err := (&colly.Request{URL: mustParse("http://h0.example/put"), Method: "POST", Body: strings.NewReader("x=y"), Headers: &http.Header{"X-Key": {"k"}}}), error(nil)
		require.NoError(c, err)
		require.NoError(c, c.q.AddRequest(r))
		c.run("http://h0.example/0")
		form := "application/x-www-form-urlencoded examplebot"
		require.ElementsMatch(c, []string{"/put x=y k " + form, "/form a=1  " + form, "/form a=2  " + form}, got)
		require.ElementsMatch(c, []string{" http://h0.example/put", "page 0 of site 0 http://h0.example/form", "page 0 of site 0 http://h0.example/form"}, from)
	})
}

// A plain request has the headers of the collector that fetches it, although colly shows them when the
// link is found. A request with headers has those, as in colly.
func TestHeadersOfTheCollector(t *testing.T) {
	got := map[string]string{}
	w := &web.Web{Hosts: 1, Pages: 5, Seeds: 1, Special: func(_ http.ResponseWriter, r *http.Request) bool {
		got[r.URL.Path] = r.Header.Get("X-All") + " " + r.Header.Get("X-Own") + " " + r.UserAgent()
		return false
	}}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		require.NoError(c, c.q.Attach("", c.c))
		c.c.UserAgent, c.c.Headers = "examplebot", &http.Header{"X-All": {"1"}}
		require.NoError(c, c.c.Visit("http://h0.example/1"))
		require.NoError(c, c.q.AddURL("http://h0.example/2"))
		require.NoError(c, c.q.AddRequest(&colly.Request{URL: mustParse("http://h0.example/3"), Headers: &http.Header{"X-Own": {"2"}}}))
		require.Empty(c, got, "Visit after Attach contacts nobody")
		c.c.UserAgent = "otherbot"
		c.run()
		require.Equal(c, map[string]string{"/robots.txt": "  otherbot", "/1": "1  otherbot", "/2": "1  otherbot", "/3": " 2 otherbot"}, got)
	})
}

func TestWhatCannotBeKeptIsRefused(t *testing.T) {
	crawling(t, &web.Web{Hosts: 1, Pages: 1, Seeds: 1}, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		u := mustParse("http://h0.example/0")
		ctx := colly.NewContext()
		ctx.Put("f", func() {})
		require.ErrorContains(c, c.q.AddRequest(&colly.Request{URL: u, Ctx: ctx}), "http://h0.example/0: Ctx and body must be JSON")
		require.ErrorContains(c, c.q.AddRequest(&colly.Request{URL: u, Method: "POST", Body: strings.NewReader(strings.Repeat("x", frontier.MaxMeta))}), "want at most 65536")
		require.ErrorIs(c, c.q.AddRequest(&colly.Request{}), colly.ErrMissingURL)
		require.ErrorContains(c, c.q.AddURL("mailto:a@b.example"), `the scheme is "mailto"; want http or https`)
		require.ErrorContains(c, c.q.AddURL("/0"), "/0")
		require.ErrorContains(c, c.q.AddURL("http://h0.example/"+strings.Repeat("x", frontier.MaxURL)), "bytes; want at most 65536")
		require.True(c, c.q.IsEmpty())

		c.c.OnHTML("title", func(e *colly.HTMLElement) {
			require.ErrorIs(c, c.q.Visit(e.Request, "#top"), colly.ErrMissingURL)
			require.ErrorContains(c, c.q.Visit(e.Request, "javascript:0"), "want http or https")
			err := e.Request.Visit("ftp://h0.example/")
			require.ErrorContains(c, err, "want http or https", "although colly's callbacks return nothing")
		})
		c.run("http://h0.example/0#top")
		require.Equal(c, []string{"http://h0.example/0"}, c.visited)
	})
}

// Entries that others added carry their Meta to the callbacks.
func TestForeignMeta(t *testing.T) {
	crawling(t, &web.Web{Hosts: 1, Pages: 2, Seeds: 1}, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		_, err := c.f.Add(t.Context(), frontier.Entry{URL: "http://h0.example/0", Meta: []byte("of mine")},
			frontier.Entry{URL: "http://h0.example/1", Meta: []byte(`{"colly":5}`)})
		require.NoError(c, err)
		var meta string
		c.c.OnResponse(func(r *colly.Response) { meta = r.Ctx.Get(frontiercolly.MetaKey) })
		c.run()
		require.Equal(c, "of mine", meta)
		require.Len(c, c.visited, 1)
		require.ErrorIs(c, c.refused["http://h0.example/1"], frontiercolly.ErrBadMeta)
	})
}

func TestSizeAndStop(t *testing.T) {
	w := &web.Web{Hosts: 1, Pages: 5, Seeds: 1}
	crawling(t, w, frontier.Options{}, frontiercolly.Options{}, func(c *crawl) {
		c.q.Stop() // of nothing
		for _, u := range []string{"http://h0.example/0", "http://h0.example/1", "http://h0.example/2"} {
			require.NoError(c, c.q.AddURL(u))
		}
		_, err := c.f.Add(t.Context(), frontier.Entry{URL: "http://h0.example/3", NotBefore: time.Now().Add(time.Hour)})
		require.NoError(c, err)
		n, err := c.q.Size()
		require.NoError(c, err)
		require.Equal(c, 4, n)
		c.c.OnResponse(func(*colly.Response) { c.q.Stop() })
		require.NoError(c, c.q.Run(c.c))
		require.Len(c, c.visited, 1)
		require.Zero(c, c.f.Stats().Leased)
		n, err = c.q.Size()
		require.NoError(c, err)
		require.Equal(c, 3, n)
	})
}
