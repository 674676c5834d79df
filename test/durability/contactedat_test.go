package durability

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
)

// A frontier that takes another's place leaves the hosts alone until the other's last contact can have
// ended, and their delay, also after a crash or a clean end of its own in the middle of that.
func TestContactedAtOutlivesAnotherOpening(t *testing.T) {
	const delay, lease = 2 * time.Second, 30 * time.Second
	for name, end := range map[string]func(*frontier.Frontier, *spill.Store){
		"closed": func(f *frontier.Frontier, s *spill.Store) {
			require.NoError(t, f.Close())
			require.NoError(t, s.Close())
		},
		"crashed": func(f *frontier.Frontier, s *spill.Store) { require.NoError(t, s.Close()); _ = f.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			dir, clock := t.TempDir(), simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			until := clock.Now().Add(lease)
			open := func(at time.Time) (*frontier.Frontier, *spill.Store) {
				s, err := spill.Open(dir, spill.Options{})
				require.NoError(t, err)
				f, err := frontier.Open(t.Context(), frontier.Options{Spill: s, Clock: clock, Delay: frontier.FixedDelay(delay), ContactedAt: at})
				require.NoError(t, err)
				return f, s
			}
			f, s := open(until)
			_, err := f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
			require.NoError(t, err)
			early := func() {
				l, at, err := f.TryNext()
				require.ErrorIs(t, err, frontier.ErrNotDue)
				require.Empty(t, l.Entry.URL)
				require.False(t, at.Before(until.Add(delay)))
			}
			early()
			clock.Advance(lease / 3)
			end(f, s)
			f, s = open(time.Time{})
			clock.Advance(lease*2/3 + delay - time.Millisecond)
			early()
			clock.Advance(time.Millisecond)
			l, err := f.Next(context.Background())
			require.NoError(t, err)
			require.False(t, clock.Now().Before(until.Add(delay)))
			require.NoError(t, f.Done(l, frontier.Outcome{}))
			require.NoError(t, f.Check())
			require.NoError(t, f.Close())
			require.NoError(t, s.Close())
		})
	}
}

// A frontier that takes the place of one whose clock was wrong, and that ended in order, leaves hosts alone for
// their delay: neither until what that clock called soon, nor less.
func TestContactedAtBelievesNoOtherClock(t *testing.T) {
	const delay = 2 * time.Second
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		dir, clock := t.TempDir(), simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		open := func() (*frontier.Frontier, *spill.Store) {
			s, err := spill.Open(dir, spill.Options{})
			require.NoError(t, err)
			f, err := frontier.Open(t.Context(), frontier.Options{Spill: s, Clock: clock, Delay: frontier.FixedDelay(delay), ContactedAt: clock.Now()})
			require.NoError(t, err)
			return f, s
		}
		f, s := open()
		for _, host := range []string{"contacted", "leased", "idle"} {
			_, err := f.Add(t.Context(), frontier.Entry{URL: "http://" + host + ".example/1"}, frontier.Entry{URL: "http://" + host + ".example/2"})
			require.NoError(t, err)
		}
		clock.Advance(delay)
		for range 2 {
			l, err := f.Next(t.Context())
			require.NoError(t, err)
			if l.Host == "contacted.example" {
				require.NoError(t, f.Done(l, frontier.Outcome{}))
			}
		}
		clock.Step(by)
		clock.Advance(delay / 20)
		require.NoError(t, f.Close())
		require.NoError(t, s.Close())
		clock = simclock.New(clock.Now().Add(-by))
		f, s = open()
		clock.Advance(delay - time.Millisecond)
		_, _, err := f.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue, by)
		clock.Advance(time.Millisecond)
		for range 3 {
			_, _, err := f.TryNext()
			require.NoError(t, err, by)
		}
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
		require.NoError(t, s.Close())
	}
}
