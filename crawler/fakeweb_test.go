// This file is a web in virtual time: a Fetcher that answers from functions and
// keeps an access log, and the politeness that tests read from the log.

package crawler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/spool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what a fake page answers with. The zero value is 404.
type answer struct {
	status     int
	body       string
	kind       string // Content-Type; text/html by default
	location   string
	retryAfter time.Duration
	header     http.Header
	class      fetch.Class   // of an error; Other for none
	broken     string        // why the body's end is missing, in addition to the error
	takes      time.Duration // 10 ms by default
}

// page is an HTML page with links.
func page(links ...string) answer {
	var b strings.Builder
	for _, l := range links {
		fmt.Fprintf(&b, "<a href=%q>x</a>\n", l)
	}
	return answer{status: 200, body: b.String()}
}

func text(s string) answer { return answer{status: 200, body: s, kind: "text/plain"} }

// request is a line of the access log.
type request struct {
	url        string
	host       string
	n          int // how many times this URL was asked for so far
	start, end time.Time
	status     int
	header     http.Header
	owed       time.Duration // Retry-After
}

// fakeWeb is a Fetcher. Fill pages before use.
type fakeWeb struct {
	pages map[string]func(n int) answer // by URL; n counts the requests from 1

	mu   sync.Mutex
	log  []request
	asks map[string]int
	open map[string]int // requests open, by host
	most int            // greatest number open on one host
}

func newWeb() *fakeWeb {
	return &fakeWeb{pages: map[string]func(int) answer{}, asks: map[string]int{}, open: map[string]int{}}
}

// always makes a URL answer always alike.
func (w *fakeWeb) always(url string, a answer) { w.pages[url] = func(int) answer { return a } }

// Fetch implements Fetcher.
func (w *fakeWeb) Fetch(ctx context.Context, r fetch.Request) (*fetch.Result, error) {
	host := hostOf(siteOf(r.URL))
	w.mu.Lock()
	w.asks[r.URL]++
	n := w.asks[r.URL]
	w.open[host]++
	w.most = max(w.most, w.open[host])
	w.mu.Unlock()
	res := &fetch.Result{URL: r.URL, Started: time.Now(), Header: http.Header{}}
	a := answer{status: 404}
	if f := w.pages[r.URL]; f != nil {
		a = f(n)
	}
	if a.takes == 0 {
		a.takes = 10 * time.Millisecond
	}
	var err error
	t := time.NewTimer(a.takes)
	defer t.Stop()
	select {
	case <-t.C:
		if a.class != fetch.Other {
			err = &fetch.Error{URL: r.URL, Class: a.class, Err: errors.New("fake")}
		}
	case <-ctx.Done():
		err = &fetch.Error{URL: r.URL, Class: fetch.Canceled, Err: ctx.Err()}
		a.retryAfter = 0
	}
	if err == nil || a.broken != "" {
		res.Broken, res.Truncated = a.broken, a.broken != ""
		for k, v := range a.header {
			res.Header[k] = v
		}
		res.Status, res.Body, res.Bytes = a.status, spool.Of([]byte(a.body)), int64(len(a.body))
		res.RetryAfter = a.retryAfter
		if a.kind == "" {
			a.kind = "text/html; charset=utf-8"
		}
		res.Header.Set("Content-Type", a.kind)
		if a.location != "" {
			res.Header.Set("Location", a.location)
		}
	}
	res.Ended = time.Now()
	w.mu.Lock()
	w.open[host]--
	w.log = append(w.log, request{r.URL, host, n, res.Started, res.Ended, res.Status, r.Header, res.RetryAfter})
	w.mu.Unlock()
	return res, err
}

// requests are those for URLs with a prefix, in order.
func (w *fakeWeb) requests(prefix string) (out []request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.log {
		if strings.HasPrefix(r.url, prefix) {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b request) int { return a.start.Compare(b.start) })
	return out
}

// urls are the distinct URLs asked for, robots.txt excepted, sorted.
func (w *fakeWeb) urls() (out []string) {
	for u := range w.asks {
		if !isRobots(u) {
			out = append(out, u)
		}
	}
	slices.Sort(out)
	return out
}

// checkPolite verifies, for every host: one request at a time; owed, a function
// of the request before, is kept; robots.txt of the site is answered first.
func (w *fakeWeb) checkPolite(t testing.TB, owed func(request) time.Duration) {
	t.Helper()
	assert.LessOrEqual(t, w.most, 1, "requests open at once on one host")
	last := map[string]request{}
	until := map[string]time.Time{}
	robots := map[string]bool{}
	for _, r := range w.requests("") {
		if prev, ok := last[r.host]; ok {
			if gap, want := r.start.Sub(prev.end), owed(prev); gap < want {
				t.Errorf("%s came %v after %s; want at least %v", r.url, gap, prev.url, want)
			}
		}
		if r.start.Before(until[r.host]) {
			t.Errorf("%s came %v before the end of Retry-After", r.url, until[r.host].Sub(r.start))
		}
		site := siteOf(r.url)
		if isRobots(r.url) {
			robots[site] = true
		} else if !robots[site] && !strings.Contains(r.url, "/robots") {
			t.Errorf("%s was asked for before its robots.txt", r.url)
		}
		last[r.host] = r
		if u := r.end.Add(r.owed); u.After(until[r.host]) {
			until[r.host] = u
		}
	}
}

const testDelay = time.Second

func fixedOwed(request) time.Duration { return testDelay }

// crawl runs a crawl of web to its end and checks the frontier afterwards.
func crawl(t testing.TB, web *fakeWeb, fo frontier.Options, co Options, seeds ...string) Progress {
	t.Helper()
	f := openFrontier(t, fo)
	c := newCrawler(t, f, web, co)
	_, err := c.Seed(t.Context(), seeds...)
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	require.NoError(t, c.gate.check())
	return c.Progress()
}

func openFrontier(t testing.TB, o frontier.Options) *frontier.Frontier {
	t.Helper()
	if o.Delay == nil {
		o.Delay = frontier.FixedDelay(testDelay)
	}
	f, err := frontier.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, f.Check())
		assert.Zero(t, f.Stats().Leased, "leases left")
		assert.NoError(t, f.Close())
	})
	return f
}

func newCrawler(t testing.TB, f Frontier, web Fetcher, o Options) *Crawler {
	t.Helper()
	if o.Fetcher == nil {
		o.Fetcher = web
	}
	o.UserAgent = "testbot/1.0 (+http://contact.example/)"
	c, err := New(f, o)
	require.NoError(t, err)
	return c
}
