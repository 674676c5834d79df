package load

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
)

// While the disk is behind, calls wait for it. They are not refused because more came during a round than it
// moved: what came can be moved by the next.
func TestABurstWaitsForTheDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("1.3 million URLs: -short")
	}
	s, err := spill.Open(t.TempDir(), spill.Options{MemoryBudget: 64 << 20})
	require.NoError(t, err)
	f, err := frontier.Open(t.Context(), frontier.Options{Spill: s, MemoryBudget: 128 << 20})
	require.NoError(t, err)
	const callers, calls, urls, hosts = 64, 20, 1000, 1000
	var all sync.WaitGroup
	for w := range callers {
		all.Go(func() {
			for k := range calls {
				entries := make([]frontier.Entry, urls)
				for i := range entries {
					entries[i].URL = fmt.Sprintf("http://h%d.example/%d/%d/%d", i%hosts, w, k, i)
				}
				if _, err := f.Add(context.Background(), entries...); !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	all.Wait()
	if !t.Failed() {
		require.EqualValues(t, callers*calls*urls, f.Stats().Waiting)
	}
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
	require.NoError(t, s.Close())
}

// Hosts whose URLs are all done leave memory, though every call is refused for want of room, and so no
// commit takes their rows along.
func TestHostsThatAreDoneMakeRoom(t *testing.T) {
	s, err := spill.Open(t.TempDir(), spill.Options{MemoryBudget: 64 << 20})
	require.NoError(t, err)
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	f, err := frontier.Open(t.Context(), frontier.Options{Spill: s, MemoryBudget: s.Footprint() + 5<<20, Clock: clock, KeepOpen: true, Delay: frontier.FixedDelay(time.Second)})
	require.NoError(t, err)
	add := func(i int) error {
		_, err := f.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", i)})
		return err
	}
	n := 0
	for last := -1; last < n; { // until hosts alone fill the memory
		last = n
		for err = add(n); err == nil; err = add(n) {
			n++
		}
		require.ErrorIs(t, err, frontier.ErrFull)
		require.NoError(t, hook.Of(f).MoveNow(true))
	}
	require.Greater(t, n, 1000)
	for l, _, err := f.TryNext(); err == nil; l, _, err = f.TryNext() {
		require.NoError(t, f.Done(l, frontier.Outcome{RetryAfter: 30 * time.Second}))
	}
	require.NoError(t, hook.Of(f).MoveNow(true))
	clock.Advance(time.Minute)
	for range n / 100 {
		f.Stats() // hosts begin to leave
	}
	require.NoError(t, add(n))
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
	require.NoError(t, s.Close())
}
