package route

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/serve"
)

// server is a part.
type server struct {
	f     *frontier.Frontier
	s     *serve.Service
	http  *httptest.Server
	down  atomic.Bool // it breaks off all connections
	short atomic.Bool // of disk
	asked atomic.Int64
	see   func(*http.Request) // is called before each request
}

func (p *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.asked.Add(1)
	if p.see != nil {
		p.see(r)
	}
	if p.down.Load() {
		panic(http.ErrAbortHandler)
	}
	if p.short.Load() && r.Method == "POST" {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusInsufficientStorage)
		_, _ = io.WriteString(w, `{"type":"https://github.com/seed-7440039f/frontier/problems/no-space","title":"The disk is full","status":507,"detail":"no space left on device"}`)
		return
	}
	p.s.Handler().ServeHTTP(w, r)
}

// routed is a Router before parts.
type routed struct {
	t     testing.TB
	r     *Router
	parts map[string]*server
	base  string
	http  *http.Client
}

func route(t testing.TB, names ...string) *routed { return routeWith(t, serve.Options{}, names...) }

func routeWith(t testing.TB, o serve.Options, names ...string) *routed {
	return routeAt(t, 0, o, names...)
}

// routeAt is routeWith for hosts with a delay.
func routeAt(t testing.TB, delay time.Duration, o serve.Options, names ...string) *routed {
	x := &routed{t: t, parts: map[string]*server{}, http: &http.Client{Transport: &http.Transport{}}}
	parts := map[string][]string{}
	for _, name := range names {
		p := &server{}
		var err error
		p.f, err = frontier.Open(t.Context(), serve.Frontier(frontier.Options{Delay: frontier.FixedDelay(delay)}))
		require.NoError(t, err)
		p.s, err = serve.New(p.f, o)
		require.NoError(t, err)
		p.http = httptest.NewUnstartedServer(p)
		p.http.Config.ErrorLog = nil
		p.http.Start()
		x.parts[name], parts[name] = p, []string{p.http.URL}
	}
	var err error
	x.r, err = New(Options{Parts: parts})
	require.NoError(t, err)
	front := httptest.NewServer(x.r.Handler())
	x.base = front.URL
	t.Cleanup(func() {
		x.http.CloseIdleConnections()
		assert.NoError(t, x.r.Close())
		front.Close()
		for _, p := range x.parts {
			assert.NoError(t, p.s.Close())
			p.http.Close()
			assert.NoError(t, p.f.Check())
			assert.NoError(t, p.f.Close())
		}
		assert.Zero(t, x.r.used.Load(), "bytes in memory")
	})
	return x
}

// ask sends a request and returns the status and the body. header is of names and values.
func (x *routed) ask(method, path, body string, header ...string) (int, string) {
	x.t.Helper()
	r, err := http.NewRequest(method, x.base+path, strings.NewReader(body))
	require.NoError(x.t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := x.http.Do(r)
	require.NoError(x.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(x.t, err)
	if res.StatusCode >= 400 {
		assert.Equal(x.t, "application/problem+json", res.Header.Get("Content-Type"))
	}
	if res.StatusCode == http.StatusServiceUnavailable {
		assert.NotEmpty(x.t, res.Header.Get("Retry-After"))
	}
	return res.StatusCode, string(b)
}

// ok is the answer to a request that must succeed.
func (x *routed) ok(method, path, body string, header ...string) map[string]any {
	x.t.Helper()
	code, text := x.ask(method, path, body, header...)
	require.Equal(x.t, http.StatusOK, code, "%s %s: %s", method, path, text)
	var m map[string]any
	require.NoError(x.t, json.Unmarshal([]byte(text), &m), "%s", text)
	return m
}

// problem makes sure of a request's failure.
func (x *routed) problem(status int, kind, method, path, body string, header ...string) string {
	x.t.Helper()
	code, text := x.ask(method, path, body, header...)
	assert.Equal(x.t, status, code, "%s", text)
	var p problem
	require.NoError(x.t, json.Unmarshal([]byte(text), &p), "%s", text)
	assert.Equal(x.t, problemBase+kind, p.Type, "%s", text)
	assert.NotEmpty(x.t, p.Title)
	return p.Detail
}

var ndjson = []string{"Content-Type", "application/x-ndjson", "Accept", "application/x-ndjson"}

// host returns the n-th host of a part.
func (x *routed) host(part string, n int) string {
	for i := 0; ; i++ {
		if h := fmt.Sprintf("www.site%d.example", i); x.r.home(h).name == part {
			if n--; n < 0 {
				return h
			}
		}
	}
}

// leases takes leases, by URL.
func (x *routed) leases(body string) map[string]map[string]any {
	x.t.Helper()
	all := map[string]map[string]any{}
	for _, l := range x.ok("POST", "/v1/leases", body)["leases"].([]any) {
		m := l.(map[string]any)
		all[m["url"].(string)] = m
	}
	return all
}

func (x *routed) client(o client.Options) *client.Client {
	c, err := client.New(x.base, o)
	require.NoError(x.t, err)
	x.t.Cleanup(func() { assert.NoError(x.t, c.Close()) })
	return c
}

// leased counts the leases that are out at the parts.
func (x *routed) leased() (n int64) {
	for _, p := range x.parts {
		n += p.f.Stats().Leased
	}
	return n
}

// web is a synthetic web of pages by host; each links to three others.
type web struct {
	hosts []string
	pages int
}

func (w web) url(n int) string {
	return fmt.Sprintf("http://%s/%d", w.hosts[n%len(w.hosts)], n/len(w.hosts))
}

// links of page n are its children in a tree of three branches, so that each page has one depth, and the root.
func (w web) links(n int) (all []frontier.Entry) {
	for i := 3*n + 1; i <= 3*n+3 && i < w.pages; i++ {
		all = append(all, frontier.Entry{URL: w.url(i)})
	}
	return append(all, frontier.Entry{URL: w.url(0)})
}

func (w web) depth(n int) (d int) {
	for ; n > 0; n = (n - 1) / 3 {
		d++
	}
	return d
}

// A crawl through the router fetches each page once, in its crawl, with its depth, and ends when all is
// done: also if a part dies in the middle and comes back.
func TestACrawl(t *testing.T) {
	for name, dies := range map[string]bool{"all parts live": false, "a part dies and comes back": true} {
		t.Run(name, func(t *testing.T) {
			x := route(t, "a", "b", "c")
			w := web{pages: 600}
			for i := range 10 {
				for _, part := range []string{"a", "b", "c"} {
					w.hosts = append(w.hosts, x.host(part, i))
				}
			}
			of := map[string]int{}
			for i := range w.pages {
				of[w.url(i)] = i
			}
			c := x.client(client.Options{Crawl: "news", Wait: time.Second, LeaseTime: time.Minute})
			n, err := c.Add(t.Context(), frontier.Entry{URL: w.url(0)})
			require.NoError(t, err)
			require.Equal(t, 1, n)
			var mu sync.Mutex
			fetched := map[string]int{}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err = c.Work(ctx, 16, func(_ context.Context, l frontier.Lease) (frontier.Outcome, error) {
				mu.Lock()
				fetched[l.Entry.URL]++
				if len(fetched) == 200 && dies {
					x.parts["b"].down.Store(true)
					time.AfterFunc(3*time.Second, func() { x.parts["b"].down.Store(false) })
				}
				mu.Unlock()
				n, ok := of[l.Entry.URL]
				assert.True(t, ok, l.Entry.URL)
				assert.Equal(t, w.depth(n), l.Entry.Depth, l.Entry.URL)
				return frontier.Outcome{Add: w.links(n)}, nil
			})
			require.NoError(t, err)
			require.NoError(t, ctx.Err())
			assert.Len(t, fetched, w.pages)
			for u, n := range fetched {
				assert.Equal(t, 1, n, u)
			}
			for name, p := range x.parts {
				assert.Greater(t, p.f.Stats().Added, int64(100), "part %s has its share", name)
				id, ok := p.s.Crawl("news")
				require.True(t, ok)
				s, _ := inspect.New(p.f).Crawl(id)
				assert.Equal(t, p.f.Stats().Added, s.Added, "all in crawl news")
			}
			assert.Zero(t, x.leased())
		})
	}
}

// While a link is on its way from a part to another, nothing says that nothing is left.
func TestExhaustedOnlyAtTheEnd(t *testing.T) {
	x := route(t, "a", "b")
	a, b := x.host("a", 0), x.host("b", 0)
	x.ok("POST", "/v1/urls", `{"url":"http://`+a+`/"}`, "Content-Type", "application/x-ndjson")
	out := x.leases(`{}`)["http://"+a+"/"]["lease"].(string)
	// b is asked first. Before a is asked, its page ends, with a link to b, which another client takes.
	var taken string
	x.parts["a"].see = func(r *http.Request) {
		if r.URL.Path != "/v1/leases" || x.parts["b"].asked.Load() == 0 {
			return
		}
		x.parts["a"].see = nil
		x.ok("POST", "/v1/leases/"+out+"/done", `{"add":[{"url":"http://`+b+`/"}]}`)
		taken = x.leases(`{"host":"` + b + `"}`)["http://"+b+"/"]["lease"].(string)
		// Then a is asked first. Before b is asked, its page ends, with a link to a.
		x.r.turn.Store(1)
		x.parts["b"].see = func(r *http.Request) {
			if r.URL.Path == "/v1/leases" {
				x.parts["b"].see = nil
				x.ok("POST", "/v1/leases/"+taken+"/done", `{"add":[{"url":"http://`+a+`/2"}]}`)
			}
		}
	}
	x.parts["b"].asked.Store(0)
	x.r.turn.Store(0)
	got := x.ok("POST", "/v1/leases", `{}`)
	assert.Nil(t, got["exhausted"], "each part said it, but a has a link since: %v", got)
	assert.Empty(t, got["leases"])
	assert.EqualValues(t, soon, got["next_s"])
	assert.Nil(t, x.parts["b"].see, "all of this has happened")
	l := x.leases(`{"wait_s":5}`)["http://"+a+"/2"]
	x.ok("POST", "/v1/leases/"+l["lease"].(string)+"/done", `{}`)
	assert.Equal(t, true, x.ok("POST", "/v1/leases", `{}`)["exhausted"])
	assert.Equal(t, true, x.ok("POST", "/v1/leases", `{"crawls":["DEFAULT","none"]}`)["exhausted"])
	x.parts["b"].down.Store(true)
	assert.Contains(t, x.problem(503, "busy", "POST", "/v1/leases", `{}`), "part b does not answer", "a part that is away may have more")
	x.parts["b"].down.Store(false)
	time.Sleep(restFor)
	x.ok("POST", "/v1/urls", `{"url":"http://`+b+`/2"}`, "Content-Type", "application/x-ndjson")
	x.ok("POST", "/v1/do", `{"do":"pause","scope":"*"}`)
	got = x.ok("POST", "/v1/leases", `{}`)
	assert.Nil(t, got["exhausted"], "what is paused is not done: %v", got)
}

func TestVerdictsAreInOrder(t *testing.T) {
	x := route(t, "a", "b", "c")
	var body strings.Builder
	var want []string
	for i := range 2500 {
		host := x.host([]string{"a", "b", "c"}[i%3], i%7)
		switch i % 10 {
		case 3:
			fmt.Fprintf(&body, "{\"url\":\"nothing\",\"id\":\"%d\"}\n", i)
			want = append(want, `"bad"`)
		case 4:
			fmt.Fprintf(&body, "{\"url\":\"http://%s/%d\",\"surprise\":1}\n", host, i)
			want = append(want, `there is no such member`)
		case 5:
			fmt.Fprintf(&body, "{\"url\":\n\n")
			want = append(want, `malformed JSON`)
		case 6:
			fmt.Fprintf(&body, "{\"url\":\"http://%s/%d\",\"id\":\"%d\"}\n", x.host([]string{"a", "b", "c"}[(i-1)%3], 0), 7, i)
			want = append(want, fmt.Sprintf(`{"id":"%d","status":`, i))
		default:
			fmt.Fprintf(&body, "{\"url\":\"http://%s/%d\",\"id\":\"%d\"}\n", host, i, i)
			want = append(want, fmt.Sprintf(`{"id":"%d","status":"new"}`, i))
		}
	}
	code, text := x.ask("POST", "/v1/urls", body.String(), ndjson...)
	require.Equal(t, 200, code, text)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, len(want))
	for i := range lines {
		assert.Contains(t, lines[i], want[i], "line %d", i)
	}
	var added int64
	for name, p := range x.parts {
		n := p.f.Stats().Added
		assert.Positive(t, n, name)
		added += n
	}
	assert.EqualValues(t, 1500+2, added, "six in ten, and two of three that come again")

	sum := x.ok("POST", "/v1/urls", body.String(), "Content-Type", "application/x-ndjson")
	assert.EqualValues(t, 2500, sum["lines"])
	assert.EqualValues(t, 0, sum["new"])
	assert.EqualValues(t, 1750, sum["known"])
	assert.Len(t, sum["bad"], maxFaults)
	assert.EqualValues(t, 4, sum["bad"].([]any)[0].(map[string]any)["line"])
	sum = x.ok("POST", "/v1/urls", "# seeds\nhttp://x.example/ # one\n\n<http://y.example/>\n", "Content-Type", "text/plain")
	assert.EqualValues(t, 2, sum["new"])
	sum = x.ok("POST", "/v1/urls", `[{"url":"http://z.example/"}, {"url":"http://www.z.example/", "host":"Z.example"},`+"\n"+` {"url":"no"}]`)
	assert.EqualValues(t, 2, sum["new"])
	assert.EqualValues(t, 3, sum["lines"])
	p := x.parts[x.r.home("z.example").name]
	h, err := inspect.New(p.f).Host(t.Context(), "z.example")
	require.NoError(t, err)
	assert.EqualValues(t, 2, h.Waiting, "the host that was given counts")
	assert.Contains(t, x.problem(400, "bad-request", "POST", "/v1/urls", "nothing\nno", "Content-Type", "text/plain"), "not an absolute URL")
	x.problem(400, "bad-request", "POST", "/v1/urls", `[{"url":"http://a.example/"`)
	x.problem(400, "bad-request", "POST", "/v1/urls", `[{"url":"http://a.example/"},`)
	x.problem(400, "bad-request", "POST", "/v1/urls", `[{"url":"http://a.example/"}] x`)
	x.problem(400, "bad-request", "POST", "/v1/leases?max=1", `{}`)
	x.problem(413, "too-large", "POST", "/v1/urls", `{"url":"`+strings.Repeat("x", 2<<20)+`"}`)
	x.problem(413, "too-large", "POST", "/v1/urls", `[{"url":"`+strings.Repeat("x", 2<<20)+`"}]`)
	x.problem(400, "bad-request", "POST", "/v1/urls", `x`, "Content-Type", "image/png")
	x.parts["c"].down.Store(true)
	assert.Contains(t, x.problem(503, "busy", "POST", "/v1/urls", body.String(), ndjson...), "part c does not answer")
}

// The parts take turns, and never are more leases out than the clients have.
func TestLeasesOfAllParts(t *testing.T) {
	x := route(t, "a", "b", "c")
	var urls []string
	for _, part := range []string{"a", "b", "c"} {
		for i := range 20 {
			for j := range 3 {
				urls = append(urls, fmt.Sprintf("http://%s/%d", x.host(part, i), j))
			}
		}
	}
	x.ok("POST", "/v1/urls", strings.Join(urls, "\n"), "Content-Type", "text/plain")
	by := map[string]int{}
	out := 0
	for range 9 {
		for _, l := range x.leases(`{"hosts":2,"max":2}`) {
			by[x.r.home(l["host"].(string)).name]++
			out++
		}
	}
	assert.Equal(t, map[string]int{"a": 6, "b": 6, "c": 6}, by, "each has its turn")
	got := x.leases(`{"hosts":21,"per_host":2,"max":30}`)
	out += len(got)
	assert.Len(t, got, 30)
	hosts := map[string]int{}
	for _, l := range got {
		hosts[l["host"].(string)]++
	}
	assert.LessOrEqual(t, len(hosts), 21)
	assert.LessOrEqual(t, slices.Max(slices.Collect(maps.Values(hosts))), 2)
	assert.EqualValues(t, out, x.leased())
	host := x.host("b", 19)
	for _, l := range x.leases(`{"host":"` + strings.ToUpper(host) + `"}`) {
		assert.Equal(t, host, l["host"])
		out++
	}
	out += len(x.leases(`{"max":1000}`))
	assert.Equal(t, 60+30/2, out, "a lease of each host, and bundles of two")
	x.problem(400, "bad-request", "POST", "/v1/leases", `{"max":-1}`)
	x.problem(400, "bad-request", "POST", "/v1/leases", `{"crawls":[]}`)
	x.problem(400, "bad-request", "POST", "/v1/leases", `{"lease_s":1e9,"wait_s":3}`)
	x.problem(400, "bad-request", "POST", "/v1/leases", `{"wait_s":-1}`)
	assert.Contains(t, x.problem(400, "bad-request", "POST", "/v1/leases", `{"hosst":1}`), "hosst")
}

// A part that says nothing delays those who ask it first, and soon all others pass it by.
func TestAPartThatSaysNothing(t *testing.T) {
	x := route(t, "a", "b")
	for i := range 9 {
		x.ok("POST", "/v1/urls", fmt.Sprintf("http://%s/", x.host("b", i)), "Content-Type", "text/plain")
	}
	x.ok("POST", "/v1/urls", fmt.Sprintf("http://%s/", x.host("a", 0)), "Content-Type", "text/plain")
	silent := make(chan struct{})
	x.parts["a"].see = func(*http.Request) { <-silent }
	first := make(chan struct{}, 2)
	for range 2 {
		go func() {
			_, _ = x.ask("POST", "/v1/leases", `{}`)
			first <- struct{}{}
		}()
	}
	require.Eventually(t, x.r.parts[0].resting, 10*time.Second, time.Millisecond)
	for range 4 {
		require.Len(t, x.leases(`{}`), 1)
	}
	assert.Len(t, first, 1)
	<-first
	<-first // it went on to the other part
	close(silent)
	a := x.parts["a"].f
	require.Eventually(t, func() bool { s := a.Stats(); return s.HandedOut == 1 && s.Leased == 0 }, 10*time.Second, time.Millisecond, "a lease that came too late is back")
}

// A part that waits hands out a lease that is not needed any more: it comes back at once.
func TestLeasesThatAreNotNeededComeBack(t *testing.T) {
	x := route(t, "a", "b", "c")
	done := make(chan map[string]map[string]any)
	for range 3 {
		go func() { done <- x.leases(`{"wait_s":20,"lease_s":600}`) }()
	}
	time.Sleep(300 * time.Millisecond)
	var urls []string
	for _, part := range []string{"a", "b", "c"} {
		for i := range 4 {
			urls = append(urls, fmt.Sprintf("http://%s/", x.host(part, i)))
		}
	}
	began := time.Now()
	x.ok("POST", "/v1/urls", strings.Join(urls, "\n"), "Content-Type", "text/plain")
	for range 3 {
		assert.Len(t, <-done, 1)
	}
	assert.Less(t, time.Since(began), time.Second, "a wait ends with the first lease")
	require.Eventually(t, func() bool { return x.leased() == 3 }, 5*slice, 10*time.Millisecond, "%d leases are out", x.leased())
	assert.Len(t, x.leases(`{"max":100}`), 9, "no other is left out")

	// A client that goes away leaves nothing behind.
	host := x.host("a", 20)
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "POST", x.base+"/v1/leases", strings.NewReader(`{"wait_s":20,"lease_s":600,"host":"`+host+`"}`))
	gone := make(chan error)
	go func() { _, err := x.http.Do(r); gone <- err }()
	require.Eventually(t, func() bool { return x.r.waiting.Load() == 1 }, 5*slice, time.Millisecond)
	cancel()
	require.Error(t, <-gone)
	require.Eventually(t, func() bool { return x.r.waiting.Load() == 0 }, 5*slice, time.Millisecond)
	x.ok("POST", "/v1/urls", "http://"+host+"/", "Content-Type", "text/plain")
	require.Eventually(t, func() bool { s := x.parts["a"].f.Stats(); return s.Leased == 4 && s.Waiting == 1 }, 5*slice, 10*time.Millisecond)
}

// sent_s counts from the client's request, however long the router waited.
func TestALeaseThatCameLateIsNotShorter(t *testing.T) {
	x := route(t, "a", "b")
	began := time.Now()
	time.AfterFunc(slice+time.Second/2, func() {
		x.ok("POST", "/v1/urls", "http://"+x.host("a", 0)+"/", "Content-Type", "text/plain")
	})
	for _, l := range x.leases(`{"wait_s":20,"lease_s":30}`) {
		assert.InDelta(t, time.Since(began).Seconds(), l["sent_s"], 0.5)
		assert.InDelta(t, 30, l["lease_s"], 0.5)
	}
	assert.Greater(t, time.Since(began), slice)
}
