// This file runs the goroutine that gives space back, in virtual time.

package spill

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/kvtest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wasting is an engine that has something to reclaim as long as left is positive.
type wasting struct {
	kv.DB
	left  atomic.Int64 // calls of Reclaim that find something
	calls []time.Time
	steps int // in each call
	ended int // calls that were ended early
	fault error
}

func (w *wasting) Wasteful() bool { return w.left.Load() > 0 }

func (w *wasting) Reclaim(pause func() bool) error {
	w.calls = append(w.calls, time.Now())
	for range w.steps {
		if !pause() {
			w.ended++
			return nil
		}
	}
	w.left.Add(-1)
	return w.fault
}

// passHour lets an hour pass, and what happened in it be seen.
func passHour() {
	time.Sleep(time.Hour)
	synctest.Wait()
}

func TestSpaceIsGivenBackInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wasting{DB: kvtest.NewDisk(), steps: 10}
		s, err := newStore(w, Options{}.withDefaults(), false)
		require.NoError(t, err)
		require.NoError(t, s.Recover(t.Context(), nobody{}))
		passHour()
		require.Empty(t, w.calls, "nothing to do")

		w.left.Store(3)
		require.NoError(t, s.Commit(&storage.Batch{ID: 1}))
		start := time.Now()
		passHour()
		require.Len(t, w.calls, 3, "no checkpoint, no caller")
		assert.Zero(t, w.calls[0].Sub(start))
		for i := range 2 {
			assert.Equal(t, reclaimEvery+10*reclaimPause, w.calls[i+1].Sub(w.calls[i]))
		}

		w.left.Store(1)
		w.steps = 1 << 40 // the goroutine waits for work
		require.NoError(t, s.Commit(&storage.Batch{ID: 2}))
		passHour()
		require.Len(t, w.calls, 4)
		require.NoError(t, s.Release(), "need not wait")
		closing := time.Now()
		require.NoError(t, s.Close())
		assert.Zero(t, time.Since(closing))
		assert.Equal(t, 1, w.ended)
	})
}

func TestFaultsOfGivingBackAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wasting{DB: kvtest.NewDisk(), fault: errors.New("fault")}
		w.left.Store(1 << 40)
		s, err := newStore(w, Options{}.withDefaults(), false)
		require.NoError(t, err)
		passHour()
		assert.Len(t, w.calls, 60)
		require.NoError(t, s.Close())
	})
}
