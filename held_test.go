// This file tests pausing, resuming and blocking: nothing is handed out of a held
// scope, everything else is, and what is held comes when it may.

package frontier_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// held requires that the crawl is over but for so many URLs that rules hold.
func (w *world) held(n int64) {
	w.Helper()
	l, _, err := w.tryNext()
	require.ErrorIs(w, err, frontier.ErrExhausted, "got %s", l.Entry.URL)
	var by *frontier.HeldError
	require.ErrorAs(w, err, &by)
	require.Equal(w, n, by.Held)
	require.Equal(w, n, w.f.Stats().Held)
	require.NoError(w, w.f.Check())
}

func TestPauseAndResume(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example.org", 2)...)
		w.add(urlsOf("b.example.org", 2)...)
		w.add(urlsOf("c.example", 1)...)
		require.NoError(t, w.f.Pause(frontier.Domain("example.org")))
		l := w.nextIs(0, "http://c.example/1")
		w.fetched(l, 0, frontier.Outcome{})
		w.held(4)
		require.NoError(t, w.f.Resume(frontier.Host("a.example.org")))
		r, ok := w.f.Rule(frontier.Host("a.example.org"))
		require.True(t, ok)
		require.Equal(t, frontier.Off, r.Paused)
		l = w.nextIs(0, "http://a.example.org/1")
		require.NoError(t, w.f.Pause(frontier.Host("a.example.org")), "while it is leased")
		w.fetched(l, 0, frontier.Outcome{})
		w.held(3)
		require.NoError(t, w.f.Resume(frontier.Domain("example.org")))
		w.fetched(w.nextIs(0, "http://b.example.org/1"), 0, frontier.Outcome{})
		w.fetched(w.nextIs(time.Second, "http://b.example.org/2"), 0, frontier.Outcome{})
		w.held(1)
		require.NoError(t, w.f.Clear(frontier.Host("a.example.org")))
		w.fetched(w.nextIs(time.Second, "http://a.example.org/2"), 0, frontier.Outcome{})
		w.over()
	})
}

// A pause finds a host wherever it is, and the end of the pause brings it back with
// its clock as it was.
func TestPauseReachesEveryPlace(t *testing.T) {
	const host = "a.example"
	for name, get := range map[string]func(w *world){
		"unbound": func(w *world) {},
		"pacing": func(w *world) {
			w.fetched(w.next(), 0, frontier.Outcome{})
		},
		"parked": func(w *world) {
			w.fetched(w.next(), 0, frontier.Outcome{RetryAfter: time.Hour})
		},
		"ready": func(w *world) {
			w.fetched(w.next(), 0, frontier.Outcome{})
			w.clk.Advance(time.Second)
			w.f.Stats() // lets it become ready
		},
		"leased": func(w *world) { w.next() },
		"in a group": func(w *world) {
			l := w.next()
			require.NoError(w, w.f.Join(&l, "g"))
			w.fetched(l, 0, frontier.Outcome{})
		},
		"ready in a group": func(w *world) {
			l := w.next()
			require.NoError(w, w.f.Join(&l, "g"))
			w.fetched(l, 0, frontier.Outcome{})
			w.clk.Advance(time.Second)
			w.f.Stats()
		},
		"scheduled": func(w *world) {
			l := w.next()
			w.fetched(l, 0, frontier.Outcome{Next: w.clk.Now().Add(time.Hour)})
		},
	} {
		for _, s := range []frontier.Scope{frontier.Host(host), frontier.Domain("example"), frontier.All()} {
			t.Run(fmt.Sprintf("%s/%v", name, s), func(t *testing.T) {
				inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), LeaseTime: time.Minute}, func(t *testing.T, w *world) {
					w.add(urlsOf(host, 9)...)
					get(w)
					due := w.at() + time.Second
					require.NoError(t, w.f.Pause(s))
					for w.f.Stats().Leased+w.f.Stats().Scheduled > 0 {
						_, at, err := w.tryNext()
						require.ErrorIs(t, err, frontier.ErrNotDue)
						w.clk.Set(at)
						due = w.at() + time.Second
					}
					_, err := w.f.Add(t.Context()) // what is on its way arrives
					require.NoError(t, err)
					w.held(w.f.Stats().Waiting)
					require.NoError(t, w.f.Resume(s))
					l := w.next()
					if name != "parked" {
						require.LessOrEqual(t, w.at(), due)
					} else {
						require.Equal(t, time.Hour, w.at())
					}
					w.fetched(l, 0, frontier.Outcome{})
				})
			})
		}
	}
}

func TestBlockUntil(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example.org", 1)...)
		w.add(urlsOf("b.example.org", 2)...)
		w.add(urlsOf("c.example.org", 1)...)
		hour := dawn.Add(time.Hour)
		require.NoError(t, w.f.BlockUntil(frontier.Domain("example.org"), hour))
		require.NoError(t, w.f.BlockUntil(frontier.Host("a.example.org"), hour.Add(time.Minute)))
		require.NoError(t, w.f.BlockUntil(frontier.Host("b.example.org"), hour.Add(-time.Minute)))
		require.NoError(t, w.f.Resume(frontier.Host("b.example.org")))
		w.fetched(w.nextIs(0, "http://b.example.org/1"), 0, frontier.Outcome{})
		require.NoError(t, w.f.BlockUntil(frontier.Host("b.example.org"), dawn.Add(2*time.Hour)))
		require.Equal(t, frontier.Rule{Paused: frontier.Off, BlockedUntil: dawn.Add(2 * time.Hour)}, w.f.RuleOf("b.example.org"))
		w.fetched(w.nextIs(time.Hour, "http://c.example.org/1"), 0, frontier.Outcome{})
		w.fetched(w.nextIs(time.Hour+time.Minute, "http://a.example.org/1"), 0, frontier.Outcome{})
		_, ok := w.f.Rule(frontier.Host("a.example.org"))
		require.False(t, ok, "a block that has passed is no rule")
		require.NoError(t, w.f.Pause(frontier.All()))
		w.fetched(w.nextIs(2*time.Hour, "http://b.example.org/2"), 0, frontier.Outcome{}) // it is set to run
		w.over()
	})
}

// A block under a pause does not keep Next waiting for its end.
func TestPausedAndBlocked(t *testing.T) {
	inBothWorlds(t, frontier.Options{}, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example.org", 1)...)
		require.NoError(t, w.f.BlockUntil(frontier.Host("a.example.org"), dawn.Add(time.Hour)))
		_, at, err := w.tryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, dawn.Add(time.Hour), at)
		w.why("a.example.org", frontier.ReasonBlocked, time.Hour)
		require.NoError(t, w.f.Pause(frontier.Domain("org")))
		w.why("a.example.org", frontier.ReasonPaused, 0)
		require.Equal(t, frontier.Rule{Paused: frontier.On, BlockedUntil: dawn.Add(time.Hour)}, w.host("a.example.org").Rule)
		w.held(1)
		require.NoError(t, w.f.Resume(frontier.Domain("org")))
		w.nextIs(time.Hour, "http://a.example.org/1")
	})
}

// Next and Contact calls that wait get what a Resume sets free, at once.
func TestResumeWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), frontier.Options{KeepOpen: true})
		require.NoError(t, err)
		_, err = f.Add(t.Context(), entriesOf("a.example", 1)...)
		require.NoError(t, err)
		require.NoError(t, f.Pause(frontier.All()))
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
		require.NoError(t, f.Resume(frontier.All()))
		require.ElementsMatch(t, []string{"a.example", "b.example"}, []string{<-got, <-got})
		require.Zero(t, time.Since(start))
		ended(t, f)
	})
}

// A Contact that waits for a paused host does not keep others from hearing that
// nothing is left; one that waits for a block does.
func TestContactOfAHeldHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), frontier.Options{})
		require.NoError(t, err)
		require.NoError(t, f.BlockUntil(frontier.Host("a.example"), time.Now().Add(time.Hour)))
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
		require.NoError(t, f.Pause(frontier.All()))
		_, err = f.Next(t.Context())
		require.ErrorIs(t, err, frontier.ErrExhausted)
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		require.NoError(t, f.Check())
		ended(t, f)
	})
}

// A pause that comes while a host's URLs are read from disk is in time.
func TestPauseDuringALoad(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.add(urlsOf("a.example", 3)...)
	require.NoError(t, w.f.MoveNow(true))
	w.machine.Faults.Before(spilltest.Read, 1, func() { assert.NoError(t, w.f.Pause(frontier.Domain("example"))) })
	w.held(3)
	require.NoError(t, w.f.Resume(frontier.Domain("example")))
	require.Equal(t, urlsOf("a.example", 3), w.rest())
}

// Many held hosts are set free a few under one lock, and the first comes at once.
func TestResumeOfManyHosts(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *world) {
		const n = 1000
		var entries []frontier.Entry
		for i := range n {
			entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example.org/", i)})
		}
		_, err := w.f.Add(t.Context(), entries...)
		require.NoError(t, err)
		require.NoError(t, w.f.Pause(frontier.All()))
		w.held(n)
		require.NoError(t, w.f.Resume(frontier.Domain("example.org")))
		l, _, err := w.f.TryNext()
		require.NoError(t, err)
		require.NoError(t, w.f.Check())
		require.Positive(t, w.f.Stats().Held)
		w.fetched(l, 0, frontier.Outcome{})
		require.Len(t, w.rest(), n-1)
		require.Zero(t, w.f.Stats().Held)
	})
}

// Rules that hold outlive the process.
func TestHoldingRulesLast(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.add(urlsOf("a.example", 1)...)
	w.add(urlsOf("b.example", 1)...)
	w.add(urlsOf("c.example", 1)...)
	require.NoError(t, w.f.Pause(frontier.All()))
	require.NoError(t, w.f.Resume(frontier.Host("c.example")))
	require.NoError(t, w.f.Resume(frontier.Host("a.example")))
	require.NoError(t, w.f.BlockUntil(frontier.Host("a.example"), dawn.Add(time.Hour)))
	w = w.killed()
	w.fetched(w.nextIs(0, "http://c.example/1"), 0, frontier.Outcome{})
	w.reopen()
	w.fetched(w.nextIs(time.Hour, "http://a.example/1"), 0, frontier.Outcome{})
	w.held(1)
	w.reopen()
	w.held(1)
	rules := map[string]frontier.Rule{}
	for s, r := range w.f.Rules() {
		rules[s.String()] = r
	}
	require.Equal(t, map[string]frontier.Rule{
		"*": {Paused: frontier.On}, "a.example": {Paused: frontier.Off}, "c.example": {Paused: frontier.Off},
	}, rules)
}

func TestBadControls(t *testing.T) {
	inBothWorlds(t, frontier.Options{}, func(t *testing.T, w *world) {
		f, s := w.f, frontier.Host("a.example")
		long := string(make([]byte, 256))
		for name, c := range map[string]struct {
			err  error
			want string
		}{
			"no host":         {f.Pause(frontier.Host("")), "scope name has 0 bytes; want 1 to 255"},
			"no domain":       {f.Resume(frontier.Domain("")), "scope name has 0 bytes; want 1 to 255"},
			"long name":       {f.Clear(frontier.Domain(long)), "scope name has 256 bytes; want 1 to 255"},
			"no time":         {f.BlockUntil(s, time.Time{}), "no time is given"},
			"past":            {f.BlockUntil(s, dawn.Add(-time.Second)), "want a time within 100 years from 2026-01-01"},
			"now":             {f.BlockUntil(s, dawn), "want a time within 100 years from 2026-01-01"},
			"far":             {f.BlockUntil(s, dawn.AddDate(101, 0, 0)), "want a time within 100 years from 2026-01-01"},
			"very far":        {f.BlockUntil(s, time.Unix(1<<60, 0)), "want a time within 100 years from 2026-01-01"},
			"long ago":        {f.BlockUntil(s, time.Unix(-1<<60, 0)), "want a time within 100 years from 2026-01-01"},
			"negative delay":  {f.SetDelay(s, frontier.FixedDelay(-1)), "FixedDelay(-1ns); want >= 0"},
			"absurd delay":    {f.SetDelay(s, frontier.FixedDelay(31*24*time.Hour)), "want at most 720h"},
			"policy":          {f.SetDelay(s, ownDelay{}), "frontier_test.ownDelay, which cannot be stored"},
			"concurrency":     {f.SetConcurrency(s, -1), "Concurrency is -1; want 1 to 1024"},
			"too much of it":  {f.SetConcurrency(s, 1025), "Concurrency is 1025; want 1 to 1024"},
			"no such switch":  {f.SetRule(s, frontier.Rule{Paused: 3}), "Paused is 3; want Unset, On or Off"},
			"all of a rule":   {f.SetRule(s, frontier.Rule{Paused: 3, Concurrency: -1}), "Concurrency is -1"},
			"names the scope": {f.SetConcurrency(frontier.Domain("x.example"), -1), "set concurrency of *.x.example:"},
		} {
			assert.ErrorContains(t, c.err, c.want, name)
		}
		for s := range f.Rules() {
			require.Fail(t, "a rule was changed", "%v", s)
		}
		require.NoError(t, f.Resume(s), "nothing to take back is no error")
		require.NoError(t, f.Clear(s))
		require.NoError(t, f.Close())
		for _, err := range []error{f.Pause(s), f.Resume(s), f.BlockUntil(s, dawn.Add(time.Hour)), f.Clear(s), f.SetConcurrency(s, 1)} {
			require.ErrorIs(t, err, frontier.ErrClosed)
		}
		w.f, _ = frontier.Open(t.Context(), frontier.Options{})
	})
}

type ownDelay struct{}

func (ownDelay) Delay(string, frontier.Outcome) time.Duration { return 0 }
func (ownDelay) Max() time.Duration                           { return 0 }

// Whoever listens hears of scopes that are paused or blocked, once.
func TestEventsOfHoldingRules(t *testing.T) {
	var events []frontier.Event
	heard := make(chan struct{}, 10)
	w := newWorld(t, frontier.Options{OnEvent: func(e frontier.Event) {
		events = append(events, e)
		heard <- struct{}{}
	}})
	s := frontier.Domain("example.org")
	until := dawn.Add(time.Hour)
	require.NoError(t, w.f.Pause(s))
	require.NoError(t, w.f.Pause(s))
	require.NoError(t, w.f.BlockUntil(frontier.Host("a.example"), until))
	require.NoError(t, w.f.SetDelay(frontier.Host("a.example"), frontier.FixedDelay(0)))
	require.NoError(t, w.f.Resume(s))
	require.NoError(t, w.f.Pause(frontier.All()))
	for range 3 {
		<-heard
	}
	require.Equal(t, []frontier.Event{
		{Kind: frontier.EventHostBlocked, Time: dawn, Scope: s, Reason: "paused"},
		{Kind: frontier.EventHostBlocked, Time: dawn, Scope: frontier.Host("a.example"), Host: "a.example", Until: until, Reason: "blocked"},
		{Kind: frontier.EventHostBlocked, Time: dawn, Reason: "paused"},
	}, events)
}
