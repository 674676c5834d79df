// This file tests what a Scheduler is asked and told, and that a URL that is put
// off leaves no trace.

package frontier_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

// diary is a Scheduler that keeps a number in the State and notes what it is asked.
type diary struct {
	next   func(v frontier.Visit) time.Time
	due    time.Time // what Recheck returns
	visits []frontier.Visit
	asked  []string // by Recheck
	ask    func()   // called by it, if set
}

func (d *diary) Next(v frontier.Visit) (time.Time, frontier.State) {
	d.visits = append(d.visits, v)
	return d.next(v), numbered(number(v.Before.State) + 1)
}

func (d *diary) Recheck(e frontier.Entry, host string, h frontier.History, now time.Time) (time.Time, frontier.State) {
	d.asked = append(d.asked, host+" "+e.URL)
	if d.ask != nil {
		d.ask()
	}
	return d.due, numbered(number(h.State) + 100)
}

func numbered(n uint32) (s frontier.State) {
	binary.LittleEndian.PutUint32(s[8:], n)
	return s
}

func number(s frontier.State) uint32 { return binary.LittleEndian.Uint32(s[8:]) }

func hourLater(v frontier.Visit) time.Time { return v.Outcome.Ended.Add(time.Hour) }

// inBothWorldsWith runs a test in memory and on a store, each with a scheduler of
// its own.
func inBothWorldsWith(t *testing.T, d diary, o frontier.Options, test func(*testing.T, *world, *diary)) {
	inBothWorlds(t, o, func(t *testing.T, w *world) {
		ended(w, w.f)
		own := d
		w.opts.Scheduler = &own
		w.open()
		test(t, w, &own)
	})
}

// soon adds a URL that waits from then on.
func (w *world) soon(url string, at time.Duration) {
	n, err := w.f.Add(w.Context(), frontier.Entry{URL: url, NotBefore: dawn.Add(at)})
	require.NoError(w, err)
	require.Equal(w, 1, n)
}

func TestSchedulerIsToldAndItsStateKept(t *testing.T) {
	inBothWorldsWith(t, diary{next: hourLater}, frontier.Options{Retry: frontier.Retries(2, time.Minute)}, func(t *testing.T, w *world, d *diary) {
		w.add("http://a.example/")
		for i, r := range []frontier.Result{frontier.Changed, frontier.Unchanged, frontier.Gone, frontier.Denied} {
			l := w.nextIs(time.Duration(i)*time.Hour, "http://a.example/")
			require.EqualValues(t, 101*i, number(l.History.State), "and asked again before it came")
			w.fetched(l, 0, frontier.Outcome{Result: r, Meta: []byte{byte(i)}})
			require.Len(t, d.visits, i+1)
			v := d.visits[i]
			require.Equal(t, "a.example", v.Host)
			require.Equal(t, []byte{byte(i)}, v.Entry.Meta)
			require.Equal(t, l.History, v.Before)
			require.Equal(t, []any{r, v.Before.State, min(i+1, 3)}, []any{v.History.Last, v.History.State, v.History.Visits})
			if i == 1 && w.machine != nil {
				w.reopen()
			}
		}
		l := w.nextIs(4*time.Hour, "http://a.example/")
		require.Equal(t, frontier.Denied, l.History.Last)
		w.fetched(l, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		w.fetched(w.next(), 0, frontier.Outcome{Result: frontier.Failed})
		require.Len(t, d.visits, 4, "it has not failed for good")
		l = w.next()
		require.Equal(t, []any{2, frontier.Failed}, []any{l.Attempt, l.History.Last})
		require.EqualValues(t, 404, number(l.History.State), "what it keeps is what it said last")
		w.fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
		require.Len(t, d.visits, 5, "its tries are used up")
		require.Zero(t, w.f.Stats().GivenUp, "but it was not given up")
		l = w.next()
		require.Equal(t, 1, l.Attempt)
		d.next = func(frontier.Visit) time.Time { return time.Time{} }
		w.fetched(l, 0, frontier.Outcome{})
		w.over()
	})
}

// What is put off leaves its host free at the same moment, counts for nothing,
// and comes at its new time, after a restart too.
func TestPutOffAtPop(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(time.Minute)}
	inBothWorldsWith(t, diary{next: hourLater}, o, func(t *testing.T, w *world, d *diary) {
		require.NoError(t, w.f.SetHostLimits(frontier.Host("a.example"), frontier.Limits{Served: 2}))
		w.add("http://a.example/1")
		w.fetched(w.next(), 0, frontier.Outcome{})
		d.due = dawn.Add(9 * time.Hour)
		w.soon("http://a.example/2", time.Hour+time.Millisecond)
		w.until(time.Hour + time.Millisecond)
		l := w.nextIs(time.Hour+time.Millisecond, "http://a.example/2")
		require.Equal(t, []string{"a.example http://a.example/1"}, d.asked)
		_, err := w.f.Add(t.Context()) // nobody waited for it
		require.NoError(t, err)
		s := w.f.Stats()
		require.Equal(t, [8]int64{frontier.Visited: 1, frontier.PutOff: 1}, s.Done)
		require.EqualValues(t, 1, s.Scheduled)
		w.fetched(l, 0, frontier.Outcome{Next: dawn.Add(100 * time.Hour)})
		require.NoError(t, w.f.Clear(frontier.Host("a.example")))
		if w.machine != nil {
			w = w.killed()
		}
		d.due = time.Time{}
		l = w.nextIs(9*time.Hour, "http://a.example/1")
		require.EqualValues(t, 201, number(l.History.State))
		require.Equal(t, 1, l.History.Visits)
		w.fetched(l, 0, frontier.Outcome{})
	})
}

// An operator's URL, a retry, and a page without a state are not asked about.
func TestWhatIsNotAskedAgain(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(0), Retry: frontier.Retries(3, time.Minute)}
	inBothWorldsWith(t, diary{next: hourLater, due: dawn.Add(1000 * time.Hour)}, o, func(t *testing.T, w *world, d *diary) {
		w.add("http://a.example/1")
		w.fetched(w.next(), 0, frontier.Outcome{})
		n, err := w.f.CrawlNow(t.Context(), frontier.Entry{URL: "http://a.example/1"})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		l := w.nextIs(0, "http://a.example/1")
		require.Equal(t, frontier.Immediate, l.Priority)
		w.fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
		l = w.next()
		require.Equal(t, 2, l.Attempt)
		require.Empty(t, d.asked)
		w.fetched(l, 0, frontier.Outcome{})
		w.until(24 * time.Hour)
		_, at, err := w.tryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.True(t, at.Equal(d.due))
		require.Len(t, d.asked, 1)
	})
}

// Next goes on looking, too, and gives up when its frontier is closed.
func TestNextPutsOff(t *testing.T) {
	inBothWorldsWith(t, diary{next: hourLater}, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *world, d *diary) {
		w.add("http://a.example/1", "http://b.example/1")
		w.fetched(w.next(), 0, frontier.Outcome{})
		w.fetched(w.next(), 0, frontier.Outcome{})
		w.soon("http://c.example/1", time.Hour+time.Millisecond)
		w.until(time.Hour + time.Millisecond)
		d.due = dawn.Add(2 * time.Hour)
		for range 3 {
			l, err := w.f.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, "c.example", l.Host)
			w.fetched(l, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		}
		require.Len(t, d.asked, 2)
	})
}

// After a pause all may be due and nothing worth a visit: one call of Next puts any number
// of URLs off, and its stack does not grow with them.
func TestNextPutsOffWithoutBound(t *testing.T) {
	var depths []int
	d := diary{next: hourLater}
	inBothWorldsWith(t, d, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *world, d *diary) {
		depths = nil
		d.due = dawn.Add(2 * time.Hour)
		d.ask = func() { depths = append(depths, runtime.Callers(0, make([]uintptr, 200))) }
		const pages = 20
		for i := range pages {
			w.add(fmt.Sprintf("http://a%d.example/", i))
			w.fetched(w.next(), 0, frontier.Outcome{})
		}
		w.soon("http://z.example/", time.Hour+time.Millisecond)
		w.until(time.Hour + time.Millisecond)
		for len(depths) < pages {
			l, err := w.f.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, "z.example", l.Host)
			w.fetched(l, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		}
		require.LessOrEqual(t, slices.Max(depths), slices.Min(depths)+2, "%v", depths)
	})
}

func TestOutcomePutOff(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Minute), Retry: frontier.Retries(5, time.Second)}, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2")
		w.fetched(w.next(), 0, frontier.Outcome{Result: frontier.Failed, Next: dawn.Add(time.Hour)})
		w.until(time.Hour)
		l := w.next()
		for l.Entry.URL != "http://a.example/1" {
			w.fetched(l, 0, frontier.Outcome{})
			l = w.next()
		}
		require.Equal(t, 2, l.Attempt)
		w.fetched(l, 0, frontier.Outcome{Result: frontier.PutOff, Next: dawn.Add(3 * time.Hour), Meta: []byte("later")})
		l = w.nextIs(3*time.Hour, "http://a.example/1")
		require.Equal(t, []any{2, 0, "later", frontier.Failed}, []any{l.Attempt, l.History.Visits, string(l.Entry.Meta), l.History.Last})
		w.fetched(l, 0, frontier.Outcome{Result: frontier.PutOff, Next: dawn}) // it waits at once
		w.nextIs(3*time.Hour, "http://a.example/1")
		_, _, err := w.tryNext()
		require.True(t, errors.Is(err, frontier.ErrNotDue))
	})
}

// Now is due, in the very first instant too.
func TestOutcomePutOffUntilNow(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *world) {
		w.add("http://a.example/")
		w.fetched(w.next(), 0, frontier.Outcome{Result: frontier.PutOff, Next: dawn})
		require.EqualValues(t, 1, w.f.Stats().Waiting)
		w.nextIs(0, "http://a.example/")
	})
}

// What is put off until a time that has passed waits from then on, and keeps its place when
// the frontier is opened again.
func TestOutcomePutOffUntilThePast(t *testing.T) {
	w := newStoredWorld(t, quick(), spill.Options{})
	w.add("http://a.example/1")
	w.clk.Advance(time.Hour)
	w.fetched(w.next(), 0, frontier.Outcome{Result: frontier.PutOff, Next: dawn.Add(time.Minute)})
	w.add("http://a.example/2")
	w.reopen()
	w.fetched(w.nextIs(time.Hour, "http://a.example/1"), 0, frontier.Outcome{})
	w.nextIs(time.Hour, "http://a.example/2")
}

// A URL that moves to a paused crawl waits there, known as before, through a crash; it comes
// back as it was.
func TestPutOffIntoAnotherCrawl(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(5, time.Second)}, func(t *testing.T, w *world) {
		const aside = 1 << 31
		w.setCrawl(aside, frontier.CrawlSettings{Paused: true})
		w.add("http://a.example/1", "http://a.example/2")
		w.fetched(w.next(), 0, frontier.Outcome{Result: frontier.Failed, Next: dawn})
		l := w.nextIs(time.Second, "http://a.example/2")
		require.Equal(t, 1, l.Attempt)
		w.fetched(l, 0, frontier.Outcome{Result: frontier.PutOff, Next: dawn, Move: true, Crawl: aside, Meta: []byte("aside")})
		l = w.nextIs(time.Second, "http://a.example/1")
		require.Equal(t, 2, l.Attempt)
		w.fetched(l, 0, frontier.Outcome{Result: frontier.PutOff, Next: dawn, Move: true, Crawl: aside})
		if w.machine != nil {
			w = w.killed()
		}
		w.until(time.Hour)
		require.ErrorIs(t, func() error { _, _, err := w.tryNext(); return err }(), frontier.ErrExhausted)
		w.isState(frontier.URLKnown, "http://a.example/1")
		x, ok := w.f.CrawlStats(aside)
		require.Equal(t, []any{true, int64(2)}, []any{ok, x.Waiting})
		n, err := w.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/1"})
		require.NoError(t, err)
		require.Zero(t, n, "it stays known")

		w.setCrawl(aside, frontier.CrawlSettings{})
		w.setCrawl(0, frontier.CrawlSettings{Paused: true})
		l = w.nextIs(time.Hour, "http://a.example/2")
		require.Equal(t, []any{uint32(aside), "aside", 1}, []any{l.Entry.Crawl, string(l.Entry.Meta), l.Attempt})
		w.fetched(l, 0, frontier.Outcome{Result: frontier.PutOff, Next: dawn, Move: true})
		l = w.nextIs(time.Hour, "http://a.example/1")
		require.Equal(t, []any{uint32(aside), 2, frontier.Failed}, []any{l.Entry.Crawl, l.Attempt, l.History.Last})
		w.fetched(l, 0, frontier.Outcome{Result: frontier.PutOff, Next: dawn, Move: true})
		w.setCrawl(0, frontier.CrawlSettings{})
		require.Zero(t, w.next().Entry.Crawl)
	})
}

// A NotBefore that has passed means now: the URL keeps its place in the queue, also
// through a crash.
func TestNotBeforeThatHasPassed(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.until(time.Minute)
	w.soon("http://a.example/1", time.Second)
	w.add("http://a.example/2")
	w = w.killed()
	w.until(time.Hour)
	require.Equal(t, []string{"http://a.example/1", "http://a.example/2"}, w.rest())
}
