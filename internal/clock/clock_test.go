package clock

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier/internal/instant"
)

// source is two clocks that move only when a test moves them.
type source struct {
	wall   time.Time
	steady time.Duration
}

func (s *source) Now() time.Time         { return s.wall }
func (s *source) Elapsed() time.Duration { return s.steady }

func (s *source) pass(d time.Duration) { s.wall, s.steady = s.wall.Add(d), s.steady+d }

func newSource() *source {
	return &source{wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), steady: time.Hour}
}

// Whatever the two clocks do, what is reported of the present is what they show, and the
// conversions are inverse to each other.
func TestBothKindsOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSource()
		c := New(s)
		now := int64(0)
		d := func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(-int64(100*time.Hour), int64(100*time.Hour)).Draw(t, "d"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"pass":  func(t *rapid.T) { s.pass(d(t).Abs()) },
			"set":   func(t *rapid.T) { s.wall = s.wall.Add(d(t)) },
			"stall": func(t *rapid.T) { s.steady -= d(t).Abs() },
			"": func(t *rapid.T) {
				was := now
				now, _ = c.Look(now)
				require.GreaterOrEqual(t, now, was, "time does not run backwards")
				require.Equal(t, max(was, int64(s.steady-time.Hour)), now)
				require.True(t, c.Wall(now).Equal(s.wall), "the present is what the clock shows")
				require.Equal(t, c.Date(s.wall), c.DateAt(now))
				require.True(t, c.Day(c.DateAt(now)).Equal(s.wall))
				m := now + int64(d(t))
				require.Equal(t, m, c.Moment(c.Wall(m)))
				require.Equal(t, m, c.MomentOf(c.DateAt(m)))
				require.Zero(t, c.Due(s.wall))
				require.GreaterOrEqual(t, c.Gained(), int64(0))
				_, again := c.Look(now)
				require.Equal(t, Change{}, again, "nothing changed meanwhile")
			},
		})
	})
}

func TestAStepIsReportedOnce(t *testing.T) {
	s := newSource()
	c := New(s)
	s.wall = s.wall.Add(-time.Hour)
	now, x := c.Look(0)
	require.Equal(t, Change{Moved: true, Step: -int64(time.Hour), Restate: true}, x)
	_, x = c.Look(now)
	require.Equal(t, Change{}, x)
	require.True(t, c.MovedSince(now-1))
	require.Zero(t, c.Gained())
	s.wall = s.wall.Add(3 * time.Hour)
	_, x = c.Look(now)
	require.Equal(t, int64(3*time.Hour), x.Step)
	require.Equal(t, int64(3*time.Hour), c.Gained())
}

// Two clocks cannot be read at once. What is stored must be written again once, because
// it was exact before.
func TestAStepOfLessIsNone(t *testing.T) {
	s := newSource()
	c := New(s)
	for i := range 4 {
		s.wall = s.wall.Add(time.Duration(LeastStep / 5))
		_, x := c.Look(0)
		require.Equal(t, Change{Moved: true, Restate: i == 0}, x)
	}
	s.wall = s.wall.Add(time.Duration(LeastStep / 5))
	_, x := c.Look(0)
	require.Equal(t, LeastStep, x.Step, "in sum it is one")
}

// However the clocks tremble, no row says an earlier time than the moment had at any time
// since the last step.
func TestNoHostIsStoredTooEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSource()
		c := New(s)
		due := int64(time.Minute)
		var latest int64 // time of day that due had
		var stored int64
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			s.wall = s.wall.Add(time.Duration(rapid.Int64Range(-LeastStep/2, LeastStep/2).Draw(t, "tremble")))
			_, x := c.Look(0)
			if x.Restate {
				latest, stored = 0, math.MaxInt64
			}
			latest = max(latest, instant.Millis(c.Wall(due)))
			stored = min(stored, c.Stored(due))
		}
		if stored != 0 {
			require.GreaterOrEqual(t, stored, latest)
		}
	})
}

// A clock that was ahead at first, and is set back, comes to the time at which it was made.
func TestTheFirstDateIsADate(t *testing.T) {
	s := newSource()
	c := New(s)
	first := s.wall
	require.Zero(t, c.Due(first), "it has come")
	s.wall = s.wall.Add(-time.Hour)
	c.Look(0)
	require.True(t, c.Day(c.Due(first)).Equal(first.Add(-1)))
	require.Equal(t, instant.Millis(first), instant.Millis(c.Day(c.Due(first))), "no later")
}

func TestTheEndsOfTime(t *testing.T) {
	s := newSource()
	c := New(s)
	require.Equal(t, instant.Never, c.MomentOf(instant.Never))
	require.Equal(t, instant.Never, c.Moment(s.wall.Add(math.MaxInt64).Add(math.MaxInt64)))
	s.wall = s.wall.Add(math.MaxInt64) // a leap of 292 years
	now, x := c.Look(0)
	require.Equal(t, instant.LastMoment, x.Step)
	require.Equal(t, int64(math.MinInt64), c.MomentOf(math.MinInt64+1))
	require.Less(t, c.DateAt(now), instant.Never)
	s.steady = math.MaxInt64
	now, _ = c.Look(now)
	require.Equal(t, instant.LastMoment, now, "it stands still from there on")
}

// A reading of the system's clocks serves for both kinds of time: it is looked at once in
// a while, and moments are fresh meanwhile.
func TestTheSystemsClock(t *testing.T) {
	c := New(nil)
	_, ok := c.Fresh()
	require.False(t, ok, "nobody has looked yet")
	now, x := c.Look(c.Elapsed())
	require.Equal(t, Change{}, x)
	require.False(t, c.Stale(now))
	require.True(t, c.Stale(now+lookEvery))
	require.InDelta(t, 0, time.Until(c.Wall(now)), float64(time.Second))
	require.False(t, c.Start().After(c.Wall(now)))
	_, ok = New(newSource()).Fresh()
	require.False(t, ok, "another clock may jump")
}
