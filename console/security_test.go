// This file tests what a stranger could make an operator's browser do, and that the console reveals no
// secrets.

package console_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/console"
)

// ask sends a request as a browser on this machine does.
func ask(h http.Handler, method, path, token, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return answer(h, overLoopback(r))
}

func answer(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// overLoopback is a request as a server gets it that listens on loopback.
func overLoopback(r *http.Request) *http.Request { return at(r, "127.0.0.1:8347") }

func at(r *http.Request, address string) *http.Request {
	to := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(to)))
}

// The figures are read under the conditions of the page, on its port and on one of their own,
// which has nothing else.
func TestMetricsAreGuarded(t *testing.T) {
	figures := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("figures")) })
	w := newWorld(t, console.Options{Token: "secret", Names: []string{"crawl.example"}, Metrics: figures})
	for name, h := range map[string]http.Handler{"page": w.c.Page(), "port": w.c.Metrics()} {
		request := func(url, address string) *http.Request { return at(httptest.NewRequest("GET", url, nil), address) }
		rec := answer(h, request("http://localhost/metrics", "127.0.0.1:9464"))
		assert.Equal(t, "200 figures", fmt.Sprint(rec.Code, " ", rec.Body), name)
		rec = answer(h, request("http://crawl.example/metrics", "192.0.2.7:9464"))
		assert.Equal(t, 401, rec.Code, name)
		assert.Equal(t, "application/json; charset=utf-8", rec.Header().Get("Content-Type"), name)
		r := request("http://crawl.example/metrics", "192.0.2.7:9464")
		r.Header.Set("Authorization", "Bearer secret")
		assert.Equal(t, 200, answer(h, r).Code, name)
		assert.Equal(t, 421, answer(h, request("http://stranger.example/metrics", "127.0.0.1:9464")).Code, name)
		r = request("http://localhost/metrics", "127.0.0.1:9464")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		assert.Equal(t, 403, answer(h, r).Code, name)
	}
	for _, path := range []string{"/", "/api/status", "/enter", "/api/export"} {
		assert.Equal(t, 404, ask(w.c.Metrics(), "GET", path, "secret", "").Code, path)
	}
	assert.Equal(t, 405, ask(w.c.Metrics(), "POST", "/metrics", "secret", "").Code)
	w = newWorld(t, console.Options{})
	assert.Equal(t, 404, ask(w.c.Metrics(), "GET", "/metrics", "", "").Code, "there are none")
}

// Who does not connect to loopback reads nothing without the token, whatever name he asks
// for. A browser shows it once, and forms go on to want it.
func TestReadsFromElsewhereNeedTheToken(t *testing.T) {
	for _, name := range []string{"", "http://a.example", "a.example:80", "a.example/x"} {
		assert.ErrorContains(t, console.CheckNames([]string{"*", "::1", name}), "want a host name", name)
	}
	w := newWorld(t, console.Options{Token: "secret", Names: []string{"crawl.example"}})
	w.add(t, "http://a.example/1")
	h := w.c.Page()
	request := func(method, url, body string) *http.Request {
		r := at(httptest.NewRequest(method, url, strings.NewReader(body)), "192.0.2.7:8347")
		if method == "POST" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return r
	}
	for _, name := range []string{"localhost", "127.0.0.1:8347", "crawl.example"} {
		for _, path := range []string{"/", "/hosts", "/host?name=a.example", "/urls", "/url?url=http://a.example/1", "/rules", "/nothing",
			"/api/status", "/api/hosts", "/api/host?name=a.example", "/api/urls", "/api/url?url=http://a.example/1", "/api/due", "/api/rules", "/api/export"} {
			rec := answer(h, request("GET", "http://"+name+path, ""))
			assert.Equal(t, 401, rec.Code, path)
			r := request("GET", "http://"+name+path, "")
			r.Header.Set("Authorization", "Bearer secret")
			assert.NotEqual(t, 401, answer(h, r).Code, path)
		}
	}
	assert.Equal(t, 200, answer(h, request("GET", "http://localhost/live.js", "")).Code, "it says nothing of the crawl")
	assert.Equal(t, 200, answer(h, overLoopback(httptest.NewRequest("GET", "http://localhost/hosts", nil))).Code)
	assert.Equal(t, 401, answer(h, httptest.NewRequest("GET", "http://localhost/hosts", nil)).Code, "it is unknown over what")

	rec := answer(h, request("POST", "http://localhost/enter", "token=wrong&back=/hosts"))
	assert.Equal(t, 401, rec.Code)
	assert.Empty(t, rec.Result().Cookies())
	rec = answer(h, request("POST", "http://localhost/enter", "token=secret&back=/hosts"))
	require.Equal(t, 303, rec.Code)
	assert.Equal(t, "./hosts", rec.Header().Get("Location"))
	require.Len(t, rec.Result().Cookies(), 1)
	cookie := rec.Result().Cookies()[0]
	assert.True(t, cookie.HttpOnly)
	assert.NotContains(t, cookie.Value, "secret")
	r := request("GET", "http://localhost/hosts", "")
	r.AddCookie(cookie)
	rec = answer(h, r)
	assert.Equal(t, 200, rec.Code)
	assert.Contains(t, rec.Body.String(), "a.example")
	for path, code := range map[string]int{"/api/status": 200, "/api/export": 401} {
		r = request("GET", "http://localhost"+path, "")
		r.AddCookie(cookie)
		assert.Equal(t, code, answer(h, r).Code, path)
	}
	r = request("POST", "http://localhost/api/do", `{"do":"pause","scope":"*"}`)
	r.AddCookie(cookie)
	assert.Equal(t, 401, answer(h, r).Code, "programs need the token itself")
	for header, value := range map[string]string{"Origin": "http://localhost:1", "Sec-Fetch-Site": "same-site"} {
		r = request("POST", "http://localhost/do", "do=pause&scope=*&back=/")
		r.AddCookie(cookie)
		r.Header.Set(header, value)
		assert.Equal(t, 403, answer(h, r).Code, "another program's page on this machine: %s", header)
	}
	for _, bad := range []string{"", "secret", cookie.Value + "0"} {
		r := request("GET", "http://localhost/hosts", "")
		r.AddCookie(&http.Cookie{Name: cookie.Name, Value: bad})
		assert.Equal(t, 401, answer(h, r).Code)
	}
}

// Pages of other sites cannot have a browser ask for anything; a link leads to the first page.
func TestOtherSitesAreRefused(t *testing.T) {
	w := newWorld(t, console.Options{})
	for _, x := range []struct {
		site, mode, dest, path string
		code                   int
	}{
		{"cross-site", "no-cors", "image", "/hosts", 403}, {"cross-site", "cors", "empty", "/api/urls", 403}, {"cross-site", "navigate", "iframe", "/", 403},
		{"cross-site", "navigate", "document", "/hosts", 403}, {"cross-site", "navigate", "document", "/", 200}, {"same-site", "cors", "empty", "/api/urls", 403},
		{"same-site", "navigate", "document", "/hosts", 200}, {"same-origin", "cors", "empty", "/hosts", 200}, {"none", "navigate", "document", "/hosts", 200}, {"", "", "", "/hosts", 200},
	} {
		r := overLoopback(httptest.NewRequest("GET", "http://localhost"+x.path, nil))
		r.Header.Set("Sec-Fetch-Site", x.site)
		r.Header.Set("Sec-Fetch-Mode", x.mode)
		r.Header.Set("Sec-Fetch-Dest", x.dest)
		assert.Equal(t, x.code, answer(w.c.Page(), r).Code, "%+v", x)
	}
}

// A crawl that stands still as an operator wanted says so on its page, whenever it is loaded.
func TestAPausedCrawlSaysSo(t *testing.T) {
	w := newWorld(t, console.Options{})
	c := console.Direct(w.c)
	says := func() string { return ask(w.c.Page(), "GET", "/", "", "").Body.String() }
	assert.NotContains(t, says(), "Paused")
	_, err := c.Do(t.Context(), console.Action{Do: "pause", Scope: "*"})
	require.NoError(t, err)
	for _, part := range []string{`class="hero paused"`, "</svg>Paused</p>", "<title>Paused", "Nothing is fetched until you unpause it", ">Unpause</button>"} {
		assert.Contains(t, says(), part)
	}
	_, err = c.Do(t.Context(), console.Action{Do: "resume", Scope: "*"})
	require.NoError(t, err)
	_, err = c.Do(t.Context(), console.Action{Do: "block", Scope: "*", For: console.Duration(time.Hour)})
	require.NoError(t, err)
	assert.Contains(t, says(), `class="hero paused"`)
	assert.Contains(t, says(), "Nothing is fetched until "+time.Now().Add(time.Hour).UTC().Format("2 January"))
}

// Without a token from the operator, a console has a random one, and everything that changes or exports
// the crawl needs it.
func TestEverythingThatMattersNeedsTheToken(t *testing.T) {
	one, two := newWorld(t, console.Options{}), newWorld(t, console.Options{})
	assert.GreaterOrEqual(t, len(one.c.Token()), 26)
	assert.NotEqual(t, one.c.Token(), two.c.Token())
	one.add(t, "http://a.example/1")
	h := one.c.Page()
	for _, x := range []struct{ method, path, body string }{
		{"GET", "/api/export", ""}, {"POST", "/api/import", ""}, {"POST", "/api/changed", "http://a.example/"}, {"POST", "/api/do", `{"do":"delete","scope":"*"}`}, {"POST", "/do", ""},
	} {
		for _, token := range []string{"", two.c.Token()} {
			rec := ask(h, x.method, x.path, token, x.body)
			assert.Equal(t, 401, rec.Code, x.path)
			assert.NotContains(t, rec.Body.String(), "a.example")
			assert.NotContains(t, rec.Body.String(), one.c.Token())
		}
	}
	assert.EqualValues(t, 1, one.f.Stats().Waiting)
	rec := ask(h, "GET", "/api/export", one.c.Token(), "")
	assert.Equal(t, 200, rec.Code)
	assert.Contains(t, rec.Body.String(), "a.example")
	for _, path := range []string{"/", "/hosts", "/rules", "/api/status"} {
		assert.NotContains(t, ask(h, "GET", path, "", "").Body.String(), one.c.Token(), path)
	}
}

// However a form says where to come back to, it is a page of this console.
func TestAFormLeadsNowhereElse(t *testing.T) {
	w := newWorld(t, console.Options{Token: "secret"})
	for _, back := range []string{"/%2Fevil.example", "/%2F/evil.example/x", "/%2f%2fevil.example", "/%5Cevil.example", "/\\/evil.example", "///evil.example", "http:/evil.example", "/ok", "../up", "x/../../up", "..%2fup", "%2e%2e/up", "..\\up"} {
		r := httptest.NewRequest("POST", "http://localhost/do", strings.NewReader(url.Values{"do": {"pause"}, "scope": {"*"}, "token": {"secret"}, "back": {back}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec := httptest.NewRecorder()
		w.c.Page().ServeHTTP(rec, r)
		require.Equal(t, 303, rec.Code)
		to := rec.Header().Get("Location")
		assert.Regexp(t, `^\./([^./\\%]|%5C|\.\.%5C)`, to, back) // what begins with // is another host, and .. leads out of the console's path
		u, err := httptest.NewRequest("POST", "http://localhost/crawl/do", nil).URL.Parse(to)
		require.NoError(t, err)
		assert.Regexp(t, `^http://localhost/crawl/`, u.String(), back)
	}
}

// A link cannot have a page say what its author likes.
func TestPagesSayOnlyWhatWasDone(t *testing.T) {
	w := newWorld(t, console.Options{})
	for _, path := range []string{"/?said=call+me", "/hosts?said=call+me", "/?said=0", "/?said=-1"} {
		rec := ask(w.c.Page(), "GET", path, "", "")
		assert.Equal(t, 200, rec.Code)
		assert.Contains(t, rec.Body.String(), `<p id="said" role="status"></p>`, path)
	}
}

func TestTheLogHoldsNoPasswords(t *testing.T) {
	var logged bytes.Buffer
	w := newWorld(t, console.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	_, err := console.Direct(w.c).Do(t.Context(), console.Action{Do: "add", URLs: []string{"http://a.example/", "http://b.example/"}})
	require.NoError(t, err)
	_, err = console.Direct(w.c).Do(t.Context(), console.Action{Do: "add", URLs: []string{"http://me:hunter2@a.example/2"}})
	require.ErrorContains(t, err, "a crawler sends no user name or password")
	assert.NotContains(t, err.Error(), "hunter2")
	assert.Contains(t, logged.String(), "urls=2")
	assert.NotContains(t, logged.String(), "hunter2")
	assert.NotContains(t, logged.String(), "b.example", "URLs may have a password that is not seen as one")
	assert.NotContains(t, logged.String(), w.c.Token())
}

// However an operator spells a URL, it is the one that the crawler knows, and passwords
// in it go no further.
func TestURLsAreSpelledAsTheCrawlerSpellsThem(t *testing.T) {
	w := newWorld(t, console.Options{})
	c := console.Direct(w.c)
	w.add(t, "http://a.example/x")
	add := func(do string, urls ...string) (console.Result, error) {
		return c.Do(t.Context(), console.Action{Do: do, URLs: urls})
	}
	r, err := add("add", "HTTP://A.example:80/./x#top", "http://b.example")
	require.NoError(t, err)
	assert.EqualValues(t, 1, r.Count, "the first is known")
	_, err = add("crawl-now", "http://c.example/")
	require.NoError(t, err)
	for _, do := range []string{"add", "crawl-now"} {
		_, err = add(do, "http://d.example/", "http://me:hunter2@e.example:port/", "mailto:hunter2@a.example", "http://e.example:port/")
		require.ErrorContains(t, err, "URL 2 of 4: a crawler sends no user name or password")
		require.ErrorContains(t, err, "URL 4 of 4: invalid URL")
		require.ErrorContains(t, err, "URL 3 of 4: scheme cannot be crawled")
		assert.NotContains(t, err.Error(), "hunter2")
	}
	var urls []string
	list, err := c.URLs(t.Context(), "*", "", 100)
	require.NoError(t, err)
	for _, u := range list.URLs {
		urls = append(urls, u.URL)
	}
	assert.ElementsMatch(t, []string{"http://a.example/x", "http://b.example/", "http://c.example/"}, urls, "of what was wrong nothing is added")
	_, err = c.URL(t.Context(), 0, "http://me:hunter2@A.example/x")
	require.ErrorContains(t, err, "want the URL without it")
	u, err := c.URL(t.Context(), 0, "http://A.example/x")
	require.NoError(t, err)
	assert.Equal(t, "http://a.example/x", u.URL)
	assert.Equal(t, "waiting", u.State)
	_, err = c.URL(t.Context(), 0, "http://a.example:port/")
	require.ErrorContains(t, err, "invalid URL")
	assert.NotContains(t, err.Error(), "hunter2")

	// Who has a frontier of something else says how that is spelled.
	own := newWorld(t, console.Options{Normalize: func(u string) (string, error) { return strings.ToLower(u), nil }})
	_, err = console.Direct(own.c).Do(t.Context(), console.Action{Do: "add", URLs: []string{"GEMINI://a.example/"}})
	require.NoError(t, err)
	u, err = console.Direct(own.c).URL(t.Context(), 0, "gemini://A.example/")
	require.NoError(t, err)
	assert.Equal(t, "waiting", u.State)
}

// The page that asks for the token says what it is for, and where it is, of a crawl and of a server.
func TestThePageThatAsksForTheToken(t *testing.T) {
	for private, says := range map[bool]string{false: "With its token this page can", true: "To see this page, enter its token."} {
		rec := ask(newWorld(t, console.Options{Private: private}).c.Page(), "GET", "/enter", "", "")
		assert.Equal(t, 200, rec.Code)
		assert.Contains(t, rec.Body.String(), says)
		assert.Contains(t, rec.Body.String(), "FRONTIER_PAGE_TOKEN")
	}
}
