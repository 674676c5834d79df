// This file tests the command import.

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An import makes the folder that it is given, and the new crawl is the one that was
// exported.
func TestImportBegins(t *testing.T) {
	tmp := t.TempDir()
	list, first, second := filepath.Join(tmp, "list"), filepath.Join(tmp, "first"), filepath.Join(tmp, "new", "second")
	require.NoError(t, os.WriteFile(list, []byte("http://a.example/\nhttp://b.example/\n"), 0o644))
	ok := func(dir string, args ...string) string {
		t.Helper()
		code, out, stderr := operate(t, append([]string{args[0], "-dir", dir}, args[1:]...)...)
		require.Equal(t, exitOK, code, stderr)
		return out
	}
	assert.Contains(t, ok(first, "import", list), "URLs: 2 new")
	ok(first, "pause", "a.example")
	ok(first, "delete", "-yes", "b.example") // what is deleted stays known
	for _, name := range []string{"export", "report", "import", "changed"} {
		code, _, stderr := operate(t, name, "-dir", first, tmp)
		assert.Equal(t, exitUsage, code, name)
		assert.Contains(t, stderr, tmp+" is a folder; want a file", name)
	}
	all := filepath.Join(tmp, "all")
	ok(first, "export", all)
	assert.Contains(t, ok(second, "import", all), "URLs: 1 new")
	assert.Contains(t, ok(second, "explain", "a.example"), "it is paused")
	assert.Contains(t, ok(second, "add", "http://b.example/"), "0 URLs added; 1 URL known before")
}

// No folder comes of a command that cannot be done, and none that has other things in it
// becomes a crawl.
func TestImportBeginsNothing(t *testing.T) {
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "state")
	other, list := t.TempDir(), filepath.Join(tmp, "list")
	damaged, newer := filepath.Join(other, "damaged"), filepath.Join(other, "newer")
	require.NoError(t, os.WriteFile(damaged, []byte("{\"frontier\":1\n"), 0o644))
	require.NoError(t, os.WriteFile(newer, []byte(`{"frontier":99,"time":"2026-03-01T12:00:00.000Z","key":"00112233445566778899aabbccddeeff"}`+"\n"), 0o644))
	header := `{"frontier":1,"time":"2026-03-01T12:00:00.000Z","key":"00112233445566778899aabbccddeeff"}` + "\n"
	row := header + `{"end":1}` + "\n"
	torn, several, words := filepath.Join(other, "torn"), filepath.Join(other, "several"), filepath.Join(other, "words")
	require.NoError(t, os.WriteFile(torn, []byte(header+`{"url":"http://a.example/"`+"\n"), 0o644))
	require.NoError(t, os.WriteFile(several, []byte(row+row+row), 0o644))
	require.NoError(t, os.WriteFile(words, []byte("no URL\nmailto:a@b.example\n"), 0o644))
	for _, args := range [][]string{{torn}, {several}, {words}} {
		code, _, said := operate(t, append([]string{"import", "-dir", dir}, args...)...)
		assert.Equal(t, exitError, code)
		assert.NoDirExists(t, dir, said)
	}
	_, _, said := operate(t, "import", "-dir", dir, several)
	assert.Equal(t, 1, strings.Count(said, "\n"), said)
	assert.Contains(t, said, "line 3 begins another export: import each by itself")
	for _, args := range [][]string{{filepath.Join(tmp, "missing")}, {"-", "too many"}, {os.DevNull}, {damaged}, {newer}} {
		code, _, said := operate(t, append([]string{"import", "-dir", dir}, args...)...)
		assert.NotEqual(t, exitOK, code)
		assert.NotContains(t, said, "line 2")
		assert.NoDirExists(t, dir)
	}
	unreadable, err := os.Open(other) // a folder
	require.NoError(t, err)
	defer unreadable.Close()
	assert.Equal(t, exitError, run(t.Context(), []string{"import", "-dir", dir}, unreadable, io.Discard, io.Discard))
	assert.NoDirExists(t, dir)
	require.NoError(t, os.WriteFile(list, []byte("http://a.example/\n"), 0o644))
	code, _, stderr := operate(t, "import", "-dir", tmp, list)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "there is no crawl in")
	entries, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

// URLs of a list are normalized as the crawl does; bad lines are counted and reported.
func TestImportOfAList(t *testing.T) {
	tmp := t.TempDir()
	dir, list := filepath.Join(tmp, "state"), filepath.Join(tmp, "list")
	require.NoError(t, os.WriteFile(list, []byte("# a list\n\nHTTP://K3.test:80/a/../%7ex#top\r\nhttp://k3.test\nhttp://k3.test/\nk4.test\n/etc/passwd\nht!tp://x\nmailto:me@k3.test\n"), 0o644))
	code, out, stderr := operate(t, "import", "-dir", dir, list)
	assert.Equal(t, exitError, code)
	assert.Contains(t, out, "URLs: 3 new, 1 known before")
	assert.Contains(t, out, "malformed: 3\nline 7 \"/etc/passwd\": want a URL like https://example.org/, or a host name with a dot in it\n")
	assert.Contains(t, stderr, "3 of 9 lines are no URLs, and were passed over")
	code, out, stderr = operate(t, "urls", "-dir", dir)
	require.Equal(t, exitOK, code, stderr)
	for _, u := range []string{"http://k3.test/~x", "http://k3.test/", "http://k4.test/"} {
		assert.Contains(t, out, u)
	}
	require.NoError(t, os.WriteFile(list, []byte("{\"nonsense\":1}\nhttp://k5.test/\n"), 0o644))
	code, out, _ = operate(t, "import", "-dir", dir, list)
	assert.Equal(t, exitError, code, "of a damaged export nothing is taken")
	assert.Empty(t, out)
}

// A crawl at rest knows its scope.
func TestAddAtRestAsksTheScope(t *testing.T) {
	_, addr := serve(t, 3)
	dir := filepath.Join(t.TempDir(), "state")
	status, _, stderr := command(t, t.Context(), "-dir", dir, "-proxy", "http://"+addr, "http://a.example/1")
	require.Equal(t, exitOK, status, stderr)
	for _, do := range []string{"add", "now"} {
		code, _, stderr := operate(t, do, "-dir", dir, "b.example/1")
		assert.Equal(t, exitError, code)
		assert.Contains(t, stderr, `URL 1 of 1 is outside what the crawl is about: not in scope: host "b.example"`)
	}
	code, out, stderr := operate(t, "add", "-dir", dir, "a.example/99")
	require.Equal(t, exitOK, code, stderr)
	assert.Equal(t, "1 URL added\n", out)
	code, _, stderr = operate(t, "add", "-dir", dir, "/etc/passwd")
	assert.Equal(t, exitError, code)
	assert.Contains(t, stderr, "want a URL like https://example.org/, or a host name with a dot in it")
}
