// This file tests the command import.

package main

import (
	"os"
	"path/filepath"
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
	assert.Contains(t, ok(first, "import", list), "2 URLs are new")
	ok(first, "pause", "a.example")
	ok(first, "delete", "-yes", "b.example") // what is deleted stays known
	all := filepath.Join(tmp, "all")
	ok(first, "export", all)
	assert.Contains(t, ok(second, "import", all), "1 URLs are new")
	assert.Contains(t, ok(second, "explain", "a.example"), "it is paused")
	assert.Contains(t, ok(second, "add", "http://b.example/"), "0 URLs added; 1 URL known before")
}

// No folder comes of a command that cannot be done, and none that has other things in it
// becomes a crawl.
func TestImportBeginsNothing(t *testing.T) {
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "state")
	for _, args := range [][]string{{filepath.Join(tmp, "missing")}, {"-", "too many"}} {
		code, _, _ := operate(t, append([]string{"import", "-dir", dir}, args...)...)
		assert.NotEqual(t, exitOK, code)
		assert.NoDirExists(t, dir)
	}
	list := filepath.Join(tmp, "list")
	require.NoError(t, os.WriteFile(list, []byte("http://a.example/\n"), 0o644))
	code, _, stderr := operate(t, "import", "-dir", tmp, list)
	assert.Equal(t, exitError, code)
	assert.Contains(t, stderr, "there is no crawl in")
	entries, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}
