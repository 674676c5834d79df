package frontier_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

// packing is a Spill that calls packed after each Pack.
type packing struct {
	frontier.Spill
	packed func()
}

func (p *packing) Pack(gen uint32, runs []frontier.Run) ([][]frontier.Part, error) {
	parts, err := p.Spill.Pack(gen, runs)
	if p.packed != nil {
		p.packed()
	}
	return parts, err
}

func TestBlockIsKeptIfOnlyItsFirstURLsEndedDuringTheMove(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{}, spill.Options{})
	store := &packing{Spill: w.machine.Store}
	require.NoError(t, w.f.Close())
	w.opts.Spill, w.opts.Prioritizer, w.opts.Selector = store, byWeight, frontier.Strict()
	w.open()
	w.addEach(func(yield func(frontier.Entry) bool) {
		yield(frontier.Entry{URL: "http://first.example/", Weight: 8}) // first in the block too
		for _, u := range urlsOf("second.example", 10) {
			yield(frontier.Entry{URL: u, Weight: 1})
		}
	})
	l := w.next()
	require.Equal(t, "first.example", l.Host)
	store.packed = func() { require.NoError(t, w.f.Done(l, frontier.Outcome{})) }
	require.NoError(t, w.f.MoveNow(true))
	store.packed = nil
	w.addEach(func(yield func(frontier.Entry) bool) { // with it, the store is told which blocks may go
		yield(frontier.Entry{URL: "http://first.example/2", Weight: 8})
	})
	require.NoError(t, w.f.MoveNow(true))
	for range 11 {
		w.fetched(w.next(), 0, frontier.Outcome{})
	}
	w.over()
}

// TestEveryURLIsVisitedOnceByManyWorkersOverLittleMemory lets workers, commits
// and moves meet in every order that there is time for.
func TestEveryURLIsVisitedOnceByManyWorkersOverLittleMemory(t *testing.T) {
	const workers, hosts = 16, 300
	seeds, links := 20_000, 3
	if raceEnabled || testing.Short() {
		seeds = 5_000
	}
	ctx := context.Background()
	w := &world{TB: t, machine: spilltest.OpenMemory(t, spill.Options{})}
	store := &packing{Spill: w.machine.Store, packed: runtime.Gosched}
	w.opts = frontier.Options{
		Spill: store, MemoryBudget: 9 << 20, Delay: frontier.FixedDelay(0), Quantum: 4,
		Retry: frontier.Retries(100, 0), Quarantine: frontier.Quarantine{Disabled: true},
	}
	w.open()
	entry := func(r *rand.Rand, n int) frontier.Entry {
		h := r.IntN(hosts)
		return frontier.Entry{
			URL:   fmt.Sprintf("http://h%d.example/%d?%0200d", h*h/hosts, n, 0),
			Depth: r.IntN(8),
			Meta:  binary.LittleEndian.AppendUint32(nil, uint32(n)),
		}
	}
	r := rand.New(rand.NewPCG(1, 0))
	for from := 0; from < seeds; from += 100 {
		var batch []frontier.Entry
		for n := from; n < from+100; n++ {
			batch = append(batch, entry(r, n))
		}
		_, err := w.f.Add(ctx, batch...)
		require.NoError(t, err)
	}
	visits := make([]atomic.Int32, seeds*(1+links))
	var made atomic.Int64
	made.Store(int64(seeds))
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(i)))
			for l, err := range w.f.Leases(ctx) {
				if err != nil {
					t.Error(err)
					return
				}
				n := int(binary.LittleEndian.Uint32(l.Entry.Meta))
				o := frontier.Outcome{}
				switch x := r.IntN(10); {
				case x == 0:
					o.Result = frontier.Failed
				case x == 1:
					o.Result = frontier.Requeue
				case n < seeds:
					for range links {
						o.Add = append(o.Add, entry(r, int(made.Add(1)-1)))
					}
					fallthrough
				default:
					visits[n].Add(1)
				}
				if err := w.f.Done(l, o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for n := range visits {
		if got := visits[n].Load(); got != 1 {
			require.EqualValues(t, 1, got, "visits of URL %d", n)
		}
	}
	st := w.f.Stats()
	require.Zero(t, st.Waiting+st.Scheduled+st.Leased+st.Unreadable)
	t.Logf("%+v", st)
}

// packingTimed is a Spill that calls packed after each PackTimed.
type packingTimed struct {
	frontier.Spill
	packed func()
}

func (p *packingTimed) PackTimed(gen uint32, records []frontier.TimedRecord) ([]frontier.TimedBlock, error) {
	blocks, err := p.Spill.PackTimed(gen, records)
	p.packed()
	return blocks, err
}

// A URL that comes while a round moves others is moved by the next one: the log that has
// it is not kept for longer.
func TestURLComesDuringARoundOfMoving(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	during := true
	store := &packingTimed{w.machine.Store, func() {
		if during {
			during = false
			w.add("http://during.example/")
		}
	}}
	require.NoError(t, w.f.Close())
	w.opts.Spill = store
	w.open()
	w.soon("http://scheduled.example/", time.Hour)
	require.NoError(t, w.f.MoveNow(false))
	require.False(t, during)
	w.add("http://between.example/")
	require.NoError(t, w.f.MoveNow(false))
	w = w.killed()
	w.until(2 * time.Hour)
	require.ElementsMatch(t, []string{"http://scheduled.example/", "http://during.example/", "http://between.example/"}, w.rest())
}

// URLs that come due while a round moves others stand behind one that came during the
// round, though they are older: it gets a home in the next round all the same.
func TestURLComesBeforeOlderOnesDuringARoundOfMoving(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), MemoryBudget: 1 << 30}, spill.Options{})
	store := &packingTimed{w.machine.Store, nil}
	require.NoError(t, w.f.Close())
	w.opts.Spill = store
	w.open()
	const n = 20_000
	entries := make([]frontier.Entry, n)
	for i := range entries {
		entries[i] = frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), NotBefore: dawn.Add(time.Minute)}
	}
	_, err := w.f.Add(t.Context(), entries...)
	require.NoError(t, err)
	during := true
	store.packed = func() {
		if during {
			during = false
			w.add("http://a.example/during")
			w.clk.Advance(time.Minute)
			w.f.Stats() // some of them wait now
		}
	}
	require.NoError(t, w.f.MoveNow(false))
	require.False(t, during)
	require.NoError(t, w.f.MoveNow(false))
	require.Zero(t, w.f.Homeless())
	w = w.killed()
	s := w.f.Stats()
	require.EqualValues(t, n+1, s.Waiting+s.Scheduled)
}
