// This file tests what a frontier reports about itself while it runs.

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
)

// withEvents runs a test in memory and on a store, with the events passed to OnEvent.
func withEvents(t *testing.T, o frontier.Options, test func(*testing.T, *harness.World, *[]event.Event)) {
	for _, stored := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored=%v", stored), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []event.Event
				o := o
				o.OnEvent = func(e event.Event) { told = append(told, e) }
				if stored {
					test(t, harness.NewStoredWorld(t, o, spill.Options{}), &told)
				} else {
					test(t, harness.NewWorld(t, o), &told)
				}
			})
		})
	}
}

func TestEventsComeInOrder(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(0), Retry: frontier.Retries(2, time.Second), LeaseTime: time.Minute}
	withEvents(t, o, func(t *testing.T, w *harness.World, told *[]event.Event) {
		w.Add("http://a.example/", "http://b.example/")
		w.Fetched(w.NextIs(0, "http://a.example/"), 0, frontier.Outcome{Result: frontier.Failed})
		w.NextIs(0, "http://b.example/")
		w.Fetched(w.NextIs(time.Second, "http://a.example/"), 0, frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureServer, RetryAfter: 2 * time.Hour})
		w.Until(time.Minute)
		w.F.Stats() // lets the lease expire
		synctest.Wait()
		require.Equal(t, []event.Event{
			{Kind: event.HostBlocked, Time: harness.Dawn.Add(time.Second), Host: "a.example", Until: harness.Dawn.Add(2*time.Hour + time.Second), Reason: "Retry-After"},
			{Kind: event.URLGivenUp, Time: harness.Dawn.Add(time.Second), Host: "a.example", URL: "http://a.example/", Attempt: 2, Failure: frontier.FailureServer.String()},
			{Kind: event.LeaseExpired, Time: harness.Dawn.Add(time.Minute), Host: "b.example", URL: "http://b.example/", Attempt: 1},
		}, *told)
	})
}

// For a leased URL that was deleted, the end of its tries is reported like any other; a try that
// was not the last ends by the deletion.
func TestDeletedURLsAreGivenUp(t *testing.T) {
	for tries, want := range map[int]frontier.Stats{1: {GivenUp: 1}, 2: {Deleted: 1}} {
		o := frontier.Options{Delay: frontier.FixedDelay(0), Retry: frontier.Retries(tries, time.Second)}
		withEvents(t, o, func(t *testing.T, w *harness.World, told *[]event.Event) {
			w.Add("http://a.example/")
			l := w.Next()
			_, err := w.F.Delete(t.Context(), scope.Host("a.example"))
			require.NoError(t, err)
			w.Fetched(l, 0, frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureServer})
			synctest.Wait()
			s := w.F.Stats()
			require.Equal(t, want, frontier.Stats{GivenUp: s.GivenUp, Deleted: s.Deleted})
			var events []event.Event
			if want.GivenUp > 0 {
				events = []event.Event{{Kind: event.URLGivenUp, Time: harness.Dawn, Host: "a.example", URL: "http://a.example/", Attempt: 1, Failure: frontier.FailureServer.String()}}
			}
			require.Equal(t, events, *told)
		})
	}
}

// A failing store is one trouble, however many calls meet it, and it works again when it has for
// some seconds: both are reported once.
func TestAStoreThatFailsIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []event.Event
		w := harness.NewStoredWorld(t, frontier.Options{OnEvent: func(e event.Event) { told = append(told, e) }}, spill.Options{})
		failed := int64(0)
		add := func(fails bool) {
			if fails {
				w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
			}
			_, err := w.F.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://a.example/%v", w.Clock.Now().UnixNano())})
			if fails {
				failed++
				require.ErrorIs(t, err, harness.ErrDisk, "each call has its error")
			} else {
				require.NoError(t, err)
			}
			w.Clock.Advance(time.Second)
			synctest.Wait()
		}
		for n := range 200 {
			add(n%3 != 2) // small writes go well now and then
		}
		require.Len(t, told, 1)
		require.Equal(t, event.StoreError, told[0].Kind)
		for range 10 {
			add(false)
		}
		require.Len(t, told, 2)
		require.Equal(t, event.StoreWorks, told[1].Kind)
		require.Equal(t, failed, told[1].Count)
		add(true)
		require.Len(t, told, 3)
		require.Equal(t, event.StoreError, told[2].Kind)
	})
}

// A store that fails is an error in the log. One that another process has now is a warning: it works there.
func TestAStoreThatMovedIsAWarning(t *testing.T) {
	for err, level := range map[error]string{harness.ErrDisk: "ERROR", storage.ErrMoved: "WARN"} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			w := harness.NewStoredWorld(t, frontier.Options{Logger: slog.New(slog.NewTextHandler(&out, nil))}, spill.Options{})
			w.Machine.Faults.FailNth(spilltest.Write, 1, err)
			_, failed := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
			require.ErrorIs(t, failed, err)
			synctest.Wait()
			require.Contains(t, out.String(), "level="+level+` msg="store error"`)
		})
	}
}

// Bad outlinks are reported once a minute at most, however many pages have them. What limits
// refuse is only counted.
func TestBadOutlinksAreToldOnceAMinute(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(time.Second)}
	withEvents(t, o, func(t *testing.T, w *harness.World, told *[]event.Event) {
		require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits.Depth = 1 }))
		for n := range 100 {
			w.Add(fmt.Sprintf("http://a.example/%d", n))
			w.Fetched(w.Next(), 0, frontier.Outcome{Add: []frontier.Entry{
				{URL: "http://a.example/deep", Depth: 2}, {URL: "mailto:x"}, {URL: "tel:123"}, {URL: fmt.Sprintf("http://b.example/%d", n), NotBefore: harness.Dawn.Add(time.Hour)},
			}})
		}
		synctest.Wait()
		var got []string
		for _, e := range *told {
			require.Equal(t, event.LinksRefused, e.Kind)
			got = append(got, fmt.Sprint(e.Time.Sub(harness.Dawn), " ", e.URL, " ", e.Count, " ", e.Err))
		}
		require.Equal(t, []string{
			`0s http://a.example/0 2 frontier: entry 1 "mailto:x": not an absolute URL with a host`,
			`1m0s http://a.example/60 120 frontier: entry 1 "mailto:x": not an absolute URL with a host`,
		}, got)
		s := w.F.Stats()
		require.EqualValues(t, 300, s.Refused)
		require.EqualValues(t, 100, s.Scheduled)
	})
}

// taken are events that a frontier in a bubble reported.
type taken struct {
	mu     sync.Mutex
	events []event.Event
}

func (x *taken) take(e event.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.events = append(x.events, e)
}

// told returns all events up to now.
func (x *taken) told() []event.Event {
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.events)
}

// waiting lets n workers wait in Next, which hold what they get until the test ends its leases.
func waiting(ctx context.Context, f *frontier.Frontier, n int) <-chan frontier.Lease {
	got := make(chan frontier.Lease)
	for range n {
		go func() {
			for l, err := range f.Leases(ctx) {
				if err != nil {
					return
				}
				got <- l
			}
		}()
	}
	return got
}

// Workers that hang, or forget Done, are reported once while others wait, and again after the next
// lease has ended.
func TestLeasesThatDoNotEndAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events taken
		f, err := frontier.Open(t.Context(), frontier.Options{OnEvent: events.take, Delay: frontier.FixedDelay(0)})
		require.NoError(t, err)
		defer harness.Ended(t, f)
		_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2"}, frontier.Entry{URL: "http://b.example/"})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		time.Sleep(time.Hour) // no call has asked
		first, err := f.Next(ctx)
		require.NoError(t, err)
		second, err := f.Next(ctx)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Empty(t, events.told(), "nobody waits")
		got := waiting(ctx, f, 2)
		time.Sleep(time.Minute - time.Second)
		require.Empty(t, events.told())
		time.Sleep(5 * time.Minute)
		require.Len(t, events.told(), 1, "once")
		require.Equal(t, event.Event{
			Kind: event.Stalled, Time: events.told()[0].Time, Host: first.Host, URL: first.Entry.URL, Count: 2, Until: events.told()[0].Until, Reason: "no lease has ended for 2m0s",
		}, events.told()[0])
		require.WithinDuration(t, first.LeasedAt.Add(2*time.Minute), events.told()[0].Time, 2*time.Millisecond)
		require.WithinDuration(t, first.Deadline, events.told()[0].Until, 2*time.Millisecond)
		require.NoError(t, f.Done(first, frontier.Outcome{}))
		require.NoError(t, f.Done(second, frontier.Outcome{}))
		third := <-got
		time.Sleep(3 * time.Minute)
		require.Len(t, events.told(), 2, "once more")
		require.NoError(t, f.Done(third, frontier.Outcome{}))
		cancel()
		synctest.Wait()
	})
}

// A frontier whose URLs are all in the future, or held back, says so once each time.
func TestIdlenessIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events taken
		f, err := frontier.Open(t.Context(), frontier.Options{OnEvent: events.take, KeepOpen: true})
		require.NoError(t, err)
		defer harness.Ended(t, f)
		ctx, cancel := context.WithCancel(t.Context())
		got := waiting(ctx, f, 2)
		time.Sleep(time.Hour)
		require.Empty(t, events.told(), "there are no URLs")
		soon := time.Now().Add(time.Hour)
		_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/", NotBefore: soon})
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, events.told(), 1)
		require.Equal(t, event.Idle, events.told()[0].Kind)
		require.Equal(t, "1 scheduled, 0 held back", events.told()[0].Reason)
		require.WithinDuration(t, soon, events.told()[0].Until, 2*time.Millisecond)
		l := <-got
		require.Len(t, events.told(), 1, "once")
		require.NoError(t, f.Done(l, frontier.Outcome{Next: time.Now().Add(30 * time.Second)}))
		l = <-got
		require.Len(t, events.told(), 1, "half a minute is not worth a word")
		require.NoError(t, f.Pause(scope.All()))
		require.NoError(t, f.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://b.example/"}}}))
		time.Sleep(time.Hour)
		require.Len(t, events.told(), 3, "with the event of the pause")
		require.Equal(t, event.Idle, events.told()[2].Kind)
		require.Equal(t, "0 scheduled, 1 held back", events.told()[2].Reason)
		require.Zero(t, events.told()[2].Until)
		cancel()
		synctest.Wait()
	})
}

// A URL is reported as given up only when that is durable.
func TestGiveUpIsToldAfterItsCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []event.Event
		w := harness.NewStoredWorld(t, frontier.Options{
			Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1, 0),
			OnEvent: func(e event.Event) { told = append(told, e) },
		}, spill.Options{})
		w.Add("http://a.example/")
		w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
		require.ErrorIs(t, w.F.Done(w.Next(), frontier.Outcome{Result: frontier.Failed}), harness.ErrDisk)
		synctest.Wait()
		require.Len(t, told, 1)
		require.Equal(t, event.StoreError, told[0].Kind)
		require.ErrorIs(t, told[0].Err, harness.ErrDisk)
		w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Failed})
		synctest.Wait()
		require.Len(t, told, 2)
		require.Equal(t, event.URLGivenUp, told[1].Kind)
	})
}

// A handler that does not return holds nothing up but Close; what there is no
// room for is counted.
func TestSlowEventHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const urls, room = 5000, 4096
		gate := make(chan struct{})
		var told []event.Event
		w := harness.NewWorld(t, frontier.Options{
			Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1, 0), Quarantine: frontier.Quarantine{Disabled: true},
			OnEvent: func(e event.Event) { <-gate; told = append(told, e) },
		})
		w.Add(harness.UrlsOf("a.example", urls+1)...)
		for range urls {
			w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Failed})
		}
		synctest.Wait()
		require.Less(t, w.F.Stats().EventsLost, int64(urls-room+2))
		lost := w.F.Stats().EventsLost
		require.GreaterOrEqual(t, lost, int64(urls-room-1))
		close(gate)
		synctest.Wait()
		w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Failed})
		synctest.Wait()
		require.Len(t, told, urls+1-int(lost))
		dropped := int64(0)
		for i, e := range told {
			dropped += e.Dropped
			require.Equal(t, fmt.Sprintf("http://a.example/%d", int64(i+1)+dropped), e.URL)
		}
		require.Equal(t, lost, dropped)
		require.Equal(t, lost, w.F.Stats().EventsLost)
	})
}

func TestCloseTellsAllEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		w := harness.NewWorld(t, frontier.Options{
			Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1, 0), Quarantine: frontier.Quarantine{Disabled: true},
			OnEvent: func(event.Event) { time.Sleep(time.Second); n++ },
		})
		w.Add(harness.UrlsOf("a.example", 10)...)
		for range 10 {
			w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Failed})
		}
		require.NoError(t, w.F.Close())
		require.Equal(t, 10, n)
	})
}

// A handler may call the frontier.
func TestEventHandlerCallsTheFrontier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *harness.World
		w = harness.NewWorld(t, frontier.Options{
			Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1, 0), Quarantine: frontier.Quarantine{Disabled: true},
			OnEvent: func(e event.Event) {
				_, err := w.F.Add(context.Background(), frontier.Entry{URL: e.URL + "/again"})
				require.NoError(t, err)
			},
		})
		w.Add("http://a.example/1")
		w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Failed})
		synctest.Wait()
		w.NextIs(0, "http://a.example/1/again")
	})
}

// What an operator searches for in the log stays the same.
func TestEventsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := harness.NewWorld(t, frontier.Options{
			Retry:  frontier.Retries(1, 0),
			Logger: slog.New(slog.NewTextHandler(&out, nil)),
		})
		w.Add("http://a.example/1")
		w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Failed, RetryAfter: time.Hour})
		synctest.Wait()
		require.NoError(t, w.F.Pause(scope.Host("b.example")))
		require.NoError(t, w.F.Pause(scope.All()))
		synctest.Wait()
		log := regexp.MustCompile(`(?m)^time=\S+ `).ReplaceAllString(out.String(), "")
		require.Equal(t, `level=WARN msg="host blocked" host=a.example until=2026-01-01T01:00:00.000Z reason=Retry-After
level=INFO msg="url given up" host=a.example url=http://a.example/1 attempt=1 failure=other
level=INFO msg="host blocked" host=b.example scope=b.example reason=paused
level=INFO msg="host blocked" scope=* reason=paused
`, log)
	})
}

func TestEventAsLogValue(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	log.Info("x", "event", event.Event{
		Kind: event.LimitReached, Host: "a.example", Scope: "*.example", Crawl: 7, URL: "http://a.example/",
		Attempt: 2, Failure: "dns", Until: harness.Dawn, Count: 3, Reason: "served", Err: harness.ErrDisk, Dropped: 4,
	})
	log.Info("x", "event", event.Event{Kind: event.HostReturned})
	require.Equal(t, `level=INFO msg=x event.kind="limit reached" event.host=a.example event.scope=*.example event.crawl=7 `+
		`event.url=http://a.example/ event.attempt=2 event.failure=dns event.until=2026-01-01T00:00:00.000Z event.count=3 event.reason=served `+
		`event.error="disk fault" event.dropped=4
level=INFO msg=x event.kind="host returned"
`, out.String())
}

func TestEventKindNames(t *testing.T) {
	seen := map[string]bool{}
	for k := event.HostBlocked; k <= event.Idle; k++ {
		require.NotEqual(t, "invalid event kind", k.String())
		require.False(t, seen[k.String()])
		seen[k.String()] = true
	}
	require.Equal(t, "invalid event kind", (event.StoreError + 100).String())
}
