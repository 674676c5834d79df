// This file tests that a crawl goes on with the settings that lie in its folder.

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A crawl that was stopped, and whose folder was moved, goes on from elsewhere as it was
// begun: each page is asked for once, and what flags say holds from then on.
func TestResume(t *testing.T) {
	web, addr := serve(t, 30)
	home := t.TempDir()
	t.Chdir(home)
	ctx, cancel := context.WithCancel(t.Context())
	web.each = func(url string) {
		if strings.HasSuffix(url, "/10") {
			cancel()
		}
	}
	status, _, stderr := command(t, ctx, "-dir", "state", "-done-log", "done", "-user-agent", "mybot/1", "-proxy", "http://me:secret@"+addr, "-max-depth", "14", "http://a.example/1")
	require.Equal(t, exitStopped, status, stderr)
	assert.Contains(t, stderr, "stopped: 1 URL waits; the same command goes on from here, or: frontier resume state")
	kept := filepath.Join(home, "state", keptConfig)
	info, err := os.Stat(kept)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm(), "it may have a password")
	b, err := os.ReadFile(kept)
	require.NoError(t, err)
	assert.Contains(t, string(b), "\ndone-log = '"+filepath.Join(home, "done")+"'\n")

	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Rename(filepath.Join(home, "state"), moved))
	t.Chdir(t.TempDir())
	status, out, stderr := operate(t, "resume", "-print-config", moved)
	require.Zero(t, status, stderr)
	assert.Equal(t, strings.Replace(string(b), "'"+filepath.Join(home, "state")+"'", "'"+moved+"'", 1), out)
	status, out, stderr = operate(t, "resume", "-grace", "7s", moved)
	require.Zero(t, status, stderr)
	assert.True(t, strings.HasPrefix(out, "5 pages"), "%s: down to the depth of 14", out)
	assert.Equal(t, "mybot/1", web.ua)
	for u, n := range web.asks {
		if !strings.HasSuffix(u, "/robots.txt") {
			assert.Equal(t, 1, n, u)
		}
	}
	b, err = os.ReadFile(filepath.Join(moved, keptConfig))
	require.NoError(t, err)
	assert.Contains(t, string(b), "\ngrace = '7s'\n")
	lines, err := os.ReadFile(filepath.Join(home, "done"))
	require.NoError(t, err)
	assert.Len(t, strings.Fields(string(lines)), 15)
}

func TestBadResume(t *testing.T) {
	empty, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	_, addr := serve(t, 1)
	status, _, stderr := command(t, t.Context(), "-dir", state, "-proxy", "http://"+addr, "http://a.example/1")
	require.Zero(t, status, stderr)
	kept := filepath.Join(state, keptConfig)
	b, err := os.ReadFile(kept)
	require.NoError(t, err)
	check := func(code int, says string, args ...string) {
		t.Helper()
		got, out, stderr := operate(t, append([]string{"resume"}, args...)...)
		assert.Equal(t, code, got, stderr)
		assert.Contains(t, stderr, says)
		assert.Empty(t, out)
	}
	check(exitUsage, "which crawl?")
	check(exitUsage, "which crawl?", state, "http://a.example/")
	check(exitUsage, "which crawl?", "-dir", state, state)
	check(exitUsage, "-workers is 0; want 1 to 65536", "-workers", "0", state)
	check(exitUsage, "there is no crawl in "+empty, empty)
	check(exitUsage, "there is no folder /nothing/there", "/nothing/there")
	check(exitUsage, kept+" is a file", "-dir", kept)
	after, err := os.ReadFile(kept)
	require.NoError(t, err)
	assert.Equal(t, b, after, "nothing was done")
	require.NoError(t, os.WriteFile(kept, append([]byte("wrokers = 3\n"), b...), 0o600))
	check(exitUsage, kept+`:1: there is no option "wrokers"`, state)
	require.NoError(t, os.Remove(kept))
	check(exitUsage, "has no settings to go on with", state)
	names, err := os.ReadDir(empty)
	require.NoError(t, err)
	assert.Empty(t, names, "nothing was made")
}

// What commands said of hosts since the crawl began stays, unless a flag says otherwise.
func TestResumeKeepsWhatWasSet(t *testing.T) {
	_, addr := serve(t, 3)
	dir := filepath.Join(t.TempDir(), "state")
	status, _, stderr := command(t, t.Context(), "-dir", dir, "-proxy", "http://"+addr, "-rule", "a.example delay=2ms", "-limit-pages", "50", "http://a.example/1")
	require.Zero(t, status, stderr)
	ok := func(args ...string) string {
		t.Helper()
		code, out, stderr := operate(t, args...)
		require.Zero(t, code, stderr)
		return out
	}
	ok("delay", "-dir", dir, "a.example", "7ms")
	ok("limit", "-dir", dir, "-each", "-pages", "90", "*")
	ok("resume", dir)
	rules := ok("rules", "-dir", dir)
	assert.Regexp(t, `a\.example +delay +7ms`, rules)
	assert.Regexp(t, `\* +host_limits .*90`, rules)
	ok("resume", "-rule", "a.example delay=3ms", dir)
	rules = ok("rules", "-dir", dir)
	assert.Regexp(t, `a\.example +delay +3ms`, rules)
	assert.Regexp(t, `\* +host_limits .*90`, rules)
}
