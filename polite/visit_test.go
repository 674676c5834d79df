package polite

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

// lease adds URLs, and leases the first.
func lease(t *testing.T, f *frontier.Frontier, urls ...string) frontier.Lease {
	t.Helper()
	for _, u := range urls {
		_, err := f.Add(t.Context(), frontier.Entry{URL: u, Depth: 3, Weight: 2})
		require.NoError(t, err)
	}
	l, err := f.Next(t.Context())
	require.NoError(t, err)
	return l
}

// visit fetches the URL of a lease by a client.
func visit(t *testing.T, c *http.Client, l frontier.Lease) (*Visit, error) {
	t.Helper()
	_, v := WithLease(t.Context(), l)
	resp, err := v.Get(c)
	if err != nil {
		return v, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return v, err
}

func TestALeaseIsUsedInsteadOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, always(200, "hello", "Last-Modified", "Fri, 02 Jan 1998 03:04:05 GMT", "Retry-After", "60"))
		w.took = 2 * time.Second
		tr := newTransport(t, w, frontier.Options{})
		c := &http.Client{Transport: tr}
		l := lease(t, embedded(tr), "http://a.example/", "http://a.example/2")
		v, err := visit(t, c, l)
		require.NoError(t, err)
		ended := time.Now()
		assert.EqualValues(t, 1, embedded(tr).Stats().Leased, "it is the caller's")
		time.Sleep(time.Second)
		o := v.Outcome()
		assert.Equal(t, frontier.Outcome{
			Result: frontier.Visited, Ended: ended, Duration: 2 * time.Second, Bytes: 5, RetryAfter: time.Minute,
			Modified: time.Date(1998, 1, 2, 3, 4, 5, 0, time.UTC),
		}, o)
		require.NoError(t, tr.Frontier.Done(l, o))
		v, err = visit(t, c, lease(t, embedded(tr)))
		require.NoError(t, err)
		assert.Equal(t, []string{"0s http://a.example/", "1m2s http://a.example/2"}, w.requests())
		require.NoError(t, tr.Frontier.Done(v.lease, v.Outcome()))
	})
}

func TestRedirectsOfALeaseGoToTheFrontier(t *testing.T) {
	for name, check := range map[string]func(*http.Request, []*http.Request) error{"refused": nil, "last response": LastResponse} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb(t, always(301, "moved", "Location", "/2#top"))
				tr := newTransport(t, w, frontier.Options{})
				l := lease(t, embedded(tr), "http://a.example/")
				v, err := visit(t, &http.Client{Transport: tr, CheckRedirect: check}, l)
				if e, ok := errors.AsType[*RedirectError](err); check == nil && assert.True(t, ok, "%v", err) {
					assert.Equal(t, RedirectError{From: "http://a.example/", To: "http://a.example/2#top"}, *e)
				} else {
					require.NoError(t, err)
				}
				o := v.Outcome()
				assert.Equal(t, frontier.Visited, o.Result)
				assert.Equal(t, []frontier.Entry{{URL: "http://a.example/2", Depth: 3, Weight: 2, AsIs: true}}, o.Add)
				require.NoError(t, tr.Frontier.Done(l, o))
				assert.Len(t, w.requests(), 1)
			})
		})
	}
}

func TestALeaseAllowsOneContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, always(200, "hello"))
		tr := newTransport(t, w, frontier.Options{})
		c := &http.Client{Transport: tr}
		l := lease(t, embedded(tr), "http://a.example/")
		ctx, v := WithLease(t.Context(), l)
		do := func(url string) error {
			req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
			require.NoError(t, err)
			resp, err := c.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
		require.NoError(t, do("http://b.example/style.css"), "another host: a turn of its own")
		require.NoError(t, do("http://a.example/"))
		require.ErrorIs(t, do("http://a.example/"), ErrLeaseUsed)
		require.NoError(t, tr.Frontier.Done(l, v.Outcome()))
		assert.Len(t, w.requests(), 2)
	})
}

func TestAVisitWithoutARequest(t *testing.T) {
	tr := newTransport(t, newWeb(t, always(200, "")), frontier.Options{})
	l := lease(t, embedded(tr), "http://a.example/")
	ctx, cancel := context.WithCancel(t.Context())
	_, v := WithLease(ctx, l)
	assert.Equal(t, frontier.Outcome{Result: frontier.Denied, Uncontacted: true}, v.Outcome())
	cancel()
	assert.Equal(t, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}, v.Outcome())
	require.NoError(t, tr.Frontier.Done(l, v.Outcome()))
}

func TestRobotsAreReadUnderALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, robotsAt(200, "User-agent: *\nDisallow: /private\nCrawl-delay: 20\n"))
		tr := newTransport(t, w, frontier.Options{})
		tr.Robots = &Robots{Agent: "examplebot"}
		c := &http.Client{Transport: tr}
		f := embedded(tr)
		l := lease(t, f, "http://a.example/", "http://a.example/private")
		v, err := visit(t, c, l)
		require.ErrorIs(t, err, ErrHandedBack)
		o := v.Outcome()
		assert.Equal(t, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}, o)
		require.ErrorIs(t, f.Done(l, o), frontier.ErrNotLeased)
		l = lease(t, f)
		assert.Equal(t, "http://a.example/", l.Entry.URL, "the same URL comes again")
		assert.Equal(t, 1, l.Attempt)
		v, err = visit(t, c, l)
		require.NoError(t, err)
		require.NoError(t, f.Done(l, v.Outcome()))
		l = lease(t, f)
		v, err = visit(t, c, l)
		_, denied := errors.AsType[*DeniedError](err)
		require.True(t, denied, "%v", err)
		assert.Equal(t, frontier.Outcome{Result: frontier.Denied, Uncontacted: true}, v.Outcome())
		require.NoError(t, f.Done(l, v.Outcome()))
		assert.Equal(t, []string{"0s http://a.example/robots.txt", "20s http://a.example/"}, w.requests())
	})
}

func TestUnreachableRobotsKeepTheURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		w := newWeb(t, func(r *http.Request) (*http.Response, error) {
			if down {
				return says(500, ""), nil
			}
			return says(404, ""), nil
		})
		tr := newTransport(t, w, frontier.Options{})
		tr.Robots = &Robots{Agent: "examplebot"}
		c := &http.Client{Transport: tr}
		_, err := embedded(tr).Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
		require.NoError(t, err)
		for n := 0; ; n++ {
			l, err := embedded(tr).Next(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 1, l.Attempt)
			v, err := visit(t, c, l)
			if done := tr.Frontier.Done(l, v.Outcome()); done != nil {
				require.ErrorIs(t, done, frontier.ErrNotLeased)
			}
			if err == nil {
				assert.Equal(t, frontier.Gone, v.Outcome().Result)
				break
			}
			down = time.Since(w.begun) < 24*time.Hour
			require.Less(t, n, 10_000)
		}
		assert.Less(t, len(w.requests()), 40, "for a day a host that fails is asked rarely")
	})
}

// A site without https must not hold up the pages that its host has on http.
func TestASiteThatFailsLetsOthersOfItsHostPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, func(r *http.Request) (*http.Response, error) {
			switch {
			case r.URL.Scheme == "https":
				return nil, io.EOF
			case r.URL.Path == "/robots.txt":
				return says(404, ""), nil
			}
			return says(200, "page"), nil
		})
		tr := newTransport(t, w, frontier.Options{})
		tr.Robots = &Robots{Agent: "examplebot"}
		var pages []time.Duration
		_, err := embedded(tr).Add(t.Context(),
			frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "https://a.example/"}, frontier.Entry{URL: "https://a.example/2"},
			frontier.Entry{URL: "http://a.example/3"}, frontier.Entry{URL: "http://a.example/4"})
		require.NoError(t, err)
		for len(pages) < 3 {
			l, err := embedded(tr).Next(t.Context())
			require.NoError(t, err)
			v, err := visit(t, &http.Client{Transport: tr}, l)
			if err == nil {
				pages = append(pages, time.Since(w.begun))
			}
			if done := tr.Frontier.Done(l, v.Outcome()); done != nil {
				require.ErrorIs(t, done, frontier.ErrNotLeased)
			}
		}
		assert.Less(t, pages[2], 2*time.Minute, "%v", w.requests())
		info, err := inspect.New(embedded(tr)).Host(t.Context(), "a.example")
		require.NoError(t, err)
		assert.Zero(t, info.Backoff.Step, "the host works")
	})
}

// Reading robots.txt anew before each page would leave no contact for the page.
func TestRulesServeOnceMoreIfTheCrawlDelayIsLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, robotsAt(200, "User-agent: *\nCrawl-delay: 7200"))
		tr := newTransport(t, w, frontier.Options{})
		tr.Robots = &Robots{Agent: "examplebot", TTL: time.Hour}
		l := lease(t, embedded(tr), "http://a.example/")
		_, err := visit(t, &http.Client{Transport: tr}, l)
		require.ErrorIs(t, err, ErrHandedBack)
		l = lease(t, embedded(tr))
		v, err := visit(t, &http.Client{Transport: tr}, l)
		require.NoError(t, err)
		require.NoError(t, tr.Frontier.Done(l, v.Outcome()))
		assert.Equal(t, []string{"0s http://a.example/robots.txt", "2h0m0s http://a.example/"}, w.requests())
	})
}

// Leases of hosts that turn out to share an address are handed back, and come in turn.
func TestLeasesOfOneAddressTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, robotsAt(404, ""))
		w.took = time.Second
		tr := newTransport(t, w, frontier.Options{})
		tr.Robots = &Robots{Agent: "examplebot"}
		tr.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		}
		_, err := embedded(tr).Add(t.Context(), frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://b.example/"}, frontier.Entry{URL: "http://c.example/"})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		var pages atomic.Int32
		for range 3 {
			all.Go(func() {
				for {
					l, err := embedded(tr).Next(ctx)
					if err != nil {
						return
					}
					v, err := visit(t, &http.Client{Transport: tr}, l)
					if done := tr.Frontier.Done(l, v.Outcome()); done != nil {
						assert.ErrorIs(t, done, frontier.ErrNotLeased)
					}
					if err == nil && pages.Add(1) == 3 {
						cancel()
					}
				}
			})
		}
		all.Wait()
		var at []string
		for _, x := range w.requests() {
			s, _, _ := strings.Cut(x, " ")
			at = append(at, s)
		}
		assert.Equal(t, []string{"0s", "11s", "22s", "33s", "44s", "55s"}, at)
	})
}

func TestAContactEndsWithItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		tr := newTransport(t, w, frontier.Options{LeaseTime: time.Minute})
		l := lease(t, embedded(tr), "http://a.example/")
		time.Sleep(50 * time.Second) // such as a queue of the caller
		v, err := visit(t, &http.Client{Transport: tr}, l)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Minute, time.Since(w.begun))
		require.ErrorIs(t, tr.Frontier.Done(l, v.Outcome()), frontier.ErrNotLeased)
	})
}

func TestJudgeDecidesWhatAnAnswerMeans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newWeb(t, always(403, "too fast")), frontier.Options{})
		tr.Judge = func(resp *http.Response, err error) frontier.Outcome {
			o := OutcomeOf(resp, err)
			if resp != nil && resp.StatusCode == http.StatusForbidden {
				o.Result, o.Failure, o.RetryAfter = frontier.Failed, frontier.FailureTooMany, time.Hour
			}
			return o
		}
		c := &http.Client{Transport: tr}
		begun := time.Now()
		for range 2 {
			_, err := get(t, c, "http://a.example/")
			require.NoError(t, err)
		}
		assert.Equal(t, time.Hour, time.Since(begun))
		tr.Judge = func(*http.Response, error) frontier.Outcome {
			return frontier.Outcome{Result: frontier.Visited, Failure: frontier.FailureDNS} // makes no sense
		}
		resp, err := c.Get("http://b.example/")
		require.NoError(t, err)
		require.ErrorContains(t, resp.Body.Close(), "visited with Failure dns")
		assert.Zero(t, embedded(tr).Stats().Leased, "it ended all the same")
	})
}

func TestNothingIsSentUnderALeaseThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, always(200, "hello"))
		tr := newTransport(t, w, frontier.Options{LeaseTime: time.Minute})
		for host, late := range map[string]time.Duration{"a.example": time.Minute, "b.example": 3 * time.Minute} {
			l := lease(t, embedded(tr), "http://"+host+"/")
			time.Sleep(late)
			v, err := visit(t, &http.Client{Transport: tr}, l)
			require.ErrorIs(t, err, frontier.ErrNotLeased)
			assert.Equal(t, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}, v.Outcome())
			_, err = embedded(tr).Delete(t.Context(), scope.All())
			require.NoError(t, err)
		}
		assert.Empty(t, w.requests())
	})
}

func TestAVisitThatPanickedLosesNoURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newWeb(t, always(200, "hello")), frontier.Options{})
		tr.Lookup = func(context.Context, string) ([]netip.Addr, error) { panic("lookup") }
		l := lease(t, embedded(tr), "http://a.example/")
		ctx, v := WithLease(t.Context(), l)
		req, err := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
		require.NoError(t, err)
		require.Panics(t, func() { _, _ = tr.RoundTrip(req) })
		assert.Equal(t, frontier.Requeue, v.Outcome().Result)
		require.NoError(t, tr.Frontier.Done(l, v.Outcome()))
	})
}

// embedded is the frontier of a Transport, in this process.
func embedded(tr *Transport) *frontier.Frontier { return tr.Frontier.(*frontier.Frontier) }
