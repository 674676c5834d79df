// This file tests limits: what they refuse, what they hold back, and what is counted
// through reopenings and deaths.

package frontier_test

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

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func quick() frontier.Options {
	return frontier.Options{Delay: frontier.FixedDelay(0), Retry: frontier.Retries(9, time.Millisecond),
		Backoff: frontier.Backoff{Disabled: true}, Quarantine: frontier.Quarantine{Disabled: true}}
}

func urls(host string, n int) (out []frontier.Entry) {
	for i := range n {
		out = append(out, frontier.Entry{URL: fmt.Sprintf("http://%s/%d", host, i)})
	}
	return out
}

// served takes and ends as many URLs as there are to be had now.
func (w *world) served(o frontier.Outcome) (n int) {
	w.Helper()
	for {
		l, _, err := w.tryNext()
		if err != nil {
			return n
		}
		n++
		require.NoError(w, w.f.Done(l, o))
	}
}

// heldFor requires that the crawl is over but for so many URLs.
func (w *world) heldFor(n int64) {
	w.Helper()
	_, _, err := w.tryNext()
	var held *frontier.HeldError
	require.ErrorAs(w, err, &held)
	require.Equal(w, n, held.Held)
}

func TestLimitOfServedHoldsForGood(t *testing.T) {
	inBothWorlds(t, quick(), func(t *testing.T, w *world) {
		require.NoError(t, w.f.SetLimits(frontier.Domain("example"), frontier.Limits{Served: 3}))
		w.addMany("a.example", 4)
		w.addMany("b.example", 4)
		w.addMany("c.test", 1)
		require.Equal(t, 4, w.served(frontier.Outcome{}))
		w.heldFor(5)
		require.EqualValues(t, 5, w.f.Stats().Held)
		x := w.info("a.example")
		require.Equal(t, frontier.ReasonLimit, x.Reason)
		require.Zero(t, x.Until)
		used, ok := w.f.Used(frontier.Domain("example"))
		require.True(t, ok)
		require.EqualValues(t, 3, used.Served)

		require.NoError(t, w.f.SetLimits(frontier.Domain("example"), frontier.Limits{Served: 5}))
		require.Equal(t, 2, w.served(frontier.Outcome{}))
		require.NoError(t, w.f.SetLimits(frontier.Domain("example"), frontier.Limits{Served: 1}), "lower than what is used")
		w.heldFor(3)
		require.NoError(t, w.f.Clear(frontier.Domain("example")))
		require.Equal(t, 3, w.served(frontier.Outcome{}))
		w.over()
	})
}

// 1,000 pages a day for each host, and one host with an exception.
func TestHostLimitsOfPeriods(t *testing.T) {
	day := 24 * time.Hour
	inBothWorlds(t, quick(), func(t *testing.T, w *world) {
		require.NoError(t, w.f.SetHostLimits(frontier.All(), frontier.Limits{Served: 3, Period: day}))
		require.NoError(t, w.f.SetHostLimits(frontier.Host("b.example"), frontier.Limits{Served: math.MaxInt64}))
		w.addMany("a.example", 7)
		w.addMany("b.example", 9)
		w.until(time.Hour)
		require.Equal(t, 12, w.served(frontier.Outcome{}))
		x := w.info("a.example")
		require.Equal(t, frontier.ReasonLimit, x.Reason)
		require.Equal(t, time.Hour+day, x.Until.Sub(dawn))
		require.Equal(t, frontier.Used{Served: 3, Since: dawn.Add(time.Hour), Until: dawn.Add(time.Hour + day)}, x.Used)
		_, at, err := w.tryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.Equal(t, time.Hour+day, at.Sub(dawn))
		require.Equal(t, x.Host, w.f.NextDue(5)[0].Host)
		w.nothingUntil(time.Hour + day)
		require.Equal(t, 3, w.served(frontier.Outcome{}))
		w.until(5 * day)
		require.Equal(t, 1, w.served(frontier.Outcome{}))
		w.over()
	})
}

// All scopes that contain a host count; waiting workers wake by themselves.
func TestLimitsTogetherAndTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), quick())
		require.NoError(t, err)
		require.NoError(t, f.SetLimits(frontier.All(), frontier.Limits{Served: 3, Period: time.Minute}))
		require.NoError(t, f.SetLimits(frontier.Host("a.example"), frontier.Limits{Bytes: 100, Period: time.Hour}))
		_, err = f.Add(t.Context(), append(urls("a.example", 2), urls("b.example", 4)...)...)
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
	inBothWorlds(t, quick(), func(t *testing.T, w *world) {
		require.NoError(t, w.f.SetHostLimits(frontier.All(), frontier.Limits{Errors: 2, Period: time.Hour}))
		w.addMany("a.example", 5)
		require.Equal(t, 2, w.served(frontier.Outcome{Result: frontier.Failed}))
		require.Equal(t, frontier.ReasonLimit, w.info("a.example").Reason)
		w.until(time.Hour)
		l, _, err := w.tryNext()
		require.NoError(t, err)
		w.until(time.Hour + 10*time.Minute) // it expires, which is a failure
		require.EqualValues(t, 1, w.f.Stats().Expired)
		require.EqualValues(t, 1, w.info("a.example").Used.Errors)
		require.ErrorIs(t, w.f.Done(l, frontier.Outcome{}), frontier.ErrNotLeased)
	})
}

// However many workers there are, no more is handed out, and what comes back
// uncontacted makes room.
func TestLimitOfServedIsExact(t *testing.T) {
	o := quick()
	o.HostConcurrency = 4
	inBothWorlds(t, o, func(t *testing.T, w *world) {
		require.NoError(t, w.f.SetLimits(frontier.All(), frontier.Limits{Served: 5}))
		w.addMany("a.example", 4)
		w.addMany("b.example", 4)
		var out []frontier.Lease
		for {
			l, _, err := w.f.TryNext()
			if err != nil {
				break
			}
			out = append(out, l)
		}
		require.Len(t, out, 5)
		require.NoError(t, w.f.Done(out[0], frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
		contact, err := w.f.HandBack(out[1])
		require.NoError(t, err)
		require.NoError(t, w.f.Done(out[2], frontier.Outcome{Result: frontier.Denied, Uncontacted: true}))
		require.NoError(t, w.f.Done(out[3], frontier.Outcome{Result: frontier.Requeue}))
		require.NoError(t, w.f.Done(contact, frontier.Outcome{}))
		require.Equal(t, 3, w.served(frontier.Outcome{}))
		require.NoError(t, w.f.Done(out[4], frontier.Outcome{}))
		w.heldFor(3)
	})
}

// What was handed out before there was a limit, or in an earlier period, gives
// nothing back.
func TestLimitsCountOnlyTheirOwn(t *testing.T) {
	inBothWorlds(t, quick(), func(t *testing.T, w *world) {
		w.addMany("a.example", 1)
		w.addMany("b.example", 4)
		back := frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}
		before := w.next()
		require.NoError(t, w.f.SetLimits(frontier.All(), frontier.Limits{Served: 1, Period: time.Hour}))
		first := w.next()
		require.NoError(t, w.f.Done(before, back))
		require.Zero(t, w.served(frontier.Outcome{}))
		require.NoError(t, w.f.Extend(&first, 3*time.Hour))
		w.until(time.Hour)
		second := w.next()
		require.NoError(t, w.f.Done(first, back))
		require.Zero(t, w.served(frontier.Outcome{}))
		require.NoError(t, w.f.Done(second, back))
		require.Equal(t, 1, w.served(frontier.Outcome{}))
	})
}

func refusedEntries(t *testing.T, err error, indexes ...int) {
	t.Helper()
	var got []int
	for _, e := range frontier.EntryErrors(err) {
		require.ErrorIs(t, e, frontier.ErrLimit)
		got = append(got, e.Index)
	}
	require.Equal(t, indexes, got)
}

// A trap guard: of a host no more URLs wait than it may have. What is refused may
// come later.
func TestLimitOfWaiting(t *testing.T) {
	ctx := context.Background()
	inBothWorlds(t, quick(), func(t *testing.T, w *world) {
		require.NoError(t, w.f.SetHostLimits(frontier.All(), frontier.Limits{Waiting: 3}))
		es := append(urls("a.example", 5), frontier.Entry{URL: "bad"}, frontier.Entry{URL: "http://b.example/"})
		n, err := w.f.Add(ctx, es...)
		require.Equal(t, 4, n)
		var got []int
		for _, e := range frontier.EntryErrors(err) {
			got = append(got, e.Index)
		}
		require.Equal(t, []int{3, 4, 5}, got)
		require.ErrorIs(t, err, frontier.ErrLimit)
		require.EqualValues(t, 2, w.f.Stats().Refused)
		require.True(t, w.info("a.example").Full)
		require.False(t, w.info("b.example").Full)

		n, err = w.f.Add(ctx, es[2], frontier.Entry{URL: es[3].URL, NotBefore: dawn.Add(time.Hour)})
		require.NoError(t, err, "one is known, the other's time is to come")
		require.Equal(t, 1, n)
		n, err = w.f.CrawlNow(ctx, es[4])
		require.NoError(t, err, "that is not refused")
		require.Equal(t, 1, n)

		l := w.next()
		require.Equal(t, es[4].URL, l.Entry.URL)
		err = w.f.Done(l, frontier.Outcome{Add: urls("a.example", 7)})
		refusedEntries(t, err, 5, 6)
		w.until(time.Hour)
		require.EqualValues(t, 5, w.f.Stats().Waiting, "one whose time comes is not refused")
		_, err = w.f.Delete(ctx, frontier.Host("a.example"))
		require.NoError(t, err)
		n, err = w.f.Add(ctx, urls("a.example", 9)...)
		require.Equal(t, 3, n)
		refusedEntries(t, err, 8)
	})
}

func TestLimitsOfWaitingOfScopes(t *testing.T) {
	ctx := context.Background()
	inBothWorlds(t, quick(), func(t *testing.T, w *world) {
		for i := range 300 { // more than are counted under one lock
			w.add(fmt.Sprintf("http://h%d.example/", i))
		}
		w.addMany("c.test", 2)
		require.NoError(t, w.f.SetLimits(frontier.Domain("example"), frontier.Limits{Waiting: 302}))
		n, err := w.f.Add(ctx, append(urls("x.example", 3), urls("example.test", 1)...)...)
		require.Equal(t, 3, n)
		refusedEntries(t, err, 2)
		require.NoError(t, w.f.SetLimits(frontier.All(), frontier.Limits{Waiting: 306}))
		require.NoError(t, w.f.SetLimits(frontier.Host("y.test"), frontier.Limits{Waiting: 1}))
		n, err = w.f.Add(ctx, urls("y.test", 2)...)
		require.Equal(t, 1, n)
		refusedEntries(t, err, 1)
		n, err = w.f.Add(ctx, urls("z.test", 2)...)
		require.Zero(t, n)
		refusedEntries(t, err, 0, 1)
		require.NoError(t, w.f.Check())
		if w.machine == nil {
			return
		}
		w.reopen()
		n, err = w.f.Add(ctx, urls("x.example", 3)...)
		require.Zero(t, n)
		refusedEntries(t, err, 2)
	})
}

// Calls that meet each other stay within the limit together.
func TestLimitOfWaitingIsExact(t *testing.T) {
	inBothWorlds(t, quick(), func(t *testing.T, w *world) {
		require.NoError(t, w.f.SetLimits(frontier.Domain("example"), frontier.Limits{Waiting: 100}))
		require.NoError(t, w.f.SetHostLimits(frontier.Domain("example"), frontier.Limits{Waiting: 30}))
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				for j := range 40 {
					_, err := w.f.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%4, i*100+j)})
					if err != nil {
						assert.ErrorIs(t, err, frontier.ErrLimit)
					}
				}
			})
		}
		wg.Wait()
		s := w.f.Stats()
		require.EqualValues(t, 100, s.Waiting)
		require.EqualValues(t, 540, s.Refused)
		for i := range 4 {
			require.LessOrEqual(t, w.info(fmt.Sprintf("h%d.example", i)).Waiting, int64(30))
		}
	})
}

func TestLimitOfDepth(t *testing.T) {
	ctx := context.Background()
	inBothWorlds(t, quick(), func(t *testing.T, w *world) {
		require.NoError(t, w.f.SetLimits(frontier.All(), frontier.Limits{Depth: 3}))
		require.NoError(t, w.f.SetHostLimits(frontier.Host("a.example"), frontier.Limits{Depth: 1}))
		require.NoError(t, w.f.SetCrawlLimits(7, frontier.Limits{Depth: 2}))
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
		n, err := w.f.Add(ctx, es...)
		require.Equal(t, 9, n)
		refusedEntries(t, err, 6, 9, 11, 12, 13, 14)
	})
}

// A crawl at its limit is not chosen; others go on, on the same hosts too.
func TestCrawlLimits(t *testing.T) {
	ctx := context.Background()
	inBothWorlds(t, quick(), func(t *testing.T, w *world) {
		require.NoError(t, w.f.SetCrawlLimits(7, frontier.Limits{Served: 2, Period: time.Hour, Waiting: 5}))
		require.NoError(t, w.f.SetCrawlLimits(8, frontier.Limits{Bytes: 10}))
		var es []frontier.Entry
		for i := range 6 {
			for _, crawl := range []uint32{0, 7, 8} {
				es = append(es, frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), Crawl: crawl})
			}
		}
		n, err := w.f.Add(ctx, es...)
		require.Equal(t, 17, n)
		refusedEntries(t, err, 16)
		require.NoError(t, w.f.Assign("a.example", "g"))
		require.Equal(t, 6+2+1, w.served(frontier.Outcome{Bytes: 10}))
		require.Equal(t, frontier.ReasonLimit, w.info("a.example").Reason)
		x, _ := w.f.CrawlStats(7)
		require.Equal(t, frontier.Used{Served: 2, Bytes: 20, Since: dawn, Until: dawn.Add(time.Hour)}, x.Used)
		w.nothingUntil(time.Hour)
		require.Equal(t, 2, w.served(frontier.Outcome{}))
		w.until(2 * time.Hour)
		require.Equal(t, 1, w.served(frontier.Outcome{}))
		w.heldFor(5)
		require.NoError(t, w.f.SetCrawlLimits(8, frontier.Limits{}))
		require.Equal(t, 5, w.served(frontier.Outcome{Bytes: 10}))
		w.over()
	})
}

// Counts survive a clean end, and a death at once after each Done; hosts that leave
// memory keep theirs.
func TestCountsSurvive(t *testing.T) {
	set := func(t *testing.T) *world {
		w := newStoredWorld(t, quick(), spill.Options{})
		require.NoError(t, w.f.SetHostLimits(frontier.All(), frontier.Limits{Served: 2, Period: time.Hour}))
		require.NoError(t, w.f.SetLimits(frontier.All(), frontier.Limits{Bytes: 1000, Period: 2 * time.Hour}))
		require.NoError(t, w.f.SetCrawlLimits(0, frontier.Limits{Errors: 1000}))
		w.add("http://a.example/1", "http://b.example/1")
		w.until(time.Minute)
		require.Equal(t, 2, w.served(frontier.Outcome{Bytes: 7}))
		w.add("http://c.example/1", "http://c.example/2", "http://c.example/3")
		require.Equal(t, 2, w.served(frontier.Outcome{Bytes: 7}))
		w.f.Stats()
		_, err := w.f.Add(t.Context())
		require.NoError(t, err)
		require.False(t, w.info("a.example").Resident)
		return w
	}
	look := func(t *testing.T, w *world) {
		began := dawn.Add(time.Minute)
		require.Equal(t, frontier.Used{Served: 1, Bytes: 7, Since: began, Until: began.Add(time.Hour)}, w.info("a.example").Used)
		all, _ := w.f.Used(frontier.All())
		require.Equal(t, frontier.Used{Served: 4, Bytes: 28, Since: began, Until: began.Add(2 * time.Hour)}, all)
		x, _ := w.f.CrawlStats(0)
		require.EqualValues(t, 28, x.Used.Bytes)
		require.Equal(t, frontier.ReasonLimit, w.info("c.example").Reason)
		w.add("http://a.example/2", "http://a.example/3")
		require.Equal(t, 1, w.served(frontier.Outcome{}))
		w.nothingUntil(time.Hour + time.Minute)
		require.Equal(t, 2, w.served(frontier.Outcome{}))
	}
	t.Run("kill", func(t *testing.T) { look(t, set(t).killed()) })
	t.Run("close", func(t *testing.T) { w := set(t); w.reopen(); look(t, w) })
	t.Run("period passes", func(t *testing.T) {
		w := set(t)
		w.until(3 * time.Hour)
		w = w.killed()
		require.Zero(t, w.info("a.example").Used)
		require.Equal(t, 1, w.served(frontier.Outcome{}))
	})
}

// A contact without a URL counts its bytes, durably; a limit holds contacts, too.
func TestLimitsOfContacts(t *testing.T) {
	w := newStoredWorld(t, quick(), spill.Options{})
	require.NoError(t, w.f.SetLimits(frontier.Host("a.example"), frontier.Limits{Bytes: 50, Period: time.Hour}))
	l, err := w.f.Contact(t.Context(), "a.example")
	require.NoError(t, err)
	require.NoError(t, w.f.Done(l, frontier.Outcome{Bytes: 60}))
	w = w.killed()
	used, _ := w.f.Used(frontier.Host("a.example"))
	require.EqualValues(t, 60, used.Bytes)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := w.f.Contact(ctx, "a.example")
		done <- err
	}()
	for !w.info("a.example").Resident {
		runtime.Gosched() // until it waits
	}
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// Reaching a limit is told once, and its end.
func TestLimitEvents(t *testing.T) {
	o := quick()
	var mu sync.Mutex
	var got []string
	o.OnEvent = func(e frontier.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == frontier.EventLimitReached || e.Kind == frontier.EventLimitLifted {
			got = append(got, fmt.Sprint(e.Kind, " ", e.Scope, " ", e.Host, " ", e.Crawl, " ", e.Reason))
		}
	}
	w := newWorld(t, o)
	require.NoError(t, w.f.SetLimits(frontier.Domain("example"), frontier.Limits{Served: 2, Waiting: 4}))
	require.NoError(t, w.f.SetHostLimits(frontier.All(), frontier.Limits{Bytes: 2, Period: time.Hour}))
	require.NoError(t, w.f.SetCrawlLimits(5, frontier.Limits{Errors: 1}))
	_, err := w.f.Add(t.Context(), urls("a.example", 9)...)
	require.Error(t, err)
	_, err = w.f.Add(t.Context(), frontier.Entry{URL: "http://c.test/", Crawl: 5})
	require.NoError(t, err)
	require.Equal(t, 3, w.served(frontier.Outcome{Bytes: 1, Result: frontier.Failed}))
	w.until(time.Hour)
	require.NoError(t, w.f.SetLimits(frontier.Domain("example"), frontier.Limits{Served: 9}))
	w.f.Stats()
	require.NoError(t, w.f.Close())
	mu.Lock()
	defer mu.Unlock()
	require.ElementsMatch(t, []string{
		"limit reached *.example  0 waiting", "limit reached *.example  0 served", "limit reached * a.example 0 host bytes",
		"limit reached *  5 crawl errors", "limit lifted *.example  0 ", "limit lifted * a.example 0 ",
	}, got)
}

func TestBadLimits(t *testing.T) {
	w := newWorld(t, quick())
	bad := frontier.Limits{Waiting: -1, Served: -2, Bytes: -3, Errors: -4, Depth: -5, Period: time.Microsecond}
	for _, err := range []error{
		w.f.SetLimits(frontier.All(), bad), w.f.SetHostLimits(frontier.All(), bad), w.f.SetCrawlLimits(3, bad),
	} {
		for _, want := range []string{"Waiting is -1", "Served is -2", "Bytes is -3", "Errors is -4", "Depth is -5", "Period is 1µs"} {
			require.ErrorContains(t, err, want)
		}
	}
	require.Error(t, w.f.SetLimits(frontier.Host(""), frontier.Limits{Served: 1}))
	require.Error(t, w.f.SetLimits(frontier.All(), frontier.Limits{Served: 1, Period: -time.Second}))
	require.Error(t, w.f.SetLimits(frontier.All(), frontier.Limits{Served: 1, Period: math.MaxInt64}))
	_, ok := w.f.Rule(frontier.All())
	require.False(t, ok)
	_, ok = w.f.Used(frontier.All())
	require.False(t, ok)
	_, ok = w.f.CrawlStats(3)
	require.False(t, ok)
	require.False(t, errors.Is(w.f.Close(), frontier.ErrLimit))
}

// A domain is counted right while its hosts change.
func TestDomainIsCountedWhileItChanges(t *testing.T) {
	inBothWorlds(t, quick(), func(t *testing.T, w *world) {
		var es []frontier.Entry
		for i := range 2000 {
			es = append(es, urls(fmt.Sprintf("h%d.example", i), 2)...)
		}
		_, err := w.f.Add(t.Context(), es...)
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
				_, err := w.f.Add(t.Context(), urls(fmt.Sprintf("h%d.example", i), 3)...)
				assert.NoError(t, err)
				if l, _, err := w.f.TryNext(); err == nil {
					assert.NoError(t, w.f.Done(l, frontier.Outcome{}))
				}
			}
		})
		for range 10 {
			require.NoError(t, w.f.SetLimits(frontier.Domain("example"), frontier.Limits{Waiting: 1 << 40}))
			require.NoError(t, w.f.Check())
			require.NoError(t, w.f.Clear(frontier.Domain("example")))
		}
		close(stop)
		wg.Wait()
	})
}
