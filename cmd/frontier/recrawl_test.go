package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A crawl with -recrawl goes on until it is stopped, reports, and goes on from there.
func TestRecrawl(t *testing.T) {
	var mu sync.Mutex
	asks := map[string]int{}
	var stop context.CancelFunc
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asks[r.URL.Path]++
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/1":
			fmt.Fprintf(w, "<p>a word, then %c <a href=/2>two</a>", 'a'+asks["/1"]%26)
		default:
			fmt.Fprint(w, "<p>always the same")
		}
		if asks["/1"] >= 4 {
			stop()
		}
	}))
	t.Cleanup(s.Close)
	dir := filepath.Join(t.TempDir(), "state")
	for round := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		mu.Lock()
		stop = cancel
		asks = map[string]int{}
		mu.Unlock()
		status, out, stderr := command(t, ctx, "-dir", dir, "-resolve", "*.example="+s.Listener.Addr().String(),
			"-recrawl", "-recrawl-min", "1s", "-recrawl-max", "1s", "-recrawl-probe", "1s", "-recrawl-budget", "50", "-recrawl-report", "1s", "http://a.example/1")
		require.Zero(t, status, stderr)
		assert.Contains(t, stderr, "the same command goes on from here")
		assert.Contains(t, out, "pages known; freshness")
		assert.Contains(t, out, "budget 50/s")
		assert.FileExists(t, filepath.Join(dir, "recrawl", "state"))
		if round == 0 {
			assert.NotContains(t, out, "0 changed")
		} else {
			assert.NotContains(t, stderr, "made anew", "it ended well")
		}
		cancel()
	}
}

func TestBadRecrawl(t *testing.T) {
	for want, args := range map[string][]string{
		"-recrawl-min needs -recrawl":                    {"-recrawl-min", "1s", "http://a.example/"},
		"-recrawl-max is -1s; want > 0":                  {"-recrawl", "-recrawl-max", "-1s", "http://a.example/"},
		"want a number more than 0":                      {"-recrawl", "-recrawl-budget", "5/y", "http://a.example/"},
		"-recrawl-prior is 0s; want > 0":                 {"-recrawl", "-recrawl-prior", "0", "http://a.example/"},
		"MinChange is 2; want 0 to 1":                    {"-recrawl", "-recrawl-min-change", "2", "http://a.example/"},
		"-recrawl-new-max is 0; want more than 0":        {"-recrawl", "-recrawl-new-max", "0", "http://a.example/"},
		"NewShareMin and NewShareMax are 0.9 and 0.5":    {"-recrawl", "-recrawl-new-min", "0.9", "http://a.example/"},
		"MaxInterval is 1s; want MinInterval (1m0s) to ": {"-recrawl", "-recrawl-max", "1s", "http://a.example/"},
	} {
		status, _, stderr := command(t, t.Context(), args...)
		assert.Equal(t, exitUsage, status, want)
		assert.Contains(t, stderr, want)
	}
}

func TestRate(t *testing.T) {
	for in, want := range map[string]float64{"2": 2, "2/s": 2, "60/m": 1, "1800/h": 0.5, "86400/d": 1} {
		var r rate
		require.NoError(t, r.Set(in))
		assert.InEpsilon(t, want, float64(r), 1e-9, in)
	}
	for _, in := range []string{"", "0", "-1", "NaN", "Inf", "x/s", "1/s/s"} {
		var r rate
		assert.Error(t, r.Set(in), in)
	}
}
