package serve

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
)

const waited = 100 * time.Millisecond

func after() <-chan time.Time { return time.After(waited) }

func TestWhatFollowsAnObjectIsAnError(t *testing.T) {
	for _, key := range []string{"", "a key"} {
		y := serve(t, Options{})
		y.problem(400, "bad-request", "POST", "/v1/do", `{"do":"pause","scope":"a.example"}{"do":"pause","scope":"b.example"}`, "Idempotency-Key", key)
		assert.Empty(t, y.ok("GET", "/v1/rules", "")["rules"])
	}
	x := serve(t, Options{})
	x.problem(400, "bad-request", "POST", "/v1/leases", `{"max":1}}}}`)
	for _, line := range []string{"{\"url\":\"http://a.example/\"}\x00 and more", `{"url":"http://a.example/","priority":007}`, `{"url":"http://a.example/","weight":-01}`} {
		_, text := x.ask("POST", "/v1/urls", line, ndjson...)
		assert.Contains(t, text, `"status":"bad"`, line)
	}
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/","depth":0,"weight":-0.5}`)
}

func TestTokensAndNamesIgnoreCase(t *testing.T) {
	tokens, err := ReadTokens(strings.NewReader("look 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b x\n")) // secret
	require.NoError(t, err)
	x := serve(t, Options{Tokens: tokens})
	x.ok("GET", "/v1/stats", "", "Authorization", "bearer secret")
	x.problem(401, "unauthorized", "GET", "/v1/stats", "", "Authorization", "bearer Secret")
	x.problem(401, "unauthorized", "GET", "/v1/stats", "", "Authorization", "secret")
	y := serve(t, Options{Names: []string{"Crawler.Example"}})
	r := httptest.NewRequest("GET", "/v1/stats", nil)
	r.Host = "crawlER.example:80"
	w := httptest.NewRecorder()
	y.s.Handler().ServeHTTP(w, r)
	assert.Equal(t, http.StatusOK, w.Code)
}

func TestAnswersToOtherMethodsAndPaths(t *testing.T) {
	x := serve(t, Options{})
	for path, allow := range map[string]string{"/livez": "GET", "/v1/leases": "POST, GET, DELETE", "/v1/crawls/x": "GET, PUT, DELETE"} {
		code, text, h := x.full("PATCH", path, strings.NewReader(""))
		assert.Equal(t, http.StatusMethodNotAllowed, code)
		assert.Contains(t, text, "problems/bad-request")
		assert.Equal(t, "1", h.Get("Frontier-Version"))
		assert.Equal(t, allow, h.Get("Allow"))
		assert.Contains(t, text, "PATCH is not answered here; want "+strings.ReplaceAll(allow, ", ", " or "))
	}
	assert.Contains(t, x.problem(404, "not-found", "POST", "/urls", `{}`), "there is no /urls; paths of the API begin with /v1/")
	assert.Contains(t, x.problem(404, "not-found", "GET", "/v1/nothing", ""), "there is no /v1/nothing; /v1/openapi.json lists")
	x.problem(404, "not-found", "GET", "/", "")
	assert.Contains(t, x.problem(404, "not-found", "POST", "/v1/leases//done", `{}`), "a part of the path is empty")
	x.problem(404, "unknown-host", "GET", "/v1/hosts/nowhere.example", "")
}

// A request that failed, or whose policy panicked, may be tried again with its key.
func TestAKeyOfARequestThatFailed(t *testing.T) {
	x := serve(t, Options{})
	do := func(key string, answer func() error) (ran bool) {
		defer func() { _ = recover() }()
		c := &call{w: httptest.NewRecorder(), r: httptest.NewRequest("POST", "/v1/do", nil), s: x.s, code: http.StatusOK}
		_ = x.s.once.do(c, key, nil, func() error { ran = true; return answer() })
		return ran
	}
	well := func() error { return nil }
	assert.True(t, do("k", func() error { panic("a policy") }))
	assert.True(t, do("k", func() error { return errors.New("the disk is gone") }))
	for i := range onceAtMost - 1 {
		assert.True(t, do(fmt.Sprint(i), well))
	}
	assert.True(t, do("k", well))
	assert.True(t, do("other", well))
	assert.False(t, do("k", well), "it is the second newest")
	assert.True(t, do("0", well), "it was the oldest")
	assert.Len(t, x.s.once.keys, onceAtMost)
}

func TestAnImportThatBreaksOff(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/"}`)
	_, export := x.ask("GET", "/v1/export", "")
	x.problem(400, "bad-request", "POST", "/v1/import", export[:len(export)-3])
	assert.EqualValues(t, 1, x.ok("POST", "/v1/import", export)["known"])
}

// Who fetches robots.txt under a lease needs to know how long to wait before the page.
func TestTheGapOfALease(t *testing.T) {
	x := serveFrontier(t, frontier.Options{Delay: frontier.FixedDelay(3 * time.Second)}, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/"}`)
	id := x.lease()["lease"].(string)
	assert.EqualValues(t, 3, x.ok("GET", "/v1/leases/"+id, "")["gap_s"])
	assert.Empty(t, x.ok("GET", "/v1/leases/-,AAAAAAAAAAAAAAAA", "")["leases"])
	several := x.ok("GET", "/v1/leases/"+id+",-,"+id, "")["leases"].([]any)
	assert.Len(t, several, 2)
	assert.Equal(t, id, several[1].(map[string]any)["lease"])
}

// What is left of one crawl does not keep another from its end.
func TestExhaustedIsOfTheCrawlsAskedFor(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/","crawl":"later","not_before":"2040-01-02T15:04:05Z"}`)
	x.ok("PUT", "/v1/crawls/done", `{}`)
	assert.Equal(t, map[string]any{"exhausted": true, "leases": []any{}}, x.ok("POST", "/v1/leases", `{"crawls":["done"]}`), "when others have URLs is of no use")
	assert.Nil(t, x.ok("POST", "/v1/leases", `{"crawls":["done","later"]}`)["exhausted"])
	assert.Nil(t, x.ok("POST", "/v1/leases", `{}`)["exhausted"])
}

// stopping is a client's connection; the server stops while it writes to it.
type stopping struct {
	*httptest.ResponseRecorder
	s *Service
}

func (w *stopping) Write(b []byte) (int, error) {
	w.s.close()
	synctest.Wait() // the call hears of it
	return w.ResponseRecorder.Write(b)
}

// Leases whose answer was written stay out, whatever happens then.
func TestAStopAfterTheAnswer(t *testing.T) { synctest.Test(t, stopAfterTheAnswer) }

func stopAfterTheAnswer(t *testing.T) {
	f, err := frontier.Open(t.Context(), Frontier(frontier.Options{}))
	require.NoError(t, err)
	s, err := New(f, Options{Contacts: filepath.Join(t.TempDir(), "contacts")})
	require.NoError(t, err)
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
	require.NoError(t, err)
	w := &stopping{httptest.NewRecorder(), s}
	r := httptest.NewRequest("POST", "/v1/leases", strings.NewReader(`{}`))
	r.Host = "localhost"
	s.Handler().ServeHTTP(w, r)
	assert.True(t, strings.HasPrefix(w.Body.String(), `{"leases":[{"lease":"`) && strings.HasSuffix(w.Body.String(), "}]}\n"), w.Body)
	assert.EqualValues(t, 1, f.Stats().Leased)
	assert.Len(t, s.contacts.out, 1)
	assert.NoError(t, s.Close())
	assert.NoError(t, f.Check())
	assert.NoError(t, f.Close())
}

func TestARuleThatNoCrawlCanHaveMakesNone(t *testing.T) {
	x := serve(t, Options{})
	x.problem(400, "bad-request", "PUT", "/v1/crawls/new", `{`)
	x.problem(400, "bad-request", "PUT", "/v1/crawls/new", `{"delay":{}}`)
	x.problem(422, "limit", "PUT", "/v1/crawls/new", `{"concurrency":3}`)
	x.problem(422, "limit", "PUT", "/v1/crawls/new", `{"weight":-1}`)
	assert.Equal(t, []string{DefaultCrawl}, x.s.CrawlNames())
}

// A server whose store must be opened again hands nothing out, and says that it is not ready. If another
// process has the store, the same request may succeed there.
func TestALostStoreIsNotReady(t *testing.T) {
	t.Run("lost", func(t *testing.T) { aLostStore(t, false, http.StatusInternalServerError) })
	t.Run("moved", func(t *testing.T) { aLostStore(t, true, http.StatusServiceUnavailable) })
}

func aLostStore(t *testing.T, moved bool, status int) {
	s := &harness.Fenced{Spill: spilltest.OpenMemory(t, spill.Options{}).Store, Moved: moved}
	x := serveFrontier(t, frontier.Options{Spill: s, Delay: frontier.FixedDelay(0)}, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1"}`)
	x.ok("GET", "/readyz", "")
	s.Lost.Store(true)
	code, text := x.ask("POST", "/v1/urls", `{"url":"http://a.example/2"}`)
	assert.Equal(t, status, code, text)
	for range 2 {
		code, text := x.ask("POST", "/v1/leases", `{}`)
		assert.Equal(t, status, code, text)
		assert.Contains(t, text, "opened again")
		code, text = x.ask("GET", "/readyz", "")
		assert.Equal(t, http.StatusServiceUnavailable, code, text)
	}
	s.Lost.Store(false)
}

func TestNoCrawlsAreNotAll(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1"}`)
	x.problem(400, "bad-request", "POST", "/v1/leases", `{"crawls":[]}`)
	assert.Len(t, x.ok("POST", "/v1/leases", `{}`)["leases"], 1)
}

// A hint with a weight raises a URL that waits, to the priority of the hint.
func TestAHintRaisesAURL(t *testing.T) {
	x := serve(t, Options{})
	add := func(line, status string) {
		_, text := x.ask("POST", "/v1/urls", line, ndjson...)
		assert.Contains(t, text, `"status":"`+status+`"`)
	}
	for i := range 5 {
		add(fmt.Sprintf(`{"url":"http://a.example/%d"}`, i), "new")
	}
	add(`{"url":"http://a.example/3","hint":true,"priority":16}`, "hinted") // without a weight
	add(`{"url":"http://a.example/4","hint":true,"priority":9,"weight":1}`, "hinted")
	assert.Eventually(t, func() bool { return x.s.Frontier().Stats().Risen == 1 }, 5*time.Second, time.Millisecond)
	_, text := x.ask("POST", "/v1/leases", `{"per_host":5}`)
	assert.Contains(t, text, `"url":"http://a.example/4","host":"a.example","crawl":"DEFAULT","weight":1,"priority":9`)
	assert.NotContains(t, text, `"priority":16`)
}

// A value of the wrong kind: the answer has the name of the member, the kind that is wanted, and no word of Go's.
func TestBodiesOfTheWrongKind(t *testing.T) {
	x := serve(t, Options{})
	for request, members := range map[string]string{
		"POST /v1/leases":                  "hosts:number per_host:number max:number crawls:'[' host:string lease_s:number wait_s:number",
		"POST /v1/stream":                  "max:number",
		"POST /v1/leases/x/extend":         "lease_s:number",
		"POST /v1/leases/x/handback":       "",
		"POST /v1/leases/x/join":           "group:string",
		"POST /v1/hosts/a.example/contact": "wait_s:number lease_s:number",
		"PUT /v1/crawls/c":                 "concurrency:number",
		"PUT /v1/rules/a.example":          "delay:'{' concurrency:number paused:true held:true blocked_until:string priority:number priorities:'{' limits:'{' host_limits:'{' weight:number",
		"POST /v1/do":                      "do:string scope:string until:string for:quotes delay:'{' n:number from:number to:number limits:'{' dry:true urls:'[' crawl:name depth:number lease:string client:string",
	} {
		method, path, _ := strings.Cut(request, " ")
		ask := func(body, want string) {
			text := x.problem(400, "bad-request", method, path, body)
			assert.Contains(t, text, want, body)
			assert.NotRegexp(t, `json:|Go |struct|serve\.|console\.|unmarshal|unexpected EOF`, text, body)
		}
		ask(`{"nope":1}`, "nope: there is no such member")
		for _, body := range []string{`5`, `"x"`, `{`, `{} {}`, `[]`} {
			ask(body, "should be")
		}
		for _, m := range strings.Fields(members) {
			name, want, _ := strings.Cut(m, ":")
			for _, value := range []string{`[{}]`, `{"q":[]}`, `5`, `"x"`, `true`, `1.5`, `1e400`} {
				right := map[string]string{"number": `51.51e400`, "string": `"x"`, "true": "true", "'['": "[{}]", "'{'": `{"q":[]}`, "name": `"x"5`}[want]
				if !strings.Contains(right, value) {
					ask(`{"`+name+`":`+value+`}`, name+": ")
					ask(`{"`+name+`":`+value+`}`, want)
				}
			}
		}
	}
	assert.Contains(t, x.problem(400, "bad-request", "PUT", "/v1/rules/*", `{"limits":{"period":5}}`), `limits: period: 5 is no time; want one with its unit, in quotes`)
	assert.Contains(t, x.problem(400, "bad-request", "PUT", "/v1/rules/*", `{"priorities":{"x":5}}`), `priorities: x: `)
	assert.Contains(t, x.problem(400, "bad-request", "POST", "/v1/leases", `{"max":1.5}`), `max: "1.5" is no integer`)
}
