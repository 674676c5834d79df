// This file tests that rounds of moving end, whatever they move and whatever meets them.

package frontier_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// moves does a round of moving, which must end.
func (w *world) moves(evict bool) {
	w.Helper()
	ended := make(chan error, 1)
	go func() { ended <- w.f.MoveNow(evict) }()
	select {
	case err := <-ended:
		require.NoError(w, err)
	case <-time.After(time.Minute):
		require.FailNow(w, "a round of moving does not end")
	}
}

// mixed adds scheduled URLs and others that wait, with so many bytes of Meta.
func (w *world) mixed(name string, scheduled, waiting, hosts, meta int) {
	w.Helper()
	entries := make([]frontier.Entry, scheduled+waiting)
	for i := range entries {
		entries[i] = frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%s/%d", i%hosts, name, i), Meta: make([]byte, meta)}
		if i < scheduled {
			entries[i].NotBefore = dawn.Add(day + time.Duration(i)*time.Second)
		}
	}
	_, err := w.f.Add(context.Background(), entries...)
	require.NoError(w, err)
}

// Scheduled and waiting records are copied in portions of a number of bytes. What is left
// of one kind's last portion says nothing of the other's.
func TestRoundsEndWhateverTheyMove(t *testing.T) {
	for _, x := range []struct{ scheduled, meta int }{{256, 1 << 10}, {1700, 0}, {3400, 0}, {4096, 0}} {
		t.Run(fmt.Sprintf("%d scheduled with %d bytes", x.scheduled, x.meta), func(t *testing.T) {
			w := newStoredWorld(t, frontier.Options{}, spill.Options{})
			w.mixed("first", x.scheduled, 1, 7, x.meta)
			w.moves(false)
			require.Zero(t, w.f.Homeless())
		})
	}
	t.Run("any", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			w := newStoredWorld(t, frontier.Options{NoDedup: true}, spill.Options{})
			for round := range rapid.IntRange(1, 3).Draw(rt, "rounds") {
				w.mixed(fmt.Sprint(round),
					rapid.IntRange(0, 3000).Draw(rt, "scheduled"), rapid.IntRange(0, 1000).Draw(rt, "waiting"),
					rapid.IntRange(1, 30).Draw(rt, "hosts"), rapid.SampledFrom([]int{0, 64, 256, 300, 1024, 4096}).Draw(rt, "meta"))
				w.moves(rapid.Bool().Draw(rt, "evict"))
				require.Zero(rt, w.f.Homeless(), "a record has no home after a round")
			}
			require.NoError(rt, w.f.Check())
			require.NoError(rt, w.f.Close())
		})
	})
}

// A round of moving gives no home to a URL whose end is under way. If that fails after
// all, the round is off: its checkpoint would drop the log that has the URL.
func TestCommitFailsDuringARoundOfMoving(t *testing.T) {
	for name, o := range map[string]frontier.Outcome{"finished": {}, "tried again later": {Result: frontier.Failed}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, h := hookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
				w.add("http://a.example/")
				l := w.next()
				gate, failed := make(chan struct{}), false
				h.set(func(*frontier.Batch) error {
					<-gate
					if failed {
						return nil
					}
					failed = true
					return errDisk
				}, nil)
				done, moved := make(chan error, 1), make(chan error, 1)
				go func() { done <- w.f.Done(l, o) }()
				synctest.Wait()
				go func() { moved <- w.f.MoveNow(true) }()
				synctest.Wait()
				close(gate)
				require.ErrorIs(t, <-done, errDisk)
				require.Error(t, <-moved)
				w.add("http://b.example/")
				w = w.killed()
				require.ElementsMatch(t, []string{"http://a.example/", "http://b.example/"}, w.rest())
			})
		})
	}
}
