package serve

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

// Few answers read the whole frontier at once: the others must come again, and one that is not read
// ends, and gives its slot to another.
func TestAnswersThatAreNotReadHaveABound(t *testing.T) {
	x := serve(t, Options{Idle: waited})
	pad := bytes.Repeat([]byte("m"), 60<<10)
	for i := range 300 { // more than the buffers of a connection hold
		_, err := x.s.f.Add(t.Context(), frontier.Entry{URL: fmt.Sprint("http://a.example/", i), Meta: pad})
		require.NoError(t, err)
	}
	const clients = 3 * maxScans
	busy := make(chan bool, clients)
	for range clients {
		_, in := x.begin("GET /v1/list HTTP/1.1\nHost: localhost\n\n")
		go func() {
			line, err := in.ReadString('\n') // and no more
			busy <- err != nil || strings.Contains(line, "503")
		}()
	}
	n := 0
	for range clients {
		if <-busy {
			n++
		}
	}
	assert.GreaterOrEqual(t, n, 1)
	require.Eventually(t, func() bool { return len(x.s.scans) == 0 }, 100*waited, waited/10, "they are cut off")
	require.Len(t, x.lines("/v1/list"), 300)

	for range maxScans {
		x.s.scans <- struct{}{}
	}
	for _, path := range []string{"/v1/list", "/v1/crawls/DEFAULT/queues", "/v1/crawls"} {
		code, text, h := x.full("GET", path, strings.NewReader(""))
		assert.Equal(t, http.StatusServiceUnavailable, code, path)
		assert.Equal(t, "1", h.Get("Retry-After"))
		assert.Contains(t, text, "problems/busy")
	}
	for range maxScans {
		<-x.s.scans
	}
	x.ok("GET", "/v1/crawls", "")
}

// While as many requests wait as may, the others are answered: probes, ends, an operator's.
func TestPollsLeaveRoomForOthers(t *testing.T) {
	x := serve(t, Options{MaxRequests: 8})
	var ends []func() error
	for range 7 {
		conn, in := x.begin("POST /v1/leases HTTP/1.1\nHost: localhost\nContent-Length: 13\n\n{\"wait_s\":60}")
		ends = append(ends, conn.Close)
		_ = in
	}
	require.Eventually(t, func() bool { return x.s.waiting.Load() == 7 }, time.Minute, time.Millisecond)
	for _, path := range []string{"/v1/leases", "/v1/hosts/a.example/contact"} {
		x.problem(http.StatusServiceUnavailable, "busy", "POST", path, `{"wait_s":60}`)
	}
	x.problem(http.StatusServiceUnavailable, "busy", "POST", "/v1/stream", `{}`)
	x.ok("POST", "/v1/leases", `{}`)
	x.ok("GET", "/v1/stats", "")
	x.ok("GET", "/livez", "")
	conn, _ := x.begin("POST /v1/urls HTTP/1.1\nHost: localhost\nContent-Length: 99\n\n{") // the eighth
	ends = append(ends, conn.Close)
	require.Eventually(t, func() bool { return x.s.requests.Load() == 8 }, time.Minute, time.Millisecond)
	x.problem(http.StatusServiceUnavailable, "busy", "GET", "/v1/stats", "")
	x.ok("GET", "/livez", "")
	x.ok("GET", "/readyz", "")
	for _, end := range ends {
		require.NoError(t, end())
	}
	require.Eventually(t, func() bool { return x.s.requests.Load() == 0 && x.s.waiting.Load() == 0 }, time.Minute, time.Millisecond)
}

// What a client has not read yet of its leases is counted, as bodies are.
func TestAnswersWithLeasesAreCounted(t *testing.T) {
	x := serveFrontier(t, frontier.Options{Delay: frontier.FixedDelay(0)}, Options{MaxBuffered: 1 << 20})
	pad := strings.Repeat("m", 60<<10)
	for i := range 40 {
		x.ok("POST", "/v1/urls", fmt.Sprintf(`{"url":"http://h%d.example/","meta":{"k":["%s"]}}`, i, pad))
	}
	x.problem(http.StatusRequestEntityTooLarge, "too-large", "POST", "/v1/leases", `{"hosts":40}`)
	assert.Zero(t, x.s.Frontier().Stats().Leased, "they wait again")
	assert.Len(t, x.ok("POST", "/v1/leases", `{"hosts":5}`)["leases"], 5)
	assert.Zero(t, x.s.room.used.Load())
}

// A request with a length and chunks may have hidden another one from a proxy: nothing follows it.
func TestNothingFollowsAChunkedBody(t *testing.T) {
	x := serve(t, Options{})
	_, in := x.begin("POST /v1/leases HTTP/1.1\nHost: localhost\nContent-Length: 6\nTransfer-Encoding: chunked\n\n0\n\nGET /v1/stats HTTP/1.1\nHost: localhost\n\n")
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	assert.True(t, res.Close)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	_, err = in.ReadByte()
	assert.Error(t, err, "the rest is no request")
}

// Clients see each answer that says to come again. The log of -quiet has what the frontier itself failed at.
func TestBusyIsNoWarning(t *testing.T) {
	var log bytes.Buffer
	x := serve(t, Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	for range maxScans {
		x.s.scans <- struct{}{}
	}
	x.problem(503, "busy", "GET", "/v1/list", "")
	for range maxScans {
		<-x.s.scans
	}
	assert.Empty(t, log.String())
}

// A page of a list has a bounded cost, whatever it finds, and all pages have each URL once, as of one moment.
func TestAListComesInPages(t *testing.T) {
	x := serve(t, Options{})
	var all []frontier.Entry
	for i := range 2*pageLooks + 100 {
		all = append(all, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%4000, i)})
	}
	_, err := x.s.f.Add(t.Context(), all...)
	require.NoError(t, err)
	page := func(query string) (urls []string, next string) {
		for _, m := range x.lines("/v1/list?" + query) {
			if after, ok := m["after"]; ok {
				require.Empty(t, next)
				next = after.(string)
				continue
			}
			require.Empty(t, next)
			urls = append(urls, m["url"].(string))
		}
		return urls, next
	}
	seen, pages := map[string]bool{}, 0
	urls, next := page("host=h7.example&n=4&after=")
	x.ok("DELETE", "/v1/hosts/h7.example/urls", "") // later than the list
	for ; ; pages++ {
		assert.LessOrEqual(t, len(urls), 4)
		for _, u := range urls {
			assert.Contains(t, u, "//h7.example/")
			assert.False(t, seen[u], u)
			seen[u] = true
		}
		if next == "" {
			break
		}
		was := next
		urls, next = page("host=h7.example&n=4&after=" + next)
		x.problem(404, "not-found", "GET", "/v1/list?host=h7.example&after="+was, "")
	}
	assert.Len(t, seen, 11)
	assert.GreaterOrEqual(t, pages, 4)

	urls, next = page("host=none.example&after=")
	assert.Empty(t, urls)
	require.NotEmpty(t, next, "it has not looked at all URLs")
	x.problem(400, "bad-request", "GET", "/v1/list?host=h7.example&after="+next, "")
	for range mostPaged {
		_, last := page("n=1&after=")
		require.NotEmpty(t, last)
	}
	x.problem(404, "not-found", "GET", "/v1/list?host=none.example&after="+next, "")
	urls, next = page("crawl=DEFAULT&host=h8.example&n=3&after=")
	assert.Len(t, urls, 3)
	urls, _ = page("crawl=DEFAULT&host=h8.example&after=" + next)
	assert.Len(t, urls, 8)
}
