// This file tests when hosts and groups are contacted after a frontier was closed, or
// killed, and opened again.

package politeness

import (
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

func TestExactTimesGoOnAfterACleanReopening(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(2900 * time.Millisecond), GroupDelay: frontier.FixedDelay(9 * time.Second)}
	w := harness.NewStoredWorld(t, o, spill.Options{})
	w.Add(harness.UrlsOf("a.example", 2)...)
	w.Add(harness.UrlsOf("b.example", 2)...)
	w.Add(harness.UrlsOf("c.example", 2)...)
	w.Add(harness.UrlsOf("d.example", 2)...)
	w.Add(harness.UrlsOf("e.example", 2)...)
	w.Add("http://f.example/1")
	w.Fetched(w.NextIs(0, "http://a.example/1"), 0, frontier.Outcome{})
	w.Fetched(w.NextIs(0, "http://b.example/1"), 500*time.Microsecond, frontier.Outcome{}) // times are stored in milliseconds, rounded up
	w.Fetched(w.Next(), 0, frontier.Outcome{CrawlDelay: 8 * time.Second})
	w.Fetched(w.Next(), 0, frontier.Outcome{RetryAfter: time.Hour})
	e := w.Next()
	require.Equal(t, "http://e.example/1", e.Entry.URL)
	require.NoError(t, w.F.Join(&e, "g"))
	w.Fetched(e, 0, frontier.Outcome{})
	f := w.Next()
	require.ErrorIs(t, w.F.Join(&f, "g"), frontier.ErrGroupBusy)
	require.NoError(t, w.F.Done(f, harness.Requeue))
	for range 3 { // as often as one likes
		w.Clock.Advance(700 * time.Millisecond)
		w.Reopen()
		w.Clock.Advance(100*time.Millisecond - 100*time.Microsecond)
	}
	const half = 500 * time.Microsecond
	w.Fetched(w.NextIs(2900*time.Millisecond, "http://a.example/2"), 0, frontier.Outcome{})
	w.Fetched(w.NextIs(2901*time.Millisecond, "http://b.example/2"), 0, frontier.Outcome{})
	w.Fetched(w.NextIs(8001*time.Millisecond, "http://c.example/2"), 0, frontier.Outcome{})
	first := w.Next()
	require.Equal(t, 9001*time.Millisecond, w.At(), "the group is free")
	require.Equal(t, "g", first.Group)
	w.Fetched(first, 0, frontier.Outcome{})
	second := w.Next()
	require.Equal(t, 18001*time.Millisecond, w.At())
	require.ElementsMatch(t, []string{"http://e.example/2", "http://f.example/1"}, []string{first.Entry.URL, second.Entry.URL})
	w.Fetched(second, 0, frontier.Outcome{})
	w.Fetched(w.NextIs(time.Hour+time.Millisecond, "http://d.example/2"), half, frontier.Outcome{})
	w.Reopen()
	w.Over()
}

func TestHostLeasedAtTheClosingCountsAsContactedThen(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Add("http://a.example/1", "http://b.example/1")
	w.NextIs(0, "http://a.example/1")
	w.Fetched(w.NextIs(0, "http://b.example/1"), 0, frontier.Outcome{Result: frontier.Requeue, CrawlDelay: 45 * time.Second})
	w.NextIs(45*time.Second, "http://b.example/1")
	w.Until(time.Minute)
	w.Reopen()
	require.Equal(t, 1, w.NextIs(90*time.Second, "http://a.example/1").Attempt)
	w.NextIs(105*time.Second, "http://b.example/1")
}

// beforeTheCrash gives a frontier a host for every promise about crashes. Its
// clock stands at 50 s afterwards.
func beforeTheCrash(w *harness.World) {
	w.Helper()
	for _, h := range []string{"plain", "slow", "later", "soon", "leased"} {
		w.Add(harness.UrlsOf(h+".example", 2)...)
	}
	outcomes := map[string]frontier.Outcome{
		"plain.example": {},
		"slow.example":  {CrawlDelay: 45 * time.Second},
		"later.example": {RetryAfter: time.Hour},
		"soon.example":  {RetryAfter: 31 * time.Second}, // over before the crash is
	}
	for range 5 {
		l := w.Next()
		require.Zero(w, w.At())
		if o, ok := outcomes[l.Host]; ok {
			require.NoError(w, w.F.Done(l, o))
		}
	}
	w.Until(50 * time.Second)
	w.Add("http://fresh.example/1")
}

// afterTheCrash requires the promised times of a frontier that beforeTheCrash
// filled and that was opened at the given time. New hosts are no exception.
func afterTheCrash(w *harness.World, opened time.Duration) {
	w.Helper()
	require.NoError(w, w.F.Check())
	w.Add("http://new.example/1")
	got := map[string]time.Duration{}
	for len(got) < 7 {
		l := w.Next()
		got[l.Entry.URL] = w.At()
		require.Equal(w, 1, l.Attempt)
		require.NoError(w, w.F.Extend(&l, 2*time.Hour))
	}
	require.Equal(w, map[string]time.Duration{
		"http://plain.example/2":  opened + 30*time.Second,
		"http://soon.example/2":   opened + 30*time.Second,
		"http://leased.example/1": opened + 30*time.Second,
		"http://fresh.example/1":  opened + 30*time.Second,
		"http://new.example/1":    opened + 30*time.Second,
		"http://slow.example/2":   opened + 45*time.Second,
		"http://later.example/2":  time.Hour,
	}, got)
}

func TestHostsCountAsContactedAtTheOpeningAfterACrash(t *testing.T) {
	t.Run("the process was killed", func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
		beforeTheCrash(w)
		w.Until(time.Minute)
		afterTheCrash(w.Killed(), time.Minute)
	})
	t.Run("twice in a row", func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
		beforeTheCrash(w)
		w = w.Killed()
		w.NothingUntil(79 * time.Second)
		afterTheCrash(w.Killed(), 79*time.Second)
	})
	t.Run("after a clean reopening", func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
		beforeTheCrash(w)
		w.Reopen()
		w.Until(time.Minute)
		afterTheCrash(w.Killed(), time.Minute)
	})
	t.Run("with everything moved to blocks", func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
		beforeTheCrash(w)
		require.NoError(t, hook.Of(w.F).MoveNow(true))
		w.Until(time.Minute)
		afterTheCrash(w.Killed(), time.Minute)
	})
	t.Run("the power failed", func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{Sync: true})
		beforeTheCrash(w)
		w.Until(time.Minute)
		afterTheCrash(w.On(w.Machine.PowerLoss(t, 0)), time.Minute)
	})
}

func TestGroupsCountAsContactedAtTheOpeningAfterACrash(t *testing.T) {
	o := frontier.Options{GroupDelay: frontier.FactorDelay(10, time.Second, 2*time.Minute)}
	w := harness.NewStoredWorld(t, o, spill.Options{})
	w.Add(harness.UrlsOf("known.example", 2)...)
	l := w.NextIs(0, "http://known.example/1")
	require.NoError(t, w.F.Join(&l, "g"))
	w.Fetched(l, 0, frontier.Outcome{})
	w.Add("http://new.example/1")
	w.Until(time.Minute)
	w = w.Killed()
	l = w.NextIs(90*time.Second, "http://new.example/1")
	require.ErrorIs(t, w.F.Join(&l, "g"), frontier.ErrGroupBusy)
	require.NoError(t, w.F.Done(l, harness.Requeue))
	w.Fetched(w.Next(), 0, frontier.Outcome{})
	require.Equal(t, 3*time.Minute, w.At())
	w.Next()
	require.Equal(t, 3*time.Minute+time.Second, w.At())
}

func TestCleanClosingAfterACrashEndsTheHold(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Add("http://a.example/1")
	w.Until(time.Minute)
	w = w.Killed()
	w.Until(61 * time.Second)
	w.Add("http://b.example/1")
	w.Reopen() // nothing was contacted since, but the times of the crash go on
	w.Until(80 * time.Second)
	w.NothingUntil(90 * time.Second)
	w.Next()
	w.Next()
	require.Equal(t, 90*time.Second, w.At())
}

func TestLateRetryAfterSurvivesACrash(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{LeaseTime: 10 * time.Second}, spill.Options{})
	w.Add(harness.UrlsOf("a.example", 2)...)
	l := w.NextIs(0, "http://a.example/1")
	w.Until(11 * time.Second)
	_, _, err := w.TryNext() // the expiry is stored
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.ErrorIs(t, w.F.Done(l, frontier.Outcome{RetryAfter: time.Hour}), frontier.ErrNotLeased)
	_, _, err = w.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	w.Killed().NextIs(time.Hour+11*time.Second, "http://a.example/2")
}

func TestLateDoneOnlyLengthensTheCrawlDelay(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{LeaseTime: 10 * time.Second}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		l := w.NextIs(0, "http://a.example/1")
		w.Until(11 * time.Second)
		for _, c := range []struct{ asked, want time.Duration }{
			{7 * time.Second, 7 * time.Second}, {3 * time.Second, 7 * time.Second}, {frontier.NoCrawlDelay, 7 * time.Second}, {9 * time.Second, 9 * time.Second},
		} {
			require.ErrorIs(t, w.F.Done(l, frontier.Outcome{CrawlDelay: c.asked}), frontier.ErrNotLeased)
			h, err := inspect.New(w.F).Host(t.Context(), "a.example")
			require.NoError(t, err)
			require.Equal(t, c.want, h.CrawlDelay)
		}
	})
}
