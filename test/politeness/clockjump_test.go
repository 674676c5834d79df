// This file tests frontiers on clocks that jump: by hours, decades or centuries, back
// and forth, while they run and between their runs.

package politeness

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

var clockRounds = flag.Int("frontier.clock-rounds", 20, "how many crawls TestClocksThatJump does")

const (
	rounded   = 2 * time.Millisecond // by which stored times may be later
	jumpDelay = 10 * time.Second
	year      = 365 * 24 * time.Hour
)

// jumper drives a world whose time of day jumps. What is owed to hosts is measured
// by the steady clock, and dates by the time of day.
type jumper struct {
	*harness.World
	r     *rand.Rand
	out   []frontier.Lease
	free  map[string]time.Duration // when a host may be contacted again, by the steady clock
	left  map[string]time.Time     // URLs that are not done, and when they are to come
	late  map[string]bool          // those whose time is unknown
	back  bool                     // the clock was set back: hosts that are on disk only wait for as long
	count int
}

func newJumper(w *harness.World, r *rand.Rand) *jumper {
	return &jumper{World: w, r: r, free: map[string]time.Duration{}, left: map[string]time.Time{}, late: map[string]bool{}}
}

func (j *jumper) add(n int) {
	var entries []frontier.Entry
	for range n {
		j.count++
		e := frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", j.count%4, j.count)}
		if j.count%3 == 0 {
			e.NotBefore = j.Clock.Now().Add([]time.Duration{time.Second, time.Hour, 40 * year}[j.r.IntN(3)])
		}
		entries = append(entries, e)
		j.left[e.URL] = e.NotBefore
	}
	added, err := j.F.Add(context.Background(), entries...)
	require.NoError(j, err)
	require.Equal(j, n, added)
}

// take takes a lease if there is one, and says when there will be. If there is none,
// no URL may be late.
func (j *jumper) take() (time.Time, error) {
	l, at, err := j.TryNext()
	now, steady := j.Clock.Now(), j.Clock.Elapsed()
	if errors.Is(err, frontier.ErrNotDue) && !j.back {
		busy := map[string]bool{}
		for _, l := range j.out {
			busy[l.Host] = true
		}
		for u, due := range j.left {
			host, _ := frontier.HostName(u)
			require.False(j, !busy[host] && !j.late[u] && !due.After(now.Add(-rounded)) && j.free[host] <= steady-rounded, "%s is late: it was to come at %v, it is %v", u, due, now)
		}
	}
	if err == nil {
		require.WithinDuration(j, now, l.LeasedAt, time.Millisecond)
		require.GreaterOrEqual(j, steady, j.free[l.Host], "%s comes too early", l.Entry.URL)
		require.Contains(j, j.left, l.Entry.URL, "again")
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
	out := frontier.Outcome{}
	owed := jumpDelay
	if j.r.IntN(4) == 0 {
		owed = 2 * time.Hour
		out.RetryAfter = owed
	}
	err := j.F.Done(l, out)
	j.free[l.Host] = max(j.free[l.Host], j.Clock.Elapsed()+owed)
	if errors.Is(err, frontier.ErrNotLeased) { // its time is up: the URL comes again
		j.late[l.Entry.URL] = true
		return
	}
	require.NoError(j, err)
	delete(j.left, l.Entry.URL)
}

// again closes the frontier, or kills it, and opens it again.
func (j *jumper) again() {
	for len(j.out) > 0 {
		j.done()
	}
	if j.r.IntN(2) == 0 {
		j.Reopen()
		return
	}
	j.F.Stats() // it sees what time it is
	hook.Of(j.F).Sweep()
	*j.World = *j.Killed()
	for _, host := range []string{"h0.example", "h1.example", "h2.example", "h3.example"} {
		j.free[host] = max(j.free[host], j.Clock.Elapsed()+jumpDelay)
	}
}

// reboot opens the frontier at what the clock shows now, before it did anything.
func (j *jumper) reboot() {
	require.NoError(j, j.F.Close())
	j.Open()
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
		d := jumps[j.r.IntN(len(jumps))]
		if year := j.Clock.Now().Add(d).Year(); year >= 1970 && year < 2200 { // stores keep no earlier times, and no time is reported beyond 292 years
			j.Clock.Step(d)
			j.back = j.back || d < 0 && j.Machine != nil
		}
	case 5:
		j.Clock.Advance(time.Duration(j.r.Int64N(int64(20 * time.Second))))
	case 6:
		if j.Machine != nil && j.r.IntN(2) == 0 {
			j.again()
		}
	}
}

// drain finishes everything that is left, on a clock that runs normally from now on.
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
			require.True(j, at.After(j.Clock.Now()))
			j.Clock.Set(at)
		}
	}
	require.Fail(j, "it does not end")
}

// No host is contacted too early because of a clock that jumps, no URL comes late, and
// nothing is lost.
func TestClocksThatJump(t *testing.T) {
	jumps := []time.Duration{1, time.Second, time.Hour, 100 * 24 * time.Hour, 50 * year, -1, -time.Second, -time.Hour, -100 * 24 * time.Hour, -50 * year}
	r, tries := harness.NewRand(t), trycount.Of(t)
	for n := range *clockRounds {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			o := frontier.Options{Delay: frontier.FixedDelay(jumpDelay), Priorities: 1, LeaseTime: time.Hour}
			w := func() *harness.World {
				if n%3 == 0 {
					return harness.NewStoredWorld(t, o, spill.Options{})
				}
				return harness.NewWorld(t, o)
			}()
			j := newJumper(w, rand.New(rand.NewPCG(r.Uint64(), 1)))
			if j.r.IntN(3) == 0 { // wrong at boot
				j.Clock.Step(time.Unix(0, 0).Add(year).Sub(harness.Dawn))
				j.reboot()
			}
			j.add(5)
			for range 40 {
				j.step(jumps)
				require.NoError(t, j.F.Check())
			}
			j.drain()
			tries.Tried(1)
		})
	}
}

// The contact of a lease ends when Done is called, however far back its clock has
// jumped since.
func TestDoneOnAClockThatIsBehind(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(jumpDelay), LeaseTime: 2 * time.Hour}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2", "http://b.example/1")
		l := w.Next()
		require.Equal(t, "a.example", l.Host)
		w.Until(time.Hour)
		w.Fetched(w.Next(), 0, frontier.Outcome{}) // the frontier sees that it is one o'clock
		w.Until(0)
		w.Fetched(l, 0, frontier.Outcome{})
		w.NextIs(jumpDelay, "http://a.example/2")
	})
}

// A clock that leaps centuries ahead is a clock that has stopped.
func TestCenturies(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(jumpDelay), Priorities: 1}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2")
		w.Clock.Set(harness.Dawn.Add(290 * year).Add(290 * year))
		l := w.Next()
		require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		_, at, err := w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue, "it is not due at once")
		require.NoError(t, w.F.Check())
		require.True(t, at.Before(w.Clock.Now()))
		if w.Machine == nil {
			return
		}
		w.Reopen() // its time begins anew
		l = w.Next()
		require.Equal(t, "http://a.example/2", l.Entry.URL)
		w.Fetched(l, 0, frontier.Outcome{})
		w.Over()
	})
}

// A visit in the past waits at once; one beyond any lifetime is kept, and so is one requested by a
// Scheduler of the caller.
func TestNextAtOddTimes(t *testing.T) {
	odd := []time.Time{harness.Dawn.Add(-time.Hour), time.Unix(-1, 0), time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(200_000, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, by := range []string{"caller", "scheduler"} {
		for _, at := range odd {
			t.Run(by+at.Format(" 2006"), func(t *testing.T) {
				o := frontier.Options{Delay: frontier.FixedDelay(jumpDelay)}
				if by == "scheduler" {
					o.Scheduler = frontier.SchedulerFunc(func(frontier.Visit) time.Time { return at })
				}
				harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
					w.Add("http://a.example/")
					out := frontier.Outcome{}
					if by == "caller" {
						out.Next = at
					}
					w.Fetched(w.Next(), 0, out)
					require.NoError(t, w.F.Check())
					require.NoError(t, transfer.Export(context.Background(), w.F, io.Discard, transfer.ExportOptions{}))
					if w.Machine != nil {
						w.Reopen()
					}
					if at.Before(harness.Dawn) {
						require.Equal(t, 1, w.NextIs(jumpDelay, "http://a.example/").History.Visits)
						return
					}
					_, due, err := w.TryNext()
					require.ErrorIs(t, err, frontier.ErrNotDue)
					given := at
					if at.Year() > 9999 {
						given = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
					}
					require.False(t, due.Before(given), "%v", due)
					x, err := inspect.New(w.F).Status(t.Context(), frontier.Entry{URL: "http://a.example/"})
					require.NoError(t, err)
					require.False(t, x.Until.Before(given), "%v", x.Until)
					require.EqualValues(t, 1, w.F.Stats().Scheduled)
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
			w := &harness.World{TB: t, Clock: simclock.New(at), Machine: spilltest.OpenMemory(t, spill.Options{})}
			w.Options = frontier.Options{Clock: w.Clock, Spill: w.Machine.Store, Delay: frontier.FixedDelay(jumpDelay), Priorities: 1}
			w.Open()
			w.Add("http://a.example/1", "http://a.example/2", "http://b.example/1")
			_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://c.example/", NotBefore: at.Add(time.Hour)})
			require.NoError(t, err)
			w.Fetched(w.Next(), time.Second, frontier.Outcome{CrawlDelay: time.Minute})
			w.Fetched(w.Next(), time.Second, frontier.Outcome{Next: at.Add(time.Hour), RetryAfter: time.Hour})
			w.Fetched(w.Next(), time.Second, frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTimeout})
			require.NoError(t, w.F.UpdateRule(scope.Host("b.example"), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1000} }))
			require.NoError(t, transfer.Export(context.Background(), w.F, io.Discard, transfer.ExportOptions{}))
			for _, clean := range []bool{true, false} {
				if clean {
					w.Reopen()
				} else {
					w = w.Killed()
				}
				require.NoError(t, w.F.Check())
			}
			left := 0
			for range 20 {
				l, due, err := w.TryNext()
				if errors.Is(err, frontier.ErrNotDue) {
					require.True(t, due.After(w.Clock.Now()))
					w.Clock.Set(due)
					continue
				}
				if errors.Is(err, frontier.ErrExhausted) {
					break
				}
				require.NoError(t, err)
				left++
				w.Fetched(l, 0, frontier.Outcome{})
			}
			require.Equal(t, 3, left)
		})
	}
}

// slipping is a clock whose steady part goes back, which it must not.
type slipping struct {
	*simclock.Clock
	back time.Duration
}

func (c *slipping) Elapsed() time.Duration { return c.Clock.Elapsed() - c.back }

// A steady clock that goes back makes no host due earlier.
func TestTimeStandsStillWhileTheClockIsBehind(t *testing.T) {
	clk := &slipping{Clock: simclock.New(harness.Dawn)}
	f := harness.Opened(t, frontier.Options{Clock: clk, Delay: frontier.FixedDelay(jumpDelay)})
	_, err := f.Add(t.Context(), frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2"})
	require.NoError(t, err)
	clk.Advance(time.Minute)
	l, _, err := f.TryNext()
	require.NoError(t, err)
	clk.back = time.Minute
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	clk.Advance(time.Minute + jumpDelay - 1)
	_, _, err = f.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	clk.Advance(1)
	l, _, err = f.TryNext()
	require.NoError(t, err)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
}

// trembling is a clock whose time of day is read a moment before or after the steady one.
type trembling struct {
	*simclock.Clock
	reads atomic.Int64
}

func (c *trembling) Now() time.Time {
	n := c.reads.Add(1)
	return c.Clock.Now().Add(time.Duration(n*7919%1999-999) * time.Microsecond / 2)
}

// countingSpill counts commits.
type countingSpill struct {
	storage.Spill
	commits atomic.Int64
}

func (s *countingSpill) Commit(b *storage.Batch) error {
	s.commits.Add(1)
	return s.Spill.Commit(b)
}

// Two clocks cannot be read at once: that is no step, and nothing is written again.
func TestClocksReadOneAfterTheOther(t *testing.T) {
	clk := &trembling{Clock: simclock.New(harness.Dawn)}
	store := &countingSpill{Spill: spilltest.OpenMemory(t, spill.Options{}).Store}
	f := harness.Opened(t, frontier.Options{Clock: clk, Spill: store, Delay: frontier.FixedDelay(jumpDelay)})
	_, err := f.Add(t.Context(), frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2"})
	require.NoError(t, err)
	l, _, err := f.TryNext()
	require.NoError(t, err)
	require.NoError(t, f.Done(l, frontier.Outcome{RetryAfter: time.Hour}))
	before := store.commits.Load()
	for range 100 {
		clk.Advance(10 * time.Millisecond)
		_, _, err := f.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		hook.Of(f).Sweep()
	}
	require.Equal(t, before, store.commits.Load())
}

// stepped is a world in which a.example and the group g must be left alone for an
// hour, b.example is blocked for half an hour, c.example has used up its hour, and
// d.example/1 is to come in half an hour, when the clock steps.
func stepped(t *testing.T, step time.Duration, then func(t *testing.T, w *harness.World)) {
	o := frontier.Options{Delay: frontier.FixedDelay(time.Second)}
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2")
		w.Fetched(w.Next(), 0, frontier.Outcome{RetryAfter: time.Hour})
		require.NoError(t, w.F.BlockUntil(scope.Host("b.example"), harness.Dawn.Add(30*time.Minute)))
		require.NoError(t, w.F.UpdateRule(scope.Host("c.example"), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1, Period: time.Hour} }))
		w.Add("http://c.example/1", "http://c.example/2")
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Add("http://b.example/1")
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://d.example/1", NotBefore: harness.Dawn.Add(30 * time.Minute)})
		require.NoError(t, err)
		_, _, err = w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		w.Clock.Advance(time.Second)
		w.Clock.Step(step)
		w.F.Stats() // it sees what time it is
		hook.Of(w.F).Sweep()
		then(t, w)
	})
}

// After the machine was suspended, or the clock set ahead, what has a date comes, and
// hosts are left alone as long as before. A clean Close, a kill and an export keep that.
func TestWhatASuspendLeaves(t *testing.T) {
	const step = 8 * time.Hour
	free := harness.Dawn.Add(step + time.Hour)
	stepped(t, step, func(t *testing.T, w *harness.World) {
		x, _ := inspect.New(w.F).Host(t.Context(), "a.example")
		require.Equal(t, free, x.Due)
		require.Equal(t, free, x.Until)
		require.Equal(t, []string{"http://b.example/1", "http://c.example/2", "http://d.example/1"}, w.Taken())
		next, err := inspect.New(w.F).Upcoming(t.Context(), 9, true)
		require.NoError(t, err)
		for _, u := range next {
			if u.Host.Host == "a.example" {
				require.Equal(t, free, u.Due)
			}
		}
		if w.Machine == nil {
			w.Clock.Set(free)
			require.Equal(t, []string{"http://a.example/2"}, w.Taken())
			return
		}
		var file bytes.Buffer
		require.NoError(t, transfer.Export(t.Context(), w.F, &file, transfer.ExportOptions{}))
		require.Contains(t, file.String(), free.Format("2006-01-02T15:04:05"))
		w.Reopen()
		require.Empty(t, w.Taken())
		*w = *w.Killed()
		w.Clock.Set(free.Add(-1))
		require.Empty(t, w.Taken())
		w.Clock.Set(free)
		require.Equal(t, []string{"http://a.example/2"}, w.Taken())
	})
}

// A process that is killed after its clock was set ahead has written down by the new
// time how long hosts must be left alone.
func TestAKillAfterAStep(t *testing.T) {
	stepped(t, 8*time.Hour, func(t *testing.T, w *harness.World) {
		if w.Machine == nil {
			return
		}
		*w = *w.Killed()
		w.Clock.Advance(time.Hour - time.Second - 1)
		require.NotContains(t, w.Taken(), "http://a.example/2")
		w.Clock.Advance(1)
		require.Contains(t, w.Taken(), "http://a.example/2")
	})
}

// A clock that was ahead at boot, and is set right: dates wait for their time, periods
// and hosts as long as they should.
func TestAClockThatIsSetBack(t *testing.T) {
	stepped(t, -30*24*time.Hour, func(t *testing.T, w *harness.World) {
		x, _ := inspect.New(w.F).Host(t.Context(), "a.example")
		require.Equal(t, w.Clock.Now().Add(time.Hour-time.Second), x.Due)
		w.Clock.Advance(time.Hour - time.Second - 1)
		require.Empty(t, w.Taken())
		w.Clock.Advance(1)
		require.Equal(t, []string{"http://a.example/2", "http://c.example/2"}, w.Taken())
		w.Clock.Set(harness.Dawn.Add(30 * time.Minute))
		require.Equal(t, []string{"http://b.example/1", "http://d.example/1"}, w.Taken())
	})
}

// A caller of Next that waits for a date gets its URL within a minute after the machine
// was suspended, though nothing else happens.
func TestWaitersWakeAfterASuspend(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/", NotBefore: harness.Dawn.Add(5 * time.Hour)})
		require.NoError(t, err)
		got := make(chan frontier.Lease)
		go func() {
			l, err := w.F.Next(context.Background())
			if err == nil {
				got <- l
			}
			close(got)
		}()
		require.Eventually(t, func() bool { _, ok := w.Clock.Next(); return ok }, 10*time.Second, time.Millisecond)
		w.Clock.Step(8 * time.Hour)
		w.Clock.Advance(time.Minute)
		l := <-got
		require.Equal(t, "http://a.example/", l.Entry.URL)
		require.NoError(t, w.F.Done(l, frontier.Outcome{}))
	})
}

// A host that is on disk only is left alone as long as it asked for, however far the
// clock was set ahead since the store was opened.
func TestHostsOnDiskAfterAStep(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	w.Add("http://a.example/1")
	w.Fetched(w.Next(), 0, frontier.Outcome{RetryAfter: 24 * time.Hour})
	require.NoError(t, hook.Of(w.F).MoveNow(true)) // else the log names the host
	w.Reopen()
	require.False(t, hook.Of(w.F).Resident("a.example"))
	w.Clock.Step(40 * year)
	w.F.Stats()
	w.Add("http://a.example/2")
	require.Empty(t, w.Taken())
	w.Clock.Advance(24*time.Hour - 1)
	require.Empty(t, w.Taken())
	w.Clock.Advance(1)
	require.Equal(t, []string{"http://a.example/2"}, w.Taken())
}
