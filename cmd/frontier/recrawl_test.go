package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
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
		require.Equal(t, exitStopped, status, stderr)
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
	state := filepath.Join(dir, "recrawl", "state")
	before, err := os.ReadFile(state)
	require.NoError(t, err)
	code, out, stderr := operate(t, "plan", "-dir", dir, "-periods", "7", "-period", "12h")
	require.Zero(t, code, stderr)
	assert.Regexp(t, `all seen within +7 periods: with \d fetches in each period of 12h`, out)
	assert.Regexp(t, `(?m)^budget .*\(50 a second\)$`, out, "that of the crawl")
	assert.Regexp(t, `(?m)^7 `, out, "the last period")
	code, out, stderr = operate(t, "plan", "-dir", dir, "-json", "-budget", "864/d")
	require.Zero(t, code, stderr)
	var o outlook
	require.NoError(t, json.Unmarshal([]byte(out), &o))
	assert.Positive(t, o.Pages+o.New)
	assert.InDelta(t, 864, o.Budget, 1e-6)
	assert.LessOrEqual(t, o.Plan.Bound, o.Plan.Objective)
	after, err := os.ReadFile(state)
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

// The command is crawl -recrawl, and its flags have short names too.
func TestRecrawlCommand(t *testing.T) {
	code, out, stderr := operate(t, "recrawl", "-budget", "60/m", "-min", "5m", "-recrawl-max", "24h", "-print-config", "http://a.example/")
	require.Zero(t, code, stderr)
	assert.Equal(t, printed(t, "-recrawl", "-recrawl-budget", "60/m", "-recrawl-min", "5m", "-recrawl-max", "24h", "http://a.example/"), out)
	code, _, stderr = operate(t, "recrawl", "-min", "0s", "http://a.example/")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "frontier: recrawl: -recrawl-min is 0s; want > 0")
}

// 150 pages are seen within 2 periods by 75 in each.
func TestPlanOfAModel(t *testing.T) {
	code, out, stderr := operate(t, "plan", "-model", filepath.Join("testdata", "model.json"))
	require.Zero(t, code, stderr)
	assert.Regexp(t, `pages +150 known, 0 more never crawled`, out)
	assert.Regexp(t, `all seen within +2 periods: with 75 seconds in each period`, out)
	assert.Regexp(t, `budget +50 seconds in each period`, out)
	assert.Regexp(t, `(?m)^1 +50 +0 `, out)
}

func TestBadPlans(t *testing.T) {
	t.Setenv("FRONTIER_DIR", "")
	folder := t.TempDir()
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "model.json")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	damaged := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(damaged, "recrawl"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(damaged, "recrawl", "state"), []byte(`{"version": 1, "schedule": "AAAA"}`), 0o600))
	for _, x := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "which crawl?", nil},
		{exitError, "has no crawl with -recrawl", []string{"-dir", folder}},
		{exitError, filepath.Join(damaged, "recrawl", "state") + ": ", []string{"-dir", damaged}},
		{exitError, "Periods is 0", []string{"-model", file(`{"periods": 0}`)}},
		{exitError, "pagse: there is no such member", []string{"-model", file(`{"pagse": 0}`)}},
		{exitError, "where the end should be", []string{"-model", file(`{"periods": 1} x`)}},
		{exitUsage, "there is no file", []string{"-model", filepath.Join(folder, "none")}},
		{exitUsage, "is a folder; want a file", []string{"-model", folder}},
		{exitUsage, "is a file; want the folder of a crawl", []string{"-dir", file("")}},
		{exitUsage, "there is no folder", []string{"-dir", filepath.Join(folder, "none")}},
		{exitUsage, "-periods is 0; want 1 to 1000", []string{"-dir", folder, "-periods", "0"}},
		{exitUsage, "-period is 0s; want > 0", []string{"-dir", folder, "-period", "0s"}},
		{exitUsage, "-strategy is \"odd\"", []string{"-dir", folder, "-strategy", "odd"}},
		{exitUsage, "-budget cannot be combined with -model", []string{"-model", file(`{}`), "-budget", "5"}},
		{exitUsage, "want a number more than 0", []string{"-dir", folder, "-budget", "5/y"}},
		{exitUsage, "too many arguments", []string{"-dir", folder, "x"}},
	} {
		code, out, stderr := operate(t, append([]string{"plan"}, x.args...)...)
		assert.Equal(t, x.code, code, "%v: %s", x.args, stderr)
		assert.Contains(t, stderr, x.says)
		assert.Empty(t, out)
	}
	names, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Empty(t, names, "nothing was made")
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
	for _, in := range []string{"", "0", "-1", "NaN", "Inf", "x/s", "1/s/s", "1/", "/d", "1/y"} {
		var r rate
		assert.Error(t, r.Set(in), in)
	}
}
