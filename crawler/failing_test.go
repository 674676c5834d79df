// These tests let the frontier's store fail.

package crawler

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errDisk = fmt.Errorf("disk is full: %w", syscall.ENOSPC)

// failingSpill fails every Commit while broken is set.
type failingSpill struct {
	storage.Spill
	broken atomic.Bool
}

func (s *failingSpill) Commit(b *storage.Batch) error {
	if s.broken.Load() {
		return errDisk
	}
	return s.Spill.Commit(b)
}

// refuseLinks is a prioritizer that answers out of range for some URLs, so that
// an error about a URL meets one about the store.
func refuseLinks(e frontier.Entry, _ frontier.History) int {
	if strings.HasSuffix(e.URL, "/bad") {
		return 99
	}
	return 1
}

func openFailing(t *testing.T) (*frontier.Frontier, *failingSpill) {
	store, err := spill.Open(t.TempDir(), spill.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	s := &failingSpill{Spill: store}
	f := openFrontier(t, frontier.Options{Spill: s, Delay: frontier.FixedDelay(time.Millisecond), Prioritizer: frontier.PrioritizerFunc(refuseLinks)})
	return f, s
}

func TestStoreErrorBesideARefusedLinkEndsTheCrawl(t *testing.T) {
	f, s := openFailing(t)
	w := newWeb()
	w.always(seed, page("/bad", "/1"))
	var recorded atomic.Int64
	c := newCrawler(t, f, w, Options{
		Workers: 1, // another might ask again before the first has ended the run
		OnPage:  func(context.Context, *Page) error { s.broken.Store(true); return nil },
		OnDone: func(_ frontier.Lease, o frontier.Outcome) {
			if o.Result == frontier.Visited {
				recorded.Add(1)
			}
		},
	})
	c.store.long = 0
	_, err := c.Seed(t.Context(), seed)
	require.NoError(t, err)
	assert.ErrorIs(t, c.Run(t.Context()), errDisk)
	assert.Zero(t, recorded.Load(), "nothing was recorded")
	assert.Equal(t, 1, w.asks[seed])
	s.broken.Store(false)
	assert.EqualValues(t, 1, f.Stats().Waiting, "it waits again")
}

// While the store accepts no writes one worker at a time tries; nothing is lost, and each state is
// reported once.
func TestCrawlWaitsForItsStore(t *testing.T) {
	f, s := openFailing(t)
	w := newWeb()
	w.site("http://a.example", 20)
	w.site("http://b.example", 20)
	var log bytes.Buffer
	var pages, failing atomic.Int64
	var mu sync.Mutex
	ended := map[string]int{}
	c := newCrawler(t, f, w, Options{
		Workers: 8, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		OnPage: func(context.Context, *Page) error {
			switch {
			case s.broken.Load():
				if failing.Add(1) == 12 {
					s.broken.Store(false)
				}
			case pages.Add(1) == 5:
				s.broken.Store(true)
			}
			return nil
		},
		OnDone: func(l frontier.Lease, o frontier.Outcome) {
			if o.Result == frontier.Visited {
				mu.Lock()
				defer mu.Unlock()
				ended[l.Entry.URL]++
			}
		},
	})
	c.store.first = time.Millisecond
	_, err := c.Seed(t.Context(), "http://a.example/", "http://b.example/")
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context()))
	assert.GreaterOrEqual(t, len(ended), 40)
	for url, n := range ended {
		assert.Equal(t, 1, n, url)
	}
	assert.Zero(t, f.Stats().Waiting)
	assert.Equal(t, 1, strings.Count(log.String(), "the store fails"), log.String())
	assert.Equal(t, 1, strings.Count(log.String(), "the store works again"), log.String())
}

// A store that accepts small writes on a full disk does not work yet: that is reported once, and
// the crawl does not end as long as something is written.
func TestStoreThatTakesSomeWrites(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(0, 0)
	s := newStoreWait(slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
	for range 3 * int(storeLong/time.Second) {
		assert.True(t, s.failed(errDisk, false))
		now = now.Add(500 * time.Millisecond)
		s.worked()
		try, ok := s.acquire(t.Context())
		assert.True(t, try && ok, "the next one tries without a pause")
		s.release()
		now = now.Add(500 * time.Millisecond)
	}
	assert.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	now = now.Add(storeCalm * storeFirst)
	s.worked()
	try, ok := s.acquire(t.Context())
	assert.True(t, !try && ok)
	assert.Equal(t, 1, strings.Count(log.String(), "the store works again"), log.String())
	assert.True(t, s.failed(errDisk, false))
	now = now.Add(storeLong)
	assert.False(t, s.failed(errDisk, false), "nothing was written for long")
}

// Waiting does not help a store that must be opened again.
func TestStoreThatMustBeOpenedAgain(t *testing.T) {
	s := newStoreWait(slog.New(slog.DiscardHandler), time.Now)
	assert.False(t, s.failed(fmt.Errorf("the engine: %w", frontier.ErrReopen), false))
	try, ok := s.acquire(t.Context())
	assert.True(t, !try && ok)
}

func TestStoreErrorBesideARefusedSeedIsReported(t *testing.T) {
	f, s := openFailing(t)
	c := newCrawler(t, f, newWeb(), Options{})
	s.broken.Store(true)
	_, err := c.Seed(t.Context(), "mailto:x", seed+"bad", seed)
	s.broken.Store(false)
	assert.ErrorIs(t, err, errDisk)
	bad := frontier.EntryErrors(err)
	require.Len(t, bad, 2)
	assert.Equal(t, []int{0, 1}, []int{bad[0].Index, bad[1].Index})
}

func TestPriorityOutOfRangeAtDoneDoesNotEndTheCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.site("http://a.example", 2)
		w.pages[seed] = func(n int) answer {
			if n == 1 {
				return answer{status: 503}
			}
			return page("/1", "/2")
		}
		asked := 0
		p := crawl(t, w, frontier.Options{Prioritizer: frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int {
			if e.URL == seed {
				if asked++; asked > 1 {
					return 99
				}
			}
			return 1
		})}, Options{}, seed)
		assert.EqualValues(t, 3, p.Pages)
	})
}

// Links that the program's own Prioritizer loses are no bad links of the web: the operator hears of it.
func TestAWrongPrioritizerIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.always("http://a.example/", answer{status: 200, body: `<a href=/1>`})
		w.always("http://a.example/1", answer{status: 200, body: `<a href=/2><a href=/3>`})
		var log bytes.Buffer
		p := crawl(t, w, frontier.Options{
			Prioritizer: frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int { return 8 - 4*e.Depth }), // it counts from 0
		}, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, "http://a.example/")
		require.EqualValues(t, 2, p.Pages)
		require.Contains(t, log.String(), `level=ERROR msg="links of a page are lost: the Prioritizer is wrong" url=http://a.example/1`)
		require.Zero(t, p.Failed)
	})
}
