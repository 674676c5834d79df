package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

// A misspelt query would delete, list or lease more than it is meant to.
func TestQueriesAreStrict(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1","crawl":"news"}
{"url":"http://a.example/2","crawl":"shop"}`)
	for _, q := range []string{"crawl=news%zz", "crawl=news;x", "crawls=news", "Crawl=news", "crawl=news&crawl=shop"} {
		x.problem(400, "bad-request", "DELETE", "/v1/hosts/a.example/urls?"+q, "")
		x.problem(400, "bad-request", "GET", "/v1/list?"+q, "")
	}
	x.problem(400, "bad-request", "DELETE", "/v1/crawls/shop?forgets=true", "")
	for _, q := range []string{"host=a.example;x", "crawl=shop%zz", "crawl=shop&crawl=news", "wait_s=1"} {
		x.problem(400, "bad-request", "GET", "/v1/list?"+q, "")
	}
	assert.EqualValues(t, 2, x.ok("GET", "/v1/stats", "")["waiting"])
	x.ok("GET", "/readyz?from=balancer", "")
}

// A browser sends a GET for any page that asks it to: so it must change nothing.
func TestNothingChangesByGET(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `[{"url":"http://a.example/1"},{"url":"http://b.example/1"}]`)
	lease := x.lease()["lease"].(string)
	was := x.s.Frontier().Stats()
	fill := strings.NewReplacer("{id}", lease, "{host}", "a.example", "{name}", "DEFAULT", "{scope}", "*")
	for path := range methodsOf {
		for _, method := range []string{"GET", "HEAD"} {
			x.ask(method, fill.Replace(path), "")
		}
	}
	is := x.s.Frontier().Stats()
	is.MemoryBytes = was.MemoryBytes
	assert.Equal(t, was, is)
}

// Another site's page cannot make a browser ask for anything, not even for what it could not read: a
// server without tokens answers to all that reach it.
func TestPagesOfOtherSitesGetNothing(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1"}`)
	for path, methods := range methodsOf {
		for _, method := range methods {
			for _, header := range [][]string{
				{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "http://evil.example"}, {"Origin", "null"},
				{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
			} {
				x.problem(http.StatusForbidden, "forbidden", method, path, "", header...)
			}
		}
	}
	x.ok("POST", "/v1/leases", `{}`, "Origin", x.base)
	x.ok("GET", "/v1/stats", "", "Sec-Fetch-Site", "none")
	x.ok("GET", "/v1/stats", "", "Sec-Fetch-Site", "same-origin", "Origin", "https://behind-a-proxy.example")
}

// However a client spells a host, it is one, with one clock and one rule.
func TestSpellingsOfAHostAreOne(t *testing.T) {
	for _, keys := range []func(string) (string, error){nil, frontier.HostName} {
		x := serveFrontier(t, frontier.Options{Delay: frontier.FixedDelay(time.Hour), HostKey: keys}, Options{})
		x.ok("POST", "/v1/urls", `{"url":"http://Case.Example/1"}
{"url":"http://xn--bcher-kva.example/1"}
{"url":"http://[::1]/1"}`)
		x.ok("POST", "/v1/urls", `{"url":"http://case.example/2","host":"CASE.example."}`)
		for _, name := range []string{"Case.Example", "case.example."} {
			assert.Equal(t, "case.example", x.ok("GET", "/v1/hosts/"+name, "")["host"])
		}
		x.ok("POST", "/v1/do", `{"do":"block","scope":"Case.Example","for":"1h"}`)
		x.ok("PUT", "/v1/rules/b%C3%BCcher.example", `{"paused":true}`)
		x.ok("POST", "/v1/do", `{"do":"pause","scope":"[::1]"}`)
		assert.Empty(t, x.ok("POST", "/v1/leases", `{"max":9}`)["leases"])
		for _, name := range []string{"case.example:80", "http:%2F%2Fcase.example"} {
			x.problem(400, "bad-request", "POST", "/v1/hosts/"+name+"/contact", `{}`)
		}
		x.ok("POST", "/v1/do", `{"do":"clear","scope":"CASE.EXAMPLE"}`)
		leases := x.ok("POST", "/v1/leases", `{"max":9,"wait_s":10}`)["leases"].([]any)
		require.Len(t, leases, 1)
		assert.Contains(t, x.ok("POST", "/v1/hosts/Case.Example/contact", `{}`), "next_s")
		n := 0
		for line := range strings.Lines(x.list("/v1/list?host=Case.Example")) {
			assert.Contains(t, line, `"host":"case.example"`)
			n++
		}
		assert.Equal(t, 2, n)
		x.ok("PUT", "/v1/rules/*.Example", `{"concurrency":2}`)
		assert.Equal(t, "*.example", x.ok("GET", "/v1/rules/*.EXAMPLE", "")["scope"])
		assert.EqualValues(t, 1, x.ok("DELETE", "/v1/hosts/CASE.example/urls", "")["deleted"], "the other is leased")
	}
}

// A key that is spelled otherwise than a host, of another API, has its name.
func TestKeysThatAreNoHosts(t *testing.T) {
	x := serveFrontier(t, frontier.Options{HostKey: frontier.HostName}, Options{})
	_, err := x.s.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/", Host: "Queue:1"})
	require.NoError(t, err)
	assert.Equal(t, "Queue:1", x.ok("PUT", "/v1/rules/Queue:1", `{"paused":true}`)["scope"])
	assert.Empty(t, x.ok("POST", "/v1/leases", `{}`)["leases"])
}

func (x *served) list(path string) string {
	x.t.Helper()
	code, text := x.ask("GET", path, "")
	require.Equal(x.t, 200, code, text)
	return text
}

func TestRequestsThatAreRefused(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1"}`)
	id := x.lease()["lease"].(string)
	for _, end := range []string{`"crawl_delay_s":-1`, `"duration_s":-5`, `"retry_after_s":-1`, `"bytes":-1`, `"duration_s":1.`, `"duration_s":-.5`,
		`"ended_ago_s":-1`, `"next_s":-1`, `"result":"requeue","next":"2030-01-01T00:00:00Z"`, `"result":"requeue","next_s":5`,
		`"next_s":5,"next":"2030-01-01T00:00:00Z"`, `"ended":"2030-01-01T00:00:00Z"`} {
		x.problem(400, "bad-request", "POST", "/v1/leases/"+id+"/done", "{"+end+"}")
	}
	long := strings.Repeat("a", 300)
	x.problem(400, "bad-request", "POST", "/v1/leases", `{"lease_s":0.0005}`)
	x.problem(400, "bad-request", "POST", "/v1/leases/"+id+"/extend", `{"lease_s":0.0005}`)
	x.problem(400, "bad-request", "POST", "/v1/hosts/a.example/contact", `{"lease_s":0.0005}`)
	x.problem(400, "bad-request", "POST", "/v1/leases", `{"host":"`+long+`"}`)
	x.problem(400, "bad-request", "DELETE", "/v1/hosts/"+long+"/urls", "")
	x.problem(400, "bad-request", "DELETE", "/v1/hosts/*/urls", "")
	x.problem(400, "bad-request", "DELETE", "/v1/hosts/*.a.example/urls", "")
	x.problem(400, "bad-request", "GET", "/v1/hosts/"+strings.Repeat(long, 60), "")
	x.problem(403, "forbidden", "POST", "/v1/urls", `{}`, "Origin", "http://evil.example")
	x.problem(415, "bad-request", "POST", "/v1/urls", "http://a.example/", "Content-Encoding", "gzip")
	for _, path := range []string{"/v1/x/../urls", "/v1/./urls", "/v1/crawls/.."} {
		assert.Equal(t, "HTTP/1.1 404 Not Found", x.raw("PUT "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"))
	}
	assert.Equal(t, "HTTP/1.1 400 Bad Request", x.raw("POST /v1/urls HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nnothing\r\n"))
	x.ok("POST", "/v1/leases/"+id+"/done", `{}`)
}

// raw sends a request as it is, and returns the first line of the answer.
func (x *served) raw(request string) string {
	x.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(x.base, "http://"))
	require.NoError(x.t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, request)
	require.NoError(x.t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(x.t, err)
	return strings.TrimSpace(line)
}

func TestABodyOfWhichNothingIsTaken(t *testing.T) {
	x := serve(t, Options{})
	assert.Contains(t, x.problem(400, "bad-request", "POST", "/v1/urls", "http://a.example/"), "Content-Type: text/plain")
	x.problem(400, "bad-request", "POST", "/v1/urls", "http://a.example/\xff", "Content-Type", "text/plain")
	detail := x.problem(413, "too-large", "POST", "/v1/urls", strings.Repeat(`{"url":"http://a.example/"}`+"\n", 1500)+strings.Repeat("x", 2<<20))
	assert.Contains(t, detail, "; before it 1500 lines were taken in, 1 of them new")
}

func TestAContactHasAGap(t *testing.T) {
	x := serve(t, Options{})
	assert.Contains(t, x.ok("POST", "/v1/hosts/a.example/contact", `{"wait_s":5}`), "gap_s", "also if it is 0")
}

// An upload that has begun ends well while the server stops; a wait ends.
func TestAnUploadOutlastsADrain(t *testing.T) {
	x := serve(t, Options{})
	body, feed := io.Pipe()
	type answer struct {
		code int
		text string
	}
	answers := make(chan answer, 2)
	go func() {
		code, text, _ := x.full("POST", "/v1/urls", body, ndjson...)
		answers <- answer{code, text}
	}()
	_, err := fmt.Fprintln(feed, `{"url":"http://a.example/1"}`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return x.s.f.Stats().Waiting == 1 }, 10*time.Second, time.Millisecond)
	polled := make(chan string, 1)
	go func() {
		_, text := x.ask("POST", "/v1/leases", `{"wait_s":60,"crawls":["DEFAULT"],"host":"b.example"}`)
		polled <- text
	}()
	drained := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		drained <- x.s.Drain(ctx)
	}()
	assert.Contains(t, <-polled, "the server is stopping")
	_, err = fmt.Fprintln(feed, `{"url":"http://a.example/2"}`)
	require.NoError(t, err)
	require.NoError(t, feed.Close())
	a := <-answers
	assert.Equal(t, http.StatusOK, a.code)
	assert.Equal(t, 2, strings.Count(a.text, `"new"`), a.text)
	assert.NoError(t, <-drained)
	assert.EqualValues(t, 2, x.s.f.Stats().Waiting)
}

func TestAnEmptyTokenOpensNothing(t *testing.T) {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	_, err := ReadTokens(strings.NewReader("crawl " + empty + " bot\n"))
	assert.ErrorContains(t, err, "line 1: it has the SHA-256 of an empty token")
	_, err = ReadTokens(strings.NewReader("crawl secret bot\n"))
	assert.ErrorContains(t, err, "want 64 hexadecimal digits")
	again := strings.Repeat("00", 32)
	_, err = ReadTokens(strings.NewReader("look " + again + " bot\noperate " + again + " boss\n"))
	assert.ErrorContains(t, err, "line 2: this token is in a line before")
	f, err := frontier.Open(t.Context(), frontier.Options{})
	require.NoError(t, err)
	defer f.Close()
	_, err = New(f, Options{Certificates: map[string]Role{"x": 99}})
	assert.ErrorContains(t, err, `the role of "x" is 99`)
}

func TestAWholeAnswerOfAPausedFrontier(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1"}`)
	x.ok("POST", "/v1/do", `{"do":"pause","scope":"*"}`)
	b, err := json.Marshal(x.ok("POST", "/v1/leases", `{}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"leases":[]}`, string(b))
}
