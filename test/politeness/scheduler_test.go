// This file tests what a Scheduler is asked and gets, and that a URL that is put
// off leaves no trace.

package politeness

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

func TestSchedulerIsToldAndItsStateKept(t *testing.T) {
	harness.InBothWorldsWith(t, harness.Diary{Again: harness.HourLater}, frontier.Options{Retry: frontier.Retries(2, time.Minute)}, func(t *testing.T, w *harness.World, d *harness.Diary) {
		w.Add("http://a.example/")
		for i, r := range []frontier.Result{frontier.Changed, frontier.Unchanged, frontier.Gone, frontier.Denied} {
			l := w.NextIs(time.Duration(i)*time.Hour, "http://a.example/")
			require.EqualValues(t, 101*i, harness.Number(l.History.State), "and asked again before it came")
			w.Fetched(l, 0, frontier.Outcome{Result: r, Meta: []byte{byte(i)}})
			require.Len(t, d.Visits, i+1)
			v := d.Visits[i]
			require.Equal(t, "a.example", v.Host)
			require.Equal(t, []byte{byte(i)}, v.Entry.Meta)
			require.Equal(t, l.History, v.Before)
			require.Equal(t, []any{r, v.Before.State, min(i+1, 3)}, []any{v.History.Last, v.History.State, v.History.Visits})
			if i == 1 && w.Machine != nil {
				w.Reopen()
			}
		}
		l := w.NextIs(4*time.Hour, "http://a.example/")
		require.Equal(t, frontier.Denied, l.History.Last)
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Failed})
		require.Len(t, d.Visits, 4, "it has not failed for good")
		l = w.Next()
		require.Equal(t, []any{2, frontier.Failed}, []any{l.Attempt, l.History.Last})
		require.EqualValues(t, 404, harness.Number(l.History.State), "what it keeps is what it said last")
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
		require.Len(t, d.Visits, 5, "its tries are used up")
		require.Zero(t, w.F.Stats().GivenUp, "but it was not given up")
		l = w.Next()
		require.Equal(t, 1, l.Attempt)
		d.Again = func(frontier.Visit) time.Time { return time.Time{} }
		w.Fetched(l, 0, frontier.Outcome{})
		w.Over()
	})
}

// What is put off leaves its host free at the same moment, counts for nothing,
// and comes at its new time, after a restart too.
func TestPutOffAtPop(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(time.Minute)}
	harness.InBothWorldsWith(t, harness.Diary{Again: harness.HourLater}, o, func(t *testing.T, w *harness.World, d *harness.Diary) {
		require.NoError(t, w.F.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 2} }))
		w.Add("http://a.example/1")
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		d.Due = harness.Dawn.Add(9 * time.Hour)
		w.Soon("http://a.example/2", time.Hour+time.Millisecond)
		w.Until(time.Hour + time.Millisecond)
		l := w.NextIs(time.Hour+time.Millisecond, "http://a.example/2")
		require.Equal(t, []string{"a.example http://a.example/1"}, d.Asked)
		_, err := w.F.Add(t.Context()) // no call waited for it
		require.NoError(t, err)
		s := w.F.Stats()
		require.Equal(t, [8]int64{frontier.Visited: 1, frontier.PutOff: 1}, s.Done)
		require.EqualValues(t, 1, s.Scheduled)
		w.Fetched(l, 0, frontier.Outcome{Next: harness.Dawn.Add(100 * time.Hour)})
		require.NoError(t, w.F.Clear(scope.Host("a.example")))
		if w.Machine != nil {
			w = w.Killed()
		}
		d.Due = time.Time{}
		l = w.NextIs(9*time.Hour, "http://a.example/1")
		require.EqualValues(t, 201, harness.Number(l.History.State))
		require.Equal(t, 1, l.History.Visits)
		w.Fetched(l, 0, frontier.Outcome{})
	})
}

// An operator's URL, a retry, and a page without a state are not asked about.
func TestWhatIsNotAskedAgain(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(0), Retry: frontier.Retries(3, time.Minute)}
	harness.InBothWorldsWith(t, harness.Diary{Again: harness.HourLater, Due: harness.Dawn.Add(1000 * time.Hour)}, o, func(t *testing.T, w *harness.World, d *harness.Diary) {
		w.Add("http://a.example/1")
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		n, err := w.F.CrawlNow(t.Context(), frontier.Entry{URL: "http://a.example/1"})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		l := w.NextIs(0, "http://a.example/1")
		require.Equal(t, frontier.Immediate, l.Priority)
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
		l = w.Next()
		require.Equal(t, 2, l.Attempt)
		require.Empty(t, d.Asked)
		w.Fetched(l, 0, frontier.Outcome{})
		w.Until(24 * time.Hour)
		_, at, err := w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.True(t, at.Equal(d.Due))
		require.Len(t, d.Asked, 1)
	})
}

// Next keeps looking, too, and gives up when its frontier is closed.
func TestNextPutsOff(t *testing.T) {
	harness.InBothWorldsWith(t, harness.Diary{Again: harness.HourLater}, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World, d *harness.Diary) {
		w.Add("http://a.example/1", "http://b.example/1")
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Soon("http://c.example/1", time.Hour+time.Millisecond)
		w.Until(time.Hour + time.Millisecond)
		d.Due = harness.Dawn.Add(2 * time.Hour)
		for range 3 {
			l, err := w.F.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, "c.example", l.Host)
			w.Fetched(l, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		}
		require.Len(t, d.Asked, 2)
	})
}

// After a pause all may be due and nothing worth a visit: one call of Next puts any number
// of URLs off, and its stack does not grow with them.
func TestNextPutsOffWithoutBound(t *testing.T) {
	var depths []int
	d := harness.Diary{Again: harness.HourLater}
	harness.InBothWorldsWith(t, d, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World, d *harness.Diary) {
		depths = nil
		d.Due = harness.Dawn.Add(2 * time.Hour)
		d.Ask = func() { depths = append(depths, runtime.Callers(0, make([]uintptr, 200))) }
		const pages = 20
		for i := range pages {
			w.Add(fmt.Sprintf("http://a%d.example/", i))
			w.Fetched(w.Next(), 0, frontier.Outcome{})
		}
		w.Soon("http://z.example/", time.Hour+time.Millisecond)
		w.Until(time.Hour + time.Millisecond)
		for len(depths) < pages {
			l, err := w.F.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, "z.example", l.Host)
			w.Fetched(l, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		}
		require.LessOrEqual(t, slices.Max(depths), slices.Min(depths)+2, "%v", depths)
	})
}

func TestOutcomePutOff(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Minute), Retry: frontier.Retries(5, time.Second)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2")
		w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Failed, Next: harness.Dawn.Add(time.Hour)})
		w.Until(time.Hour)
		l := w.Next()
		for l.Entry.URL != "http://a.example/1" {
			w.Fetched(l, 0, frontier.Outcome{})
			l = w.Next()
		}
		require.Equal(t, 2, l.Attempt)
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.PutOff, Next: harness.Dawn.Add(3 * time.Hour), Meta: []byte("later")})
		l = w.NextIs(3*time.Hour, "http://a.example/1")
		require.Equal(t, []any{2, 0, "later", frontier.Failed}, []any{l.Attempt, l.History.Visits, string(l.Entry.Meta), l.History.Last})
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.PutOff, Next: harness.Dawn}) // it waits at once
		w.NextIs(3*time.Hour, "http://a.example/1")
		_, _, err := w.TryNext()
		require.True(t, errors.Is(err, frontier.ErrNotDue))
	})
}

// Now is due, in the very first instant too.
func TestOutcomePutOffUntilNow(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/")
		w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.PutOff, Next: harness.Dawn})
		require.EqualValues(t, 1, w.F.Stats().Waiting)
		w.NextIs(0, "http://a.example/")
	})
}

// What is put off until a time that has passed waits from then on, and keeps its place when
// the frontier is opened again.
func TestOutcomePutOffUntilThePast(t *testing.T) {
	w := harness.NewStoredWorld(t, harness.Quick(), spill.Options{})
	w.Add("http://a.example/1")
	w.Clock.Advance(time.Hour)
	w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.PutOff, Next: harness.Dawn.Add(time.Minute)})
	w.Add("http://a.example/2")
	w.Reopen()
	w.Fetched(w.NextIs(time.Hour, "http://a.example/1"), 0, frontier.Outcome{})
	w.NextIs(time.Hour, "http://a.example/2")
}

// A URL that moves to a paused crawl waits there, known as before, through a crash; it comes
// back as it was.
func TestPutOffIntoAnotherCrawl(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(5, time.Second)}, func(t *testing.T, w *harness.World) {
		const aside = 1 << 31
		w.SetCrawl(aside, frontier.Rule{Paused: scope.On})
		w.Add("http://a.example/1", "http://a.example/2")
		w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Failed, Next: harness.Dawn})
		l := w.NextIs(time.Second, "http://a.example/2")
		require.Equal(t, 1, l.Attempt)
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.PutOff, Next: harness.Dawn, Move: true, Crawl: aside, Meta: []byte("aside")})
		l = w.NextIs(time.Second, "http://a.example/1")
		require.Equal(t, 2, l.Attempt)
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.PutOff, Next: harness.Dawn, Move: true, Crawl: aside})
		if w.Machine != nil {
			w = w.Killed()
		}
		w.Until(time.Hour)
		require.ErrorIs(t, func() error { _, _, err := w.TryNext(); return err }(), frontier.ErrExhausted)
		w.IsState(inspect.URLKnown, "http://a.example/1")
		x, ok := inspect.New(w.F).Crawl(aside)
		require.Equal(t, []any{true, int64(2)}, []any{ok, x.Waiting})
		n, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/1"})
		require.NoError(t, err)
		require.Zero(t, n, "it stays known")

		w.SetCrawl(aside, frontier.Rule{})
		w.SetCrawl(0, frontier.Rule{Paused: scope.On})
		l = w.NextIs(time.Hour, "http://a.example/2")
		require.Equal(t, []any{uint32(aside), "aside", 1}, []any{l.Entry.Crawl, string(l.Entry.Meta), l.Attempt})
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.PutOff, Next: harness.Dawn, Move: true})
		l = w.NextIs(time.Hour, "http://a.example/1")
		require.Equal(t, []any{uint32(aside), 2, frontier.Failed}, []any{l.Entry.Crawl, l.Attempt, l.History.Last})
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.PutOff, Next: harness.Dawn, Move: true})
		w.SetCrawl(0, frontier.Rule{})
		require.Zero(t, w.Next().Entry.Crawl)
	})
}

// A NotBefore that has passed means now: the URL keeps its place in the queue, also
// through a crash.
func TestNotBeforeThatHasPassed(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Until(time.Minute)
	w.Soon("http://a.example/1", time.Second)
	w.Add("http://a.example/2")
	w = w.Killed()
	w.Until(time.Hour)
	require.Equal(t, []string{"http://a.example/1", "http://a.example/2"}, w.Rest())
}
