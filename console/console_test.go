// This file tests what an operator sees and does: over a Unix socket, over TCP, and in
// the same process.

package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a frontier with a Console.
type world struct {
	f *frontier.Frontier
	c *console.Console
	w *console.Watch
}

func newWorld(t *testing.T, o console.Options) *world {
	t.Helper()
	w := console.NewWatch()
	f, err := frontier.Open(t.Context(), frontier.Options{OnEvent: w.Event, KeepOpen: true})
	require.NoError(t, err)
	o.Watch = w
	c, err := console.New(f, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		assert.NoError(t, f.Check())
		require.NoError(t, f.Close())
	})
	return &world{f, c, w}
}

func (w *world) add(t *testing.T, urls ...string) {
	t.Helper()
	for _, u := range urls {
		_, err := w.f.Add(t.Context(), frontier.Entry{URL: u})
		require.NoError(t, err)
	}
}

// clients are one of each kind.
func clients(t *testing.T, w *world) map[string]*console.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "con") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	local := &http.Server{Handler: w.c.Local()}
	go func() { _ = local.Serve(l) }()
	page := httptest.NewServer(w.c.Page())
	all := map[string]*console.Client{
		"socket": console.Dial(path), "page": console.Remote(page.URL, w.c.Token()), "direct": console.Direct(w.c),
	}
	t.Cleanup(func() {
		for _, c := range all {
			c.Close()
		}
		page.Close()
		require.NoError(t, local.Close())
	})
	return all
}

func TestEveryClientSeesAndChangesTheSame(t *testing.T) {
	w := newWorld(t, console.Options{Title: "mine", MemoryBudget: 1 << 20, Figures: func() []console.Figure { return []console.Figure{{Name: "pages", Value: 7}} }})
	w.add(t, "http://a.example/1", "http://a.example/2", "http://b.example/", "http://x.other/")
	for name, c := range clients(t, w) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s, err := c.Status(ctx)
			require.NoError(t, err)
			assert.Equal(t, "mine", s.Title)
			assert.EqualValues(t, 4, s.Waiting)
			assert.Equal(t, []console.Figure{{Name: "pages", Value: 7}}, s.Figures)

			hosts, err := c.Hosts(ctx, console.HostsQuery{Scope: "*.example", N: 1})
			require.NoError(t, err)
			require.Len(t, hosts.Hosts, 1)
			assert.Equal(t, "a.example", hosts.Hosts[0].Host)
			more, err := c.Hosts(ctx, console.HostsQuery{Scope: "*.example", N: 5, After: hosts.Next})
			require.NoError(t, err)
			require.Len(t, more.Hosts, 1)
			assert.Equal(t, "b.example", more.Hosts[0].Host)
			assert.Empty(t, more.Next)

			r, err := c.Do(ctx, console.Action{Do: "pause", Scope: "a.example"})
			require.NoError(t, err)
			assert.Equal(t, console.Result{Said: "a.example is paused: 1 host, 2 URLs now", Hosts: 1, Count: 2}, r)
			r, err = c.Do(ctx, console.Action{Do: "delete", Scope: "*", Dry: true})
			require.NoError(t, err)
			assert.Equal(t, console.Result{Said: "this deletes what waits of *: 3 hosts, 4 URLs now", Hosts: 3, Count: 4}, r)
			_, err = c.Do(ctx, console.Action{Do: "pause", Scope: "*", Dry: true})
			require.ErrorContains(t, err, "has no dry")
			h, err := c.Host(ctx, "a.example")
			require.NoError(t, err)
			assert.Equal(t, "paused", h.Reason)
			assert.Equal(t, "it is paused", h.Why)
			assert.Nil(t, h.Due, "time does not end it")
			assert.EqualValues(t, 2, h.Waiting)
			u, err := c.URL(ctx, 0, "http://a.example/1")
			require.NoError(t, err)
			assert.Equal(t, "waiting", u.State)
			assert.Contains(t, u.Why, "it is paused")
			paused, err := c.Hosts(ctx, console.HostsQuery{Reason: "paused"})
			require.NoError(t, err)
			assert.Len(t, paused.Hosts, 1)
			rules, err := c.Rules(ctx)
			require.NoError(t, err)
			require.Len(t, rules.Rules, 1)
			assert.Equal(t, []console.Setting{{Name: "paused", Value: "yes"}}, rules.Rules[0].Rule.Set())
			_, err = c.Do(ctx, console.Action{Do: "clear", Scope: "a.example"})
			require.NoError(t, err)

			urls, err := c.URLs(ctx, "a.example", "", 1)
			require.NoError(t, err)
			require.Len(t, urls.URLs, 1)
			assert.Equal(t, "http://a.example/1", urls.URLs[0].URL)
			urls, err = c.URLs(ctx, "a.example", urls.Next, 10)
			require.NoError(t, err)
			require.Len(t, urls.URLs, 1)
			assert.Equal(t, "http://a.example/2", urls.URLs[0].URL)

			var b bytes.Buffer
			require.NoError(t, c.Export(ctx, &b))
			assert.Contains(t, b.String(), "http://x.other/")
			got, err := c.Import(ctx, &b)
			require.NoError(t, err)
			assert.EqualValues(t, 4, got.KnownURLs)
		})
	}
}

// A host that reached a limit says which.
func TestWhichLimit(t *testing.T) {
	w := newWorld(t, console.Options{})
	w.add(t, "http://a.example/1", "http://a.example/2")
	c := console.Direct(w.c)
	for _, do := range []string{"limit", "host-limit"} {
		_, err := c.Do(t.Context(), console.Action{Do: do, Scope: "a.example", Limits: console.Limits{Served: 1, Errors: 9}})
		require.NoError(t, err)
	}
	l, _, err := w.f.TryNext()
	require.NoError(t, err)
	require.NoError(t, w.f.Done(l, frontier.Outcome{}))
	h, err := c.Host(t.Context(), "a.example")
	require.NoError(t, err)
	assert.Equal(t, "it reached a limit; it may have 1 page, 9 failures; all of its scope may have 1 page, 9 failures", h.Why)
	_, err = c.Do(t.Context(), console.Action{Do: "limit", Scope: "a.example", None: true})
	require.NoError(t, err)
	h, err = c.Host(t.Context(), "a.example")
	require.NoError(t, err)
	assert.NotContains(t, h.Why, "limit")
}

// Every action does what it says, and says what it did.
func TestActions(t *testing.T) {
	stopped, made := 0, 0
	w := newWorld(t, console.Options{Stop: func() { stopped++ }, Checkpoint: func(context.Context) (string, error) { made++; return "/there", nil }})
	w.add(t, "http://a.example/1", "http://b.example/1")
	c := console.Direct(w.c)
	do := func(a console.Action) console.Result {
		t.Helper()
		r, err := c.Do(t.Context(), a)
		require.NoError(t, err, "%+v", a)
		assert.NotEmpty(t, r.Said)
		return r
	}
	ten := console.Duration(10 * time.Second)
	do(console.Action{Do: "delay", Scope: "a.example", Delay: &console.Delay{Fixed: &ten}})
	do(console.Action{Do: "concurrency", Scope: "a.example", N: 3})
	do(console.Action{Do: "priority", Scope: "a.example", N: 8})
	do(console.Action{Do: "block", Scope: "a.example", For: console.Duration(time.Hour)})
	do(console.Action{Do: "limit", Scope: "*.example", Limits: console.Limits{Served: 5, Period: console.Duration(time.Hour)}})
	do(console.Action{Do: "host-limit", Scope: "a.example", Limits: console.Limits{Bytes: 6}})
	do(console.Action{Do: "reprioritize", Scope: "a.example", From: 1, To: 2})
	r := w.f.RuleOf("a.example")
	assert.Equal(t, 3, r.Concurrency)
	assert.Equal(t, 8, r.Priority)
	assert.EqualValues(t, 2, r.Priorities[1])
	assert.EqualValues(t, 6, r.HostLimits.Bytes)
	assert.WithinDuration(t, time.Now().Add(time.Hour), r.BlockedUntil, time.Minute)
	assert.Equal(t, 10*time.Second, r.Delay.Max())
	domain, ok := w.f.Rule(scope.Domain("example"))
	assert.True(t, ok)
	assert.Equal(t, scope.Limits{Served: 5, Period: time.Hour}, domain.Limits)
	h, err := c.Host(t.Context(), "a.example")
	require.NoError(t, err)
	assert.Equal(t, "10s", h.Rule.Delay.String())
	do(console.Action{Do: "block", Scope: "a.example", Until: new(time.Time)})
	do(console.Action{Do: "clear", Scope: "a.example"})
	do(console.Action{Do: "pause", Scope: "*"})
	do(console.Action{Do: "resume", Scope: "*"})
	assert.EqualValues(t, 1, do(console.Action{Do: "crawl-now", URLs: []string{"http://c.example/"}}).Count)
	assert.EqualValues(t, 1, do(console.Action{Do: "add", URLs: []string{"http://d.example/", "http://d.example/"}}).Count)
	assert.EqualValues(t, 1, do(console.Action{Do: "delete", Scope: "a.example"}).Count)
	do(console.Action{Do: "forget", Scope: "a.example"})
	assert.Equal(t, "/there", do(console.Action{Do: "checkpoint"}).Path)
	do(console.Action{Do: "stop"})
	assert.Equal(t, 1, stopped)
	assert.Equal(t, 1, made)
}

func TestAnActionOnAllOfAnEmptyFrontier(t *testing.T) {
	second := console.Duration(time.Second)
	c := console.Direct(newWorld(t, console.Options{}).c)
	r, err := c.Do(t.Context(), console.Action{Do: "delay", Scope: "*", Delay: &console.Delay{Fixed: &second}})
	require.NoError(t, err)
	assert.Equal(t, "the delay of * is 1s: 0 hosts, 0 URLs now; the rule is kept for when one comes", r.Said)
}

func TestWrongRequestsSaySo(t *testing.T) {
	w := newWorld(t, console.Options{})
	w.add(t, "http://a.example/1")
	h := w.c.Local()
	ask := func(method, path, body string) (int, string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		var said struct{ Error string }
		if rec.Code != http.StatusNotFound && rec.Code != http.StatusMethodNotAllowed {
			require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &said), rec.Body.String())
		}
		return rec.Code, said.Error
	}
	for _, x := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"GET", "/api/hosts?reason=lazy", "", 400, "reason: want one of"},
		{"GET", "/api/hosts?n=many", "", 400, `n: want a number, not "many"`},
		{"GET", "/api/hosts?n=-1", "", 400, "n: want a number"},
		{"GET", "/api/hosts?sort=colour&n=x", "", 400, "sort: want domain or waiting"},
		{"GET", "/api/url?url=/nothing", "", 422, "want a URL"},
		{"GET", "/api/urls?after=%22%3E", "", 422, "malformed cursor"},
		{"GET", "/api/status?" + strings.Repeat("x", 20<<10), "", 414, "too long"},
		{"POST", "/api/do", "{", 400, "the action"},
		{"POST", "/api/do", `{"do":"dance"}`, 400, `no action "dance"`},
		{"POST", "/api/do", `{"do":"pause"}`, 400, "no host"},
		{"POST", "/api/do", `{"do":"pause","scope":"a.example","colour":1}`, 400, "colour"},
		{"POST", "/api/do", `{"do":"stop","scope":"a.example"}`, 400, "has no scope"},
		{"POST", "/api/do", `{"do":"stop"}`, 400, "nothing to stop"},
		{"POST", "/api/do", `{"do":"checkpoint"}`, 400, "makes no checkpoints"},
		{"POST", "/api/do", `{"do":"add"}`, 400, "no URLs"},
		{"POST", "/api/do", `{"do":"forget","scope":"*"}`, 400, "one host at a time"},
		{"POST", "/api/do", `{"do":"pause","scope":"www.*"}`, 400, "in a name it means nothing"},
		{"POST", "/api/do", `{"do":"pause","scope":"*.*.example"}`, 400, "in a name it means nothing"},
		{"POST", "/api/do", `{"do":"standing","scope":"*.example","n":1}`, 400, "one host at a time"},
		{"POST", "/api/do", `{"do":"standing","scope":"a.example","n":-8}`, 400, "-8 levels; want -7 to 7"},
		{"POST", "/api/do", `{"do":"block","scope":"a.example","for":"-1h"}`, 400, "for -1h"},
		{"POST", "/api/do", `{"do":"block","scope":"a.example","for":"soon"}`, 400, "soon"},
		{"POST", "/api/do", `{"do":"block","scope":"a.example"}`, 400, "want until or for"},
		{"POST", "/api/do", `{"do":"delay","scope":"a.example"}`, 400, "want either delay, or none"},
		{"POST", "/api/do", `{"do":"priority","scope":"a.example","n":0}`, 400, "want either n, or none"},
		{"POST", "/api/do", `{"do":"reprioritize","scope":"a.example","from":1}`, 400, "want either to, or none"},
		{"POST", "/api/do", `{"do":"limit","scope":"a.example","limits":{}}`, 400, "want either limits, or none"},
		{"POST", "/api/do", `{"do":"limit","scope":"a.example","limits":{"served":1},"none":true}`, 400, "want either limits, or none"},
		{"POST", "/api/do", `{"do":"delay","scope":"a.example","delay":{}}`, 400, "want fixed, or factor"},
		{"POST", "/api/do", `{"do":"priority","scope":"a.example","n":99}`, 400, "there is no priority 99; want 1 to 8"},
		{"POST", "/api/do", `{"do":"add","urls":["` + strings.Repeat("x", 17<<20) + `"]}`, 413, "16777216 bytes"},
		{"POST", "/api/do", `{"do":"pause","scope":"a.example","for":"1h"}`, 400, "pause has no for"},
		{"POST", "/api/do", `{"do":"delay","scope":"a.example","n":5}`, 400, "delay has no n"},
		{"GET", "/api/do", "", 405, ""},
		{"GET", "/api/nothing", "", 404, ""},
	} {
		code, said := ask(x.method, x.path, x.body)
		assert.Equal(t, x.code, code, "%.80s: %s", x.path+" "+x.body, said)
		assert.Contains(t, said, x.says)
	}
	s := w.f.Stats()
	assert.EqualValues(t, 1, s.Waiting)
	for range w.f.Rules() {
		t.Error("a rule was set")
	}
}

// A page of a stranger, a name that a stranger had point here, and a wrong token get
// nothing.
func TestStrangersAreKeptOut(t *testing.T) {
	w := newWorld(t, console.Options{Token: "secret", Names: []string{"crawl.lan"}})
	w.add(t, "http://a.example/1")
	h := w.c.Page()
	send := func(change func(*http.Request)) int {
		r := httptest.NewRequest("POST", "http://127.0.0.1:8347/api/do", strings.NewReader(`{"do":"pause","scope":"a.example"}`))
		r.Header.Set("Authorization", "Bearer secret")
		change(r)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Code
	}
	assert.Equal(t, 401, send(func(r *http.Request) { r.Header.Del("Authorization") }))
	assert.Equal(t, 401, send(func(r *http.Request) { r.Header.Set("Authorization", "Bearer secre") }))
	assert.Equal(t, 401, send(func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }))
	assert.Equal(t, 403, send(func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }))
	assert.Equal(t, 403, send(func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }))
	assert.Equal(t, 421, send(func(r *http.Request) { r.Host = "evil.example" }))
	assert.Equal(t, 421, send(func(r *http.Request) { r.Host = "127.0.0.1.evil.example:80" }))
	assert.Equal(t, 421, send(func(r *http.Request) { r.Host = "192.168.1.2:8347" }))
	assert.Equal(t, scope.Unset, w.f.RuleOf("a.example").Paused)
	for _, host := range []string{"localhost:8347", "[::1]:8347", "127.0.0.1", "crawl.lan", "127.8.8.8:1"} {
		assert.Equal(t, 200, send(func(r *http.Request) { r.Host = host }), host)
	}
	assert.Equal(t, scope.On, w.f.RuleOf("a.example").Paused)

	// What is read by a form needs its field.
	form := func(token, back string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "http://localhost/do", strings.NewReader(url.Values{"do": {"resume"}, "scope": {"a.example"}, "token": {token}, "back": {back}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec
	}
	assert.Equal(t, 401, form("wrong", "/").Code)
	for _, back := range []string{"host?name=a.example", "https://evil.example/", "//evil.example", "javascript:alert(1)", "", "/\\evil.example"} {
		rec := form("secret", back)
		assert.Equal(t, 303, rec.Code)
		u, err := url.Parse(rec.Header().Get("Location"))
		require.NoError(t, err)
		assert.Empty(t, u.Host, back)
		assert.Empty(t, u.Scheme, back)
	}
}

// Every page shows, and nothing of what was crawled is taken for HTML.
func TestPagesEscapeWhatTheWebSays(t *testing.T) {
	w := newWorld(t, console.Options{Title: "<b>t</b>"})
	bad := `http://a.example/"><script>alert(1)</script>'{{.}}javascript:`
	w.add(t, bad, "http://b.example/")
	w.w.Event(event.Event{Kind: event.URLGivenUp, Host: "a.example", URL: bad, Reason: "<i>why</i>", Err: fmt.Errorf("<u>%s</u>", bad)})
	page := httptest.NewServer(w.c.Page())
	defer page.Close()
	for _, path := range []string{
		"/", "/hosts", "/hosts?match=a&reason=paused&scope=%3Cb%3E", "/hosts?sort=waiting", "/host?name=a.example", "/host?name=%3Cscript%3E", "/urls", "/urls?scope=a.example",
		"/url?url=" + url.QueryEscape(bad), "/rules", "/?said=%3Cscript%3E", "/hosts?reason=%3Cscript%3E", "/style.css", "/live.js",
	} {
		res, err := page.Client().Get(page.URL + path)
		require.NoError(t, err)
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		for _, raw := range []string{"<script>", "<i>", "<u>", "<b>t", `href="javascript`} {
			assert.NotContains(t, string(b), raw, path)
		}
		assert.Contains(t, res.Header.Get("Content-Security-Policy"), "default-src 'none'")
		assert.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
	}
	page.CloseClientConnections()
}

// All that the page is for is on it.
func TestTheOverviewTellsAll(t *testing.T) {
	w := newWorld(t, console.Options{MemoryBudget: 1 << 30, Disk: func() int64 { return 7 << 20 }, Recrawl: func() *console.Recrawl {
		return &console.Recrawl{Pages: 1234, NewPages: 5, Freshness: .8765, Price: .0421, Budget: 50, Demand: 12.25, NewShare: .5, Wasted: .25, Visits: 99}
	}})
	w.add(t, "http://a.example/1", "http://b.example/1")
	w.w.Outcome(frontier.Lease{Host: "bad.example"}, frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureDNS})
	now := time.Now()
	w.w.Contact("a.example", now, time.Time{}, now)
	w.w.Contact("a.example", now.Add(3*time.Second), now.Add(2*time.Second), now.Add(4*time.Second))
	w.w.Fetched(console.Fetch{At: now, Host: "bad.example", URL: "http://bad.example/x", Kind: "dns", Error: "no such host", Duration: .25})
	w.w.Fetched(console.Fetch{At: now, Host: "a.example", URL: "http://a.example/seen", Status: 200, Bytes: 2048, Duration: .04})
	page := ask(w.c.Page(), "GET", "/", "", "").Body.String()
	for _, part := range []string{
		"Pages fetched", "Pages a second", "2 wait", "URLs that wait, by priority", `href="host?name=b.example"`, "as multiples of the gap owed", "<dt>dns</dt><dd>1</dd>",
		`href="host?name=bad.example"`, "name not found", "no such host", "<dd>87.6 %</dd>", "12.25 <small>of 50", "1\u202f234", "<dt>visits that found nothing new</dt><dd>25.0 %",
		"of 1.0 GiB (0 %)", "disk 7.0 MiB", "of 1 contact with a pause owed, none came too early", `href="url?url=http%3a%2f%2fa.example%2fseen">/seen</a>`, "2.0 KiB", "40 ms",
		"requests by the status of the answer", "Hosts by what they do", ">Pause</button>",
	} {
		assert.Contains(t, page, part)
	}
	for _, word := range []string{"price", "back queue", "put off", "requeue"} {
		assert.NotContains(t, page, word, "a word of the code")
	}
	s, err := console.Direct(w.c).Status(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, s.Gaps.Counts[4], "1.5 times what was owed is below 2")
	assert.Equal(t, .0421, s.Recrawl.Price)
	assert.NotContains(t, ask(newWorld(t, console.Options{}).c.Page(), "GET", "/", "", "").Body.String(), "Fetching again")
}

// Rules are described in words.
func TestRulesInWords(t *testing.T) {
	w := newWorld(t, console.Options{})
	require.NoError(t, w.f.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) {
		r.HostLimits = scope.Limits{Waiting: 9, Served: 1000, Bytes: 3 << 20, Errors: 4, Depth: 5, Period: time.Hour}
	}))
	require.NoError(t, w.f.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.Priorities[2] = 1 }))
	require.NoError(t, w.f.Pause(scope.Host("a.example")))
	page := ask(w.c.Page(), "GET", "/rules", "", "").Body.String()
	for _, said := range []string{"9 waiting URLs, 1\u202f000 pages, 3.0 MiB, 4 failures, 5 links from a seed, counted anew each 1 h", "2 as 1", "<dt>paused</dt><dd>yes</dd>"} {
		assert.Contains(t, page, said)
	}
}

// post sends a form to the page, with cookies.
func post(h http.Handler, path, form string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range cookies {
		r.AddCookie(c)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// Whoever presses a button without having entered is asked for the token once: with it what they
// wanted is done, and from then on nothing is asked.
func TestTheTokenIsAskedForOnce(t *testing.T) {
	w := newWorld(t, console.Options{Token: "secret"})
	h := w.c.Page()
	rec := post(h, "/do", "do=pause&scope=*&back=/hosts")
	assert.Equal(t, 401, rec.Code)
	for _, part := range []string{`action="./do"`, `name="do" value="pause"`, `name="scope" value="*"`, `name="back" value="hosts"`, `name="token"`} {
		assert.Contains(t, rec.Body.String(), part)
	}
	rec = post(h, "/do", "do=pause&scope=*&back=/hosts&token=guess")
	assert.Equal(t, 401, rec.Code)
	assert.Contains(t, rec.Body.String(), `<p class="wrong" role="alert">That is not the token.`)
	assert.Empty(t, rec.Result().Cookies())
	all, _ := w.f.Rule(scope.All())
	assert.Equal(t, scope.Unset, all.Paused)

	rec = post(h, "/do", "do=pause&scope=*&back=/hosts&token=secret")
	require.Equal(t, 303, rec.Code)
	all, _ = w.f.Rule(scope.All())
	assert.Equal(t, scope.On, all.Paused)
	require.Len(t, rec.Result().Cookies(), 1)
	cookie := rec.Result().Cookies()[0]
	assert.Equal(t, 303, post(h, "/do", "do=resume&scope=*", cookie).Code)
	all, _ = w.f.Rule(scope.All())
	assert.NotEqual(t, scope.On, all.Paused)
	for _, path := range []string{"/", "/host?name=a.example", "/rules"} {
		r := httptest.NewRequest("GET", "http://localhost"+path, nil)
		r.AddCookie(cookie)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		assert.NotContains(t, rec.Body.String(), "password", path)
	}
	rec = post(h, "/leave", "", cookie)
	require.Len(t, rec.Result().Cookies(), 1)
	assert.Negative(t, rec.Result().Cookies()[0].MaxAge)
}

func TestGapsAreCountedByWhatWasOwed(t *testing.T) {
	w := newWorld(t, console.Options{})
	c := console.Direct(w.c)
	t0 := time.Unix(1000, 0)
	at := func(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }
	w.w.Contact("a.example", at(-2), time.Time{}, at(-1))
	last := -1.
	for _, kept := range []float64{10, 9.9, 10.5, 12, 1000} { // of the 10 s owed
		w.w.Contact("a.example", at(last+kept), at(last+10), at(last+kept+1))
		last += kept + 1
	}
	// A late report says nothing about a gap, and is no violation.
	w.w.Contact("a.example", at(20), at(15), at(21))
	s, err := c.Status(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, s.Gaps.Counts[0], "shorter than owed")
	assert.EqualValues(t, 2, s.Gaps.Counts[1], "up to 1.1 times")
	assert.EqualValues(t, 1, s.Gaps.Counts[2], "up to 1.25 times")
	assert.EqualValues(t, 1, s.Gaps.Counts[len(s.Gaps.Counts)-1])
	for i := range 3000 {
		w.w.Outcome(frontier.Lease{Host: fmt.Sprint("h", i%2000, ".example")}, frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureDNS})
	}
	s, err = c.Status(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 3000, s.Failures["dns"])
	assert.Len(t, s.Failing, 20)
}

func TestWords(t *testing.T) {
	for d, s := range map[time.Duration]string{
		0: "0 s", time.Microsecond: "below 1 ms", 20 * time.Millisecond: "20 ms", 1500 * time.Millisecond: "1.5 s", 59 * time.Second: "59 s",
		90 * time.Second: "1 min 30 s", time.Hour: "1 h", 26*time.Hour + 59*time.Minute: "1 d 2 h", -time.Minute: "-1 min",
		math.MinInt64: "-106751 d 23 h",
	} {
		assert.Equal(t, s, console.Ago(d))
	}
	assert.Equal(t, "1.5 GiB", console.Size(3<<29))
	assert.Equal(t, "1023 B", console.Size(1023))
	assert.Equal(t, "1\u202f234\u202f567", console.Count(1234567))
	assert.Equal(t, "-12", console.Count(-12))
}

// A crawl is reached by its number like a host by its name.
func TestActionsOnACrawl(t *testing.T) {
	w := newWorld(t, console.Options{})
	c := console.Direct(w.c)
	do := func(a console.Action) console.Result {
		t.Helper()
		r, err := c.Do(t.Context(), a)
		require.NoError(t, err)
		return r
	}
	_, err := w.f.Add(t.Context(), frontier.Entry{URL: "http://crawled.example/", Crawl: 3})
	require.NoError(t, err)
	assert.Contains(t, do(console.Action{Do: "pause", Scope: "crawl:3"}).Said, "crawl:3 is paused: 1 URL")
	x, _ := inspect.New(w.f).Crawl(3)
	assert.Equal(t, scope.On, x.Rule.Paused)
	do(console.Action{Do: "resume", Scope: "crawl:3"})
	assert.EqualValues(t, 1, do(console.Action{Do: "delete", Scope: "crawl:3"}).Count)
	_, err = c.Do(t.Context(), console.Action{Do: "forget", Scope: "crawl:3"})
	assert.Error(t, err)
	do(console.Action{Do: "add", URLs: []string{"http://added.example/"}, Crawl: console.CrawlID{Number: 4}})
	x, _ = inspect.New(w.f).Crawl(4)
	assert.EqualValues(t, 1, x.Waiting)
	_, err = c.Do(t.Context(), console.Action{Do: "add", URLs: []string{"http://added.example/"}, Crawl: console.CrawlID{Name: "news"}})
	assert.ErrorContains(t, err, "crawls have numbers here")
}
