// This file measures how long the lock is held by large commits, and with many crawls.

package frontier_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Many callers of Add, and many workers whose pages have many new links, share commits;
// see TestHoldsUnderLoad for how long the lock was held.
func TestHoldsOfLargeCommits(t *testing.T) {
	callers, adds, workers, pages := 4, 2, 10, 40
	if frontier.HoldsWatched {
		callers, adds, workers, pages = 64, 10, 500, 5_000
	}
	db, err := spill.Open(t.TempDir(), spill.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	f, err := frontier.Open(t.Context(), frontier.Options{Spill: db, Delay: frontier.FixedDelay(0), KeepOpen: true, MemoryBudget: 1 << 30})
	require.NoError(t, err)
	defer harness.Ended(t, f)
	l := holdsLoad{t: t, f: f, holds: f.WatchHolds()}
	links := func(name string, n int) []frontier.Entry {
		entries := make([]frontier.Entry, n)
		for i := range entries {
			entries[i] = frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%s/%d", i, name, i)}
		}
		return entries
	}
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := range adds {
				n, err := f.Add(t.Context(), links(fmt.Sprintf("a%d-%d", i, j), 1000)...)
				assert.NoError(t, err)
				assert.Equal(t, 1000, n)
			}
		})
	}
	all.Wait()
	l.tell(fmt.Sprintf("%d callers of Add with 1,000 URLs", callers))
	var done atomic.Int64
	for range workers {
		all.Go(func() {
			for n := done.Add(1); n <= int64(pages); n = done.Add(1) {
				x, err := f.Next(t.Context())
				if assert.NoError(t, err) {
					assert.NoError(t, f.Done(x, frontier.Outcome{Add: links(fmt.Sprintf("d%d", n), 100)}))
				}
			}
		})
	}
	all.Wait()
	l.tell(fmt.Sprintf("%d workers, Done with 100 new links", workers))
	require.EqualValues(t, callers*adds*1000+pages*99, f.Stats().Waiting)
	require.NoError(t, hook.Of(f).MoveNow(true))
	l.tell("moving to disk")
}

// One host has URLs in many crawls; see TestHoldsUnderLoad for how long the lock was held.
func TestHoldsOfManyCrawls(t *testing.T) {
	crawls := 50
	if frontier.HoldsWatched {
		crawls = 10_000
	}
	f, err := frontier.Open(t.Context(), frontier.Options{Delay: frontier.FixedDelay(0), KeepOpen: true, MemoryBudget: 1 << 30})
	require.NoError(t, err)
	defer harness.Ended(t, f)
	l := holdsLoad{t: t, f: f, holds: f.WatchHolds()}
	for i := range crawls {
		_, err := f.Add(t.Context(), frontier.Entry{URL: "http://one.example/", Crawl: uint32(i)})
		require.NoError(t, err)
	}
	l.tell("Add")
	start := time.Now()
	for range min(crawls, 100) {
		x, err := f.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, f.Done(x, frontier.Outcome{}))
	}
	l.tell(fmt.Sprintf("%d of Next and Done in %v", min(crawls, 100), time.Since(start)))
	require.EqualValues(t, crawls-min(crawls, 100), f.Stats().Waiting)
}
