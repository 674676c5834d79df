// This file tests that hosts whose probes fail are given up if that is set, and
// nothing of them is lost otherwise.

package politeness

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
)

// graves is where URLs are noted that were given up.
type graves struct {
	mu     sync.Mutex
	urls   map[string]int
	events []event.Event
}

func (g *graves) options() frontier.Options {
	return frontier.Options{
		Delay: frontier.FixedDelay(time.Second), Backoff: harness.ExactBackoff,
		Quarantine: frontier.Quarantine{After: 3, Probes: 2},
		OnGiveUp: func(e frontier.Entry, o frontier.Outcome) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if o.Result == frontier.Failed && o.Failure == frontier.FailureConnect {
				g.urls[e.URL]++
			}
		},
		OnEvent: func(e event.Event) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if e.Kind == event.HostGivenUp || e.Kind == event.URLGivenUp {
				g.events = append(g.events, e)
			}
		},
	}
}

// all requires that the given number of URLs were reported, each once.
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
func withGraves(t *testing.T, test func(*testing.T, *harness.World, *graves)) {
	t.Run("in memory", func(t *testing.T) {
		g := &graves{urls: map[string]int{}}
		test(t, harness.NewWorld(t, g.options()), g)
	})
	t.Run("on a store", func(t *testing.T) {
		g := &graves{urls: map[string]int{}}
		test(t, harness.NewStoredWorld(t, g.options(), spill.Options{}), g)
	})
}

func TestHostIsGivenUpAfterItsProbes(t *testing.T) {
	withGraves(t, func(t *testing.T, w *harness.World, g *graves) {
		w.AddMany("dead.example", 500)
		w.Dies("dead.example")
		w.Over()
		require.Equal(t, 30*time.Minute+6*time.Second, w.At(), "after 3 failures and probes after 10 and 20 minutes")
		s := w.F.Stats()
		require.EqualValues(t, 500, s.GivenUp)
		require.EqualValues(t, 1, s.Quarantined)
		require.NoError(t, w.F.Check())
		if w.Machine != nil {
			w.Reopen()
			w.Over()
		} else {
			require.NoError(t, w.F.Close())
		}
		g.all(t, 500)
		require.Len(t, g.events, 501)
		require.Equal(t, event.Event{Kind: event.HostGivenUp, Time: g.events[0].Time, Host: "dead.example", Count: 500, Reason: "2 probes failed", Until: g.events[0].Time.Add(40 * time.Minute)}, g.events[0])
		for _, e := range g.events[1:] {
			require.Equal(t, event.URLGivenUp, e.Kind)
			require.Equal(t, "host given up", e.Reason)
		}
		if w.Machine == nil {
			w.F, _ = frontier.Open(t.Context(), frontier.Options{})
		}
	})
}

// By default a crawl with a dead host ends, after days, and all URLs without their page are
// reported.
func TestCrawlWithADeadHostEndsByDefault(t *testing.T) {
	g := &graves{urls: map[string]int{}}
	harness.InBothWorlds(t, frontier.Options{OnGiveUp: g.options().OnGiveUp, OnEvent: g.options().OnEvent}, func(t *testing.T, w *harness.World) {
		g.urls, g.events = map[string]int{}, nil
		w.AddMany("dead.example", 3)
		contacts := 0
		for ; ; contacts++ {
			l, at, err := w.TryNext()
			if errors.Is(err, frontier.ErrExhausted) {
				break
			}
			if errors.Is(err, frontier.ErrNotDue) {
				w.Clock.Set(at)
				l = w.Next()
			}
			require.NoError(t, w.F.Done(l, harness.Failing(frontier.FailureConnect)))
			require.Less(t, contacts, 50)
		}
		require.Equal(t, 18, contacts, "8 failures and 10 probes")
		probing := 90*time.Hour + 30*time.Minute // 10, 20, ... 1280 minutes, and two days
		require.Greater(t, w.At(), probing)
		require.Less(t, w.At(), probing+probing/10+10*time.Minute, "with all of the jitter, and the failures before")
		require.EqualValues(t, 3, w.F.Stats().GivenUp)
		require.NoError(t, w.F.Close())
		g.all(t, 3)
		require.Equal(t, event.HostGivenUp, g.events[0].Kind)
		require.EqualValues(t, 3, g.events[0].Count)
		w.Open()
	})
}

// The URLs of a host that only fails are kept for as long as it takes if that is set,
// and if they come again for ever.
func TestHostIsNeverGivenUp(t *testing.T) {
	for name, o := range map[string]frontier.Options{
		"forever":   {Delay: frontier.FixedDelay(time.Second), Quarantine: frontier.Quarantine{Forever: true}},
		"scheduler": {Delay: frontier.FixedDelay(time.Second), Scheduler: frontier.SchedulerFunc(func(frontier.Visit) time.Time { return time.Time{} })},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
				w.AddMany("dead.example", 5)
				for range 300 {
					require.NoError(t, w.F.Done(w.Next(), harness.Failing(frontier.FailureConnect)))
				}
				require.EqualValues(t, 5, w.F.Stats().Waiting)
				require.NoError(t, w.F.Done(w.Next(), frontier.Outcome{}))
				require.Len(t, w.Rest(), 4)
			})
		})
	}
}

// URLs of a host that was given up are given up as they come, until its next
// probe is due. With the first good one everything continues.
func TestURLsOfAHostThatWasGivenUp(t *testing.T) {
	withGraves(t, func(t *testing.T, w *harness.World, g *graves) {
		w.AddMany("dead.example", 10)
		w.Dies("dead.example")
		w.Over()
		last := w.At()
		w.AddMany("dead.example/more", 10)
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://dead.example/later", NotBefore: w.Clock.Now().Add(time.Minute)})
		require.NoError(t, err)
		_, at, err := w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, last+time.Minute, at.Sub(harness.Dawn))
		g.all(t, 20)
		w.Until(last + time.Minute)
		w.Over()
		g.all(t, 21)

		w.Until(last + 40*time.Minute)
		w.AddMany("dead.example/probed", 10)
		l := w.NextIs(last+40*time.Minute, "http://dead.example/probed/0")
		require.NoError(t, w.F.Done(l, harness.Failing(frontier.FailureConnect)))
		w.Over()
		g.all(t, 31)

		w.Until(w.At() + 80*time.Minute)
		w.AddMany("dead.example/returned", 10)
		require.NoError(t, w.F.Done(w.Next(), frontier.Outcome{}))
		require.Len(t, w.Rest(), 9)
		g.all(t, 31)
	})
}

// URLs on disk are given up, too, and a crash neither reverts nor ends it: at most the URLs that
// were being processed are not reported.
func TestGivingUpIsDurable(t *testing.T) {
	for _, batch := range []int{1, 2, 5} {
		t.Run(fmt.Sprint("killed at batch ", batch), func(t *testing.T) {
			g := &graves{urls: map[string]int{}}
			w, h := harness.HookedWorld(t, g.options())
			w.AddMany("dead.example", 500)
			require.NoError(t, hook.Of(w.F).MoveNow(true))
			var told map[string]int
			var left *spilltest.Machine
			h.Set(func(b *storage.Batch) error {
				if len(b.Finish) > 1 {
					if batch--; batch == 0 {
						g.mu.Lock()
						told = maps.Clone(g.urls)
						g.mu.Unlock()
						left = w.Machine.Kill(w)
					}
				}
				return nil
			}, nil)
			w.Dies("dead.example")
			w.Over()
			g.all(t, 500)
			require.NotNil(t, left)

			again := &graves{urls: map[string]int{}}
			o := again.options()
			o.Clock, o.Spill = w.Clock, left.Store
			f, err := frontier.Open(t.Context(), o)
			require.NoError(t, err)
			_, _, err = f.TryNext()
			require.ErrorIs(t, err, frontier.ErrExhausted)
			harness.Ended(t, f)
			for u := range told {
				require.Zero(t, again.urls[u], "%s was given up before", u)
			}
			again.all(t, len(again.urls))
			require.GreaterOrEqual(t, len(told)+len(again.urls), 500-64)
		})
	}
}

func TestHeldHostsAreNotGivenUp(t *testing.T) {
	withGraves(t, func(t *testing.T, w *harness.World, g *graves) {
		w.AddMany("dead.example", 10)
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://dead.example/other", Crawl: 7})
		require.NoError(t, err)
		require.NoError(t, w.F.UpdateRule(scope.Crawl(7), func(r *frontier.Rule) { *r = frontier.Rule{Paused: scope.On} }))
		for range 4 {
			require.NoError(t, w.F.Done(w.Next(), harness.Failing(frontier.FailureConnect)))
		}
		l := w.Next()
		require.NoError(t, w.F.Pause(scope.Domain("example")))
		require.NoError(t, w.F.Done(l, harness.Failing(frontier.FailureConnect)))
		var held *frontier.HeldError
		_, _, err = w.TryNext()
		require.ErrorAs(t, err, &held)
		require.EqualValues(t, 11, held.Held)
		g.all(t, 0)
		require.NoError(t, w.F.Resume(scope.Domain("example")))
		_, _, err = w.TryNext()
		require.ErrorAs(t, err, &held)
		require.EqualValues(t, 1, held.Held, "its crawl is paused")
		g.all(t, 10)
	})
}

// URLs whose end cannot be stored, or that cannot be read, wait for the next probe.
func TestURLsThatCannotBeGivenUpAreKept(t *testing.T) {
	t.Run("stored", func(t *testing.T) {
		g := &graves{urls: map[string]int{}}
		w, h := harness.HookedWorld(t, g.options())
		w.AddMany("dead.example", 100)
		for range 4 {
			require.NoError(t, w.F.Done(w.Next(), harness.Failing(frontier.FailureConnect)))
		}
		l := w.Next()
		h.Set(func(b *storage.Batch) error {
			if len(b.Finish) > 1 {
				return errors.New("disk full")
			}
			return nil
		}, nil)
		require.NoError(t, w.F.Done(l, harness.Failing(frontier.FailureConnect)))
		_, at, err := w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, 40*time.Minute, at.Sub(w.Clock.Now()))
		h.Set(nil, nil)
		require.EqualValues(t, 100, w.F.Stats().Waiting)
		g.all(t, 0)
		require.NoError(t, w.F.Done(w.Next(), harness.Failing(frontier.FailureConnect)))
		w.Over()
		g.all(t, 100)
	})
	t.Run("read", func(t *testing.T) {
		g := &graves{urls: map[string]int{}}
		w := harness.NewStoredWorld(t, g.options(), spill.Options{})
		w.AddMany("dead.example", 100)
		for range 4 {
			require.NoError(t, w.F.Done(w.Next(), harness.Failing(frontier.FailureConnect)))
		}
		l := w.Next()
		require.NoError(t, hook.Of(w.F).MoveNow(true))
		w.Machine.Faults.FailFrom(spilltest.Read, 1, harness.ErrDisk)
		require.NoError(t, w.F.Done(l, harness.Failing(frontier.FailureConnect)))
		_, at, err := w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, 40*time.Minute, at.Sub(w.Clock.Now()))
		w.Machine.Faults.Heal()
		require.NoError(t, w.F.Done(w.Next(), harness.Failing(frontier.FailureConnect)))
		w.Over()
		g.all(t, 100)
	})
}

// A finite crawl with a dead host ends without help, also for calls that wait in Next.
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
		_, err = f.Add(t.Context(), harness.EntriesOf("dead.example", 300)...)
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
					assert.NoError(t, f.Done(l, harness.Failing(frontier.FailureConnect)))
				}
			})
		}
		wg.Wait()
		require.Equal(t, 30*time.Minute+6*time.Second, time.Since(start))
		harness.Ended(t, f)
		g.all(t, 300)
	})
}
