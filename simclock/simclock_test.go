package simclock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Timers are called in the order of their times, then in that of their setting, each at its time;
// also those that others set on the way.
func TestTimersAreCalledInOrder(t *testing.T) {
	c := simclock.New(start)
	var calls []string
	call := func(name string) func() {
		return func() { calls = append(calls, name+" at "+c.Elapsed().String()) }
	}
	c.AfterFunc(3*time.Second, call("d"))
	c.AfterFunc(time.Second, call("a"))
	c.AfterFunc(time.Second, func() {
		call("b")()
		c.AfterFunc(time.Second, call("c"))
		c.AfterFunc(time.Hour, call("never"))
	})
	stopped := c.AfterFunc(time.Second, call("stopped"))
	require.True(t, stopped.Stop())
	require.False(t, stopped.Stop(), "twice")
	c.Advance(999 * time.Millisecond)
	require.Empty(t, calls)
	at, ok := c.Next()
	require.True(t, ok)
	require.Equal(t, start.Add(time.Second), at)
	c.Set(start.Add(time.Minute))
	require.Equal(t, []string{"a at 1s", "b at 1s", "c at 2s", "d at 3s"}, calls)
	require.Equal(t, start.Add(time.Minute), c.Now())
}

func TestTimersAreResetAndCalledOnce(t *testing.T) {
	c := simclock.New(start)
	calls := 0
	x := c.AfterFunc(time.Second, func() { calls++ })
	require.True(t, x.Reset(time.Minute))
	c.Advance(time.Second)
	require.Zero(t, calls)
	c.Advance(time.Hour)
	require.Equal(t, 1, calls)
	require.False(t, x.Reset(0), "it had been called")
	require.Equal(t, 1, calls, "not before the clock moves")
	c.Advance(0)
	require.Equal(t, 2, calls)
	_, ok := c.Next()
	require.False(t, ok)
}

// Steps are those of a wall clock that is set: no time passes.
func TestStepsLetNoTimePass(t *testing.T) {
	c := simclock.New(start)
	calls := 0
	c.AfterFunc(time.Hour, func() { calls++ })
	c.Step(2 * time.Hour)
	require.Equal(t, start.Add(2*time.Hour), c.Now())
	c.Set(start) // the past
	require.Equal(t, start, c.Now())
	require.Zero(t, c.Elapsed())
	c.Advance(-time.Hour)
	require.Zero(t, c.Elapsed())
	require.Zero(t, calls)
	c.Step(-time.Hour)
	c.Set(start)
	require.Equal(t, time.Hour, c.Elapsed())
	require.Equal(t, 1, calls)
}

func TestAnyGoroutineMayUseTheClock(t *testing.T) {
	c := simclock.New(start)
	var called, all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var set []frontier.Timer
			for range 100 {
				called.Add(1)
				set = append(set, c.AfterFunc(time.Millisecond, called.Done))
				c.Advance(time.Microsecond)
				c.Step(0)
				c.Now()
			}
			for _, x := range set[:50] {
				if x.Stop() {
					called.Done()
				}
			}
		})
	}
	all.Wait()
	c.Advance(time.Second)
	called.Wait()
}
