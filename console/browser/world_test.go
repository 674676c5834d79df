//go:build unix

// This file is a crawl of sites on this machine, with a page that can be cut off.

package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "open sesame"

// world is a crawl under way, and its page.
type world struct {
	f    *frontier.Frontier
	c    *console.Console
	page string      // its address
	down atomic.Bool // the page breaks connections off

	mu   sync.Mutex
	asks map[string]int // requests of the crawler, by host
}

// requests counts the crawler's requests so far, to a host and to all.
func (w *world) requests(host string) (of, all int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.asks {
		all += n
	}
	return w.asks[host], all
}

// ServeHTTP is the web: sites without an end, each page with links to the next ones and to
// another site; some of its sites fail.
func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.asks[r.Host]++
	w.mu.Unlock()
	if r.URL.Path == "/robots.txt" {
		http.NotFound(out, r)
		return
	}
	if strings.HasPrefix(r.Host, "sick") {
		http.Error(out, "not today", http.StatusInternalServerError)
		return
	}
	var n int
	_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
	out.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(out, `<title>"><script>alert(1)</script></title><a href="/%d">next</a> <a href="/%d">other</a> <a href="http://site-%d.example/0">site</a>`, 2*n+1, 2*n+2, (n+len(r.Host))%20)
	fmt.Fprintf(out, `<a href="http://sick-%d.example/">sick</a> <a href='/"><img src=x onerror=alert(%d)>'>hostile</a>`, n%3, n)
}

// crawling starts a crawl that goes on until the test ends.
func crawling(t *testing.T) *world {
	t.Helper()
	w := &world{asks: map[string]int{}}
	w.crawl(t, w, 20*time.Millisecond, "http://site-0.example/0", "http://site-1.example/0", "http://sick-0.example/0")
	return w
}

// crawl starts a crawl of a web.
func (w *world) crawl(t *testing.T, pages http.Handler, delay time.Duration, seeds ...string) {
	t.Helper()
	web := httptest.NewServer(pages)
	t.Cleanup(web.Close)
	fetcher, err := fetch.New(fetch.Options{Resolve: map[string]string{"*": web.Listener.Addr().String()}, Timeout: 2 * time.Second})
	require.NoError(t, err)
	t.Cleanup(fetcher.CloseIdle)
	watch := console.NewWatch()
	w.f, err = frontier.Open(t.Context(), frontier.Options{OnEvent: watch.Event, Delay: frontier.FixedDelay(delay), KeepOpen: true})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, w.f.Check())
		assert.NoError(t, w.f.Close())
	})
	o := crawler.Options{Fetcher: fetcher, OnFetch: watch.Request, Groups: crawler.Groups{Off: true}, Workers: 8, OnDone: func(l frontier.Lease, o frontier.Outcome) {
		watch.Outcome(l, o)
		if !o.Ended.IsZero() {
			watch.Contact(l.Host, l.LeasedAt, l.Due, o.Ended)
		}
	}}
	c, err := crawler.New(w.f, o)
	require.NoError(t, err)
	_, err = c.Seed(t.Context(), seeds...)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	w.serve(t, console.Options{
		Title: "books", Token: token, MemoryBudget: 256 << 20, Watch: watch, Disk: func() int64 { return 3 << 20 }, Lot: crawler.Lot, Stop: stop,
		Crawl: func() console.Crawl {
			p := c.Progress()
			return console.Crawl{Pages: p.Pages, Workers: o.Workers, Away: p.Away}
		},
		Checkpoint: func(context.Context) (string, error) { return "/var/crawls/books/2027-01-31", nil },
		Settings:   []console.Setting{{Name: "workers", Value: "8"}, {Name: "user-agent", Value: "books-bot/1.0"}, {Name: "delay", Value: delay.String()}},
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.ErrorIs(t, c.Run(ctx), context.Canceled)
		w.c.Ended(nil, "Stopped by an operator")
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
}

// serve serves the page of w.f.
func (w *world) serve(t *testing.T, o console.Options) {
	t.Helper()
	c, err := console.New(w.f, o)
	require.NoError(t, err)
	w.c = c
	h := c.Page()
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if w.down.Load() {
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(out, r)
	}))
	w.page = s.URL
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		assert.NoError(t, c.Close())
	})
}
