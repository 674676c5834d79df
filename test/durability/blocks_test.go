package durability

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
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// packing is a Spill that calls packed after each Pack.
type packing struct {
	storage.Spill
	packed func()
}

func (p *packing) Pack(gen uint32, runs []storage.Run) ([][]storage.Part, error) {
	parts, err := p.Spill.Pack(gen, runs)
	if p.packed != nil {
		p.packed()
	}
	return parts, err
}

func TestBlockIsKeptIfOnlyItsFirstURLsEndedDuringTheMove(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	store := &packing{Spill: w.Machine.Store}
	require.NoError(t, w.F.Close())
	w.Options.Spill, w.Options.Prioritizer, w.Options.Selector = store, harness.ByWeight, selector.Strict()
	w.Open()
	w.AddEach(func(yield func(frontier.Entry) bool) {
		yield(frontier.Entry{URL: "http://first.example/", Weight: 8}) // first in the block too
		for _, u := range harness.UrlsOf("second.example", 10) {
			yield(frontier.Entry{URL: u, Weight: 1})
		}
	})
	l := w.Next()
	require.Equal(t, "first.example", l.Host)
	store.packed = func() { require.NoError(t, w.F.Done(l, frontier.Outcome{})) }
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	store.packed = nil
	w.AddEach(func(yield func(frontier.Entry) bool) { // with it, the store learns which blocks may go
		yield(frontier.Entry{URL: "http://first.example/2", Weight: 8})
	})
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	for range 11 {
		w.Fetched(w.Next(), 0, frontier.Outcome{})
	}
	w.Over()
}

// TestEveryURLIsVisitedOnceByManyWorkersOverLittleMemory lets workers, commits
// and moves meet in every order that there is time for.
func TestEveryURLIsVisitedOnceByManyWorkersOverLittleMemory(t *testing.T) {
	const workers, hosts = 16, 300
	seeds, links := 20_000, 3
	if harness.RaceEnabled || testing.Short() {
		seeds = 5_000
	}
	ctx := context.Background()
	w := &harness.World{TB: t, Machine: spilltest.OpenMemory(t, spill.Options{})}
	store := &packing{Spill: w.Machine.Store, packed: runtime.Gosched}
	w.Options = harness.Quantum(4, frontier.Options{
		Spill: store, MemoryBudget: 9 << 20, Delay: frontier.FixedDelay(0),
		Retry: frontier.Retries(100, 0), Quarantine: frontier.Quarantine{Disabled: true},
	})
	w.Open()
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
		_, err := w.F.Add(ctx, batch...)
		require.NoError(t, err)
	}
	visits := make([]atomic.Int32, seeds*(1+links))
	var made atomic.Int64
	made.Store(int64(seeds))
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(i)))
			for l, err := range w.F.Leases(ctx) {
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
				if err := w.F.Done(l, o); err != nil {
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
	st := w.F.Stats()
	require.Zero(t, st.Waiting+st.Scheduled+st.Leased+st.Unreadable)
	t.Logf("%+v", st)
}

// packingTimed is a Spill that calls packed after each PackTimed.
type packingTimed struct {
	storage.Spill
	packed func()
}

func (p *packingTimed) PackTimed(gen uint32, records []storage.TimedRecord) ([]storage.TimedBlock, error) {
	blocks, err := p.Spill.PackTimed(gen, records)
	p.packed()
	return blocks, err
}

// A URL that comes while a round moves others is moved by the next one: the log that has
// it is not kept for longer.
func TestURLComesDuringARoundOfMoving(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	during := true
	store := &packingTimed{w.Machine.Store, func() {
		if during {
			during = false
			w.Add("http://during.example/")
		}
	}}
	require.NoError(t, w.F.Close())
	w.Options.Spill = store
	w.Open()
	w.Soon("http://scheduled.example/", time.Hour)
	require.NoError(t, hook.Of(w.F).MoveNow(false))
	require.False(t, during)
	w.Add("http://between.example/")
	require.NoError(t, hook.Of(w.F).MoveNow(false))
	w = w.Killed()
	w.Until(2 * time.Hour)
	require.ElementsMatch(t, []string{"http://scheduled.example/", "http://during.example/", "http://between.example/"}, w.Rest())
}

// URLs that become due while a round moves others are placed behind one that came during the round,
// although they are older; it still gets a home in the next round.
func TestURLComesBeforeOlderOnesDuringARoundOfMoving(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), MemoryBudget: 1 << 30}, spill.Options{})
	store := &packingTimed{w.Machine.Store, nil}
	require.NoError(t, w.F.Close())
	w.Options.Spill = store
	w.Open()
	const n = 20_000
	entries := make([]frontier.Entry, n)
	for i := range entries {
		entries[i] = frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), NotBefore: harness.Dawn.Add(time.Minute)}
	}
	_, err := w.F.Add(t.Context(), entries...)
	require.NoError(t, err)
	during := true
	store.packed = func() {
		if during {
			during = false
			w.Add("http://a.example/during")
			w.Clock.Advance(time.Minute)
			w.F.Stats() // some of them wait now
		}
	}
	require.NoError(t, hook.Of(w.F).MoveNow(false))
	require.False(t, during)
	require.NoError(t, hook.Of(w.F).MoveNow(false))
	w = w.Killed()
	s := w.F.Stats()
	require.EqualValues(t, n+1, s.Waiting+s.Scheduled)
}

// URLs whose time came wait where they did before an opening, among those that waited all the time, as long as
// they are in the log: also after a kill.
func TestOrderLastsThroughAnOpening(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Soon("http://a.example/5", 5*time.Minute)
	w.Soon("http://a.example/60", time.Hour)
	w.Soon("http://a.example/1", time.Minute)
	w.Soon("http://a.example/5too", 5*time.Minute)
	for _, at := range []string{"0", "2", "4", "6"} {
		w.Add("http://a.example/added/" + at)
		w.Clock.Advance(2 * time.Minute)
		w.F.Stats() // sees what time has brought
	}
	var want []string
	for _, u := range []string{"added/0", "1", "added/2", "added/4", "5", "5too", "added/6", "60"} {
		want = append(want, "http://a.example/"+u)
	}
	require.Equal(t, want, w.Killed().LeaseAll())
	w.Reopen()
	require.Equal(t, want, w.LeaseAll())
}

// No host comes first after each opening because of its name.
func TestHostsComeMixedAfterAnOpening(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	for i := range 100 {
		w.Add(fmt.Sprintf("http://%02d.example/", i))
	}
	killed := w.Killed()
	w.Reopen()
	for _, w := range []*harness.World{killed, w} {
		low := 0
		for _, url := range w.LeaseAll()[:50] {
			if url < "http://50" {
				low++
			}
		}
		require.InDelta(t, 25, low, 8)
	}
}
