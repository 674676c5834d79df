// This file tests how blocks of scheduled URLs are read ahead of their time.

package durability

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// unreadable fails to read timed blocks until it is healed, or asked far too often.
type unreadable struct {
	storage.Spill
	asked  atomic.Int64
	healed atomic.Bool
}

const farTooOften = 10_000

func (u *unreadable) LoadTimed(id uint32, first int, fn func(int, storage.TimedRecord) bool) error {
	if u.asked.Add(1) < farTooOften && !u.healed.Load() {
		return harness.ErrDisk
	}
	return u.Spill.LoadTimed(id, first, fn)
}

// A block that cannot be read is left alone for a while, also when it is read long before
// anything in it is due.
func TestReaderWaitsAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := spilltest.OpenMemory(t, spill.Options{})
		u := &unreadable{Spill: m.Store}
		w := &harness.World{TB: t, Machine: m, Options: frontier.Options{Spill: u, Delay: frontier.FixedDelay(0)}}
		w.Open()
		due := time.Now().Add(time.Hour)
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/", NotBefore: due})
		require.NoError(t, err)
		require.NoError(t, hook.Of(w.F).MoveNow(false))
		time.AfterFunc(time.Until(due)+time.Minute, func() { u.healed.Store(true) })
		l, err := w.F.Next(t.Context())
		require.NoError(t, err)
		require.WithinDuration(t, due.Add(time.Minute), time.Now(), 5*time.Second, "it is read again in time")
		require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		n := u.asked.Load()
		require.Less(t, n, int64(20), "reads in 75 seconds")
		require.Greater(t, n, int64(10))
	})
}
