// This file tests copies of a store that are made while a frontier works on it.

package durability

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// copyLoad is a crawl that notes what was acknowledged.
type copyLoad struct {
	f       *frontier.Frontier
	permits chan struct{} // one for each step of work

	mu    sync.Mutex
	made  int             // guarded by mu; URLs
	tried map[string]bool // guarded by mu; calls that have begun
	added map[string]bool // guarded by mu
	doing map[string]bool // guarded by mu; Done has begun
	done  map[string]bool // guarded by mu
	steps int             // guarded by mu
}

func newCopyLoad(f *frontier.Frontier) *copyLoad {
	return &copyLoad{f: f, permits: make(chan struct{}, 1<<16), tried: map[string]bool{}, added: map[string]bool{}, doing: map[string]bool{}, done: map[string]bool{}}
}

// fresh returns entries that were never added.
func (c *copyLoad) fresh(n int) (es []frontier.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		c.made++
		u := fmt.Sprintf("http://h%d.example/%d", c.made%97, c.made)
		c.tried[u] = true
		es = append(es, frontier.Entry{URL: u})
	}
	return es
}

func (c *copyLoad) acknowledge(es []frontier.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps++
	for _, e := range es {
		c.added[e.URL] = true
	}
}

// work adds and completes as long as it has permits.
func (c *copyLoad) work(t *testing.T, adds bool) {
	for range c.permits {
		if adds {
			es := c.fresh(10)
			if _, err := c.f.Add(t.Context(), es...); assert.NoError(t, err) {
				c.acknowledge(es)
			}
			continue
		}
		l, err := c.f.Next(t.Context())
		if !assert.NoError(t, err) {
			return
		}
		c.mu.Lock()
		c.doing[l.Entry.URL] = true
		c.mu.Unlock()
		es := c.fresh(2)
		if assert.NoError(t, c.f.Done(l, frontier.Outcome{Add: es})) {
			c.acknowledge(es)
			c.mu.Lock()
			c.done[l.Entry.URL] = true
			c.mu.Unlock()
		}
	}
}

// seen is what was acknowledged and begun at a moment.
func (c *copyLoad) seen() copyLoad {
	c.mu.Lock()
	defer c.mu.Unlock()
	return copyLoad{tried: maps.Clone(c.tried), added: maps.Clone(c.added), doing: maps.Clone(c.doing), done: maps.Clone(c.done), steps: c.steps}
}

// permit lets the workers take n more steps.
func (c *copyLoad) permit(steps int) {
	for range steps {
		c.permits <- struct{}{}
	}
}

// take makes the workers take n more steps.
func (c *copyLoad) take(steps int) {
	want := c.seenSteps() + steps
	c.permit(steps)
	for c.seenSteps() < want {
		_ = hook.Of(c.f).MoveNow(true) // so that there are blocks, and rounds that a copy meets
	}
}

func (c *copyLoad) seenSteps() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steps
}

// A copy contains everything that was acknowledged before it began, and nothing that was done by
// then; the crawl continues meanwhile.
func TestCopyUnderLoad(t *testing.T) {
	for kind, steps := range map[string]int{"plain": 50, "small": 5} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			db, err := openCrashStore(filepath.Join(dir, "store"), kind, nil)
			require.NoError(t, err)
			f, err := frontier.Open(t.Context(), copyOptions(db))
			require.NoError(t, err)
			load := newCopyLoad(f)
			es := load.fresh(40 * steps)
			_, err = f.Add(t.Context(), es...)
			require.NoError(t, err)
			load.acknowledge(es)
			var workers sync.WaitGroup
			for i := range 6 {
				workers.Go(func() { load.work(t, i == 0) })
			}
			var before, after []copyLoad
			for i := range 3 {
				load.take(steps)
				load.permit(4 * steps) // for while it is copied
				before = append(before, load.seen())
				require.NoError(t, db.CopyTo(t.Context(), filepath.Join(dir, "copies", fmt.Sprint(i))))
				after = append(after, load.seen())
			}
			load.take(steps) // and further, over what the copies share
			close(load.permits)
			workers.Wait()
			harness.Ended(t, f)
			require.NoError(t, db.Close())
			names, err := os.ReadDir(filepath.Join(dir, "copies"))
			require.NoError(t, err)
			assert.Len(t, names, 3, "nothing but copies is left")
			for i := range before {
				drainCopy(t, filepath.Join(dir, "copies", fmt.Sprint(i)), &before[i], &after[i])
			}
			all := load.seen()
			drainCopy(t, filepath.Join(dir, "store"), &all, &all) // which copies and their ends did no harm
		})
	}
}

func copyOptions(db *spill.Store) frontier.Options {
	return frontier.Options{Spill: db, Delay: frontier.FixedDelay(time.Millisecond), MemoryBudget: db.Footprint() + 24<<20}
}

// drainCopy takes all URLs out of a copy.
func drainCopy(t *testing.T, dir string, before, after *copyLoad) {
	db, err := spill.Open(dir, spill.Options{MemoryBudget: 64 << 20, DiskReserve: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	f, err := frontier.Open(t.Context(), copyOptions(db))
	require.NoError(t, err)
	require.NoError(t, f.Check())
	var es []frontier.Entry
	for u := range before.added {
		es = append(es, frontier.Entry{URL: u})
	}
	n, err := f.Add(t.Context(), es...)
	require.NoError(t, err)
	assert.Zero(t, n, "URLs that the copy does not know")
	got := map[string]bool{}
	for {
		l, err := f.Next(t.Context())
		if errors.Is(err, frontier.ErrExhausted) {
			break
		}
		require.NoError(t, err)
		u := l.Entry.URL
		assert.False(t, got[u], "%s comes twice", u)
		assert.False(t, before.done[u], "%s was done", u)
		assert.True(t, after.tried[u], "%s was never added", u)
		got[u] = true
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}
	lost := 0
	for u := range before.added {
		if !after.doing[u] && !got[u] {
			lost++
		}
	}
	assert.Zero(t, lost, "URLs that were acknowledged, not done, and are not in the copy")
	harness.Ended(t, f)
}

// What cannot be copied is said clearly, leaves nothing, and does the crawl no harm.
func TestCopyThatFails(t *testing.T) {
	dir := t.TempDir()
	db, err := openCrashStore(filepath.Join(dir, "store"), "plain", nil)
	require.NoError(t, err)
	to := filepath.Join(dir, "copies", "one")
	require.Error(t, db.CopyTo(t.Context(), to), "no frontier has the store")
	f, err := frontier.Open(t.Context(), copyOptions(db))
	require.NoError(t, err)
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
	require.NoError(t, err)

	require.ErrorContains(t, db.CopyTo(t.Context(), ""), "no folder given")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, db.CopyTo(gone, to), context.Canceled)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Error(t, db.CopyTo(t.Context(), filepath.Join(file, "in a file")))
	require.NoError(t, db.CopyTo(t.Context(), to))
	err = db.CopyTo(t.Context(), to)
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, to)

	names, err := os.ReadDir(filepath.Dir(to))
	require.NoError(t, err)
	assert.Len(t, names, 1)
	l, err := f.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	harness.Ended(t, f)
	require.NoError(t, db.Close())
	require.ErrorIs(t, db.CopyTo(t.Context(), to+"2"), frontier.ErrClosed)
}
