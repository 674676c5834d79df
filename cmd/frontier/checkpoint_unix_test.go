// This file asks a crawl for checkpoints, and goes on from one.

//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/crawler/backup"
)

// A crawl that goes on from a checkpoint fetches what was not done by then, and nothing
// that was.
func TestCheckpoints(t *testing.T) {
	c, addr := serve(t, 12)
	dir := t.TempDir()
	copies := filepath.Join(dir, "copies")
	have := func() []string {
		all, _ := backup.List(copies)
		return all
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c.each = func(url string) {
		var n int
		if _, err := fmt.Sscanf(url, "http://a.example/%d", &n); err != nil || n != 4 && n != 8 {
			return
		}
		before := len(have())
		for len(have()) == before && ctx.Err() == nil { // while a page is being fetched
			assert.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
			time.Sleep(10 * time.Millisecond)
		}
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR1) // a late one must not end the test
	args := []string{"-resolve", "*.example=" + addr}
	status, out, stderr := command(t, ctx, append(args, "-dir", filepath.Join(dir, "state"), "-seen", filepath.Join(dir, "seen"), "-checkpoint-dir", copies, "-checkpoint-every", "0", "-checkpoint-keep", "100", "http://a.example/1")...)
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "12 pages")
	assert.Contains(t, stderr, "msg=checkpoint")
	all := have()
	require.GreaterOrEqual(t, len(all), 2)
	c.mu.Lock()
	clear(c.asks)
	c.mu.Unlock()
	c.each = nil
	status, out, stderr = command(t, ctx, append(args, "-dir", filepath.Join(all[0], "frontier"), "-seen", filepath.Join(all[0], "seen"), "http://a.example/1")...)
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "9 pages")
	assert.Zero(t, c.asks["http://a.example/3"])
	assert.Equal(t, 1, c.asks["http://a.example/4"])
}

// What -recrawl has learned is in checkpoints, where -dir has it, and a crawl goes on
// from there.
func TestCheckpointsHaveWhatIsLearned(t *testing.T) {
	c, addr := serve(t, 3)
	dir := t.TempDir()
	state, copies := filepath.Join(dir, "state"), filepath.Join(dir, "copies")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c.each = func(url string) {
		if url != "http://a.example/3" {
			return
		}
		for all, _ := backup.List(copies); len(all) == 0 && ctx.Err() == nil; all, _ = backup.List(copies) {
			assert.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR1) // a late one must not end the test
	args := []string{"-resolve", "*.example=" + addr, "-recrawl", "-recrawl-budget", "50"}
	status, _, stderr := command(t, ctx, append(args, "-dir", state, "-checkpoint-dir", copies, "-checkpoint-every", "0", "http://a.example/1")...)
	require.Equal(t, exitStopped, status, stderr)
	all, err := backup.List(copies)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	from := filepath.Join(all[0], "frontier")
	assert.FileExists(t, filepath.Join(from, "recrawl", "state"))
	want, err := os.ReadFile(filepath.Join(state, "recrawl", "key"))
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(from, "recrawl", "key"))
	require.NoError(t, err)
	assert.Equal(t, want, got, "without it pages cannot be compared with what they were")

	ctx, cancel = context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c.each = func(url string) {
		if url == "http://a.example/3" {
			cancel()
		}
	}
	status, out, stderr := command(t, ctx, append(args, "-dir", from, "http://a.example/1")...)
	require.Equal(t, exitStopped, status, stderr)
	assert.Contains(t, out, "pages known; freshness")
	assert.Contains(t, stderr, "made anew", "the books, as after a crash")
}

// logText is a log that is read while it is written.
type logText struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Without -checkpoint-dir, a signal for a checkpoint is answered with a warning, and the crawl continues.
func TestNoCheckpointsOnDemand(t *testing.T) {
	c, addr := serve(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var log logText
	c.each = func(url string) {
		if url != "http://a.example/2" {
			return
		}
		assert.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
		for !strings.Contains(log.String(), "no checkpoint is made") && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}
	status := run(ctx, []string{"crawl", "-page", "off", "-delay", "1ms", "-resolve", "*.example=" + addr, "http://a.example/1"}, strings.NewReader(""), io.Discard, &log)
	require.Zero(t, status, log.String())
	assert.Contains(t, log.String(), "no checkpoint is made: there is no -checkpoint-dir")
	assert.Equal(t, 1, c.asks["http://a.example/3"])
}

func TestBadCheckpoints(t *testing.T) {
	status, _, stderr := command(t, t.Context(), "-checkpoint-dir", "x", "-checkpoint-keep", "0", "-checkpoint-every", "-1s", "http://a.example/")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "-checkpoint-dir needs -dir\n-checkpoint-every is -1s; want >= 0\n-checkpoint-keep is 0; want >= 1")
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	status, _, stderr = command(t, t.Context(), "-dir", filepath.Join(dir, "state"), "-checkpoint-dir", file, "http://a.example/")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "want a folder, and this is a file")
	assert.NoDirExists(t, filepath.Join(dir, "state"))
}
