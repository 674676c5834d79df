//go:build unix

// This file watches a crawl in real terminals, by tmux.

package main

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/internal/doccheck"
)

var captures = flag.String("captures", "", "`file` for what terminals show of top; empty: there are none")

// endless serves hosts whose pages link to more pages, and to other hosts.
func endless(w http.ResponseWriter, r *http.Request) {
	var n int
	_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
	switch {
	case r.URL.Path == "/robots.txt":
		http.NotFound(w, r)
	case strings.HasPrefix(r.Host, "sick"):
		http.Error(w, "not today", http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<a href="/%d">a</a><a href="/%d">b</a><a href="http://site-%d.example/0">c</a><a href="http://sick-%d.example/%d">d</a>`, 2*n+1, 2*n+2, n%12, n%3, n)
	}
}

// terminals belong to one tmux server, which ends with the test.
type terminals struct {
	t      *testing.T
	socket string
}

// newTerminals skips the test where there is no tmux, but not in CI.
func newTerminals(t *testing.T) *terminals {
	if _, err := exec.LookPath("tmux"); err != nil {
		require.Empty(t, os.Getenv("CI"), "tmux is not installed")
		t.Skip("tmux is not installed")
	}
	dir, err := os.MkdirTemp("", "fr") // a socket's path is short
	require.NoError(t, err)
	x := &terminals{t, filepath.Join(dir, "tmux")}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", x.socket, "kill-server").Run()
		_ = os.RemoveAll(dir)
	})
	return x
}

func (x *terminals) tmux(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", x.socket, "-f", os.DevNull}, args...)...).CombinedOutput()
	require.NoError(x.t, err, "tmux %q: %s", args, out)
	return string(out)
}

// start runs a command of the shell in a terminal that stays when it ends.
func (x *terminals) start(name string, width, height int, command string) {
	x.t.Helper()
	x.tmux("new-session", "-d", "-s", name, "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "LC_ALL=C.UTF-8; export LC_ALL; "+command+"; echo left with status $?; exec cat")
}

// shows waits until a terminal shows what a pattern says, and returns all that it shows.
func (x *terminals) shows(name, pattern string, flags ...string) (screen string) {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		screen = strings.TrimRight(x.tmux(append([]string{"capture-pane", "-p", "-t", name}, flags...)...), "\n")
		if regexp.MustCompile(pattern).MatchString(screen) {
			return screen
		}
		require.True(x.t, time.Now().Before(end), "no %s in:\n%s", pattern, screen)
	}
}

func (x *terminals) keys(name string, keys ...string) {
	x.t.Helper()
	x.tmux(append([]string{"send-keys", "-t", name}, keys...)...)
}

// asTop is the command line of top in this very program.
func asTop(dir string) string {
	return fmt.Sprintf("%s=1 '%s' top -dir '%s'", asCommand, os.Args[0], dir)
}

// The keys do in a terminal what they are for, its size may change, and it is left as it was.
func TestTopInTmux(t *testing.T) {
	x, r := newTerminals(t), startCrawl(t)
	code, _, stderr := operate(t, "add", "-dir", r.dir, "http://a.example/9")
	require.Equal(t, exitOK, code, stderr)
	x.start("top", 80, 24, asTop(r.dir))
	x.shows("top", `(?s)state.*running.*a\.example +1 `)
	assert.Contains(t, x.shows("top", "waiting", "-e"), "\x1b[", "it has colours")
	x.keys("top", "p")
	x.shows("top", `pause a\.example\? y: yes`)
	x.keys("top", "y")
	x.shows("top", `a\.example +1 +paused`)
	x.keys("top", "p", "y")
	x.shows("top", `a\.example goes on`)
	x.keys("top", "s")
	x.shows("top", "sort: waiting")
	x.tmux("resize-window", "-t", "top", "-x", "60", "-y", "15")
	for l := range strings.SplitSeq(x.shows("top", `(?m)^ frontier  state {20,30}\d`), "\n") {
		assert.LessOrEqual(t, ansi.StringWidth(l), 60)
	}
	x.keys("top", "?")
	x.shows("top", "pause the host under the cursor")
	x.keys("top", "q")
	assert.NotContains(t, x.shows("top", "left with status 0"), "frontier")
	x.start("grey", 80, 24, "NO_COLOR=1 "+asTop(r.dir))
	assert.NotRegexp(t, `\x1b\[[0-9;]*[349][0-7]`, x.shows("grey", "(?s)waiting.*sort", "-e"), "no colour")
	x.start("dumb", 80, 24, "TERM=dumb "+asTop(r.dir))
	assert.NotContains(t, x.shows("dumb", "left with status 0", "-e"), "\x1b[", "a snapshot in plain text")
	r.end(t)
}

// A line moves below those of the log while a crawl runs, and is gone when it has ended.
func TestProgressInTmux(t *testing.T) {
	x, arrived, gate := newTerminals(t), make(chan bool, 1000), make(chan bool)
	web := httptest.NewServer(slowly(arrived, gate))
	t.Cleanup(web.Close)
	crawl := fmt.Sprintf("%s=1 '%s' crawl -page off -delay 1ms -timeout 1h -workers 2 -no-groups -resolve '*.example=%s' http://a.example/1 http://b.example/1",
		asCommand, os.Args[0], web.Listener.Addr())
	x.start("crawl", 500, 24, crawl)
	<-arrived
	<-arrived // at both pages, which do not end
	x.shows("crawl", `● running  0 pages  0\.0/s  .* waiting  2 hosts`)
	x.keys("crawl", "C-c")
	x.shows("crawl", "● stopping  0 pages")
	close(gate)
	screen := x.shows("crawl", `left with status \d`)
	assert.NotContains(t, screen, "●")
	assert.NotContains(t, screen, "msg=crawling", "the line says it")
	for l := range strings.SplitSeq(screen, "\n") {
		assert.Regexp(t, `^(time=|\^C|\d+ pages|frontier crawl: stopped|left with)`, l)
	}
	x.start("pipe", 500, 24, crawl+" 2>&1 | cat")
	assert.NotContains(t, x.shows("pipe", `left with status \d`), "●")
}

// TestTopCaptures fills the captures in docs/top.md:
//
//	go test ./cmd/frontier -run Captures -captures ../../docs/top.md
func TestTopCaptures(t *testing.T) {
	if *captures == "" {
		t.Skip("captures terminals with -captures FILE")
	}
	x, web := newTerminals(t), httptest.NewServer(http.HandlerFunc(endless))
	t.Cleanup(web.Close)
	state := filepath.Join(filepath.Dir(x.socket), "state")
	crawl := exec.Command(os.Args[0], "crawl", "-dir", state, "-page", "off", "-no-groups", "-delay", "200ms", "-resolve", "*.example="+web.Listener.Addr().String(),
		"http://sick-0.example/", "http://site-1.example/0", "http://site-2.example/0", "http://site-3.example/0", "http://www.a-rather-long-name.site-4.example/0")
	crawl.Env = append(os.Environ(), asCommand+"=1")
	require.NoError(t, crawl.Start())
	t.Cleanup(func() {
		_ = crawl.Process.Signal(os.Interrupt)
		_ = crawl.Wait()
	})
	time.Sleep(45 * time.Second) // until there is something to see
	page, err := os.ReadFile(*captures)
	require.NoError(t, err)
	text, _, found := strings.Cut(string(page), "\n### ")
	require.True(t, found)
	for i, size := range [][2]int{{80, 24}, {40, 24}, {120, 34}} {
		name := fmt.Sprint("top", i)
		x.start(name, size[0], size[1], asTop(state))
		text += fmt.Sprintf("\n### %d columns, %d lines\n\n```text\n%s\n```\n", size[0], size[1], strings.Trim(x.shows(name, `[1-9]\.\d/s`), "\n"))
	}
	text, err = doccheck.Document{Path: "docs/top.md", Text: text}.WithContents()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*captures, []byte(text), 0o644))
}
