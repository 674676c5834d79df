// This file measures how long the lock is held with many hosts in one group.

package frontier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// All hosts are in one group, and all are bound when the first of them is looked
// for; see TestHoldsUnderLoad for how long the lock was held.
func TestHoldsOfOneGroup(t *testing.T) {
	n := 500
	if frontier.HoldsWatched {
		n = 100_000
	}
	f, err := frontier.Open(t.Context(), frontier.Options{
		Delay: frontier.FixedDelay(0), GroupDelay: frontier.FixedDelay(time.Nanosecond), MemoryBudget: 1 << 30,
	})
	require.NoError(t, err)
	defer harness.Ended(t, f)
	l := holdsLoad{t: t, f: f, holds: f.WatchHolds()}
	name := func(i int) string { return fmt.Sprintf("h%d.example", i) }
	for i := 0; i < n; i += 500 {
		var batch []frontier.Entry
		for j := range 500 {
			batch = append(batch, frontier.Entry{URL: "http://" + name(i+j) + "/"})
		}
		_, err := f.Add(t.Context(), batch...)
		require.NoError(t, err)
	}
	l.tell("Add")
	for i := range n {
		require.NoError(t, f.Assign(name(i), "g"))
	}
	l.tell("Assign")
	x, err := f.Next(t.Context())
	require.NoError(t, err)
	l.tell("the first Next")
	require.Equal(t, "g", x.Group)
	_, _, err = f.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	l.tell("binding all others, in vain")
	require.NoError(t, f.Done(x, frontier.Outcome{}))
	for range n/10 - 1 {
		x, err := f.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, f.Done(x, frontier.Outcome{}))
	}
	l.tell("Next and Done")
	require.NoError(t, f.SetGroup("g", frontier.GroupSettings{Concurrency: 1000}))
	for range n / 10 {
		x, err := f.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, f.Join(&x, "other"+x.Host))
		require.NoError(t, f.Done(x, frontier.Outcome{}))
	}
	l.tell("a thousand slots, Join")
	require.EqualValues(t, n-n/5, f.Stats().Waiting)
}
