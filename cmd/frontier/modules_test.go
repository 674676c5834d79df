package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/crawler/warc"
)

// The pages of chain are the same but for a number, so all are duplicates of the first.
func TestModules(t *testing.T) {
	c, addr := serve(t, 5)
	dir := t.TempDir()
	archive, seen := filepath.Join(dir, "warc"), filepath.Join(dir, "seen")
	for i := range 2 { // the folders are used again
		status, out, stderr := command(t, t.Context(), "-resolve", "*.example="+addr, "-warc", archive, "-seen", seen, "-stats", filepath.Join(dir, "stats"), "-sitemaps", "http://a.example/1")
		require.Zero(t, status, stderr)
		assert.Contains(t, out, "5 pages")
		assert.Regexp(t, fmt.Sprintf(`(?m)^status +200 +%d answers`, 5*(i+1)), out)
		assert.Regexp(t, fmt.Sprintf(`(?m)^type +"text/html" +%d answers`, 5*(i+1)), out)
		b, err := os.ReadFile(filepath.Join(dir, "stats", "stats.json"))
		require.NoError(t, err)
		assert.Contains(t, string(b), `"text/html"`)
	}
	assert.Equal(t, 2, c.asks["http://a.example/sitemap.xml"])
	files, err := filepath.Glob(filepath.Join(archive, "*.warc.gz"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	f, err := os.Open(files[0])
	require.NoError(t, err)
	defer f.Close()
	kept := map[string]bool{}
	for rec, err := range warc.NewReader(f).Records() {
		require.NoError(t, err)
		kept[rec.TargetURI] = true
	}
	for i := range 5 {
		assert.True(t, kept[fmt.Sprint("http://a.example/", i+1)])
	}

	status, out, _ := command(t, t.Context(), "-resolve", "*.example="+addr, "-seen", filepath.Join(dir, "other"), "-skip-duplicates", "http://a.example/1")
	require.Zero(t, status)
	assert.Contains(t, out, "5 pages", "all have the same words, but each leads to another")
}

// All mirrors are reported at the end.
func TestMirrorsAreTold(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil || n > 12 {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<p>This is the page that is called %s <a href="/%d">next</a>`, strings.Repeat("x", n), n+1)
	}))
	t.Cleanup(s.Close)
	status, out, stderr := command(t, t.Context(), "-resolve", "*.example="+s.Listener.Addr().String(), "-seen", filepath.Join(t.TempDir(), "seen"), "http://mirror.a.example/1", "http://a.example/1")
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "mirror.a.example is a mirror of a.example: it has 12 of 12 pages\n")
}

func TestBadModules(t *testing.T) {
	status, _, stderr := command(t, t.Context(), "-skip-duplicates", "-seen-threshold", "2", "http://a.example/")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "-seen-threshold needs -seen\n-skip-duplicates needs -seen\n")
	status, _, stderr = command(t, t.Context(), "-seen", "x", "-seen-threshold", "2", "http://a.example/")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "-seen-threshold is 2; want > 0 and <= 1")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	for _, flag := range []string{"-warc", "-seen", "-stats"} {
		status, _, stderr := command(t, t.Context(), flag, file, "http://a.example/")
		assert.Equal(t, exitUsage, status)
		assert.Contains(t, stderr, "want a folder, and this is a file")
	}
	status, _, stderr = command(t, t.Context(), "-temp", file+".gone", "http://a.example/")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "want a folder that is there")
}
