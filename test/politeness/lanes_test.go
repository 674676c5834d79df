package politeness

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
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
	harness.InBothWorlds(t, twoLanes(), func(t *testing.T, w *harness.World) {
		w.Add(pages("a.example", 6)...)
		one := w.NextIs(0, "http://a.example/1")
		two := w.NextIs(0, "http://a.example/2")
		w.NothingUntil(time.Second)
		w.Fetched(one, 0, frontier.Outcome{})
		w.NothingUntil(5 * time.Second)
		w.Fetched(two, 0, frontier.Outcome{})
		three := w.NextIs(11*time.Second, "http://a.example/3")
		four := w.NextIs(15*time.Second, "http://a.example/4")
		w.Fetched(four, time.Second, frontier.Outcome{})  // at 16 s
		w.Fetched(three, time.Second, frontier.Outcome{}) // at 17 s
		w.NextIs(26*time.Second, "http://a.example/5")
		w.NextIs(27*time.Second, "http://a.example/6")
	})
}

func TestRetryAfterAndCrawlDelayHoldAllLanes(t *testing.T) {
	for name, o := range map[string]frontier.Outcome{
		"Retry-After": {RetryAfter: 30 * time.Second},
		"Crawl-delay": {CrawlDelay: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBothWorlds(t, twoLanes(), func(t *testing.T, w *harness.World) {
				w.Add(pages("a.example", 5)...)
				one, two := w.Next(), w.Next()
				w.Fetched(one, time.Second, frontier.Outcome{})
				w.Fetched(two, time.Second, o)
				w.NextIs(32*time.Second, "http://a.example/3")
				w.NextIs(32*time.Second, "http://a.example/4")
			})
		})
	}
}

func TestHandedBackLaneIsFreeAtOnce(t *testing.T) {
	harness.InBothWorlds(t, twoLanes(), func(t *testing.T, w *harness.World) {
		w.Add(pages("a.example", 3)...)
		one, two := w.Next(), w.Next()
		w.Fetched(two, time.Second, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		w.NextIs(time.Second, "http://a.example/2")
		w.Fetched(one, 0, frontier.Outcome{})
		w.NextIs(11*time.Second, "http://a.example/3")
	})
}

func TestConcurrencyOfAHostMayChange(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(10 * time.Second)}
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		w.Add(pages("a.example", 9)...)
		one := w.Next()
		w.NothingUntil(time.Second)
		require.NoError(t, w.F.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Concurrency = 3 }))
		two, three := w.NextIs(time.Second, "http://a.example/2"), w.NextIs(time.Second, "http://a.example/3")
		w.NothingUntil(2 * time.Second)
		require.NoError(t, w.F.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.Concurrency = 1 }))
		w.Fetched(one, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		w.NothingUntil(3 * time.Second)
		w.Fetched(two, 0, frontier.Outcome{}) // at 3 s
		w.NothingUntil(20 * time.Second)
		w.Fetched(three, 0, frontier.Outcome{}) // at 20 s
		w.NextIs(30*time.Second, "http://a.example/1")
	})
}

func TestContactTakesALane(t *testing.T) {
	harness.InBothWorlds(t, twoLanes(), func(t *testing.T, w *harness.World) {
		w.Add(pages("a.example", 3)...)
		w.NextIs(0, "http://a.example/1")
		l, err := w.F.Contact(context.Background(), "a.example")
		require.NoError(t, err)
		w.NothingUntil(time.Second)
		w.Fetched(l, 0, frontier.Outcome{})
		w.NextIs(11*time.Second, "http://a.example/2")
	})
}

func TestTwoContactsOfOneHostAtOnce(t *testing.T) {
	w := harness.NewWorld(t, twoLanes())
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			_, err := w.F.Contact(context.Background(), "a.example")
			require.NoError(t, err)
		})
	}
	calls.Wait()
}

func TestLanesLastThroughAReopening(t *testing.T) {
	w := harness.NewStoredWorld(t, twoLanes(), spill.Options{})
	w.Add(pages("a.example", 4)...)
	one, two := w.Next(), w.Next()
	w.Fetched(one, time.Second, frontier.Outcome{})
	w.Fetched(two, 3*time.Second, frontier.Outcome{}) // at 4 s
	w.Reopen()
	w.NextIs(14*time.Second, "http://a.example/3") // a reader knows one time of a host
	w.NextIs(14*time.Second, "http://a.example/4")
	w = w.Killed()
	require.Equal(t, 14*time.Second, w.At())
	w.NothingUntil(24 * time.Second)
	w.Next()
	w.Next()
}

func TestForgottenHostKeepsNoLanes(t *testing.T) {
	harness.InBothWorlds(t, twoLanes(), func(t *testing.T, w *harness.World) {
		w.Add(pages("a.example", 2)...)
		one, two := w.Next(), w.Next()
		w.Fetched(one, time.Second, frontier.Outcome{})
		w.Fetched(two, 3*time.Second, frontier.Outcome{}) // at 4 s
		w.Until(12 * time.Second)
		w.F.Stats()
		require.True(t, hook.Of(w.F).Resident("a.example"), "a lane keeps its distance until 14 s")
		w.Add("http://a.example/3", "http://a.example/4")
		w.Fetched(w.NextIs(12*time.Second, "http://a.example/3"), 0, frontier.Outcome{})
		w.Fetched(w.NextIs(14*time.Second, "http://a.example/4"), 0, frontier.Outcome{})
		w.Until(24 * time.Second)
		w.F.Stats()
		require.False(t, hook.Of(w.F).Resident("a.example"))
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
			require.NoError(t, hook.Of(f).MoveNow(true))
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
		harness.Ended(t, f)
	}
	t.Run("in memory", func(t *testing.T) {
		f, err := frontier.Open(context.Background(), o)
		require.NoError(t, err)
		test(t, f, false)
	})
	t.Run("on disk", func(t *testing.T) {
		w := harness.NewStoredWorld(t, o, spill.Options{})
		test(t, w.F, true)
	})
}

// A host with lanes that was contacted while no URL of it waited is remembered no longer
// than any other.
func TestContactedHostWithLanesLeavesMemory(t *testing.T) {
	o := twoLanes()
	o.KeepOpen = true
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		for i := range 20 {
			l, err := w.F.Contact(t.Context(), fmt.Sprintf("h%d.example", i))
			require.NoError(t, err)
			require.NoError(t, w.F.Check())
			w.Fetched(l, time.Second, frontier.Outcome{})
			require.NoError(t, w.F.Check())
		}
		w.Clock.Advance(48 * time.Hour)
		_, _, err := w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Zero(t, w.F.Stats().Hosts)
	})
}
