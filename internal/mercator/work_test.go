package mercator

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/stretchr/testify/require"
)

// TestWorkPerHandOutGrowsLikeALogarithm contacts every host twice. Between the
// two rounds all of them are in one heap.
func TestWorkPerHandOutGrowsLikeALogarithm(t *testing.T) {
	t.Run("bound hosts", func(t *testing.T) { workGrowsLikeALogarithm(t, 50*time.Second) })
	t.Run("parked hosts", func(t *testing.T) { workGrowsLikeALogarithm(t, time.Hour) })
}

func workGrowsLikeALogarithm(t *testing.T, delay time.Duration) {
	const few, many = 1_000, 100_000
	h1, s1 := workPerHandOut(t, few, int64(delay))
	h2, s2 := workPerHandOut(t, many, int64(delay))
	t.Logf("with %d hosts: %.2f positions in heaps and %.3f calls of the selector for each hand-out; with %d: %.2f and %.3f", few, h1, s1, many, h2, s2)
	require.Equal(t, 1., s1)
	require.Equal(t, 1., s2)
	levels := math.Log2(float64(many)/few) / 2
	require.Less(t, h2-h1, levels, "more than one for each level that the heap grew by")
}

// workPerHandOut counts how often an item of a heap takes a position, which all work that grows with
// the number of hosts does, and how often the selector is called.
func workPerHandOut(t *testing.T, hosts int, delay int64) (moved, asked float64) {
	const parkAfter = int64(time.Minute)
	random := selector.BiasedRandom(1)
	c := New(Config{Levels: 8, Quantum: 32, ParkAfter: parkAfter, Choose: func(available []int) (int, any) {
		asked++
		return random.Select(available), nil
	}})
	for i := range 2 {
		for h := range hosts {
			name := fmt.Sprintf("h%d.example", h)
			c.PushTail(c.QueueOf(c.Ensure(c.Hash([]byte(name)), name), 0, uint8(1+(h+i)%8)), c.Records.Store(uint64(i*hosts+h+1), benchURL()), 0)
		}
	}
	for _, h := range []*timeheap.Heap{&c.Pace, &c.Parks, &c.Idle, &c.Expiry, &c.Scheduled.Heap} {
		keep := h.Moved
		h.Moved = func(id uint32, i int) {
			moved++
			if keep != nil {
				keep(id, i)
			}
		}
	}
	now := int64(0)
	for n := range 2 * hosts {
		if n == hosts {
			require.Less(t, now, delay)
			if delay < parkAfter {
				require.Equal(t, hosts, c.Pace.Len())
			} else {
				require.Equal(t, hosts, c.Parks.Len())
			}
			require.Equal(t, 1000+delay, c.NextEvent(now), "the end of the first fetch, and the delay")
		}
		ch, ok, bad := c.Next(now, nil)
		if !ok {
			now = c.NextEvent(now)
			ch, ok, bad = c.Next(now, nil)
		}
		require.Nil(t, bad)
		require.True(t, ok)
		id := c.Lease(ch.Queue, uint64(n+1), now, now+int64(time.Minute))
		now += 1000
		l := c.EndLease(id)
		c.Records.Discard(l.Record)
		c.SettleLease(&l, now, clocks{lane: now + delay})
	}
	require.Zero(t, c.Stats.Waiting)
	return moved / float64(2*hosts), asked / float64(2*hosts)
}
