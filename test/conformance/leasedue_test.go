// This file tests when, according to a lease, its host might have been contacted.

package conformance

import (
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// However late a lease is taken, it says when it might have been: the gap kept can be
// measured against the gap owed.
func TestALeaseTellsWhenItsHostWasDue(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second)}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 4)...)
		l := w.Next()
		require.Zero(t, l.Due, "it was never contacted")
		w.Fetched(l, time.Second, frontier.Outcome{})
		for _, late := range []time.Duration{0, time.Millisecond, time.Hour} {
			due := w.Clock.Now().Add(10 * time.Second)
			w.Clock.Set(due.Add(late))
			l = w.Next()
			require.True(t, l.Due.Equal(due), "%v", l.Due.Sub(due))
			require.Equal(t, late, l.LeasedAt.Sub(l.Due))
			if late == time.Hour {
				again, err := w.F.HandBack(l)
				require.NoError(t, err)
				require.Equal(t, l.Due, again.Due)
				l = again
			}
			w.Fetched(l, time.Second, frontier.Outcome{})
		}
	})
}

// What another lane does meanwhile changes nothing of a lease that is out.
func TestALeaseKeepsItsDueTimeBesideAnotherLane(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second), HostConcurrency: 2}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 3)...)
		a, b := w.Next(), w.Next()
		w.Fetched(a, time.Second, frontier.Outcome{})
		again, err := w.F.HandBack(b)
		require.NoError(t, err)
		require.Zero(t, again.Due)
		w.Fetched(again, time.Second, frontier.Outcome{})
	})
}

// A lease on one of several lanes says when its own lane was due, not the next one's.
func TestALeaseTellsWhenItsLaneWasDue(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second), HostConcurrency: 2}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 6)...)
		a := w.Next()
		require.Zero(t, a.Due)
		w.Fetched(a, time.Second, frontier.Outcome{}) // a lane is due at 11 s
		b := w.Next()
		require.Zero(t, b.Due, "the other lane was never used")
		w.Fetched(b, time.Second, frontier.Outcome{}) // at 12 s
		w.Until(15 * time.Second)
		for _, due := range []time.Duration{11 * time.Second, 12 * time.Second} {
			require.Equal(t, due, w.Next().Due.Sub(harness.Dawn))
		}
	})
}

// The same holds for a lease without a URL.
func TestAContactTellsWhenItsLaneWasDue(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second), HostConcurrency: 2}, func(t *testing.T, w *harness.World) {
		for _, due := range []time.Duration{0, 0, 11 * time.Second} {
			w.Until(max(due, w.At()))
			l, err := w.F.Contact(t.Context(), "a.example")
			require.NoError(t, err)
			require.Equal(t, due == 0, l.Due.IsZero())
			if due > 0 {
				require.Equal(t, due, l.Due.Sub(harness.Dawn))
			}
			w.Fetched(l, time.Second, frontier.Outcome{})
		}
	})
}
