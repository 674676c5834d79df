// This file sets up the tests: a web without a network, whose time is that of a synctest bubble.

package frontiercolly_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/seed-7440039f/frontier"
	frontiercolly "github.com/seed-7440039f/frontier/adapters/colly"
	"github.com/seed-7440039f/frontier/adapters/colly/internal/web"
	"github.com/seed-7440039f/frontier/polite"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crawlerDir); dir != "" {
		crawlUntilKilled(dir)
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/golang/glog.(*fileSink).flushDaemon"))
}

// handled is a transport that asks a handler.
type handled struct{ http.Handler }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	rec := httptest.NewRecorder()
	in := r.Clone(r.Context())
	if in.Host == "" { // of a redirect
		in.Host = in.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	h.ServeHTTP(rec, in)
	if r.Body != nil {
		r.Body.Close()
	}
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

// crawl is a collector with a queue over a frontier in memory.
type crawl struct {
	*testing.T
	web *web.Web
	f   *frontier.Frontier
	q   *frontiercolly.Queue
	c   *colly.Collector

	mu      sync.Mutex
	visited []string         // pages that OnResponse saw
	errors  map[string]error // that OnError saw, by URL
	refused map[string]error // that OnRefused saw, by URL
	at      map[string]time.Time
}

const delay = time.Second

// crawling runs a test in a bubble, with a delay of a second between contacts.
func crawling(t *testing.T, w *web.Web, fo frontier.Options, qo frontiercolly.Options, test func(c *crawl)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w.Delay = delay
		w.Reset()
		if fo.Delay == nil {
			fo.Delay = frontier.FixedDelay(delay)
		}
		f, err := frontier.Open(context.Background(), fo)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		c := &crawl{T: t, web: w, f: f, c: colly.NewCollector(), errors: map[string]error{}, refused: map[string]error{}, at: map[string]time.Time{}}
		if qo.Transport == nil {
			qo.Transport = &polite.Transport{Base: handled{w}}
		}
		qo.OnRefused = func(r *colly.Request, err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.refused[r.URL.String()] = err
		}
		c.q, err = frontiercolly.New(f, qo)
		require.NoError(t, err)
		c.c.OnResponse(func(r *colly.Response) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.visited = append(c.visited, r.Request.URL.String())
			c.at[r.Request.URL.String()] = time.Now()
		})
		c.c.OnError(func(r *colly.Response, err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.errors[r.Request.URL.String()] = err
		})
		test(c)
		log := w.Log()
		require.Zero(t, log.Early, "smallest gap %v", log.Least)
		require.Zero(t, log.Together)
	})
}

// run adds URLs and runs the queue to its end.
func (c *crawl) run(urls ...string) {
	c.Helper()
	for _, u := range urls {
		require.NoError(c, c.q.AddURL(u))
	}
	require.NoError(c, c.q.Run(c.c))
	require.True(c, c.q.IsEmpty())
	require.Zero(c, c.f.Stats().Leased)
}

// follow makes the collector visit every link.
func (c *crawl) follow() {
	c.c.OnHTML("a[href]", func(e *colly.HTMLElement) { require.NoError(c, c.q.Visit(e.Request, e.Attr("href"))) })
}
