// This file has promises that other tests did not notice when they were broken on
// purpose: see proof/mutate.

package frontier_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// A host that is ready comes before those with tokens, until its quantum is over.
func TestQuantumEndsABinding(t *testing.T) {
	for quantum, want := range map[int]string{2: "aabbaabb", 3: "aaabbbab", 32: "aaaabbbb"} {
		harness.InBothWorlds(t, harness.Quantum(quantum, frontier.Options{Priorities: 1, Delay: frontier.FixedDelay(0)}), func(t *testing.T, w *harness.World) {
			w.Add("http://a.example/1", "http://a.example/2", "http://a.example/3", "http://a.example/4")
			w.Add("http://b.example/1", "http://b.example/2", "http://b.example/3", "http://b.example/4")
			var got strings.Builder
			for range 8 {
				l := w.Next()
				got.WriteByte(l.Host[0])
				w.Fetched(l, 0, frontier.Outcome{})
			}
			require.Equal(t, want, got.String(), "quantum %d", quantum)
		})
	}
}

// What is told is by the time of day as it is, also of what began before a jump.
func TestTimesThatAreToldFollowTheClock(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://b.example/1")
		w.Until(time.Minute)
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Until(30 * time.Second)
		l := w.Next()
		require.Equal(t, harness.Dawn.Add(30*time.Second), l.LeasedAt)
		x, _ := w.F.Host(t.Context(), "a.example")
		require.Equal(t, harness.Dawn.Add(31*time.Second), x.Due)
		w.Fetched(l, 0, frontier.Outcome{})
	})
}

// A sweep takes what was deleted, and nothing that came since.
func TestURLBehindADeletedOne(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		sweep := w.F.DeleteUnswept(frontier.Host("a.example"))
		w.Add("http://a.example/2")
		sweep()
		hook.Of(w.F).Sweep()
		l := w.Next()
		require.Equal(t, "http://a.example/2", l.Entry.URL)
		w.Fetched(l, 0, frontier.Outcome{})
		w.Over()
	})
}

// However often a host that is merely probed fails, its URLs keep their tries.
func TestProbesUseUpNoTries(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{
		Priorities: 1, Delay: frontier.FixedDelay(0), Retry: frontier.Retries(2, 0), Quarantine: frontier.Quarantine{After: 1, Probe: time.Minute},
	}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		for i, want := range []int{1, 2, 2, 2, 2} {
			l := w.Next()
			require.Equal(t, want, l.Attempt, "hand-out %d", i)
			w.Fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
		}
		require.Zero(t, w.F.Stats().GivenUp)
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Over()
	})
}
