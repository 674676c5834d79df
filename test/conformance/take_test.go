// This file tests Take: which leases it returns, that those of a host are one contact, and
// how it waits.

package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// take takes leases, and requires that there are some.
func take(w *harness.World, o frontier.TakeOptions) []frontier.Lease {
	w.Helper()
	ls, err := w.F.Take(context.Background(), o)
	require.NoError(w, err)
	require.NoError(w, w.F.Check())
	return ls
}

// noneUntil requires that nothing can be had before a moment.
func noneUntil(w *harness.World, at time.Duration, o frontier.TakeOptions) {
	w.Helper()
	ls, err := w.F.Take(context.Background(), o)
	require.Empty(w, ls)
	var notDue *frontier.NotDueError
	require.ErrorAs(w, err, &notDue)
	require.ErrorIs(w, err, frontier.ErrNotDue)
	require.True(w, notDue.Next.Equal(harness.Dawn.Add(at)), "%v, not %v", notDue.Next.Sub(harness.Dawn), at)
	require.NoError(w, w.F.Check())
}

func urlsOfLeases(ls []frontier.Lease) (urls []string) {
	for _, l := range ls {
		urls = append(urls, l.Entry.URL)
	}
	return urls
}

// The leases of a host are one contact at a time: the next comes when the last has ended,
// and the delay counts from there.
func TestABundleIsOneContact(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second)}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 5)...)
		ls := take(w, frontier.TakeOptions{PerHost: 3})
		require.Equal(t, harness.UrlsOf("a.example", 5)[:3], urlsOfLeases(ls))
		for _, l := range ls {
			require.Equal(t, 10*time.Second, l.Gap)
		}
		require.EqualValues(t, 3, w.F.Stats().Leased)
		noneUntil(w, 10*time.Minute, frontier.TakeOptions{})
		w.Until(20 * time.Second)
		require.NoError(t, w.F.Done(ls[1], frontier.Outcome{}))
		info := w.Info("a.example")
		require.True(t, info.Due.Equal(harness.Dawn.Add(30*time.Second)), "each Done moves the clock")
		noneUntil(w, 10*time.Minute, frontier.TakeOptions{Host: "a.example"})
		w.Until(40 * time.Second)
		require.NoError(t, w.F.Done(ls[2], frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
		noneUntil(w, 10*time.Minute, frontier.TakeOptions{})
		require.NoError(t, w.F.Done(ls[0], frontier.Outcome{Ended: harness.Dawn.Add(35 * time.Second)}))
		noneUntil(w, 45*time.Second, frontier.TakeOptions{})
		w.Until(45 * time.Second)
		ls = take(w, frontier.TakeOptions{PerHost: 9})
		require.Equal(t, harness.UrlsOf("a.example", 5)[2:], urlsOfLeases(ls))
		require.True(t, ls[2].Due.Equal(harness.Dawn.Add(45*time.Second)))
		for _, l := range ls {
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		w.Over()
	})
}

// A host that gives one URL only is not bundled, and costs what it costs Next.
func TestALeaseAloneHasNoGap(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	w.Add("http://a.example/", "http://b.example/1", "http://b.example/2")
	for _, l := range take(w, frontier.TakeOptions{Hosts: 2}) {
		require.Zero(t, l.Gap)
	}
}

// Hosts, PerHost and Max bound what is taken.
func TestTakeIsBounded(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		for i := range 300 {
			w.Add(harness.UrlsOf(fmt.Sprintf("h%d.example", i), 4)...)
		}
		for _, x := range []struct {
			o                    frontier.TakeOptions
			hosts, urls, perHost int
		}{
			{frontier.TakeOptions{}, 1, 1, 1},
			{frontier.TakeOptions{Hosts: 10}, 10, 10, 1},
			{frontier.TakeOptions{Hosts: 2, PerHost: 3}, 2, 6, 3},
			{frontier.TakeOptions{Hosts: 9, PerHost: 3, Max: 5}, 2, 5, 3},
			{frontier.TakeOptions{Hosts: 100, PerHost: 9, Max: 399}, 100, 399, 4},
			{frontier.TakeOptions{Hosts: 500, PerHost: 2}, 185, 370, 2},
		} {
			per := map[string]int{}
			ls := take(w, x.o)
			for _, l := range ls {
				per[l.Host]++
				require.LessOrEqual(t, per[l.Host], x.perHost)
			}
			require.Equal(t, []int{x.hosts, x.urls}, []int{len(per), len(ls)}, "%+v", x.o)
		}
		_, err := w.F.Take(t.Context(), frontier.TakeOptions{})
		require.ErrorIs(t, err, frontier.ErrNotDue)
	})
}

// Within a host the most urgent URLs come first, and those of a priority in their order.
func TestABundleBeginsWithTheMostUrgent(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Priorities: 3, Selector: selector.Strict(), Prioritizer: frontier.ByDepth(3)}, func(t *testing.T, w *harness.World) {
		for i, depth := range []int{2, 0, 1, 0, 2} {
			_, err := w.F.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), Depth: depth})
			require.NoError(t, err)
		}
		w.CrawlNow(frontier.Entry{URL: "http://a.example/now"})
		got := urlsOfLeases(take(w, frontier.TakeOptions{PerHost: 9, Host: "A.example"}))
		require.Equal(t, []string{"http://a.example/now", "http://a.example/1", "http://a.example/3", "http://a.example/2", "http://a.example/0", "http://a.example/4"}, got)
	})
}

// A Take for a host gives nothing of others, and one for crawls nothing of others.
func TestTakeOfAHostOrOfCrawls(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		for crawl := range uint32(3) {
			for _, host := range []string{"a.example", "b.example", fmt.Sprintf("only%d.example", crawl)} {
				_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://" + host + "/", Crawl: crawl})
				require.NoError(t, err)
			}
		}
		all := frontier.TakeOptions{Hosts: 9, PerHost: 9}
		_, err := w.F.Take(t.Context(), frontier.TakeOptions{Crawls: []uint32{7}})
		require.ErrorIs(t, err, frontier.ErrNotDue)
		_, err = w.F.Take(t.Context(), frontier.TakeOptions{Host: "only0.example", Crawls: []uint32{1}})
		require.ErrorIs(t, err, frontier.ErrNotDue)
		ls := take(w, frontier.TakeOptions{Host: "a.example", PerHost: 9, Crawls: []uint32{2, 1}})
		require.Len(t, ls, 2)
		for _, l := range ls {
			require.Equal(t, "a.example", l.Host)
			require.NotZero(t, l.Entry.Crawl)
		}
		all.Crawls = []uint32{0}
		ls = take(w, all)
		require.Len(t, ls, 2, "the third host is leased")
		for _, l := range ls {
			require.Zero(t, l.Entry.Crawl)
		}
		all.Crawls = nil
		require.Len(t, take(w, all), 2)
	})
}

// Crawls that a Take names take turns by their weights.
func TestTakeOfCrawlsKeepsTheirWeights(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	for crawl := uint32(1); crawl <= 3; crawl++ {
		for i := range 400 {
			_, err := w.F.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://h%d-%d.example/", crawl, i), Crawl: crawl})
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.F.UpdateRule(scope.Crawl(2), func(r *frontier.Rule) { r.Weight = 3 }))
	got := map[uint32]int{}
	for _, l := range take(w, frontier.TakeOptions{Hosts: 200, Crawls: []uint32{1, 2}}) {
		got[l.Entry.Crawl]++
	}
	require.InDelta(t, 150, got[2], 2)
	require.Equal(t, 200, got[1]+got[2])
}

// The members of a bundle expire, are handed back, requeued and found by their IDs like
// other leases, and the host is free after the last.
func TestMembersOfABundleEndLikeOtherLeases(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(2, 0)}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 4)...)
		ls := take(w, frontier.TakeOptions{PerHost: 4, Lease: time.Minute})
		for _, l := range ls {
			require.True(t, l.Deadline.Equal(harness.Dawn.Add(time.Minute)))
			found, err := w.F.LeaseByID(l.ID())
			require.NoError(t, err)
			found.Due = l.Due
			require.Equal(t, l, found)
		}
		contact, err := w.F.HandBack(ls[0])
		require.NoError(t, err)
		require.Equal(t, time.Second, contact.Gap)
		require.NoError(t, w.F.Check())
		require.NoError(t, w.F.Extend(&ls[1], 2*time.Minute))
		require.NoError(t, w.F.Done(contact, frontier.Outcome{}))
		require.NoError(t, w.F.Check())
		w.Until(90 * time.Second) // two have expired, one was extended
		x := w.F.Stats()
		require.Equal(t, []int64{2, 1}, []int64{x.Expired, x.Leased})
		require.NoError(t, w.F.Check())
		noneUntil(w, 2*time.Minute, frontier.TakeOptions{})
		w.Until(2 * time.Minute)
		noneUntil(w, 2*time.Minute+time.Second, frontier.TakeOptions{})
		w.Until(2*time.Minute + time.Second)
		_, err = w.F.Add(t.Context()) // waits until what became of the leases is committed
		require.NoError(t, err)
		got := urlsOfLeases(take(w, frontier.TakeOptions{PerHost: 9}))
		require.Len(t, got, 4)
		require.Equal(t, ls[0].Entry.URL, got[0], "it was handed back")
	})
}

// A bundle has one slot of its host's group, whichever group that is, until its last lease
// ends.
func TestABundleHasOneSlotOfItsGroup(t *testing.T) {
	for _, slots := range []int{1, 2} {
		t.Run(fmt.Sprintf("slots=%d", slots), func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), GroupDelay: frontier.FixedDelay(10 * time.Second)}, func(t *testing.T, w *harness.World) {
				for _, g := range []string{"g", "h"} {
					require.NoError(t, w.F.SetGroup(g, frontier.GroupSettings{Concurrency: slots}))
				}
				require.NoError(t, w.F.Assign("a.example", "g"))
				w.Add(harness.UrlsOf("a.example", 4)...)
				ls := take(w, frontier.TakeOptions{PerHost: 4})
				require.Len(t, ls, 4)
				require.Equal(t, 10*time.Second, ls[3].Gap)
				used := func(name string, n int) {
					t.Helper()
					require.NoError(t, w.F.Check())
					g, _ := inspect.New(w.F).Group(name)
					require.Equal(t, n, g.Leased)
				}
				used("g", 1)
				require.NoError(t, w.F.Done(ls[0], frontier.Outcome{}))
				used("g", 1)
				require.NoError(t, w.F.Join(&ls[1], "h"))
				used("g", 0)
				used("h", 1)
				require.NoError(t, w.F.Join(&ls[2], "h"))
				used("h", 1)
				require.NoError(t, w.F.Done(ls[2], frontier.Outcome{}))
				require.NoError(t, w.F.Assign("a.example", "g"))
				used("h", 1) // the slots of g keep their distance
				require.NoError(t, w.F.Done(ls[1], frontier.Outcome{}))
				used("h", 1)
				w.Until(5 * time.Second)
				require.NoError(t, w.F.Done(ls[3], frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
				used("g", 0)
				used("h", 0)
				noneUntil(w, 10*time.Second, frontier.TakeOptions{})
				w.Until(10 * time.Second)
				require.Len(t, take(w, frontier.TakeOptions{PerHost: 4}), 1)
			})
		})
	}
}

// A host with several lanes may have several bundles, and each keeps one distance.
func TestBundlesOnSeveralLanes(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second), HostConcurrency: 2}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 9)...)
		o := frontier.TakeOptions{PerHost: 3}
		a, b := take(w, o), take(w, o)
		noneUntil(w, 10*time.Minute, o)
		for i, l := range a {
			w.Until(time.Duration(i) * time.Second)
			out := frontier.Outcome{}
			if i == 2 {
				out = frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}
			}
			require.NoError(t, w.F.Done(l, out))
			require.NoError(t, w.F.Check())
		}
		w.Until(5 * time.Second)
		require.NoError(t, w.F.Done(b[0], frontier.Outcome{}))
		noneUntil(w, 11*time.Second, o)
		w.Until(11 * time.Second)
		c := take(w, o)
		require.Len(t, c, 3)
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Concurrency = 1 }))
		for _, l := range append(b[1:], c...) {
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
			require.NoError(t, w.F.Check())
		}
		require.EqualValues(t, 1, w.F.Stats().Waiting)
	})
}

// A host that fails gets one URL, whatever is asked for.
func TestAFailingHostIsNotBundled(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)})
	w.Add(harness.UrlsOf("a.example", 5)...)
	ls := take(w, frontier.TakeOptions{PerHost: 2})
	require.NoError(t, w.F.Done(ls[0], harness.Failing(frontier.FailureTooMany)))
	require.NoError(t, w.F.Done(ls[1], harness.Failing(frontier.FailureTooMany)))
	w.Until(time.Minute)
	require.Len(t, take(w, frontier.TakeOptions{PerHost: 3}), 1)
}

// Limits count the URLs of a bundle one by one.
func TestLimitsBoundABundle(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits.Served = 3 }))
		require.NoError(t, w.F.UpdateRule(scope.Crawl(1), func(r *frontier.Rule) { r.Limits.Served = 2 }))
		for i := range 5 {
			_, err := w.F.Add(t.Context(),
				frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), Crawl: 1}, frontier.Entry{URL: fmt.Sprintf("http://b.example/%d", i), Crawl: 2})
			require.NoError(t, err)
		}
		require.Len(t, take(w, frontier.TakeOptions{PerHost: 5, Host: "a.example"}), 2)
		require.Len(t, take(w, frontier.TakeOptions{PerHost: 5, Host: "b.example"}), 3)
	})
}

// URLs on disk come with a later call at the latest, each once.
func TestBundlesReadWhatIsOnDisk(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	want := map[string]bool{}
	for i := range 20 {
		urls := harness.UrlsOf(fmt.Sprintf("h%d.example", i), 100)
		w.Add(urls...)
		for _, u := range urls {
			want[u] = true
		}
	}
	calls := 0
	for len(want) > 0 {
		require.NoError(t, hook.Of(w.F).MoveNow(true))
		ls, err := w.F.Take(t.Context(), frontier.TakeOptions{Hosts: 20, PerHost: 30})
		if errors.Is(err, frontier.ErrNotDue) {
			w.Clock.Advance(time.Second)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, w.F.Check())
		calls++
		for _, l := range ls {
			require.True(t, want[l.Entry.URL], l.Entry.URL)
			delete(want, l.Entry.URL)
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
	}
	require.Less(t, calls, 20)
	w.Over()
}

// tookOf is what a call of Take returned.
type tookOf struct {
	leases []frontier.Lease
	err    error
}

// startTake calls Take in a goroutine.
func startTake(ctx context.Context, f *frontier.Frontier, o frontier.TakeOptions) chan tookOf {
	c := make(chan tookOf, 1)
	go func() {
		ls, err := f.Take(ctx, o)
		c <- tookOf{ls, err}
	}()
	synctest.Wait()
	return c
}

// A Take that may wait gets what comes first, and one that waits for something else waits on.
func TestTakeWaits(t *testing.T) {
	for name, o := range map[string]frontier.TakeOptions{
		"any": {}, "host": {Host: "a.example"}, "crawls": {Crawls: []uint32{0, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := harness.Opened(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), KeepOpen: true})
				o.PerHost, o.Wait = 5, time.Minute
				start := time.Now()
				c := startTake(t.Context(), f, o)
				require.Empty(t, c)
				_, err := f.Add(t.Context(), frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2"})
				require.NoError(t, err)
				got := <-c
				require.NoError(t, got.err)
				require.NotEmpty(t, got.leases)
				require.Zero(t, time.Since(start))

				c = startTake(t.Context(), f, o) // for the end of the leases, and the clock
				for _, l := range got.leases {
					require.NoError(t, f.Done(l, frontier.Outcome{Result: frontier.Requeue}))
				}
				got = <-c
				require.NoError(t, got.err)
				require.Equal(t, time.Second, time.Since(start))

				_, err = f.Take(t.Context(), o)
				require.ErrorIs(t, err, frontier.ErrNotDue)
				require.Equal(t, time.Second+time.Minute, time.Since(start), "it waited as long as it may")

				ctx, cancel := context.WithCancel(t.Context())
				c = startTake(ctx, f, o)
				cancel()
				require.ErrorIs(t, (<-c).err, context.Canceled)

				c = startTake(t.Context(), f, o)
				require.NoError(t, f.Check())
				go f.Drain(t.Context())
				require.ErrorIs(t, (<-c).err, frontier.ErrClosed)
				require.Equal(t, time.Second+time.Minute, time.Since(start))
			})
		})
	}
}

// With Clocks a Take waits for a delay, and neither for a lease nor for an Add.
func TestTakeWaitsForClocksOnly(t *testing.T) {
	for name, o := range map[string]frontier.TakeOptions{"any": {}, "host": {Host: "a.example"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := harness.Opened(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), KeepOpen: true})
				o.Clocks, o.Wait, o.Lease = true, time.Minute, 2*time.Second
				start := time.Now()
				_, err := f.Take(t.Context(), o)
				require.ErrorIs(t, err, frontier.ErrNotDue)
				_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2"})
				require.NoError(t, err)
				ls, err := f.Take(t.Context(), o)
				require.NoError(t, err)
				_, err = f.Take(t.Context(), o)
				require.ErrorIs(t, err, frontier.ErrNotDue)
				require.Zero(t, time.Since(start))
				require.NoError(t, f.Done(ls[0], frontier.Outcome{}))
				ls, err = f.Take(t.Context(), o)
				require.NoError(t, err)
				require.Equal(t, time.Second, time.Since(start))
				require.NoError(t, f.Done(ls[0], frontier.Outcome{}))
			})
		})
	}
}

// What waits for a host or crawls comes after the calls of Next, and gets only its own.
func TestTakeOfSomeWaitsBesideNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := harness.Opened(t, frontier.Options{KeepOpen: true})
		host := startTake(t.Context(), f, frontier.TakeOptions{Host: "b.example", Wait: time.Hour})
		crawl := startTake(t.Context(), f, frontier.TakeOptions{Crawls: []uint32{5}, Wait: time.Hour})
		next := harness.Start(func() (frontier.Lease, error) { return f.Next(t.Context()) })
		synctest.Wait()
		add := func(url string, crawl uint32) {
			_, err := f.Add(t.Context(), frontier.Entry{URL: url, Crawl: crawl})
			require.NoError(t, err)
			synctest.Wait()
		}
		add("http://b.example/1", 5)
		require.False(t, next.Waits())
		require.NoError(t, f.Done(next.Lease, frontier.Outcome{}))
		require.Empty(t, host)
		require.Empty(t, crawl)
		add("http://c.example/", 5)
		require.Equal(t, "c.example", (<-crawl).leases[0].Host)
		require.Empty(t, host)
		add("http://b.example/2", 0)
		require.Equal(t, "http://b.example/2", (<-host).leases[0].Entry.URL)
		require.NoError(t, f.Check())
	})
}

// A Take ends like Next when nothing is left, and when only an operator can release it.
func TestTakeIsOver(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		for _, o := range []frontier.TakeOptions{{}, {Host: "a.example", Wait: time.Hour}, {Crawls: []uint32{1}, Wait: time.Hour}} {
			_, err := w.F.Take(t.Context(), o)
			require.Equal(t, frontier.ErrExhausted, err)
		}
		w.Add("http://a.example/")
		require.NoError(t, w.F.Pause(scope.Host("a.example")))
		var held *frontier.HeldError
		_, err := w.F.Take(t.Context(), frontier.TakeOptions{Host: "a.example", Wait: time.Hour})
		require.ErrorAs(t, err, &held)
		require.EqualValues(t, 1, held.Held)
		_, err = w.F.Take(t.Context(), frontier.TakeOptions{Host: "a.example/x"})
		require.ErrorContains(t, err, "frontier: take: ")
		for _, o := range []frontier.TakeOptions{{Hosts: -1}, {PerHost: -1}, {Max: -1}, {Wait: -1}, {Lease: 1}, {Lease: time.Hour * 721}} {
			_, err = w.F.Take(t.Context(), o)
			require.ErrorContains(t, err, "frontier: take: ")
		}
	})
}

// Hosts that are read from the disk count before their leases are there.
func TestTakeKeepsToMaxWhileItReads(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	for h := range 6 {
		w.Add(harness.UrlsOf(fmt.Sprintf("disk%d.example", h), 3)...)
	}
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	for h := range 6 {
		w.Add(harness.UrlsOf(fmt.Sprintf("memory%d.example", h), 8)...)
	}
	require.Len(t, take(w, frontier.TakeOptions{Hosts: 12, PerHost: 8, Max: 9}), 9)
}

// After a crash the URLs of a bundle come again in their order, when the host may be
// contacted.
func TestABundleIsForgottenByACrash(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	w.Add(harness.UrlsOf("a.example", 3)...)
	ls := take(w, frontier.TakeOptions{PerHost: 3})
	require.NoError(t, w.F.Done(ls[1], frontier.Outcome{}))
	w = w.Killed()
	noneUntil(w, w.At()+time.Second, frontier.TakeOptions{PerHost: 3})
	w.Until(w.At() + time.Second)
	require.Equal(t, []string{ls[0].Entry.URL, ls[2].Entry.URL}, urlsOfLeases(take(w, frontier.TakeOptions{PerHost: 3})))
}

// An empty list of crawls is no list of all of them, in any call.
func TestNoCrawlsAreNotAll(t *testing.T) {
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/")
		_, err := w.F.Take(context.Background(), frontier.TakeOptions{Crawls: []uint32{}})
		require.ErrorContains(t, err, "Crawls is empty")
		_, err = w.F.DeleteWith(context.Background(), frontier.DeleteOptions{Crawls: []uint32{}})
		require.ErrorContains(t, err, "Crawls is empty")
		require.Equal(t, "http://a.example/", w.Next().Entry.URL)
	})
}

// The time that a Take of a host must wait for lies ahead, also if the URLs that it wants are of a
// crawl that is paused, or if the host's URLs are of another crawl. No clock keeps such URLs back.
func TestTakeIsToldAMomentAhead(t *testing.T) {
	for name, o := range map[string]frontier.TakeOptions{
		"paused":   {Host: "a.example"},
		"unwanted": {Host: "a.example", Crawls: []uint32{2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(time.Minute)})
			for _, e := range []frontier.Entry{
				{URL: "http://a.example/1", Crawl: 1},
				{URL: "http://b.example/1"},
				{URL: "http://b.example/2", NotBefore: harness.Dawn.Add(time.Hour)},
			} {
				_, err := w.F.Add(t.Context(), e)
				require.NoError(t, err)
			}
			if o.Crawls == nil {
				w.SetCrawl(1, frontier.Rule{Paused: scope.On})
			}
			o.Clocks, o.Wait = true, time.Hour
			for range 4 {
				began := w.At()
				_, err := w.F.Take(t.Context(), o)
				var notDue *frontier.NotDueError
				require.ErrorAs(t, err, &notDue)
				require.Equal(t, began, w.At())
				require.True(t, notDue.Next.After(w.Clock.Now()), "told to come back at %v", notDue.Next.Sub(harness.Dawn))
				require.NoError(t, w.F.Check())
				w.Clock.Set(notDue.Next)
				l, err := w.F.Contact(t.Context(), "a.example")
				require.NoError(t, err)
				w.Fetched(l, time.Second, frontier.Outcome{})
			}
		})
	}
}

// The error of a Take whose context ends by its deadline is that of the context, whatever ends
// beside it.
func TestTakeEndsByItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := harness.Opened(t, frontier.Options{KeepOpen: true})
		_, err := f.Take(endsLate{context.Background(), time.Now().Add(time.Second)}, frontier.TakeOptions{Wait: time.Second})
		require.Equal(t, context.DeadlineExceeded, err)
	})
}

// endsLate is a context that has ended from a moment on, and wakes only who asks.
type endsLate struct {
	context.Context
	at time.Time
}

func (c endsLate) Err() error {
	if time.Now().Before(c.at) {
		return nil
	}
	return context.DeadlineExceeded
}
