package serve

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/transfer"
)

// exportOf is an export of some lines.
func exportOf(lines ...string) string {
	return `{"frontier":1,"time":"2026-11-25T22:53:42.010Z","key":"4391981e257a84dc4c439d0b16da7a97"}` + "\n" +
		strings.Join(lines, "\n") + fmt.Sprintf("\n{\"end\":%d}\n", len(lines)+1)
}

// valueLine is the line of a value.
func valueLine(key, value string) string {
	return fmt.Sprintf(`{"value64":%q,"data":%q}`, base64.StdEncoding.EncodeToString([]byte(key)), base64.StdEncoding.EncodeToString([]byte(value)))
}

// What an import brings can be read at the next start.
func TestImportsOfValuesThatCannotBe(t *testing.T) {
	x := serve(t, Options{CheckValue: func(key string, v []byte) error {
		if key == "other" && string(v) == "bad" {
			return errors.New("other: it is bad")
		}
		return nil
	}})
	for _, lines := range [][]string{
		{valueLine("next-crawl", "xx")},
		{valueLine("next-crawl", "4294967295")},
		{valueLine("crawl/a", "xx")},
		{valueLine("crawl/a", "4294967295")},
		{valueLine("crawl/a", "0")},
		{valueLine("crawl/", "1")},
		{valueLine("crawl/ a", "1")},
		{valueLine("crawl/\xfe", "2")},
		{valueLine("crawl/a", "1"), valueLine("crawl/b", "1")},
		{valueLine("crawl/a", "1"), valueLine("crawl/a", "2")},
		{valueLine("other", "bad")},
	} {
		x.problem(400, "bad-request", "POST", "/v1/import", exportOf(append(lines, `{"url":"http://a.example/"}`)...))
	}
	taken, err := x.s.f.Values(t.Context(), "")
	require.NoError(t, err)
	assert.Empty(t, taken)
	assert.Zero(t, x.ok("GET", "/v1/stats", "")["waiting"])
	x.ok("POST", "/v1/import", exportOf(valueLine("other", "good"), valueLine("crawl/a", "5")))
	assert.EqualValues(t, 5, x.ok("GET", "/v1/crawls/a", "")["number"])
	assert.EqualValues(t, 6, x.ok("PUT", "/v1/crawls/b", "{}")["number"])
}

// A conflict of names shows however the lines spell them.
func TestImportsWhoseNumbersAreOfOtherCrawls(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/","crawl":"news"}`)
	url := `{"url":"http://b.example/","crawl":1}`
	for _, lines := range [][]string{
		{valueLine("crawl/other", "1")},
		{`{"\u0076alue":"crawl/other","data":"MQ=="}`},
		{url},
		{`{"url":"http://b.example/"}`, url},
		{valueLine("crawl/other", "2"), url},
	} {
		x.problem(409, "conflict", "POST", "/v1/import", exportOf(lines...))
	}
	assert.EqualValues(t, 1, x.ok("GET", "/v1/stats", "")["waiting"], "nothing was imported")
	parked := `{"url":"http://b.example/","crawl":2147483655}`
	x.ok("POST", "/v1/import", exportOf(valueLine("crawl/news", "1"), url, parked, `{"url":"http://b.example/","crawl":3}`))
	assert.EqualValues(t, 2, x.ok("GET", "/v1/crawls/news", "")["waiting"])
	assert.EqualValues(t, 4, x.ok("PUT", "/v1/crawls/next", "{}")["number"])

	x.ok("DELETE", "/v1/crawls/DEFAULT?forget=true", "")
	x.problem(409, "conflict", "POST", "/v1/import", exportOf(`{"url":"http://b.example/"}`))
	y := serve(t, Options{})
	y.ok("POST", "/v1/import", exportOf(valueLine("crawl/DEFAULT", "3"), `{"url":"http://b.example/"}`, `{"url":"http://b.example/","crawl":3}`))
	assert.EqualValues(t, 3, y.ok("GET", "/v1/crawls/DEFAULT", "")["number"])
	assert.EqualValues(t, 2, y.ok("GET", "/v1/stats", "")["waiting"])
}

// An older export brings an older count of numbers.
func TestANumberIsNotGivenAgainAfterAnImport(t *testing.T) {
	f, err := frontier.Open(t.Context(), Frontier(frontier.Options{}))
	require.NoError(t, err)
	s, err := New(f, Options{})
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		_, err = s.NewCrawl(name)
		require.NoError(t, err)
	}
	_, err = s.ForgetCrawl(t.Context(), "b")
	require.NoError(t, err)
	_, err = s.Import(t.Context(), strings.NewReader(exportOf(valueLine("crawl/a", "1"), valueLine("next-crawl", "2"))), transfer.ImportOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	s, err = New(f, Options{})
	require.NoError(t, err)
	id, err := s.NewCrawl("c")
	require.NoError(t, err)
	assert.EqualValues(t, 3, id)
	require.NoError(t, s.Close())
	require.NoError(t, f.Close())
}

// The URLs of a list that comes while DEFAULT is forgotten go with it.
func TestDEFAULTIsForgottenDuringAnImport(t *testing.T) {
	x := serve(t, Options{})
	list := forgetting{x, strings.NewReader("http://a.example/\n")}
	_, err := x.s.Import(t.Context(), &list, transfer.ImportOptions{SkipBad: true})
	require.NoError(t, err)
	assert.Zero(t, x.ok("GET", "/v1/stats", "")["waiting"])
}

// forgetting is a list during which DEFAULT is forgotten.
type forgetting struct {
	x    *served
	list *strings.Reader
}

func (r *forgetting) Read(p []byte) (int, error) {
	n, err := r.list.Read(p)
	if err != nil {
		r.x.ok("DELETE", "/v1/crawls/DEFAULT?forget=true", "")
	}
	return n, err
}
