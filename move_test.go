// This file tests that rounds of moving end, whatever they move and whatever meets them.

package frontier_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
)

// Scheduled and waiting records are copied in portions of a number of bytes. What is left
// of one kind's last portion says nothing of the other's.
func TestRoundsEndWhateverTheyMove(t *testing.T) {
	for _, x := range []struct{ scheduled, meta int }{{256, 1 << 10}, {1700, 0}, {3400, 0}, {4096, 0}} {
		t.Run(fmt.Sprintf("%d scheduled with %d bytes", x.scheduled, x.meta), func(t *testing.T) {
			w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
			w.Mixed("first", x.scheduled, 1, 7, x.meta)
			w.Moves(false)
			require.Zero(t, w.F.Homeless())
		})
	}
	t.Run("any", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			w := harness.NewStoredWorld(t, frontier.Options{NoDedup: true}, spill.Options{})
			for round := range rapid.IntRange(1, 3).Draw(rt, "rounds") {
				w.Mixed(fmt.Sprint(round),
					rapid.IntRange(0, 3000).Draw(rt, "scheduled"), rapid.IntRange(0, 1000).Draw(rt, "waiting"),
					rapid.IntRange(1, 30).Draw(rt, "hosts"), rapid.SampledFrom([]int{0, 64, 256, 300, 1024, 4096}).Draw(rt, "meta"))
				w.Moves(rapid.Bool().Draw(rt, "evict"))
				require.Zero(rt, w.F.Homeless(), "a record has no home after a round")
			}
			require.NoError(rt, w.F.Check())
			require.NoError(rt, w.F.Close())
		})
	})
}

// A round of moving gives no home to a URL whose end is under way. If that fails after
// all, the round is off: its checkpoint would drop the log that has the URL.
func TestCommitFailsDuringARoundOfMoving(t *testing.T) {
	for name, o := range map[string]frontier.Outcome{"finished": {}, "tried again later": {Result: frontier.Failed}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, h := harness.HookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
				w.Add("http://a.example/")
				l := w.Next()
				gate, failed := make(chan struct{}), false
				h.Set(func(*storage.Batch) error {
					<-gate
					if failed {
						return nil
					}
					failed = true
					return harness.ErrDisk
				}, nil)
				done, moved := make(chan error, 1), make(chan error, 1)
				go func() { done <- w.F.Done(l, o) }()
				synctest.Wait()
				go func() { moved <- hook.Of(w.F).MoveNow(true) }()
				synctest.Wait()
				close(gate)
				require.ErrorIs(t, <-done, harness.ErrDisk)
				require.Error(t, <-moved)
				w.Add("http://b.example/")
				w = w.Killed()
				require.ElementsMatch(t, []string{"http://a.example/", "http://b.example/"}, w.Rest())
			})
		})
	}
}

// rounds counts the rounds that ended, and lets them fail when they are far too many.
type rounds struct {
	*harness.Hooked
	ended atomic.Int64
}

func (r *rounds) Checkpoint(c *storage.Checkpoint) error {
	if r.ended.Add(1) > 100 {
		return harness.ErrDisk
	}
	return r.Hooked.Checkpoint(c)
}

// Rounds that move nothing do not follow each other while a call waits for room: here
// what is in memory is deleted, and cannot be swept away before a read ends.
func TestRoundsThatMoveNothingMakeNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rounds{Hooked: &harness.Hooked{Spill: spilltest.OpenMemory(t, spill.Options{}).Store}}
		f, err := frontier.Open(t.Context(), frontier.Options{Spill: r, MemoryBudget: 64 << 20, Delay: frontier.FixedDelay(0)})
		require.NoError(t, err)
		add := func(host string, n int) error {
			entries := make([]frontier.Entry, n)
			for i := range entries {
				entries[i] = frontier.Entry{URL: fmt.Sprintf("http://%s/%d/%d", host, n, i), Meta: make([]byte, 16_000)}
			}
			_, err := f.Add(t.Context(), entries...)
			return err
		}
		require.NoError(t, add("a.example", 10))
		require.NoError(t, hook.Of(f).MoveNow(true))
		require.NoError(t, add("a.example", 440)) // of the 16 MiB that may be resident
		gate := make(chan struct{})
		r.Set(nil, func() { <-gate })
		next := harness.Start(func() (frontier.Lease, error) { return f.Next(t.Context()) })
		require.True(t, next.Waits(), "its host is being read")
		deleted := make(chan error, 1)
		go func() {
			_, err := f.Delete(t.Context(), scope.Host("a.example"))
			deleted <- err
		}()
		synctest.Wait()
		require.NotZero(t, f.Homeless())
		before := r.ended.Load()
		err = add("b.example", 490)
		require.ErrorIs(t, err, frontier.ErrFull)
		require.Regexp(t, `the 490 entries of the call take \d+ bytes of the \d+ that URLs may have in memory now; fewer at once may be admitted$`, err.Error(), "a call this large is told so")
		require.LessOrEqual(t, r.ended.Load()-before, int64(2))
		close(gate)
		require.NoError(t, <-deleted)
		require.NoError(t, add("b.example", 490), "there is room when the sweep has ended")
		require.False(t, next.Waits())
		require.ErrorIs(t, next.Err, frontier.ErrExhausted, "all was deleted")
		harness.Ended(t, f)
	})
}

// A round looks at what came since the last one, and at nothing twice, however many URLs
// of one host are in memory.
func TestRoundsLookAtEachRecordOnce(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{NoDedup: true, MemoryBudget: 1 << 30, Delay: frontier.FixedDelay(0)}, spill.Options{})
	const n = 20_000
	for round := range 4 {
		w.Mixed(fmt.Sprint(round), 0, n, 1, 0)
		before := w.F.Looked()
		w.Moves(false)
		require.Less(t, w.F.Looked()-before, uint64(n+n/10), "in round %d", round)
		require.Zero(t, w.F.Homeless())
		require.NoError(t, w.F.Check())
	}
	for i := range 5 { // what comes back to the head without a home gets one
		w.Mixed(fmt.Sprint("last", i), 0, 1, 1, 0)
		leases := []frontier.Lease{}
		for range 1000 {
			leases = append(leases, w.Next())
			w.Fetched(leases[len(leases)-1], 0, frontier.Outcome{Result: frontier.Requeue})
		}
		w.Moves(false)
		require.Zero(t, w.F.Homeless())
	}
}
