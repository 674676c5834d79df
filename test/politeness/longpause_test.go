// This file tests what a Scheduler of the caller's may do wrong, and a crawl whose
// URLs all became due while it was closed.

package politeness

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// After 60 days without a crawl everything is due. It is handed out politely, the URLs of each host
// in the order of their times, and is not loaded into memory at once.
func TestLongPause(t *testing.T) {
	const urls, hosts, delay, budget = 8_000, 160, 10 * time.Second, 24 << 20
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(delay), Priorities: 1, MemoryBudget: budget, NoDedup: true}, spill.Options{})
	var entries []frontier.Entry
	for i := range urls {
		// Those of a host are days apart, and in no order when they are added.
		k := i * 7919 % urls
		entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", k%hosts, k), NotBefore: harness.Dawn.Add(24*time.Hour + time.Duration(k)*(59*24*time.Hour/urls))})
	}
	_, err := w.F.Add(t.Context(), entries...)
	require.NoError(t, err)
	require.NoError(t, hook.Of(w.F).MoveNow(false)) // to disk, as happens in time
	harness.Ended(t, w.F)
	w.Until(61 * 24 * time.Hour)
	w.Open()
	last, free := map[string]int{}, map[string]time.Time{}
	seen, most := 0, int64(0)
	for {
		l, at, err := w.F.TryNext()
		if errors.Is(err, frontier.ErrExhausted) {
			break
		}
		if errors.Is(err, frontier.ErrNotDue) {
			w.Clock.Set(at)
			continue
		}
		require.NoError(t, err)
		now, n := w.Clock.Now(), 0
		_, err = fmt.Sscanf(l.Entry.URL, "http://"+l.Host+"/%d", &n)
		require.NoError(t, err)
		require.False(t, now.Before(free[l.Host]), "%s is contacted too early", l.Host)
		require.True(t, last[l.Host] <= n, "%s comes before %d", l.Entry.URL, last[l.Host])
		last[l.Host], free[l.Host] = n, now.Add(delay)
		require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		if seen++; seen%500 == 0 {
			s := w.F.Stats()
			require.Less(t, s.MemoryBytes, int64(budget))
			most = max(most, s.Resident)
		}
	}
	require.Equal(t, urls, seen)
	require.Less(t, most, int64(budget)/8)
	require.Equal(t, 61*24*time.Hour+(urls/hosts-1)*delay, w.At(), "and as soon as politeness allows")
}

// A Scheduler that panics does so in the goroutine that called it. The lease is out as before, and
// the frontier continues.
func TestASchedulerThatPanics(t *testing.T) {
	faulty := true
	o := frontier.Options{Delay: frontier.FixedDelay(0), Scheduler: frontier.SchedulerFunc(func(frontier.Visit) time.Time {
		if faulty {
			panic("no idea")
		}
		return time.Time{}
	})}
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		faulty = true
		w.Add("http://a.example/1", "http://b.example/1")
		l := w.Next()
		require.PanicsWithValue(t, "no idea", func() { _ = w.F.Done(l, frontier.Outcome{}) })
		require.EqualValues(t, 1, w.F.Stats().Leased)
		require.NoError(t, w.F.Check())
		other := w.Next()
		faulty = false
		w.Fetched(l, 0, frontier.Outcome{})
		w.Fetched(other, 0, frontier.Outcome{})
		w.Over()
	})
}
