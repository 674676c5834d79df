package polite

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

// robotsAt answers robots.txt of all hosts, and other URLs with a page.
func robotsAt(status int, body string, header ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/robots.txt" {
			return says(status, body, header...), nil
		}
		return says(200, "page"), nil
	}
}

func TestRobotsAreAskedOnceAndInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, robotsAt(200, "User-agent: examplebot\nDisallow: /private\n"))
		w.took = time.Second // all ask meanwhile
		tr := newTransport(t, w, frontier.Options{})
		tr.Robots = &Robots{Agent: "examplebot/1.0"}
		c := &http.Client{Transport: tr}
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				_, err := get(t, c, "http://a.example/private/diary")
				denied, ok := errors.AsType[*DeniedError](err)
				if assert.True(t, ok, "%v", err) {
					assert.Equal(t, DeniedError{URL: "http://a.example/private/diary", Pattern: "/private", Line: 2}, *denied)
				}
			})
		}
		all.Wait()
		_, err := get(t, c, "http://a.example/")
		require.NoError(t, err)
		assert.Equal(t, []string{"0s http://a.example/robots.txt", "11s http://a.example/"}, w.requests())
	})
}

func TestStatusesOfRobots(t *testing.T) {
	for _, x := range []struct {
		status  int
		body    string
		header  []string
		allowed bool
		err     bool
	}{
		{status: 200, body: "User-agent: *\nDisallow: /\n"},
		{status: 200, allowed: true},
		{status: 200, body: strings.Repeat("#", 500<<10) + "\nUser-agent: *\nDisallow: /\n", allowed: true},
		{status: 200, body: "\x1f\x8b", header: []string{"Content-Encoding", "br"}, err: true},
		{status: 404, body: "User-agent: *\nDisallow: /\n", allowed: true},
		{status: 401, allowed: true}, {status: 403, allowed: true}, {status: 410, allowed: true},
		{status: 302, allowed: true}, // without a Location
		{status: 302, header: []string{"Location", "ftp://a.example/robots.txt"}, allowed: true},
		{status: 302, header: []string{"Location", "/robots.txt"}, allowed: true}, // a loop
		{status: 429, err: true}, {status: 500, err: true}, {status: 503, err: true},
	} {
		w := newWeb(t, robotsAt(x.status, x.body, x.header...))
		r := &Robots{Agent: "examplebot"}
		ok, err := r.Allowed(t.Context(), w, "http://a.example/page")
		assert.Equal(t, x.allowed, ok, "%d %v", x.status, x.header)
		unreachable, failed := errors.AsType[*UnreachableError](err)
		if assert.Equal(t, x.err, failed, "%d: %v", x.status, err) && failed {
			assert.Equal(t, "http://a.example", unreachable.Site)
			assert.Equal(t, x.status, unreachable.Status)
			continue
		}
		n := len(w.requests())
		ok, err = r.Allowed(t.Context(), w, "http://a.example:80/page")
		require.NoError(t, err)
		assert.Equal(t, x.allowed, ok)
		assert.Len(t, w.requests(), n, "it is remembered")
	}
}

func TestUnreachableRobotsAreAskedForMoreAndMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		w := newWeb(t, func(*http.Request) (*http.Response, error) {
			if down {
				return says(500, ""), nil
			}
			return says(200, "User-agent: *\nDisallow: /\n"), nil
		})
		r := &Robots{Agent: "examplebot", TTL: time.Hour}
		for time.Since(w.begun) < 40*time.Second {
			_, err := r.Allowed(t.Context(), w, "http://a.example/")
			assert.Error(t, err)
			time.Sleep(100 * time.Millisecond)
		}
		var at []string
		for _, x := range w.requests() {
			s, _, _ := strings.Cut(x, " ")
			at = append(at, s)
		}
		assert.Equal(t, []string{"0s", "1s", "3s", "7s", "15s", "31s"}, at)
		down = false
		time.Sleep(30 * time.Second)
		ok, err := r.Allowed(t.Context(), w, "http://a.example/")
		require.NoError(t, err)
		assert.False(t, ok)
		down = true
		time.Sleep(2 * time.Hour)
		for n := range 3 {
			ok, err = r.Allowed(t.Context(), w, "http://a.example/")
			assert.Equal(t, n < 2, err != nil, "the third time expired rules serve again")
			time.Sleep(5 * time.Second)
		}
		assert.False(t, ok)
	})
}

func TestRobotsRedirectsAreFollowedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, func(r *http.Request) (*http.Response, error) {
			switch r.URL.String() {
			case "http://a.example/robots.txt":
				return says(301, "", "Location", "https://a.example/robots.txt"), nil
			case "https://a.example/robots.txt":
				return says(301, "", "Location", "https://www.a.example/robots.txt"), nil
			case "https://www.a.example/robots.txt":
				return says(200, "User-agent: *\nDisallow: /private\nCrawl-delay: 25"), nil
			}
			return says(200, "page"), nil
		})
		tr := newTransport(t, w, frontier.Options{})
		tr.Robots = &Robots{Agent: "examplebot/1.0"}
		c := &http.Client{Transport: tr}
		for range 2 {
			_, err := get(t, c, "http://a.example/")
			require.NoError(t, err)
		}
		_, err := get(t, c, "https://www.a.example/")
		require.NoError(t, err)
		assert.Equal(t, []string{
			"0s http://a.example/robots.txt", "10s https://a.example/robots.txt", "10s https://www.a.example/robots.txt",
			"35s http://a.example/", "1m0s http://a.example/", "1m0s https://www.a.example/",
		}, w.requests(), "its Crawl-delay counts from the first page on; www.a.example is not asked again")
	})
}

func TestCrawlDelayGoesToTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, robotsAt(200, "User-agent: *\nCrawl-delay: 45"))
		tr := newTransport(t, w, frontier.Options{})
		tr.Robots = &Robots{Agent: "examplebot/1.0", MaxCrawlDelay: 30 * time.Second}
		c := &http.Client{Transport: tr}
		for range 2 {
			_, err := get(t, c, "http://a.example/")
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"0s http://a.example/robots.txt", "30s http://a.example/", "1m0s http://a.example/"}, w.requests())
		d, ok := tr.Robots.CrawlDelay("http://a.example/x")
		assert.True(t, ok)
		assert.Equal(t, 30*time.Second, d)
	})
}

func TestMemoryOfRobotsIsBounded(t *testing.T) {
	w := newWeb(t, robotsAt(200, "User-agent: *\nDisallow: /private\n"))
	r := &Robots{Agent: "examplebot", Memory: 20_000}
	for i := range 100 {
		_, err := r.Allowed(t.Context(), w, "http://h"+strings.Repeat("x", i+1)+".example/")
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, r.bytes, int64(20_000))
	assert.Less(t, len(r.sites), 60)
	assert.Equal(t, r.recent.Len(), len(r.sites))
	n := len(w.requests())
	_, err := r.Allowed(t.Context(), w, "http://h"+strings.Repeat("x", 100)+".example/2")
	require.NoError(t, err)
	assert.Len(t, w.requests(), n, "the latest is remembered")
	_, err = r.Allowed(t.Context(), w, "http://hx.example/2")
	require.NoError(t, err)
	assert.Len(t, w.requests(), n+1, "the oldest is not")
}

func TestRobotsWantAnAgent(t *testing.T) {
	for _, agent := range []string{"", "/1.0"} {
		r := &Robots{Agent: agent}
		_, err := r.Allowed(t.Context(), nil, "http://localhost:1/")
		assert.ErrorContains(t, err, `polite: Robots.Agent is "`+agent+`"; want a name as in examplebot/1.0`)
		_, err = (&http.Client{Transport: &Transport{Robots: r}}).Get("http://localhost:1/") //nolint:bodyclose // an error
		assert.ErrorContains(t, err, "Robots.Agent is")
	}
}

func TestACancelledQuestionIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		w := newWeb(t, func(r *http.Request) (*http.Response, error) {
			if first {
				first = false
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return says(404, ""), nil
		})
		r := &Robots{Agent: "examplebot"}
		ctx, cancel := contextWithTimeout(t, time.Second)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			_, err := r.Allowed(ctx, w, "http://a.example/")
			assert.Error(t, err)
		})
		synctest.Wait()
		all.Go(func() {
			ok, err := r.Allowed(t.Context(), w, "http://a.example/")
			assert.NoError(t, err, "another caller takes over")
			assert.True(t, ok)
		})
		all.Wait()
		assert.Len(t, w.requests(), 2)
	})
}

// The wait for an address that another host is using is an answer of Admit, not an error of the request.
func TestAdmitWaitsForTheAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newWeb(t, robotsAt(404, "")), frontier.Options{})
		tr.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		}
		first := lease(t, embedded(tr), "http://a.example/")
		require.NoError(t, tr.Admit(t.Context(), first))
		second := lease(t, embedded(tr), "http://b.example/")
		var busy *BusyError
		err := tr.Admit(t.Context(), second)
		require.ErrorAs(t, err, &busy)
		require.NoError(t, tr.Frontier.Done(second, OutcomeOf(nil, err)))
		v, err := visit(t, &http.Client{Transport: tr}, first)
		require.NoError(t, err)
		require.NoError(t, tr.Frontier.Done(first, v.Outcome()))
		second, err = embedded(tr).Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, tr.Admit(t.Context(), second))
		require.NoError(t, tr.Frontier.Done(second, frontier.Outcome{}))
	})
}

func TestMaxWaitBoundsTheWaitForAnothersRobots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, robotsAt(200, ""))
		w.took = 5 * time.Minute
		tr := newTransport(t, w, frontier.Options{})
		tr.Robots = &Robots{Agent: "examplebot"}
		tr.MaxWait = 5 * time.Second
		c := &http.Client{Transport: tr}
		var reading sync.WaitGroup
		reading.Go(func() { _, _ = get(t, c, "http://a.example/") })
		synctest.Wait()
		begun := time.Now()
		_, err := get(t, c, "http://a.example/")
		_, busy := errors.AsType[*BusyError](err)
		require.True(t, busy, "%v", err)
		assert.Equal(t, 5*time.Second, time.Since(begun))
		reading.Wait()
	})
}
