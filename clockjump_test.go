// This file tests frontiers on clocks that jump: by hours, decades or centuries, back
// and forth, while they run and between their runs.

package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

const (
	jumpDelay = 10 * time.Second
	year      = 365 * 24 * time.Hour
)

// jumper drives a world whose clock jumps. Time is the frontier's: the latest that
// its clock showed since it was opened.
type jumper struct {
	*world
	r     *rand.Rand
	now   time.Time
	out   []frontier.Lease
	free  map[string]time.Time // when a host may be contacted again
	left  map[string]bool      // URLs that are not done
	count int
}

func newJumper(w *world, r *rand.Rand) *jumper {
	return &jumper{world: w, r: r, now: dawn, free: map[string]time.Time{}, left: map[string]bool{}}
}

// saw is the time after the frontier has asked its clock.
func (j *jumper) saw() time.Time {
	if now := j.clk.Now(); now.After(j.now) {
		j.now = now
	}
	return j.now
}

func (j *jumper) add(n int) {
	var entries []frontier.Entry
	for range n {
		j.count++
		e := frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", j.count%4, j.count)}
		if j.count%3 == 0 {
			e.NotBefore = j.clk.Now().Add([]time.Duration{time.Second, time.Hour, 40 * year}[j.r.IntN(3)])
		}
		entries = append(entries, e)
		j.left[e.URL] = true
	}
	added, err := j.f.Add(context.Background(), entries...)
	require.NoError(j, err)
	require.Equal(j, n, added)
	j.saw()
}

// take takes a lease if there is one, and says when there will be.
func (j *jumper) take() (time.Time, error) {
	l, at, err := j.tryNext()
	if j.saw(); err == nil {
		require.False(j, l.LeasedAt.Before(j.now), "time ran backwards")
		j.now = l.LeasedAt // its timers may have seen more than this test
		require.False(j, j.now.Before(j.free[l.Host]), "%s at %v, which is free at %v", l.Entry.URL, j.now, j.free[l.Host])
		require.True(j, j.left[l.Entry.URL], "%s again", l.Entry.URL)
		j.out = append(j.out, l)
	}
	return at, err
}

func (j *jumper) done() {
	if len(j.out) == 0 {
		return
	}
	l := j.out[0]
	j.out = j.out[1:]
	err := j.f.Done(l, frontier.Outcome{})
	if errors.Is(err, frontier.ErrNotLeased) { // its time is up: the URL comes again
		j.saw()
		return
	}
	require.NoError(j, err)
	j.free[l.Host] = j.saw().Add(jumpDelay)
	delete(j.left, l.Entry.URL)
}

// again closes the frontier and opens it at what its clock shows now. What is due
// then more than 30 days later is due after 30 days.
func (j *jumper) again() {
	for len(j.out) > 0 {
		j.done()
	}
	j.reopen()
	j.now = j.clk.Now()
	for host, at := range j.free {
		if limit := j.now.Add(30 * 24 * time.Hour); at.After(limit) {
			j.free[host] = limit
		}
	}
}

func (j *jumper) step(jumps []time.Duration) {
	switch j.r.IntN(7) {
	case 0:
		j.add(1 + j.r.IntN(4))
	case 1, 2:
		_, _ = j.take()
	case 3:
		j.done()
	case 4:
		j.clk.Set(j.clk.Now().Add(jumps[j.r.IntN(len(jumps))]))
	case 5:
		j.clk.Advance(time.Duration(j.r.Int64N(int64(20 * time.Second))))
	case 6:
		if j.machine != nil && j.r.IntN(2) == 0 {
			j.again()
		}
	}
}

// drain does all that is left, on a clock that runs as it should from now on.
func (j *jumper) drain() {
	for range 1000 {
		at, err := j.take()
		switch {
		case err == nil || len(j.out) > 0:
			j.done()
		case errors.Is(err, frontier.ErrExhausted):
			require.Empty(j, j.left, "these never came")
			return
		default:
			require.ErrorIs(j, err, frontier.ErrNotDue)
			require.True(j, at.After(j.clk.Now()))
			j.clk.Set(at)
		}
	}
	require.Fail(j, "it does not end")
}

// Nobody is due earlier because of a clock that jumps, and nothing is lost.
func TestClocksThatJump(t *testing.T) {
	jumps := []time.Duration{1, time.Second, time.Hour, 100 * 24 * time.Hour, 50 * year, -1, -time.Second, -time.Hour, -100 * 24 * time.Hour, -50 * year}
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := frontier.Options{Delay: frontier.FixedDelay(jumpDelay), Priorities: 1, LeaseTime: time.Hour}
			w := func() *world {
				if seed%6 == 0 {
					return newStoredWorld(t, o, spill.Options{})
				}
				return newWorld(t, o)
			}()
			j := newJumper(w, rand.New(rand.NewPCG(seed, 1)))
			j.add(5)
			for range 40 {
				j.step(jumps)
				require.NoError(t, j.f.Check())
			}
			j.drain()
		})
	}
}

// The contact of a lease ends when Done is called, however far back its clock has
// jumped since.
func TestDoneOnAClockThatIsBehind(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(jumpDelay), LeaseTime: 2 * time.Hour}, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2", "http://b.example/1")
		l := w.next()
		require.Equal(t, "a.example", l.Host)
		w.until(time.Hour)
		w.fetched(w.next(), 0, frontier.Outcome{}) // the frontier sees that it is one o'clock
		w.until(0)
		w.fetched(l, 0, frontier.Outcome{})
		w.nextIs(time.Hour+jumpDelay, "http://a.example/2")
	})
}

// A clock that leaps centuries ahead is a clock that has stopped.
func TestCenturies(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(jumpDelay), Priorities: 1}, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2")
		w.clk.Set(dawn.Add(290 * year).Add(290 * year))
		l := w.next()
		require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		_, at, err := w.tryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue, "it is not due at once")
		require.NoError(t, w.f.Check())
		require.True(t, at.Before(w.clk.Now()))
		if w.machine == nil {
			return
		}
		w.reopen() // its time begins anew
		l = w.next()
		require.Equal(t, "http://a.example/2", l.Entry.URL)
		w.fetched(l, 0, frontier.Outcome{})
		w.over()
	})
}

// A visit in the past is one that waits at once; one that nothing will live to see is
// kept, and so is one that the Scheduler of a caller asks for.
func TestNextAtOddTimes(t *testing.T) {
	odd := []time.Time{dawn.Add(-time.Hour), time.Unix(-1, 0), time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(200_000, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, by := range []string{"caller", "scheduler"} {
		for _, at := range odd {
			t.Run(by+at.Format(" 2006"), func(t *testing.T) {
				o := frontier.Options{Delay: frontier.FixedDelay(jumpDelay)}
				if by == "scheduler" {
					o.Scheduler = frontier.SchedulerFunc(func(frontier.Visit) time.Time { return at })
				}
				inBothWorlds(t, o, func(t *testing.T, w *world) {
					w.add("http://a.example/")
					out := frontier.Outcome{}
					if by == "caller" {
						out.Next = at
					}
					w.fetched(w.next(), 0, out)
					require.NoError(t, w.f.Check())
					require.NoError(t, w.f.Export(context.Background(), io.Discard, frontier.ExportOptions{}))
					if w.machine != nil {
						w.reopen()
					}
					if at.Before(dawn) {
						require.Equal(t, 1, w.nextIs(jumpDelay, "http://a.example/").History.Visits)
						return
					}
					_, due, err := w.tryNext()
					require.ErrorIs(t, err, frontier.ErrNotDue)
					require.True(t, due.IsZero() || due.Year() > 2200, "%v", due)
					require.EqualValues(t, 1, w.f.Stats().Scheduled)
				})
			})
		}
	}
}

// Whatever the year, a store can be opened again, and all comes.
func TestClocksOfOtherAges(t *testing.T) {
	for _, at := range []time.Time{{}, time.Date(1, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0), time.Unix(-1, 0),
		time.Date(2262, 4, 11, 0, 0, 0, 0, time.UTC), time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)} {
		t.Run(at.Format(time.DateOnly), func(t *testing.T) {
			w := &world{TB: t, clk: simclock.New(at), machine: spilltest.OpenMemory(t, spill.Options{})}
			w.opts = frontier.Options{Clock: w.clk, Spill: w.machine.Store, Delay: frontier.FixedDelay(jumpDelay), Priorities: 1}
			w.open()
			w.add("http://a.example/1", "http://a.example/2", "http://b.example/1")
			_, err := w.f.Add(context.Background(), frontier.Entry{URL: "http://c.example/", NotBefore: at.Add(time.Hour)})
			require.NoError(t, err)
			w.fetched(w.next(), time.Second, frontier.Outcome{CrawlDelay: time.Minute})
			w.fetched(w.next(), time.Second, frontier.Outcome{Next: at.Add(time.Hour), RetryAfter: time.Hour})
			w.fetched(w.next(), time.Second, frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTimeout})
			require.NoError(t, w.f.SetHostLimits(frontier.Host("b.example"), frontier.Limits{Served: 1000}))
			require.NoError(t, w.f.Export(context.Background(), io.Discard, frontier.ExportOptions{}))
			for _, clean := range []bool{true, false} {
				if clean {
					w.reopen()
				} else {
					w = w.killed()
				}
				require.NoError(t, w.f.Check())
			}
			left := 0
			for range 20 {
				l, due, err := w.tryNext()
				if errors.Is(err, frontier.ErrNotDue) {
					require.True(t, due.After(w.clk.Now()))
					w.clk.Set(due)
					continue
				}
				if errors.Is(err, frontier.ErrExhausted) {
					break
				}
				require.NoError(t, err)
				left++
				w.fetched(l, 0, frontier.Outcome{})
			}
			require.Equal(t, 3, left)
		})
	}
}
