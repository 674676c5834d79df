// This file tests that rounds of moving end, whatever they move and whatever meets them.

package frontier_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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

// unpackable fails to write blocks until it is healed.
type unpackable struct {
	storage.Spill
	healed atomic.Bool
	tried  func()
}

func (u *unpackable) Pack(gen uint32, runs []storage.Run) ([][]storage.Part, error) {
	if !u.healed.Load() {
		u.tried()
		return nil, harness.ErrDisk
	}
	return u.Spill.Pack(gen, runs)
}

// A round that fails is tried again after a pause, which grows, however many commits want
// it. Nobody waits for that: Add says that there is no room, and Close ends the pause.
func TestFailedRoundsWaitForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unpackable{Spill: spilltest.OpenMemory(t, spill.Options{}).Store}
		var mu sync.Mutex
		var tries []time.Duration
		told := 0
		dawn := time.Now()
		u.tried = func() {
			mu.Lock()
			defer mu.Unlock()
			tries = append(tries, time.Since(dawn).Round(time.Second))
		}
		f, err := frontier.Open(t.Context(), frontier.Options{
			Spill: u, MemoryBudget: 24 << 20, NoDedup: true, KeepOpen: true, Delay: frontier.FixedDelay(0),
			OnEvent: func(e frontier.Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Kind == frontier.EventStoreError {
					told++
				}
			},
		})
		require.NoError(t, err)
		lot := func(name string) []frontier.Entry {
			entries := make([]frontier.Entry, 100)
			for i := range entries {
				entries[i] = frontier.Entry{URL: fmt.Sprintf("http://%s-%d.example/", name, i), Meta: make([]byte, 1000)}
			}
			return entries
		}
		for n := 0; err == nil; n++ { // until memory is full
			_, err = f.Add(t.Context(), lot(fmt.Sprint(n))...)
		}
		require.ErrorIs(t, err, frontier.ErrFull)
		for range 10 * 60 * 10 { // a commit each 100 ms for ten minutes
			time.Sleep(100 * time.Millisecond)
			at := time.Now()
			l, err := f.Next(t.Context())
			require.NoError(t, err)
			require.NoError(t, f.Done(l, frontier.Outcome{Result: frontier.Failed}))
			if _, err = f.Add(t.Context(), lot("more")...); err != nil {
				require.ErrorIs(t, err, frontier.ErrFull)
			}
			require.Zero(t, time.Since(at), "somebody waits for a pause")
		}
		mu.Lock()
		require.InDelta(t, 15, len(tries), 2, "a round for each pause: %v", tries)
		for i := 2; i < len(tries); i++ {
			require.GreaterOrEqual(t, tries[i]-tries[i-1], min(tries[i-1]-tries[i-2], time.Minute), "pauses grow: %v", tries)
		}
		require.Equal(t, 1, told, "as long as they fail it is one trouble")
		mu.Unlock()

		u.healed.Store(true)
		time.Sleep(time.Minute + time.Second)
		_, err = f.Add(t.Context(), lot("last")...)
		require.NoError(t, err, "the next round made room, without a commit to ask for it")
		harness.Ended(t, f)

		u.healed.Store(false)
		f, err = frontier.Open(t.Context(), frontier.Options{Spill: u, MemoryBudget: 24 << 20, NoDedup: true, KeepOpen: true})
		require.NoError(t, err)
		for n := 0; err == nil; n++ {
			_, err = f.Add(t.Context(), lot(fmt.Sprint("again", n))...)
		}
		synctest.Wait()
		at := time.Now()
		harness.Ended(t, f)
		require.Zero(t, time.Since(at), "Close waits for a pause")
	})
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

// Rounds that move nothing do not follow each other while somebody waits for room: here
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
			_, err := f.Delete(t.Context(), frontier.Host("a.example"))
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

// foreseeing is a store that says at each checkpoint that it needs more memory for what it does
// next, and has done that when it is asked again.
type foreseeing struct {
	storage.Spill
	next atomic.Int64
}

func (x *foreseeing) Footprint() int64 { return x.Spill.Footprint() + x.next.Swap(0) }

func (x *foreseeing) Checkpoint(c *storage.Checkpoint) error {
	x.next.Store(3 << 20)
	return x.Spill.Checkpoint(c)
}

// What is done takes no memory that refuses an Add, though nothing else is called that would
// give it back: hosts leave, and the store is asked what it takes by now.
func TestWhatIsDoneRefusesNoAdd(t *testing.T) {
	for name, end := range map[string]frontier.Outcome{"nothing is learned": {}, "something is learned": {CrawlDelay: 10 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			x := &foreseeing{Spill: spilltest.OpenMemory(t, spill.Options{}).Store}
			w := &harness.World{TB: t, Clock: simclock.New(harness.Dawn), Options: frontier.Options{
				Spill: x, MemoryBudget: x.Footprint() + 5<<20, Keep: true, Count: true, KeepOpen: true,
			}}
			w.Options.Clock = w.Clock
			w.Open()
			const hosts = 6000
			for round := range 12 {
				entries := make([]frontier.Entry, hosts)
				for i := range entries {
					entries[i].URL = fmt.Sprintf("http://h%d-%d.example/", round, i)
				}
				n, err := w.F.Add(t.Context(), entries...)
				require.NoError(t, err, "round %d", round)
				require.Equal(t, hosts, n)
				ends := make([]frontier.End, hosts)
				for i := range ends {
					ends[i] = frontier.End{Lease: w.Next(), Outcome: end}
				}
				for _, e := range w.F.DoneAll(t.Context(), ends) {
					require.NoError(t, e.Err)
				}
				w.Clock.Advance(time.Minute)
				w.Moves(false)
			}
		})
	}
}
