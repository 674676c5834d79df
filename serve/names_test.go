package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

func TestRequestsThatFailNameNoCrawl(t *testing.T) {
	x := serve(t, Options{})
	x.problem(409, "not-leased", "POST", "/v1/leases/x/done", `{"add":[{"url":"http://a.example/","crawl":"typo"}]}`)
	x.problem(400, "bad-request", "POST", "/v1/leases/x/done", `{"add":[{"url":"http://a.example/","crawl":"cut"}`)
	x.problem(400, "bad-request", "POST", "/v1/urls", `{"crawl":"nothing"}`)
	assert.Equal(t, []string{DefaultCrawl}, x.s.CrawlNames())
}

func TestNamesOfCrawlsHaveABound(t *testing.T) {
	x := serve(t, Options{})
	for i := range uint32(maxCrawls - 1) {
		x.s.names.bind(fmt.Sprint(i), i+1)
	}
	x.problem(507, "full", "POST", "/v1/urls", `{"url":"http://a.example/","crawl":"news"}`)
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/"}`)
}

// What keeps a crawl from getting a name is no fault of its URLs.
func TestACrawlThatCannotBeNamed(t *testing.T) {
	f, err := frontier.Open(t.Context(), Frontier(frontier.Options{MemoryBudget: 8 << 20}))
	require.NoError(t, err)
	s, err := New(f, Options{})
	require.NoError(t, err)
	ask := func(method, path, body string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(body))
		r.Host = "localhost"
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	assert.Equal(t, http.StatusBadRequest, ask("PUT", "/v1/crawls/"+strings.Repeat("x", MaxName+1), `{}`))
	for i := 0; ; i++ {
		if err := f.SetValue(t.Context(), fmt.Sprint("x", i), make([]byte, 200)); err != nil {
			require.ErrorIs(t, err, frontier.ErrFull)
			break
		}
	}
	assert.Equal(t, http.StatusInsufficientStorage, ask("POST", "/v1/urls", `{"url":"http://a.example/","crawl":"news"}`))
	assert.Equal(t, http.StatusInsufficientStorage, ask("PUT", "/v1/crawls/news", `{}`))
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
	assert.Equal(t, http.StatusServiceUnavailable, ask("PUT", "/v1/crawls/news", `{}`))
	assert.Equal(t, http.StatusServiceUnavailable, ask("POST", "/v1/urls", `{"url":"http://a.example/","crawl":"news"}`))
	require.NoError(t, s.Close())
}

// A crawl that is forgotten while URLs of it come begins anew with them, or has lost them.
func TestACrawlIsForgottenWhileItsURLsCome(t *testing.T) {
	x := serve(t, Options{})
	x.ok("PUT", "/v1/crawls/news", `{}`)
	line := `{"url":"http://a.example/","crawl":"news"}` + "\n"
	conn, in := x.begin(fmt.Sprintf("POST /v1/urls HTTP/1.1\nHost: localhost\nContent-Length: %d\n\n", len(line)+1))
	_, err := io.WriteString(conn, line)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return x.s.room.used.Load() > 2*readAhead }, 10*waited, waited)
	x.ok("DELETE", "/v1/crawls/news?forget=true", "")
	_, err = io.WriteString(conn, "\n")
	require.NoError(t, err)
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	assert.Equal(t, 200, res.StatusCode)
	assert.Equal(t, "news", x.lease()["crawl"])

	done := x.s.Adding()
	forgotten := make(chan error, 1)
	go func() {
		_, err := x.s.ForgetCrawl(t.Context(), "news")
		forgotten <- err
	}()
	<-after()
	assert.Empty(t, forgotten, "URLs are added under its number")
	done()
	require.NoError(t, <-forgotten)
}

// Names count however the export was written.
func TestImportsOfExportsThatWereRewritten(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/","crawl":"other"}`)
	_, export := x.ask("GET", "/v1/export", "")
	y := serve(t, Options{})
	y.ok("POST", "/v1/urls", `{"url":"http://b.example/","crawl":"news"}`)
	for _, change := range [][2]string{
		{"", ""}, {`{"value":"`, `{ "value": "`}, {"crawl/", `crawl\/`},
		{export, `{"data":"MQ==","value":"crawl/other"}`}, // without a line feed
	} {
		y.problem(409, "conflict", "POST", "/v1/import", strings.ReplaceAll(export, change[0], change[1]))
	}
}
