package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	service "github.com/seed-7440039f/frontier/serve"
)

// served is a frontier that is served under an address to those with the token secret.
func served(t *testing.T) (*frontier.Frontier, string) {
	f, h := servedBy(t)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return f, s.URL
}

// servedBy is a frontier and what serves it to those with the token secret.
func servedBy(t *testing.T) (*frontier.Frontier, http.Handler) {
	o := service.Frontier(frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)})
	o.KeepOpen = false // so that crawls end
	f, err := frontier.Open(t.Context(), o)
	require.NoError(t, err)
	tokens, err := service.ReadTokens(strings.NewReader(fmt.Sprintf("crawl %x crawler\n", sha256.Sum256([]byte("secret")))))
	require.NoError(t, err)
	s, err := service.New(f, service.Options{Tokens: tokens})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		assert.NoError(t, f.Check())
		assert.NoError(t, f.Close())
	})
	return f, s.Handler()
}

func crawlAt(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = run(ctx, append([]string{"crawl", "-workers", "4"}, args...), strings.NewReader(""), &out, &err)
	return status, out.String(), err.String()
}

// Two commands crawl with one frontier, which gives each page once.
func TestCrawlServed(t *testing.T) {
	web, addr := serve(t, 20)
	f, at := served(t)
	t.Setenv("SERVED_TOKEN", "secret")
	args := []string{"-frontier", at, "-frontier-token", "env:SERVED_TOKEN", "-resolve", "*.example=" + addr, "http://a.example/1", "http://b.example/1"}
	var crawls sync.WaitGroup
	for range 2 {
		crawls.Go(func() {
			status, _, stderr := crawlAt(t.Context(), args...)
			assert.Zero(t, status, stderr)
			assert.Contains(t, stderr, "nothing is left to crawl at the server")
		})
	}
	crawls.Wait()
	for u, n := range web.asks {
		if !strings.HasSuffix(u, "/robots.txt") { // each command reads it
			assert.Equal(t, 1, n, u)
		}
	}
	assert.EqualValues(t, 0, f.Stats().Leased)
	assert.EqualValues(t, 44, f.Stats().Known, "40 pages, those that are missing, and /private")
}

// A crawl whose server stops goes on at the frontier's next address. At the first there was none.
func TestCrawlServedUnderSeveralAddresses(t *testing.T) {
	web, addr := serve(t, 20)
	f, h := servedBy(t)
	off := httptest.NewServer(h)
	off.Close()
	var stopped atomic.Bool
	web.each = func(url string) {
		if strings.HasSuffix(url, "/10") {
			stopped.Store(true)
		}
	}
	stops := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stopped.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	}))
	defer stops.Close()
	stays := httptest.NewServer(h)
	defer stays.Close()
	t.Setenv("SERVED_TOKEN", "secret")
	list := off.URL + ", " + stops.URL + " ," + stays.URL
	status, _, stderr := crawlAt(t.Context(), "-frontier", list, "-frontier-token", "env:SERVED_TOKEN", "-resolve", "*.example="+addr, "http://a.example/1")
	require.Zero(t, status, stderr)
	assert.Contains(t, stderr, "nothing is left to crawl at the server")
	assert.Len(t, web.asks, 22, "pages, the one that is missing, robots.txt")
	for u, n := range web.asks {
		assert.Equal(t, 1, n, u)
	}
	s := f.Stats()
	assert.EqualValues(t, []int64{0, 0}, []int64{s.Leased, s.Expired})
}

// Both sides take the same address of a Unix socket.
func TestServedOverUnixSocket(t *testing.T) {
	dir := t.TempDir()
	at := "unix:" + filepath.Join(dir, "socket")
	_, stop, log := serving(t, "-http", at, "-dir", filepath.Join(dir, "state"))
	c, err := client.New(at, client.Options{})
	require.NoError(t, err)
	n, err := c.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
	assert.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.NoError(t, c.Close())
	assert.Zero(t, stop(), log)
}

func TestServedOptions(t *testing.T) {
	for want, args := range map[string][]string{
		"-dir cannot be combined with -frontier":         {"-frontier", "http://127.0.0.1:1", "-dir", "x"},
		"-limit-pages cannot be combined with -frontier": {"-frontier", "http://127.0.0.1:1", "-limit-pages", "3"},
		"-recrawl cannot be combined with -frontier":     {"-frontier", "http://127.0.0.1:1", "-recrawl"},
		"want http://HOST:PORT":                          {"-frontier", "127.0.0.1:1"},
		`"127.0.0.1:2"; want http://HOST:PORT`:           {"-frontier", "http://127.0.0.1:1,127.0.0.1:2"},
		"is there twice":                                 {"-frontier", "http://127.0.0.1:1,http://127.0.0.1:1"},
		"stands in no command line":                      {"-frontier", "http://127.0.0.1:1", "-frontier-token", "secret"},
		"-frontier-crawl needs -frontier":                {"-frontier-crawl", "news"},
	} {
		status, _, stderr := crawlAt(t.Context(), append(args, "http://a.example/")...)
		assert.Equal(t, exitUsage, status, want)
		assert.Contains(t, stderr, want)
	}
}
