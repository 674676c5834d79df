// This file tests limits that only an operator can lift.

package frontier_test

import (
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

// Hosts that wait for the end of a period wait no more when another limit is reached
// for good: the crawl is over at once, not after the period.
func TestLimitReachedForGoodWhileAPeriodIsAwaited(t *testing.T) {
	inBothWorlds(t, frontier.Options{Retry: frontier.Retries(1, 0)}, func(t *testing.T, w *world) {
		require.NoError(t, w.f.SetLimits(frontier.Domain("example"), frontier.Limits{Served: 1, Period: time.Hour}))
		require.NoError(t, w.f.SetLimits(frontier.All(), frontier.Limits{Errors: 1}))
		w.add("http://a.example/", "http://b.example/")
		l := w.next()
		_, at, err := w.tryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.False(t, at.IsZero())
		w.fetched(l, time.Second, failing(frontier.FailureOther))
		_, _, err = w.tryNext()
		var held *frontier.HeldError
		require.ErrorAs(t, err, &held)
		require.EqualValues(t, 1, held.Held)
	})
}

// What was served in a period that has ended stays forgotten under limits that have no
// period, also after a crash: it would count for good.
func TestPeriodThatEndedBeforeTheLimitsChanged(t *testing.T) {
	w := newStoredWorld(t, quick(), spill.Options{})
	example := frontier.Domain("example")
	day := frontier.Limits{Served: 1, Period: 24 * time.Hour}
	require.NoError(t, w.f.SetLimits(example, day))
	require.NoError(t, w.f.SetCrawlLimits(7, day))
	w.addMany("a.example", 3)
	w.inCrawl(7, "http://c.test/", 3)
	require.Equal(t, 2, w.served(frontier.Outcome{}))
	w.until(25 * time.Hour)
	require.NoError(t, w.f.SetLimits(example, frontier.Limits{Served: 1}))
	require.NoError(t, w.f.SetCrawlLimits(7, frontier.Limits{Served: 1}))

	w = w.killed()
	w.until(26 * time.Hour)
	used, ok := w.f.Used(example)
	require.True(t, ok)
	require.Zero(t, used)
	require.Equal(t, 2, w.served(frontier.Outcome{}))
	w.heldFor(2)
}

// So it is with what each host may do alone, whose rows nobody goes through when limits
// change, and with limits of a narrower scope that come later.
func TestPeriodOfAHostThatEndedBeforeTheLimitsChanged(t *testing.T) {
	for _, killed := range []bool{false, true} {
		w := newStoredWorld(t, quick(), spill.Options{})
		day := frontier.Limits{Served: 1, Period: 24 * time.Hour}
		require.NoError(t, w.f.SetHostLimits(frontier.All(), day))
		for _, host := range []string{"a.example", "b.example", "c.test"} {
			w.addMany(host, 3)
		}
		require.Equal(t, 3, w.served(frontier.Outcome{}))
		w.until(23 * time.Hour)
		w.addMany("d.test", 3)
		require.Equal(t, 1, w.served(frontier.Outcome{}))
		w.until(25 * time.Hour)
		require.NoError(t, w.f.SetHostLimits(frontier.Host("a.example"), frontier.Limits{Served: 1}))
		require.NoError(t, w.f.SetHostLimits(frontier.All(), frontier.Limits{Served: 1}))
		if killed {
			w = w.killed()
		} else {
			w.reopen()
		}
		require.NoError(t, w.f.SetDelay(frontier.All(), frontier.FixedDelay(0))) // the row of the rule is written anew
		w.reopen()
		w.until(26 * time.Hour)
		for _, host := range []string{"a.example", "b.example", "c.test"} {
			require.Zero(t, w.host(host).Used, host)
		}
		require.EqualValues(t, 1, w.host("d.test").Used.Served, "its period had not ended")
		require.Equal(t, 3, w.served(frontier.Outcome{}), "one of each other host")
		w.heldFor(5)
	}
}

// A host that was not in memory when the limits changed is no exception.
func TestPeriodOfAHostThatWasAway(t *testing.T) {
	w := newStoredWorld(t, quick(), spill.Options{})
	require.NoError(t, w.f.SetHostLimits(frontier.All(), frontier.Limits{Served: 1, Period: 24 * time.Hour}))
	w.addMany("a.example", 1)
	require.Equal(t, 1, w.served(frontier.Outcome{}))
	w.asleep()
	require.EqualValues(t, 1, w.host("a.example").Used.Served)
	w.until(25 * time.Hour)
	require.NoError(t, w.f.SetHostLimits(frontier.All(), frontier.Limits{Served: 1}))
	require.Zero(t, w.host("a.example").Used, "as it is away")
	w.reopen()
	require.Zero(t, w.host("a.example").Used, "opened again")
	w.add("http://a.example/more", "http://a.example/again")
	require.Zero(t, w.host("a.example").Used)
	require.Equal(t, 1, w.served(frontier.Outcome{}))
	w.heldFor(1)
}

// What an import tells counts, though the rules that come before it limit the host in
// two steps: in the frontier it comes from they were there first.
func TestImportedUsageCounts(t *testing.T) {
	w := newStoredWorld(t, quick(), spill.Options{})
	require.NoError(t, w.f.SetHostLimits(frontier.Host("a.example"), frontier.Limits{Served: 1}))
	require.NoError(t, w.f.SetHostLimits(frontier.All(), frontier.Limits{Served: 6, Period: 15 * time.Second}))
	w.addMany("a.example", 2)
	require.Equal(t, 1, w.served(frontier.Outcome{}))
	w.until(time.Minute)
	x := newStoredWorld(t, quick(), spill.Options{})
	x.clk.Set(w.clk.Now())
	x.imported(w.export())
	require.Equal(t, timeless(w.export()), timeless(x.export()))
	for range 2 {
		require.EqualValues(t, 1, x.host("a.example").Used.Served)
		require.Zero(t, x.served(frontier.Outcome{}))
		x.heldFor(1)
		x.reopen()
	}
}
