// This file has promises that other tests did not notice when they were broken on
// purpose: see proof/mutate.

package frontier_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
)

// A host that is ready comes before those with tokens, until its quantum is over.
func TestQuantumEndsABinding(t *testing.T) {
	for quantum, want := range map[int]string{2: "aabbaabb", 3: "aaabbbab", 32: "aaaabbbb"} {
		inBothWorlds(t, frontier.Options{Priorities: 1, Delay: frontier.FixedDelay(0), Quantum: quantum}, func(t *testing.T, w *world) {
			w.add("http://a.example/1", "http://a.example/2", "http://a.example/3", "http://a.example/4")
			w.add("http://b.example/1", "http://b.example/2", "http://b.example/3", "http://b.example/4")
			var got strings.Builder
			for range 8 {
				l := w.next()
				got.WriteByte(l.Host[0])
				w.fetched(l, 0, frontier.Outcome{})
			}
			require.Equal(t, want, got.String(), "quantum %d", quantum)
		})
	}
}

// What is told is by the time of day as it is, also of what began before a jump.
func TestTimesThatAreToldFollowTheClock(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://b.example/1")
		w.until(time.Minute)
		w.fetched(w.next(), 0, frontier.Outcome{})
		w.until(30 * time.Second)
		l := w.next()
		require.Equal(t, dawn.Add(30*time.Second), l.LeasedAt)
		x, _ := w.f.Host(t.Context(), "a.example")
		require.Equal(t, dawn.Add(31*time.Second), x.Due)
		w.fetched(l, 0, frontier.Outcome{})
	})
}

// A sweep takes what was deleted, and nothing that came since.
func TestURLBehindADeletedOne(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *world) {
		w.add("http://a.example/1")
		sweep := w.f.Doom(frontier.Host("a.example"))
		w.add("http://a.example/2")
		sweep()
		w.f.Sweep()
		l := w.next()
		require.Equal(t, "http://a.example/2", l.Entry.URL)
		w.fetched(l, 0, frontier.Outcome{})
		w.over()
	})
}

// However often a host that is merely probed fails, its URLs keep their tries.
func TestProbesUseUpNoTries(t *testing.T) {
	inBothWorlds(t, frontier.Options{
		Priorities: 1, Delay: frontier.FixedDelay(0), Retry: frontier.Retries(2, 0), Quarantine: frontier.Quarantine{After: 1, Probe: time.Minute},
	}, func(t *testing.T, w *world) {
		w.add("http://a.example/1")
		for i, want := range []int{1, 2, 2, 2, 2} {
			l := w.next()
			require.Equal(t, want, l.Attempt, "hand-out %d", i)
			w.fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
		}
		require.Zero(t, w.f.Stats().GivenUp)
		w.fetched(w.next(), 0, frontier.Outcome{})
		w.over()
	})
}
