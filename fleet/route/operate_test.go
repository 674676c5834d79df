package route

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/serve"
)

// addEach adds n URLs of as many hosts at each part, and returns the hosts.
func (x *routed) addEach(n int, crawl string, parts ...string) (hosts []string) {
	var body strings.Builder
	for _, part := range parts {
		for i := range n {
			hosts = append(hosts, x.host(part, i))
			fmt.Fprintf(&body, `{"url":"http://%s/","crawl":%q}`+"\n", x.host(part, i), crawl)
		}
	}
	x.ok("POST", "/v1/urls", body.String(), "Content-Type", "application/x-ndjson")
	return hosts
}

func TestTheHostsOfADomainAreAtOnePart(t *testing.T) {
	for host, want := range map[string]string{
		"www.a.example.co.uk": "example.co.uk", "example.co.uk": "example.co.uk", "x.eu-west-1.compute.amazonaws.com": "amazonaws.com",
		"me.github.io": "me.github.io", "example": "example", "192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::1", "co.uk": "co.uk", "a.b.kawasaki.jp": "kawasaki.jp",
	} {
		got, _ := domainOf(host)
		assert.Equal(t, want, got, host)
	}
	x := route(t, "a", "b", "c")
	for i := range 20 {
		assert.Equal(t, x.r.home("x.compute.amazonaws.com"), x.r.home(fmt.Sprintf("h%d.s3.amazonaws.com", i)))
	}
	for scope, n := range map[string]int{
		"*": 3, "*.co.uk": 3, "*.com": 3, "*.github.io": 3, "*.example.org": 1, "*.www.example.org": 1, "*.amazonaws.com": 1, "a.example": 1, "http://a.example/": 1,
		"": 1, "192.0.2.1": 1, "*.bücher.example": 1,
	} {
		parts, err := x.r.within(scope)
		require.NoError(t, err)
		assert.Len(t, parts, n, scope)
	}
	parts, _ := x.r.within("*.Example.org.")
	assert.Equal(t, x.r.home("www.example.org"), parts[0])
	_, err := x.r.within("crawl:3")
	assert.Error(t, err)
}

func TestRulesAreAtAllPartsThatTheyConcern(t *testing.T) {
	x := route(t, "a", "b", "c")
	rule := func(name string) (at []string) {
		for _, p := range x.r.parts {
			if r, ok := x.parts[p.name].f.Rule(map[bool]scope.Scope{true: scope.All(), false: scope.Host(name)}[name == "*"]); ok && r.Delay != nil {
				at = append(at, p.name)
			}
		}
		return at
	}
	host := x.host("b", 3)
	x.ok("PUT", "/v1/rules/*", `{"delay":{"fixed":"3s"},"host_limits":{"served":10},"limits":{"depth":4}}`)
	x.ok("PUT", "/v1/rules/"+host, `{"delay":{"fixed":"2s"},"limits":{"served":10}}`)
	assert.Equal(t, []string{"a", "b", "c"}, rule("*"))
	assert.Equal(t, []string{"b"}, rule(host))
	assert.Len(t, x.ok("GET", "/v1/rules", "")["rules"], 2)
	assert.Equal(t, "*", x.ok("GET", "/v1/rules/*", "")["scope"])
	assert.Contains(t, x.problem(422, "limit", "PUT", "/v1/rules/*", `{"limits":{"served":2}}`), "a limit of 2 is divided among the 3 parts that have the hosts: want at least 3")
	x.problem(422, "limit", "PUT", "/v1/crawls/news", `{"limits":{"waiting":1}}`)
	x.problem(422, "limit", "POST", "/v1/do", `{"do":"limit","scope":"*.co.uk","limits":{"bytes":2}}`)
	x.problem(400, "bad-request", "PUT", "/v1/rules/crawl:1", `{}`)
	x.problem(400, "bad-request", "PUT", "/v1/rules/*", `{"dealy":1}`)
	x.ok("POST", "/v1/do", `{"do":"limit","scope":"*.example.co.uk","limits":{"bytes":10}}`)

	// What is not in force everywhere is an error, and may be repeated.
	x.parts["c"].down.Store(true)
	said := x.problem(503, "busy", "DELETE", "/v1/rules/*", "")
	assert.Contains(t, said, "done at a, b, and not at c (part c does not answer")
	assert.Contains(t, said, ": send it again, which does no harm")
	assert.Equal(t, []string{"c"}, rule("*"))
	x.problem(503, "busy", "GET", "/v1/rules", "")
	x.parts["c"].down.Store(false)
	assert.Contains(t, x.problem(409, "conflict", "GET", "/v1/rules/*", ""), "part c has")
	x.ok("DELETE", "/v1/rules/*", "")
	assert.Empty(t, rule("*"))

	// So with crawls.
	x.ok("PUT", "/v1/crawls/news", `{"weight":3,"paused":true}`)
	got := x.ok("GET", "/v1/crawls/news", "")
	assert.EqualValues(t, map[string]any{"weight": 3.0, "paused": true}, got["rule"])
	assert.Nil(t, got["number"])
	for _, p := range x.parts {
		id, ok := p.s.Crawl("news")
		require.True(t, ok)
		s, _ := inspect.New(p.f).Crawl(id)
		assert.Equal(t, 3, s.Rule.Weight)
	}
	x.addEach(2, "news", "a", "c")
	x.addEach(1, "only", "b")
	assert.EqualValues(t, 4, x.ok("GET", "/v1/crawls/news", "")["waiting"])
	assert.EqualValues(t, 1, x.ok("GET", "/v1/crawls/only", "")["waiting"], "one part knows it")
	var names []string
	for _, c := range x.ok("GET", "/v1/crawls", "")["crawls"].([]any) {
		names = append(names, c.(map[string]any)["name"].(string))
	}
	assert.Equal(t, []string{"DEFAULT", "news", "only"}, names)
	assert.EqualValues(t, 1, x.ok("DELETE", "/v1/crawls/only?forget=true", "")["deleted"])
	x.problem(404, "unknown-crawl", "DELETE", "/v1/crawls/only", "")
	assert.EqualValues(t, 4, x.ok("DELETE", "/v1/crawls/news?forget=true", "")["deleted"])
	assert.Len(t, x.ok("GET", "/v1/crawls", "")["crawls"], 1)
}

func TestActions(t *testing.T) {
	x := route(t, "a", "b", "c")
	hosts := x.addEach(2, "DEFAULT", "a", "b", "c")
	got := x.ok("POST", "/v1/do", `{"do":"delete","scope":"*","dry":true}`)
	assert.EqualValues(t, 6, got["count"])
	assert.EqualValues(t, 6, got["hosts"])
	assert.EqualValues(t, 1, x.ok("POST", "/v1/do", `{"do":"delete","scope":"`+hosts[0]+`"}`)["count"])
	assert.EqualValues(t, 1, x.ok("DELETE", "/v1/hosts/"+hosts[5]+"/urls?forget=true", "")["deleted"])
	urls, _ := json.Marshal([]string{"http://" + hosts[0] + "/n", "http://" + hosts[2] + "/n", "http://" + hosts[4] + "/n"})
	x.ok("POST", "/v1/do", `{"do":"add","urls":`+string(urls)+`,"crawl":"news","depth":2}`)
	assert.EqualValues(t, 3, x.ok("GET", "/v1/crawls/news", "")["waiting"])
	x.problem(400, "bad-request", "POST", "/v1/do", `{"do":"add","urls":`+string(urls)+`,"crawl":7}`)
	x.problem(400, "bad-request", "POST", "/v1/do", `{"do":"add"}`)
	x.problem(400, "bad-request", "POST", "/v1/do", `{"do":"jump"}`)
	x.problem(400, "bad-request", "POST", "/v1/do", `{"do":"pause","scope":"*","do":"resume"}`)
	x.problem(400, "bad-request", "POST", "/v1/do", `{"do":`)
	x.problem(501, "not-routed", "POST", "/v1/do", `{"do":"stop"}`)
	x.problem(400, "bad-request", "POST", "/v1/do", `{"do":"standing","scope":"*","n":1}`)
	x.ok("POST", "/v1/do", `{"do":"standing","scope":"`+hosts[1]+`","n":-2}`)
	assert.Len(t, x.ok("GET", "/v1/hosts?sunk=true", "")["hosts"], 1)
	out := x.leases(`{"max":9,"crawls":["news"]}`)
	require.Len(t, out, 3)
	l := out["http://"+hosts[2]+"/n"]["lease"].(string)
	x.ok("POST", "/v1/do", `{"do":"end-leases","lease":"`+l+`"}`)
	assert.EqualValues(t, 2, x.leased())
	assert.EqualValues(t, 2, x.ok("DELETE", "/v1/leases?scope=*", "")["ended"])
	x.problem(400, "bad-request", "DELETE", "/v1/leases", "")

	c := x.client(client.Options{})
	require.NoError(t, x.parts["a"].f.Pause(scope.All()))
	assert.Nil(t, x.ok("GET", "/v1/stats", "")["paused"], "one part is")
	require.NoError(t, c.Pause(scope.All()))
	assert.EqualValues(t, true, x.ok("GET", "/v1/stats", "")["paused"])
	require.NoError(t, c.Resume(scope.Host(hosts[0])))
	require.NoError(t, c.Resume(scope.All()))
	n, err := c.Delete(t.Context(), scope.All())
	require.NoError(t, err)
	assert.EqualValues(t, 7, n)
	_, err = c.Host(t.Context(), "unknown.example")
	assert.ErrorIs(t, err, frontier.ErrUnknownHost)
}

func TestSumsAndLists(t *testing.T) {
	x := route(t, "a", "b", "c")
	hosts := x.addEach(7, "news", "a", "b", "c")
	s := x.client(client.Options{}).Stats()
	assert.EqualValues(t, 21, s.Waiting)
	assert.EqualValues(t, 21, s.Added)
	assert.EqualValues(t, 21, s.Hosts)
	stats := x.ok("GET", "/v1/stats", "")
	assert.EqualValues(t, 21.0, stats["waiting_by_priority"].([]any)[serve.Discovered-1])
	assert.Contains(t, stats["sentence"], "a: ")

	var listed []string
	for path := "/v1/hosts?n=3"; ; {
		got := x.ok("GET", path, "")
		for _, h := range got["hosts"].([]any) {
			listed = append(listed, h.(map[string]any)["host"].(string))
		}
		if got["next"] == nil {
			break
		}
		path = "/v1/hosts?n=3&after=" + got["next"].(string)
	}
	assert.ElementsMatch(t, hosts, listed)
	assert.Len(t, x.ok("GET", "/v1/hosts?sort=waiting&n=5", "")["hosts"], 5)
	assert.Len(t, x.ok("GET", "/v1/hosts?scope="+hosts[9], "")["hosts"], 1)
	assert.Len(t, x.ok("GET", "/v1/due?n=4", "")["hosts"], 4)
	x.problem(400, "bad-request", "GET", "/v1/hosts?after=zz", "")
	x.problem(400, "bad-request", "GET", "/v1/hosts?n=x", "")
	x.problem(400, "bad-request", "GET", "/v1/due?n=x", "")

	// Lists of lines, whole, in part and in pages.
	lines := func(path string) (all []map[string]any) {
		code, text := x.ask("GET", path, "")
		require.Equal(t, 200, code, text)
		for line := range strings.Lines(text) {
			var m map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &m))
			all = append(all, m)
		}
		return all
	}
	assert.Len(t, lines("/v1/list"), 21)
	assert.Len(t, lines("/v1/list?n=10"), 10)
	assert.Len(t, lines("/v1/list?crawl=news&host="+hosts[10]), 1)
	x.addEach(1, "only", "c")
	assert.Len(t, lines("/v1/list?crawl=only"), 1, "the other parts do not know the crawl")
	for _, path := range []string{"/v1/list?n=4&after=", "/v1/list?n=4&crawl=only&after=", "/v1/list?n=4&host=" + hosts[3] + "&after="} {
		want, got := len(lines(strings.NewReplacer("n=4", "n=0", "&after=", "").Replace(path))), 0
		for after, pages := "", 0; ; pages++ {
			require.Less(t, pages, 20)
			page := lines(path + after)
			if len(page) == 0 || page[len(page)-1]["after"] == nil {
				got += len(page)
				break
			}
			got += len(page) - 1
			after = page[len(page)-1]["after"].(string)
		}
		assert.Equal(t, want, got, path)
	}
	x.problem(404, "unknown-crawl", "GET", "/v1/list?crawl=none", "")
	x.problem(404, "unknown-crawl", "GET", "/v1/crawls/none/queues", "")
	var queues []string
	for after := ""; ; {
		page := lines("/v1/crawls/news/queues?n=4&after=" + after)
		if len(page) == 0 {
			break
		}
		for _, q := range page {
			after = q["host"].(string)
			queues = append(queues, after)
		}
	}
	assert.ElementsMatch(t, hosts, queues)
	x.parts["b"].down.Store(true)
	code, text := x.ask("GET", "/v1/list", "")
	assert.Equal(t, 200, code)
	assert.Contains(t, text, "part b does not answer", "the last line")
	x.problem(503, "busy", "GET", "/v1/stats", "")
}

func TestWhatARouterSaysOfItself(t *testing.T) {
	tokens, err := serve.ReadTokens(strings.NewReader("look 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b bob\n")) // secret
	require.NoError(t, err)
	x := routeWith(t, serve.Options{Tokens: tokens}, "a", "b")
	x.problem(401, "unauthorized", "GET", "/v1/stats", "")
	x.problem(403, "forbidden", "POST", "/v1/leases", "{}", "Authorization", "Bearer secret")
	x.ok("GET", "/v1/stats", "", "Authorization", "Bearer secret")
	assert.Equal(t, "live", x.ok("GET", "/livez", "")["status"])
	assert.Equal(t, map[string]any{"status": "ready"}, x.ok("GET", "/readyz", ""))
	x.parts["b"].down.Store(true)
	assert.Contains(t, x.ok("GET", "/readyz", "")["not_ready"], "b")
	x.parts["a"].down.Store(true)
	x.problem(503, "busy", "GET", "/readyz", "")
	for _, request := range []string{"POST /v1/stream", "GET /v1/fleet", "POST /v1/fleet", "GET /metrics"} {
		method, path, _ := strings.Cut(request, " ")
		x.problem(501, "not-routed", method, path, "")
	}
	code, text := x.ask("GET", "/", "")
	assert.Equal(t, 200, code)
	assert.Contains(t, text, `<a href="parts/b/">b</a></th><td data-label="State">part b does not answer`)
	x.problem(404, "not-found", "GET", "/v1/nothing", "")
	x.problem(404, "not-found", "GET", "/v1//urls", "")
	x.problem(405, "bad-request", "DELETE", "/v1/urls", "")
	x.problem(403, "forbidden", "GET", "/v1/stats", "", "Origin", "http://evil.example")
	x.parts["a"].down.Store(false)
	r, _ := http.NewRequest("GET", x.base+"/v1/stats", nil)
	r.Host = "evil.example"
	res, err := x.http.Do(r)
	require.NoError(t, err)
	_ = res.Body.Close()
	assert.Equal(t, http.StatusMisdirectedRequest, res.StatusCode)

	for says, o := range map[string]Options{
		"there is no part":                     {},
		"the name of a part is \"a b\"":        {Parts: map[string][]string{"a b": {"http://a:1"}}},
		"part a has no address":                {Parts: map[string][]string{"a": nil}},
		"the address is a:1; want http://":     {Parts: map[string][]string{"a": {"a:1"}}},
		"address http://a:1 is there twice":    {Parts: map[string][]string{"a": {"http://a:1"}, "b": {"http://a:1/"}}},
		"MaxBuffered is -1, MaxRequests 4096;": {Parts: map[string][]string{"a": {"http://a:1"}}, MaxBuffered: -1},
	} {
		_, err := New(o)
		assert.ErrorContains(t, err, says)
	}
}

// A part is asked by its name for its export.
func TestRequestsForOnePart(t *testing.T) {
	x := route(t, "a", "b")
	at := map[string]int{}
	for i := range 20 {
		url := fmt.Sprintf("http://h%d.example/", i)
		x.ok("POST", "/v1/urls", fmt.Sprintf(`{"url":%q}`, url))
		at[x.r.of(url, "").name]++
	}
	for name, n := range at {
		_, text := x.ask("GET", "/parts/"+name+"/v1/export", "")
		assert.Equal(t, n, strings.Count(text, `"url":"http://`), name)
	}
	x.problem(404, "not-found", "GET", "/parts/c/metrics", "")
	assert.EqualValues(t, at["a"], x.ok("GET", "/parts/a/v1/stats", "")["waiting"])
	x.problem(404, "not-found", "POST", "/parts/a/v1/urls", `{"url":"http://h1.example/"}`)
}

// A part with several addresses answers at any of them: one cannot be reached, one does not have the frontier.
func TestAPartOfSeveralMachines(t *testing.T) {
	x := route(t, "a", "b")
	p := x.parts["b"].http.URL
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }))
	defer other.Close()
	r, err := New(Options{Parts: map[string][]string{"a": {x.parts["a"].http.URL}, "b": {"http://127.0.0.1:1", other.URL, p}}})
	require.NoError(t, err)
	x.t.Cleanup(func() { assert.NoError(t, r.Close()) })
	x.r.by, x.r.parts = r.by, r.parts
	began := time.Now()
	for range 3 {
		assert.EqualValues(t, 1, x.ok("POST", "/v1/urls", fmt.Sprintf("http://%s/%d", x.host("b", 1), time.Now().UnixNano()), "Content-Type", "text/plain")["new"])
	}
	assert.Less(t, time.Since(began), 2*time.Second)
	assert.EqualValues(t, 2, r.parts[1].at.Load(), "it stays with the address that answers")
}

func TestRequestsThatWaitLeaveRoomForOthers(t *testing.T) {
	x := route(t, "a")
	x.r.o.MaxRequests = 8
	ctx, cancel := context.WithCancel(t.Context())
	var polls sync.WaitGroup
	for range 7 {
		polls.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, "POST", x.base+"/v1/leases", strings.NewReader(`{"wait_s":60}`))
			if res, err := x.http.Do(r); err == nil {
				_ = res.Body.Close()
			}
		})
	}
	require.Eventually(t, func() bool { return x.r.waiting.Load() == 7 }, 10*time.Second, time.Millisecond)
	x.problem(503, "busy", "POST", "/v1/leases", `{"wait_s":1}`)
	x.problem(503, "busy", "POST", "/v1/hosts/a.example/contact", `{}`)
	x.ok("POST", "/v1/leases", `{}`)
	x.ok("GET", "/v1/stats", "")
	cancel()
	polls.Wait()
	require.Eventually(t, func() bool { return x.r.waiting.Load() == 0 }, 2*slice, time.Millisecond)
	x.r.used.Add(x.r.o.MaxBuffered + 1)
	x.problem(503, "busy", "GET", "/v1/stats", "")
	x.ok("GET", "/livez", "")
	x.r.used.Add(-x.r.o.MaxBuffered - 1)
}

// What clients have sent of a body counts before its end.
func TestHalfBodiesAreCounted(t *testing.T) {
	x := route(t, "a")
	x.r.o.MaxBuffered = 2 << 20
	half := strings.Repeat(" ", 800<<10)
	send := func(path, begin string) net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(x.base, "http://"))
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s%s", path, 1<<20, begin, half)
		require.NoError(t, err)
		return conn
	}
	for path, begin := range map[string]string{"/v1/urls": "{", "/v1/done": `[{"lease":"`, "/v1/leases": ""} {
		conn := send(path, begin)
		require.Eventually(t, func() bool { return x.r.used.Load() > 1400<<10 }, 10*time.Second, time.Millisecond, path)
		x.problem(503, "busy", "POST", path, begin+half)
		if path == "/v1/done" { // the rest of a body that is refused counts no more
			other := send(path, begin)
			_, err := other.Read(make([]byte, 1))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return x.r.used.Load() < 1800<<10 }, 10*time.Second, time.Millisecond)
			require.NoError(t, other.Close())
		}
		require.NoError(t, conn.Close())
		require.Eventually(t, func() bool { return x.r.used.Load() == 0 }, 10*time.Second, time.Millisecond, path)
	}
}

func TestARouterThatStops(t *testing.T) {
	x := route(t, "a")
	got := make(chan map[string]any)
	go func() { got <- x.ok("POST", "/v1/leases", `{"wait_s":60}`) }()
	time.Sleep(200 * time.Millisecond)
	began := time.Now()
	require.NoError(t, x.r.Close())
	assert.Less(t, time.Since(began), slice+time.Second)
	assert.Empty(t, (<-got)["leases"])
	x.problem(503, "busy", "GET", "/v1/stats", "")
}

// Routers that disagree about who has which hosts would put a host at two parts, and both would contact it.
func TestRoutersThatDisagreeAreRefused(t *testing.T) {
	x := route(t, "a", "b")
	for i := range 20 {
		x.ok("POST", "/v1/urls", fmt.Sprintf(`{"url":"http://h%d.example/"}`, i))
	}
	a, b := []string{x.parts["a"].http.URL}, []string{x.parts["b"].http.URL}
	for what, parts := range map[string]map[string][]string{
		"swapped": {"a": b, "b": a}, "another name": {"a": a, "c": b}, "one more": {"a": a, "b": b, "c": {"http://127.0.0.1:1"}},
	} {
		r, err := New(Options{Parts: parts})
		require.NoError(t, err)
		front := httptest.NewServer(r.Handler())
		y := &routed{t: t, base: front.URL, http: x.http}
		y.problem(409, "other-part", "POST", "/v1/leases", `{}`)
		y.problem(409, "other-part", "POST", "/v1/do", `{"do":"pause","scope":"*"}`)
		if what != "one more" { // the host may be its
			y.problem(409, "other-part", "POST", "/v1/urls", `{"url":"http://h1.example/2"}`)
		}
		front.Close()
		require.NoError(t, r.Close())
	}
	assert.EqualValues(t, 20, x.ok("GET", "/v1/stats", "")["waiting"])
}

// To a router a crawl is known if any part knows it, whichever part is asked.
func TestACrawlThatOnlyOtherPartsKnow(t *testing.T) {
	x := route(t, "a", "b", "c")
	host, other := x.host("a", 0), x.host("c", 0)
	x.ok("POST", "/v1/urls", `{"url":"http://`+host+`/","crawl":"news"}`, ndjson[:2]...)
	x.problem(404, "unknown-url", "GET", "/v1/urls?crawl=news&url=http://"+other+"/", "")
	assert.EqualValues(t, 0, x.ok("DELETE", "/v1/hosts/"+other+"/urls?crawl=news", "")["deleted"])
	for _, path := range []string{"/v1/list?crawl=news&host=" + other, "/v1/list?crawl=news&after=c/", "/v1/crawls/news/queues?after=" + other} {
		code, text := x.ask("GET", path, "")
		assert.Equal(t, 200, code, "%s: %s", path, text)
		assert.Empty(t, text, path)
	}
	for _, path := range []string{"/v1/list?crawl=none&host=" + other, "/v1/crawls/none/queues", "/v1/urls?crawl=none&url=http://" + other + "/"} {
		x.problem(404, "unknown-crawl", "GET", path, "")
	}
	x.problem(400, "bad-request", "GET", "/v1/crawls/news/queues?n=1&n=x", "")
}

// What stands in an array without being an object makes it malformed, as at a part.
func TestAnArrayOfOthersThanObjects(t *testing.T) {
	x := route(t, "a", "b")
	for _, path := range []string{"/v1/urls", "/v1/done"} {
		x.problem(400, "bad-request", "POST", path, `[7]`, "Content-Type", "application/json")
	}
	bad := x.ok("POST", "/v1/urls", "\n[{\"url\":\"http://a.example/\"},\n{\"url\":\"x\"}]", "Content-Type", "application/json")["bad"].([]any)
	assert.EqualValues(t, 2, bad[0].(map[string]any)["line"], "objects count")
}

// A fleet says itself when no machine has a partition. A part that says nothing is worth a warning there, too.
func TestAPartThatIsAway(t *testing.T) {
	vacant := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer vacant.Close()
	for _, c := range []struct {
		at    string
		fleet bool
		warns bool
	}{{vacant.URL, false, true}, {vacant.URL, true, false}, {"http://127.0.0.1:1", true, true}} {
		var log bytes.Buffer
		r, err := New(Options{Parts: map[string][]string{"0": {c.at}}, Fleet: c.fleet, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/v1/stats", nil))
		require.NoError(t, r.Close())
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, c.warns, strings.Contains(log.String(), "a part does not answer"), log.String())
	}
}
