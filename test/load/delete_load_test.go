// This file deletes a domain while workers crawl.

package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Nothing is handed out of a domain by a call of Next that began after a Delete of
// it had returned, whatever 16 workers do meanwhile, and nothing else is lost. With
// -frontier.long it logs what that costs with 100,000 hosts and 10 million URLs.
func TestDeleteWhileWorkersCrawl(t *testing.T) {
	hosts, urls, others := 300, 9000, 3000
	if *harness.Long {
		hosts, urls, others = 100_000, 10_000_000, 1_000_000
	}
	for name, store := range map[string]bool{"in memory": false, "on a store": true} {
		t.Run(name, func(t *testing.T) {
			o := frontier.Options{Delay: frontier.FixedDelay(0), KeepOpen: true, MemoryBudget: 3 << 30}
			if store {
				db, err := spill.Open(t.TempDir(), spill.Options{})
				require.NoError(t, err)
				defer func() { require.NoError(t, db.Close()) }()
				o.Spill, o.MemoryBudget = db, 0
			}
			f, err := frontier.Open(t.Context(), o)
			require.NoError(t, err)
			defer harness.Ended(t, f)
			var batch []frontier.Entry
			add := func(url string) {
				if url != "" {
					batch = append(batch, frontier.Entry{URL: url})
				}
				if len(batch) == 1000 || url == "" {
					_, err := f.Add(t.Context(), batch...)
					require.NoError(t, err)
					batch = batch[:0]
				}
			}
			for i := range urls {
				add(fmt.Sprintf("http://h%d.gone.example/%d", i%hosts, i))
			}
			for i := range others {
				add(fmt.Sprintf("http://h%d.kept.example/%d", i%hosts, i))
			}
			add("")
			if store {
				require.NoError(t, hook.Of(f).MoveNow(false))
			}
			crawlAndDelete(t, f, int64(urls), int64(others))
		})
	}
}

func crawlAndDelete(t *testing.T, f *frontier.Frontier, urls, others int64) {
	ctx, cancel := context.WithCancel(t.Context())
	var deleted, sweeping atomic.Bool
	var gone, kept atomic.Int64
	var with, without, lock harness.Waits
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	begun := make(chan struct{}) // closed when there is something left to be deleted
	for range 16 {
		workers.Go(func() {
			for {
				before, start := deleted.Load(), time.Now()
				l, err := f.Next(ctx)
				if errors.Is(err, context.Canceled) {
					return
				}
				if !assert.NoError(t, err) {
					return
				}
				switch {
				case strings.HasSuffix(l.Host, ".gone.example"):
					assert.False(t, before, "%s was handed out", l.Entry.URL)
					if gone.Add(1) > urls/50 {
						<-begun
					}
				case sweeping.Load():
					with.Since(start)
				default:
					without.Since(start)
				}
				assert.NoError(t, f.Done(l, frontier.Outcome{}))
				if strings.HasSuffix(l.Host, ".kept.example") {
					kept.Add(1)
				}
			}
		})
	}
	workers.Go(func() { wantLock(ctx, f, &lock, sweeping.Load) })
	for gone.Load() < urls/100 {
		time.Sleep(time.Millisecond)
	}
	sweeping.Store(true)
	close(begun)
	start := time.Now()
	early, stop := context.WithCancel(ctx)
	stop()
	_, err := f.Delete(early, scope.Domain("gone.example"))
	require.ErrorIs(t, err, context.Canceled, "nothing has happened")
	n, err := f.Delete(ctx, scope.Domain("gone.example"))
	took := time.Since(start)
	deleted.Store(true)
	sweeping.Store(false)
	require.NoError(t, err)
	require.Positive(t, n)
	for kept.Load() < others {
		time.Sleep(time.Millisecond)
	}
	cancel()
	workers.Wait()
	s := f.Stats()
	require.Zero(t, s.Waiting+s.Leased)
	require.EqualValues(t, urls+others, s.Deleted+gone.Load()+kept.Load(), "each URL was handed out or deleted")
	if *harness.Long {
		t.Logf("%d URLs deleted in %v, beside workers", n, took)
		t.Logf("Next of others while it was: %v", &with)
		t.Logf("Next of others besides:      %v", &without)
		t.Logf("a wait for the lock meanwhile: %v", &lock)
	}
}
