// This file tests delay rules: which one wins, that they last, and what they
// mean after a crash.

package control

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDelayRules(t *testing.T) {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock, Delay: frontier.FixedDelay(time.Second)})
	require.NoError(t, err)
	set := func(s scope.Scope, d frontier.DelayPolicy) {
		t.Helper()
		require.NoError(t, f.UpdateRule(s, func(r *frontier.Rule) { r.Delay = d }))
	}
	delay := func(host string) time.Duration { return f.DelayOf(host).Max() }

	set(scope.Domain("example.org"), frontier.FixedDelay(2*time.Second))
	set(scope.Domain("a.example.org"), frontier.FixedDelay(3*time.Second))
	set(scope.Host("www.a.example.org"), frontier.FixedDelay(4*time.Second))
	set(scope.Host("127.0.0.1"), frontier.FixedDelay(5*time.Second))
	for host, want := range map[string]time.Duration{
		"example.org": 2 * time.Second, "b.example.org": 2 * time.Second,
		"a.example.org": 3 * time.Second, "x.y.a.example.org": 3 * time.Second,
		"www.a.example.org": 4 * time.Second, "b.www.a.example.org": 3 * time.Second,
		"myexample.org": time.Second, "org": time.Second, "127.0.0.1": 5 * time.Second, "1.127.0.0.1": time.Second,
	} {
		require.Equal(t, want, delay(host), host)
	}
	set(scope.Domain("a.example.org"), nil)
	require.Equal(t, 2*time.Second, delay("x.a.example.org"), "a rule taken back leaves the next one")

	require.ErrorContains(t, f.UpdateRule(scope.Host("h"), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(-1) }), "FixedDelay is -1ns")
	require.ErrorContains(t, f.UpdateRule(scope.Host(""), func(r *frontier.Rule) { r.Delay = nil }), "0 bytes")

	_, err = f.Add(ctx, frontier.Entry{URL: "http://b.example.org/1"}, frontier.Entry{URL: "http://b.example.org/2"})
	require.NoError(t, err)
	l, _, err := f.TryNext()
	require.NoError(t, err)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	_, at, err := f.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.Equal(t, 2*time.Second, at.Sub(clock.Now()))
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
	require.ErrorIs(t, f.UpdateRule(scope.Host("h"), func(r *frontier.Rule) { r.Delay = nil }), frontier.ErrClosed)
}

// Concurrent changes of one scope's rule all count, and one that cannot be stored does not affect
// the others.
func TestChangesOfOneRuleMeet(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	s := scope.Domain("example.org")
	for range 20 {
		require.NoError(t, w.F.Clear(s))
		var calls sync.WaitGroup
		calls.Go(func() {
			assert.NoError(t, w.F.UpdateRule(s, func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(time.Minute) }))
		})
		calls.Go(func() { assert.NoError(t, w.F.UpdateRule(s, func(r *frontier.Rule) { r.Concurrency = 7 })) })
		calls.Wait()
		r, ok := w.F.Rule(s)
		require.True(t, ok)
		require.Equal(t, frontier.Rule{Delay: frontier.FixedDelay(time.Minute), Concurrency: 7}, r)
	}
	w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
	require.ErrorIs(t, w.F.UpdateRule(s, func(r *frontier.Rule) { r.Concurrency = 8 }), harness.ErrDisk)
	require.NoError(t, w.F.UpdateRule(s, func(r *frontier.Rule) { r.Delay = nil }))
	require.Equal(t, frontier.Rule{Concurrency: 7}, w.F.RuleOf("www.example.org"))
	w = w.Killed()
	require.Equal(t, frontier.Rule{Concurrency: 7}, w.F.RuleOf("www.example.org"))
}

func TestDelayRulesLast(t *testing.T) {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	m := spilltest.OpenMemory(t, spill.Options{})
	open := func() *frontier.Frontier {
		f, err := frontier.Open(ctx, frontier.Options{Clock: clock, Delay: frontier.FixedDelay(time.Second), Spill: m.Store})
		require.NoError(t, err)
		return f
	}
	f := open()
	k := frontier.FactorDelay(3, time.Second, 2*time.Minute)
	require.NoError(t, f.UpdateRule(scope.Host("slow.example"), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(5 * time.Minute) }))
	require.NoError(t, f.UpdateRule(scope.Domain("k.example"), func(r *frontier.Rule) { r.Delay = k }))
	require.NoError(t, f.UpdateRule(scope.Domain("gone.example"), func(r *frontier.Rule) { r.Delay = k }))
	require.NoError(t, f.UpdateRule(scope.Domain("gone.example"), func(r *frontier.Rule) { r.Delay = nil }))
	old := f
	m = m.Kill(t)
	f = open()
	require.NoError(t, old.Close())
	require.Equal(t, k, f.DelayOf("x.k.example"))
	require.Equal(t, frontier.FixedDelay(time.Second), f.DelayOf("gone.example"))

	// Nobody knows when the host was contacted before the crash: its own delay
	// counts from the opening, also for a URL that comes later and after a clean
	// restart in between.
	opened := clock.Now()
	clock.Advance(2 * time.Second)
	require.NoError(t, f.Close())
	f = open()
	clock.Advance(2 * time.Second)
	_, err := f.Add(ctx, frontier.Entry{URL: "http://slow.example/"})
	require.NoError(t, err)
	_, at, err := f.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.Equal(t, 5*time.Minute, at.Sub(opened))
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
}

// Concurrent changes of one rule all count: the function of a change that finds the rule changed is
// called again.
func TestUpdateRuleThatIsOvertaken(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		s, calls := scope.Domain("example"), 0
		require.NoError(t, w.F.UpdateRule(s, func(r *frontier.Rule) {
			if calls++; calls == 1 {
				require.NoError(t, w.F.Pause(s))
			}
			r.Concurrency = 1 + calls
		}))
		require.Equal(t, 2, calls)
		r, _ := w.F.Rule(s)
		require.Equal(t, frontier.Rule{Paused: scope.On, Concurrency: 3}, r)
	})
}
