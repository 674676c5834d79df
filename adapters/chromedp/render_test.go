// These tests render pages in a real Chromium.

package frontierchromedp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

func TestScriptsMakeThePage(t *testing.T) {
	stranger := serve(t, 9, func(w http.ResponseWriter, r *http.Request) {})
	a := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: testbot\nDisallow: /private/\n")
		case "/", "/again":
			html5(w, `<base href="/in/"><img src="/picture.png"><link rel=stylesheet href=/style.css><iframe src="/frame"></iframe>
				<script src="/app.js"></script><script src="http://stranger.example/x.js"></script><script src="/private/x.js"></script>`)
		case "/app.js":
			assert.Equal(t, "testbot/1", r.UserAgent())
			assert.Empty(t, r.Referer())
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, `alert("hello");
				new WebSocket("ws://" + location.host + "/socket"); navigator.sendBeacon("/beacon", "x"); fetch("/post", {method: "POST"}).catch(() => {});
				fetch("http://`+stranger.addr+`/").catch(() => {});
				fetch("/api/links").then(r => r.json()).then(all => { for (const u of all) { const e = document.createElement("a"); e.href = u; e.textContent = "päge " + u; document.body.append(e); } });`)
		case "/api/links":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `["one", "/two"]`)
		case "/plain":
			fmt.Fprint(w, "<script>document.write('no')</script>")
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
			html5(w, "<script>document.write('no')</script>")
		default:
			t.Errorf("%s %s was requested", r.Method, r.URL)
		}
	})
	r := renderer(t, Options{Timeout: patience}, map[string]*site{"a.example": a, "stranger.example": stranger})
	for n := range 2 {
		res, err := r.Fetch(t.Context(), fetch.Request{URL: "http://a.example/"})
		require.NoError(t, err)
		assert.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
		assert.Equal(t, n == 0, res.Bytes > 700, "%d: with what the script requested, and the script itself", res.Bytes)
		got := text(t, res)
		assert.Contains(t, got, `<a href="one">päge one</a><a href="/two">päge /two</a>`)
	}
	assert.Equal(t, []string{"/", "/robots.txt", "/app.js", "/api/links", "/", "/api/links"}, a.asked(), "in turn; robots.txt and the script once")
	assert.Empty(t, stranger.asked())
	for _, path := range []string{"/plain", "/missing"} {
		res, err := r.Fetch(t.Context(), fetch.Request{URL: "http://a.example" + path})
		require.NoError(t, err)
		assert.Contains(t, text(t, res), "<script>document.write('no')</script>", path)
	}
}

// A page that goes elsewhere stays; where it goes is a link of it. One that does so for ever ends.
func TestPagesStayWhereTheyAre(t *testing.T) {
	a := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/moves":
			html5(w, `<p>here<script>location.href = "/target?a=1&b=2"</script>`)
		case "/refreshes":
			html5(w, `<meta http-equiv=refresh content="0; url=http://b.example/away"><p>here`)
		case "/for-ever":
			html5(w, `<p>here<script>let n = 0; setInterval(() => { location.href = "/n" + n++ }, 1)</script>`)
		default:
			t.Errorf("%s was requested", r.URL)
		}
	})
	r := renderer(t, Options{Timeout: patience}, map[string]*site{"a.example": a})
	for path, want := range map[string]string{"/moves": `<a href="http://a.example/target?a=1&amp;b=2"></a>`, "/refreshes": `<a href="http://b.example/away"></a>`} {
		res, err := r.Fetch(t.Context(), fetch.Request{URL: "http://a.example" + path})
		require.NoError(t, err, path)
		got := text(t, res)
		assert.Contains(t, got, "here", path)
		assert.Contains(t, got, want, path)
	}
	got := soon(t, renderer(t, Options{Timeout: 3 * time.Second}, map[string]*site{"a.example": a}), "/for-ever", `<a href="http://a.example/n`)
	assert.LessOrEqual(t, strings.Count(got, "<a "), targetsMost)
}

// soon renders a page until it has some text: a busy machine may not come to that in the time that
// the page has.
func soon(t *testing.T, r *Renderer, path, want string) (got string) {
	t.Helper()
	require.Eventually(t, func() bool {
		res, err := r.Fetch(t.Context(), fetch.Request{URL: "http://a.example" + path})
		if err != nil {
			_ = res.Close()
			return false
		}
		got = text(t, res)
		return strings.Contains(got, want)
	}, patience, time.Millisecond)
	return got
}

// A page that is never done is read when its time is up; one that does not respond fails, as one
// whose tab crashes; and the next page is rendered.
func TestPagesThatDoNotEnd(t *testing.T) {
	a := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/polls":
			html5(w, `<p>here<script>(async () => { for (;;) await fetch("/poll") })()</script>`)
		case "/stays":
			html5(w, `<p>here<script>setInterval(() => fetch("/poll").catch(() => {}), 50)</script>`)
		case "/poll":
		case "/loops":
			html5(w, `<p>here<script>for (;;);</script>`)
		case "/hoards":
			html5(w, `<p>here<script>const all = []; for (;;) all.push(new Array(100).fill({}))</script>`)
		case "/good":
			html5(w, `<p>here<script>document.body.append("and there")</script>`)
		}
	})
	r := renderer(t, Options{Timeout: patience, MaxRequests: 5, Memory: 64 << 20}, map[string]*site{"a.example": a})
	ask := func(ctx context.Context, path string) (*fetch.Result, error) {
		return r.Fetch(ctx, fetch.Request{URL: "http://a.example" + path})
	}
	good := func() { t.Helper(); soon(t, r, "/good", "and there") }
	res, err := ask(t.Context(), "/polls")
	require.NoError(t, err)
	assert.Contains(t, text(t, res), "here")
	assert.Equal(t, []string{"/polls", "/robots.txt", "/poll", "/poll", "/poll", "/poll"}, a.asked(), "MaxRequests")
	assert.False(t, res.Ended.Before(a.visits[5].end), "the contact ends with the last request")

	soon(t, renderer(t, Options{Timeout: 3 * time.Second, Quiet: time.Hour}, map[string]*site{"a.example": a}), "/stays", "here")

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	res, err = ask(ctx, "/loops")
	assert.Equal(t, fetch.Timeout, fetch.ClassOf(err), "%v", err)
	assert.Equal(t, "time", res.Broken)
	assert.Contains(t, text(t, res), "for (;;);", "as it was sent")
	good()

	// The crash is heard when the page's time is up, and a busy machine takes its time until the memory is used up.
	short := r
	for timeout := 4 * time.Second; timeout < patience; timeout *= 2 {
		short = renderer(t, Options{Timeout: timeout, Memory: 32 << 20}, map[string]*site{"a.example": a})
		if res, err = short.Fetch(t.Context(), fetch.Request{URL: "http://a.example/hoards"}); errors.Is(err, errCrashed) {
			break
		}
		require.NoError(t, res.Close())
	}
	assert.ErrorIs(t, err, errCrashed)
	assert.Equal(t, "unspecified", res.Broken)
	require.NoError(t, res.Close())
	soon(t, short, "/good", "and there")

	b, err := r.running()
	require.NoError(t, err)
	require.NoError(t, chromedp.FromContext(b.ctx).Browser.Process().Kill())
	<-b.ctx.Done()
	good()
}

// Requests to other hosts go only where Options.Others sends them, and even then not to forbidden
// addresses.
func TestOtherHosts(t *testing.T) {
	b := serve(t, 2, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		fmt.Fprint(w, "from the other")
	})
	a := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		html5(w, `<script>for (const u of ["http://b.example/x", "http://`+b.addr+`/y"]) fetch(u).then(r => r.text()).catch(() => "refused").then(x => document.body.append(u + " is " + x + ". "))</script>`)
	})
	fetcher, err := fetch.New(fetch.Options{Resolve: map[string]string{"b.example": b.addr}})
	require.NoError(t, err)
	r := renderer(t, Options{Timeout: patience, Others: Base(fetcher)}, map[string]*site{"a.example": a})
	t.Cleanup(fetcher.CloseIdle)
	res, err := r.Fetch(t.Context(), fetch.Request{URL: "http://a.example/"})
	require.NoError(t, err)
	got := text(t, res)
	assert.Contains(t, got, "http://b.example/x is from the other.")
	assert.Contains(t, got, "http://"+b.addr+"/y is refused.")
	assert.Equal(t, []string{"/x"}, b.asked())
}

func TestAHostThatAsksForAPause(t *testing.T) {
	a := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/":
			html5(w, `<p>here<script>fetch("/1").then(() => fetch("/2")).catch(() => document.body.append("refused"))</script>`)
		case "/1":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			t.Errorf("%s was requested", r.URL)
		}
	})
	r := renderer(t, Options{Timeout: patience}, map[string]*site{"a.example": a})
	res, err := r.Fetch(t.Context(), fetch.Request{URL: "http://a.example/"})
	require.NoError(t, err)
	assert.Equal(t, 7*time.Second, res.RetryAfter)
	assert.Contains(t, text(t, res), "refused")
}

func TestOptionsReportEveryFault(t *testing.T) {
	_, err := New(Options{Tabs: -1, Quiet: -2, Browser: "/nothing/there", Fetch: fetch.Options{MaxBody: -1}})
	for _, want := range []string{"Tabs is -1", "Quiet is -2", "/nothing/there", "MaxBody is -1"} {
		assert.ErrorContains(t, err, want)
	}
	r := renderer(t, Options{}, nil)
	require.NoError(t, r.Close())
	_, err = r.running()
	assert.ErrorIs(t, err, errClosed)
}

// TestUnits uses 10 ns in place of 10 s in each option.
func TestUnits(t *testing.T) {
	_, err := New(Options{Quiet: 10, Timeout: 10, Pause: 10, ScriptTTL: 10})
	for _, name := range []string{"Quiet", "Timeout", "Pause", "ScriptTTL"} {
		assert.ErrorContains(t, err, name+" is 10ns; want 0 or at least 1ms: is the unit missing?")
	}
}
