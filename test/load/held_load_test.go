// This file pauses, blocks and resumes many hosts while workers crawl.

package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Nothing is handed out of a domain by a call of Next that began after a Pause or
// BlockUntil of it had returned, whatever 16 workers do meanwhile, and nothing is
// lost. With -frontier.long it logs what that costs with 100,000 hosts.
func TestPauseWhileWorkersCrawl(t *testing.T) {
	hosts, urls := 1000, 6000
	if *harness.Long {
		hosts, urls = 100_000, 1_000_000
	}
	for name, store := range map[string]bool{"in memory": false, "on a store": true} {
		t.Run(name, func(t *testing.T) {
			o := frontier.Options{Delay: frontier.FixedDelay(0), KeepOpen: true, MemoryBudget: 1 << 30}
			if store {
				o.Spill = spilltest.OpenMemory(t, spill.Options{}).Store
			}
			f, err := frontier.Open(t.Context(), o)
			require.NoError(t, err)
			defer harness.Ended(t, f)
			var entries []frontier.Entry
			for i := range urls {
				domain := "held"
				if i%3 == 0 {
					domain = "other"
				}
				entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.%s.example/%d", i%hosts, domain, i)})
			}
			for chunk := range slices.Chunk(entries, 1000) {
				_, err = f.Add(t.Context(), chunk...)
				require.NoError(t, err)
			}
			crawlAndPause(t, f, int64(urls))
		})
	}
}

// wantLock acquires the lock regularly until ctx ends. Its waits count while counted returns true.
func wantLock(ctx context.Context, f *frontier.Frontier, w *harness.Waits, counted func() bool) {
	var stale frontier.Lease
	for ctx.Err() == nil {
		start := time.Now()
		_ = f.Extend(&stale, time.Second)
		if counted() {
			w.Since(start)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

func crawlAndPause(t *testing.T, f *frontier.Frontier, urls int64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var turn atomic.Int64 // odd: a control that holds has returned, and none that lets go was called since
	var done atomic.Int64
	var with, without, lock harness.Waits
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for {
				before, start := turn.Load(), time.Now()
				l, err := f.Next(ctx)
				if errors.Is(err, context.Canceled) {
					return
				}
				if !assert.NoError(t, err) {
					return
				}
				if strings.HasSuffix(l.Host, ".held.example") {
					assert.False(t, before%2 == 1 && before == turn.Load(), "%s was handed out", l.Entry.URL)
				} else if before%2 == 1 {
					with.Since(start)
				} else {
					without.Since(start)
				}
				assert.NoError(t, f.Done(l, frontier.Outcome{}))
				done.Add(1)
			}
		})
	}
	workers.Go(func() { wantLock(ctx, f, &lock, func() bool { return true }) })
	s := scope.Domain("held.example")
	calls := []func() error{
		func() error { return f.Pause(s) },
		func() error { return f.BlockUntil(s, time.Now().Add(time.Hour)) },
		func() error { return errors.Join(f.Pause(scope.All()), f.Resume(scope.Domain("other.example"))) },
	}
	var took harness.Waits
	rounds := 0
	for ; done.Load() < urls; rounds++ {
		if urls-done.Load() > urls/20 {
			start := time.Now()
			assert.NoError(t, calls[rounds%3]())
			took.Since(start)
			turn.Add(1)
			for from := done.Load(); done.Load() < from+urls/100 && f.Stats().Held < urls-done.Load(); {
				time.Sleep(time.Millisecond)
			}
			turn.Add(1)
		}
		start := time.Now()
		assert.NoError(t, errors.Join(f.Clear(scope.All()), f.Clear(s)))
		took.Since(start)
		for from := done.Load(); done.Load() < min(from+urls/50, urls); {
			time.Sleep(time.Millisecond)
		}
	}
	cancel()
	workers.Wait()
	require.EqualValues(t, urls, done.Load())
	t.Logf("%d rounds; a control: %v", rounds, &took)
	t.Logf("Next of other hosts, held: %v", &with)
	t.Logf("Next of other hosts, not held: %v", &without)
	t.Logf("the lock: %v", &lock)
}
