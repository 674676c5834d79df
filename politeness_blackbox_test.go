// This file tests what an outsider relies on: whatever is said and whatever happens, no
// host and no group is contacted before all of its clocks allow it.

package frontier_test

import (
	"context"
	"fmt"
	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"testing"
	"time"
)

// A host that is moved while it is leased holds back the group it left and its new one.
func TestMovesDuringALeaseHoldBothGroups(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(0), GroupDelay: frontier.FixedDelay(10 * sec)}
	inBothWorlds(t, o, func(t *testing.T, w *world) {
		w.add("http://a.example/1")
		l := w.next()
		for _, g := range []string{"g1", "g3"} {
			require.NoError(t, w.f.Assign("a.example", g))
		}
		w.fetched(l, 5*sec, frontier.Outcome{})
		for i, g := range []string{"g1", "g3"} {
			h := fmt.Sprintf("m%d.example", i)
			w.add("http://" + h + "/")
			require.NoError(t, w.f.Assign(h, g))
		}
		w.nothingUntil(15 * sec)
		require.Equal(t, 2, w.served(frontier.Outcome{}))
	})
}

// Of all kinds, at once or one after the other, with all lanes in use.
func TestHundredFailuresUnderWayAreOneStep(t *testing.T) {
	for _, kind := range []frontier.Failure{frontier.FailureTooMany, frontier.FailureUnavailable, frontier.FailureConnect, frontier.FailureTimeout} {
		for _, span := range []time.Duration{0, sec} {
			o := frontier.Options{HostConcurrency: 100, Delay: frontier.FixedDelay(0), Backoff: frontier.Backoff{Jitter: 1e-9}, Retry: frontier.Retries(9, time.Millisecond)}
			inBothWorlds(t, o, func(t *testing.T, w *world) {
				w.addMany("a.example", 300)
				var ls []frontier.Lease
				for range 100 {
					ls = append(ls, w.next())
				}
				w.clk.Advance(sec)
				for _, l := range ls {
					w.fetched(l, span, failing(kind))
				}
				x := w.info("a.example")
				require.Equal(t, 1, x.Backoff.Step, "%v %v", kind, span)
				require.Equal(t, 2*sec, x.Backoff.Gap)
				require.Equal(t, 1, x.Backoff.Failures)
				end := w.at()
				w.nothingUntil(end + 2*sec)
				l, _, err := w.tryNext()
				require.NoError(t, err)
				_, _, err = w.tryNext()
				require.ErrorIs(t, err, frontier.ErrNotDue, "it has one lane now")
				w.fetched(l, 0, frontier.Outcome{})
			})
		}
	}
}

// Neither another lane, nor CrawlNow, another crawl or a priority is a way around it.
func TestWhatHoldsAHostHoldsAllItsLanes(t *testing.T) {
	for name, c := range map[string]struct {
		hold func(w *world, l frontier.Lease)
		d    time.Duration
	}{
		"retry-after": {func(w *world, l frontier.Lease) { w.fetched(l, 0, frontier.Outcome{RetryAfter: time.Minute}) }, time.Minute},
		"back-off":    {func(w *world, l frontier.Lease) { w.fetched(l, 0, failing(frontier.FailureTooMany)) }, 2 * sec},
		"quarantine": {func(w *world, l frontier.Lease) {
			w.fetched(l, 0, failing(frontier.FailureTooMany))
			l = w.next()
			w.fetched(l, 0, failing(frontier.FailureTooMany))
		}, 10*time.Minute + 2*sec},
		"block": {func(w *world, l frontier.Lease) {
			require.NoError(w, w.f.Done(l, frontier.Outcome{}))
			require.NoError(w, w.f.BlockUntil(frontier.Host("a.example"), dawn.Add(time.Minute)))
		}, time.Minute},
		"crawl-delay": {func(w *world, l frontier.Lease) { w.fetched(l, 0, frontier.Outcome{CrawlDelay: 30 * sec}) }, 30 * sec},
	} {
		t.Run(name, func(t *testing.T) {
			o := frontier.Options{HostConcurrency: 4, Delay: frontier.FixedDelay(sec), Backoff: frontier.Backoff{Jitter: 1e-9},
				Quarantine: frontier.Quarantine{After: 2}, Retry: frontier.Retries(9, time.Millisecond)}
			inBothWorlds(t, o, func(t *testing.T, w *world) {
				w.addMany("a.example", 20)
				l := w.next()
				c.hold(w, l)
				n, err := w.f.CrawlNow(t.Context(), frontier.Entry{URL: "http://a.example/now"}, frontier.Entry{URL: "http://a.example/5"})
				require.NoError(t, err)
				require.Equal(t, 2, n)
				_, err = w.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/now", Crawl: 9, Depth: 3})
				require.NoError(t, err)
				require.NoError(t, w.f.SetPriority(frontier.All(), 3))
				w.nothingUntil(c.d)
				l, _, err = w.tryNext()
				require.NoError(t, err)
				require.Equal(t, frontier.Immediate, l.Priority)
				if name == "block" {
					return
				}
				require.NoError(t, w.f.Done(l, requeue))
				if w.machine != nil {
					w.reopen()
				}
			})
		})
	}
}

// After a death, or two, a host is due no earlier than it was.
func TestNoCrashMakesAHostDueEarlier(t *testing.T) {
	o := frontier.Options{HostConcurrency: 2, Delay: frontier.FixedDelay(5 * sec), GroupDelay: frontier.FixedDelay(7 * sec), Backoff: frontier.Backoff{Jitter: 1e-9},
		Quarantine: frontier.Quarantine{After: 2}, Retry: frontier.Retries(9, time.Millisecond), ParkAfter: 20 * sec}
	for name, do := range map[string]func(w *world){
		"retry-after": func(w *world) { w.fetched(w.next(), 0, frontier.Outcome{RetryAfter: time.Hour}) },
		"retry-after uncontacted": func(w *world) {
			w.fetched(w.next(), 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true, RetryAfter: time.Hour})
		},
		"retry-after beside a lease": func(w *world) { l := w.next(); w.next(); w.fetched(l, 0, frontier.Outcome{RetryAfter: time.Hour}) },
		"quarantine": func(w *world) {
			w.fetched(w.next(), 0, failing(frontier.FailureConnect))
			w.fetched(w.next(), 0, failing(frontier.FailureConnect))
		},
		"backoff":     func(w *world) { w.fetched(w.next(), 0, failing(frontier.FailureTooMany)) },
		"crawl-delay": func(w *world) { w.fetched(w.next(), 0, frontier.Outcome{CrawlDelay: time.Minute}) },
		"crawl-delay contact": func(w *world) {
			l, err := w.f.HandBack(w.next())
			require.NoError(w, err)
			w.fetched(l, 0, frontier.Outcome{CrawlDelay: time.Minute})
		},
		"leased": func(w *world) { w.next(); w.clk.Advance(3 * sec) },
		"rule's delay": func(w *world) {
			require.NoError(w, w.f.SetDelay(frontier.All(), frontier.FixedDelay(time.Hour)))
			w.fetched(w.next(), 0, frontier.Outcome{})
		},
		"rule's delay later": func(w *world) {
			w.fetched(w.next(), 0, frontier.Outcome{})
			require.NoError(w, w.f.SetDelay(frontier.All(), frontier.FixedDelay(time.Hour)))
		},
		"rule's delay taken back": func(w *world) {
			require.NoError(w, w.f.SetDelay(frontier.All(), frontier.FixedDelay(time.Hour)))
			w.fetched(w.next(), 0, frontier.Outcome{})
			require.NoError(w, w.f.Clear(frontier.All()))
		},
		"rule's delay taken back during the lease": func(w *world) {
			require.NoError(w, w.f.SetDelay(frontier.All(), frontier.FixedDelay(time.Hour)))
			l := w.next()
			require.NoError(w, w.f.Clear(frontier.All()))
			w.fetched(l, 0, frontier.Outcome{})
		},
		"group": func(w *world) {
			require.NoError(w, w.f.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(time.Hour)}))
			require.NoError(w, w.f.Assign("a.example", "g"))
			w.fetched(w.next(), 0, frontier.Outcome{})
		},
		"group taken back": func(w *world) {
			require.NoError(w, w.f.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(time.Hour)}))
			require.NoError(w, w.f.Assign("a.example", "g"))
			w.fetched(w.next(), 0, frontier.Outcome{})
			require.NoError(w, w.f.SetGroup("g", frontier.GroupSettings{}))
		},
		"forgotten retry-after": func(w *world) {
			w.fetched(w.next(), 0, frontier.Outcome{RetryAfter: time.Hour})
			require.NoError(w, w.f.Forget("a.example"))
		},
		"forgotten crawl-delay": func(w *world) {
			w.fetched(w.next(), 0, frontier.Outcome{CrawlDelay: time.Hour})
			require.NoError(w, w.f.Forget("a.example"))
		},
		"late": func(w *world) {
			l := w.next()
			w.clk.Advance(11 * time.Minute)
			w.f.Stats()
			_, err := w.f.Add(context.Background())
			require.NoError(w, err)
			require.ErrorIs(w, w.f.Done(l, frontier.Outcome{RetryAfter: time.Hour}), frontier.ErrNotLeased)
		},
		"deleted": func(w *world) {
			w.fetched(w.next(), 0, frontier.Outcome{RetryAfter: time.Hour})
			_, err := w.f.Delete(context.Background(), frontier.All())
			require.NoError(w, err)
		},
	} {
		for _, again := range []int{1, 2} {
			t.Run(fmt.Sprint(name, again), func(t *testing.T) {
				w := newStoredWorld(t, o, spill.Options{})
				w.addMany("a.example", 9)
				do(w)
				_, err := w.f.CrawlNow(t.Context(), frontier.Entry{URL: "http://a.example/x"})
				require.NoError(t, err)
				x := w
				for range again {
					x = x.killed()
				}
				want := w.info("a.example")
				due := want.Due
				if want.GroupDue.After(due) {
					due = want.GroupDue
				}
				got := x.info("a.example")
				gotDue := got.Due
				if got.GroupDue.After(gotDue) {
					gotDue = got.GroupDue
				}
				assert.False(t, gotDue.Before(due), "%v before %v: %v %v", gotDue, due, got, want)
				assert.Equal(t, want.Backoff, got.Backoff)
				assert.Equal(t, want.CrawlDelay, got.CrawlDelay)
				assert.Equal(t, want.Group, got.Group)
				if x.f.Stats().Waiting > 0 {
					if due.After(x.clk.Now()) {
						x.nothingUntil(due.Sub(dawn))
					}
					x.next()
				}
			})
		}
	}
}
