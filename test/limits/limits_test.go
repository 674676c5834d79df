// This file tests limits: what they refuse, what they hold back, and what is counted
// through reopenings and deaths.

package limits

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
)

func TestLimitOfServedHoldsForGood(t *testing.T) {
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		require.NoError(t, w.F.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 3} }))
		w.AddMany("a.example", 4)
		w.AddMany("b.example", 4)
		w.AddMany("c.test", 1)
		require.Equal(t, 4, w.Served(frontier.Outcome{}))
		w.HeldFor(5)
		require.EqualValues(t, 5, w.F.Stats().Held)
		x := w.Info("a.example")
		require.Equal(t, inspect.ReasonLimit, x.Reason)
		require.Zero(t, x.Until)
		used, ok := inspect.New(w.F).Used(scope.Domain("example"))
		require.True(t, ok)
		require.EqualValues(t, 3, used.Served)

		require.NoError(t, w.F.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 5} }))
		require.Equal(t, 2, w.Served(frontier.Outcome{}))
		require.NoError(t, w.F.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1} }), "lower than what is used")
		w.HeldFor(3)
		require.NoError(t, w.F.Clear(scope.Domain("example")))
		require.Equal(t, 3, w.Served(frontier.Outcome{}))
		w.Over()
	})
}

// 1,000 pages a day for each host, and one host with an exception.
func TestHostLimitsOfPeriods(t *testing.T) {
	day := 24 * time.Hour
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 3, Period: day} }))
		require.NoError(t, w.F.UpdateRule(scope.Host("b.example"), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: math.MaxInt64} }))
		w.AddMany("a.example", 7)
		w.AddMany("b.example", 9)
		w.Until(time.Hour)
		require.Equal(t, 12, w.Served(frontier.Outcome{}))
		x := w.Info("a.example")
		require.Equal(t, inspect.ReasonLimit, x.Reason)
		require.Equal(t, time.Hour+day, x.Until.Sub(harness.Dawn))
		require.Equal(t, inspect.Used{Served: 3, Since: harness.Dawn.Add(time.Hour), Until: harness.Dawn.Add(time.Hour + day)}, x.Used)
		_, at, err := w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, time.Hour+day, at.Sub(harness.Dawn))
		require.Equal(t, x.Host, w.Upcoming(5)[0].Host)
		w.NothingUntil(time.Hour + day)
		require.Equal(t, 3, w.Served(frontier.Outcome{}))
		w.Until(5 * day)
		require.Equal(t, 1, w.Served(frontier.Outcome{}))
		w.Over()
	})
}

// All scopes that contain a host count; waiting workers wake by themselves.
func TestLimitsTogetherAndTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), harness.Quick())
		require.NoError(t, err)
		require.NoError(t, f.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 3, Period: time.Minute} }))
		require.NoError(t, f.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Bytes: 100, Period: time.Hour} }))
		_, err = f.Add(t.Context(), append(harness.URLs("a.example", 2), harness.URLs("b.example", 4)...)...)
		require.NoError(t, err)
		start := time.Now()
		var at []string
		for l, err := range f.Leases(t.Context()) {
			require.NoError(t, err)
			at = append(at, fmt.Sprint(l.Host, time.Since(start)))
			require.NoError(t, f.Done(l, frontier.Outcome{Bytes: 100}))
		}
		require.ElementsMatch(t, []string{
			"a.example0s", "b.example0s", "b.example0s", "b.example1m0s", "b.example1m0s", "a.example1h0m0s",
		}, at)
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
	})
}

func TestLimitOfErrors(t *testing.T) {
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Errors: 2, Period: time.Hour} }))
		w.AddMany("a.example", 5)
		require.Equal(t, 2, w.Served(frontier.Outcome{Result: frontier.Failed}))
		require.Equal(t, inspect.ReasonLimit, w.Info("a.example").Reason)
		w.Until(time.Hour)
		l, _, err := w.TryNext()
		require.NoError(t, err)
		w.Until(time.Hour + 10*time.Minute) // it expires, which is a failure
		require.EqualValues(t, 1, w.F.Stats().Expired)
		require.EqualValues(t, 1, w.Info("a.example").Used.Errors)
		require.ErrorIs(t, w.F.Done(l, frontier.Outcome{}), frontier.ErrNotLeased)
	})
}

// However many workers there are, no more is handed out, and what comes back
// uncontacted makes room.
func TestLimitOfServedIsExact(t *testing.T) {
	o := harness.Quick()
	o.HostConcurrency = 4
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 5} }))
		w.AddMany("a.example", 4)
		w.AddMany("b.example", 4)
		var out []frontier.Lease
		for {
			l, _, err := w.F.TryNext()
			if err != nil {
				break
			}
			out = append(out, l)
		}
		require.Len(t, out, 5)
		require.NoError(t, w.F.Done(out[0], frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
		contact, err := w.F.HandBack(out[1])
		require.NoError(t, err)
		require.NoError(t, w.F.Done(out[2], frontier.Outcome{Result: frontier.Denied, Uncontacted: true}))
		require.NoError(t, w.F.Done(out[3], frontier.Outcome{Result: frontier.Requeue}))
		require.NoError(t, w.F.Done(contact, frontier.Outcome{}))
		require.Equal(t, 3, w.Served(frontier.Outcome{}))
		require.NoError(t, w.F.Done(out[4], frontier.Outcome{}))
		w.HeldFor(3)
	})
}

// What was handed out before there was a limit, or in an earlier period, gives
// nothing back.
func TestLimitsCountOnlyTheirOwn(t *testing.T) {
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		w.AddMany("a.example", 1)
		w.AddMany("b.example", 4)
		back := frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}
		before := w.Next()
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1, Period: time.Hour} }))
		first := w.Next()
		require.NoError(t, w.F.Done(before, back))
		require.Zero(t, w.Served(frontier.Outcome{}))
		require.NoError(t, w.F.Extend(&first, 3*time.Hour))
		w.Until(time.Hour)
		second := w.Next()
		require.NoError(t, w.F.Done(first, back))
		require.Zero(t, w.Served(frontier.Outcome{}))
		require.NoError(t, w.F.Done(second, back))
		require.Equal(t, 1, w.Served(frontier.Outcome{}))
	})
}

// A trap guard: of a host no more URLs wait than it may have. What is refused may
// come later.
func TestLimitOfWaiting(t *testing.T) {
	ctx := context.Background()
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Waiting: 3} }))
		es := append(harness.URLs("a.example", 5), frontier.Entry{URL: "bad"}, frontier.Entry{URL: "http://b.example/"})
		n, err := w.F.Add(ctx, es...)
		require.Equal(t, 4, n)
		var got []int
		for _, e := range frontier.EntryErrors(err) {
			got = append(got, e.Index)
		}
		require.Equal(t, []int{3, 4, 5}, got)
		require.ErrorIs(t, err, frontier.ErrLimit)
		require.EqualValues(t, 3, w.F.Stats().Refused)
		require.True(t, w.Info("a.example").Full)
		require.False(t, w.Info("b.example").Full)

		n, err = w.F.Add(ctx, es[2], frontier.Entry{URL: es[3].URL, NotBefore: harness.Dawn.Add(time.Hour)})
		require.NoError(t, err, "one is known, the other's time is to come")
		require.Equal(t, 1, n)
		n, err = w.F.CrawlNow(ctx, es[4])
		require.NoError(t, err, "that is not refused")
		require.Equal(t, 1, n)

		l := w.Next()
		require.Equal(t, es[4].URL, l.Entry.URL)
		refused, err := w.F.DoneContext(ctx, l, frontier.Outcome{Add: harness.URLs("a.example", 7)})
		require.NoError(t, err)
		require.Len(t, refused, 2)
		harness.RefusedEntries(t, errors.Join(refused[0], refused[1]), 5, 6)
		w.Until(time.Hour)
		require.EqualValues(t, 5, w.F.Stats().Waiting, "one whose time comes is not refused")
		_, err = w.F.Delete(ctx, scope.Host("a.example"))
		require.NoError(t, err)
		n, err = w.F.Add(ctx, harness.URLs("a.example", 9)...)
		require.Equal(t, 3, n)
		harness.RefusedEntries(t, err, 8)
	})
}

func TestLimitsOfWaitingOfScopes(t *testing.T) {
	ctx := context.Background()
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		for i := range 300 { // more than are counted under one lock
			w.Add(fmt.Sprintf("http://h%d.example/", i))
		}
		w.AddMany("c.test", 2)
		require.NoError(t, w.F.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Waiting: 302} }))
		n, err := w.F.Add(ctx, append(harness.URLs("x.example", 3), harness.URLs("example.test", 1)...)...)
		require.Equal(t, 3, n)
		harness.RefusedEntries(t, err, 2)
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits = scope.Limits{Waiting: 306} }))
		require.NoError(t, w.F.UpdateRule(scope.Host("y.test"), func(r *frontier.Rule) { r.Limits = scope.Limits{Waiting: 1} }))
		n, err = w.F.Add(ctx, harness.URLs("y.test", 2)...)
		require.Equal(t, 1, n)
		harness.RefusedEntries(t, err, 1)
		n, err = w.F.Add(ctx, harness.URLs("z.test", 2)...)
		require.Zero(t, n)
		harness.RefusedEntries(t, err, 0, 1)
		require.NoError(t, w.F.Check())
		if w.Machine == nil {
			return
		}
		w.Reopen()
		n, err = w.F.Add(ctx, harness.URLs("x.example", 3)...)
		require.Zero(t, n)
		harness.RefusedEntries(t, err, 2)
	})
}

// Calls that meet each other stay within the limit together.
func TestLimitOfWaitingIsExact(t *testing.T) {
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		require.NoError(t, w.F.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Waiting: 100} }))
		require.NoError(t, w.F.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Waiting: 30} }))
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				for j := range 40 {
					_, err := w.F.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%4, i*100+j)})
					if err != nil {
						assert.ErrorIs(t, err, frontier.ErrLimit)
					}
				}
			})
		}
		wg.Wait()
		s := w.F.Stats()
		require.EqualValues(t, 100, s.Waiting)
		require.EqualValues(t, 540, s.Refused)
		for i := range 4 {
			require.LessOrEqual(t, w.Info(fmt.Sprintf("h%d.example", i)).Waiting, int64(30))
		}
	})
}

func TestLimitOfDepth(t *testing.T) {
	ctx := context.Background()
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits = scope.Limits{Depth: 3} }))
		require.NoError(t, w.F.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Depth: 1} }))
		require.NoError(t, w.F.UpdateRule(scope.Crawl(7), func(r *frontier.Rule) { r.Limits = scope.Limits{Depth: 2} }))
		var es []frontier.Entry
		for depth := range 5 {
			for i, host := range []string{"a.example", "b.example", "c.example"} {
				e := frontier.Entry{URL: fmt.Sprintf("http://%s/%d", host, depth), Depth: depth}
				if i == 2 {
					e.Crawl = 7
				}
				es = append(es, e)
			}
		}
		n, err := w.F.Add(ctx, es...)
		require.Equal(t, 9, n)
		harness.RefusedEntries(t, err, 6, 9, 11, 12, 13, 14)
	})
}

// A crawl at its limit is not chosen; other crawls continue, even on the same hosts.
func TestCrawlLimits(t *testing.T) {
	ctx := context.Background()
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		require.NoError(t, w.F.UpdateRule(scope.Crawl(7), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 2, Period: time.Hour, Waiting: 5} }))
		require.NoError(t, w.F.UpdateRule(scope.Crawl(8), func(r *frontier.Rule) { r.Limits = scope.Limits{Bytes: 10} }))
		var es []frontier.Entry
		for i := range 6 {
			for _, crawl := range []uint32{0, 7, 8} {
				es = append(es, frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), Crawl: crawl})
			}
		}
		n, err := w.F.Add(ctx, es...)
		require.Equal(t, 17, n)
		harness.RefusedEntries(t, err, 16)
		require.NoError(t, w.F.Assign("a.example", "g"))
		require.Equal(t, 6+2+1, w.Served(frontier.Outcome{Bytes: 10}))
		require.Equal(t, inspect.ReasonLimit, w.Info("a.example").Reason)
		x, _ := inspect.New(w.F).Crawl(7)
		require.Equal(t, inspect.Used{Served: 2, Bytes: 20, Since: harness.Dawn, Until: harness.Dawn.Add(time.Hour)}, x.Used)
		w.NothingUntil(time.Hour)
		require.Equal(t, 2, w.Served(frontier.Outcome{}))
		w.Until(2 * time.Hour)
		require.Equal(t, 1, w.Served(frontier.Outcome{}))
		w.HeldFor(5)
		require.NoError(t, w.F.UpdateRule(scope.Crawl(8), func(r *frontier.Rule) { r.Limits = scope.Limits{} }))
		require.Equal(t, 5, w.Served(frontier.Outcome{Bytes: 10}))
		w.Over()
	})
}

// Counts survive a clean end, and a death at once after each Done; hosts that leave
// memory keep theirs.
func TestCountsSurvive(t *testing.T) {
	set := func(t *testing.T) *harness.World {
		w := harness.NewStoredWorld(t, harness.Quick(), spill.Options{})
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 2, Period: time.Hour} }))
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits = scope.Limits{Bytes: 1000, Period: 2 * time.Hour} }))
		require.NoError(t, w.F.UpdateRule(scope.Crawl(0), func(r *frontier.Rule) { r.Limits = scope.Limits{Errors: 1000} }))
		w.Add("http://a.example/1", "http://b.example/1")
		w.Until(time.Minute)
		require.Equal(t, 2, w.Served(frontier.Outcome{Bytes: 7}))
		w.Add("http://c.example/1", "http://c.example/2", "http://c.example/3")
		require.Equal(t, 2, w.Served(frontier.Outcome{Bytes: 7}))
		w.F.Stats()
		_, err := w.F.Add(t.Context())
		require.NoError(t, err)
		require.False(t, w.Info("a.example").Resident)
		return w
	}
	look := func(t *testing.T, w *harness.World) {
		began := harness.Dawn.Add(time.Minute)
		require.Equal(t, inspect.Used{Served: 1, Bytes: 7, Since: began, Until: began.Add(time.Hour)}, w.Info("a.example").Used)
		all, _ := inspect.New(w.F).Used(scope.All())
		require.Equal(t, inspect.Used{Served: 4, Bytes: 28, Since: began, Until: began.Add(2 * time.Hour)}, all)
		x, _ := inspect.New(w.F).Crawl(0)
		require.EqualValues(t, 28, x.Used.Bytes)
		require.Equal(t, inspect.ReasonLimit, w.Info("c.example").Reason)
		w.Add("http://a.example/2", "http://a.example/3")
		require.Equal(t, 1, w.Served(frontier.Outcome{}))
		w.NothingUntil(time.Hour + time.Minute)
		require.Equal(t, 2, w.Served(frontier.Outcome{}))
	}
	t.Run("kill", func(t *testing.T) { look(t, set(t).Killed()) })
	t.Run("close", func(t *testing.T) { w := set(t); w.Reopen(); look(t, w) })
	t.Run("period passes", func(t *testing.T) {
		w := set(t)
		w.Until(3 * time.Hour)
		w = w.Killed()
		require.Zero(t, w.Info("a.example").Used)
		require.Equal(t, 1, w.Served(frontier.Outcome{}))
	})
}

// A contact without a URL counts its bytes, durably; a limit holds contacts, too.
func TestLimitsOfContacts(t *testing.T) {
	w := harness.NewStoredWorld(t, harness.Quick(), spill.Options{})
	require.NoError(t, w.F.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Bytes: 50, Period: time.Hour} }))
	l, err := w.F.Contact(t.Context(), "a.example")
	require.NoError(t, err)
	require.NoError(t, w.F.Done(l, frontier.Outcome{Bytes: 60}))
	w = w.Killed()
	used, _ := inspect.New(w.F).Used(scope.Host("a.example"))
	require.EqualValues(t, 60, used.Bytes)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := w.F.Contact(ctx, "a.example")
		done <- err
	}()
	for !w.Info("a.example").Resident {
		runtime.Gosched() // until it waits
	}
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// Reaching a limit is reported once, and so is its end.
func TestLimitEvents(t *testing.T) {
	o := harness.Quick()
	var mu sync.Mutex
	var got []string
	o.OnEvent = func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == event.LimitReached || e.Kind == event.LimitLifted {
			got = append(got, fmt.Sprint(e.Kind, " ", e.Scope, " ", e.Host, " ", e.Crawl, " ", e.Reason))
		}
	}
	w := harness.NewWorld(t, o)
	require.NoError(t, w.F.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 2, Waiting: 4} }))
	require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Bytes: 2, Period: time.Hour} }))
	require.NoError(t, w.F.UpdateRule(scope.Crawl(5), func(r *frontier.Rule) { r.Limits = scope.Limits{Errors: 1} }))
	_, err := w.F.Add(t.Context(), harness.URLs("a.example", 9)...)
	require.Error(t, err)
	_, err = w.F.Add(t.Context(), frontier.Entry{URL: "http://c.test/", Crawl: 5})
	require.NoError(t, err)
	require.Equal(t, 3, w.Served(frontier.Outcome{Bytes: 1, Result: frontier.Failed}))
	w.Until(time.Hour)
	require.NoError(t, w.F.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 9} }))
	w.F.Stats()
	require.NoError(t, w.F.Close())
	mu.Lock()
	defer mu.Unlock()
	require.ElementsMatch(t, []string{
		"limit reached *.example  0 waiting", "limit reached *.example  0 served", "limit reached  a.example 0 host bytes",
		"limit reached   5 crawl errors", "limit lifted *.example  0 ", "limit lifted  a.example 0 ",
	}, got)
}

func TestBadLimits(t *testing.T) {
	w := harness.NewWorld(t, harness.Quick())
	bad := scope.Limits{Waiting: -1, Served: -2, Bytes: -3, Errors: -4, Depth: -5, Period: time.Microsecond}
	for _, err := range []error{
		w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits = bad }), w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = bad }), w.F.UpdateRule(scope.Crawl(3), func(r *frontier.Rule) { r.Limits = bad }),
	} {
		for _, want := range []string{"Waiting is -1", "Served is -2", "Bytes is -3", "Errors is -4", "Depth is -5", "Period is 1µs"} {
			require.ErrorContains(t, err, want)
		}
	}
	require.Error(t, w.F.UpdateRule(scope.Host(""), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1} }))
	require.Error(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1, Period: -time.Second} }))
	require.Error(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1, Period: math.MaxInt64} }))
	_, ok := w.F.Rule(scope.All())
	require.False(t, ok)
	_, ok = inspect.New(w.F).Used(scope.All())
	require.False(t, ok)
	_, ok = inspect.New(w.F).Crawl(3)
	require.False(t, ok)
	require.False(t, errors.Is(w.F.Close(), frontier.ErrLimit))
}

// A domain is counted right while its hosts change.
func TestDomainIsCountedWhileItChanges(t *testing.T) {
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		var es []frontier.Entry
		for i := range 2000 {
			es = append(es, harness.URLs(fmt.Sprintf("h%d.example", i), 2)...)
		}
		_, err := w.F.Add(t.Context(), es...)
		require.NoError(t, err)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := 2000; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_, err := w.F.Add(t.Context(), harness.URLs(fmt.Sprintf("h%d.example", i), 3)...)
				assert.NoError(t, err)
				if l, _, err := w.F.TryNext(); err == nil {
					assert.NoError(t, w.F.Done(l, frontier.Outcome{}))
				}
			}
		})
		for range 10 {
			require.NoError(t, w.F.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Waiting: 1 << 40} }))
			require.NoError(t, w.F.Check())
			require.NoError(t, w.F.Clear(scope.Domain("example")))
		}
		close(stop)
		wg.Wait()
	})
}
