// This test sends the same random requests to one server and to a router over three parts, and compares the answers.

package route

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/serve"
)

var (
	sequences = flag.Int("frontier.sequences", 20, "how many random sequences of requests TestARouterAnswersAsAServer sends")
	sequence  = flag.Uint64("frontier.sequence", 0, "the first of them")
	asked     = map[string]bool{} // by the pattern of a request
)

func TestARouterAnswersAsAServer(t *testing.T) {
	defer func() {
		for pattern := range routes {
			assert.True(t, asked[pattern] || *sequences < 20 || !strings.Contains(pattern, "/v1/"), "%s was never sent", pattern)
		}
	}()
	for i := range *sequences {
		t.Run(fmt.Sprint(*sequence+uint64(i)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newTwins(t, *sequence+uint64(i)).run() })
		})
	}
}

// inside answers requests in this process, by host.
type inside map[string]http.Handler

func (x inside) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	x[r.URL.Host].ServeHTTP(w, r)
	return w.Result(), nil
}

// twins are a server and a router with the same contents.
type twins struct {
	*rand.Rand
	t      *testing.T
	sides  [2]http.Handler
	hosts  []string
	groups bool        // leases join groups: the router has hosts and leases of its own for these
	leases [][2]string // their IDs; requests have <L7> for the seventh
	at     []string    // the hosts of these leases
	ends   []request   // and actions, which may be sent again
	step   time.Duration
	over   bool // they have handed out different URLs: from then on nothing can be compared
}

// request is a request, and what its answers are compared by.
type request struct {
	method, path, body string
	header             []string
	wide               bool // parts have said something each
	again              bool // it was sent before
}

func newTwins(t *testing.T, seed uint64) *twins {
	x := &twins{t: t, Rand: rand.New(rand.NewPCG(seed, 1)), groups: seed%4 == 3, hosts: []string{"192.0.2.1", "xn--bcher-kva.example"}}
	for i := range 3 {
		x.hosts = append(x.hosts, fmt.Sprintf("www.site%d.example", i), fmt.Sprintf("shop.site%d.example", i), fmt.Sprintf("site%d.co.uk", i))
	}
	x.begin()
	return x
}

// begin replaces the sides by empty ones.
func (x *twins) begin() {
	handlers, parts := inside{}, map[string][]string{}
	for _, name := range []string{"a", "b", "c", "one"} {
		f, err := frontier.Open(x.t.Context(), serve.Frontier(frontier.Options{Selector: selector.Strict(), Backoff: frontier.Backoff{Jitter: 1e-9}}))
		require.NoError(x.t, err)
		s, err := serve.New(f, serve.Options{Names: []string{"a.invalid", "b.invalid", "c.invalid"}})
		require.NoError(x.t, err)
		x.t.Cleanup(func() { assert.NoError(x.t, errors.Join(s.Close(), f.Check(), f.Close())) })
		handlers[name+".invalid"], parts[name] = s.Handler(), []string{"http://" + name + ".invalid"}
	}
	delete(parts, "one")
	r, err := New(Options{Parts: parts, Transport: handlers})
	require.NoError(x.t, err)
	x.t.Cleanup(func() { assert.NoError(x.t, r.Close()) })
	x.sides = [2]http.Handler{handlers["one.invalid"], r.Handler()}
}

func (x *twins) run() {
	for range 60 {
		if x.IntN(4) == 0 {
			time.Sleep(one(x, time.Second, 5*time.Second, 31*time.Second, time.Minute))
		}
		if x.same(x.next()); x.t.Failed() || x.over {
			return
		}
	}
	for _, q := range []request{{method: "POST", path: "/v1/stream"}, {method: "GET", path: "/v1/fleet"}, {method: "POST", path: "/v1/fleet"}, {method: "GET", path: "/metrics"}} {
		code, _ := x.ask(1, q)
		assert.Equal(x.t, http.StatusNotImplemented, code, q.path)
	}
	_, _ = x.ask(1, request{method: "GET", path: "/v1/export"})
	_, export := x.ask(0, request{method: "GET", path: "/v1/export"})
	if x.begin(); x.groups {
		return
	}
	x.same(request{method: "POST", path: "/v1/import", body: export})
	for _, path := range []string{"/v1/list", "/v1/crawls", "/v1/rules", "/v1/hosts"} {
		x.same(request{method: "GET", path: path})
	}
}

// same sends a request to both at the same time.
func (x *twins) same(q request) {
	var codes [2]int
	var texts [2]string
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() { codes[i], texts[i] = x.ask(i, q) })
	}
	both.Wait()
	x.step += time.Millisecond // so that no request comes as a lease ends
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + x.step)))
	server, router := x.plain(q, texts)
	x.t.Logf("%s %s %s %v\n  %d %.900s", q.method, q.path, q.body, q.header, codes[0], server)
	differ := codes[0] != codes[1] || server != router
	x.over = differ && q.path == "/v1/leases" && strings.Contains(texts[0], `"url"`) && strings.Contains(texts[1], `"url"`) // which comes first is open
	if differ && !x.over {
		x.t.Errorf("%s %s %s: the answers differ:\n%d %s\n%d %s", q.method, q.path, q.body, codes[0], server, codes[1], router)
	}
}

var placeholder, number = regexp.MustCompile(`<L\d+>`), regexp.MustCompile(`crawl \d+`)

// ask sends a request to a side, and follows a list to its end.
func (x *twins) ask(i int, q request) (code int, all string) {
	of := func(s string) string {
		return placeholder.ReplaceAllStringFunc(s, func(m string) string {
			n, _ := strconv.Atoi(m[2 : len(m)-1])
			return x.leases[n][i]
		})
	}
	path, params, _ := strings.Cut(of(q.path), "?")
	for {
		r := httptest.NewRequestWithContext(x.t.Context(), q.method, "http://localhost"+path+"?"+params, strings.NewReader(of(q.body)))
		for h := 0; h < len(q.header); h += 2 {
			r.Header.Set(q.header[h], q.header[h+1])
		}
		w := httptest.NewRecorder()
		x.sides[i].ServeHTTP(w, r)
		if i == 1 {
			asked[r.Pattern] = true
		}
		text := strings.TrimSpace(w.Body.String())
		all += text + "\n"
		var last struct{ Next, After string }
		_ = json.Unmarshal([]byte(text[strings.LastIndexByte(text, '\n')+1:]), &last)
		if last.Next+last.After == "" || w.Code != http.StatusOK {
			return w.Code, all
		}
		v, _ := url.ParseQuery(params)
		v.Set("after", last.Next+last.After)
		params = v.Encode()
	}
}

func text(v any) string        { b, _ := json.Marshal(v); return string(b) }
func byJSON[T any](a, b T) int { return cmp.Compare(text(a), text(b)) }

// lent is a new lease in an answer.
type lent struct {
	id  string
	row map[string]any
}

func (x *twins) lend(server, router string, host any) {
	x.leases, x.at = append(x.leases, [2]string{server, router}), append(x.at, fmt.Sprint(host))
}

// plain returns two answers without what may differ, and notes new leases.
func (x *twins) plain(q request, texts [2]string) (server, router string) {
	var all [2]any
	var found [2][]lent
	if strings.HasSuffix(q.path, "/join") { // a router gives the lease another ID
		if a, b := values([]byte(texts[0])), values([]byte(texts[1])); a["lease"] != nil && b["lease"] != nil {
			x.lend(a["lease"].(string), b["lease"].(string), a["host"])
		}
	}
	for i, s := range texts {
		for _, ids := range x.leases {
			s = strings.ReplaceAll(s, `"`+ids[i]+`"`, `"<`+ids[0]+`>"`)
		}
		var rows []any
		for d := json.NewDecoder(strings.NewReader(s)); d.More(); {
			var v any
			if d.Decode(&v) != nil {
				v, d = s, json.NewDecoder(strings.NewReader(""))
			}
			rows = append(rows, v)
		}
		all[i] = x.value(q, rows, q.method == "GET", &found[i])
		slices.SortFunc(found[i], func(a, b lent) int { return byJSON(a.row, b.row) })
	}
	for n := range min(len(found[0]), len(found[1])) {
		x.lend(found[0][n].id, found[1][n].id, found[0][n].row["host"])
	}
	return text(all[0]), text(all[1])
}

// value takes out of a value what docs/fleet.md allows to differ, and the order of lists.
func (x *twins) value(q request, v any, list bool, found *[]lent) any {
	switch v := v.(type) {
	case map[string]any:
		if v["type"] != nil {
			return []any{v["type"], v["status"]} // a problem
		}
		drop := strings.Fields("group next after sent_s late_s number client divided now")
		now := time.Now().UTC().Format(time.RFC3339)
		for _, name := range []string{"due", "until", "not_before"} { // what has passed may be forgotten
			if at, _ := v[name].(string); at < now {
				drop = append(drop, name)
			}
		}
		switch _, added := v["added"]; {
		case q.path == "/v1/import": // of no host, thus for every part
			drop = append(drop, "marks", "foreign_marks", "rules", "values", "crawls")
		case q.path == "/v1/stats":
			drop = append(append(drop, ofOne...), strings.Fields("bound state wait_p99_s wait_median_s sentence memory_bytes added_per_s done_per_s handed_out_per_s pages_per_s host_states")...)
		case strings.HasPrefix(q.path, "/v1/due"):
			drop = append(drop, "hosts") // some of those that may come
		case strings.HasPrefix(q.path, "/v1/hosts/") && v["limits"] != nil, q.wide && v["said"] != nil:
			drop = append(drop, "limits", "said", "count", "hosts")
		case q.again && added: // links are known now
			drop = append(drop, "added", "add")
		case strings.HasPrefix(q.path, "/v1/list"):
			drop = append(drop, "attempt", "history") // a lease that is over counts once a frontier looks at it
		case q.path == "/v1/leases":
			drop = append(drop, "next_s") // it may be too early
		}
		if _, isNumber := v["crawl"].(float64); isNumber {
			drop = append(drop, "crawl")
		}
		if v["reason"] == "back queue" || v["reason"] == "its turn" {
			drop = append(drop, "reason", "why")
		}
		maps.DeleteFunc(v, func(name string, _ any) bool { return slices.Contains(drop, name) })
		if id, ok := v["lease"].(string); ok && !strings.HasPrefix(id, "<") && q.method == "POST" && v["lease_s"] != nil {
			v["lease"] = "new"
			*found = append(*found, lent{id, v})
		}
		for name, in := range v {
			v[name] = x.value(q, in, list || name == "leases", found)
		}
	case []any:
		var rows []any
		for _, row := range v {
			page, _ := row.(map[string]any)
			if hosts, ok := page["hosts"].([]any); ok && list && !strings.HasPrefix(q.path, "/v1/due") { // pages of a list
				rows = append(rows, x.value(q, hosts, list, found).([]any)...)
			} else if row = x.value(q, row, list, found); text(row) != "{}" {
				rows = append(rows, row)
			}
		}
		if list {
			slices.SortStableFunc(rows, byJSON)
		}
		return rows
	case string:
		if strings.Contains(v, "where '{' should be") {
			return errNoObject.Error()
		}
		v = number.ReplaceAllString(v, "crawl")
		if q.path == "/v1/do" {
			v, _, _ = strings.Cut(v, ": ") // what an action concerns is counted in steps
		}
		return v
	}
	return v
}
