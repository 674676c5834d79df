// These tests crawl over real connections, which virtual time cannot: what the
// server saw is what counts.

package crawler

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/spill"
)

// server is a web on a socket that keeps the access log of a fakeWeb.
type server struct {
	*fakeWeb
	addr string
}

// listen serves h for all hosts. Requests for the paths in left end with the
// client leaving, which the server sees at some later time; so they do not count
// as open.
func listen(t testing.TB, h http.HandlerFunc, left ...string) *server {
	t.Helper()
	s := &server{fakeWeb: newWeb()}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		url := "http://" + r.Host + r.URL.Path
		s.mu.Lock()
		start := time.Now()
		s.asks[url]++
		opened := 1
		if slices.Contains(left, r.URL.Path) {
			opened = 0
		}
		s.open[r.Host] += opened
		s.most = max(s.most, s.open[r.Host])
		n := s.asks[url]
		s.mu.Unlock()
		a := &answering{ResponseWriter: w}
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if a.end.IsZero() {
				a.end = time.Now()
			}
			s.open[r.Host] -= opened
			s.log = append(s.log, request{url: url, host: r.Host, n: n, start: start, end: a.end})
		}()
		h(a, r)
	}))
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.Start()
	t.Cleanup(web.Close)
	s.addr = web.Listener.Addr().String()
	return s
}

func (s *server) fetcher(t testing.TB, o fetch.Options) Fetcher {
	t.Helper()
	o.Resolve = map[string]string{"*": s.addr}
	f, err := fetch.New(o)
	require.NoError(t, err)
	return f
}

// answering is an answer on its way.
type answering struct {
	http.ResponseWriter
	end time.Time // when the client may have seen the end of it; zero: when its handler returns
}

// Unwrap is for http.ResponseController.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// cut ends the connection at once.
func cut(w http.ResponseWriter, before string) {
	if a, ok := w.(*answering); ok {
		a.end = time.Now() // the client may leave before the handler goes on
	}
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(c, before)
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// impatientFor is a Fetcher that waits briefly for paths that never answer. All others have the
// time that a busy machine takes.
type impatientFor struct {
	suffix      string
	brief, long Fetcher
}

func (f impatientFor) Fetch(ctx context.Context, r fetch.Request) (*fetch.Result, error) {
	if strings.HasSuffix(r.URL, f.suffix) {
		return f.brief.Fetch(ctx, r)
	}
	return f.long.Fetch(ctx, r)
}

func TestHostileAnswers(t *testing.T) {
	const delay = 20 * time.Millisecond
	hostile := map[string]http.HandlerFunc{
		"/huge": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `<a href="/from-huge">x</a>`)
			for _, err := w.Write(make([]byte, 1<<16)); err == nil; _, err = w.Write(make([]byte, 1<<16)) {
				continue
			}
		},
		"/slow": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/cut":  func(w http.ResponseWriter, _ *http.Request) { cut(w, "") },
		"/half": func(w http.ResponseWriter, _ *http.Request) {
			cut(w, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n<a")
		},
		"/nonsense": func(w http.ResponseWriter, _ *http.Request) { cut(w, "hello\r\n\r\n") },
		"/endless":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) },
		"/long-link": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/"+strings.Repeat("x", 70_000))
			w.WriteHeader(302)
		},
		"/many": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			for i := range 5_000 {
				fmt.Fprintf(w, "<a href=http://other%d.example/%s>", i, strings.Repeat("y", 100))
			}
		},
	}
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if h := hostile[r.URL.Path]; h != nil {
			h(w, r)
		} else if strings.HasPrefix(r.URL.Path, "/endless") {
			hostile["/endless"](w, r)
		} else {
			http.NotFound(w, r)
		}
	}, "/huge", "/slow")
	f := openFrontier(t, frontier.Options{
		Delay: frontier.FixedDelay(delay), Retry: frontier.Retries(2, delay), Backoff: frontier.Backoff{Base: delay, Max: delay},
	})
	impatient := impatientFor{"/slow", s.fetcher(t, fetch.Options{HeaderTimeout: 250 * time.Millisecond}), s.fetcher(t, fetch.Options{MaxBody: 1 << 20})}
	c := newCrawler(t, f, impatient, Options{
		Scope: Scope{Domains: []string{"trap.example"}}, MaxRedirects: 3,
	})
	var seeds []string
	for path := range hostile {
		seeds = append(seeds, "http://"+path[1:]+".trap.example"+path, "http://all.trap.example"+path)
	}
	_, err := c.Seed(t.Context(), seeds...)
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	p := c.Progress()
	assert.EqualValues(t, 6, p.Pages, "huge, many and half, from both hosts")
	assert.EqualValues(t, 2, p.Broken, "half, at the second try")
	assert.EqualValues(t, 2, p.Gone, "what huge links to")
	assert.EqualValues(t, 2*(3*2+1), p.Failed, "two tries of slow, cut, nonsense, one of half")
	assert.EqualValues(t, 2*3, p.Frontier.GivenUp)
	assert.EqualValues(t, 2*(4+1), p.Redirects, "endless is followed three times")
	assert.EqualValues(t, 2*5_000+2, p.Links)
	for u, n := range s.asks {
		assert.LessOrEqual(t, n, 2, u)
	}
	s.checkPolite(t, func(r request) time.Duration {
		if strings.HasSuffix(r.url, "/huge") || strings.HasSuffix(r.url, "/slow") {
			return 0 // when the client left is not known exactly
		}
		return delay
	})
}

func TestResumeFromTheFolder(t *testing.T) {
	const delay, pages = 10 * time.Millisecond, 12
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil || n >= pages {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<a href=/%d>x</a><a href=http://h%d.example/0>y</a>", n+1, n%3)
	})
	dir := t.TempDir()
	var mu sync.Mutex
	done := map[string]int{}
	for i := 0; ; i++ {
		require.Less(t, i, 20, "the crawl does not end")
		store, err := spill.Open(dir, spill.Options{})
		require.NoError(t, err)
		f, err := frontier.Open(t.Context(), frontier.Options{Spill: store, Delay: frontier.FixedDelay(delay)})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		c := newCrawler(t, f, s.fetcher(t, fetch.Options{}), Options{OnDone: func(l frontier.Lease, o frontier.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			if o.Result == frontier.Visited || o.Result == frontier.Gone {
				if done[l.Entry.URL]++; len(done)%13 == 0 {
					cancel()
				}
			}
		}})
		_, err = c.Seed(t.Context(), "http://h0.example/0")
		require.NoError(t, err)
		err = c.Run(ctx)
		cancel()
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
		require.NoError(t, store.Close())
		if err == nil {
			break
		}
		require.ErrorIs(t, err, context.Canceled)
	}
	assert.Len(t, done, 3*(pages+1))
	for u, n := range done {
		assert.Equal(t, 1, n, u)
		assert.Equal(t, 1, s.asks[u], u)
	}
	s.checkPolite(t, func(request) time.Duration { return delay })
}
