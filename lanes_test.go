package frontier_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

// twoLanes are options with which a host may have two leases, and every contact
// is followed by ten seconds.
func twoLanes() frontier.Options {
	return frontier.Options{HostConcurrency: 2, Delay: frontier.FixedDelay(10 * time.Second)}
}

func pages(host string, n int) []string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://%s/%d", host, i+1)
	}
	return urls
}

func TestEachLaneKeepsItsOwnDistance(t *testing.T) {
	inBothWorlds(t, twoLanes(), func(t *testing.T, w *world) {
		w.add(pages("a.example", 6)...)
		one := w.nextIs(0, "http://a.example/1")
		two := w.nextIs(0, "http://a.example/2")
		w.nothingUntil(time.Second)
		w.fetched(one, 0, frontier.Outcome{})
		w.nothingUntil(5 * time.Second)
		w.fetched(two, 0, frontier.Outcome{})
		three := w.nextIs(11*time.Second, "http://a.example/3")
		four := w.nextIs(15*time.Second, "http://a.example/4")
		w.fetched(four, time.Second, frontier.Outcome{})  // at 16 s
		w.fetched(three, time.Second, frontier.Outcome{}) // at 17 s
		w.nextIs(26*time.Second, "http://a.example/5")
		w.nextIs(27*time.Second, "http://a.example/6")
	})
}

func TestRetryAfterAndCrawlDelayHoldAllLanes(t *testing.T) {
	for name, o := range map[string]frontier.Outcome{
		"Retry-After": {RetryAfter: 30 * time.Second},
		"Crawl-delay": {CrawlDelay: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBothWorlds(t, twoLanes(), func(t *testing.T, w *world) {
				w.add(pages("a.example", 5)...)
				one, two := w.next(), w.next()
				w.fetched(one, time.Second, frontier.Outcome{})
				w.fetched(two, time.Second, o)
				w.nextIs(32*time.Second, "http://a.example/3")
				w.nextIs(32*time.Second, "http://a.example/4")
			})
		})
	}
}

func TestHandedBackLaneIsFreeAtOnce(t *testing.T) {
	inBothWorlds(t, twoLanes(), func(t *testing.T, w *world) {
		w.add(pages("a.example", 3)...)
		one, two := w.next(), w.next()
		w.fetched(two, time.Second, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		w.nextIs(time.Second, "http://a.example/2")
		w.fetched(one, 0, frontier.Outcome{})
		w.nextIs(11*time.Second, "http://a.example/3")
	})
}

func TestConcurrencyOfAHostMayChange(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(10 * time.Second)}
	inBothWorlds(t, o, func(t *testing.T, w *world) {
		w.add(pages("a.example", 9)...)
		one := w.next()
		w.nothingUntil(time.Second)
		require.NoError(t, w.f.SetConcurrency(frontier.Domain("example"), 3))
		two, three := w.nextIs(time.Second, "http://a.example/2"), w.nextIs(time.Second, "http://a.example/3")
		w.nothingUntil(2 * time.Second)
		require.NoError(t, w.f.SetConcurrency(frontier.Host("a.example"), 1))
		w.fetched(one, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		w.nothingUntil(3 * time.Second)
		w.fetched(two, 0, frontier.Outcome{}) // at 3 s
		w.nothingUntil(20 * time.Second)
		w.fetched(three, 0, frontier.Outcome{}) // at 20 s
		w.nextIs(30*time.Second, "http://a.example/1")
	})
}

func TestContactTakesALane(t *testing.T) {
	inBothWorlds(t, twoLanes(), func(t *testing.T, w *world) {
		w.add(pages("a.example", 3)...)
		w.nextIs(0, "http://a.example/1")
		l, err := w.f.Contact(context.Background(), "a.example")
		require.NoError(t, err)
		w.nothingUntil(time.Second)
		w.fetched(l, 0, frontier.Outcome{})
		w.nextIs(11*time.Second, "http://a.example/2")
	})
}

func TestTwoContactsOfOneHostAtOnce(t *testing.T) {
	w := newWorld(t, twoLanes())
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			_, err := w.f.Contact(context.Background(), "a.example")
			require.NoError(t, err)
		})
	}
	calls.Wait()
}

func TestLanesLastThroughAReopening(t *testing.T) {
	w := newStoredWorld(t, twoLanes(), spill.Options{})
	w.add(pages("a.example", 4)...)
	one, two := w.next(), w.next()
	w.fetched(one, time.Second, frontier.Outcome{})
	w.fetched(two, 3*time.Second, frontier.Outcome{}) // at 4 s
	w.reopen()
	w.nextIs(14*time.Second, "http://a.example/3") // a reader knows one time of a host
	w.nextIs(14*time.Second, "http://a.example/4")
	w = w.killed()
	require.Equal(t, 14*time.Second, w.at())
	w.nothingUntil(24 * time.Second)
	w.next()
	w.next()
}

func TestForgottenHostKeepsNoLanes(t *testing.T) {
	inBothWorlds(t, twoLanes(), func(t *testing.T, w *world) {
		w.add(pages("a.example", 2)...)
		one, two := w.next(), w.next()
		w.fetched(one, time.Second, frontier.Outcome{})
		w.fetched(two, 3*time.Second, frontier.Outcome{}) // at 4 s
		w.until(12 * time.Second)
		w.f.Stats()
		require.True(t, w.f.Resident("a.example"), "a lane keeps its distance until 14 s")
		w.add("http://a.example/3", "http://a.example/4")
		w.fetched(w.nextIs(12*time.Second, "http://a.example/3"), 0, frontier.Outcome{})
		w.fetched(w.nextIs(14*time.Second, "http://a.example/4"), 0, frontier.Outcome{})
		w.until(24 * time.Second)
		w.f.Stats()
		require.False(t, w.f.Resident("a.example"))
	})
}

func TestWorkersShareTheLanesOfAHost(t *testing.T) {
	o := frontier.Options{HostConcurrency: 4, Delay: frontier.FixedDelay(0)}
	test := func(t *testing.T, f *frontier.Frontier, evict bool) {
		var entries []frontier.Entry
		for _, u := range pages("a.example", 300) {
			entries = append(entries, frontier.Entry{URL: u})
		}
		_, err := f.Add(context.Background(), entries...)
		require.NoError(t, err)
		if evict {
			require.NoError(t, f.MoveNow(true))
		}
		var out, most, done atomic.Int64
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				for l, err := range f.Leases(context.Background()) {
					require.NoError(t, err)
					n := out.Add(1)
					require.LessOrEqual(t, n, int64(4))
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					for most.Load() < 4 && done.Load() < 280 { // the others find lanes
						runtime.Gosched()
					}
					out.Add(-1)
					done.Add(1)
					require.NoError(t, f.Done(l, frontier.Outcome{}))
				}
			})
		}
		workers.Wait()
		require.EqualValues(t, 4, most.Load())
		require.EqualValues(t, 300, done.Load())
		ended(t, f)
	}
	t.Run("in memory", func(t *testing.T) {
		f, err := frontier.Open(context.Background(), o)
		require.NoError(t, err)
		test(t, f, false)
	})
	t.Run("on disk", func(t *testing.T) {
		w := newStoredWorld(t, o, spill.Options{})
		test(t, w.f, true)
	})
}
