// This file asks a crawl for checkpoints, and goes on from one.

//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/crawler/checkpoint"
)

// A crawl that goes on from a checkpoint fetches what was not done by then, and nothing
// that was.
func TestCheckpoints(t *testing.T) {
	c, addr := serve(t, 12)
	dir := t.TempDir()
	copies := filepath.Join(dir, "copies")
	have := func() []string {
		all, _ := checkpoint.List(copies)
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
	args := []string{"-resolve", "*.example=" + addr, "-checkpoint-keep", "100"}
	status, out, stderr := command(t, ctx, append(args, "-dir", filepath.Join(dir, "state"), "-seen", filepath.Join(dir, "seen"), "-checkpoint-dir", copies, "-checkpoint-every", "0", "http://a.example/1")...)
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

func TestBadCheckpoints(t *testing.T) {
	status, _, stderr := command(t, t.Context(), "-checkpoint-dir", "x", "-checkpoint-keep", "0", "-checkpoint-every", "-1s", "http://a.example/")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "-checkpoint-dir needs -dir\n-checkpoint-every is -1s; want >= 0\n-checkpoint-keep is 0; want >= 1")
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	status, _, stderr = command(t, t.Context(), "-dir", filepath.Join(dir, "state"), "-checkpoint-dir", file, "http://a.example/")
	assert.Equal(t, exitError, status)
	assert.Contains(t, stderr, "checkpoint: ")
}
