package politeness

import (
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
)

func TestRefusalsDoubleTheGap(t *testing.T) {
	for _, c := range []struct {
		kind frontier.Failure
		gaps []time.Duration
	}{
		{frontier.FailureTooMany, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 60 * time.Second, 60 * time.Second}},
		{frontier.FailureUnavailable, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}},
		{frontier.FailureConnect, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}},
		{frontier.FailureTimeout, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}},
		{frontier.FailureDNS, []time.Duration{time.Second, time.Second, time.Second}},
		{frontier.FailureServer, []time.Duration{time.Second, time.Second, time.Second}},
		{frontier.FailureOther, []time.Duration{time.Second, time.Second, time.Second}},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			o := frontier.Options{Delay: frontier.FixedDelay(time.Second), Backoff: frontier.Backoff{Jitter: 1e-9, Max: time.Minute}}
			harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
				w.AddMany("a.example", 10)
				l := w.Next()
				for i, want := range c.gaps {
					require.Equal(t, want, w.Gap(&l, harness.Failing(c.kind)), "after failure %d", i+1)
				}
			})
		})
	}
}

func TestJitterOnlyLengthens(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), Backoff: frontier.Backoff{Base: 10 * time.Second, Jitter: 0.5}, Quarantine: frontier.Quarantine{Disabled: true}})
	w.AddMany("a.example", 100)
	l := w.Next()
	require.NoError(t, w.F.Done(l, harness.Failing(frontier.FailureTooMany)))
	l = w.Next()
	var least, most time.Duration = time.Hour, 0
	for range 50 {
		gap := w.Gap(&l, frontier.Outcome{})
		least, most = min(least, gap), max(most, gap)
	}
	require.GreaterOrEqual(t, least, 10*time.Second)
	require.LessOrEqual(t, most, 15*time.Second)
	require.Greater(t, most-least, 2*time.Second)
}

// The gap of the back-off holds after every contact, and of the delay, the
// Crawl-delay, Retry-After and the back-off the latest wins.
func TestTheLatestClockWins(t *testing.T) {
	for _, c := range []struct {
		name              string
		delay, crawl, ask time.Duration
		want              time.Duration
		why               inspect.Reason
	}{
		{"back-off", 0, 0, 0, 4 * time.Second, inspect.ReasonBackoff},
		{"Retry-After of 0 is none", time.Second, 0, 0, 4 * time.Second, inspect.ReasonBackoff},
		{"a negative one is none", time.Second, 0, -time.Hour, 4 * time.Second, inspect.ReasonBackoff},
		{"a short one cancels nothing", time.Second, time.Second, 3 * time.Second, 4 * time.Second, inspect.ReasonBackoff},
		{"a long one holds", time.Second, time.Second, 9 * time.Second, 9 * time.Second, inspect.ReasonRetryAfter},
		{"an absurd one holds for 30 days", time.Second, time.Second, 1 << 62, 720 * time.Hour, inspect.ReasonRetryAfter},
		{"Crawl-delay", time.Second, 7 * time.Second, 6 * time.Second, 7 * time.Second, inspect.ReasonCrawlDelay},
		{"delay", 8 * time.Second, 7 * time.Second, 6 * time.Second, 8 * time.Second, inspect.ReasonDelay},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(c.delay), Backoff: harness.ExactBackoff}, func(t *testing.T, w *harness.World) {
				w.AddMany("a.example", 9)
				l := w.Next()
				w.Gap(&l, harness.Failing(frontier.FailureConnect))
				o := harness.Failing(frontier.FailureTooMany)
				o.RetryAfter, o.CrawlDelay = c.ask, c.crawl
				end := w.At()
				require.NoError(t, w.F.Done(l, o))
				x := w.Info("a.example")
				require.Equal(t, c.why, x.Reason)
				require.Equal(t, inspect.Backoff{Step: 2, Gap: 4 * time.Second, Failures: 2}, x.Backoff)
				l = w.Next()
				require.Equal(t, c.want, w.At()-end)
				if c.want < time.Hour {
					require.Equal(t, max(4*time.Second, c.delay, c.crawl), w.Gap(&l, frontier.Outcome{}), "after a good contact")
				}
			})
		})
	}
}

// A step is taken back after ForgiveAfter without a failure, or 200 gaps.
func TestBackoffIsForgiven(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(time.Second), Backoff: frontier.Backoff{Jitter: 1e-9, ForgiveAfter: 10 * time.Minute}}
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		w.AddMany("a.example", 1500)
		l := w.Next()
		w.Gap(&l, harness.Failing(frontier.FailureTooMany))
		contacts := func(gap time.Duration) (n int) {
			for ; w.Gap(&l, frontier.Outcome{}) == gap; n++ {
			}
			return n
		}
		require.Equal(t, 299, contacts(2*time.Second), "the contact that ends after 600 s is left alone for a second only")
		require.EqualValues(t, 0, w.F.Stats().BackedOff)
		require.Equal(t, 2*time.Second, w.Gap(&l, harness.Failing(frontier.FailureTooMany)))
		require.Equal(t, 1, w.Info("a.example").Backoff.Relapses)
		require.Equal(t, 599, contacts(2*time.Second), "twice as long after a relapse")
	})
}

// defended is a server that refuses what comes too soon after the end of the
// contact before, or too many at once.
type defended struct {
	gap  time.Duration
	last time.Time
	seen bool
}

func (s *defended) refuses(start, end time.Time) bool {
	refused := s.seen && start.Sub(s.last) < s.gap
	s.last, s.seen = end, true
	return refused
}

// A server that wants a gap gets it without settings: refusals are rare after the
// first minutes, whatever the gap.
func TestServersThatDefendThemselvesRefuseLittle(t *testing.T) {
	for i, gap := range []time.Duration{
		500 * time.Millisecond, time.Second + 1, 1500 * time.Millisecond, 2 * time.Second, 3 * time.Second, 5 * time.Second, 8 * time.Second, 10 * time.Second, 17 * time.Second, 30 * time.Second, 45 * time.Second, time.Minute, 90 * time.Second, 2 * time.Minute,
	} {
		kind := []frontier.Failure{frontier.FailureTooMany, frontier.FailureUnavailable}[i%2]
		t.Run(fmt.Sprint(gap, ", ", kind), func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorld(t, frontier.Options{})
			s := &defended{gap: gap}
			settled := max(time.Minute, 6*gap)
			var early, late, refusedEarly, refusedLate, urls int
			for w.At() < settled+2000*max(gap, time.Second) {
				if w.F.Stats().Waiting == 0 {
					urls++
					w.AddMany(fmt.Sprintf("a.example/%d", urls), 500)
				}
				l := w.Next()
				start := w.Clock.Now()
				refused := s.refuses(start, start.Add(20*time.Millisecond))
				o := frontier.Outcome{}
				if refused {
					o = harness.Failing(kind)
				}
				if w.At() < settled {
					early, refusedEarly = early+1, refusedEarly+harness.Btoi(refused)
				} else {
					late, refusedLate = late+1, refusedLate+harness.Btoi(refused)
				}
				w.Fetched(l, 20*time.Millisecond, o)
			}
			t.Logf("%d of %d refused in the first %v, %d of %d later", refusedEarly, early, settled, refusedLate, late)
			require.Less(t, float64(refusedLate), 0.01*float64(late))
			require.LessOrEqual(t, refusedEarly, 10)
		})
	}
}

// A server that accepts only a number of concurrent contacts refuses little, too, and is used to
// its capacity.
func TestServersWithFewConnectionsRefuseLittle(t *testing.T) {
	for _, limit := range []int{1, 2, 3, 4, 7, 8} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorld(t, frontier.Options{HostConcurrency: 8, Delay: frontier.FixedDelay(500 * time.Millisecond)})
			type contact struct {
				lease frontier.Lease
				end   time.Time
				o     frontier.Outcome
			}
			var out []contact // by their ends
			var early, late, refusedEarly, refusedLate, added int
			const hours, fetch = 4, 2 * time.Second
			for w.At() < hours*time.Hour {
				if w.F.Stats().Waiting == 0 {
					added++
					w.AddMany(fmt.Sprintf("a.example/%d", added), 500)
				}
				l, at, err := w.F.TryNext()
				if err == nil {
					x := contact{l, w.Clock.Now().Add(fetch), frontier.Outcome{}}
					refused := len(out) >= limit
					if refused {
						x.o, x.end = harness.Failing(frontier.FailureTooMany), w.Clock.Now().Add(10*time.Millisecond)
					}
					if w.At() < time.Minute {
						early, refusedEarly = early+1, refusedEarly+harness.Btoi(refused)
					} else {
						late, refusedLate = late+1, refusedLate+harness.Btoi(refused)
					}
					out = append(out, x)
					sort.SliceStable(out, func(a, b int) bool { return out[a].end.Before(out[b].end) })
					continue
				}
				require.ErrorIs(t, err, frontier.ErrNotDue)
				if len(out) > 0 && (at.IsZero() || !out[0].end.After(at)) {
					w.Clock.Set(out[0].end)
					require.NoError(t, w.F.Done(out[0].lease, out[0].o))
					out = out[1:]
					continue
				}
				w.Clock.Set(at)
			}
			for _, x := range out {
				w.Clock.Set(x.end)
				require.NoError(t, w.F.Done(x.lease, x.o))
			}
			used := float64(late) / (hours * 3600 / 2.5 * float64(limit))
			t.Logf("%d of %d refused in the first minute, %d of %d later; %.0f %% of what it gives", refusedEarly, early, refusedLate, late, 100*used)
			require.LessOrEqual(t, float64(refusedLate), 0.01*float64(late))
			require.Greater(t, used, 0.3)
		})
	}
}

// Concurrent failures raise one step, and count as one of the failures in a row.
func TestFailuresUnderWayTogetherCountOnce(t *testing.T) {
	for _, kind := range failureKinds {
		t.Run(kind.String(), func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{HostConcurrency: 100, Delay: frontier.FixedDelay(time.Second), Backoff: harness.ExactBackoff}, func(t *testing.T, w *harness.World) {
				w.AddMany("a.example", 300)
				leases := make([]frontier.Lease, 100)
				for i := range leases {
					leases[i] = w.NextIs(0, fmt.Sprintf("http://a.example/%d", i))
				}
				for _, l := range leases {
					w.Fetched(l, 10*time.Millisecond, harness.Failing(kind))
				}
				x := w.Info("a.example").Backoff
				require.Equal(t, 1, x.Failures)
				if kind < frontier.FailureConnect || kind == frontier.FailureServer {
					require.Zero(t, x.Step)
					return
				}
				require.Equal(t, 1, x.Step)
				l := w.Next()
				require.Equal(t, time.Second+2*time.Second, w.At(), "after the last of them")
				w.NothingUntil(w.At() + time.Second)
				require.NoError(t, w.F.Done(l, harness.Failing(kind)))
				require.Equal(t, 2, w.Info("a.example").Backoff.Step)
			})
		})
	}
}

// A host that was down for a while is crawled as before soon after it returned.
func TestAnOutageIsForgivenSoon(t *testing.T) {
	for _, kind := range []frontier.Failure{frontier.FailureConnect, frontier.FailureUnavailable} {
		for _, outage := range []time.Duration{10 * time.Second, time.Minute, 3 * time.Minute, time.Hour} {
			t.Run(fmt.Sprint(kind, " ", outage), func(t *testing.T) {
				w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)})
				w.AddMany("a.example", 5000)
				var back time.Duration
				for back == 0 || w.At() < back+20*time.Minute {
					l, o := w.Next(), frontier.Outcome{}
					if w.At() < outage {
						o = harness.Failing(kind)
					} else if back == 0 {
						back = w.At()
					}
					w.Fetched(l, 20*time.Millisecond, o)
				}
				require.LessOrEqual(t, w.Info("a.example").Backoff.Step, 1)
			})
		}
	}
}

func TestQuarantine(t *testing.T) {
	var told []frontier.Entry
	o := frontier.Options{
		Delay: frontier.FixedDelay(time.Second), Backoff: harness.ExactBackoff, Retry: frontier.Retries(2, 0),
		OnGiveUp: func(e frontier.Entry, _ frontier.Outcome) { told = append(told, e) },
	}
	for _, kind := range failureKinds {
		t.Run(kind.String(), func(t *testing.T) {
			harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
				told = nil
				w.AddMany("a.example", 20)
				l := w.Next()
				for range 7 {
					w.Gap(&l, harness.Failing(kind))
				}
				require.Zero(t, w.F.Stats().Quarantined)
				require.Equal(t, 10*time.Minute, w.Gap(&l, harness.Failing(kind)), "after 8 failures in a row")
				require.EqualValues(t, 1, w.F.Stats().Quarantined)
				for _, want := range []time.Duration{20, 40, 80, 160, 320, 640, 1280, 1440, 1440} {
					end := w.At()
					require.NoError(t, w.F.Done(l, harness.Failing(kind)))
					require.Equal(t, inspect.ReasonQuarantine, w.Info("a.example").Reason)
					l = w.Next()
					require.Equal(t, want*time.Minute, w.At()-end)
				}
				require.Empty(t, told, "its URLs are kept")
				require.LessOrEqual(t, w.Gap(&l, frontier.Outcome{}), 10*time.Minute, "everything continues")
				require.Zero(t, w.F.Stats().Quarantined)
				require.NoError(t, w.F.Done(l, frontier.Outcome{}))
				seen := map[string]bool{}
				for len(seen) < 18 {
					l := w.Next()
					require.LessOrEqual(t, l.Attempt, 2, "probes do not count as tries")
					seen[l.Entry.URL] = true
					require.NoError(t, w.F.Done(l, frontier.Outcome{}))
				}
				w.Over()
				require.Empty(t, told)
			})
		})
	}
}

func TestGoodContactsKeepAHostOutOfQuarantine(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		w.AddMany("a.example", 100)
		for i := range 50 {
			o := harness.Failing(frontier.FailureServer)
			if i%8 == 7 {
				o = frontier.Outcome{Result: frontier.Gone}
			}
			w.Fetched(w.Next(), 0, o)
		}
		require.Zero(t, w.F.Stats().Quarantined)
	})
}

func TestExpiredLeasesAreNotTheHostsFault(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{LeaseTime: time.Second, Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(20, 0)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/")
		for range 12 {
			w.Next()
			w.Clock.Advance(time.Second)
		}
		w.F.Stats()
		require.Zero(t, w.Info("a.example").Backoff)
	})
}

// What failures did to a host outlives a clean restart and a crash, and the host
// is not contacted earlier than without.
func TestBackoffSurvives(t *testing.T) {
	for failures := 1; failures <= 10; failures++ {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprint(failures, " failures, killed ", kill), func(t *testing.T) {
				w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), Backoff: harness.ExactBackoff}, spill.Options{})
				w.AddMany("a.example", 20)
				for i := range failures {
					l := w.Next()
					require.NoError(t, w.F.Done(l, harness.Failing(frontier.FailureTooMany)))
					_ = i
				}
				x := w.Info("a.example")
				if kill {
					w = w.Killed()
				} else {
					w.Reopen()
				}
				y := w.Info("a.example")
				require.Equal(t, x.Backoff, y.Backoff)
				require.False(t, y.Due.Before(x.Due))
				if !kill {
					require.Equal(t, x.Due, y.Due)
					require.Equal(t, x.Reason, y.Reason)
				}
				w.Next()
				require.False(t, w.Clock.Now().Before(x.Due))
			})
		}
	}
}

// A host in trouble leaves memory like any other, and comes back as it was.
func TestHostsInTroubleLeaveMemory(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), Backoff: harness.ExactBackoff, Retry: frontier.Retries(1, 0), KeepOpen: true}, spill.Options{})
	w.Add("http://a.example/1")
	w.Fetched(w.Next(), 0, harness.Failing(frontier.FailureTooMany))
	w.Clock.Advance(time.Minute)
	w.Asleep()
	require.False(t, hook.Of(w.F).Resident("a.example"))
	require.Equal(t, inspect.Backoff{Step: 1, Gap: 2 * time.Second, Failures: 1}, w.Info("a.example").Backoff)
	require.EqualValues(t, 0, w.F.Stats().BackedOff)
	w.Add("http://a.example/2", "http://a.example/3")
	require.EqualValues(t, 1, w.F.Stats().BackedOff)
	l := w.Next()
	require.Equal(t, 4*time.Second, w.Gap(&l, harness.Failing(frontier.FailureTooMany)))
}

// Without a Spill hosts in trouble are forgotten a week after their last failure,
// or a day if that slowed them down no more.
func TestTroubleIsForgottenInMemory(t *testing.T) {
	for _, c := range []struct {
		kind frontier.Failure
		kept time.Duration
	}{{frontier.FailureTooMany, 7 * 24 * time.Hour}, {frontier.FailureServer, 24 * time.Hour}} {
		t.Run(c.kind.String(), func(t *testing.T) {
			w := harness.NewWorld(t, frontier.Options{Retry: frontier.Retries(1, 0), KeepOpen: true})
			w.Add("http://a.example/")
			w.Fetched(w.Next(), 0, harness.Failing(c.kind))
			w.Until(c.kept - 1)
			require.EqualValues(t, 1, w.F.Stats().Hosts)
			w.Until(c.kept)
			require.EqualValues(t, 0, w.F.Stats().Hosts)
		})
	}
}

func TestBadBackoffsAreRefused(t *testing.T) {
	for _, c := range []struct {
		o     frontier.Options
		fault string
	}{
		{frontier.Options{Backoff: frontier.Backoff{Base: -1}}, "Backoff.Base is -1ns; want 0 or at least 1ms"},
		{frontier.Options{Backoff: frontier.Backoff{Base: time.Second, Max: time.Millisecond}}, "Backoff has Base 1s and Max 1ms"},
		{frontier.Options{Backoff: frontier.Backoff{Max: 721 * time.Hour}}, "Max 721h0m0s"},
		{frontier.Options{Backoff: frontier.Backoff{Jitter: 1.5}}, "Backoff.Jitter is 1.5; want 0 to 1"},
		{frontier.Options{Backoff: frontier.Backoff{ForgiveAfter: -1}}, "Backoff.ForgiveAfter is -1ns; want 0 or at least 1ms"},
		{frontier.Options{Quarantine: frontier.Quarantine{After: -1}}, "Quarantine.After is -1; want 1 to 10000"},
		{frontier.Options{Quarantine: frontier.Quarantine{Probe: 2 * time.Second, MaxProbe: time.Second}}, "Quarantine has Probe 2s and MaxProbe 1s"},
	} {
		_, err := frontier.Open(t.Context(), c.o)
		require.ErrorContains(t, err, c.fault)
	}
}

func TestTroubleIsTold(t *testing.T) {
	var told []event.Event
	w := harness.NewWorld(t, frontier.Options{
		Delay: frontier.FixedDelay(time.Second), Backoff: frontier.Backoff{Jitter: 1e-9, Max: 4 * time.Second}, Quarantine: frontier.Quarantine{After: 3},
		OnEvent: func(e event.Event) { told = append(told, e) },
	})
	w.AddMany("a.example", 20)
	l := w.Next()
	for range 5 {
		w.Gap(&l, harness.Failing(frontier.FailureTooMany))
	}
	w.Gap(&l, frontier.Outcome{})
	require.NoError(t, w.F.Done(l, frontier.Outcome{}))
	require.NoError(t, w.F.Close()) // reports what is left
	want := []struct {
		kind  event.Kind
		count int64
	}{
		{event.HostBackedOff, 1}, {event.HostBackedOff, 2}, {event.HostQuarantined, 3}, {event.HostReturned, 0},
	}
	require.Len(t, told, len(want))
	for i, x := range want {
		require.Equal(t, x.kind, told[i].Kind)
		require.Equal(t, x.count, told[i].Count)
		require.Equal(t, "a.example", told[i].Host)
	}
	require.Equal(t, harness.Dawn.Add(2*time.Second+4*time.Second+10*time.Minute), told[2].Until)
}

// A server with a quota per minute is found out like one with a gap.
func TestServersWithAQuotaRefuseLittle(t *testing.T) {
	for _, quota := range []int{3, 10, 30} {
		t.Run(fmt.Sprint(quota), func(t *testing.T) {
			w := harness.NewWorld(t, frontier.Options{})
			var minute, used, late, refusedLate, added int
			for w.At() < 24*time.Hour {
				if w.F.Stats().Waiting == 0 {
					added++
					w.AddMany(fmt.Sprintf("a.example/%d", added), 500)
				}
				l, o := w.Next(), frontier.Outcome{}
				if m := int(w.At() / time.Minute); m != minute {
					minute, used = m, 0
				}
				if used++; used > quota {
					o = harness.Failing(frontier.FailureTooMany)
				}
				if w.At() > 10*time.Minute {
					late, refusedLate = late+1, refusedLate+harness.Btoi(used > quota)
				}
				w.Fetched(l, 20*time.Millisecond, o)
			}
			t.Logf("%d of %d refused after the first 10 minutes", refusedLate, late)
			require.Less(t, float64(refusedLate), 0.01*float64(late))
		})
	}
}
