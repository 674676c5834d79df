// These tests crawl by what headers say: links, and cookies.

package crawler

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

func TestLinksOfHeadersAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always(seed, answer{status: 200, body: `<a href=/body>x</a>`, header: http.Header{
			"Link": {`</canonical>; rel=canonical, </next>; rel=next`, `</style>; rel=stylesheet, </icon>; rel=icon`}, "Content-Location": {"/location"}}})
		w.always("http://a.example/body", answer{status: 200, kind: "application/pdf", body: "%PDF", header: http.Header{"Link": {`</html>; rel="canonical"`}, "Refresh": {"0; url=/refresh"}}})
		w.always("http://a.example/html", answer{status: 200, header: http.Header{"Link": {`</never>; rel=canonical`}, "X-Robots-Tag": {"nofollow"}}})
		w.always("http://a.example/refresh", answer{status: 200, kind: "image/png", header: http.Header{"Link": {`</never>; rel=canonical`}, "X-Robots-Tag": {"testbot: none"}}})
		crawl(t, w, frontier.Options{}, Options{}, seed)
		assert.Equal(t, []string{"http://a.example/", "http://a.example/body", "http://a.example/canonical", "http://a.example/html", "http://a.example/next", "http://a.example/refresh"}, w.urls())
		w.checkPolite(t, fixedOwed)
	})
}

func TestNoFollowIsAPolicy(t *testing.T) {
	for _, skip := range []bool{false, true} {
		t.Run(fmt.Sprint("skip=", skip), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb()
				w.always(seed, answer{status: 200, body: `<a rel=nofollow href=/a>x</a><a rel="ugc" href=/b>x</a><a href=/b>x</a><a rel="x SPONSORED" href=/c>x</a>`,
					header: http.Header{"Link": {`</d>; rel="canonical nofollow"`}}})
				p := crawl(t, w, frontier.Options{}, Options{SkipNoFollow: skip}, seed)
				if skip {
					assert.Equal(t, []string{seed, "http://a.example/b"}, w.urls())
					assert.EqualValues(t, 4, p.FilteredBy["nofollow"])
				} else {
					assert.Len(t, w.urls(), 5)
					assert.Zero(t, p.FilteredBy["nofollow"])
				}
			})
		})
	}
}

// A page that wants a cookie redirects to itself; requested again with the cookie, it is returned.
// A page that always redirects is a loop, and so is one that sets no cookie.
func TestCookieByRedirectToItself(t *testing.T) {
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := r.Cookie("seen")
		switch {
		case r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
		case r.URL.Path == "/page" && err == nil:
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`<a href=/linked>x</a>`))
		case r.URL.Path == "/linked":
			w.Header().Set("Content-Type", "text/html")
		case r.URL.Path == "/none":
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		default:
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1", Path: r.URL.Path})
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}
	})
	for name, tt := range map[string]struct {
		jar   http.CookieJar
		pages int64
		loops int64
		asked map[string]int
	}{
		"with cookies":    {fetch.NewJar(), 2, 2, map[string]int{"/page": 2, "/linked": 1, "/never": 1 + maxReturns, "/none": 1}},
		"without cookies": {nil, 0, 3, map[string]int{"/page": 1, "/linked": 0, "/never": 1, "/none": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s.mu.Lock()
			clear(s.asks)
			s.mu.Unlock()
			f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)})
			c := newCrawler(t, f, s.fetcher(t, fetch.Options{Jar: tt.jar}), Options{})
			_, err := c.Seed(t.Context(), "http://a.example/page", "http://a.example/never", "http://a.example/none")
			require.NoError(t, err)
			require.NoError(t, c.Run(t.Context()))
			p := c.Progress()
			assert.Equal(t, tt.pages, p.Pages)
			assert.Equal(t, tt.loops, p.Loops)
			s.mu.Lock()
			defer s.mu.Unlock()
			for path, n := range tt.asked {
				assert.Equal(t, n, s.asks["http://a.example"+path], path)
			}
		})
	}
}

// Walls in several steps, on several pages and hosts: browsers pass them. A wall that no cookie opens is a loop, at any
// page of it.
func TestCookieWalls(t *testing.T) {
	to := func(w http.ResponseWriter, r *http.Request, target, cookie string) {
		if cookie != "" {
			w.Header().Set("Set-Cookie", cookie+"; Path=/")
		}
		http.Redirect(w, r, target, http.StatusFound)
	}
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		has := func(name string) bool { _, err := r.Cookie(name); return err == nil }
		switch r.URL.Path {
		case "/two": // page, wall, page
			if !has("two") {
				to(w, r, "/two-wall", "")
				return
			}
		case "/two-wall":
			to(w, r, "/two", "two=1")
			return
		case "/first": // the page sets the cookie, and the wall looks for it
			if !has("first") {
				to(w, r, "/first-check", "first=1")
				return
			}
		case "/first-check":
			to(w, r, "/first", "")
			return
		case "/three": // page, wall, wall, page
			if !has("three") {
				to(w, r, "/three-a", "")
				return
			}
		case "/three-a":
			to(w, r, "/three-b", "three=1")
			return
		case "/three-b":
			to(w, r, "/three", "")
			return
		case "/both": // two walls
			switch {
			case !has("age"):
				to(w, r, "/age", "")
				return
			case !has("consent"):
				to(w, r, "/consent", "")
				return
			}
		case "/age":
			to(w, r, "/both", "age=1")
			return
		case "/consent":
			to(w, r, "/both", "consent=1")
			return
		case "/closed":
			to(w, r, "/closed-wall", "")
			return
		case "/closed-wall":
			to(w, r, "/closed", "closed=1; Max-Age=0")
			return
		case "/plain":
			to(w, r, "/plain-2", "")
			return
		case "/plain-2":
			to(w, r, "/plain", "")
			return
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
	})
	f := openFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)})
	fetched := map[string]int{}
	c := newCrawler(t, f, s.fetcher(t, fetch.Options{Jar: fetch.NewJar()}), Options{Workers: 1, OnPage: func(_ context.Context, p *Page) error {
		if p.Status == http.StatusOK {
			fetched[p.URL]++
		}
		return nil
	}})
	_, err := c.Seed(t.Context(), "http://a.example/two", "http://a.example/first", "http://a.example/three", "http://a.example/both", "http://a.example/closed", "http://a.example/plain")
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	assert.Equal(t, map[string]int{"http://a.example/two": 1, "http://a.example/first": 1, "http://a.example/three": 1, "http://a.example/both": 1}, fetched)
	assert.EqualValues(t, 2, c.Progress().Loops)
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Equal(t, 1+maxReturns, s.asks["http://a.example/closed"])
	assert.Equal(t, 1, s.asks["http://a.example/plain"])
}

// A user's Meta is not replaced.
func TestForeignMetaIsNoCookieWall(t *testing.T) {
	m, back, loop := meta{}.redirected(hop("a")|foreign|setCookie, "b")
	assert.False(t, back || loop)
	_, back, loop = m.redirected(hop("b")|setCookie, "a")
	assert.True(t, back && loop)
}

// What is remembered of having asked twice is forgotten with the page's answer: the
// cookie may be gone at the next visit.
func TestCookieMayBeAskedForAtEachVisit(t *testing.T) {
	page := &Page{Lease: frontier.Lease{Entry: frontier.Entry{URL: seed, Meta: meta{chain: []uint64{8, hop(seed) | setCookie}, etag: `"x"`}.bytes()}},
		Result: &fetch.Result{Header: http.Header{"Etag": {`"x"`}}}}
	m, own := metaOf(frontier.Entry{Meta: remember(page)})
	assert.True(t, own)
	assert.Equal(t, meta{chain: []uint64{8}, etag: `"x"`}, m)
}

func TestListMeta(t *testing.T) {
	for _, hosts := range [][]string{nil, {"b.example"}, {"b.example", "c.example"}} {
		e := frontier.Entry{URL: seed, Meta: ListMeta(hosts...)}
		got, ok := ListOf(e)
		assert.True(t, ok)
		assert.ElementsMatch(t, hosts, got)
		m, own := metaOf(e)
		assert.True(t, own, "the crawler stores an ETag, too")
		m.etag, m.note = `"x"`, []byte("n")
		m, _, _ = m.redirected(hop(seed), "http://b.example/")
		got, ok = ListOf(frontier.Entry{Meta: m.bytes()})
		assert.True(t, ok, "beside a redirect")
		assert.ElementsMatch(t, hosts, got)
	}
	for _, b := range []string{"", "\xc1\x00", "\xc4", "\xc4\x09a", "\xc4\x00\xc4\x00", "\xc3\x01"} {
		_, ok := ListOf(frontier.Entry{Meta: []byte(b)})
		assert.False(t, ok, "%q", b)
	}
}
