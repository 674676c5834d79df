// This file tests limits that only an operator can lift.

package limits

import (
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// Hosts that wait for the end of a period stop waiting when another limit is reached permanently:
// the crawl is over at once, not after the period.
func TestLimitReachedForGoodWhileAPeriodIsAwaited(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Retry: frontier.Retries(1, 0)}, func(t *testing.T, w *harness.World) {
		require.NoError(t, w.F.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1, Period: time.Hour} }))
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits = scope.Limits{Errors: 1} }))
		w.Add("http://a.example/", "http://b.example/")
		l := w.Next()
		_, at, err := w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.False(t, at.IsZero())
		w.Fetched(l, time.Second, harness.Failing(frontier.FailureOther))
		_, _, err = w.TryNext()
		var held *frontier.HeldError
		require.ErrorAs(t, err, &held)
		require.EqualValues(t, 1, held.Held)
	})
}

// What was served in a period that has ended stays forgotten under limits without a period, even
// after a crash; otherwise it would count forever.
func TestPeriodThatEndedBeforeTheLimitsChanged(t *testing.T) {
	w := harness.NewStoredWorld(t, harness.Quick(), spill.Options{})
	example := scope.Domain("example")
	day := scope.Limits{Served: 1, Period: 24 * time.Hour}
	require.NoError(t, w.F.UpdateRule(example, func(r *frontier.Rule) { r.Limits = day }))
	require.NoError(t, w.F.UpdateRule(scope.Crawl(7), func(r *frontier.Rule) { r.Limits = day }))
	w.AddMany("a.example", 3)
	w.InCrawl(7, "http://c.test/", 3)
	require.Equal(t, 2, w.Served(frontier.Outcome{}))
	w.Until(25 * time.Hour)
	require.NoError(t, w.F.UpdateRule(example, func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1} }))
	require.NoError(t, w.F.UpdateRule(scope.Crawl(7), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1} }))

	w = w.Killed()
	w.Until(26 * time.Hour)
	used, ok := inspect.New(w.F).Used(example)
	require.True(t, ok)
	require.Zero(t, used)
	require.Equal(t, 2, w.Served(frontier.Outcome{}))
	w.HeldFor(2)
}

// The same holds for the separate limits of hosts, whose rows are not visited when limits change,
// and for later limits of a narrower scope.
func TestPeriodOfAHostThatEndedBeforeTheLimitsChanged(t *testing.T) {
	for _, killed := range []bool{false, true} {
		w := harness.NewStoredWorld(t, harness.Quick(), spill.Options{})
		day := scope.Limits{Served: 1, Period: 24 * time.Hour}
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = day }))
		for _, host := range []string{"a.example", "b.example", "c.test"} {
			w.AddMany(host, 3)
		}
		require.Equal(t, 3, w.Served(frontier.Outcome{}))
		w.Until(23 * time.Hour)
		w.AddMany("d.test", 3)
		require.Equal(t, 1, w.Served(frontier.Outcome{}))
		w.Until(25 * time.Hour)
		require.NoError(t, w.F.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1} }))
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1} }))
		if killed {
			w = w.Killed()
		} else {
			w.Reopen()
		}
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(0) })) // the row of the rule is written anew
		w.Reopen()
		w.Until(26 * time.Hour)
		for _, host := range []string{"a.example", "b.example", "c.test"} {
			require.Zero(t, w.Host(host).Used, host)
		}
		require.EqualValues(t, 1, w.Host("d.test").Used.Served, "its period had not ended")
		require.Equal(t, 3, w.Served(frontier.Outcome{}), "one of each other host")
		w.HeldFor(5)
	}
}

// A host that was not in memory when the limits changed is no exception.
func TestPeriodOfAHostThatWasAway(t *testing.T) {
	w := harness.NewStoredWorld(t, harness.Quick(), spill.Options{})
	require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1, Period: 24 * time.Hour} }))
	w.AddMany("a.example", 1)
	require.Equal(t, 1, w.Served(frontier.Outcome{}))
	w.Asleep()
	require.EqualValues(t, 1, w.Host("a.example").Used.Served)
	w.Until(25 * time.Hour)
	require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1} }))
	require.Zero(t, w.Host("a.example").Used, "as it is away")
	w.Reopen()
	require.Zero(t, w.Host("a.example").Used, "opened again")
	w.Add("http://a.example/more", "http://a.example/again")
	require.Zero(t, w.Host("a.example").Used)
	require.Equal(t, 1, w.Served(frontier.Outcome{}))
	w.HeldFor(1)
}

// What an import says counts, though the rules that come before it limit the host in
// two steps: in the frontier it comes from they were there first.
func TestImportedUsageCounts(t *testing.T) {
	w := harness.NewStoredWorld(t, harness.Quick(), spill.Options{})
	require.NoError(t, w.F.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1} }))
	require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 6, Period: 15 * time.Second} }))
	w.AddMany("a.example", 2)
	require.Equal(t, 1, w.Served(frontier.Outcome{}))
	w.Until(time.Minute)
	x := harness.NewStoredWorld(t, harness.Quick(), spill.Options{})
	x.Clock.Set(w.Clock.Now())
	x.Imported(w.Export())
	require.Equal(t, harness.Timeless(w.Export()), harness.Timeless(x.Export()))
	for range 2 {
		require.EqualValues(t, 1, x.Host("a.example").Used.Served)
		require.Zero(t, x.Served(frontier.Outcome{}))
		x.HeldFor(1)
		x.Reopen()
	}
}
