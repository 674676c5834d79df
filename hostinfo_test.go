package frontier_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

// host is what Host tells of a known host.
func (w *world) host(name string) frontier.HostInfo {
	w.Helper()
	x, err := w.f.Host(context.Background(), name)
	require.NoError(w, err)
	require.Equal(w, name, x.Host)
	return x
}

// why requires the reason for which a host is not served, and when it ends; 0:
// unknown.
func (w *world) why(name string, reason frontier.Reason, until time.Duration) {
	w.Helper()
	x := w.host(name)
	require.Equal(w, reason.String(), x.Reason.String(), "%+v", x)
	if until == 0 {
		require.Zero(w, x.Until)
		return
	}
	require.Equal(w, until, x.Until.Sub(dawn), "%+v", x)
}

func TestHostTellsWhyItIsNotServed(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), Quantum: 2}, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2", "http://a.example/3", "http://a.example/4")
		w.why("a.example", frontier.ReasonBackQueue, 0)
		l := w.next()
		w.why("a.example", frontier.ReasonLeased, 0)
		require.Equal(t, l.Deadline.UnixNano(), w.host("a.example").Deadline.UnixNano())
		require.Equal(t, 1, w.host("a.example").Leased)
		w.fetched(l, 0, frontier.Outcome{})
		w.why("a.example", frontier.ReasonDelay, time.Second)
		require.True(t, w.host("a.example").Bound)
		w.until(time.Second)
		w.why("a.example", frontier.ReasonTurn, 0)
		l = w.next()
		busy, err := w.f.Add(context.Background(), frontier.Entry{URL: "http://b.example/", NotBefore: dawn.Add(time.Hour)})
		require.NoError(t, err)
		require.Equal(t, 1, busy)
		w.why("b.example", frontier.ReasonNotBefore, 0)
		require.Equal(t, int64(1), w.host("b.example").Scheduled)
		require.NoError(t, w.f.Join(&l, "group"))
		w.fetched(l, time.Second, frontier.Outcome{})
		w.add("http://c.example/1", "http://c.example/2")
		c := w.nextIs(2*time.Second, "http://c.example/1")
		require.ErrorIs(t, w.f.Join(&c, "group"), frontier.ErrGroupBusy)
		require.NoError(t, w.f.Done(c, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
		w.why("c.example", frontier.ReasonGroup, 3*time.Second)
		require.Equal(t, "group", w.host("c.example").Group)
		require.Equal(t, dawn.Add(3*time.Second).UnixNano(), w.host("c.example").GroupDue.UnixNano())
		w.why("a.example", frontier.ReasonDelay, 3*time.Second)
		w.until(3 * time.Second)
		l = w.next()
		other := map[string]string{"a.example": "c.example", "c.example": "a.example"}[l.Host]
		w.why(other, frontier.ReasonGroup, 0) // its only slot is taken
	})
}

func TestHostCountsWhatWaits(t *testing.T) {
	inBothWorlds(t, frontier.Options{Priorities: 3}, func(t *testing.T, w *world) {
		for i := range 6 {
			_, err := w.f.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), Depth: i % 2, Crawl: uint32(i / 4)})
			require.NoError(t, err)
		}
		require.Equal(t, []frontier.QueueInfo{{0, 3, 2}, {1, 3, 1}, {0, 2, 2}, {1, 2, 1}}, w.host("a.example").Queues)
		require.Equal(t, int64(6), w.host("a.example").Waiting)
		require.True(t, w.host("a.example").Resident)
	})
}

func TestUnknownHosts(t *testing.T) {
	inBothWorlds(t, frontier.Options{}, func(t *testing.T, w *world) {
		x, err := w.f.Host(context.Background(), "nobody.example")
		require.ErrorIs(t, err, frontier.ErrUnknownHost)
		require.Equal(t, frontier.HostInfo{Host: "nobody.example", Reason: frontier.ReasonNothing}, x)
		for _, bad := range []string{"", strings.Repeat("x", 256)} {
			_, err = w.f.Host(context.Background(), bad)
			require.Error(t, err)
			require.NotErrorIs(t, err, frontier.ErrUnknownHost)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = w.f.Host(ctx, "nobody.example")
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, w.f.Close())
		_, err = w.f.Host(context.Background(), "nobody.example")
		require.ErrorIs(t, err, frontier.ErrClosed)
		w.f = nil
		w.open()
	})
}

// What was learned of a host is told when the host has left memory, without
// bringing it back.
func TestHostThatIsDormant(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	w.add("http://a.example/")
	w.fetched(w.next(), 0, frontier.Outcome{CrawlDelay: time.Minute})
	w.until(2 * time.Minute)
	for range 3 {
		w.f.Stats()
		_, err := w.f.Add(context.Background())
		require.NoError(t, err)
	}
	require.False(t, w.f.Resident("a.example"))
	x := w.host("a.example")
	require.Equal(t, time.Minute, x.CrawlDelay)
	require.False(t, x.Resident)
	require.Equal(t, frontier.ReasonNothing, x.Reason)
	require.Equal(t, time.Minute, x.Due.Sub(dawn))
	require.False(t, w.f.Resident("a.example"))
}

// A host of which URLs wait for their time on disk, and nothing else is known, is
// found.
func TestHostWithScheduledURLsOnDisk(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{}, spill.Options{})
	for i, at := range []time.Duration{3 * time.Hour, 2 * time.Hour} {
		_, err := w.f.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), NotBefore: dawn.Add(at)})
		require.NoError(t, err)
	}
	require.NoError(t, w.f.MoveNow(true))
	require.False(t, w.f.Resident("a.example"))
	w.why("a.example", frontier.ReasonNotBefore, 2*time.Hour)
	require.Equal(t, int64(2), w.host("a.example").Scheduled)
	_, err := w.f.Host(context.Background(), "b.example")
	require.ErrorIs(t, err, frontier.ErrUnknownHost)
	n, err := w.f.Add(context.Background(), frontier.Entry{URL: "http://a.example/1", Force: true})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	w.fetched(w.nextIs(0, "http://a.example/1"), 0, frontier.Outcome{})
	w.until(time.Hour)
	w.f.Stats()
	require.Equal(t, int64(1), w.host("a.example").Scheduled, "a superseded one does not count")
}

// After a crash the reason says so.
func TestReopenedIsAReason(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(5 * time.Second)}, spill.Options{})
	w.add("http://a.example/")
	w = w.killed()
	w.why("a.example", frontier.ReasonReopened, 5*time.Second)
	w.nextIs(5*time.Second, "http://a.example/")
}

func TestReasonsHaveNames(t *testing.T) {
	names := map[string]bool{}
	for r := frontier.ReasonTurn; r <= frontier.ReasonLimit; r++ {
		require.NotEqual(t, "invalid reason", r.String())
		require.False(t, names[r.String()])
		names[r.String()] = true
	}
	require.Equal(t, "invalid reason", (frontier.ReasonLimit + 1).String())
}

// Of the clocks of a host the one that set its time is told, also after a restart.
func TestWhichClockIsTold(t *testing.T) {
	o := frontier.Options{
		Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(100, time.Millisecond),
		Backoff:    frontier.Backoff{Base: 20 * time.Second},
		Quarantine: frontier.Quarantine{After: 2},
	}
	for name, c := range map[string]struct {
		outcomes []frontier.Outcome
		want     frontier.Reason
	}{
		"delay":               {[]frontier.Outcome{{}}, frontier.ReasonDelay},
		"Crawl-delay":         {[]frontier.Outcome{{CrawlDelay: time.Minute}}, frontier.ReasonCrawlDelay},
		"Retry-After":         {[]frontier.Outcome{{CrawlDelay: time.Minute, RetryAfter: time.Hour}}, frontier.ReasonRetryAfter},
		"less than the delay": {[]frontier.Outcome{{RetryAfter: time.Millisecond}}, frontier.ReasonDelay},
		"back-off":            {[]frontier.Outcome{{Result: frontier.Failed, Failure: frontier.FailureTooMany}}, frontier.ReasonBackoff},
		"quarantine": {[]frontier.Outcome{
			{Result: frontier.Failed, Failure: frontier.FailureConnect}, {Result: frontier.Failed, Failure: frontier.FailureConnect},
		}, frontier.ReasonQuarantine},
	} {
		t.Run(name, func(t *testing.T) {
			inBothWorlds(t, o, func(t *testing.T, w *world) {
				w.add(urlsOf("a.example", 5)...)
				for _, o := range c.outcomes {
					w.fetched(w.next(), 0, o)
				}
				x := w.host("a.example")
				require.Equal(t, c.want.String(), x.Reason.String())
				require.Equal(t, x.Due, x.Until)
				if w.machine == nil {
					return
				}
				w.reopen()
				require.Equal(t, c.want.String(), w.host("a.example").Reason.String())
				require.Equal(t, x.Until.UnixMilli(), w.host("a.example").Until.UnixMilli())
			})
		})
	}
}
