package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/lab/realurls"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// TestEveryRealURLComesOutOnce adds real URLs and drains them with a virtual
// clock. Its log says what that cost.
func TestEveryRealURLComesOutOnce(t *testing.T) {
	n := 50_000
	switch {
	case *harness.Long:
		n = 1_000_000
	case harness.RaceEnabled, testing.Short():
		n = 10_000
	}
	urls := realurls.Load(t, n, 1)
	t.Run("in memory", func(t *testing.T) {
		w := harness.NewWorld(t, drainOptions)
		drain(t, w, urls)
	})
	onBadger := func(budget func(footprint int64) int64) func(*testing.T) {
		return func(t *testing.T) {
			s, err := spill.Open(t.TempDir(), spill.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			w := &harness.World{TB: t, Clock: simclock.New(harness.Dawn), Options: drainOptions}
			w.Options.Clock, w.Options.Spill, w.Options.MemoryBudget = w.Clock, s, budget(s.Footprint())
			w.Open()
			drain(t, w, urls)
		}
	}
	t.Run("on badger", onBadger(func(int64) int64 { return 0 }))
	t.Run("on badger, with memory for few of them", onBadger(func(footprint int64) int64 {
		return footprint + 8<<20 + int64(n)*52
	}))
}

var drainOptions = frontier.Options{
	Delay: frontier.FixedDelay(time.Second),
	// Depth is the URL's number here.
	Prioritizer: frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int { return 1 + e.Depth%8 }),
}

func drain(t *testing.T, w *harness.World, urls []string) {
	ctx := context.Background()
	debug.FreeOSMemory()
	begun, cpu := time.Now(), harness.CPUTime()
	before := harness.ResidentMemory()
	budget := w.Options.MemoryBudget
	switch {
	case budget == 0 && w.Options.Spill == nil:
		budget = 256 << 20
	case budget == 0:
		budget = 512 << 20
	}
	var peak, peakStats atomic.Int64
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			peak.Store(max(peak.Load(), harness.ResidentMemory()))
			peakStats.Store(max(peakStats.Load(), w.F.Stats().MemoryBytes))
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	defer func() {
		close(stop)
		watch.Wait()
		t.Logf("at most %d MiB of memory beyond %d MiB before; at most %d MiB by Stats, the budget is %d MiB",
			(peak.Load()-before)>>20, before>>20, peakStats.Load()>>20, budget>>20)
		require.LessOrEqual(t, peakStats.Load(), budget)
	}()
	report := func(what string, n int, begun time.Time, cpu time.Duration) {
		wall, cpu := time.Since(begun), harness.CPUTime()-cpu
		t.Logf("%s %d URLs: %.0f URLs/s, %.2f us of CPU each; %d MiB by Stats",
			what, n, float64(n)/wall.Seconds(), float64(cpu.Nanoseconds())/1e3/float64(n), w.F.Stats().MemoryBytes>>20)
	}

	added := 0
	refused := map[int]bool{}
	batch := make([]frontier.Entry, 0, 1000)
	for i, u := range urls {
		batch = append(batch, frontier.Entry{URL: u, Depth: i})
		if len(batch) < cap(batch) && i+1 < len(urls) {
			continue
		}
		k, err := w.F.Add(ctx, batch...)
		bad := frontier.EntryErrors(err)
		for _, e := range bad {
			refused[batch[e.Index].Depth] = true
			t.Log(e)
		}
		require.Equal(t, len(batch), k+len(bad), "%v", err)
		added += k
		batch = batch[:0]
	}
	report("added", added, begun, cpu)
	require.Less(t, len(refused), len(urls)/1000, "only URLs that do not parse are refused")

	begun, cpu = time.Now(), harness.CPUTime()
	times := make([]uint8, len(urls))
	var leases []frontier.Lease
	for {
		l, at, err := w.F.TryNext()
		if err == nil {
			i := l.Entry.Depth
			if l.Entry.URL != urls[i] {
				require.Equal(t, urls[i], l.Entry.URL)
			}
			times[i]++
			if leases = append(leases, l); len(leases) < 1000 {
				continue
			}
		}
		if len(leases) > 0 {
			callers, each := sync.WaitGroup{}, len(leases)
			if w.Options.Spill != nil {
				each = (len(leases) + 63) / 64 // number of callers that share commits
			}
			for from := 0; from < len(leases); from += each {
				callers.Go(func() {
					for _, l := range leases[from:min(from+each, len(leases))] {
						if err := w.F.Done(l, frontier.Outcome{}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			callers.Wait()
			leases = leases[:0]
			continue
		}
		if errors.Is(err, frontier.ErrExhausted) {
			break
		}
		require.ErrorIs(t, err, frontier.ErrNotDue)

		w.Clock.Set(at)
	}
	report("drained", added, begun, cpu)
	for i, n := range times {
		want := uint8(1)
		if refused[i] {
			want = 0
		}
		if n != want {
			require.Equal(t, want, n, "%s", urls[i])
		}
	}
	require.EqualValues(t, added, w.F.Stats().Known)
	t.Logf("%d were refused; the crawl took %v", len(refused), w.At())
}

// A crawl that only ends URLs ends its log too, and gives its place on disk back.
func TestLogOfADrainedCrawlGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
		meta := make([]byte, 2<<10)
		_, _ = rand.NewChaCha8([32]byte{}).Read(meta)
		for i := range 50 {
			w.AddEach(func(yield func(frontier.Entry) bool) {
				for _, u := range harness.UrlsOf(fmt.Sprintf("host%d.example", i), 100) {
					meta[0]++ // each batch has all of it
					yield(frontier.Entry{URL: u, Meta: meta})
				}
			})
		}
		log := func() (size int) {
			synctest.Wait() // for a round of moving
			w.Machine.Kill(t).Damage(func(k, v []byte) []byte {
				if k[4] == 'L' {
					size += len(v)
				}
				return v
			})
			return size
		}
		full := log()
		for range 5000 {
			w.Fetched(w.Next(), 0, frontier.Outcome{})
		}
		w.Over()
		require.Less(t, log(), full/8, "bytes of log, of %d", full)
	})
}
