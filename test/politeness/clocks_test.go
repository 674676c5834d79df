// This file tests what an outsider relies on: whatever is said and whatever happens, no
// host and no group is contacted before all of its clocks allow it.

package politeness

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A host that is moved while it is leased holds back the group it left and its new one.
func TestMovesDuringALeaseHoldBothGroups(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(0), GroupDelay: frontier.FixedDelay(10 * time.Second)}
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		l := w.Next()
		for _, g := range []string{"g1", "g3"} {
			require.NoError(t, w.F.Assign("a.example", g))
		}
		w.Fetched(l, 5*time.Second, frontier.Outcome{})
		for i, g := range []string{"g1", "g3"} {
			h := fmt.Sprintf("m%d.example", i)
			w.Add("http://" + h + "/")
			require.NoError(t, w.F.Assign(h, g))
		}
		w.NothingUntil(15 * time.Second)
		require.Equal(t, 2, w.Served(frontier.Outcome{}))
	})
}

// Of all kinds, at once or one after the other, with all lanes in use.
func TestHundredFailuresUnderWayAreOneStep(t *testing.T) {
	for _, kind := range []frontier.Failure{frontier.FailureTooMany, frontier.FailureUnavailable, frontier.FailureConnect, frontier.FailureTimeout} {
		for _, span := range []time.Duration{0, time.Second} {
			o := frontier.Options{HostConcurrency: 100, Delay: frontier.FixedDelay(0), Backoff: frontier.Backoff{Jitter: 1e-9}, Retry: frontier.Retries(9, time.Millisecond)}
			harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
				w.AddMany("a.example", 300)
				var ls []frontier.Lease
				for range 100 {
					ls = append(ls, w.Next())
				}
				w.Clock.Advance(time.Second)
				for _, l := range ls {
					w.Fetched(l, span, harness.Failing(kind))
				}
				x := w.Info("a.example")
				require.Equal(t, 1, x.Backoff.Step, "%v %v", kind, span)
				require.Equal(t, 2*time.Second, x.Backoff.Gap)
				require.Equal(t, 1, x.Backoff.Failures)
				end := w.At()
				w.NothingUntil(end + 2*time.Second)
				l, _, err := w.TryNext()
				require.NoError(t, err)
				_, _, err = w.TryNext()
				require.ErrorIs(t, err, frontier.ErrNotDue, "it has one lane now")
				w.Fetched(l, 0, frontier.Outcome{})
			})
		}
	}
}

// Neither another lane, nor CrawlNow, another crawl or a priority is a way around it.
func TestWhatHoldsAHostHoldsAllItsLanes(t *testing.T) {
	for name, c := range map[string]struct {
		hold func(w *harness.World, l frontier.Lease)
		d    time.Duration
	}{
		"retry-after": {func(w *harness.World, l frontier.Lease) { w.Fetched(l, 0, frontier.Outcome{RetryAfter: time.Minute}) }, time.Minute},
		"back-off":    {func(w *harness.World, l frontier.Lease) { w.Fetched(l, 0, harness.Failing(frontier.FailureTooMany)) }, 2 * time.Second},
		"quarantine": {func(w *harness.World, l frontier.Lease) {
			w.Fetched(l, 0, harness.Failing(frontier.FailureTooMany))
			l = w.Next()
			w.Fetched(l, 0, harness.Failing(frontier.FailureTooMany))
		}, 10*time.Minute + 2*time.Second},
		"block": {func(w *harness.World, l frontier.Lease) {
			require.NoError(w, w.F.Done(l, frontier.Outcome{}))
			require.NoError(w, w.F.BlockUntil(scope.Host("a.example"), harness.Dawn.Add(time.Minute)))
		}, time.Minute},
		"crawl-delay": {func(w *harness.World, l frontier.Lease) {
			w.Fetched(l, 0, frontier.Outcome{CrawlDelay: 30 * time.Second})
		}, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			o := frontier.Options{HostConcurrency: 4, Delay: frontier.FixedDelay(time.Second), Backoff: frontier.Backoff{Jitter: 1e-9},
				Quarantine: frontier.Quarantine{After: 2}, Retry: frontier.Retries(9, time.Millisecond)}
			harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
				w.AddMany("a.example", 20)
				l := w.Next()
				c.hold(w, l)
				n, err := w.F.CrawlNow(t.Context(), frontier.Entry{URL: "http://a.example/now"}, frontier.Entry{URL: "http://a.example/5"})
				require.NoError(t, err)
				require.Equal(t, 2, n)
				_, err = w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/now", Crawl: 9, Depth: 3})
				require.NoError(t, err)
				require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Priority = 3 }))
				w.NothingUntil(c.d)
				l, _, err = w.TryNext()
				require.NoError(t, err)
				require.Equal(t, frontier.Immediate, l.Priority)
				if name == "block" {
					return
				}
				require.NoError(t, w.F.Done(l, harness.Requeue))
				if w.Machine != nil {
					w.Reopen()
				}
			})
		})
	}
}

// After a death, or two, a host is due no earlier than it was.
func TestNoCrashMakesAHostDueEarlier(t *testing.T) {
	o := harness.ParkAfter(20*time.Second, frontier.Options{HostConcurrency: 2, Delay: frontier.FixedDelay(5 * time.Second), GroupDelay: frontier.FixedDelay(7 * time.Second), Backoff: frontier.Backoff{Jitter: 1e-9},
		Quarantine: frontier.Quarantine{After: 2}, Retry: frontier.Retries(9, time.Millisecond)})
	for name, do := range map[string]func(w *harness.World){
		"retry-after": func(w *harness.World) { w.Fetched(w.Next(), 0, frontier.Outcome{RetryAfter: time.Hour}) },
		"retry-after uncontacted": func(w *harness.World) {
			w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true, RetryAfter: time.Hour})
		},
		"retry-after beside a lease": func(w *harness.World) {
			l := w.Next()
			w.Next()
			w.Fetched(l, 0, frontier.Outcome{RetryAfter: time.Hour})
		},
		"quarantine": func(w *harness.World) {
			w.Fetched(w.Next(), 0, harness.Failing(frontier.FailureConnect))
			w.Fetched(w.Next(), 0, harness.Failing(frontier.FailureConnect))
		},
		"backoff":     func(w *harness.World) { w.Fetched(w.Next(), 0, harness.Failing(frontier.FailureTooMany)) },
		"crawl-delay": func(w *harness.World) { w.Fetched(w.Next(), 0, frontier.Outcome{CrawlDelay: time.Minute}) },
		"crawl-delay contact": func(w *harness.World) {
			l, err := w.F.HandBack(w.Next())
			require.NoError(w, err)
			w.Fetched(l, 0, frontier.Outcome{CrawlDelay: time.Minute})
		},
		"leased": func(w *harness.World) { w.Next(); w.Clock.Advance(3 * time.Second) },
		"rule's delay": func(w *harness.World) {
			require.NoError(w, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(time.Hour) }))
			w.Fetched(w.Next(), 0, frontier.Outcome{})
		},
		"rule's delay later": func(w *harness.World) {
			w.Fetched(w.Next(), 0, frontier.Outcome{})
			require.NoError(w, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(time.Hour) }))
		},
		"rule's delay taken back": func(w *harness.World) {
			require.NoError(w, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(time.Hour) }))
			w.Fetched(w.Next(), 0, frontier.Outcome{})
			require.NoError(w, w.F.Clear(scope.All()))
		},
		"rule's delay taken back during the lease": func(w *harness.World) {
			require.NoError(w, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(time.Hour) }))
			l := w.Next()
			require.NoError(w, w.F.Clear(scope.All()))
			w.Fetched(l, 0, frontier.Outcome{})
		},
		"group": func(w *harness.World) {
			require.NoError(w, w.F.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(time.Hour)}))
			require.NoError(w, w.F.Assign("a.example", "g"))
			w.Fetched(w.Next(), 0, frontier.Outcome{})
		},
		"group taken back": func(w *harness.World) {
			require.NoError(w, w.F.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(time.Hour)}))
			require.NoError(w, w.F.Assign("a.example", "g"))
			w.Fetched(w.Next(), 0, frontier.Outcome{})
			require.NoError(w, w.F.SetGroup("g", frontier.GroupSettings{}))
		},
		"forgotten retry-after": func(w *harness.World) {
			w.Fetched(w.Next(), 0, frontier.Outcome{RetryAfter: time.Hour})
			require.NoError(w, w.F.Forget("a.example"))
		},
		"forgotten crawl-delay": func(w *harness.World) {
			w.Fetched(w.Next(), 0, frontier.Outcome{CrawlDelay: time.Hour})
			require.NoError(w, w.F.Forget("a.example"))
		},
		"late": func(w *harness.World) {
			l := w.Next()
			w.Clock.Advance(11 * time.Minute)
			w.F.Stats()
			_, err := w.F.Add(context.Background())
			require.NoError(w, err)
			require.ErrorIs(w, w.F.Done(l, frontier.Outcome{RetryAfter: time.Hour}), frontier.ErrNotLeased)
		},
		"deleted": func(w *harness.World) {
			w.Fetched(w.Next(), 0, frontier.Outcome{RetryAfter: time.Hour})
			_, err := w.F.Delete(context.Background(), scope.All())
			require.NoError(w, err)
		},
	} {
		for _, again := range []int{1, 2} {
			t.Run(fmt.Sprint(name, again), func(t *testing.T) {
				w := harness.NewStoredWorld(t, o, spill.Options{})
				w.AddMany("a.example", 9)
				do(w)
				_, err := w.F.CrawlNow(t.Context(), frontier.Entry{URL: "http://a.example/x"})
				require.NoError(t, err)
				x := w
				for range again {
					x = x.Killed()
				}
				want := w.Info("a.example")
				due := want.Due
				if want.GroupDue.After(due) {
					due = want.GroupDue
				}
				got := x.Info("a.example")
				gotDue := got.Due
				if got.GroupDue.After(gotDue) {
					gotDue = got.GroupDue
				}
				assert.False(t, gotDue.Before(due), "%v before %v: %v %v", gotDue, due, got, want)
				assert.Equal(t, want.Backoff, got.Backoff)
				assert.Equal(t, want.CrawlDelay, got.CrawlDelay)
				assert.Equal(t, want.Group, got.Group)
				if x.F.Stats().Waiting > 0 {
					if due.After(x.Clock.Now()) {
						x.NothingUntil(due.Sub(harness.Dawn))
					}
					x.Next()
				}
			})
		}
	}
}
