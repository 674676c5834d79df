// This file tests that hosts whose probes fail are given up if that is set, and
// nothing of them is lost otherwise.

package frontier_test

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// graves is where URLs are noted that were given up.
type graves struct {
	mu     sync.Mutex
	urls   map[string]int
	events []frontier.Event
}

func (g *graves) options() frontier.Options {
	return frontier.Options{
		Delay: frontier.FixedDelay(sec), Backoff: exactBackoff,
		Quarantine: frontier.Quarantine{After: 3, Probes: 2},
		OnGiveUp: func(e frontier.Entry, o frontier.Outcome) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if o.Result == frontier.Failed && o.Failure == frontier.FailureConnect {
				g.urls[e.URL]++
			}
		},
		OnEvent: func(e frontier.Event) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if e.Kind == frontier.EventHostGivenUp || e.Kind == frontier.EventURLGivenUp {
				g.events = append(g.events, e)
			}
		},
	}
}

// all requires that so many URLs were told of, each once.
func (g *graves) all(t *testing.T, n int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Len(t, g.urls, n)
	for u, times := range g.urls {
		require.Equal(t, 1, times, u)
	}
}

// withGraves runs a test in memory and on a store.
func withGraves(t *testing.T, test func(*testing.T, *world, *graves)) {
	t.Run("in memory", func(t *testing.T) {
		g := &graves{urls: map[string]int{}}
		test(t, newWorld(t, g.options()), g)
	})
	t.Run("on a store", func(t *testing.T) {
		g := &graves{urls: map[string]int{}}
		test(t, newStoredWorld(t, g.options(), spill.Options{}), g)
	})
}

// dies lets all contacts with a host fail until its last probe has.
func (w *world) dies(host string) {
	w.Helper()
	for range 5 {
		l := w.next()
		require.Equal(w, host, l.Host)
		require.NoError(w, w.f.Done(l, failing(frontier.FailureConnect)))
	}
}

func TestHostIsGivenUpAfterItsProbes(t *testing.T) {
	withGraves(t, func(t *testing.T, w *world, g *graves) {
		w.addMany("dead.example", 500)
		w.dies("dead.example")
		w.over()
		require.Equal(t, 30*time.Minute+6*sec, w.at(), "after 3 failures and probes after 10 and 20 minutes")
		s := w.f.Stats()
		require.EqualValues(t, 500, s.GivenUp)
		require.EqualValues(t, 1, s.Quarantined)
		require.NoError(t, w.f.Check())
		if w.machine != nil {
			w.reopen()
			w.over()
		} else {
			require.NoError(t, w.f.Close())
		}
		g.all(t, 500)
		require.Len(t, g.events, 501)
		require.Equal(t, frontier.Event{Kind: frontier.EventHostGivenUp, Time: g.events[0].Time, Host: "dead.example", Count: 500, Reason: "2 probes failed", Until: g.events[0].Time.Add(40 * time.Minute)}, g.events[0])
		for _, e := range g.events[1:] {
			require.Equal(t, frontier.EventURLGivenUp, e.Kind)
			require.Equal(t, "host given up", e.Reason)
		}
		if w.machine == nil {
			w.f, _ = frontier.Open(t.Context(), frontier.Options{})
		}
	})
}

// By default a crawl with a host that is dead ends, after days, and all that did not
// get their page are reported.
func TestCrawlWithADeadHostEndsByDefault(t *testing.T) {
	g := &graves{urls: map[string]int{}}
	inBothWorlds(t, frontier.Options{OnGiveUp: g.options().OnGiveUp, OnEvent: g.options().OnEvent}, func(t *testing.T, w *world) {
		g.urls, g.events = map[string]int{}, nil
		w.addMany("dead.example", 3)
		contacts := 0
		for ; ; contacts++ {
			l, at, err := w.tryNext()
			if errors.Is(err, frontier.ErrExhausted) {
				break
			}
			if errors.Is(err, frontier.ErrNotDue) {
				w.clk.Set(at)
				l = w.next()
			}
			require.NoError(t, w.f.Done(l, failing(frontier.FailureConnect)))
			require.Less(t, contacts, 50)
		}
		require.Equal(t, 18, contacts, "8 failures and 10 probes")
		probing := 90*time.Hour + 30*time.Minute // 10, 20, ... 1280 minutes, and two days
		require.Greater(t, w.at(), probing)
		require.Less(t, w.at(), probing+probing/10+10*time.Minute, "with all of the jitter, and the failures before")
		require.EqualValues(t, 3, w.f.Stats().GivenUp)
		require.NoError(t, w.f.Close())
		g.all(t, 3)
		require.Equal(t, frontier.EventHostGivenUp, g.events[0].Kind)
		require.EqualValues(t, 3, g.events[0].Count)
		w.open()
	})
}

// The URLs of a host that only fails are kept for as long as it takes if that is set,
// and if they come again for ever.
func TestHostIsNeverGivenUp(t *testing.T) {
	for name, o := range map[string]frontier.Options{
		"forever":   {Delay: frontier.FixedDelay(sec), Quarantine: frontier.Quarantine{Forever: true}},
		"scheduler": {Delay: frontier.FixedDelay(sec), Scheduler: frontier.SchedulerFunc(func(frontier.Visit) time.Time { return time.Time{} })},
	} {
		t.Run(name, func(t *testing.T) {
			inBothWorlds(t, o, func(t *testing.T, w *world) {
				w.addMany("dead.example", 5)
				for range 300 {
					require.NoError(t, w.f.Done(w.next(), failing(frontier.FailureConnect)))
				}
				require.EqualValues(t, 5, w.f.Stats().Waiting)
				require.NoError(t, w.f.Done(w.next(), frontier.Outcome{}))
				require.Len(t, w.rest(), 4)
			})
		})
	}
}

// URLs of a host that was given up are given up as they come, until its next
// probe is due. With the first good one everything continues.
func TestURLsOfAHostThatWasGivenUp(t *testing.T) {
	withGraves(t, func(t *testing.T, w *world, g *graves) {
		w.addMany("dead.example", 10)
		w.dies("dead.example")
		w.over()
		last := w.at()
		w.addMany("dead.example/more", 10)
		_, err := w.f.Add(t.Context(), frontier.Entry{URL: "http://dead.example/later", NotBefore: w.clk.Now().Add(time.Minute)})
		require.NoError(t, err)
		_, at, err := w.tryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, last+time.Minute, at.Sub(dawn))
		g.all(t, 20)
		w.until(last + time.Minute)
		w.over()
		g.all(t, 21)

		w.until(last + 40*time.Minute)
		w.addMany("dead.example/probed", 10)
		l := w.nextIs(last+40*time.Minute, "http://dead.example/probed/0")
		require.NoError(t, w.f.Done(l, failing(frontier.FailureConnect)))
		w.over()
		g.all(t, 31)

		w.until(w.at() + 80*time.Minute)
		w.addMany("dead.example/returned", 10)
		require.NoError(t, w.f.Done(w.next(), frontier.Outcome{}))
		require.Len(t, w.rest(), 9)
		g.all(t, 31)
	})
}

// What is on disk is given up, too, and a crash neither takes it back nor ends it:
// at most of the URLs that were on their way nobody is told.
func TestGivingUpIsDurable(t *testing.T) {
	for _, batch := range []int{1, 2, 5} {
		t.Run(fmt.Sprint("killed at batch ", batch), func(t *testing.T) {
			g := &graves{urls: map[string]int{}}
			w, h := hookedWorld(t, g.options())
			w.addMany("dead.example", 500)
			require.NoError(t, w.f.MoveNow(true))
			var told map[string]int
			var left *spilltest.Machine
			h.set(func(b *frontier.Batch) error {
				if len(b.Finish) > 1 {
					if batch--; batch == 0 {
						g.mu.Lock()
						told = maps.Clone(g.urls)
						g.mu.Unlock()
						left = w.machine.Kill(w)
					}
				}
				return nil
			}, nil)
			w.dies("dead.example")
			w.over()
			g.all(t, 500)
			require.NotNil(t, left)

			again := &graves{urls: map[string]int{}}
			o := again.options()
			o.Clock, o.Spill = w.clk, left.Store
			f, err := frontier.Open(t.Context(), o)
			require.NoError(t, err)
			_, _, err = f.TryNext()
			require.ErrorIs(t, err, frontier.ErrExhausted)
			ended(t, f)
			for u := range told {
				require.Zero(t, again.urls[u], "%s was given up before", u)
			}
			again.all(t, len(again.urls))
			require.GreaterOrEqual(t, len(told)+len(again.urls), 500-64)
		})
	}
}

func TestHeldHostsAreNotGivenUp(t *testing.T) {
	withGraves(t, func(t *testing.T, w *world, g *graves) {
		w.addMany("dead.example", 10)
		_, err := w.f.Add(t.Context(), frontier.Entry{URL: "http://dead.example/other", Crawl: 7})
		require.NoError(t, err)
		require.NoError(t, w.f.SetCrawl(7, frontier.CrawlSettings{Paused: true}))
		for range 4 {
			require.NoError(t, w.f.Done(w.next(), failing(frontier.FailureConnect)))
		}
		l := w.next()
		require.NoError(t, w.f.Pause(frontier.Domain("example")))
		require.NoError(t, w.f.Done(l, failing(frontier.FailureConnect)))
		var held *frontier.HeldError
		_, _, err = w.tryNext()
		require.ErrorAs(t, err, &held)
		require.EqualValues(t, 11, held.Held)
		g.all(t, 0)
		require.NoError(t, w.f.Resume(frontier.Domain("example")))
		_, _, err = w.tryNext()
		require.ErrorAs(t, err, &held)
		require.EqualValues(t, 1, held.Held, "its crawl is paused")
		g.all(t, 10)
	})
}

// URLs whose end cannot be stored, or that cannot be read, wait for the next probe.
func TestURLsThatCannotBeGivenUpAreKept(t *testing.T) {
	t.Run("stored", func(t *testing.T) {
		g := &graves{urls: map[string]int{}}
		w, h := hookedWorld(t, g.options())
		w.addMany("dead.example", 100)
		for range 4 {
			require.NoError(t, w.f.Done(w.next(), failing(frontier.FailureConnect)))
		}
		l := w.next()
		h.set(func(b *frontier.Batch) error {
			if len(b.Finish) > 1 {
				return errors.New("disk full")
			}
			return nil
		}, nil)
		require.NoError(t, w.f.Done(l, failing(frontier.FailureConnect)))
		_, at, err := w.tryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, 40*time.Minute, at.Sub(w.clk.Now()))
		h.set(nil, nil)
		require.EqualValues(t, 100, w.f.Stats().Waiting)
		g.all(t, 0)
		require.NoError(t, w.f.Done(w.next(), failing(frontier.FailureConnect)))
		w.over()
		g.all(t, 100)
	})
	t.Run("read", func(t *testing.T) {
		g := &graves{urls: map[string]int{}}
		w := newStoredWorld(t, g.options(), spill.Options{})
		w.addMany("dead.example", 100)
		for range 4 {
			require.NoError(t, w.f.Done(w.next(), failing(frontier.FailureConnect)))
		}
		l := w.next()
		require.NoError(t, w.f.MoveNow(true))
		w.machine.Faults.FailFrom(spilltest.Read, 1, errDisk)
		require.NoError(t, w.f.Done(l, failing(frontier.FailureConnect)))
		_, at, err := w.tryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, 40*time.Minute, at.Sub(w.clk.Now()))
		w.machine.Faults.Heal()
		require.NoError(t, w.f.Done(w.next(), failing(frontier.FailureConnect)))
		w.over()
		g.all(t, 100)
	})
}

// A finite crawl with a dead host ends by itself, also for those who wait in Next.
func TestNextReturnsWhenTheLastHostIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &graves{urls: map[string]int{}}
		o := g.options()
		var f *frontier.Frontier
		told := o.OnGiveUp
		o.OnGiveUp = func(e frontier.Entry, o frontier.Outcome) {
			told(e, o)
			_, err := f.Add(t.Context(), frontier.Entry{URL: e.URL})
			assert.NoError(t, err, "it may call the frontier")
		}
		f, err := frontier.Open(t.Context(), o)
		require.NoError(t, err)
		_, err = f.Add(t.Context(), entriesOf("dead.example", 300)...)
		require.NoError(t, err)
		start := time.Now()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					l, err := f.Next(t.Context())
					if err != nil {
						assert.ErrorIs(t, err, frontier.ErrExhausted)
						return
					}
					assert.NoError(t, f.Done(l, failing(frontier.FailureConnect)))
				}
			})
		}
		wg.Wait()
		require.Equal(t, 30*time.Minute+6*sec, time.Since(start))
		ended(t, f)
		g.all(t, 300)
	})
}
