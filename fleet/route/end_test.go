// These tests end leases, and change them, through a router.

package route

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/inspect"
)

// Ends of many leases of all parts, some of them bad, are answered in their order, with a verdict for each
// link in its order.
func TestEndsOfManyParts(t *testing.T) {
	x := route(t, "a", "b", "c")
	var urls []string
	for i := range 90 {
		urls = append(urls, fmt.Sprintf(`{"url":"http://%s/","crawl":"news","depth":%d}`, x.host([]string{"a", "b", "c"}[i%3], i/3), i%5))
	}
	x.ok("POST", "/v1/urls", strings.Join(urls, "\n"), "Content-Type", "application/x-ndjson")
	got := slices.Collect(maps.Values(x.leases(`{"max":90,"lease_s":60}`)))
	require.Len(t, got, 90)
	var body strings.Builder
	for i, l := range got {
		switch i % 9 {
		case 1:
			fmt.Fprintf(&body, "{\"lease\":%q,\"result\":\"eaten\"}\n", l["lease"])
		case 2:
			fmt.Fprintf(&body, "{\"lease\":\"AAAAAQAAAQAAAAAB.zzzzzz\"}\n")
		case 3:
			fmt.Fprintf(&body, "{\"lease\":\n")
		case 4:
			fmt.Fprintf(&body, "{\"result\":\"visited\"}\n")
		default:
			fmt.Fprintf(&body, `{"lease":%q,"add":[{"url":"http://%s/x%d"},{"url":"no"},{"url":"http://%s/y%d","id":"i"},{"url":"http://%s/z%d","depth":9,"crawl":"old"}]}`+"\n",
				l["lease"], x.host("a", 1), i, x.host("b", 1), i, x.host("c", 1), i)
		}
	}
	ends := body.String()
	check := func(text, status string, added int) {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		require.Len(t, lines, 90, text)
		for i, line := range lines {
			var a struct {
				Lease string
				Added int
				Add   []verdict
				Error *problem
			}
			require.NoError(t, json.Unmarshal([]byte(line), &a), line)
			switch i % 9 {
			case 1:
				assert.Equal(t, got[i]["lease"], a.Lease)
				assert.Contains(t, a.Error.Detail, "eaten")
			case 2:
				assert.Equal(t, 409, a.Error.Status)
			case 3, 4:
				assert.Equal(t, 400, a.Error.Status, line)
			default:
				require.Nil(t, a.Error, line)
				assert.Equal(t, got[i]["lease"], a.Lease)
				assert.Equal(t, added, a.Added)
				require.Len(t, a.Add, 4)
				if a.Add[1].Status != status { // of a repeated end, those of other parts are known
					assert.Equal(t, "bad", a.Add[1].Status)
				}
			}
		}
	}
	code, text := x.ask("POST", "/v1/done", ends, ndjson...)
	require.Equal(t, 200, code)
	check(text, "new", 3)
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if i%9 == 0 {
			assert.Contains(t, line, `"add":[{"status":"new"},{"status":"bad","error":`)
			assert.Contains(t, line, `},{"id":"i","status":"new"},{"status":"new"}]`)
		}
	}
	code, _ = x.ask("POST", "/v1/done", ends, ndjson...)
	require.Equal(t, 200, code, "the same bytes again")
	for _, part := range []string{"b", "c"} {
		id, ok := x.parts[part].s.Crawl("news")
		require.True(t, ok)
		s, _ := inspect.New(x.parts[part].f).Crawl(id)
		assert.EqualValues(t, map[string]int64{"b": 30 + 50, "c": 30}[part], s.Added, part)
	}
	for i, l := range got {
		if i%9 == 0 {
			u := x.ok("GET", fmt.Sprintf("/v1/urls?crawl=news&url=http://%s/y%d", x.host("b", 1), i), "")
			depth, _ := l["depth"].(float64)
			assert.Equal(t, depth+1, u["depth"])
			u = x.ok("GET", fmt.Sprintf("/v1/urls?crawl=old&url=http://%s/z%d", x.host("c", 1), i), "")
			assert.EqualValues(t, 9, u["depth"])
		}
	}
}

// An end is not reported before the links to other parts are there.
func TestNoLinkIsLost(t *testing.T) {
	x := route(t, "a", "b")
	a, b := x.host("a", 0), x.host("b", 0)
	x.ok("POST", "/v1/urls", "http://"+a+"/", "Content-Type", "text/plain")
	l := x.leases(`{}`)["http://"+a+"/"]
	path, end := "/v1/leases/"+l["lease"].(string)+"/done", `{"add":[{"url":"http://`+b+`/1"},{"url":"http://`+a+`/1"}]}`
	x.parts["b"].down.Store(true)
	assert.Contains(t, x.problem(503, "busy", "POST", path, end), "part b")
	assert.EqualValues(t, 1, x.leased(), "the end was not reported")
	x.parts["b"].down.Store(false)
	x.parts["b"].short.Store(true)
	assert.Contains(t, x.problem(507, "no-space", "POST", path, end), "part b")
	assert.EqualValues(t, 1, x.leased(), "a disk that is full for a while loses nothing")
	x.parts["b"].short.Store(false)
	want := `{"added":2,"add":[{"status":"new"},{"status":"new"}]}`
	code, text := x.ask("POST", path, end)
	assert.Equal(t, 200, code)
	assert.JSONEq(t, want, text)
	_, text = x.ask("POST", path, end)
	assert.JSONEq(t, `{"added":1,"add":[{"status":"known"},{"status":"new"}]}`, text, "the end is remembered, and the other link is known")
	x.problem(409, "not-leased", "POST", path, `{"result":"failed"}`)
	x.problem(409, "not-leased", "POST", "/v1/leases/AAAAAQAAAQAAAAAB/done", `{}`)
	x.problem(400, "bad-request", "POST", path, `{"lease":"x"}`)
	x.problem(400, "bad-request", "POST", path, `{"add":[],"add":[]}`)

	// A crawl that is forgotten meanwhile is not made anew at other parts.
	x.ok("POST", "/v1/urls", `{"url":"http://`+a+`/2","crawl":"gone"}`, "Content-Type", "application/x-ndjson")
	l = x.leases(`{"crawls":["gone"]}`)["http://"+a+"/2"]
	x.ok("DELETE", "/v1/crawls/gone?forget=true", "")
	got := x.ok("POST", "/v1/leases/"+l["lease"].(string)+"/done", strings.ReplaceAll(end, "/1", "/3"))
	for _, v := range got["add"].([]any) {
		assert.Equal(t, "refused", v.(map[string]any)["status"])
	}
	x.problem(404, "unknown-crawl", "GET", "/v1/crawls/gone", "")
	x.ok("POST", "/v1/urls", `{"url":"http://`+a+`/4","crawl":"crawl:4"}`, "Content-Type", "application/x-ndjson")
	l = x.leases(`{"crawls":["crawl:4"]}`)["http://"+a+"/4"]
	got = x.ok("POST", "/v1/leases/"+l["lease"].(string)+"/done", strings.ReplaceAll(end, "/1", "/5"))
	assert.EqualValues(t, 2, got["added"], "that is its name")
}

// Pages with links to other parts cost a few requests for all of them, and the links inherit from their own page.
func TestManyPagesWithLinksElsewhere(t *testing.T) {
	x := route(t, "a", "b")
	const pages = looksAt + 20
	var urls, ends strings.Builder
	for i := range pages {
		fmt.Fprintf(&urls, `{"url":"http://%s/%d","crawl":"c%d","depth":%d}`+"\n", x.host("a", i), i, i%3, i%5)
	}
	x.ok("POST", "/v1/urls", urls.String(), "Content-Type", "application/x-ndjson")
	leases := x.leases(fmt.Sprintf(`{"max":%d}`, pages))
	require.Len(t, leases, pages)
	for url, l := range leases {
		fmt.Fprintf(&ends, `{"lease":%q,"add":[{"url":"http://%s/of/%s"}]}`+"\n", l["lease"], x.host("b", 0), url[strings.LastIndexByte(url, '/')+1:])
	}
	asked := x.parts["a"].asked.Load()
	code, text := x.ask("POST", "/v1/done", ends.String(), ndjson...)
	require.Equal(t, 200, code)
	require.NotContains(t, text, "error")
	assert.LessOrEqual(t, x.parts["a"].asked.Load()-asked, int64(4), "two to look at the pages, and at most two to end them")
	for range pages {
		for url, l := range x.leases(`{"wait_s":5,"host":"` + x.host("b", 0) + `"}`) {
			n, err := strconv.Atoi(url[strings.LastIndexByte(url, '/')+1:])
			require.NoError(t, err)
			assert.Equal(t, []any{fmt.Sprint("c", n%3), float64(n%5 + 1)}, []any{l["crawl"], l["depth"]}, url)
			x.ok("POST", "/v1/leases/"+l["lease"].(string)+"/done", "")
		}
	}
	assert.Zero(t, x.leased())
}

func TestLeasesAreChangedWhereTheyAre(t *testing.T) {
	x := route(t, "a", "b")
	for _, part := range []string{"a", "b"} {
		host := x.host(part, 0)
		x.ok("POST", "/v1/urls", "http://"+host+"/", "Content-Type", "text/plain")
		l := x.leases(`{"host":"` + host + `"}`)["http://"+host+"/"]
		id := "/v1/leases/" + l["lease"].(string)
		assert.Equal(t, l["lease"], x.ok("GET", id, "")["lease"])
		assert.InDelta(t, 300, x.ok("POST", id+"/extend", `{"lease_s":300}`)["lease_s"], 1)
		contact := x.ok("POST", id+"/handback", `{}`)["lease"].(string)
		x.problem(409, "not-leased", "GET", id, "")
		x.ok("POST", "/v1/leases/"+contact+"/done", `{"duration_s":0.1,"add":[{"url":"http://`+x.host("b", 7)+`/robots"},{"url":"http://`+x.host("a", 7)+`/robots"}]}`)
		contact = x.ok("POST", "/v1/hosts/"+host+"/contact", `{"wait_s":5}`)["lease"].(string)
		assert.Len(t, x.ok("GET", "/v1/leases", "")["leases"], 1)
		assert.Equal(t, contact, x.ok("GET", "/v1/leases", "")["leases"].([]any)[0].(map[string]any)["lease"])
		x.ok("DELETE", "/v1/leases/"+contact, "")
		x.ok("GET", "/v1/hosts/"+host, "")
		for url, l := range x.leases(`{"max":9}`) {
			assert.True(t, strings.HasSuffix(url, "/robots") || url == "http://"+host+"/", url)
			x.ok("POST", "/v1/leases/"+l["lease"].(string)+"/done", `{}`)
		}
	}
	other, err := New(Options{Parts: map[string][]string{"a": {"http://a:1"}, "z": {"http://b:1"}}})
	require.NoError(t, err)
	defer other.Close()
	_, _, err = other.owner("AAAAAQAAAQAAAAAB" + x.r.parts[0].tail)
	assert.Error(t, err, "part a of another division")
}

// An end that differs from the one before in links to other parts alone is another end, and one that comes after
// another in one request waits for it: what neither ends stores no link.
func TestAnotherEndOfALease(t *testing.T) {
	x := route(t, "a", "b")
	a, b := x.host("a", 0), x.host("b", 0)
	x.ok("POST", "/v1/urls", `{"url":"http://`+a+`/"}`, ndjson[:2]...)
	lease := x.leases(`{}`)["http://"+a+"/"]["lease"].(string)
	line := func(path string) string {
		return `{"lease":"` + lease + `","add":[{"url":"http://` + b + path + `"}]}` + "\n"
	}
	_, text := x.ask("POST", "/v1/done", line("/1")+line("/2")+line("/1"), ndjson...)
	lines := strings.Split(text, "\n")
	assert.Contains(t, lines[0], `"added":1,"add":[{"status":"new"}]`)
	assert.Contains(t, lines[1], "not-leased")
	assert.Contains(t, lines[2], `"added":0,"add":[{"status":"known"}]`, "the same again")
	x.problem(409, "not-leased", "POST", "/v1/leases/"+lease+"/done", strings.TrimSpace(line("/2")))
	x.problem(404, "unknown-url", "GET", "/v1/urls?url=http://"+b+"/2", "")
	assert.Equal(t, "waiting", x.ok("GET", "/v1/urls?url=http://"+b+"/1", "")["state"])
}

// Several leases are described in the order in which they were named, whichever parts they are of.
func TestSeveralLeases(t *testing.T) {
	x := route(t, "a", "b")
	x.addEach(2, "news", "a", "b")
	var ids []string
	for _, l := range x.leases(`{"max":4}`) {
		ids = append(ids, l["lease"].(string))
	}
	x.ok("POST", "/v1/leases/"+ids[1]+"/done", "")
	joined := x.ok("POST", "/v1/leases/"+ids[3]+"/join", `{"group":"192.0.2.1"}`)["lease"].(string)
	var got []string
	for _, l := range x.ok("GET", "/v1/leases/none,"+strings.Join(ids, ",")+","+joined, "")["leases"].([]any) {
		got = append(got, l.(map[string]any)["lease"].(string))
	}
	assert.Equal(t, []string{ids[0], ids[2], joined, joined}, got)
	assert.Empty(t, x.ok("GET", "/v1/leases/none,none", "")["leases"])
	x.problem(400, "bad-request", "DELETE", "/v1/leases/"+ids[0]+"?dry=true", "")
	assert.EqualValues(t, 3, x.leased()-1, "and a permit")
}
