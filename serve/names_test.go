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

// What operators add and import without a name belongs to DEFAULT, whichever number that has.
func TestDEFAULTThatWasForgotten(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1"}`)
	x.ok("DELETE", "/v1/crawls/DEFAULT?forget=true", "")
	assert.EqualValues(t, 1, x.ok("GET", "/v1/crawls/DEFAULT", "")["number"])
	m := x.ok("POST", "/v1/do", `{"do":"add","urls":["http://a.example/1"]}`)
	assert.Equal(t, "1 URL added", m["said"])
	x.ok("POST", "/v1/do", `{"do":"crawl-now","urls":["http://a.example/2"],"crawl":" DEFAULT"}`)
	x.ok("POST", "/v1/import", "http://a.example/3\n")
	for i := range 3 {
		assert.Equal(t, DefaultCrawl, x.ok("GET", fmt.Sprint("/v1/urls?url=http://a.example/", i+1), "")["crawl"])
	}
	assert.EqualValues(t, 3, x.ok("GET", "/v1/crawls/DEFAULT", "")["waiting"])
}

func TestOperatorsNameCrawls(t *testing.T) {
	x := serve(t, Options{})
	add := func(crawl string) string {
		return fmt.Sprintf(`{"do":"add","urls":["http://a.example/"],"crawl":%s}`, crawl)
	}
	x.problem(400, "bad-request", "POST", "/v1/do", add("1"))
	x.problem(400, "bad-request", "POST", "/v1/do", add(`"`+strings.Repeat("x", MaxName+1)+`"`))
	x.problem(400, "bad-request", "POST", "/v1/do", `{"do":"add","urls":["http://"],"crawl":"typo"}`)
	assert.Equal(t, []string{DefaultCrawl}, x.s.CrawlNames())
	x.ok("POST", "/v1/do", add(`"news"`))
	assert.Equal(t, "1 URL added", x.ok("POST", "/v1/do", add(`"other"`))["said"])
	assert.Contains(t, x.ok("POST", "/v1/do", add("2"))["said"], "1 URL known before", "other has that number")
	assert.EqualValues(t, 1, x.ok("GET", "/v1/crawls/news", "")["waiting"])
}

// Numbers that another program has used are no name's, whenever that was.
func TestNumbersOfOtherPrograms(t *testing.T) {
	x := serve(t, Options{})
	_, err := x.s.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/", Crawl: 1}, frontier.Entry{URL: "http://a.example/", Crawl: 1<<32 - 1})
	require.NoError(t, err)
	require.NoError(t, x.s.loadNames(t.Context()))
	_, err = x.s.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/", Crawl: 2})
	require.NoError(t, err)
	assert.EqualValues(t, 3, x.ok("PUT", "/v1/crawls/news", "{}")["number"])
	x.s.names.next = maxNumber
	x.problem(507, "full", "PUT", "/v1/crawls/more", "{}")
	require.NoError(t, x.s.loadNames(t.Context()))
}

func TestNamesAreUTF8(t *testing.T) {
	x := serve(t, Options{})
	x.problem(400, "bad-request", "PUT", "/v1/crawls/%ff", `{}`)
	assert.Equal(t, []string{DefaultCrawl}, x.s.CrawlNames())
}
