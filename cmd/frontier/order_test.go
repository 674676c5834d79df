package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/importance"
)

// A page that many pages link to comes before others that were found earlier; what is known of links is
// kept in the folder, and may be damaged.
func TestOrder(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		switch p := r.URL.Path; {
		case p == "/robots.txt":
			http.NotFound(w, r)
			return
		case p == "/":
			for i := range 30 {
				fmt.Fprintf(w, "<a href=/p%d>page</a>", i)
			}
			fmt.Fprint(w, "<a href=/known>known</a>")
		default:
			fmt.Fprint(w, "<a href=/known>known</a>")
		}
		asked = append(asked, r.URL.Path)
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	crawl := func(order, dir string) (rank int, stderr string) {
		asked = nil
		status, _, stderr := command(t, t.Context(), "-dir", dir, "-resolve", "*.example="+s.Listener.Addr().String(), "-order", order, "-memory", "80M", "-delay", "20ms", "-group-delay", "0s", "-workers", "1", "http://a.example/")
		require.Zero(t, status, stderr)
		assert.LessOrEqual(t, len(asked), 32)
		return slices.Index(asked, "/known"), stderr
	}
	rank, _ := crawl("links", filepath.Join(dir, "links"))
	assert.Less(t, rank, 25)
	rank, _ = crawl("trust", filepath.Join(dir, "trust"))
	assert.Less(t, rank, 31)
	rank, _ = crawl("depth", filepath.Join(dir, "depth"))
	assert.Equal(t, 31, rank)
	assert.NoFileExists(t, filepath.Join(dir, "depth", orderFile))

	_, stderr := crawl("links", filepath.Join(dir, "links"))
	assert.NotContains(t, stderr, "worse for a while")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "links", orderFile), []byte("damaged"), 0o600))
	_, stderr = crawl("links", filepath.Join(dir, "links"))
	assert.Contains(t, stderr, "worse for a while")
	info, err := os.Stat(filepath.Join(dir, "links", orderFile))
	require.NoError(t, err)
	assert.Greater(t, info.Size(), int64(100), "it is replaced")
}

func TestBadOrder(t *testing.T) {
	for _, c := range [][2]string{{"-order=best", "want depth, links or trust"}, {"-order=links -frontier=http://a.example:80", "the server decides that"}} {
		status, _, stderr := command(t, t.Context(), append(strings.Fields(c[0]), "http://a.example/")...)
		assert.Equal(t, exitUsage, status)
		assert.Contains(t, stderr, c[1])
	}
}

// Explain says why a URL has its priority, and hosts which have sunk, while the crawl runs and after.
func TestExplainOfAnOrder(t *testing.T) {
	r := startCrawl(t, "-order", "links", "-memory", "128M")
	ok := func(args ...string) string {
		t.Helper()
		code, out, stderr := operate(t, append([]string{args[0], "-dir", r.dir}, args[1:]...)...)
		require.Equal(t, exitOK, code, "%v: %s", args, stderr)
		return out
	}
	ok("pause", "c.example")
	ok("pause", "d.example")
	ok("add", "http://c.example/8", "http://c.example/9", "http://d.example/9")
	said := ok("explain", "http://c.example/9")
	assert.Regexp(t, `(?m)^priority +8 of 8$`, said)
	assert.Regexp(t, `(?m)^importance +about 1 link found, worth priority 4$`, said)
	assert.Regexp(t, `(?m)^ahead +no URL has a higher priority; lower ones get turns, too, but fewer$`, said)
	assert.NotRegexp(t, `(?m)^its host`, said)
	assert.NotContains(t, ok("hosts"), "STANDING")
	ok("standing", "c.example", "down", "3")
	at := func() {
		t.Helper()
		said := ok("explain", "http://c.example/9")
		assert.Regexp(t, `(?m)^priority +5 of 8$`, said)
		assert.Regexp(t, `(?m)^its host +.*3 levels down$`, said)
		assert.Regexp(t, `(?m)^ahead +0 URLs of its host and 1 of others have a higher priority; lower ones get turns, too, but fewer$`, said)
		sunk := ok("hosts", "-sunk")
		assert.Regexp(t, `(?m)^HOST .* STANDING +USEFUL$`, sunk)
		assert.Regexp(t, `(?m)^c\.example .* 3 levels down`, sunk)
		assert.NotContains(t, sunk, "d.example")
		assert.Regexp(t, `"standing": -3`, ok("hosts", "-sunk", "-json"))
	}
	at()
	said = ok("explain", "-json", "http://c.example/9")
	assert.Contains(t, said, `"links": 1,`)
	r.endsWith(t, exitStopped)
	at()
}

// What an Estimator knows of a URL and its host is shown as it is.
func TestWorth(t *testing.T) {
	assert.Nil(t, (&orderFlags{}).worth())
	for _, score := range []importance.Score{importance.Links, importance.Trust} {
		est, err := importance.New(importance.Options{Score: score, Memory: 1 << 16})
		require.NoError(t, err)
		page := frontier.Lease{Entry: frontier.Entry{URL: "http://a.example/1", Depth: 1}, Host: "a.example"}
		for range 30 {
			est.Visit(page, false, nil, nil)
		}
		e := frontier.Entry{URL: "http://a.example/2", Depth: 1, Host: "a.example"}
		est.Found(e)
		want := console.Worth{Links: 2, Level: 4, Pages: 30, Useful: 9. / 39}
		if score == importance.Trust {
			want.Cash, want.Level = est.Explain(e).Worth, est.Explain(e).Level
			assert.Positive(t, want.Cash)
		}
		assert.Equal(t, want, (&orderFlags{est: est}).worth()(e))
	}
}
