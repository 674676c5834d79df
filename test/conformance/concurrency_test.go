// This file lets many goroutines at one frontier.

package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
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
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Each hand-out wakes the call that has waited longest, and no other.
func TestWaitersWakeOneAtATimeInTheirOrder(t *testing.T) {
	const waiters = 3000
	for _, store := range []bool{false, true} {
		t.Run(map[bool]string{false: "in memory", true: "on a store"}[store], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := frontier.Options{Delay: frontier.FixedDelay(0), KeepOpen: true}
				if store {
					o.Spill = spilltest.OpenMemory(t, spill.Options{}).Store
				}
				f := harness.Opened(t, o)
				woken := make(chan int, waiters)
				var got sync.Map
				for i := range waiters {
					go func() {
						l, err := f.Next(t.Context())
						if err == nil {
							got.Store(i, l)
						}
						woken <- i
					}()
					synctest.Wait() // each stands behind the one before
				}
				require.Empty(t, woken)
				_, err := f.Add(t.Context(), harness.EntriesOf("a.example", 200)...)
				require.NoError(t, err)
				for want := range 150 {
					synctest.Wait()
					require.Len(t, woken, 1, "one host is free, so one call wakes")
					i := <-woken
					require.Equal(t, want, i)
					l, _ := got.Load(i)
					require.Equal(t, fmt.Sprintf("http://a.example/%d", i+1), l.(frontier.Lease).Entry.URL)
					require.NoError(t, f.Done(l.(frontier.Lease), frontier.Outcome{}))
				}
				synctest.Wait()
				require.Len(t, woken, 1)
				<-woken
				_, err = f.Add(t.Context(), frontier.Entry{URL: "http://b.example/"}, frontier.Entry{URL: "http://c.example/"})
				require.NoError(t, err)
				synctest.Wait()
				require.Len(t, woken, 2, "two hosts more are free, so two calls wake")
				require.ElementsMatch(t, []int{151, 152}, []int{<-woken, <-woken})
				require.NoError(t, f.Close())
				synctest.Wait()
				require.Len(t, woken, waiters-153, "the end wakes all")
			})
		})
	}
}

// Waiting calls cost nothing: in a day without work nothing happens, except one look at the clock
// per minute if they wait for a date, since the clock may be set.
func TestWaitersDoNotPoll(t *testing.T) {
	for _, x := range []struct {
		name  string
		until func(f *frontier.Frontier) error
		fired int64
	}{
		{"for a host", func(f *frontier.Frontier) error {
			l, _, err := f.TryNext()
			return errors.Join(err, f.Done(l, frontier.Outcome{Result: frontier.Requeue, RetryAfter: 24 * time.Hour}))
		}, 1},
		{"for a date", func(f *frontier.Frontier) error {
			l, _, err := f.TryNext()
			return errors.Join(err, f.Done(l, frontier.Outcome{Next: time.Now().Add(24 * time.Hour)}))
		}, 24 * 60},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := &countingClock{}
				f := harness.Opened(t, frontier.Options{Clock: clk})
				_, err := f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
				require.NoError(t, err)
				require.NoError(t, x.until(f))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var wg sync.WaitGroup
				for range 1000 {
					wg.Go(func() {
						if _, err := f.Next(ctx); err == nil {
							cancel()
						}
					})
				}
				synctest.Wait()
				before := clk.n.Load()
				wg.Wait()
				require.Equal(t, x.fired, clk.fired.Load())
				require.Less(t, clk.n.Load()-before, 12*x.fired)
			})
		})
	}
}

// countingClock counts how often it is asked, and how often a timer fires.
type countingClock struct{ n, fired atomic.Int64 }

func (c *countingClock) Now() time.Time { c.n.Add(1); return time.Now() }

func (c *countingClock) Elapsed() time.Duration {
	c.n.Add(1)
	return time.Duration(time.Now().UnixNano())
}

func (c *countingClock) AfterFunc(d time.Duration, f func()) frontier.Timer {
	return time.AfterFunc(d, func() { c.fired.Add(1); f() })
}

// audit tracks which leases are out.
type audit struct {
	mu    sync.Mutex
	out   map[string]bool // hosts leased
	times map[string]int  // how often each URL was finished
}

func (a *audit) taken(t *testing.T, l frontier.Lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	assert.False(t, a.out[l.Host], "two leases of %s", l.Host)
	a.out[l.Host] = true
}

func (a *audit) ends(l frontier.Lease, done bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.out, l.Host)
	if done {
		a.times[l.Entry.URL]++
	}
}

// counted is a Spill that counts its moves.
type counted struct {
	storage.Spill
	packs, loads atomic.Int64
}

func (s *counted) Pack(gen uint32, runs []storage.Run) ([][]storage.Part, error) {
	s.packs.Add(1)
	return s.Spill.Pack(gen, runs)
}

func (s *counted) Load(p storage.Part, want uint32, fn func(int, storage.Record)) error {
	s.loads.Add(1)
	return s.Spill.Load(p, want, fn)
}

// Producers and workers, on real time, with so little memory that URLs go to
// disk and come back: each comes out exactly once.
func TestProducersAndWorkers(t *testing.T) {
	for _, c := range []struct {
		name string
		open func(*testing.T) (storage.Spill, int64)
		urls int
	}{
		{"in memory", func(*testing.T) (storage.Spill, int64) { return nil, 0 }, 20_000},
		{"on a disk in memory", func(t *testing.T) (storage.Spill, int64) {
			return spilltest.OpenMemory(t, spill.Options{}).Store, 8 << 20
		}, 20_000},
		{"on badger", func(t *testing.T) (storage.Spill, int64) {
			s, err := spill.Open(t.TempDir(), spill.Options{MemoryBudget: 64 << 20, DiskReserve: 1})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s, s.Footprint() + 8<<20
		}, 20_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			t.Run("crawl", func(t *testing.T) { // its cleanups run before goleak looks
				s, budget := c.open(t)
				busy := &counted{Spill: s}
				if s != nil {
					s = busy
				}
				f := harness.Opened(t, frontier.Options{Spill: s, MemoryBudget: budget, Delay: frontier.FixedDelay(0), Retry: frontier.Retries(3, 0), Quarantine: frontier.Quarantine{Disabled: true}})
				const producers, workers = 4, 16
				meta := make([]byte, 400)
				var adding, working sync.WaitGroup
				var total atomic.Int64
				for p := range producers {
					adding.Go(func() {
						r := rand.New(rand.NewPCG(uint64(p), 1))
						for i := 0; i < c.urls/2; { // those of two producers are the same
							var batch []frontier.Entry
							for range 1 + r.IntN(100) {
								batch = append(batch, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d/%d", i%211, p/2, i), Depth: i % 7, Meta: meta})
								if i++; i == c.urls/2 {
									break
								}
							}
							for {
								n, err := f.Add(t.Context(), batch...)
								total.Add(int64(n))
								if !errors.Is(err, frontier.ErrFull) {
									assert.NoError(t, err)
									break
								}
							}
						}
					})
				}
				a := &audit{out: map[string]bool{}, times: map[string]int{}}
				finished := make(chan struct{})
				for w := range workers {
					working.Go(func() {
						r := rand.New(rand.NewPCG(uint64(w), 2))
						for {
							l, err := f.Next(t.Context())
							if errors.Is(err, frontier.ErrExhausted) {
								select {
								case <-finished:
									return
								default:
									time.Sleep(time.Millisecond) // between two Adds
									continue
								}
							}
							if !assert.NoError(t, err) {
								return
							}
							a.taken(t, l)
							o := frontier.Outcome{}
							switch r.IntN(20) {
							case 0:
								o = harness.Requeue
							case 1:
								if l.Attempt == 1 {
									o = frontier.Outcome{Result: frontier.Failed}
								}
							case 2:
								o.Add = []frontier.Entry{{URL: fmt.Sprintf("http://out%d.example/%d", r.IntN(50), r.IntN(50))}}
							}
							a.ends(l, o.Result == frontier.Visited)
							assert.NoError(t, f.Done(l, o))
						}
					})
				}
				adding.Wait()
				require.EqualValues(t, c.urls, total.Load())
				require.NoError(t, f.Check())
				close(finished)
				working.Wait()
				if t.Failed() {
					return
				}
				if s != nil {
					require.Greater(t, busy.packs.Load(), int64(10), "too little moved to blocks")
					require.Greater(t, busy.loads.Load(), int64(10), "too little came back from blocks")
				}
				outlinks := 0
				for u, n := range a.times {
					require.Equal(t, 1, n, "%s", u)
					if u[7] == 'o' {
						outlinks++
					}
				}
				require.Len(t, a.times, c.urls+outlinks)
				x := f.Stats()
				require.Equal(t, []int64{0, 0, 0, int64(c.urls + outlinks)}, []int64{x.Waiting, x.Scheduled, x.Leased, x.Known})
			})
		})
	}
}

// A grant that meets the end of a call's context is given back.
func TestCancellationLosesNoLease(t *testing.T) {
	for _, store := range []bool{false, true} {
		t.Run(map[bool]string{false: "in memory", true: "on a store"}[store], func(t *testing.T) {
			o := frontier.Options{Delay: frontier.FixedDelay(0), KeepOpen: true}
			if store {
				o.Spill = spilltest.OpenMemory(t, spill.Options{}).Store
			}
			f := harness.Opened(t, o)
			_, err := f.Add(t.Context(), harness.EntriesOf("a.example", 40)...)
			require.NoError(t, err)
			if store {
				require.NoError(t, hook.Of(f).MoveNow(true))
			}
			var wg sync.WaitGroup
			var done atomic.Int64
			for g := range 8 {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(g), 3))
					for range 300 {
						ctx, cancel := context.WithCancel(t.Context())
						stop := time.AfterFunc(time.Duration(r.IntN(60))*time.Microsecond, cancel)
						var l frontier.Lease
						var err error
						if r.IntN(4) == 0 {
							l, err = f.Contact(ctx, "a.example")
						} else {
							l, err = f.Next(ctx)
						}
						stop.Stop()
						cancel()
						if err != nil {
							assert.ErrorIs(t, err, context.Canceled)
							continue
						}
						o := harness.Requeue
						if done.Load() < 30 && l.Entry.URL != "" && r.IntN(8) == 0 {
							o = frontier.Outcome{}
							done.Add(1)
						}
						assert.NoError(t, f.Done(l, o))
					}
				})
			}
			wg.Wait()
			require.NoError(t, f.Check())
			x := f.Stats()
			require.Equal(t, []int64{40 - done.Load(), 0, 0}, []int64{x.Waiting, x.Scheduled, x.Leased})
			for range 40 - done.Load() {
				l, err := f.Next(t.Context())
				require.NoError(t, err)
				require.NoError(t, f.Done(l, frontier.Outcome{}))
			}
		})
	}
}

// slowMover is a Spill whose moves wait for a gate.
type slowMover struct {
	storage.Spill
	gate chan struct{}
}

func (s *slowMover) Pack(gen uint32, runs []storage.Run) ([][]storage.Part, error) {
	<-s.gate
	return s.Spill.Pack(gen, runs)
}

// heavy returns n entries of 60 KiB.
func heavy(host string, n int) []frontier.Entry {
	out := harness.EntriesOf(host, n)
	for i := range out {
		out[i].Meta = make([]byte, 60<<10)
	}
	return out
}

func TestAddWaitsWhileTheDiskIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowMover{spilltest.OpenMemory(t, spill.Options{}).Store, make(chan struct{})}
		f := harness.Opened(t, frontier.Options{Spill: slow, MemoryBudget: 8 << 20, Delay: frontier.FixedDelay(0)})
		add := func(ctx context.Context, host string) *harness.Call {
			return harness.Start(func() (l frontier.Lease, err error) {
				_, err = f.Add(ctx, heavy(host, 10)...)
				return l, err
			})
		}
		hosts, admitted := 0, 0
		ctx, cancel := context.WithCancel(t.Context())
		var blocked *harness.Call
		for ; blocked == nil; hosts++ {
			require.Less(t, hosts, 20, "the budget is not kept")
			if c := add(ctx, fmt.Sprintf("h%d.example", hosts)); c.Waits() {
				blocked = c
			} else {
				require.NoError(t, c.Err)
				admitted += 10
			}
		}
		require.Less(t, f.Stats().MemoryBytes, int64(8<<20))
		time.Sleep(time.Hour)
		require.True(t, blocked.Waits())
		cancel()
		require.False(t, blocked.Waits())
		require.ErrorIs(t, blocked.Err, context.Canceled)
		require.EqualValues(t, admitted, f.Stats().Known, "nothing of it was admitted")
		next, err := f.Next(t.Context())
		require.NoError(t, err, "hand-outs go on")

		again := []*harness.Call{add(t.Context(), "x.example"), add(t.Context(), "y.example"), add(t.Context(), "z.example")}
		require.True(t, again[0].Waits() && again[1].Waits() && again[2].Waits())
		close(slow.gate)
		for _, c := range again {
			require.False(t, c.Waits())
			require.NoError(t, c.Err)
		}
		require.Less(t, f.Stats().MemoryBytes, int64(8<<20))
		require.NoError(t, f.Done(next, harness.Requeue))
		got := 0
		for l, err := range f.Leases(t.Context()) {
			require.NoError(t, err)
			require.Len(t, l.Entry.Meta, 60<<10)
			require.NoError(t, f.Done(l, frontier.Outcome{}))
			got++
		}
		require.Equal(t, admitted+30, got)
	})
}

// slowMarks is a store on which marks take long to write.
type slowMarks struct {
	storage.Spill
	gate chan struct{}
}

func (s *slowMarks) PackMarks(gen uint32, ms []storage.Mark) error {
	<-s.gate
	return s.Spill.PackMarks(gen, ms)
}

func TestNobodyWaitsForMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowMarks{spilltest.OpenMemory(t, spill.Options{}).Store, make(chan struct{})}
		f := harness.Opened(t, frontier.Options{Spill: slow, Delay: frontier.FixedDelay(0)})
		add := func(host string) *harness.Call {
			return harness.Start(func() (l frontier.Lease, err error) {
				_, err = f.Add(t.Context(), harness.EntriesOf(host, 10)...)
				return l, err
			})
		}
		require.False(t, add("a.example").Waits())
		move := harness.Start(func() (l frontier.Lease, err error) { return l, hook.Of(f).MoveNow(true) })
		require.True(t, move.Waits())
		require.False(t, add("b.example").Waits(), "commits go on")
		l, err := f.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, f.Done(l, frontier.Outcome{}))
		close(slow.gate)
		require.False(t, move.Waits())
		require.NoError(t, move.Err)
		n, err := f.Add(t.Context(), append(harness.EntriesOf("a.example", 10), harness.EntriesOf("b.example", 10)...)...)
		require.NoError(t, err)
		require.Zero(t, n, "all are known, on disk or in the log")
	})
}

// An Add that finds room only once nearly everything else has left memory gets it, and one that
// never can gets ErrFull: neither waits forever.
func TestAddOfHalfTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := harness.Opened(t, frontier.Options{Spill: spilltest.OpenMemory(t, spill.Options{}).Store, MemoryBudget: 8 << 20, Delay: frontier.FixedDelay(0)})
		total := 0
		for i, n := range []int{42, 90, 60, 30, 90, 60} {
			k, err := f.Add(t.Context(), heavy(fmt.Sprintf("h%d.example", i), n)...)
			if err != nil { // the store may take room that it gives back with the next checkpoint
				require.ErrorIs(t, err, frontier.ErrFull)
				require.NoError(t, hook.Of(f).MoveNow(true))
				if k, err = f.Add(t.Context(), heavy(fmt.Sprintf("h%d.example", i), n)...); err != nil {
					require.ErrorIs(t, err, frontier.ErrFull)
				}
			}
			total += k
		}
		require.Greater(t, total, 200)
		for l, err := range f.Leases(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, f.Done(l, frontier.Outcome{}))
			total--
		}
		require.Zero(t, total)
	})
}

func TestFullMemoryRefusesAndRecovers(t *testing.T) {
	f := harness.Opened(t, frontier.Options{MemoryBudget: 8 << 20, Delay: frontier.FixedDelay(0)})
	for round := range 3 {
		admitted := 0
		for ; ; admitted++ {
			require.Less(t, admitted, 200)
			n, err := f.Add(t.Context(), heavy(fmt.Sprintf("h%d-%d.example", round, admitted), 1)...)
			if err != nil {
				require.ErrorIs(t, err, frontier.ErrFull)
				require.Zero(t, n)
				break
			}
		}
		require.Greater(t, admitted, 100)
		require.LessOrEqual(t, f.Stats().MemoryBytes, int64(8<<20))
		n, err := f.Add(t.Context(), heavy(fmt.Sprintf("h%d-0.example", round), 1)...)
		require.NoError(t, err, "a known URL needs no room")
		require.Zero(t, n)
		x := f.Stats()
		l, err := f.Next(t.Context())
		require.NoError(t, err)
		err = f.Done(l, frontier.Outcome{Next: time.Now().Add(time.Millisecond), Add: heavy("out.example", 2)})
		require.ErrorIs(t, err, frontier.ErrFull, "the outlinks are refused")
		require.Equal(t, x.Known, f.Stats().Known)
		for l, err := range f.Leases(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, f.Done(l, frontier.Outcome{}))
			admitted--
		}
		require.Zero(t, admitted, "the URL itself was kept")
	}
}
