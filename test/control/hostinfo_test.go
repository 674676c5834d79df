package control

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
)

func TestHostTellsWhyItIsNotServed(t *testing.T) {
	harness.InBothWorlds(t, harness.Quantum(2, frontier.Options{Delay: frontier.FixedDelay(time.Second)}), func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2", "http://a.example/3", "http://a.example/4")
		w.Why("a.example", inspect.ReasonBackQueue, 0)
		l := w.Next()
		w.Why("a.example", inspect.ReasonLeased, 0)
		require.Equal(t, l.Deadline.UnixNano(), w.Host("a.example").Deadline.UnixNano())
		require.Equal(t, 1, w.Host("a.example").Leased)
		w.Fetched(l, 0, frontier.Outcome{})
		w.Why("a.example", inspect.ReasonDelay, time.Second)
		require.True(t, w.Host("a.example").Bound)
		w.Until(time.Second)
		w.Why("a.example", inspect.ReasonTurn, 0)
		l = w.Next()
		busy, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://b.example/", NotBefore: harness.Dawn.Add(time.Hour)})
		require.NoError(t, err)
		require.Equal(t, 1, busy)
		w.Why("b.example", inspect.ReasonNotBefore, 0)
		require.Equal(t, int64(1), w.Host("b.example").Scheduled)
		require.NoError(t, w.F.Join(&l, "group"))
		w.Fetched(l, time.Second, frontier.Outcome{})
		w.Add("http://c.example/1", "http://c.example/2")
		c := w.NextIs(2*time.Second, "http://c.example/1")
		require.ErrorIs(t, w.F.Join(&c, "group"), frontier.ErrGroupBusy)
		require.NoError(t, w.F.Done(c, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
		w.Why("c.example", inspect.ReasonGroup, 3*time.Second)
		require.Equal(t, "group", w.Host("c.example").Group)
		require.Equal(t, harness.Dawn.Add(3*time.Second).UnixNano(), w.Host("c.example").GroupDue.UnixNano())
		w.Why("a.example", inspect.ReasonDelay, 3*time.Second)
		w.Until(3 * time.Second)
		l = w.Next()
		other := map[string]string{"a.example": "c.example", "c.example": "a.example"}[l.Host]
		w.Why(other, inspect.ReasonGroup, 0) // its only slot is taken
	})
}

func TestHostCountsWhatWaits(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Priorities: 3}, func(t *testing.T, w *harness.World) {
		for i := range 6 {
			_, err := w.F.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), Depth: i % 2, Crawl: uint32(i / 4)})
			require.NoError(t, err)
		}
		require.Equal(t, []inspect.Queue{
			{Crawl: 0, Priority: 3, Waiting: 2}, {Crawl: 1, Priority: 3, Waiting: 1}, {Crawl: 0, Priority: 2, Waiting: 2}, {Crawl: 1, Priority: 2, Waiting: 1},
		}, w.Host("a.example").Queues)
		require.Equal(t, int64(6), w.Host("a.example").Waiting)
		require.True(t, w.Host("a.example").Resident)
	})
}

func TestUnknownHosts(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		x, err := inspect.New(w.F).Host(context.Background(), "nobody.example")
		require.ErrorIs(t, err, frontier.ErrUnknownHost)
		require.Equal(t, inspect.Host{Host: "nobody.example", Reason: inspect.ReasonNothing}, x)
		for _, bad := range []string{"", strings.Repeat("x", 256)} {
			_, err = inspect.New(w.F).Host(context.Background(), bad)
			require.Error(t, err)
			require.NotErrorIs(t, err, frontier.ErrUnknownHost)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = inspect.New(w.F).Host(ctx, "nobody.example")
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, w.F.Close())
		_, err = inspect.New(w.F).Host(context.Background(), "nobody.example")
		require.ErrorIs(t, err, frontier.ErrClosed)
		w.F = nil
		w.Open()
	})
}

// What was learned about a host is reported after the host has left memory, without bringing it
// back.
func TestHostThatIsDormant(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	w.Add("http://a.example/")
	w.Fetched(w.Next(), 0, frontier.Outcome{CrawlDelay: time.Minute})
	w.Until(2 * time.Minute)
	for range 3 {
		w.F.Stats()
		_, err := w.F.Add(context.Background())
		require.NoError(t, err)
	}
	require.False(t, hook.Of(w.F).Resident("a.example"))
	x := w.Host("a.example")
	require.Equal(t, time.Minute, x.CrawlDelay)
	require.False(t, x.Resident)
	require.Equal(t, inspect.ReasonNothing, x.Reason)
	require.Equal(t, time.Minute, x.Due.Sub(harness.Dawn))
	require.False(t, hook.Of(w.F).Resident("a.example"))
}

// A host whose URLs wait for their time on disk, and about which nothing else is known, is found.
func TestHostWithScheduledURLsOnDisk(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	for i, at := range []time.Duration{3 * time.Hour, 2 * time.Hour} {
		_, err := w.F.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), NotBefore: harness.Dawn.Add(at)})
		require.NoError(t, err)
	}
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	require.False(t, hook.Of(w.F).Resident("a.example"))
	w.Why("a.example", inspect.ReasonNotBefore, 2*time.Hour)
	require.Equal(t, int64(2), w.Host("a.example").Scheduled)
	_, err := inspect.New(w.F).Host(context.Background(), "b.example")
	require.ErrorIs(t, err, frontier.ErrUnknownHost)
	n, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/1", Force: true})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	w.Fetched(w.NextIs(0, "http://a.example/1"), 0, frontier.Outcome{})
	w.Until(time.Hour)
	w.F.Stats()
	require.Equal(t, int64(1), w.Host("a.example").Scheduled, "a superseded one does not count")
}

// After a crash the reason says so.
func TestReopenedIsAReason(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(5 * time.Second)}, spill.Options{})
	w.Add("http://a.example/")
	w = w.Killed()
	w.Why("a.example", inspect.ReasonReopened, 5*time.Second)
	w.NextIs(5*time.Second, "http://a.example/")
}

func TestReasonsHaveNames(t *testing.T) {
	names := map[string]bool{}
	for r := inspect.ReasonTurn; r <= inspect.ReasonLimit; r++ {
		require.NotEqual(t, "invalid reason", r.String())
		require.False(t, names[r.String()])
		names[r.String()] = true
	}
	require.Equal(t, "invalid reason", (inspect.ReasonLimit + 1).String())
}

// Of the clocks of a host, the one that set its time is reported, also after a restart.
func TestWhichClockIsTold(t *testing.T) {
	o := frontier.Options{
		Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(100, time.Millisecond),
		Backoff:    frontier.Backoff{Base: 20 * time.Second},
		Quarantine: frontier.Quarantine{After: 2},
	}
	for name, c := range map[string]struct {
		outcomes []frontier.Outcome
		want     inspect.Reason
	}{
		"delay":               {[]frontier.Outcome{{}}, inspect.ReasonDelay},
		"Crawl-delay":         {[]frontier.Outcome{{CrawlDelay: time.Minute}}, inspect.ReasonCrawlDelay},
		"Retry-After":         {[]frontier.Outcome{{CrawlDelay: time.Minute, RetryAfter: time.Hour}}, inspect.ReasonRetryAfter},
		"less than the delay": {[]frontier.Outcome{{RetryAfter: time.Millisecond}}, inspect.ReasonDelay},
		"back-off":            {[]frontier.Outcome{{Result: frontier.Failed, Failure: frontier.FailureTooMany}}, inspect.ReasonBackoff},
		"quarantine": {[]frontier.Outcome{
			{Result: frontier.Failed, Failure: frontier.FailureConnect}, {Result: frontier.Failed, Failure: frontier.FailureConnect},
		}, inspect.ReasonQuarantine},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
				w.Add(harness.UrlsOf("a.example", 5)...)
				for _, o := range c.outcomes {
					w.Fetched(w.Next(), 0, o)
				}
				x := w.Host("a.example")
				require.Equal(t, c.want.String(), x.Reason.String())
				require.Equal(t, x.Due, x.Until)
				if w.Machine == nil {
					return
				}
				w.Reopen()
				require.Equal(t, c.want.String(), w.Host("a.example").Reason.String())
				require.Equal(t, x.Until.UnixMilli(), w.Host("a.example").Until.UnixMilli())
			})
		})
	}
}
