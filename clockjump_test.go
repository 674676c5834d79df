// This file tests frontiers on clocks that jump: by hours, decades or centuries, back
// and forth, while they run and between their runs.

package frontier_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/simclock"
	"github.com/seed-7440039f/frontier/internal/tally"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

var clockRounds = flag.Int("frontier.clock-rounds", 60, "how many crawls TestClocksThatJump does")

const (
	rounded   = 2 * time.Millisecond // by which stored times may be later
	jumpDelay = 10 * time.Second
	year      = 365 * 24 * time.Hour
)

// jumper drives a world whose time of day jumps. What is owed to hosts is measured
// by the steady clock, and dates by the time of day.
type jumper struct {
	*world
	r     *rand.Rand
	out   []frontier.Lease
	free  map[string]time.Duration // when a host may be contacted again, by the steady clock
	left  map[string]time.Time     // URLs that are not done, and when they are to come
	late  map[string]bool          // those of which nobody knows when
	back  bool                     // the clock was set back: hosts that are on disk only wait for as long
	count int
}

func newJumper(w *world, r *rand.Rand) *jumper {
	return &jumper{world: w, r: r, free: map[string]time.Duration{}, left: map[string]time.Time{}, late: map[string]bool{}}
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
		j.left[e.URL] = e.NotBefore
	}
	added, err := j.f.Add(context.Background(), entries...)
	require.NoError(j, err)
	require.Equal(j, n, added)
}

// take takes a lease if there is one, and says when there will be. If there is none,
// no URL may be late.
func (j *jumper) take() (time.Time, error) {
	l, at, err := j.tryNext()
	now, steady := j.clk.Now(), j.clk.Elapsed()
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
	err := j.f.Done(l, out)
	j.free[l.Host] = max(j.free[l.Host], j.clk.Elapsed()+owed)
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
		j.reopen()
		return
	}
	j.f.Stats() // it sees what time it is
	j.f.Sweep()
	*j.world = *j.killed()
	for _, host := range []string{"h0.example", "h1.example", "h2.example", "h3.example"} {
		j.free[host] = max(j.free[host], j.clk.Elapsed()+jumpDelay)
	}
}

// reboot opens the frontier at what the clock shows now, before it did anything.
func (j *jumper) reboot() {
	require.NoError(j, j.f.Close())
	j.open()
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
		if year := j.clk.Now().Add(d).Year(); year >= 1970 && year < 2200 { // stores keep no earlier times, and nothing is told beyond 292 years
			j.clk.Step(d)
			j.back = j.back || d < 0 && j.machine != nil
		}
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

// No host is contacted too early because of a clock that jumps, no URL comes late, and
// nothing is lost.
func TestClocksThatJump(t *testing.T) {
	jumps := []time.Duration{1, time.Second, time.Hour, 100 * 24 * time.Hour, 50 * year, -1, -time.Second, -time.Hour, -100 * 24 * time.Hour, -50 * year}
	r, tries := newRand(t), tally.Of(t)
	for n := range *clockRounds {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			o := frontier.Options{Delay: frontier.FixedDelay(jumpDelay), Priorities: 1, LeaseTime: time.Hour}
			w := func() *world {
				if n%3 == 0 {
					return newStoredWorld(t, o, spill.Options{})
				}
				return newWorld(t, o)
			}()
			j := newJumper(w, rand.New(rand.NewPCG(r.Uint64(), 1)))
			if j.r.IntN(3) == 0 { // wrong at boot
				j.clk.Step(time.Unix(0, 0).Add(year).Sub(dawn))
				j.reboot()
			}
			j.add(5)
			for range 40 {
				j.step(jumps)
				require.NoError(t, j.f.Check())
			}
			j.drain()
			tries.Tried(1)
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
		w.nextIs(jumpDelay, "http://a.example/2")
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

// slipping is a clock whose steady part goes back, which it must not.
type slipping struct {
	*simclock.Clock
	back time.Duration
}

func (c *slipping) Elapsed() time.Duration { return c.Clock.Elapsed() - c.back }

// A steady clock that goes back makes no host due earlier.
func TestTimeStandsStillWhileTheClockIsBehind(t *testing.T) {
	clk := &slipping{Clock: simclock.New(dawn)}
	f := opened(t, frontier.Options{Clock: clk, Delay: frontier.FixedDelay(jumpDelay)})
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
	frontier.Spill
	commits atomic.Int64
}

func (s *countingSpill) Commit(b *frontier.Batch) error {
	s.commits.Add(1)
	return s.Spill.Commit(b)
}

// Two clocks cannot be read at once: that is no step, and nothing is written again.
func TestClocksReadOneAfterTheOther(t *testing.T) {
	clk := &trembling{Clock: simclock.New(dawn)}
	store := &countingSpill{Spill: spilltest.OpenMemory(t, spill.Options{}).Store}
	f := opened(t, frontier.Options{Clock: clk, Spill: store, Delay: frontier.FixedDelay(jumpDelay)})
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
		f.Sweep()
	}
	require.Equal(t, before, store.commits.Load())
}

// stepped is a world in which a.example and the group g are to be left alone for an
// hour, b.example is blocked for half an hour, c.example has used up its hour, and
// d.example/1 is to come in half an hour, when the clock steps.
func stepped(t *testing.T, step time.Duration, then func(t *testing.T, w *world)) {
	o := frontier.Options{Delay: frontier.FixedDelay(time.Second)}
	inBothWorlds(t, o, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2")
		w.fetched(w.next(), 0, frontier.Outcome{RetryAfter: time.Hour})
		require.NoError(t, w.f.BlockUntil(frontier.Host("b.example"), dawn.Add(30*time.Minute)))
		require.NoError(t, w.f.SetHostLimits(frontier.Host("c.example"), frontier.Limits{Served: 1, Period: time.Hour}))
		w.add("http://c.example/1", "http://c.example/2")
		w.fetched(w.next(), 0, frontier.Outcome{})
		w.add("http://b.example/1")
		_, err := w.f.Add(t.Context(), frontier.Entry{URL: "http://d.example/1", NotBefore: dawn.Add(30 * time.Minute)})
		require.NoError(t, err)
		_, _, err = w.tryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		w.clk.Advance(time.Second)
		w.clk.Step(step)
		w.f.Stats() // it sees what time it is
		w.f.Sweep()
		then(t, w)
	})
}

// taken are the URLs that may be fetched now.
func (w *world) taken() (urls []string) {
	for {
		l, _, err := w.tryNext()
		if errors.Is(err, frontier.ErrNotDue) || errors.Is(err, frontier.ErrExhausted) {
			slices.Sort(urls)
			return urls
		}
		require.NoError(w, err)
		urls = append(urls, l.Entry.URL)
		require.NoError(w, w.f.Done(l, frontier.Outcome{}))
	}
}

// After the machine was suspended, or the clock set ahead, what has a date comes, and
// hosts are left alone as long as before. A clean Close, a kill and an export keep that.
func TestWhatASuspendLeaves(t *testing.T) {
	const step = 8 * time.Hour
	free := dawn.Add(step + time.Hour)
	stepped(t, step, func(t *testing.T, w *world) {
		x, _ := w.f.Host(t.Context(), "a.example")
		require.Equal(t, free, x.Due)
		require.Equal(t, free, x.Until)
		require.Equal(t, []string{"http://b.example/1", "http://c.example/2", "http://d.example/1"}, w.taken())
		next, err := w.f.PeekDue(t.Context(), 9)
		require.NoError(t, err)
		for _, u := range next {
			if u.Host == "a.example" {
				require.Equal(t, free, u.Due)
			}
		}
		if w.machine == nil {
			w.clk.Set(free)
			require.Equal(t, []string{"http://a.example/2"}, w.taken())
			return
		}
		var file bytes.Buffer
		require.NoError(t, w.f.Export(t.Context(), &file, frontier.ExportOptions{}))
		require.Contains(t, file.String(), free.Format("2006-01-02T15:04:05"))
		w.reopen()
		require.Empty(t, w.taken())
		*w = *w.killed()
		w.clk.Set(free.Add(-1))
		require.Empty(t, w.taken())
		w.clk.Set(free)
		require.Equal(t, []string{"http://a.example/2"}, w.taken())
	})
}

// A process that is killed after its clock was set ahead has written down by the new
// time how long hosts are to be left alone.
func TestAKillAfterAStep(t *testing.T) {
	stepped(t, 8*time.Hour, func(t *testing.T, w *world) {
		if w.machine == nil {
			return
		}
		*w = *w.killed()
		w.clk.Advance(time.Hour - time.Second - 1)
		require.NotContains(t, w.taken(), "http://a.example/2")
		w.clk.Advance(1)
		require.Contains(t, w.taken(), "http://a.example/2")
	})
}

// A clock that was ahead at boot, and is set right: dates wait for their time, periods
// and hosts as long as they should.
func TestAClockThatIsSetBack(t *testing.T) {
	stepped(t, -30*24*time.Hour, func(t *testing.T, w *world) {
		x, _ := w.f.Host(t.Context(), "a.example")
		require.Equal(t, w.clk.Now().Add(time.Hour-time.Second), x.Due)
		w.clk.Advance(time.Hour - time.Second - 1)
		require.Empty(t, w.taken())
		w.clk.Advance(1)
		require.Equal(t, []string{"http://a.example/2", "http://c.example/2"}, w.taken())
		w.clk.Set(dawn.Add(30 * time.Minute))
		require.Equal(t, []string{"http://b.example/1", "http://d.example/1"}, w.taken())
	})
}

// A caller of Next that waits for a date gets its URL within a minute after the machine
// was suspended, though nothing else happens.
func TestWaitersWakeAfterASuspend(t *testing.T) {
	inBothWorlds(t, frontier.Options{}, func(t *testing.T, w *world) {
		_, err := w.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/", NotBefore: dawn.Add(5 * time.Hour)})
		require.NoError(t, err)
		got := make(chan frontier.Lease)
		go func() {
			l, err := w.f.Next(context.Background())
			if err == nil {
				got <- l
			}
			close(got)
		}()
		require.Eventually(t, func() bool { _, ok := w.clk.Next(); return ok }, 10*time.Second, time.Millisecond)
		w.clk.Step(8 * time.Hour)
		w.clk.Advance(time.Minute)
		l := <-got
		require.Equal(t, "http://a.example/", l.Entry.URL)
		require.NoError(t, w.f.Done(l, frontier.Outcome{}))
	})
}

// A host that is on disk only is left alone as long as it asked for, however far the
// clock was set ahead since the store was opened.
func TestHostsOnDiskAfterAStep(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	w.add("http://a.example/1")
	w.fetched(w.next(), 0, frontier.Outcome{RetryAfter: 24 * time.Hour})
	require.NoError(t, w.f.MoveNow(true)) // else the log names the host
	w.reopen()
	require.False(t, w.f.Resident("a.example"))
	w.clk.Step(40 * year)
	w.f.Stats()
	w.add("http://a.example/2")
	require.Empty(t, w.taken())
	w.clk.Advance(24*time.Hour - 1)
	require.Empty(t, w.taken())
	w.clk.Advance(1)
	require.Equal(t, []string{"http://a.example/2"}, w.taken())
}
