// This file tests what a stranger could have an operator's browser do, and what the
// console tells of secrets.

package console_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

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
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// A console without a token of the operator's has one that nobody can guess, and all
// that changes or gives away the whole crawl needs it.
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
	for _, back := range []string{"/%2Fevil.example", "/%2F/evil.example/x", "/%2f%2fevil.example", "/%5Cevil.example", "/\\/evil.example", "///evil.example", "http:/evil.example", "/ok"} {
		r := httptest.NewRequest("POST", "http://localhost/do", strings.NewReader(url.Values{"do": {"pause"}, "scope": {"*"}, "token": {"secret"}, "back": {back}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec := httptest.NewRecorder()
		w.c.Page().ServeHTTP(rec, r)
		require.Equal(t, 303, rec.Code)
		to := rec.Header().Get("Location")
		assert.Regexp(t, `^/(\?|[^/\\])`, to, back) // what begins with // is another host
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
	_, err := console.Direct(w.c).Do(t.Context(), console.Action{Do: "add", URLs: []string{"http://me:hunter2@a.example/", "http://b.example/"}})
	require.NoError(t, err)
	assert.Contains(t, logged.String(), "urls=2")
	assert.NotContains(t, logged.String(), "hunter2")
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
	r, err := add("add", "HTTP://me:hunter2@A.example:80/./x#top", "http://me:hunter2@b.example")
	require.NoError(t, err)
	assert.EqualValues(t, 1, r.Count, "the first is known")
	_, err = add("crawl-now", "http://me:hunter2@c.example/")
	require.NoError(t, err)
	for _, do := range []string{"add", "crawl-now"} {
		_, err = add(do, "http://d.example/", "http://me:hunter2@e.example:port/", "mailto:hunter2@a.example")
		require.ErrorContains(t, err, "URL 2 of 3: urlnorm: invalid URL")
		require.ErrorContains(t, err, "URL 3 of 3: urlnorm: scheme cannot be crawled")
		assert.NotContains(t, err.Error(), "hunter2")
	}
	var urls []string
	list, err := c.URLs(t.Context(), "*", "", 100)
	require.NoError(t, err)
	for _, u := range list.URLs {
		urls = append(urls, u.URL)
	}
	assert.ElementsMatch(t, []string{"http://a.example/x", "http://b.example/", "http://c.example/"}, urls, "of what was wrong nothing is added")
	u, err := c.URL(t.Context(), 0, "http://me:hunter2@A.example/x")
	require.NoError(t, err)
	assert.Equal(t, "http://a.example/x", u.URL)
	assert.Equal(t, "waiting", u.State)
	_, err = c.URL(t.Context(), 0, "http://me:hunter2@a.example:port/")
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
