//go:build unix

// This file tests the completions, also in real shells.

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// offered are the candidates for the last of some words.
func offered(t *testing.T, words ...string) []string {
	var found []string
	for _, c := range complete(t.Context(), newRoot(new(int)), words) {
		found = append(found, c.word)
	}
	return found
}

func TestCompletions(t *testing.T) {
	assert.Equal(t, []string{"pause"}, offered(t, "pau"))
	assert.NotContains(t, offered(t, ""), completing)
	assert.Equal(t, []string{"-max-pages", "-max-pages-per-host"}, offered(t, "crawl", "-max-pag"), "with one dash, as people type")
	assert.Equal(t, []string{"--max-time"}, offered(t, "crawl", "-dir", "x", "--max-t"))
	assert.Equal(t, []string{"-budget"}, offered(t, "recrawl", "-bud"), "short names too")
	assert.Equal(t, []string{"paused", "parked"}, offered(t, "hosts", "-reason", "pa"))
	assert.Equal(t, []string{"-reason=blocked"}, offered(t, "hosts", "-reason=bl"))
	assert.Equal(t, []string{"failed,given-up"}, offered(t, "ends", "-outcome", "failed,gi"))
	assert.Equal(t, []string{"json"}, offered(t, "serve", "-log-format", "j"))
	assert.Equal(t, []string{"depth", "links", "trust"}, offered(t, "crawl", "-order", ""))
	assert.Equal(t, []string{"--order=links"}, offered(t, "recrawl", "--order=l"))
	assert.Equal(t, []string{"standing"}, offered(t, "stan"))
	assert.Equal(t, []string{"zsh"}, offered(t, "completion", "z"))
	assert.Equal(t, []string{"explain", "export"}, offered(t, "help", "exp"))
	for _, words := range [][]string{nil, {"nothing", ""}, {"crawl", "-dir", ""}, {"pause", "-dir", "/nowhere", ""}, {"crawl", "-recrawl", ""}} {
		assert.Empty(t, offered(t, words...), words)
	}
	status, out, stderr := typing(t, completing, "crawl", "-h")
	assert.Contains(t, out, "-header\t", stderr)
	assert.Zero(t, status)
	for _, shell := range shells {
		status, out, _ := typing(t, "completion", shell)
		assert.Zero(t, status)
		assert.Contains(t, out, completing, shell)
	}
	status, _, stderr = typing(t, "completion", "tcsh")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "for which shell?")
}

func TestHostsAreCompleted(t *testing.T) {
	r := startCrawl(t)
	for _, args := range [][]string{{"pause", "-dir", r.dir, "c.example"}, {"pause", "-dir", r.dir, "cc.example"}, {"add", "-dir", r.dir, "http://c.example/9", "http://cc.example/9"}} {
		code, _, stderr := operate(t, args...)
		require.Equal(t, exitOK, code, stderr)
	}
	assert.Equal(t, []string{"cc.example"}, offered(t, "pause", "-dir", r.dir, "cc"))
	assert.Equal(t, []string{"c.example", "cc.example"}, offered(t, "explain", "-dir="+r.dir, "'c"))
	t.Setenv("FRONTIER_DIR", r.dir)
	assert.Equal(t, []string{"c.example"}, offered(t, "ends", "-host", "c."))
	r.endsWith(t, exitStopped)
}

// What people type in a shell and Tab becomes what they mean.
func TestCompletionsInShells(t *testing.T) {
	x, r := newTerminals(t), startCrawl(t)
	for _, args := range [][]string{{"pause", "-dir", r.dir, "c.example"}, {"add", "-dir", r.dir, "http://c.example/9"}} {
		code, _, stderr := operate(t, args...)
		require.Equal(t, exitOK, code, stderr)
	}
	dir := t.TempDir()
	self := "#!/bin/sh\n" + asCommand + "=1 exec '" + os.Args[0] + "' \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "frontier"), []byte(self), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a-file"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".zshrc"), []byte("PS1='> '; autoload -U compinit; compinit -u; source <(frontier completion zsh)\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bashrc"), []byte("PS1='> '; eval \"$(frontier completion bash)\"\n"), 0o644))
	with := "/usr/share/bash-completion/bash_completion"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bashrc-with"), []byte("PS1='> '; source "+with+"; eval \"$(frontier completion bash)\"\n"), 0o644))
	begin := "cd '" + dir + "'; PATH='" + dir + "':$PATH FRONTIER_DIR='" + r.dir + "' HOME='" + dir + "' ZDOTDIR='" + dir + "' "
	for name, shell := range map[string]struct{ needs, start string }{
		"bash":      {"bash", "bash --noprofile --rcfile bashrc -i"},
		"bash-with": {with, "bash --noprofile --rcfile bashrc-with -i"},
		"zsh":       {"zsh", "zsh -i"},
		"fish":      {"fish", "fish -N -C 'function fish_prompt; echo \"> \"; end; frontier completion fish | source'"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(shell.needs); err != nil && exec.Command("test", "-e", shell.needs).Run() != nil {
				t.Skip("not installed: " + shell.needs)
			}
			x := &terminals{t, x.socket}
			x.start(name, 150, 24, begin+shell.start)
			x.shows(name, `(?m)^> ?$`)
			for _, line := range []struct{ typed, shown string }{
				{"frontier pau", `> frontier pause`},
				{"frontier crawl -max-segm", `> frontier crawl -max-segments`},
				{"frontier hosts -reason quar", `> frontier hosts -reason quarantine`},
				{"frontier crawl -order tr", `> frontier crawl -order trust`},
				{"frontier pause c.ex", `> frontier pause c\.example`},
				{"frontier resume a-f", `> frontier resume a-file`},
			} {
				x.keys(name, "-l", line.typed)
				x.keys(name, "Tab")
				screen := x.shows(name, line.shown)
				assert.NotContains(t, screen, "not found")
				x.keys(name, "C-u")
				x.shows(name, `(?m)^> ?$`)
			}
			assert.NotContains(t, strings.ToLower(x.shows(name, ">")), "error")
		})
	}
	code, _, stderr := operate(t, "unpause", "-dir", r.dir, "c.example")
	require.Equal(t, exitOK, code, stderr)
	r.end(t)
}
