// This file says what a lease tells of when its host might be contacted.

package frontier_test

import (
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
)

// However late a lease is taken, it tells when it might have been: the gap kept can be
// measured against the gap owed.
func TestALeaseTellsWhenItsHostWasDue(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second)}, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 4)...)
		l := w.next()
		require.Zero(t, l.Due, "it was never contacted")
		w.fetched(l, time.Second, frontier.Outcome{})
		for _, late := range []time.Duration{0, time.Millisecond, time.Hour} {
			due := w.clk.Now().Add(10 * time.Second)
			w.clk.Set(due.Add(late))
			l = w.next()
			require.True(t, l.Due.Equal(due), "%v", l.Due.Sub(due))
			require.Equal(t, late, l.LeasedAt.Sub(l.Due))
			if late == time.Hour {
				again, err := w.f.HandBack(l)
				require.NoError(t, err)
				require.Equal(t, l.Due, again.Due)
				l = again
			}
			w.fetched(l, time.Second, frontier.Outcome{})
		}
	})
}

// What another lane does meanwhile changes nothing of a lease that is out.
func TestALeaseKeepsItsDueTimeBesideAnotherLane(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second), HostConcurrency: 2}, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 3)...)
		a, b := w.next(), w.next()
		w.fetched(a, time.Second, frontier.Outcome{})
		again, err := w.f.HandBack(b)
		require.NoError(t, err)
		require.Zero(t, again.Due)
		w.fetched(again, time.Second, frontier.Outcome{})
	})
}

// A lease on one of several lanes tells when its own lane was due, not the next one's.
func TestALeaseTellsWhenItsLaneWasDue(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second), HostConcurrency: 2}, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 6)...)
		a := w.next()
		require.Zero(t, a.Due)
		w.fetched(a, time.Second, frontier.Outcome{}) // a lane is due at 11 s
		b := w.next()
		require.Zero(t, b.Due, "the other lane was never used")
		w.fetched(b, time.Second, frontier.Outcome{}) // at 12 s
		w.until(15 * time.Second)
		for _, due := range []time.Duration{11 * time.Second, 12 * time.Second} {
			require.Equal(t, due, w.next().Due.Sub(dawn))
		}
	})
}

// The same holds for a lease without a URL.
func TestAContactTellsWhenItsLaneWasDue(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second), HostConcurrency: 2}, func(t *testing.T, w *world) {
		for _, due := range []time.Duration{0, 0, 11 * time.Second} {
			w.until(max(due, w.at()))
			l, err := w.f.Contact(t.Context(), "a.example")
			require.NoError(t, err)
			require.Equal(t, due == 0, l.Due.IsZero())
			if due > 0 {
				require.Equal(t, due, l.Due.Sub(dawn))
			}
			w.fetched(l, time.Second, frontier.Outcome{})
		}
	})
}
