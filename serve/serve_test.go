package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/transfer"
)

// served is a Service behind a server on loopback.
type served struct {
	t    testing.TB
	s    *Service
	base string
	http *http.Client
	head http.Header
}

func serve(t testing.TB, o Options) *served {
	return serveFrontier(t, frontier.Options{Delay: frontier.FixedDelay(0)}, o)
}

func serveFrontier(t testing.TB, fo frontier.Options, o Options) *served {
	f, err := frontier.Open(context.Background(), Frontier(fo))
	require.NoError(t, err)
	s, err := New(f, o)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(nil)
	server.Config = s.HTTP()
	server.Start()
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		server.Close()
		assert.NoError(t, f.Check())
		assert.NoError(t, f.Close())
	})
	return &served{t: t, s: s, base: server.URL, http: server.Client(), head: http.Header{}}
}

// ask sends a request and returns the status and the body. header is of names and values.
func (x *served) ask(method, path, body string, header ...string) (int, string) {
	x.t.Helper()
	code, text, _ := x.full(method, path, strings.NewReader(body), header...)
	return code, text
}

func (x *served) full(method, path string, body io.Reader, header ...string) (int, string, http.Header) {
	x.t.Helper()
	r, err := http.NewRequest(method, x.base+path, body)
	require.NoError(x.t, err)
	for name, v := range x.head {
		r.Header[name] = v
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := x.http.Do(r)
	require.NoError(x.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(x.t, err)
	return res.StatusCode, string(b), res.Header
}

// ok is the answer to a request that must succeed.
func (x *served) ok(method, path, body string, header ...string) map[string]any {
	x.t.Helper()
	code, text := x.ask(method, path, body, header...)
	require.Equal(x.t, http.StatusOK, code, "%s", text)
	var m map[string]any
	require.NoError(x.t, json.Unmarshal([]byte(text), &m), "%s", text)
	return m
}

// problem makes sure of a request's failure.
func (x *served) problem(status int, kind, method, path, body string, header ...string) string {
	x.t.Helper()
	code, text, h := x.full(method, path, strings.NewReader(body), header...)
	assert.Equal(x.t, status, code, "%s", text)
	assert.Equal(x.t, "application/problem+json", h.Get("Content-Type"))
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	require.NoError(x.t, json.Unmarshal([]byte(text), &p), "%s", text)
	assert.Equal(x.t, problemBase+kind, p.Type, "%s", text)
	assert.Equal(x.t, status, p.Status)
	assert.NotEmpty(x.t, p.Title)
	return p.Detail
}

var ndjson = []string{"Content-Type", "application/x-ndjson", "Accept", "application/x-ndjson"}

// lease is one lease.
func (x *served) lease() map[string]any {
	x.t.Helper()
	m := x.ok("POST", "/v1/leases", `{"wait_s":20}`)
	all := m["leases"].([]any)
	require.Len(x.t, all, 1)
	return all[0].(map[string]any)
}

func TestAVerdictPerLineInOrder(t *testing.T) {
	x := serve(t, Options{})
	code, text := x.ask("POST", "/v1/urls", `{"url":"http://a.example/1","id":"x"}
{"url":"http://a.example/1"}

{"url":"nothing"}
{"url":"http://a.example/2","surprise":1}
{"url":"http://a.example/3","crawl":"other","meta":{"k":["v","w"]},"priority":16}
{"url":
{"url":"http://a.example/4\u00e9","force":true}`, ndjson...)
	assert.Equal(t, 200, code)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, 7)
	assert.JSONEq(t, `{"id":"x","status":"new"}`, lines[0])
	assert.JSONEq(t, `{"status":"known"}`, lines[1])
	assert.Contains(t, lines[2], `"status":"bad","error":`)
	assert.JSONEq(t, `{"status":"bad","error":"surprise: there is no such member"}`, lines[3])
	assert.JSONEq(t, `{"status":"new"}`, lines[4])
	assert.Contains(t, lines[5], `malformed JSON`)
	assert.JSONEq(t, `{"status":"new"}`, lines[6])
}

func TestASummary(t *testing.T) {
	x := serve(t, Options{})
	m := x.ok("POST", "/v1/urls", "http://a.example/\nhttp://b.example/\nnothing\nhttp://a.example/\n", "Content-Type", "text/plain")
	assert.EqualValues(t, 4, m["lines"])
	assert.EqualValues(t, 2, m["new"])
	assert.EqualValues(t, 1, m["known"])
	assert.EqualValues(t, 3, m["bad"].([]any)[0].(map[string]any)["line"])
	m = x.ok("POST", "/v1/urls", "\uFEFF# of Windows\r\n http://e.example/ # one\r\n\r\n<http://f.example/>\r\n\xff\r\n", "Content-Type", "text/plain")
	assert.EqualValues(t, 3, m["lines"])
	assert.EqualValues(t, 2, m["new"])
	assert.EqualValues(t, 5, m["bad"].([]any)[0].(map[string]any)["line"])
	m = x.ok("POST", "/v1/urls", "\xff\xfeh\x00t\x00t\x00p\x00:\x00/\x00/\x00g\x00.\x00d\x00e\x00/\x00\r\x00\n\x00", "Content-Type", "text/plain")
	assert.EqualValues(t, 1, m["new"])
	m = x.ok("POST", "/v1/urls", ` [{"url":"http://c.example/"}, {"url":"http://d.example/{\"}"} ] `)
	assert.EqualValues(t, 2, m["lines"])
	x.problem(400, "bad-request", "POST", "/v1/urls", `[{"url":"http://c.example/"}`)
	x.problem(400, "bad-request", "POST", "/v1/urls", `[{"url":"http://c.example/"} {}]`)
	x.problem(400, "bad-request", "POST", "/v1/urls", `<x>`, "Content-Type", "text/html")
}

func TestALeaseCarriesWhatWasAdded(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1","crawl":" news ","depth":2,"weight":0.5,"priority":9,"meta":{"k":["v","w"],"empty":[]}}`)
	l := x.lease()
	assert.Equal(t, "http://a.example/1", l["url"])
	assert.Equal(t, "a.example", l["host"])
	assert.Equal(t, "news", l["crawl"])
	assert.EqualValues(t, 2, l["depth"])
	assert.EqualValues(t, 0.5, l["weight"])
	assert.EqualValues(t, 9, l["priority"])
	assert.EqualValues(t, 1, l["attempt"])
	assert.Equal(t, map[string]any{"k": []any{"v", "w"}, "empty": []any{}}, l["meta"])
	assert.InDelta(t, 20, l["lease_s"], 10)

	m := x.ok("POST", "/v1/leases", `{"crawls":["news"],"host":"a.example"}`)
	assert.Empty(t, m["leases"])
	assert.NotContains(t, m, "exhausted")

	id := l["lease"].(string)
	again := x.ok("GET", "/v1/leases/"+id, "")
	assert.Equal(t, l["url"], again["url"])
	longer := x.ok("POST", "/v1/leases/"+id+"/extend", `{"lease_s":3600}`)
	assert.Greater(t, longer["lease_s"], l["lease_s"])
	assert.Equal(t, id, x.ok("POST", "/v1/leases/"+id+"/join", `{"group":"g"}`)["lease"])
	contact := x.ok("POST", "/v1/leases/"+id+"/handback", "")
	assert.NotContains(t, contact, "url")
	x.problem(409, "not-leased", "POST", "/v1/leases/"+id+"/extend", `{"lease_s":3600}`)
	x.ok("POST", "/v1/leases/"+contact["lease"].(string)+"/done", `{}`)

	l = x.lease()
	m = x.ok("POST", "/v1/leases/"+l["lease"].(string)+"/done", `{"result":"failed","failure":"timeout","meta":{"k":["new"]},"add":[{"url":"http://a.example/1","crawl":"news","id":"i"},{"url":"http://b.example/"},{"url":"x"}]}`)
	assert.EqualValues(t, 1, m["added"])
	assert.Equal(t, []any{"known", "new", "bad"}, []any{word(m, 0), word(m, 1), word(m, 2)})
	x.ok("GET", "/v1/urls?crawl=news&url="+url.QueryEscape("http://a.example/1"), "")
}

func word(m map[string]any, i int) any { return m["add"].([]any)[i].(map[string]any)["status"] }

func TestTheSameEndTwiceIsOne(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1"}`)
	path := "/v1/leases/" + x.lease()["lease"].(string) + "/done"
	body := `{"result":"visited","add":[{"url":"http://b.example/"}]}`
	first := x.ok("POST", path, body)
	assert.Equal(t, first, x.ok("POST", path, body))
	x.problem(409, "not-leased", "POST", path, `{"result":"gone"}`)
	x.problem(409, "not-leased", "POST", "/v1/leases/forged/done", `{}`)
	x.problem(409, "not-leased", "POST", "/v1/leases/AAAAAQAAAAAAAAAB/done", `{}`)
}

// Clients repeat a request that they think lost. The first may be under way still.
func TestTheSameEndTwiceAtOnceIsOne(t *testing.T) {
	x := serve(t, Options{})
	for i := range 50 {
		x.ok("POST", "/v1/urls", fmt.Sprintf(`{"url":"http://h%d.example/"}`, i))
		id := x.lease()["lease"].(string)
		body := fmt.Sprintf(`{"result":"visited","add":[{"url":"http://h%d.example/next","not_before":"2999-01-01T00:00:00Z"}]}`, i)
		answers := make([]string, 4)
		var wg sync.WaitGroup
		for j := range answers {
			wg.Go(func() { _, answers[j] = x.ask("POST", "/v1/leases/"+id+"/done", body) })
		}
		wg.Wait()
		for _, a := range answers {
			assert.Equal(t, `{"added":1,"add":[{"status":"new"}]}`+"\n", a)
		}
	}
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/"}`)
	line := fmt.Sprintf(`{"lease":%q,"add":[{"url":"http://b.example/"}]}`+"\n", x.lease()["lease"])
	_, text := x.ask("POST", "/v1/done", line+line+strings.Replace(line, "b.", "c.", 1), ndjson...)
	lines := strings.Split(text, "\n")
	require.Len(t, lines, 4)
	assert.Contains(t, lines[0], `"added":1`)
	assert.Equal(t, lines[0], lines[1], "the same line twice in one body")
	assert.Contains(t, lines[2], problemBase+"not-leased")
}

// A lease and its outlinks end together, or not at all.
func TestAFaultyEndAddsNothing(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/"}`)
	path := "/v1/leases/" + x.lease()["lease"].(string) + "/done"
	x.problem(400, "bad-request", "POST", path, `{"result":"put_off","add":[{"url":"http://b.example/"}]}`)
	x.problem(404, "unknown-url", "GET", "/v1/urls?url=http://b.example/", "")
	m := x.ok("POST", path, `{"result":"visited","add":[{"url":"http://b.example/"},{"url":"x","id":"1"},{"depth":1}]}`)
	assert.Equal(t, []any{"new", "bad", "bad"}, []any{word(m, 0), word(m, 1), word(m, 2)})
	x.ok("GET", "/v1/urls?url=http://b.example/", "")
}

func TestManyEnds(t *testing.T) {
	x := serve(t, Options{})
	for i := range 3 {
		x.ok("POST", "/v1/urls", fmt.Sprintf(`{"url":"http://h%d.example/"}`, i))
	}
	m := x.ok("POST", "/v1/leases", `{"hosts":10,"max":100}`)
	var body strings.Builder
	for _, l := range m["leases"].([]any) {
		fmt.Fprintf(&body, `{"lease":%q,"result":"visited","duration_s":0.3}`+"\n", l.(map[string]any)["lease"])
	}
	body.WriteString(`{"lease":"forged"}` + "\n" + `{"result":"visited"}` + "\n" + `{"lease":"x","result":"odd"}` + "\n" + `{"lease":"x","bytez":1}`)
	code, text := x.ask("POST", "/v1/done", body.String(), ndjson...)
	assert.Equal(t, 200, code)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, 7)
	for _, line := range lines[:3] {
		assert.Contains(t, line, `"added":0`)
	}
	assert.Contains(t, lines[3], problemBase+"not-leased")
	for _, line := range lines[4:] {
		assert.Contains(t, line, problemBase+"bad-request")
	}
	assert.EqualValues(t, 0, x.s.Frontier().Stats().Waiting)
}

func TestALongPollGetsWhatComes(t *testing.T) {
	x := serve(t, Options{})
	got := make(chan map[string]any)
	go func() { got <- x.lease() }()
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1"}`)
	assert.Equal(t, "http://a.example/1", (<-got)["url"])
}

func TestAStreamHoldsNoMoreThanMax(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", "http://a.example/\nhttp://b.example/\nhttp://c.example/", "Content-Type", "text/plain")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", x.base+"/v1/stream", strings.NewReader(`{"max":2}`))
	require.NoError(t, err)
	res, err := x.http.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	in := bufio.NewScanner(res.Body)
	next := func() string {
		for in.Scan() {
			var l struct{ Lease string }
			if json.Unmarshal(in.Bytes(), &l) == nil {
				return l.Lease
			}
		}
		return ""
	}
	first, second := next(), next()
	assert.NotEmpty(t, second)
	assert.EqualValues(t, 2, x.s.Frontier().Stats().Leased)
	assert.EqualValues(t, 1, x.s.Frontier().Stats().Waiting)
	x.ok("POST", "/v1/leases/"+first+"/done", `{}`)
	assert.NotEmpty(t, next())
	x.problem(400, "bad-request", "POST", "/v1/stream", `{"wait_s":1}`)
	x.problem(400, "bad-request", "POST", "/v1/stream", `{"maximum":2}`)
}

func TestAVerdictComesWhileTheBodyGoesOn(t *testing.T) {
	x := serve(t, Options{})
	body, out := io.Pipe()
	r, err := http.NewRequest("POST", x.base+"/v1/urls", body)
	require.NoError(t, err)
	r.Header.Set("Accept", "application/x-ndjson")
	go fmt.Fprintln(out, `{"url":"http://a.example/1"}`)
	res, err := x.http.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	in := bufio.NewScanner(res.Body)
	require.True(t, in.Scan())
	assert.Equal(t, `{"status":"new"}`, in.Text())
	_, err = fmt.Fprintln(out, `{"url":"http://a.example/1"}`)
	require.NoError(t, err)
	require.True(t, in.Scan())
	assert.Equal(t, `{"status":"known"}`, in.Text())
	require.NoError(t, out.Close())
	assert.False(t, in.Scan())
}

func TestLeasesAreChosen(t *testing.T) {
	x := serve(t, Options{})
	assert.Equal(t, true, x.ok("POST", "/v1/leases", `{}`)["exhausted"])
	x.ok("POST", "/v1/urls", `[{"url":"http://a.example/1"},{"url":"http://a.example/2"},{"url":"http://b.example/1","crawl":"b"}]`)
	assert.Len(t, x.ok("POST", "/v1/leases", `{"host":"a.example","per_host":5,"lease_s":5}`)["leases"], 2)
	assert.Empty(t, x.ok("POST", "/v1/leases", `{"crawls":["none"]}`)["leases"])
	m := x.ok("POST", "/v1/leases", `{"crawls":["b","none"]}`)
	require.Len(t, m["leases"], 1)
	assert.Equal(t, "b", m["leases"].([]any)[0].(map[string]any)["crawl"])
	x.problem(400, "bad-request", "POST", "/v1/leases", `{"lease_s":-1}`)
	x.problem(400, "bad-request", "POST", "/v1/leases", `{"hosts":-1}`)
}

func TestAFinishedURLIsKept(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `[{"url":"http://a.example/1","meta":{"k":["v"]},"finished":true},{"url":"http://b.example/","host":"owed.example"}]`)
	m := x.ok("GET", "/v1/urls?url=http://a.example/1", "")
	assert.Equal(t, "finished", m["state"])
	assert.Equal(t, map[string]any{"k": []any{"v"}}, m["meta"])
	l := x.lease()
	assert.Equal(t, "owed.example", l["host"])
	x.ok("POST", "/v1/leases/"+l["lease"].(string)+"/done", `{}`)
	x.problem(404, "unknown-url", "GET", "/v1/urls?url=http://c.example/", "")
}

// lines is an answer of several lines.
func (x *served) lines(path string) (all []map[string]any) {
	x.t.Helper()
	code, text := x.ask("GET", path, "")
	require.Equal(x.t, http.StatusOK, code, "%s", text)
	for line := range strings.Lines(text) {
		var m map[string]any
		require.NoError(x.t, json.Unmarshal([]byte(line), &m), "%s", line)
		all = append(all, m)
	}
	return all
}

// A stream for a crawl that does not exist yet gets that crawl's leases, and no others.
func TestAStreamWaitsForItsCrawl(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/","crawl":"other"}`)
	r, err := http.NewRequestWithContext(t.Context(), "POST", x.base+"/v1/stream", strings.NewReader(`{"max":10,"crawls":["news"]}`))
	require.NoError(t, err)
	res, err := x.http.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	require.True(t, lines.Scan())
	require.Empty(t, lines.Text(), "it lives")
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/","crawl":"news"}`)
	for lines.Scan() && lines.Text() == "" {
	}
	require.Contains(t, lines.Text(), `"crawl":"news"`)
}

func TestListingsAndDeletions(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1","crawl":"news","meta":{"k":["v"]}}
{"url":"http://a.example/2","crawl":"news","finished":true}
{"url":"http://a.example/3","crawl":"news","not_before":"2200-01-02T15:04:05Z"}
{"url":"http://b.example/1","crawl":"news"}
{"url":"http://a.example/1"}
{"url":"no URL","host":"_key_"}`)
	require.Len(t, x.lines("/v1/list"), 6)
	require.Len(t, x.lines("/v1/list?n=2"), 2)
	require.Len(t, x.lines("/v1/list?n=0"), 6)
	require.Len(t, x.lines("/v1/list?crawl=news"), 4)
	require.Len(t, x.lines("/v1/list?crawl="), 2, "the crawl without a name")
	require.Len(t, x.lines("/v1/list?crawl=news&host=a.example&finished=false"), 2)
	require.Equal(t, []map[string]any{{"url": "http://a.example/2", "crawl": "news", "host": "a.example", "priority": 4.0, "attempt": 1.0, "finished": true}},
		x.lines("/v1/list?crawl=news&finished=true"))
	require.Equal(t, []map[string]any{{"url": "http://b.example/1", "crawl": "news", "host": "b.example", "priority": 4.0, "attempt": 1.0}},
		x.lines("/v1/list?crawl=news&host=b.example"))
	require.Empty(t, x.lines("/v1/list?crawl=&host=b.example"))
	news, _ := x.s.Crawl("news")
	for host, alone := range map[string]bool{"a.example": false, "b.example": true, "c.example": true} {
		_, ok := x.s.waitingURLs(t.Context(), news, host)
		require.Equal(t, alone, ok, host)
	}
	var dates []any
	for _, m := range x.lines("/v1/list") {
		if d := m["not_before"]; d != nil {
			dates = append(dates, d)
		}
	}
	require.Equal(t, []any{"2200-01-02T15:04:05.000Z"}, dates)
	require.Equal(t, []map[string]any{{"host": "a.example", "waiting": 1.0, "scheduled": 1.0, "finished": 1.0}, {"host": "b.example", "waiting": 1.0}}, x.lines("/v1/crawls/news/queues"))
	require.Equal(t, []map[string]any{{"host": "b.example", "waiting": 1.0}}, x.lines("/v1/crawls/news/queues?after=a.example"))
	require.Len(t, x.lines("/v1/crawls/news/queues?n=1"), 1)
	m := x.ok("GET", "/v1/crawls/news", "")
	require.Equal(t, []any{2.0, 1.0, 1.0}, []any{m["waiting"], m["scheduled"], m["finished"]})
	require.Equal(t, "_key_", x.ok("GET", "/v1/urls?host=_key_&url=no+URL", "")["host"])

	x.problem(404, "unknown-crawl", "GET", "/v1/list?crawl=odd", "")
	x.problem(404, "unknown-crawl", "GET", "/v1/crawls/odd/queues", "")
	x.problem(404, "unknown-crawl", "DELETE", "/v1/hosts/a.example/urls?crawl=odd", "")
	x.problem(400, "bad-request", "GET", "/v1/list?n=-1", "")
	x.problem(400, "bad-request", "GET", "/v1/list?finished=perhaps", "")
	x.problem(400, "bad-request", "DELETE", "/v1/hosts/a.example/urls?forget=perhaps", "")

	add := func() any { return x.ok("POST", "/v1/urls", `{"url":"http://a.example/1","crawl":"news"}`)["new"] }
	require.Equal(t, 3.0, x.ok("DELETE", "/v1/hosts/a.example/urls?crawl=news", "")["deleted"])
	require.Equal(t, 0.0, add(), "it stays known")
	require.Equal(t, 0.0, x.ok("DELETE", "/v1/hosts/a.example/urls?crawl=news&forget=true", "")["deleted"])
	require.Equal(t, 1.0, add(), "it was forgotten")
	require.Equal(t, 2.0, x.ok("DELETE", "/v1/hosts/a.example/urls", "")["deleted"], "of all crawls")
	require.Len(t, x.lines("/v1/crawls/news/queues"), 1)
}

func TestContact(t *testing.T) {
	x := serveFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Hour)}, Options{})
	l := x.ok("POST", "/v1/hosts/a.example/contact", `{"wait_s":5,"lease_s":60}`)
	assert.Equal(t, "a.example", l["host"])
	x.ok("POST", "/v1/leases/"+l["lease"].(string)+"/done", `{}`)
	assert.Contains(t, x.ok("POST", "/v1/hosts/a.example/contact", `{}`), "next_s")
}

func TestOperatorsRequests(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1","crawl":"news"}`)
	m := x.ok("PUT", "/v1/rules/a.example", `{"delay":{"fixed":"3s"},"concurrency":2}`)
	assert.Equal(t, "a.example", m["scope"])
	assert.EqualValues(t, 2, m["rule"].(map[string]any)["concurrency"])
	assert.Equal(t, m, x.ok("GET", "/v1/rules/a.example", ""))
	set, err := json.Marshal(m["rule"])
	require.NoError(t, err)
	assert.Equal(t, m, x.ok("PUT", "/v1/rules/a.example", string(set)), "what GET answers PUT takes")
	assert.Len(t, x.ok("GET", "/v1/rules", "")["rules"], 1)
	assert.Empty(t, x.ok("DELETE", "/v1/rules/a.example", "")["rule"])
	assert.Equal(t, "a.example", x.ok("GET", "/v1/hosts/a.example", "")["host"])
	x.ok("GET", "/v1/hosts", "")
	x.ok("GET", "/v1/due", "")
	assert.EqualValues(t, 1, x.ok("GET", "/v1/stats", "")["waiting"])
	x.ok("POST", "/v1/do", `{"do":"pause","scope":"a.example"}`)
	assert.Contains(t, x.problem(400, "bad-request", "POST", "/v1/do", `{"do":"nothing"}`), "there are add, block, ")
	x.problem(404, "unknown-crawl", "GET", "/v1/crawls/none", "")
	m = x.ok("PUT", "/v1/crawls/news", `{"weight":3}`)
	assert.EqualValues(t, 1, m["waiting"])
	assert.Equal(t, map[string]any{"weight": 3.0}, m["rule"])
	assert.Len(t, x.ok("GET", "/v1/crawls", "")["crawls"], 2)
	number := m["number"]
	assert.EqualValues(t, 1, x.ok("DELETE", "/v1/crawls/news?forget=true", "")["deleted"])
	x.problem(404, "unknown-crawl", "GET", "/v1/crawls/news", "")
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1","crawl":"news"}`)
	assert.NotEqual(t, number, x.ok("GET", "/v1/crawls/news", "")["number"])
	code, export := x.ask("GET", "/v1/export", "")
	assert.Equal(t, 200, code)
	y := serve(t, Options{})
	y.ok("POST", "/v1/import", export)
	assert.Equal(t, x.ok("GET", "/v1/crawls/news", "")["number"], y.ok("GET", "/v1/crawls/news", "")["number"])
	y.ok("POST", "/v1/import", export)
	z := serve(t, Options{})
	z.ok("POST", "/v1/urls", `{"url":"http://z.example/","crawl":"sport"}`+"\n"+`{"url":"http://z.example/","crawl":"art"}`)
	assert.Contains(t, z.problem(409, "conflict", "POST", "/v1/import", export), `is crawl "art" here, and "news" in the export`)
	_, err = z.s.Import(t.Context(), strings.NewReader(export), transfer.ImportOptions{})
	require.ErrorIs(t, err, console.ErrConflict)
	assert.EqualValues(t, 2, z.ok("GET", "/v1/stats", "")["waiting"], "nothing was imported")
	_, err = transfer.Import(t.Context(), z.s.f, strings.NewReader(`{"value":"crawl/late","data":"OQ=="}`+"\n"+`{"value":"next-crawl","data":"MTA="}`+"\n"), transfer.ImportOptions{})
	require.NoError(t, err)
	z.ok("POST", "/v1/urls", `{"url":"http://z.example/","crawl":"late"}`+"\n"+`{"url":"http://z.example/","crawl":"later"}`)
	assert.EqualValues(t, 9, z.ok("GET", "/v1/crawls/late", "")["number"])
	assert.EqualValues(t, 10, z.ok("GET", "/v1/crawls/later", "")["number"])
	x.problem(404, "not-found", "GET", "/v1/nothing", "")
	x.problem(405, "bad-request", "DELETE", "/v1/done", "")
	x.problem(422, "limit", "PUT", "/v1/crawls/news", `{"concurrency":3}`)
}

func TestAKeyIsAnsweredOnce(t *testing.T) {
	x := serve(t, Options{})
	key := []string{"Idempotency-Key", "k1"}
	body := `{"do":"add","urls":["http://a.example/"]}`
	first := x.ok("POST", "/v1/do", body, key...)
	assert.EqualValues(t, 1, first["count"])
	assert.Equal(t, first, x.ok("POST", "/v1/do", body, key...))
	x.problem(409, "conflict", "POST", "/v1/do", `{"do":"add","urls":["http://b.example/"]}`, key...)
}
