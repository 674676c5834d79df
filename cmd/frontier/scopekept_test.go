package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The scope belongs to the crawl: another site is added to it, not put in its place.
func TestAnotherSeedWidensTheScope(t *testing.T) {
	web, addr := serve(t, 9)
	dir := filepath.Join(t.TempDir(), "state")
	args := []string{"-dir", dir, "-proxy", "http://" + addr}
	status, _, stderr := command(t, t.Context(), append(args, "-max-pages", "3", "http://a.example/1")...)
	require.Equal(t, exitLimit, status, stderr)
	assert.Regexp(t, `limit reached \(-max-pages 3\): [12] URLs? wait`, stderr)
	status, out, stderr := command(t, t.Context(), append(args, "http://b.example/1")...)
	require.Equal(t, exitOK, status, stderr)
	assert.Contains(t, out, "15 pages", "6 of a, 9 of b")
	assert.NotContains(t, out, "parked")
	status, _, stderr = command(t, t.Context(), args...)
	require.Equal(t, exitOK, status, stderr)
	assert.Contains(t, stderr, "nothing is left to crawl")
	for u, n := range web.asks {
		assert.True(t, n == 1 || strings.HasSuffix(u, "robots.txt"), "%s: %d", u, n)
	}
}

// What a narrower scope refuses waits until the scope is as it was, also by resume.
func TestNarrowerScopeIsToldAndParks(t *testing.T) {
	_, addr := serve(t, 9)
	for name, narrow := range map[string][]string{
		"hosts":   {"-scope-hosts", "b.example"},
		"pattern": {"-exclude", "a.example"},
		"rule":    {"-deny-hosts", "a.example"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			args := []string{"-dir", dir, "-proxy", "http://" + addr}
			status, _, stderr := command(t, t.Context(), append(args, "-max-pages", "3", "http://a.example/1")...)
			require.Equal(t, exitLimit, status, stderr)
			for range 2 {
				status, out, stderr := command(t, t.Context(), append(append(args, narrow...), "http://b.example/1")...)
				require.Equal(t, exitOK, status, stderr)
				assert.Regexp(t, `(?m)^parked, outside the scope: [12]; the same command with a wider scope, .*$`, out)
				assert.Regexp(t, `level=WARN .*outside the scope of this command.* urls=[12]`, stderr)
				parked, last := 0, ""
				for i := range 9 {
					code, said, stderr := operate(t, "explain", "-dir", dir, fmt.Sprintf("http://a.example/%d", i+1))
					require.Equal(t, exitOK, code, stderr)
					last += said
					if strings.Contains(said, "parked") {
						parked++
						assert.Contains(t, said, "it comes back when it does")
					}
				}
				assert.Contains(t, []int{1, 2}, parked, last)
			}
			wide := []string{"-scope-hosts", "a.example,b.example", "-exclude", ""}
			status, out, stderr := command(t, t.Context(), append(args, wide...)...)
			require.Equal(t, exitOK, status, stderr)
			assert.Contains(t, out, "6 pages")
			assert.NotContains(t, out, "parked")
		})
	}
}

// The first mistake does not burn the seed.
func TestBlockedSeedIsCrawledOnceItIsAllowed(t *testing.T) {
	_, addr := serve(t, 3)
	dir := filepath.Join(t.TempDir(), "state")
	for range 2 {
		status, _, stderr := command(t, t.Context(), "-dir", dir, "-seeds-file", seedList(t, "http://"+addr+"/1"))
		require.Equal(t, exitNothing, status, stderr)
		assert.Regexp(t, `frontier crawl: nothing was fetched: http://.*: blocked: .*; -allow-network 127\.0\.0\.0/8 contacts it all the same\n$`, stderr)
	}
	status, out, stderr := command(t, t.Context(), "-dir", dir, "-allow-network", "127.0.0.0/8", "http://"+addr+"/1")
	require.Equal(t, exitOK, status, stderr)
	assert.Contains(t, out, "3 pages")
}

func TestSeedThatRedirectsToAnotherHost(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
		case r.Host == "apex.example":
			http.Redirect(w, r, "http://www.apex.example"+r.URL.Path, http.StatusMovedPermanently)
		default:
			w.Header().Set("Content-Type", "text/html")
			var n int
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
			if n < 9 {
				fmt.Fprintf(w, `<a href="/%d">next</a>`, n+1)
			}
		}
	}))
	defer s.Close()
	dir := filepath.Join(t.TempDir(), "state")
	args := []string{"-dir", dir, "-proxy", s.URL}
	status, out, stderr := command(t, t.Context(), append(args, "-max-pages", "3", "apex.example")...)
	require.Equal(t, exitLimit, status, stderr)
	assert.Contains(t, stderr, "a host joins the scope: a seed redirects there")
	assert.Contains(t, out, "3 pages, 1 redirects")
	kept, err := os.ReadFile(filepath.Join(dir, keptConfig))
	require.NoError(t, err)
	assert.Contains(t, string(kept), "scope-also = ['www.apex.example']")
	status, out, stderr = command(t, t.Context(), append(args, "apex.example")...)
	require.Equal(t, exitOK, status, stderr)
	assert.Contains(t, out, "7 pages")

	status, out, stderr = command(t, t.Context(), "-proxy", s.URL, "-scope-hosts", "apex.example", "apex.example")
	require.Equal(t, exitNothing, status, "no default scope: "+stderr)
	assert.Contains(t, out, "parked, outside the scope: 1")
	assert.Contains(t, stderr, `nothing was fetched: http://apex.example/: leads to http://www.apex.example/: which is refused by scope: host "www.apex.example"`)
}

func TestHeldCrawlSaysSo(t *testing.T) {
	_, addr := serve(t, 9)
	dir := filepath.Join(t.TempDir(), "state")
	args := []string{"-dir", dir, "-proxy", "http://" + addr}
	status, _, stderr := command(t, t.Context(), append(args, "-max-pages", "3", "http://a.example/1")...)
	require.Equal(t, exitLimit, status, stderr)
	code, _, stderr := operate(t, "pause", "-dir", dir, "a.example")
	require.Equal(t, exitOK, code, stderr)
	status, _, stderr = command(t, t.Context(), append(args, "http://a.example/1")...)
	assert.Equal(t, exitStopped, status)
	assert.Regexp(t, "held: [12] URLs? waits?, of hosts that are paused", stderr)
}

// Two signals at once, as a stop of a process and of its group, are one.
func TestSecondSignalCountsLater(t *testing.T) {
	signals, last := make(chan os.Signal), make(chan struct{})
	ctx := heed(context.Background(), signals, func() { close(last) })
	signals <- os.Interrupt
	<-ctx.Done()
	begun := time.Now()
	for time.Since(begun) < again/2 {
		signals <- os.Interrupt
	}
	select {
	case <-cutBy(ctx):
		t.Fatal("cut")
	default:
	}
	time.Sleep(again)
	signals <- os.Interrupt
	<-cutBy(ctx)
	<-last
}

func TestContactIsWantedOfCrawlsOfTheInternet(t *testing.T) {
	for seed, want := range map[string]bool{"localhost:81": false, "10.1.2.3": false, "[::1]:80": false, "a.example": false, "example.org": true, "192.0.2.1": true} {
		assert.Equal(t, want, public(hostsOf([]string{seed})[0]), seed)
	}
	for contact, want := range map[string]bool{"me at example": false, "bot": false, "me@a.example": true, "mailto:me@a.example": true, "https://a.example/bot": true, "Me <me@a.example>": false} {
		assert.Equal(t, want, reaches(contact), contact)
	}
	_, addr := serve(t, 1)
	for want, contact := range map[int][]string{1: nil, 0: {"-contact", "me@example.org"}} {
		_, _, stderr := command(t, t.Context(), append(contact, "-resolve", "*="+addr, "-allow-network", "127.0.0.0/8", "example.org/1")...)
		assert.Equal(t, want, strings.Count(stderr, "no -contact is given"), stderr)
	}
}
