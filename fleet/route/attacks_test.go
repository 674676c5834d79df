package route

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// placed makes sure that each host is at its part.
func (x *routed) placed() {
	x.t.Helper()
	for name, p := range x.parts {
		for key := range inspect.New(p.f).HostNames(scope.All(), "") {
			assert.Equal(x.t, name, x.r.home(key).name, key)
		}
	}
}

// A part would take a line that is an array apart, and answer more lines than there were.
func TestLinesThatAreNoObjects(t *testing.T) {
	x := route(t, "a", "b")
	url := "http://" + x.host("b", 0) + "/"
	for _, body := range []string{"7\n" + `[[{"url":%q}]]`, "7\n" + `[{"url":%q}]`, `"%s"`} {
		_, text := x.ask("POST", "/v1/urls", fmt.Sprintf(body, url), ndjson...)
		assert.Contains(t, text, `"status":"bad","error":"want a JSON object"`)
	}
	_, text := x.ask("POST", "/v1/done", "7\n"+`[{"lease":"x"}]`, ndjson...)
	assert.Equal(t, 2, strings.Count(text, "want a JSON object"))
	assert.Equal(t, 0.0, x.ok("GET", "/v1/stats", "")["known"])

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"status":"new"}`+"\n"+`{"status":"new"}`+"\n")
	}))
	defer other.Close()
	x.r.parts[1].bases = []string{other.URL}
	assert.Contains(t, x.problem(503, "busy", "POST", "/v1/urls", fmt.Sprintf(`{"url":%q}`, url)), "it has answered more than it was asked")
}

// What people type is at the part of the URL that a part makes of it.
func TestTypedURLsAreAtTheirParts(t *testing.T) {
	x := route(t, "a", "b")
	host := x.host("b", 0)
	assert.Equal(t, 1.0, x.ok("POST", "/v1/import", host+"/1\n")["urls"])
	x.ok("POST", "/v1/do", fmt.Sprintf(`{"do":"add","urls":["%s/2","HTTP://%s:80/3"]}`, host, strings.ToUpper(host)))
	said := x.problem(400, "bad-request", "POST", "/v1/do", `{"do":"add","urls":["foo","http://`+host+`/1"]}`)
	assert.Contains(t, said, "and not at a (")
	assert.NotContains(t, said, "again", "it would fail again")
	x.problem(409, "conflict", "POST", "/parts/a/do", "do=crawl-now&url="+host+"/4", "Content-Type", "application/x-www-form-urlencoded")
	x.placed()
	assert.Equal(t, 3.0, x.ok("GET", "/v1/stats", "")["waiting"])
}

// A site whose name resolves to the router cannot make a browser ask it: only a part knows whether a token is
// good.
func TestOtherNamesOfTheRouter(t *testing.T) {
	x := filled(t, "a", "b")
	for _, path := range []string{"/v1/stats", "/v1/export", "/parts/a/v1/stats", "/parts/a/hosts", "/"} {
		q, err := http.NewRequest("GET", x.base+path, nil)
		require.NoError(t, err)
		q.Host = "evil.example"
		q.Header.Set("Authorization", "Bearer x")
		a, err := x.http.Do(q)
		require.NoError(t, err)
		_ = a.Body.Close()
		assert.Equal(t, http.StatusMisdirectedRequest, a.StatusCode, path)
	}
}

// All parts know a list for one, however late their first line is.
func TestListsWhoseLinesComeLate(t *testing.T) {
	x := route(t, "a", "b")
	var list strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&list, "http://%s/%d\n", x.host("a", 0), i)
	}
	fmt.Fprintf(&list, "HTTP://%s:80/x/../y#frag\n", strings.ToUpper(x.host("b", 0)))
	list.WriteString(`{"url":7}` + "\n" + `{"end":1}` + "\n")
	sum := x.ok("POST", "/v1/import", list.String())
	assert.Equal(t, []any{5001.0, 2.0}, []any{sum["urls"], sum["bad"]})
	for l := range x.leases(`{"host":"` + x.host("b", 0) + `"}`) {
		assert.Equal(t, "http://"+x.host("b", 0)+"/y", l)
	}
}

// Parts hear of an import that comes slowly, in pieces that end within lines.
func TestAnImportThatPauses(t *testing.T) {
	x := route(t, "a", "b")
	var got atomic.Int64
	part := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b := make([]byte, 1000)
		for {
			n, err := q.Body.Read(b)
			if got.Add(int64(n)); err != nil {
				break
			}
		}
		_, _ = io.WriteString(w, `{"lines":2,"urls":1}`)
	}))
	defer part.Close()
	x.r.parts[1].bases = []string{part.URL}
	from, to := io.Pipe()
	ended := make(chan int)
	go func() {
		a, err := x.http.Post(x.base+"/v1/import", "", from)
		if assert.NoError(t, err) {
			_ = a.Body.Close()
			ended <- a.StatusCode
		}
	}()
	line := "http://" + x.host("b", 0) + "/\n"
	_, _ = io.WriteString(to, line+line[:5])
	assert.Eventually(t, func() bool { return got.Load() == int64(len(line)) }, 10*time.Second, time.Millisecond)
	_, _ = io.WriteString(to, line[5:])
	_ = to.Close()
	assert.Equal(t, 200, <-ended)
}

// Lines of clients that have gone are not kept, and none waits for a part that others have waited for in vain.
func TestLinesForAPartThatSaysNothing(t *testing.T) {
	x := route(t, "a")
	silent := make(chan struct{})
	part := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		<-silent
		panic(http.ErrAbortHandler)
	}))
	defer part.Close()
	x.r.parts[0].bases = []string{part.URL}
	waits := func() (n int) {
		x.r.lanes.mu.Lock()
		defer x.r.lanes.mu.Unlock()
		for _, w := range x.r.lanes.waits {
			n += len(w)
		}
		return n
	}
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan int, 12)
	send := func(ctx context.Context) {
		q, _ := http.NewRequestWithContext(ctx, "POST", x.base+"/v1/urls", strings.NewReader(`{"url":"http://a.example/"}`))
		if a, err := x.http.Do(q); err == nil {
			_ = a.Body.Close()
			answers <- a.StatusCode
		} else {
			answers <- 0
		}
	}
	for range 6 {
		go send(t.Context())
	}
	require.Eventually(t, func() bool { return waits() == 4 }, 10*time.Second, time.Millisecond)
	for range 6 {
		go send(ctx)
	}
	require.Eventually(t, func() bool { return waits() == 10 }, 10*time.Second, time.Millisecond)
	cancel()
	assert.Eventually(t, func() bool { return waits() == 4 }, 10*time.Second, time.Millisecond)
	close(silent)
	count := map[int]int{}
	for range 12 {
		count[<-answers]++
	}
	assert.Equal(t, map[int]int{0: 6, 503: 6}, count)
}

// A browser gets the page of the address that has it, and Close waits for none.
func TestPagesOfAPartOfSeveralMachines(t *testing.T) {
	x := route(t, "a", "b")
	standby := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }))
	defer standby.Close()
	silent := make(chan struct{})
	owner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/slow" {
			<-silent
		}
		_, _ = io.WriteString(w, q.FormValue("do"))
	}))
	defer owner.Close()
	defer close(silent)
	x.r.parts[1].bases = []string{standby.URL, owner.URL}
	code, text := x.ask("POST", "/parts/b/do", "do=pause", "Content-Type", "application/x-www-form-urlencoded")
	assert.Equal(t, 200, code)
	assert.Equal(t, "pause", text)
	ended := make(chan int)
	go func() {
		a, err := x.http.Get(x.base + "/parts/b/slow")
		if assert.NoError(t, err) {
			_ = a.Body.Close()
			ended <- a.StatusCode
		}
	}()
	require.Eventually(t, func() bool { return x.r.requests.Load() == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(t, x.r.Close())
	assert.Equal(t, 503, <-ended)
}
