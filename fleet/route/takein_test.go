package route

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// filled has 40 hosts with three URLs each, one of them visited, and a rule for everything and for a host.
func filled(t *testing.T, names ...string) *routed {
	x := route(t, names...)
	for n := range 40 {
		for i := range 3 {
			x.ok("POST", "/v1/urls", fmt.Sprintf(`{"url":"http://www.site%d.example/%d"}`, n, i))
		}
	}
	for _, l := range x.leases(`{"hosts":40,"max":40}`) {
		x.ok("POST", fmt.Sprintf("/v1/leases/%s/done", l["lease"]), `{}`)
	}
	x.ok("PUT", "/v1/rules/*", `{"priority":3}`)
	x.ok("PUT", "/v1/rules/www.site1.example", `{"paused":true}`)
	return x
}

func export(x *routed) string {
	code, text := x.ask("GET", "/v1/export", "")
	require.Equal(x.t, http.StatusOK, code, text)
	return text
}

// has makes sure that x has what filled has, each host at its part alone.
func (x *routed) has(stats map[string]any) {
	x.t.Helper()
	now := x.ok("GET", "/v1/stats", "")
	for _, name := range []string{"waiting", "known"} {
		assert.Equal(x.t, stats[name], now[name], name)
	}
	for name, p := range x.parts {
		for key := range inspect.New(p.f).HostNames(scope.All(), "") {
			assert.Equal(x.t, name, x.r.home(key).name, key)
		}
		r, _ := p.f.Rule(scope.All())
		assert.Equal(x.t, 3, r.Priority)
		_, here := p.f.Rule(scope.Host("www.site1.example"))
		assert.Equal(x.t, name == x.r.home("www.site1.example").name, here)
	}
	assert.Equal(x.t, 0.0, x.ok("POST", "/v1/urls", `{"url":"http://www.site7.example/0"}`)["new"], "a visited URL is known")
}

// The export of all parts goes to the parts of the same names, or is divided anew.
func TestExportsOfAllParts(t *testing.T) {
	x := filled(t, "a", "b", "c")
	text, stats := export(x), x.ok("GET", "/v1/stats", "")
	assert.Equal(t, 3, strings.Count(text, `{"frontier":1,`))

	same := route(t, "a", "b", "c")
	sum := same.ok("POST", "/v1/import", text)
	assert.Equal(t, 120.0, sum["urls"])
	assert.Equal(t, float64(strings.Count(text, "\n")), sum["lines"])
	same.has(stats)
	assert.Equal(t, 0.0, same.ok("POST", "/v1/import", text)["urls"], "again")
	same.has(stats)

	one := filled(t, "x")
	other := route(t, "k", "l", "m", "n")
	assert.Equal(t, 120.0, other.ok("POST", "/v1/import", export(one))["urls"])
	stats = one.ok("GET", "/v1/stats", "")
	stats["known"] = 4 * stats["known"].(float64) // fingerprints do not say which part they belong to
	other.has(stats)
}

func TestImportsOfLists(t *testing.T) {
	x := route(t, "a", "b", "c")
	var list strings.Builder
	for n := range 60 {
		fmt.Fprintf(&list, "http://www.site%d.example/\n\n", n)
	}
	list.WriteString("# a comment\nno URL\n")
	sum := x.ok("POST", "/v1/import", list.String())
	assert.Equal(t, []any{60.0, 1.0, 122.0}, []any{sum["urls"], sum["bad"], sum["lines"]})
	assert.Contains(t, fmt.Sprint(sum["faults"]), "line 122 ", "lines are counted as the client counts them")
	for name, p := range x.parts {
		for key := range inspect.New(p.f).HostNames(scope.All(), "") {
			assert.Equal(t, name, x.r.home(key).name, key)
		}
	}
	assert.Equal(t, 0.0, x.ok("POST", "/v1/import", "")["urls"])
}

// What cannot be imported as a whole is not imported, and the error names the line.
func TestImportsThatAreRefused(t *testing.T) {
	x := filled(t, "a", "b")
	text := export(x)
	_, first := x.ask("GET", "/parts/a/v1/export", "")
	fresh := func() *routed { return route(t, "a", "b") }
	nothing := func(x *routed) {
		t.Helper()
		assert.Equal(t, 0.0, x.ok("GET", "/v1/stats", "")["known"])
	}

	y := fresh()
	wrong := strings.Replace(first, `{"end":`, fmt.Sprintf(`{"url":"http://%s/"}`+"\n"+`{"end":`, x.host("b", 0)), 1)
	assert.Contains(t, y.problem(400, "bad-request", "POST", "/v1/import", wrong), "it is of a host of part b, and the export is of part a")
	nothing(y)
	y.problem(400, "bad-request", "POST", "/v1/import", first[:len(first)/2])
	nothing(y)
	bad := strings.Replace(first, `{"end":`, `{"url":7}`+"\n"+`{"end":`, 1)
	assert.Contains(t, y.problem(400, "bad-request", "POST", "/v1/import", bad), fmt.Sprintf("line %d", strings.Count(first, "\n")))
	nothing(y)
	y.problem(413, "too-large", "POST", "/v1/import", first+strings.Repeat("x", 2*maxLine))
	y = fresh()
	assert.Contains(t, y.problem(400, "bad-request", "POST", "/v1/import", first+"{"), "after 1 exports of ")

	y = fresh()
	y.parts["b"].down.Store(true)
	assert.Contains(t, y.problem(503, "busy", "POST", "/v1/import", text), "part b does not answer")
	y.parts["a"].down.Store(true)
	y.problem(503, "busy", "GET", "/v1/export", "")
}

// An export that breaks off is cut, so that no client takes it for whole.
func TestAnExportThatBreaksOff(t *testing.T) {
	x := filled(t, "a", "b")
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, `{"frontier":1,`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer other.Close()
	x.r.parts[1].bases = []string{other.URL}
	res, err := x.http.Get(x.base + "/v1/export")
	require.NoError(t, err)
	defer res.Body.Close()
	_, err = fmt.Fscan(res.Body, new(string))
	for err == nil {
		_, err = res.Body.Read(make([]byte, 1000))
	}
	assert.ErrorContains(t, err, "EOF")
	assert.NotEqual(t, "EOF", err.Error())
}

// A browser is led to a part's page with all that it sends and gets, and cannot add another part's URL there.
func TestPagesOfParts(t *testing.T) {
	x := route(t, "a", "b")
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "page", Value: "7"})
		w.Header().Set("Location", "./hosts")
		w.WriteHeader(http.StatusSeeOther)
		_, _ = fmt.Fprintln(w, q.Method, q.RequestURI, q.Header.Get("Cookie"), q.FormValue("do"))
	}))
	defer page.Close()
	x.r.parts[1].bases = []string{page.URL}
	x.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	code, text := x.ask("GET", "/parts/b/hosts?scope=*", "", "Cookie", "page=7")
	assert.Equal(t, http.StatusSeeOther, code)
	assert.Equal(t, "GET /hosts?scope=* page=7 \n", text)
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	_, text = x.ask("POST", "/parts/b/do", "do=crawl-now&url=http://"+x.host("b", 0)+"/", form...)
	assert.Equal(t, "POST /do  crawl-now\n", text)
	assert.Contains(t, x.problem(409, "conflict", "POST", "/parts/b/do", "do=crawl-now&url=http://"+x.host("a", 0)+"/", form...), "part a")
	x.problem(403, "forbidden", "POST", "/parts/b/do", "do=pause", append(form, "Origin", "http://evil.example")...)
	x.problem(404, "not-found", "GET", "/parts/c/", "")
	page.Close()
	x.problem(503, "busy", "GET", "/parts/b/hosts", "")
}
