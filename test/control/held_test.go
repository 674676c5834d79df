// This file tests pausing, resuming and blocking: nothing is handed out of a held
// scope, everything else is, and what is held comes when it may.

package control

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
)

// A program's hold and the operator's pause are two settings: each lasts until it is ended.
func TestHeldBesidePaused(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example.org", 1)...)
		a, org := scope.Host("a.example.org"), scope.Domain("example.org")
		hold := func(s scope.Scope, on bool) {
			require.NoError(t, w.F.UpdateRule(s, func(r *frontier.Rule) { r.Held = on }))
		}
		hold(a, true)
		w.Held(1)
		require.NoError(t, w.F.Pause(a))
		hold(a, false)
		w.Held(1)
		hold(a, true)
		require.NoError(t, w.F.Resume(a))
		w.Held(1)
		hold(org, true)
		hold(a, false)
		w.Held(1)
		require.NoError(t, w.F.Resume(a), "in spite of the domain")
		w.Fetched(w.NextIs(0, "http://a.example.org/1"), 0, frontier.Outcome{})
		require.Error(t, w.F.UpdateRule(scope.Crawl(0), func(r *frontier.Rule) { r.Held = true }))
	})
}

func TestPauseAndResume(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example.org", 2)...)
		w.Add(harness.UrlsOf("b.example.org", 2)...)
		w.Add(harness.UrlsOf("c.example", 1)...)
		require.NoError(t, w.F.Pause(scope.Domain("example.org")))
		l := w.NextIs(0, "http://c.example/1")
		w.Fetched(l, 0, frontier.Outcome{})
		w.Held(4)
		require.NoError(t, w.F.Resume(scope.Host("a.example.org")))
		r, ok := w.F.Rule(scope.Host("a.example.org"))
		require.True(t, ok)
		require.Equal(t, scope.Off, r.Paused)
		l = w.NextIs(0, "http://a.example.org/1")
		require.NoError(t, w.F.Pause(scope.Host("a.example.org")), "while it is leased")
		w.Fetched(l, 0, frontier.Outcome{})
		w.Held(3)
		require.NoError(t, w.F.Resume(scope.Domain("example.org")))
		w.Fetched(w.NextIs(0, "http://b.example.org/1"), 0, frontier.Outcome{})
		w.Fetched(w.NextIs(time.Second, "http://b.example.org/2"), 0, frontier.Outcome{})
		w.Held(1)
		require.NoError(t, w.F.Clear(scope.Host("a.example.org")))
		w.Fetched(w.NextIs(time.Second, "http://a.example.org/2"), 0, frontier.Outcome{})
		w.Over()
	})
}

// A pause finds a host wherever it is, and the end of the pause brings it back with
// its clock as it was.
func TestPauseReachesEveryPlace(t *testing.T) {
	const host = "a.example"
	for name, get := range map[string]func(w *harness.World){
		"unbound": func(w *harness.World) {},
		"pacing": func(w *harness.World) {
			w.Fetched(w.Next(), 0, frontier.Outcome{})
		},
		"parked": func(w *harness.World) {
			w.Fetched(w.Next(), 0, frontier.Outcome{RetryAfter: time.Hour})
		},
		"ready": func(w *harness.World) {
			w.Fetched(w.Next(), 0, frontier.Outcome{})
			w.Clock.Advance(time.Second)
			w.F.Stats() // lets it become ready
		},
		"leased": func(w *harness.World) { w.Next() },
		"in a group": func(w *harness.World) {
			l := w.Next()
			require.NoError(w, w.F.Join(&l, "g"))
			w.Fetched(l, 0, frontier.Outcome{})
		},
		"ready in a group": func(w *harness.World) {
			l := w.Next()
			require.NoError(w, w.F.Join(&l, "g"))
			w.Fetched(l, 0, frontier.Outcome{})
			w.Clock.Advance(time.Second)
			w.F.Stats()
		},
		"scheduled": func(w *harness.World) {
			l := w.Next()
			w.Fetched(l, 0, frontier.Outcome{Next: w.Clock.Now().Add(time.Hour)})
		},
	} {
		for _, s := range []scope.Scope{scope.Host(host), scope.Domain("example"), scope.All()} {
			t.Run(fmt.Sprintf("%s/%v", name, s), func(t *testing.T) {
				harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), LeaseTime: time.Minute}, func(t *testing.T, w *harness.World) {
					w.Add(harness.UrlsOf(host, 9)...)
					get(w)
					due := w.At() + time.Second
					require.NoError(t, w.F.Pause(s))
					for w.F.Stats().Leased+w.F.Stats().Scheduled > 0 {
						_, at, err := w.TryNext()
						require.ErrorIs(t, err, frontier.ErrNotDue)
						w.Clock.Set(at)
						due = w.At() + time.Second
					}
					_, err := w.F.Add(t.Context()) // what is on its way arrives
					require.NoError(t, err)
					w.Held(w.F.Stats().Waiting)
					require.NoError(t, w.F.Resume(s))
					l := w.Next()
					if name != "parked" {
						require.LessOrEqual(t, w.At(), due)
					} else {
						require.Equal(t, time.Hour, w.At())
					}
					w.Fetched(l, 0, frontier.Outcome{})
				})
			})
		}
	}
}

func TestBlockUntil(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example.org", 1)...)
		w.Add(harness.UrlsOf("b.example.org", 2)...)
		w.Add(harness.UrlsOf("c.example.org", 1)...)
		hour := harness.Dawn.Add(time.Hour)
		require.NoError(t, w.F.BlockUntil(scope.Domain("example.org"), hour))
		require.NoError(t, w.F.BlockUntil(scope.Host("a.example.org"), hour.Add(time.Minute)))
		require.NoError(t, w.F.BlockUntil(scope.Host("b.example.org"), hour.Add(-time.Minute)))
		require.NoError(t, w.F.Resume(scope.Host("b.example.org")))
		w.Fetched(w.NextIs(0, "http://b.example.org/1"), 0, frontier.Outcome{})
		require.NoError(t, w.F.BlockUntil(scope.Host("b.example.org"), harness.Dawn.Add(2*time.Hour)))
		require.Equal(t, frontier.Rule{Paused: scope.Off, BlockedUntil: harness.Dawn.Add(2 * time.Hour)}, w.F.RuleOf("b.example.org"))
		w.Fetched(w.NextIs(time.Hour, "http://c.example.org/1"), 0, frontier.Outcome{})
		w.Fetched(w.NextIs(time.Hour+time.Minute, "http://a.example.org/1"), 0, frontier.Outcome{})
		_, ok := w.F.Rule(scope.Host("a.example.org"))
		require.False(t, ok, "a block that has passed is no rule")
		require.NoError(t, w.F.Pause(scope.All()))
		w.Fetched(w.NextIs(2*time.Hour, "http://b.example.org/2"), 0, frontier.Outcome{}) // it is set to run
		w.Over()
	})
}

// A block under a pause does not keep Next waiting for its end.
func TestPausedAndBlocked(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example.org", 1)...)
		require.NoError(t, w.F.BlockUntil(scope.Host("a.example.org"), harness.Dawn.Add(time.Hour)))
		_, at, err := w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, harness.Dawn.Add(time.Hour), at)
		w.Why("a.example.org", inspect.ReasonBlocked, time.Hour)
		require.NoError(t, w.F.Pause(scope.Domain("org")))
		w.Why("a.example.org", inspect.ReasonPaused, 0)
		require.Equal(t, frontier.Rule{Paused: scope.On, BlockedUntil: harness.Dawn.Add(time.Hour)}, w.Host("a.example.org").Rule)
		w.Held(1)
		require.NoError(t, w.F.Resume(scope.Domain("org")))
		w.NextIs(time.Hour, "http://a.example.org/1")
	})
}

// Next and Contact calls that wait get what a Resume sets free, at once.
func TestResumeWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), frontier.Options{KeepOpen: true})
		require.NoError(t, err)
		_, err = f.Add(t.Context(), harness.EntriesOf("a.example", 1)...)
		require.NoError(t, err)
		require.NoError(t, f.Pause(scope.All()))
		got := make(chan string, 2)
		go func() {
			l, err := f.Next(t.Context())
			assert.NoError(t, err)
			got <- l.Host
		}()
		go func() {
			l, err := f.Contact(t.Context(), "b.example")
			assert.NoError(t, err)
			got <- l.Host
		}()
		synctest.Wait()
		require.Empty(t, got)
		require.NoError(t, f.Check())
		start := time.Now()
		require.NoError(t, f.Resume(scope.All()))
		require.ElementsMatch(t, []string{"a.example", "b.example"}, []string{<-got, <-got})
		require.Zero(t, time.Since(start))
		harness.Ended(t, f)
	})
}

// While a Contact waits for a paused host, other calls still learn that nothing is left; while one
// waits for a block, they do not.
func TestContactOfAHeldHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), frontier.Options{})
		require.NoError(t, err)
		require.NoError(t, f.BlockUntil(scope.Host("a.example"), time.Now().Add(time.Hour)))
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := f.Contact(ctx, "a.example")
			gone <- err
		}()
		synctest.Wait()
		_, at, err := f.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, time.Hour, time.Until(at))
		require.NoError(t, f.Pause(scope.All()))
		_, err = f.Next(t.Context())
		require.ErrorIs(t, err, frontier.ErrExhausted)
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		require.NoError(t, f.Check())
		harness.Ended(t, f)
	})
}

// A pause that comes while a host's URLs are read from disk is in time.
func TestPauseDuringALoad(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Add(harness.UrlsOf("a.example", 3)...)
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	w.Machine.Faults.Before(spilltest.Read, 1, func() { assert.NoError(t, w.F.Pause(scope.Domain("example"))) })
	w.Held(3)
	require.NoError(t, w.F.Resume(scope.Domain("example")))
	require.Equal(t, harness.UrlsOf("a.example", 3), w.Rest())
}

// Many held hosts are set free a few under one lock, and the first comes at once.
func TestResumeOfManyHosts(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		const n = 1000
		var entries []frontier.Entry
		for i := range n {
			entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example.org/", i)})
		}
		_, err := w.F.Add(t.Context(), entries...)
		require.NoError(t, err)
		require.NoError(t, w.F.Pause(scope.All()))
		w.Held(n)
		require.NoError(t, w.F.Resume(scope.Domain("example.org")))
		l, _, err := w.F.TryNext()
		require.NoError(t, err)
		require.NoError(t, w.F.Check())
		require.Positive(t, w.F.Stats().Held)
		w.Fetched(l, 0, frontier.Outcome{})
		require.Len(t, w.Rest(), n-1)
		require.Zero(t, w.F.Stats().Held)
	})
}

// Rules that hold outlive the process.
func TestHoldingRulesLast(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Add(harness.UrlsOf("a.example", 1)...)
	w.Add(harness.UrlsOf("b.example", 1)...)
	w.Add(harness.UrlsOf("c.example", 1)...)
	require.NoError(t, w.F.Pause(scope.All()))
	require.NoError(t, w.F.Resume(scope.Host("c.example")))
	require.NoError(t, w.F.Resume(scope.Host("a.example")))
	require.NoError(t, w.F.BlockUntil(scope.Host("a.example"), harness.Dawn.Add(time.Hour)))
	w = w.Killed()
	w.Fetched(w.NextIs(0, "http://c.example/1"), 0, frontier.Outcome{})
	w.Reopen()
	w.Fetched(w.NextIs(time.Hour, "http://a.example/1"), 0, frontier.Outcome{})
	w.Held(1)
	w.Reopen()
	w.Held(1)
	rules := map[string]frontier.Rule{}
	for s, r := range w.F.Rules() {
		rules[s.String()] = r
	}
	require.Equal(t, map[string]frontier.Rule{
		"*": {Paused: scope.On}, "a.example": {Paused: scope.Off}, "c.example": {Paused: scope.Off},
	}, rules)
}

func TestBadControls(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		f, s := w.F, scope.Host("a.example")
		long := string(make([]byte, 256))
		for name, c := range map[string]struct {
			err  error
			want string
		}{
			"no host":         {f.Pause(scope.Host("")), "scope name has 0 bytes; want 1 to 255"},
			"no domain":       {f.Resume(scope.Domain("")), "scope name has 0 bytes; want 1 to 255"},
			"star":            {f.Pause(scope.Domain("*")), `domain "*"; want a name without *, or All for all hosts`},
			"long name":       {f.Clear(scope.Domain(long)), "scope name has 256 bytes; want 1 to 255"},
			"no time":         {f.BlockUntil(s, time.Time{}), "no time is given"},
			"past":            {f.BlockUntil(s, harness.Dawn.Add(-time.Second)), "want a time within 100 years from 2026-01-01"},
			"now":             {f.BlockUntil(s, harness.Dawn), "want a time within 100 years from 2026-01-01"},
			"far":             {f.BlockUntil(s, harness.Dawn.AddDate(101, 0, 0)), "want a time within 100 years from 2026-01-01"},
			"very far":        {f.BlockUntil(s, time.Unix(1<<60, 0)), "want a time within 100 years from 2026-01-01"},
			"long ago":        {f.BlockUntil(s, time.Unix(-1<<60, 0)), "want a time within 100 years from 2026-01-01"},
			"negative delay":  {f.UpdateRule(s, func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(-1) }), "FixedDelay is -1ns; want 0 or at least 1ms"},
			"absurd delay":    {f.UpdateRule(s, func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(31 * 24 * time.Hour) }), "want at most 720h"},
			"policy":          {f.UpdateRule(s, func(r *frontier.Rule) { r.Delay = ownDelay{} }), "control.ownDelay, which cannot be stored"},
			"concurrency":     {f.UpdateRule(s, func(r *frontier.Rule) { r.Concurrency = -1 }), "Concurrency is -1; want 1 to 1024"},
			"too much of it":  {f.UpdateRule(s, func(r *frontier.Rule) { r.Concurrency = 1025 }), "Concurrency is 1025; want 1 to 1024"},
			"no such switch":  {f.UpdateRule(s, func(rule *frontier.Rule) { *rule = frontier.Rule{Paused: 3} }), "Paused is 3; want Unset, On or Off"},
			"all of a rule":   {f.UpdateRule(s, func(rule *frontier.Rule) { *rule = frontier.Rule{Paused: 3, Concurrency: -1} }), "Concurrency is -1"},
			"names the scope": {f.UpdateRule(scope.Domain("x.example"), func(r *frontier.Rule) { r.Concurrency = -1 }), "update rule of *.x.example:"},
		} {
			assert.ErrorContains(t, c.err, c.want, name)
		}
		for s := range f.Rules() {
			require.Fail(t, "a rule was changed", "%v", s)
		}
		require.NoError(t, f.Resume(s), "nothing to take back is no error")
		require.NoError(t, f.Clear(s))
		require.NoError(t, f.Close())
		for _, err := range []error{f.Pause(s), f.Resume(s), f.BlockUntil(s, harness.Dawn.Add(time.Hour)), f.Clear(s), f.UpdateRule(s, func(r *frontier.Rule) { r.Concurrency = 1 })} {
			require.ErrorIs(t, err, frontier.ErrClosed)
		}
		w.F, _ = frontier.Open(t.Context(), frontier.Options{})
	})
}

type ownDelay struct{}

func (ownDelay) Delay(string, frontier.Outcome) time.Duration { return 0 }

func (ownDelay) Max() time.Duration { return 0 }

// Whoever listens hears of scopes that are paused or blocked, once.
func TestEventsOfHoldingRules(t *testing.T) {
	var events []event.Event
	heard := make(chan struct{}, 10)
	w := harness.NewWorld(t, frontier.Options{OnEvent: func(e event.Event) {
		events = append(events, e)
		heard <- struct{}{}
	}})
	s := scope.Domain("example.org")
	until := harness.Dawn.Add(time.Hour)
	require.NoError(t, w.F.Pause(s))
	require.NoError(t, w.F.Pause(s))
	require.NoError(t, w.F.BlockUntil(scope.Host("a.example"), until))
	require.NoError(t, w.F.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(0) }))
	require.NoError(t, w.F.Resume(s))
	require.NoError(t, w.F.Pause(scope.All()))
	for range 3 {
		<-heard
	}
	require.Equal(t, []event.Event{
		{Kind: event.HostBlocked, Time: harness.Dawn, Scope: s.String(), Reason: "paused"},
		{Kind: event.HostBlocked, Time: harness.Dawn, Scope: "a.example", Host: "a.example", Until: until, Reason: "blocked"},
		{Kind: event.HostBlocked, Time: harness.Dawn, Scope: "*", Reason: "paused"},
	}, events)
}

// The wall clock may be set back behind the moment of Open. Then dates are negative, and
// what has no end is not taken for something whose end is yet to come.
func TestClockBehindOpen(t *testing.T) {
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		w.Clock.Step(-time.Hour)
		at := func(d time.Duration) time.Duration { return d - time.Hour }
		a, b := scope.Host("a.example"), scope.Host("b.example")
		w.Add("http://a.example/", "http://b.example/", "http://c.example/", "http://d.example/1", "http://d.example/2")
		require.NoError(t, w.F.Pause(a))
		require.NoError(t, w.F.Resume(a))
		require.NoError(t, w.F.BlockUntil(b, w.Clock.Now().Add(time.Minute)))
		require.NoError(t, w.F.UpdateRule(scope.Host("d.example"), func(r *frontier.Rule) {
			r.Limits = scope.Limits{Served: 1, Period: 10 * time.Minute}
		}))
		require.NoError(t, w.F.BlockUntil(scope.Host("c.example"), harness.Dawn), "its date is 0")
		require.NoError(t, w.F.Check())
		require.Equal(t, 2, w.Served(frontier.Outcome{}), "a host without a block, and one within its limit")
		w.Why("d.example", inspect.ReasonLimit, at(10*time.Minute))
		w.Fetched(w.NextIs(at(time.Minute), "http://b.example/"), 0, frontier.Outcome{})
		w.Fetched(w.NextIs(at(10*time.Minute), "http://d.example/2"), 0, frontier.Outcome{})
		w.Fetched(w.NextIs(0, "http://c.example/"), 0, frontier.Outcome{})
		w.Over()
	})
}

// The same for a crawl's limit.
func TestCrawlsLimitWithTheClockBehindOpen(t *testing.T) {
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		w.Clock.Step(-time.Hour)
		w.SetCrawl(7, frontier.Rule{Limits: scope.Limits{Served: 1, Period: time.Hour}})
		w.InCrawl(7, "http://a.example/", 2)
		require.Equal(t, 1, w.Served(frontier.Outcome{}))
		used, _ := inspect.New(w.F).Used(scope.Crawl(7))
		require.True(t, used.Until.Equal(harness.Dawn), "its date is 0")
		w.Fetched(w.NextAt(0), 0, frontier.Outcome{})
		w.Over()
	})
}
