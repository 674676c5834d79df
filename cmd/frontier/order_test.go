package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A page that many pages link to comes before others that were found earlier; what is known of links is
// kept in the folder, and may be damaged.
func TestOrder(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		switch p := r.URL.Path; {
		case p == "/robots.txt":
			http.NotFound(w, r)
			return
		case p == "/":
			for i := range 30 {
				fmt.Fprintf(w, "<a href=/p%d>page</a>", i)
			}
			fmt.Fprint(w, "<a href=/known>known</a>")
		default:
			fmt.Fprint(w, "<a href=/known>known</a>")
		}
		asked = append(asked, r.URL.Path)
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	crawl := func(order, dir string) (rank int, stderr string) {
		asked = nil
		status, _, stderr := command(t, t.Context(), "-dir", dir, "-resolve", "*.example="+s.Listener.Addr().String(), "-order", order, "-memory", "80M", "-delay", "5ms", "-group-delay", "0s", "-workers", "1", "http://a.example/")
		require.Zero(t, status, stderr)
		assert.LessOrEqual(t, len(asked), 32)
		return slices.Index(asked, "/known"), stderr
	}
	rank, _ := crawl("links", filepath.Join(dir, "links"))
	assert.Less(t, rank, 25)
	rank, _ = crawl("trust", filepath.Join(dir, "trust"))
	assert.Less(t, rank, 31)
	rank, _ = crawl("depth", filepath.Join(dir, "depth"))
	assert.Equal(t, 31, rank)
	assert.NoFileExists(t, filepath.Join(dir, "depth", orderFile))

	_, stderr := crawl("links", filepath.Join(dir, "links"))
	assert.NotContains(t, stderr, "worse for a while")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "links", orderFile), []byte("damaged"), 0o600))
	_, stderr = crawl("links", filepath.Join(dir, "links"))
	assert.Contains(t, stderr, "worse for a while")
	info, err := os.Stat(filepath.Join(dir, "links", orderFile))
	require.NoError(t, err)
	assert.Greater(t, info.Size(), int64(100), "it is replaced")
}

func TestBadOrder(t *testing.T) {
	for _, c := range [][2]string{{"-order=best", "want depth, links or trust"}, {"-order=links -frontier=http://a.example:80", "the server decides that"}} {
		status, _, stderr := command(t, t.Context(), append(strings.Fields(c[0]), "http://a.example/")...)
		assert.Equal(t, exitUsage, status)
		assert.Contains(t, stderr, c[1])
	}
}
