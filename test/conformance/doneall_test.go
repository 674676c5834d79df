// This file attacks DoneAll: beside commits that fail, contexts that end, and code of the user's that
// panics. Done and Add, which share its ways, are attacked too.

package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
)

// crawled crawls what is left, and returns how often each URL came. The crawl must end.
func crawled(t *testing.T, w *harness.World) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for range 2000 {
		l, at, err := w.TryNext()
		switch {
		case errors.Is(err, frontier.ErrExhausted):
			return seen
		case errors.Is(err, frontier.ErrNotDue):
			require.False(t, at.IsZero(), "the crawl never ends: %v", seen)
			w.Clock.Set(at)
			continue
		}
		require.NoError(t, err)
		seen[l.Host+" "+l.Entry.URL]++
		require.NoError(t, w.F.Done(l, frontier.Outcome{}))
	}
	require.Fail(t, "the crawl never ends")
	return nil
}

// endsWith are the calls that end a lease with outlinks, or add them beside it.
var endsWith = map[string]func(ctx context.Context, w *harness.World, l frontier.Lease, add ...frontier.Entry) error{
	"Add": func(ctx context.Context, w *harness.World, l frontier.Lease, add ...frontier.Entry) error {
		_, err := w.F.Add(ctx, add...)
		return errors.Join(err, w.F.Done(l, frontier.Outcome{}))
	},
	"Done": func(ctx context.Context, w *harness.World, l frontier.Lease, add ...frontier.Entry) error {
		_, err := w.F.DoneContext(ctx, l, frontier.Outcome{Add: add})
		return err
	},
	"DoneAll": func(ctx context.Context, w *harness.World, l frontier.Lease, add ...frontier.Entry) error {
		return w.F.DoneAll(ctx, []frontier.End{{Lease: l, Outcome: frontier.Outcome{Add: add}}})[0].Err
	},
}

// A call whose context ends leaves its commit behind, with bytes of its own.
func TestAForcedEntryOutlivesItsCall(t *testing.T) {
	for name, call := range endsWith {
		t.Run(name, func(t *testing.T) {
			w, h := harness.HookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
			w.Add("http://a.example/1", "http://k.example/1")
			a, k := w.Next(), w.Next()
			require.NoError(t, w.F.Done(k, frontier.Outcome{}))
			reached, gate := make(chan struct{}), make(chan struct{})
			once := sync.OnceFunc(func() { close(reached); <-gate })
			h.Set(func(b *storage.Batch) error {
				if len(b.Admit) > 0 {
					once()
				}
				return nil
			}, nil)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- call(ctx, w, a, frontier.Entry{URL: "http://k.example/1", Force: true}) }()
			<-reached
			cancel()
			if name != "Add" { // its Done waits behind the commit
				require.Error(t, <-done)
			}
			others, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer stop()
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() { _, _ = w.F.Add(others, frontier.Entry{URL: fmt.Sprintf("http://x.example/%d", i)}) })
			}
			wg.Wait()
			close(gate)
			if name == "Add" {
				require.Error(t, <-done)
			}
			require.Equal(t, 1, crawled(t, w)["k.example http://k.example/1"])
		})
	}
}

// An outlink that is known by a commit that then fails is not known.
func TestAnOutlinkKnownByACommitThatFails(t *testing.T) {
	u := []frontier.Entry{{URL: "http://u.example/"}}
	back := frontier.Outcome{Result: frontier.Requeue, Uncontacted: true, Add: u}
	world := func(t *testing.T) (*harness.World, *harness.Hooked, frontier.Lease, frontier.Lease) {
		w, h := harness.HookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
		w.Add("http://a.example/1", "http://b.example/1")
		return w, h, w.Next(), w.Next()
	}
	t.Run("DoneAll", func(t *testing.T) {
		w, h, a, b := world(t)
		h.Set(func(*storage.Batch) error { return harness.ErrDisk }, nil)
		for _, got := range w.F.DoneAll(t.Context(), []frontier.End{{Lease: a, Outcome: frontier.Outcome{Add: u}}, {Lease: b, Outcome: back}}) {
			require.ErrorIs(t, got.Err, harness.ErrDisk)
			require.Nil(t, got.Verdicts)
		}
		h.Set(nil, nil)
	})
	t.Run("Done", func(t *testing.T) {
		w, h, _, b := world(t)
		gate, reached := make(chan struct{}), make(chan struct{})
		once := sync.OnceFunc(func() { close(reached); <-gate })
		h.Set(func(*storage.Batch) error { once(); return harness.ErrDisk }, nil)
		added := make(chan error)
		go func() { _, err := w.F.Add(context.Background(), u...); added <- err }()
		<-reached
		time.AfterFunc(50*time.Millisecond, func() { close(gate) })
		require.ErrorIs(t, w.F.Done(b, back), harness.ErrDisk)
		require.ErrorIs(t, <-added, harness.ErrDisk)
		h.Set(nil, nil)
	})
}

// The clock of a lease that came too late moves before a later End waits for the disk.
func TestDoneAllMovesTheClockOfALateLeaseAtOnce(t *testing.T) {
	b := beside{ready: inBlocks, opts: func(o *frontier.Options, _ *gatedSpill) {
		o.Delay, o.LeaseTime, o.Retry = frontier.FixedDelay(10*time.Second), 5*time.Second, frontier.Retries(5, 0)
	}}
	w, s := b.world(t)
	late, other := w.Next(), w.Next()
	require.NoError(t, w.F.Extend(&other, time.Hour))
	w.Clock.Advance(14900 * time.Millisecond) // late has expired
	w.F.Stats()
	s.hold("Known", 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.F.DoneAll(context.Background(), []frontier.End{{Lease: late}, {Lease: other, Outcome: frontier.Outcome{Add: harness.EntriesOf("c.example", 3)}}})
	}()
	require.Eventually(t, s.isReached, 10*time.Second, time.Millisecond)
	w.Clock.Advance(time.Second)
	l, _, err := w.TryNext()
	s.open()
	<-done
	if err == nil {
		require.NotEqual(t, late.Host, l.Host)
	}
}

func TestDoneAllSettlesTheOthersWhenOnGiveUpPanics(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{
		Retry: frontier.Retries(1, 0), OnGiveUp: func(e frontier.Entry, _ frontier.Outcome) { panic(e.URL) },
	}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/", "http://b.example/", "http://c.example/", "http://k.example/")
		a, b, c, k := w.Next(), w.Next(), w.Next(), w.Next()
		require.NoError(t, w.F.Done(k, frontier.Outcome{}))
		failed := harness.Failing(frontier.FailureTimeout)
		require.PanicsWithValue(t, "http://a.example/", func() {
			w.F.DoneAll(t.Context(), []frontier.End{
				{Lease: a, Outcome: failed}, {Lease: c, Outcome: failed},
				{Lease: b, Outcome: frontier.Outcome{Add: []frontier.Entry{{URL: "http://k.example/", Force: true}}}},
			})
		})
		require.Equal(t, map[string]int{"k.example http://k.example/": 1}, crawled(t, w))
	})
}

// bomb panics once it is armed.
type bomb struct{ armed bool }

func (b *bomb) Retry(frontier.Entry, int, frontier.Outcome) (time.Duration, bool) {
	if b.armed {
		b.armed = false
		panic("retry")
	}
	return 0, true
}

// A lease expires while an End waits for the disk, and its policy panics: that is nothing to DoneAll.
func TestDoneAllWhenAPolicyPanicsAtAnExpiry(t *testing.T) {
	r := &bomb{}
	b := beside{ready: inBlocks, opts: func(o *frontier.Options, _ *gatedSpill) { o.LeaseTime, o.Retry, o.KeepOpen = time.Minute, r, false }}
	w, s := b.world(t)
	w.Add("http://e.example/")
	leases := map[string]frontier.Lease{}
	for len(leases) < 3 {
		l := w.Next()
		if l.Host != "e.example" {
			require.NoError(t, w.F.Extend(&l, time.Hour))
		}
		leases[l.Host] = l
	}
	s.hold("Known", 0)
	done := make(chan []frontier.Ended)
	go func() {
		done <- w.F.DoneAll(context.Background(), []frontier.End{
			{Lease: leases["a.example"], Outcome: frontier.Outcome{Add: []frontier.Entry{{URL: "http://e.example/", Force: true}}}},
			{Lease: leases["b.example"], Outcome: frontier.Outcome{Add: harness.EntriesOf("c.example", 2)}},
		})
	}()
	require.Eventually(t, s.isReached, 10*time.Second, time.Millisecond)
	r.armed = true
	w.Clock.Advance(2 * time.Minute)
	s.open()
	for _, x := range <-done {
		require.NoError(t, x.Err)
	}
	_, _, err := w.TryNext()
	require.ErrorContains(t, err, `a policy panicked (host "e.example"): retry`)
	crawled(t, w)
}

func TestASchedulerSeesALeaseOnceThatDoneAllGotTwice(t *testing.T) {
	harness.InBothWorldsWith(t, harness.Diary{Again: harness.HourLater}, frontier.Options{}, func(t *testing.T, w *harness.World, d *harness.Diary) {
		w.Add("http://a.example/")
		l := w.Next()
		got := w.F.DoneAll(t.Context(), []frontier.End{{Lease: l}, {Lease: l}})
		require.NoError(t, got[0].Err)
		require.ErrorIs(t, got[1].Err, frontier.ErrNotLeased)
		require.Len(t, d.Visits, 1)
	})
}

// Random calls beside each other, on a store that fails at random.
func TestDoneAllBesideFailures(t *testing.T) {
	for seed := range uint64(9) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			fault := []error{harness.ErrDisk, syscall.ENOSPC, nil}[seed%3]
			w, h := harness.HookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), LeaseTime: time.Hour, MemoryBudget: 16 << 20})
			var urls []string
			for i := range 60 {
				for j := range 5 {
					urls = append(urls, fmt.Sprintf("http://h%d.example/%d", i, j))
				}
			}
			w.Add(urls...)
			var fm sync.Mutex
			fr := rand.New(rand.NewPCG(seed, 9))
			failing := true
			h.Set(func(b *storage.Batch) error {
				fm.Lock()
				defer fm.Unlock()
				if failing && fr.IntN(4) == 0 && fault != nil {
					if fault == syscall.ENOSPC && len(b.Admit) == 0 {
						return nil
					}
					return fault
				}
				return nil
			}, nil)
			var mu sync.Mutex
			ended := map[string]bool{}  // recorded visited
			maybe := map[string]bool{}  // unsettled
			isNew := map[string]int{}   // verdict new
			anyAdd := map[string]bool{} // recorded as known or new
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(seed, uint64(g)))
					for range 12 {
						ls, err := w.F.Take(context.Background(), frontier.TakeOptions{Hosts: 6, PerHost: 3, Max: 12})
						if err != nil {
							return
						}
						var ends []frontier.End
						for _, l := range ls {
							o := frontier.Outcome{}
							switch r.IntN(5) {
							case 0:
								o = frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}
							case 1:
								o.CrawlDelay = time.Millisecond
							}
							n := r.IntN(4)
							if r.IntN(20) == 0 {
								n = 200
							}
							for range n {
								o.Add = append(o.Add, frontier.Entry{URL: fmt.Sprintf("http://n%d.example/%d", r.IntN(20), r.IntN(30))})
							}
							ends = append(ends, frontier.End{Lease: l, Outcome: o})
							if r.IntN(6) == 0 {
								ends = append(ends, ends[r.IntN(len(ends))])
							}
						}
						ctx, cancel := context.WithCancel(context.Background())
						if r.IntN(4) == 0 {
							time.AfterFunc(time.Duration(r.IntN(300))*time.Microsecond, cancel)
						}
						got := w.F.DoneAll(ctx, ends)
						cancel()
						mu.Lock()
						var out []frontier.Lease
						for i, x := range got {
							u := ends[i].Lease.Entry.URL
							switch {
							case x.Verdicts != nil:
								if len(x.Verdicts) != len(ends[i].Outcome.Add) {
									panic("length")
								}
								if ends[i].Outcome.Result != frontier.Requeue {
									if ended[u] {
										panic("twice ended " + u)
									}
									ended[u] = true
								}
								for j, v := range x.Verdicts {
									e := ends[i].Outcome.Add[j].URL
									switch v {
									case frontier.EntryNew:
										isNew[e]++
										anyAdd[e] = true
									case frontier.EntryKnown:
										anyAdd[e] = true
									case frontier.EntryRefused:
										if x.Err == nil && len(x.Refused) == 0 {
											panic("refused without reason")
										}
									}
								}
							case x.Err == nil:
								panic("nil verdicts without error")
							case errors.Is(x.Err, frontier.ErrUnsettled):
								maybe[u] = true
								for _, e := range ends[i].Outcome.Add {
									maybe[e.URL] = true
								}
							case errors.Is(x.Err, context.Canceled):
								out = append(out, ends[i].Lease)
							}
						}
						mu.Unlock()
						for _, l := range out {
							_ = w.F.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
						}
					}
				})
			}
			wg.Wait()
			fm.Lock()
			failing = false
			fm.Unlock()
			require.NoError(t, w.F.Check())
			for u, n := range isNew {
				require.True(t, n == 1 || maybe[u], "%s new %d times", u, n)
			}
			seen := map[string]int{}
			for {
				l, at, err := w.TryNext()
				if errors.Is(err, frontier.ErrNotDue) {
					require.False(t, at.IsZero(), "never ends")
					w.Clock.Set(at)
					continue
				}
				if errors.Is(err, frontier.ErrExhausted) {
					break
				}
				require.NoError(t, err)
				u := l.Entry.URL
				seen[u]++
				require.False(t, ended[u], "%s was ended", u)
				require.NoError(t, w.F.Done(l, frontier.Outcome{}))
			}
			for u, n := range seen {
				require.Equal(t, 1, n, u)
			}
			for u := range anyAdd {
				require.True(t, seen[u] == 1 || ended[u] || maybe[u], "%s lost", u)
			}
			for _, u := range urls {
				require.True(t, seen[u] == 1 || ended[u] || maybe[u], "%s lost", u)
			}
		})
	}
}
