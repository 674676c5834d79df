//go:build unix

// This file watches a crawl in real terminals of three sizes, by tmux.

package main

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/internal/doccheck"
)

var captures = flag.String("captures", "", "`file` for what terminals show of top; empty: tmux is not asked")

// endless serves hosts of which each page links to more, and to other hosts.
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

// TestTopInTmux makes docs/top.md:
//
//	go test ./cmd/frontier -run Tmux -captures ../../docs/top.md
func TestTopInTmux(t *testing.T) {
	if *captures == "" {
		t.Skip("captures terminals with -captures FILE")
	}
	web := httptest.NewServer(http.HandlerFunc(endless))
	t.Cleanup(web.Close)
	dir := t.TempDir()
	program := filepath.Join(dir, "frontier")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	state := filepath.Join(dir, "state")
	crawl := exec.Command(program, "crawl", "-dir", state, "-page", "off", "-no-groups", "-delay", "200ms", "-resolve", "*.example="+web.Listener.Addr().String(),
		"http://sick-0.example/", "http://site-1.example/0", "http://site-2.example/0", "http://site-3.example/0", "http://www.a-rather-long-name.site-4.example/0")
	require.NoError(t, crawl.Start())
	t.Cleanup(func() {
		_ = crawl.Process.Signal(os.Interrupt)
		_ = crawl.Wait()
	})
	tmux := func(args ...string) string {
		out, err := exec.Command("tmux", append([]string{"-S", filepath.Join(dir, "tmux"), "-f", "/dev/null"}, args...)...).CombinedOutput()
		require.NoError(t, err, "tmux %q: %s", args, out)
		return string(out)
	}
	time.Sleep(45 * time.Second) // until there is something to see
	text := "# `frontier top`\n\nA running crawl in terminals of three sizes, as tmux captured them. `go test ./cmd/frontier -run Tmux -captures ../../docs/top.md`\nmakes this page.\n"
	for i, size := range [][2]int{{80, 24}, {20, 24}, {140, 32}} {
		name := fmt.Sprint("top", i)
		tmux("new-session", "-d", "-s", name, "-x", fmt.Sprint(size[0]), "-y", fmt.Sprint(size[1]), fmt.Sprintf("LC_ALL=C.UTF-8 %s top -dir %s", program, state))
		var shown string
		require.Eventually(t, func() bool {
			shown = strings.TrimRight(tmux("capture-pane", "-p", "-t", name), "\n")
			return strings.Contains(shown, "waiting")
		}, time.Minute, 100*time.Millisecond)
		lines := strings.Split(shown, "\n")
		assert.LessOrEqual(t, len(lines), size[1])
		assert.Contains(t, lines[0], "state", "the first line is there: nothing has scrolled")
		for j, l := range lines {
			lines[j] = strings.TrimRight(l, " ")
			assert.LessOrEqual(t, utf8.RuneCountInString(l), size[0], l)
		}
		text += fmt.Sprintf("\n## %d columns, %d lines\n\n```text\n%s\n```\n", size[0], size[1], strings.Join(lines, "\n"))
	}
	tmux("kill-server")
	text, err = doccheck.Document{Path: "docs/top.md", Text: text}.WithContents()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*captures, []byte(text), 0o644))
}
