// This file kills crawls with signal 9 and looks for the end of each page in the record.

//go:build unix

package main

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/crawler/crawllog"
)

var (
	killedPages = flag.Int("frontier.killed-pages", 600, "pages of the crawl that is killed")
	kills       = flag.Int("frontier.kills", 3, "how often that is killed")
)

// heap serves pages, where page N links to 2N+1 and 2N+2, and counts the requests for each. Some pages
// are missing, some fail once.
type heap struct {
	pages int

	mu   sync.Mutex
	asks map[int]int
}

func (h *heap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := 0
	if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil {
		http.NotFound(w, r)
		return
	}
	h.mu.Lock()
	h.asks[n]++
	asked := h.asks[n]
	h.mu.Unlock()
	switch {
	case n%53 == 49 && asked == 1: // of all hosts, so that none seems to be in trouble
		w.WriteHeader(http.StatusInternalServerError)
		return
	case 2*n+1 >= h.pages && n%7 == 0:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	for _, next := range []int{2*n + 1, 2*n + 2} {
		if next < h.pages {
			fmt.Fprintf(w, "<a href=http://h%d.example/%d>x</a>", next%20, next)
		}
	}
}

func (h *heap) asked() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.asks)
}

// However often a crawl is killed, the end of each of its pages is in the record, and in
// the file of -log: at least once, and those that were recorded twice are marked.
func TestKilledCrawlsRecordEachEnd(t *testing.T) {
	web := &heap{pages: *killedPages, asks: map[int]int{}}
	server := httptest.NewServer(web)
	defer server.Close()
	dir := t.TempDir()
	state, logFile := filepath.Join(dir, "state"), filepath.Join(dir, "crawl.log")
	args := []string{"crawl", "-page", "off", "-delay", "1ms", "-group-delay", "0s", "-group-concurrency", "8", "-workers", "8", "-dir", state, "-resolve", "*.example=" + server.Listener.Addr().String(),
		"-retry-tries", "3", "-retry-wait", "10ms", "-scope-domains", "example", "-log", logFile, "http://h0.example/0"}
	for round := range *kills + 1 {
		said, err := os.Create(filepath.Join(dir, fmt.Sprint("said", round)))
		require.NoError(t, err)
		c := exec.Command(os.Args[0], args...)
		c.Env = append(os.Environ(), asCommand+"=1")
		c.Stdout, c.Stderr = said, said
		require.NoError(t, c.Start())
		read := func() string { b, _ := os.ReadFile(said.Name()); return string(b) }
		if round < *kills {
			assert.Eventually(t, func() bool { return web.asked() > (round+1)*web.pages/(*kills+2) }, 5*time.Minute, time.Millisecond, "it goes on")
			require.NoError(t, c.Process.Kill())
			_ = c.Wait() // it was killed
		} else {
			require.NoError(t, c.Wait(), read())
		}
		require.NoError(t, said.Close())
	}
	for _, path := range []string{logFile, endsPath(state)} {
		ends, records, again, opened := map[string]crawllog.Record{}, 0, 0, 0
		for r, err := range crawllog.NewView(path).All() {
			require.NoError(t, err)
			if r.Outcome == crawllog.Opened {
				opened++
			}
			if r.URL == "" || r.Outcome == crawllog.Robots {
				continue
			}
			records++
			if r.Again {
				again++
				assert.Contains(t, ends, r.URL)
			}
			ends[r.URL] = r
		}
		assert.Equal(t, *kills+1, opened)
		for n := range web.pages {
			r, ok := ends[fmt.Sprintf("http://h%d.example/%d", n%20, n)]
			if !assert.True(t, ok, "page %d has no end in %s", n, path) {
				continue
			}
			assert.True(t, r.Outcome.Answered(), "%+v", r)
		}
		assert.Len(t, ends, web.pages)
		t.Logf("%s: %d pages, %d records, of which %d were recorded again after %d kills", filepath.Base(path), len(ends), records, again, *kills)
	}
}
