// This file tests what rounds of moving make others wait for when they fail, and what they take and give back.

package durability

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
)

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
			OnEvent: func(e event.Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Kind == event.StoreError {
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
