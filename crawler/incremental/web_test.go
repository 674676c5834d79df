// This file is a web in virtual time for tests of whole crawls.

package incremental

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/spool"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/recrawl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const day = 24 * time.Hour

// asked is a request.
type asked struct {
	at          time.Duration // since the web began
	conditional bool
	status      int
}

// answer is what a page answers with. The zero value is status 404.
type answer struct {
	status int
	body   string
	header map[string]string
	fails  bool
}

// web is a crawler.Fetcher that answers from functions of the time since it began and
// the number of the request.
type web struct {
	began time.Time
	pages map[string]func(at time.Duration, n int, h http.Header) answer

	mu   sync.Mutex
	log  map[string][]asked
	last map[string]time.Time // end of the last request, by host
	rude []string
}

func newWeb() *web {
	return &web{began: time.Now(), log: map[string][]asked{}, last: map[string]time.Time{}, pages: map[string]func(time.Duration, int, http.Header) answer{}}
}

const (
	testDelay = 2 * time.Second
	takes     = 10 * time.Millisecond
)

func (w *web) Fetch(ctx context.Context, r fetch.Request) (*fetch.Result, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	w.mu.Lock()
	if last := w.last[u.Host]; !last.IsZero() && now.Sub(last) < testDelay {
		w.rude = append(w.rude, fmt.Sprint(r.URL, " after ", now.Sub(last)))
	}
	at := now.Sub(w.began)
	a := answer{status: 404}
	if f := w.pages[r.URL]; f != nil {
		a = f(at, len(w.log[r.URL]), r.Header)
	}
	w.log[r.URL] = append(w.log[r.URL], asked{at, len(r.Header) > 0 && u.Path != "/robots.txt", a.status})
	w.mu.Unlock()
	time.Sleep(takes)
	w.mu.Lock()
	w.last[u.Host] = time.Now()
	w.mu.Unlock()
	res := &fetch.Result{URL: r.URL, Started: now, Ended: time.Now(), Header: http.Header{"Content-Type": {"text/html"}}}
	if a.fails {
		return res, &fetch.Error{URL: r.URL, Class: fetch.Timeout, Err: errors.New("no answer")}
	}
	res.Status, res.Body = a.status, spool.Of([]byte(a.body))
	for k, v := range a.header {
		res.Header.Set(k, v)
	}
	return res, nil
}

// text is an HTML page.
func text(format string, args ...any) answer {
	return answer{status: 200, body: "<body><p>" + fmt.Sprintf(format, args...)}
}

// steady is a page with links that never changes.
func steady(links ...string) func(time.Duration, int, http.Header) answer {
	body := "<p>steady words"
	for _, l := range links {
		body += fmt.Sprintf("<a href=%q>x</a>", l)
	}
	return func(time.Duration, int, http.Header) answer { return answer{status: 200, body: body} }
}

// crawl is a crawl of a web in virtual time.
type crawl struct {
	t     testing.TB
	web   *web
	f     *frontier.Frontier
	r     *Revisits
	co    crawler.Options
	wider bool
	gone  []string
}

// begin opens everything. What is opened is closed with the test.
func begin(t testing.TB, w *web, o Options) *crawl {
	x := &crawl{t: t, web: w}
	o.OnGone = func(e frontier.Entry) { x.gone = append(x.gone, e.URL) }
	r, err := Open(o)
	require.NoError(t, err)
	fo := frontier.Options{Delay: frontier.FixedDelay(testDelay)}
	hook.Tune(&fo, func(t *hook.Tuning) { t.LookAgain = 10000 * day }) // a bubble's clock is never set
	r.Configure(&fo)
	f, err := frontier.Open(t.Context(), fo)
	require.NoError(t, err)
	require.NoError(t, r.Attach(t.Context(), f))
	x.f, x.r = f, r
	t.Cleanup(func() {
		assert.NoError(t, f.Check())
		assert.NoError(t, f.Close())
		assert.NoError(t, r.Close())
		assert.Empty(t, w.rude)
	})
	return x
}

// run crawls for a time.
func (x *crawl) run(d time.Duration, seeds ...string) crawler.Progress {
	x.co.Workers, x.co.Fetcher, x.co.Revisits, x.co.ProgressEvery = 1, x.web, x.r, 10000*day
	if x.r.opts.Schedule.Budget > 0 && x.co.MaxRate == 0 {
		x.co.MaxRate = x.r.opts.Schedule.Budget
	}
	c, err := crawler.New(x.f, x.co)
	require.NoError(x.t, err)
	if x.wider {
		require.NoError(x.t, c.Unpark())
	}
	_, err = c.Seed(x.t.Context(), seeds...)
	require.NoError(x.t, err)
	ctx, stop := context.WithTimeout(x.t.Context(), d)
	defer stop()
	if err := c.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		require.NoError(x.t, err)
	}
	return c.Progress()
}

// times are when a URL was asked for.
func (w *web) times(u string) (out []time.Duration) {
	for _, a := range w.log[u] {
		out = append(out, a.at)
	}
	return out
}

// inVirtualTime runs a test in a bubble.
func inVirtualTime(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

func schedule(perDay float64) recrawl.Options {
	return recrawl.Options{Budget: perDay / 86400, Seed: 1}
}

func sorted(s []string) []string { slices.Sort(s); return s }
