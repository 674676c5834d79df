// This file tests Forget.

package frontier_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
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
	inBothWorlds(t, forgetOptions(), func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2")
		w.fetched(w.next(), 0, refused())
		require.Equal(t, 10*time.Second, w.info("a.example").Due.Sub(dawn))
		require.NoError(t, w.f.Forget("a.example"))
		x := w.info("a.example")
		require.Equal(t, time.Second, x.Due.Sub(dawn))
		require.Equal(t, frontier.ReasonDelay, x.Reason)
		require.Zero(t, x.Backoff)
		w.nextIs(time.Second, "http://a.example/2")
	})
}

func TestForgetKeepsRetryAfter(t *testing.T) {
	inBothWorlds(t, forgetOptions(), func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2")
		o := refused()
		o.RetryAfter = 4 * time.Second
		w.fetched(w.next(), 0, o)
		require.NoError(t, w.f.Forget("a.example"))
		w.nextIs(4*time.Second, "http://a.example/2")
	})
}

// A quarantine ends, although nobody was in Next; a worker that waits is served.
func TestForgetQuarantine(t *testing.T) {
	inBothWorlds(t, forgetOptions(), func(t *testing.T, w *world) {
		w.add("http://a.example/1")
		for range 3 {
			w.fetched(w.next(), 0, refused())
		}
		w.until(w.at() + 2*time.Second) // its URL waits again, and the delay has passed
		require.Equal(t, frontier.ReasonQuarantine, w.info("a.example").Reason)
		require.NoError(t, w.f.Forget("a.example"))
		require.Zero(t, w.f.Stats().Quarantined)
		l, _, err := w.tryNext()
		require.NoError(t, err)
		w.fetched(l, 0, frontier.Outcome{})
	})
}

// A Crawl-delay does not hold after the next contact; for the last one it counts.
func TestForgetCrawlDelay(t *testing.T) {
	inBothWorlds(t, forgetOptions(), func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2", "http://a.example/3")
		w.fetched(w.next(), 0, frontier.Outcome{CrawlDelay: 20 * time.Second})
		require.NoError(t, w.f.Forget("a.example"))
		w.fetched(w.nextIs(20*time.Second, "http://a.example/2"), 0, frontier.Outcome{})
		w.nextIs(21*time.Second, "http://a.example/3")
	})
}

// While a lease is out, how it ends is learned anew.
func TestForgetLeasedHost(t *testing.T) {
	inBothWorlds(t, forgetOptions(), func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2")
		require.NoError(t, w.f.Assign("a.example", "g"))
		l := w.next()
		w.fetched(l, 0, frontier.Outcome{CrawlDelay: 5 * time.Second})
		l = w.nextIs(5*time.Second, "http://a.example/2")
		require.NoError(t, w.f.Forget("a.example"))
		require.NoError(t, w.f.Check())
		x := w.info("a.example")
		require.Zero(t, x.CrawlDelay)
		require.Empty(t, x.Group)
		w.fetched(l, 0, refused())
		require.Equal(t, 15*time.Second, w.info("a.example").Due.Sub(dawn))
	})
}

// All lanes of a host are free again when its back-off is forgotten.
func TestForgetLanes(t *testing.T) {
	o := forgetOptions()
	o.HostConcurrency = 4
	inBothWorlds(t, o, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2", "http://a.example/3", "http://a.example/4")
		first, second := w.next(), w.next()
		w.fetched(first, 0, refused())
		require.NoError(t, w.f.Forget("a.example"))
		w.fetched(second, 0, frontier.Outcome{})
		w.until(time.Second)
		for range 2 {
			l, _, err := w.tryNext()
			require.NoError(t, err)
			w.fetched(l, 0, frontier.Outcome{})
		}
	})
}

// Nothing of a dormant host comes back, after a kill either; unknown hosts are none.
func TestForgetOnDisk(t *testing.T) {
	w := newStoredWorld(t, forgetOptions(), spill.Options{})
	w.add("http://a.example/1", "http://b.example/1", "http://c.example/1")
	for range 3 {
		w.fetched(w.next(), 0, frontier.Outcome{CrawlDelay: 20 * time.Second})
	}
	require.NoError(t, w.f.Assign("c.example", "g"))
	w.until(time.Minute)
	w.f.Stats()
	_, err := w.f.Add(context.Background())
	require.NoError(t, err)
	require.False(t, w.info("a.example").Resident, "it should be dormant")
	require.NoError(t, w.f.Forget("a.example"))
	require.NoError(t, w.f.Forget("c.example"))
	require.NoError(t, w.f.Forget("unknown.example"))
	require.ErrorContains(t, w.f.Forget(""), "host key has 0 bytes")
	require.ErrorContains(t, w.f.Forget(strings.Repeat("x", 256)), "host key has 256 bytes")
	k := w.killed()
	for _, w := range []*world{w, k} {
		require.Zero(t, w.info("a.example").CrawlDelay)
		require.Equal(t, 20*time.Second, w.info("b.example").CrawlDelay)
		require.Zero(t, w.info("c.example").CrawlDelay)
		require.Empty(t, w.info("c.example").Group)
	}
}

// A back-off that is forgotten after a crash leaves what the crash itself demands.
func TestForgetAfterCrash(t *testing.T) {
	w := newStoredWorld(t, forgetOptions(), spill.Options{})
	w.add("http://a.example/1", "http://a.example/2")
	w.fetched(w.next(), 0, refused())
	w.fetched(w.nextIs(10*time.Second, "http://a.example/2"), 0, refused())
	k := w.killed()
	require.NoError(t, k.f.Forget("a.example"))
	l := k.next()
	require.Equal(t, 11*time.Second, k.at())
	k.fetched(l, 0, frontier.Outcome{})
	ended := k.f
	require.NoError(t, ended.Close())
	require.ErrorIs(t, ended.Forget("a.example"), frontier.ErrClosed)
}

// A host that has nothing to do stays in memory until what failed is outlived;
// when that is forgotten before, so is the host.
func TestForgottenTroubleOfAHostWithoutURLs(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(1, 0)}, func(t *testing.T, w *world) {
		w.add("http://a.example/1")
		w.fetched(w.next(), 0, frontier.Outcome{Result: frontier.Failed})
		w.until(time.Minute)
		w.over()
		require.NoError(t, w.f.Forget("a.example"))
		require.NoError(t, w.f.Check())
		if w.opts.Spill == nil { // else the next batch deletes its row before
			require.False(t, w.f.Resident("a.example"))
		}
	})
}

// A failure that is told late may be remembered longer than the contact itself.
func TestLateFailureOfAHostWithoutURLs(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(1, 0), LeaseTime: time.Minute}
	inBothWorlds(t, o, func(t *testing.T, w *world) {
		w.add("http://a.example/1")
		l := w.next()
		began := w.clk.Now()
		w.until(time.Minute) // it expires, and its URL is given up
		w.over()
		err := w.f.Done(l, frontier.Outcome{Result: frontier.Failed, Ended: began.Add(time.Second)})
		require.ErrorIs(t, err, frontier.ErrNotLeased)
		require.NoError(t, w.f.Check())
	})
}
