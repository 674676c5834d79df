// This file kills whole crawls that never end, with signal 9, and holds what they left
// against what they knew at that moment.

//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/backup"
	"github.com/seed-7440039f/frontier/crawler/incremental"
	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/transfer"
)

// restless serves hosts of pages that change at different rates. Once it holds, it
// answers nothing until it lets go.
type restless struct {
	mu      sync.Mutex
	asked   int
	holding chan struct{} // nil: it answers
	held    map[string]bool
}

func (s *restless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked++
	n, holding := s.asked, s.holding
	if holding != nil {
		s.held[r.Host] = true
	}
	s.mu.Unlock()
	if holding != nil {
		<-holding
	}
	w.Header().Set("Content-Type", "text/html")
	page := 0
	switch _, err := fmt.Sscanf(r.URL.Path, "/%d", &page); {
	case r.URL.Path == "/robots.txt":
		http.NotFound(w, r)
	case err != nil:
		for i := range 10 {
			fmt.Fprintf(w, "<a href=/%d>x</a>", i)
		}
	default:
		fmt.Fprintf(w, "<p>words %s", bytes.Repeat([]byte{'a'}, 1+n/(50*(page+1))))
	}
}

func (s *restless) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding, s.held = make(chan struct{}), map[string]bool{}
}

func (s *restless) letGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holding != nil {
		close(s.holding)
	}
	s.holding = nil
}

func (s *restless) counts() (asked, held int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, len(s.held)
}

// After kill -9 a crawl knows of each page what it knew, when it comes again included,
// and its price is the same. What it knew is in a checkpoint of a moment at which all of its
// hosts keep it waiting.
func TestKilledRecrawls(t *testing.T) {
	web := &restless{}
	server := httptest.NewServer(web)
	defer server.Close()
	defer web.letGo()
	dir := t.TempDir()
	const hosts = 4
	state, copies := filepath.Join(dir, "state"), filepath.Join(dir, "copies")
	args := []string{"crawl", "-page", "off", "-delay", "1ms", "-workers", "8", "-dir", state, "-resolve", "*.example=" + server.Listener.Addr().String(),
		"-checkpoint-dir", copies, "-checkpoint-every", "0", "-checkpoint-keep", "100", "-timeout", "10m",
		"-recrawl", "-recrawl-budget", "40", "-recrawl-min", "1s", "-recrawl-max", "3s", "-recrawl-probe", "1s", "-recrawl-prior", "20s"}
	for i := range hosts {
		args = append(args, fmt.Sprintf("http://h%d.example/", i))
	}
	for round := range 2 {
		before, _ := web.counts()
		log, err := os.Create(filepath.Join(dir, fmt.Sprint("log", round)))
		require.NoError(t, err)
		c := exec.Command(os.Args[0], args...)
		c.Env = append(os.Environ(), asCommand+"=1")
		c.Stdout, c.Stderr = log, log
		require.NoError(t, c.Start())
		kill := sync.OnceFunc(func() {
			assert.NoError(t, c.Process.Signal(syscall.SIGKILL))
			_ = c.Wait() // it was killed
			assert.NoError(t, log.Close())
		})
		defer kill()
		logged := func() string { b, _ := os.ReadFile(log.Name()); return string(b) }
		eventually := func(what string, ok func() bool) {
			t.Helper()
			require.Eventually(t, ok, 2*time.Minute, 10*time.Millisecond, what)
		}
		eventually("it has learned something", func() bool { n, _ := web.counts(); return n > before+100 })
		web.hold()
		eventually("all hosts keep it waiting", func() bool { _, held := web.counts(); return held > 0 }) // all are at one address: no other is asked
		have, _ := backup.List(copies)                                                                    // at first there is none
		require.NoError(t, c.Process.Signal(syscall.SIGUSR1))
		var now []string
		eventually("a checkpoint", func() bool { now, err = backup.List(copies); return err == nil && len(now) > len(have) })
		kill()
		web.letGo()
		wanted, price := left(t, filepath.Join(now[len(now)-1], "frontier"))
		got, priceNow := left(t, state)
		require.Greater(t, len(wanted), 30, logged())
		require.Positive(t, wanted["http://h0.example/"].Visits, logged())
		assert.Equal(t, wanted, got)
		assert.InEpsilon(t, price, priceNow, 0.01, "round %d", round)
	}
}

// known is what is known of a URL. When it comes again is in it; whether that time has
// come depends on when one looks.
type known struct {
	Priority, Visits, Changes, Fails  int
	FirstVisit, LastVisit, LastChange string
	LastModified, Last, State, Meta   string
}

// left is what a crawl has left in a folder: what is known of each URL, and the price of
// a fetch.
func left(t *testing.T, dir string) (urls map[string]known, price float64) {
	t.Helper()
	store, err := spill.Open(dir, spill.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	r, err := incremental.Open(incremental.Options{Dir: filepath.Join(dir, recrawlFolder), Schedule: recrawl.Options{
		Budget: 40, MinInterval: time.Second, MaxInterval: 3 * time.Second, Probe: time.Second, Prior: recrawl.Gamma{Alpha: 0.5, Beta: 0.5 * 20. / 86400},
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	o := frontier.Options{Spill: store}
	r.Configure(&o)
	f, err := frontier.Open(context.Background(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.NoError(t, r.Attach(context.Background(), f))
	var out bytes.Buffer
	require.NoError(t, transfer.Export(context.Background(), f, &out, transfer.ExportOptions{NoMarks: true}))
	urls = map[string]known{}
	for s := bufio.NewScanner(&out); s.Scan(); {
		var line struct {
			URL string
			known
		}
		if bytes.HasPrefix(s.Bytes(), []byte(`{"url"`)) {
			require.NoError(t, json.Unmarshal(s.Bytes(), &line))
			urls[line.URL] = line.known
		}
	}
	return urls, r.Report().Schedule.Price
}
