// This file tests the report of a crawl: what it says, and that it needs nothing else.

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/seed-7440039f/frontier/crawler/crawllog"
)

func TestReport(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: *\nDisallow: /private")
		case "/bad":
			w.WriteHeader(http.StatusInternalServerError)
		case "/same1", "/same2":
			fmt.Fprint(w, "the same")
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<a href="/bad">1</a><a href="/same1">2</a><a href="/same2">3</a><a href="/private">4</a><a href="http://other.example/">5</a>`)
		}
	}))
	defer s.Close()
	dir := filepath.Join(t.TempDir(), "my <crawl>")
	crawlMoody(t, s.Listener.Addr().String(), dir)
	file := filepath.Join(t.TempDir(), "report.html")
	status, out, stderr := operate(t, "report", "-dir", dir, file)
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "the report is in "+file)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	page := string(b)
	for _, want := range []string{
		"<h1>my &lt;crawl&gt;</h1>", "3 pages of 1 host were fetched", "nothing is left to crawl", "6 contacts, and none came before its host was due",
		"<th scope=\"row\">given-up</th>", "<th scope=\"row\">500</th>", "status 500", "http://a.example/bad", "http://a.example/same1</li><li>http://a.example/same2",
		"robots.txt", "link: scope", "http://other.example/", "priority ",
	} {
		assert.Contains(t, page, want)
	}
	selfContained(t, page)

	status, out, stderr = operate(t, "report", "-dir", dir, "-")
	require.Zero(t, status, stderr)
	assert.True(t, strings.HasPrefix(out, "<!doctype html>"))
	status, _, stderr = operate(t, "report", "-dir", dir, filepath.Join(dir, "nowhere", "x"))
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "there is no folder "+filepath.Join(dir, "nowhere"))
	mine := filepath.Join(t.TempDir(), "mine")
	for text, can := range map[string]int{"my notes": exitUsage, "{": exitUsage, "": exitOK, "<!doctype html><p>": exitOK} {
		require.NoError(t, os.WriteFile(mine, []byte(text), 0o600))
		status, _, stderr = operate(t, "report", "-dir", dir, mine)
		assert.Equal(t, can, status, stderr)
	}
}

// selfContained sees to it that a page loads nothing, and that its tables have heads.
func selfContained(t *testing.T, page string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		assert.NotContains(t, []string{"script", "img", "link", "iframe", "object", "a"}, n.Data)
		for _, a := range n.Attr {
			assert.NotContains(t, []string{"src", "href", "style-src"}, a.Key)
		}
	}
	assert.NotRegexp(t, regexp.MustCompile(`url\(|@import`), page)
	assert.Equal(t, strings.Count(page, "<table"), strings.Count(page, "<thead"))
	assert.NotContains(t, page, "ZgotmplZ")
}

// The sums agree with the record: early contacts, pauses, mirrors, kills.
func TestReportSumsUp(t *testing.T) {
	dir := t.TempDir()
	w := recordFlags{max: 1 << 20}
	require.NoError(t, w.open(dir, nil))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fetched := func(i int, url, host, digest string, late time.Duration) crawllog.Record {
		began := at.Add(time.Duration(i) * 2 * time.Second)
		return crawllog.Record{Time: began.Add(time.Second), Began: began, Due: began.Add(-late), Seconds: 0.5, URL: url, Host: host, Outcome: crawllog.Fetched, Status: 200, Bytes: 10, Digest: digest, Priority: 1 + i%2, Attempt: 1, Visit: 1}
	}
	for _, r := range []crawllog.Record{
		fetched(0, "http://a/1", "a", "sha1:X", 0), fetched(1, "http://a/2", "a", "sha1:Y", time.Second), fetched(2, "http://a/3", "a", "sha1:X", -time.Second),
		fetched(3, "http://a/2", "a", "sha1:Y", 0), // again: no mirror of itself
		{Time: at, URL: "http://b/", Host: "b", Outcome: crawllog.GivenUp, Reason: "dns: no such host b", Attempt: 3},
		{Time: at, Host: "b", Outcome: crawllog.HostGivenUp, Count: 3},
	} {
		w.record()(r)
	}
	require.NoError(t, w.close())
	s, err := summarize(dir)
	require.NoError(t, err)
	assert.EqualValues(t, 4, s.Pages)
	assert.EqualValues(t, 40, s.Bytes)
	assert.EqualValues(t, 4, s.Gaps.Contacts)
	assert.EqualValues(t, 1, s.Gaps.Early)
	assert.Zero(t, s.Gaps.Parallel)
	assert.Equal(t, 1500*time.Millisecond, s.Gaps.Least)
	require.Len(t, s.Mirrors, 1)
	assert.Equal(t, []string{"http://a/1", "http://a/3"}, s.Mirrors[0].URLs)
	assert.EqualValues(t, 1, s.Failures["dns: no such host HOST"].Count)
	assert.EqualValues(t, 1, s.GivenUp)
	assert.EqualValues(t, 1, s.Times[s.bucket(at.Add(3*time.Second))])
	assert.EqualValues(t, 2, sum(s.Priorities[2]))
}

func sum(all []int64) (n int64) {
	for _, x := range all {
		n += x
	}
	return n
}

// A crawl without ends has a report, too.
func TestReportOfNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	_, addr := serve(t, 1)
	status, _, stderr := command(t, t.Context(), "-dir", dir, "-proxy", "http://"+addr, "http://a.example/1")
	require.Zero(t, status, stderr)
	require.NoError(t, os.WriteFile(endsPath(dir), nil, 0o600))
	status, out, stderr := operate(t, "report", "-dir", dir, "-")
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "Nothing was recorded yet.")
	selfContained(t, out)
}
