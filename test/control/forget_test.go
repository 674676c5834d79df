// This file tests Forget.

package control

import (
	"context"
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

func forgetOptions() frontier.Options {
	return frontier.Options{
		Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(9, time.Millisecond),
		Backoff:    frontier.Backoff{Base: 10 * time.Second, Max: 40 * time.Second, Jitter: 1e-9},
		Quarantine: frontier.Quarantine{After: 3, Probe: time.Hour},
	}
}

func refused() frontier.Outcome {
	return frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTooMany}
}

// What back-off adds to the clock goes; the delay since the last contact, and what
// the host asked for, stay.
func TestForgetBackoff(t *testing.T) {
	harness.InBothWorlds(t, forgetOptions(), func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2")
		w.Fetched(w.Next(), 0, refused())
		require.Equal(t, 10*time.Second, w.Info("a.example").Due.Sub(harness.Dawn))
		require.NoError(t, w.F.Forget("a.example"))
		x := w.Info("a.example")
		require.Equal(t, time.Second, x.Due.Sub(harness.Dawn))
		require.Equal(t, inspect.ReasonDelay, x.Reason)
		require.Zero(t, x.Backoff)
		w.NextIs(time.Second, "http://a.example/2")
	})
}

func TestForgetKeepsRetryAfter(t *testing.T) {
	harness.InBothWorlds(t, forgetOptions(), func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2")
		o := refused()
		o.RetryAfter = 4 * time.Second
		w.Fetched(w.Next(), 0, o)
		require.NoError(t, w.F.Forget("a.example"))
		w.NextIs(4*time.Second, "http://a.example/2")
	})
}

// A quarantine ends, although no call was in Next; a waiting worker is served.
func TestForgetQuarantine(t *testing.T) {
	harness.InBothWorlds(t, forgetOptions(), func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		for range 3 {
			w.Fetched(w.Next(), 0, refused())
		}
		w.Until(w.At() + 2*time.Second) // its URL waits again, and the delay has passed
		require.Equal(t, inspect.ReasonQuarantine, w.Info("a.example").Reason)
		require.NoError(t, w.F.Forget("a.example"))
		require.Zero(t, w.F.Stats().Quarantined)
		l, _, err := w.TryNext()
		require.NoError(t, err)
		w.Fetched(l, 0, frontier.Outcome{})
	})
}

// A Crawl-delay does not hold after the next contact; for the last one it counts.
func TestForgetCrawlDelay(t *testing.T) {
	harness.InBothWorlds(t, forgetOptions(), func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2", "http://a.example/3")
		w.Fetched(w.Next(), 0, frontier.Outcome{CrawlDelay: 20 * time.Second})
		require.NoError(t, w.F.Forget("a.example"))
		w.Fetched(w.NextIs(20*time.Second, "http://a.example/2"), 0, frontier.Outcome{})
		w.NextIs(21*time.Second, "http://a.example/3")
	})
}

// While a lease is out, how it ends is learned anew.
func TestForgetLeasedHost(t *testing.T) {
	harness.InBothWorlds(t, forgetOptions(), func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2")
		require.NoError(t, w.F.Assign("a.example", "g"))
		l := w.Next()
		w.Fetched(l, 0, frontier.Outcome{CrawlDelay: 5 * time.Second})
		l = w.NextIs(5*time.Second, "http://a.example/2")
		require.NoError(t, w.F.Forget("a.example"))
		require.NoError(t, w.F.Check())
		x := w.Info("a.example")
		require.Zero(t, x.CrawlDelay)
		require.Empty(t, x.Group)
		w.Fetched(l, 0, refused())
		require.Equal(t, 15*time.Second, w.Info("a.example").Due.Sub(harness.Dawn))
	})
}

// All lanes of a host are free again when its back-off is forgotten.
func TestForgetLanes(t *testing.T) {
	o := forgetOptions()
	o.HostConcurrency = 4
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2", "http://a.example/3", "http://a.example/4")
		first, second := w.Next(), w.Next()
		w.Fetched(first, 0, refused())
		require.NoError(t, w.F.Forget("a.example"))
		w.Fetched(second, 0, frontier.Outcome{})
		w.Until(time.Second)
		for range 2 {
			l, _, err := w.TryNext()
			require.NoError(t, err)
			w.Fetched(l, 0, frontier.Outcome{})
		}
	})
}

// Nothing of a dormant host comes back, after a kill either; unknown hosts are none.
func TestForgetOnDisk(t *testing.T) {
	w := harness.NewStoredWorld(t, forgetOptions(), spill.Options{})
	w.Add("http://a.example/1", "http://b.example/1", "http://c.example/1")
	for range 3 {
		w.Fetched(w.Next(), 0, frontier.Outcome{CrawlDelay: 20 * time.Second})
	}
	require.NoError(t, w.F.Assign("c.example", "g"))
	w.Until(time.Minute)
	w.F.Stats()
	_, err := w.F.Add(context.Background())
	require.NoError(t, err)
	require.False(t, w.Info("a.example").Resident, "it should be dormant")
	require.NoError(t, w.F.Forget("a.example"))
	require.NoError(t, w.F.Forget("c.example"))
	require.NoError(t, w.F.Forget("unknown.example"))
	require.ErrorContains(t, w.F.Forget(""), "host key has 0 bytes")
	require.ErrorContains(t, w.F.Forget(strings.Repeat("x", 256)), "host key has 256 bytes")
	k := w.Killed()
	for _, w := range []*harness.World{w, k} {
		require.Zero(t, w.Info("a.example").CrawlDelay)
		require.Equal(t, 20*time.Second, w.Info("b.example").CrawlDelay)
		require.Zero(t, w.Info("c.example").CrawlDelay)
		require.Empty(t, w.Info("c.example").Group)
	}
}

// A back-off that is forgotten after a crash leaves what the crash itself demands.
func TestForgetAfterCrash(t *testing.T) {
	w := harness.NewStoredWorld(t, forgetOptions(), spill.Options{})
	w.Add("http://a.example/1", "http://a.example/2")
	w.Fetched(w.Next(), 0, refused())
	w.Fetched(w.NextIs(10*time.Second, "http://a.example/2"), 0, refused())
	k := w.Killed()
	require.NoError(t, k.F.Forget("a.example"))
	l := k.Next()
	require.Equal(t, 11*time.Second, k.At())
	k.Fetched(l, 0, frontier.Outcome{})
	ended := k.F
	require.NoError(t, ended.Close())
	require.ErrorIs(t, ended.Forget("a.example"), frontier.ErrClosed)
}

// A host that has nothing to do stays in memory until what failed is outlived;
// when that is forgotten before, so is the host.
func TestForgottenTroubleOfAHostWithoutURLs(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(1, 0)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Failed})
		w.Until(time.Minute)
		w.Over()
		require.NoError(t, w.F.Forget("a.example"))
		require.NoError(t, w.F.Check())
		if w.Options.Spill == nil { // else the next batch deletes its row before
			require.False(t, hook.Of(w.F).Resident("a.example"))
		}
	})
}

// A failure that is reported late may be remembered longer than the contact itself.
func TestLateFailureOfAHostWithoutURLs(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(1, 0), LeaseTime: time.Minute}
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		l := w.Next()
		began := w.Clock.Now()
		w.Until(time.Minute) // it expires, and its URL is given up
		w.Over()
		err := w.F.Done(l, frontier.Outcome{Result: frontier.Failed, Ended: began.Add(time.Second)})
		require.ErrorIs(t, err, frontier.ErrNotLeased)
		require.NoError(t, w.F.Check())
	})
}
