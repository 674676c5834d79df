// This file tests lists of changed URLs, given to crawls that run and that do not.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/crawler/changefeed"
)

// counting is a web of pages that say how often they were asked for.
type counting struct {
	*httptest.Server
	mu   sync.Mutex
	asks map[string]int
}

func newCounting(t *testing.T) *counting {
	w := &counting{asks: map[string]int{}}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(rw, r)
			return
		}
		w.mu.Lock()
		w.asks[r.URL.Path]++
		n := w.asks[r.URL.Path]
		w.mu.Unlock()
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(rw, "<p>%s <a href=/1>one</a> <a href=/2>two</a> <a href=/3>three</a>", strings.Repeat("again ", n))
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *counting) asked(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asks[path]
}

// recrawling is a recrawl that runs.
type recrawling struct {
	log  *lockedBuffer
	stop context.CancelFunc
	end  chan int
}

// startRecrawl begins or goes on with a recrawl, and waits until commands reach it.
func startRecrawl(t *testing.T, w *counting, dir string, more ...string) *recrawling {
	ctx, stop := context.WithCancel(t.Context())
	r := &recrawling{log: &lockedBuffer{}, stop: stop, end: make(chan int, 1)}
	args := append([]string{"recrawl", "-dir", dir, "-page", "127.0.0.1:0", "-delay", "1ms", "-no-groups", "-resolve", "*.example=" + w.Listener.Addr().String(), "-budget", "50"}, more...)
	go func() {
		var out bytes.Buffer
		r.end <- run(ctx, append(args, "http://a.example/1"), strings.NewReader(""), &out, r.log)
	}()
	t.Cleanup(stop)
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "the crawl has a page") }, time.Minute, time.Millisecond, "%s", r.log)
	return r
}

func (r *recrawling) ended(t *testing.T) {
	r.stop()
	require.Equal(t, exitStopped, <-r.end, r.log.String())
}

// A page that would be fetched again tomorrow is fetched now because a list says that it
// has changed; so is one that was not known. A list that comes while the crawl is at rest
// waits for it.
func TestChangedPagesAreFetchedNow(t *testing.T) {
	short, err := os.MkdirTemp("", "fr") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	dir, w := filepath.Join(short, "state"), newCounting(t)
	until := func(path string, n int) {
		t.Helper()
		require.Eventually(t, func() bool { return w.asked(path) >= n }, time.Minute, time.Millisecond, "%s: %v", path, n)
	}
	all := startRecrawl(t, w, dir, "-min", "24h", "-max", "24h") // each again tomorrow
	for _, path := range []string{"/1", "/2", "/3"} {
		until(path, 1)
	}
	all.ended(t)

	r := startRecrawl(t, w, dir, "-min", "1s", "-max", "24h")
	list := filepath.Join(short, "list")
	require.NoError(t, os.WriteFile(list, []byte("http://a.example/2\n\nno url\nHTTP://A.example:80/new\nhttp://b.example/\n"), 0o600))
	code, out, stderr := operate(t, "changed", "-dir", dir, list)
	assert.Equal(t, exitError, code, "there is a wrong one")
	assert.Equal(t, "frontier: 1 URLs are wrong\n", stderr)
	assert.Contains(t, out, "URLs: 4; known, looked at again when that is worth it: 1; new: 1; not wanted: 1; wrong: 1; not heard: 0\nline 3: ")
	assert.Contains(t, out, `line 5: not in scope: host "b.example"`)
	until("/2", 2)
	until("/new", 1)
	code, out, _ = operate(t, "changed", "-dir", dir, "-at", "2020-01-01T00:00:00Z", "-json", list)
	assert.Equal(t, exitError, code)
	assert.Contains(t, out, `"known": 2`, "all of it is known, and nothing has changed since")
	code, _, stderr = operate(t, "changed", "-dir", dir, "-at", "2120-01-01T00:00:00Z", list)
	assert.Equal(t, exitError, code)
	assert.Contains(t, stderr, "want a time that has passed")
	code, _, stderr = operate(t, "changed", "-dir", dir, filepath.Join(short, "none"))
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "none")
	require.NoError(t, os.WriteFile(list, []byte("{\"host\":\"a.example\",\n\"urlList\":[\"http://a.example/1\",}"), 0o600))
	code, _, stderr = operate(t, "changed", "-dir", dir, list)
	assert.Equal(t, exitError, code)
	assert.Contains(t, stderr, "line 2: invalid character")
	assert.Contains(t, stderr, "the 1 URLs before are taken")
	until("/1", 2)
	r.ended(t)
	assert.Equal(t, 1, w.asked("/3"), "nobody said that it has changed")

	var res changefeed.Result
	var b, e bytes.Buffer
	in := strings.NewReader(`{"host":"a.example","urlList":["http://a.example/3","http://b.example/"]}`)
	code = run(t.Context(), []string{"changed", "-dir", dir, "-json"}, in, &b, &e)
	assert.Equal(t, exitError, code)
	require.NoError(t, json.Unmarshal(b.Bytes(), &res), e.String())
	assert.Equal(t, []int64{2, 1, 1}, []int64{res.URLs, res.Known, res.Wrong})
	code, out, stderr = operate(t, "explain", "-dir", dir, "http://a.example/3")
	require.Zero(t, code, stderr)
	assert.Regexp(t, "scheduled(.|\n)*it waits for its time, in (1 ?d|23 ?h)", out, "whoever looks at a crawl answers no hints")
	r = startRecrawl(t, w, dir, "-min", "1s", "-max", "24h")
	until("/3", 2)
	r.ended(t)
}

// A crawl that fetches nothing again refuses lists, running or not.
func TestChangedIsForRecrawls(t *testing.T) {
	r := startCrawl(t)
	for _, at := range []string{"running", "at rest"} {
		code, _, stderr := operate(t, "changed", "-dir", r.dir)
		assert.Equal(t, exitError, code, at)
		assert.Contains(t, stderr, "it fetches nothing again", at)
		if at == "running" {
			stop(t, r.dir)
			r.endsWith(t, exitStopped)
		}
	}
	code, _, stderr := operate(t, "changed", "-dir", r.dir, "a", "b")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "too many")
}
