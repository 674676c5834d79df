// This file crawls pages that are nothing without their scripts, and judges by the servers' logs
// how polite that was.

package frontierchromedp

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

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/polite"
)

// app serves an application: all its pages are the same script, which asks an API for text and
// links. The pages link to each other's hosts.
func app(next string, pages int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var n int
		switch _, err := fmt.Sscanf(r.URL.Path, "/page/%d", &n); {
		case r.URL.Path == "/robots.txt":
			fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
		case r.URL.Path == "/app.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, `fetch("/api" + location.pathname).then(r => r.json()).then(x => {
				document.body.innerHTML = "<h1>" + x.text + "</h1>" + x.links.map(u => "<a href='" + u + "'>more</a>").join("");
			});
			fetch("/private/track").catch(() => {});`)
		case strings.HasPrefix(r.URL.Path, "/api/page/"):
			_, _ = fmt.Sscanf(r.URL.Path, "/api/page/%d", &n)
			w.Header().Set("Content-Type", "application/json")
			links := []string{"/private/page", fmt.Sprintf("http://%s/page/%d", next, n)}
			if n < pages {
				links = append(links, fmt.Sprintf("/page/%d", n+1))
			}
			fmt.Fprintf(w, `{"text": "this is page %d of %s", "links": ["%s"]}`, n, r.Host, strings.Join(links, `", "`))
		case err == nil && n <= pages:
			html5(w, `<script src="/app.js"></script>`)
		case r.URL.Path == "/old":
			http.Redirect(w, r, "http://"+next+"/page/1", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}
}

// Each page is rendered once, with the text and links that only its scripts know; each host gets
// one request at a time, and rests between two pages for as long as it is owed.
func TestACrawlOfApplications(t *testing.T) {
	const pages, delay = 3, 300 * time.Millisecond
	hosts := map[string]*site{
		"a.example": serve(t, 1, app("b.example", pages)),
		"b.example": serve(t, 2, app("c.example", pages)),
		"c.example": serve(t, 3, app("a.example", pages)),
	}
	r := renderer(t, Options{Timeout: patience, Tabs: 2}, hosts)
	f, err := frontier.Open(t.Context(), frontier.Options{Delay: frontier.FixedDelay(delay)})
	require.NoError(t, err)
	defer f.Close()
	var mu sync.Mutex
	texts := map[string]int{}
	c, err := crawler.New(f, crawler.Options{Fetcher: r, UserAgent: "testbot/1", Workers: 4, OnPage: func(_ context.Context, p *crawler.Page) error {
		b, err := p.Body.Bytes()
		mu.Lock()
		defer mu.Unlock()
		texts[string(b[:min(len(b), 1<<10)])]++
		return err
	}})
	require.NoError(t, err)
	_, err = c.Seed(t.Context(), "http://a.example/page/1", "http://c.example/old")
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	require.NoError(t, f.Check())

	got := c.Progress()
	assert.EqualValues(t, 3*pages, got.Pages)
	assert.EqualValues(t, 3, got.Denied, "a page of each host")
	assert.EqualValues(t, 1, got.Redirects)
	assert.Zero(t, got.Failed)
	for host, s := range hosts {
		for n := 1; n <= pages; n++ {
			found := false
			for text := range texts {
				found = found || strings.Contains(text, fmt.Sprintf("<h1>this is page %d of %s</h1>", n, host))
			}
			assert.True(t, found, "%s %d: %v", host, n, texts)
		}
		asked := s.asked()
		for _, path := range asked {
			assert.False(t, strings.HasPrefix(path, "/private"), path)
		}
		slices.Sort(asked)
		assert.Equal(t, asked, slices.Compact(slices.Clone(asked)), "nothing twice: the script is kept")
		assertPolite(t, host, s.visits, delay)
	}
}

// assertPolite checks that requests do not overlap, and that pages and robots.txt are contacts with
// a pause before them.
func assertPolite(t *testing.T, host string, visits []visit, delay time.Duration) {
	t.Helper()
	for i := 1; i < len(visits); i++ {
		gap, path := visits[i].begin.Sub(visits[i-1].end), visits[i].path
		owed := time.Duration(0)
		if path != "/app.js" && !strings.HasPrefix(path, "/api/") {
			owed = delay
		}
		assert.GreaterOrEqual(t, gap, owed, "%s%s after %s", host, path, visits[i-1].path)
	}
}

// Without the reference crawler: leases, robots.txt and the turns of other hosts come from package
// polite.
func TestVisitsUnderLeases(t *testing.T) {
	const delay = 300 * time.Millisecond
	a := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
		case "/", "/more":
			html5(w, `<script src="http://cdn.example/lib.js"></script><script src="http://cdn.example/private.js"></script>
				<script>fetch("http://cdn.example/text").then(r => r.text()).then(x => { document.body.innerHTML = x })</script>`)
		case "/moved":
			http.Redirect(w, r, "/more", http.StatusMovedPermanently)
		case "/busy":
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			http.NotFound(w, r)
		}
	})
	cdn := serve(t, 2, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
		case "/lib.js":
			w.Header().Set("Content-Type", "text/javascript")
		case "/text":
			fmt.Fprint(w, `<title>rendered</title><a href="/moved">1</a><a href="/private">2</a><a href="/missing">3</a><a href="/busy">4</a>`)
		}
	})
	f, err := frontier.Open(t.Context(), frontier.Options{Delay: frontier.FixedDelay(delay), Retry: frontier.Retries(1, time.Second)})
	require.NoError(t, err)
	defer f.Close()
	turns := &polite.Transport{Frontier: f, Robots: &polite.Robots{Agent: "testbot/1"}}
	r := renderer(t, Options{Timeout: patience, Others: turns}, map[string]*site{"a.example": a, "cdn.example": cdn})
	turns.Base = Base(r.Fetcher)
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
	require.NoError(t, err)
	results := map[string]frontier.Result{}
	for l, err := range f.Leases(t.Context()) {
		require.NoError(t, err)
		err := turns.Admit(t.Context(), l)
		if errors.Is(err, polite.ErrHandedBack) {
			continue
		}
		o := polite.OutcomeOf(nil, err)
		if err == nil {
			var page *link.Page
			page, o, err = r.Visit(t.Context(), l)
			require.NoError(t, err)
			if page != nil {
				assert.Len(t, page.Links, 2+4, "two scripts, and what they made: %s", l.Entry.URL)
			}
		}
		results[l.Entry.URL] = o.Result
		require.NoError(t, f.Done(l, o))
	}
	assert.Equal(t, map[string]frontier.Result{
		"http://a.example/": frontier.Visited, "http://a.example/more": frontier.Visited, "http://a.example/moved": frontier.Visited,
		"http://a.example/private": frontier.Denied, "http://a.example/missing": frontier.Gone, "http://a.example/busy": frontier.Failed,
	}, results)
	for host, s := range map[string]*site{"a.example": a, "cdn.example": cdn} {
		for _, path := range s.asked() {
			assert.NotContains(t, path, "private")
		}
		assertPolite(t, host, s.visits, delay)
	}
	assert.ElementsMatch(t, []string{"/robots.txt", "/lib.js", "/text", "/text"}, cdn.asked(), "each in its turn")
}

// What the Fetcher offers beyond Fetch is not lost.
func TestTheRendererIsAWholeFetcher(t *testing.T) {
	var r any = new(Renderer)
	_, ok := r.(crawler.Addresser)
	assert.True(t, ok)
	_, ok = r.(interface{ CheckPort(string) error })
	assert.True(t, ok)
	_, ok = r.(interface{ CloseIdle() })
	assert.True(t, ok)
}
