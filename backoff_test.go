package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

// exactBackoff has no jitter: a share of that small is less than a millisecond.
var exactBackoff = frontier.Backoff{Jitter: 1e-9}

// failing is the outcome of a contact that failed so.
func failing(k frontier.Failure) frontier.Outcome {
	return frontier.Outcome{Result: frontier.Failed, Failure: k}
}

// addMany adds n URLs of a host.
func (w *world) addMany(host string, n int) {
	w.Helper()
	entries := make([]frontier.Entry, n)
	for i := range entries {
		entries[i].URL = fmt.Sprintf("http://%s/%d", host, i)
	}
	got, err := w.f.Add(w.Context(), entries...)
	require.NoError(w, err)
	require.Equal(w, n, got)
}

// info is what is known of a host.
func (w *world) info(host string) frontier.HostInfo {
	w.Helper()
	x, err := w.f.Host(context.Background(), host)
	if !errors.Is(err, frontier.ErrUnknownHost) {
		require.NoError(w, err)
	}
	return x
}

// gap ends a lease at once and returns the time until the host's next one, which
// it takes.
func (w *world) gap(l *frontier.Lease, o frontier.Outcome) time.Duration {
	w.Helper()
	end := w.at()
	require.NoError(w, w.f.Done(*l, o))
	*l = w.next()
	return w.at() - end
}

const sec = time.Second

func TestRefusalsDoubleTheGap(t *testing.T) {
	for _, c := range []struct {
		kind frontier.Failure
		gaps []time.Duration
	}{
		{frontier.FailureTooMany, []time.Duration{2 * sec, 4 * sec, 8 * sec, 16 * sec, 32 * sec, 60 * sec, 60 * sec}},
		{frontier.FailureUnavailable, []time.Duration{2 * sec, 4 * sec, 8 * sec}},
		{frontier.FailureConnect, []time.Duration{2 * sec, 4 * sec, 8 * sec}},
		{frontier.FailureTimeout, []time.Duration{2 * sec, 4 * sec, 8 * sec}},
		{frontier.FailureDNS, []time.Duration{sec, sec, sec}},
		{frontier.FailureServer, []time.Duration{sec, sec, sec}},
		{frontier.FailureOther, []time.Duration{sec, sec, sec}},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			o := frontier.Options{Delay: frontier.FixedDelay(sec), Backoff: frontier.Backoff{Jitter: 1e-9, Max: time.Minute}}
			inBothWorlds(t, o, func(t *testing.T, w *world) {
				w.addMany("a.example", 10)
				l := w.next()
				for i, want := range c.gaps {
					require.Equal(t, want, w.gap(&l, failing(c.kind)), "after failure %d", i+1)
				}
			})
		})
	}
}

func TestJitterOnlyLengthens(t *testing.T) {
	w := newWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), Backoff: frontier.Backoff{Base: 10 * sec, Jitter: 0.5}, Quarantine: frontier.Quarantine{Disabled: true}})
	w.addMany("a.example", 100)
	l := w.next()
	require.NoError(t, w.f.Done(l, failing(frontier.FailureTooMany)))
	l = w.next()
	var least, most time.Duration = time.Hour, 0
	for range 50 {
		gap := w.gap(&l, frontier.Outcome{})
		least, most = min(least, gap), max(most, gap)
	}
	require.GreaterOrEqual(t, least, 10*sec)
	require.LessOrEqual(t, most, 15*sec)
	require.Greater(t, most-least, 2*sec)
}

// The gap of the back-off holds after every contact, and of the delay, the
// Crawl-delay, Retry-After and the back-off the latest wins.
func TestTheLatestClockWins(t *testing.T) {
	for _, c := range []struct {
		name              string
		delay, crawl, ask time.Duration
		want              time.Duration
		why               frontier.Reason
	}{
		{"back-off", 0, 0, 0, 4 * sec, frontier.ReasonBackoff},
		{"Retry-After of 0 is none", sec, 0, 0, 4 * sec, frontier.ReasonBackoff},
		{"a negative one is none", sec, 0, -time.Hour, 4 * sec, frontier.ReasonBackoff},
		{"a short one cancels nothing", sec, sec, 3 * sec, 4 * sec, frontier.ReasonBackoff},
		{"a long one holds", sec, sec, 9 * sec, 9 * sec, frontier.ReasonRetryAfter},
		{"an absurd one holds for 30 days", sec, sec, 1 << 62, 720 * time.Hour, frontier.ReasonRetryAfter},
		{"Crawl-delay", sec, 7 * sec, 6 * sec, 7 * sec, frontier.ReasonCrawlDelay},
		{"delay", 8 * sec, 7 * sec, 6 * sec, 8 * sec, frontier.ReasonDelay},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(c.delay), Backoff: exactBackoff}, func(t *testing.T, w *world) {
				w.addMany("a.example", 9)
				l := w.next()
				w.gap(&l, failing(frontier.FailureConnect))
				o := failing(frontier.FailureTooMany)
				o.RetryAfter, o.CrawlDelay = c.ask, c.crawl
				end := w.at()
				require.NoError(t, w.f.Done(l, o))
				x := w.info("a.example")
				require.Equal(t, c.why, x.Reason)
				require.Equal(t, frontier.BackoffState{Step: 2, Gap: 4 * sec, Failures: 2}, x.Backoff)
				l = w.next()
				require.Equal(t, c.want, w.at()-end)
				if c.want < time.Hour {
					require.Equal(t, max(4*sec, c.delay, c.crawl), w.gap(&l, frontier.Outcome{}), "after a good contact")
				}
			})
		})
	}
}

// A step is taken back after ForgiveAfter without a failure, or 200 gaps.
func TestBackoffIsForgiven(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(sec), Backoff: frontier.Backoff{Jitter: 1e-9, ForgiveAfter: 10 * time.Minute}}
	inBothWorlds(t, o, func(t *testing.T, w *world) {
		w.addMany("a.example", 1500)
		l := w.next()
		w.gap(&l, failing(frontier.FailureTooMany))
		contacts := func(gap time.Duration) (n int) {
			for ; w.gap(&l, frontier.Outcome{}) == gap; n++ {
			}
			return n
		}
		require.Equal(t, 299, contacts(2*sec), "the contact that ends after 600 s is left alone for a second only")
		require.EqualValues(t, 0, w.f.Stats().BackedOff)
		require.Equal(t, 2*sec, w.gap(&l, failing(frontier.FailureTooMany)))
		require.Equal(t, 1, w.info("a.example").Backoff.Relapses)
		require.Equal(t, 599, contacts(2*sec), "twice as long after a relapse")
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
		500 * ms, sec + 1, 1500 * ms, 2 * sec, 3 * sec, 5 * sec, 8 * sec, 10 * sec, 17 * sec, 30 * sec, 45 * sec, time.Minute, 90 * sec, 2 * time.Minute,
	} {
		kind := []frontier.Failure{frontier.FailureTooMany, frontier.FailureUnavailable}[i%2]
		t.Run(fmt.Sprint(gap, ", ", kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, frontier.Options{})
			s := &defended{gap: gap}
			settled := max(time.Minute, 6*gap)
			var early, late, refusedEarly, refusedLate, urls int
			for w.at() < settled+2000*max(gap, sec) {
				if w.f.Stats().Waiting == 0 {
					urls++
					w.addMany(fmt.Sprintf("a.example/%d", urls), 500)
				}
				l := w.next()
				start := w.clk.Now()
				refused := s.refuses(start, start.Add(20*ms))
				o := frontier.Outcome{}
				if refused {
					o = failing(kind)
				}
				if w.at() < settled {
					early, refusedEarly = early+1, refusedEarly+btoi(refused)
				} else {
					late, refusedLate = late+1, refusedLate+btoi(refused)
				}
				w.fetched(l, 20*ms, o)
			}
			t.Logf("%d of %d refused in the first %v, %d of %d later", refusedEarly, early, settled, refusedLate, late)
			require.Less(t, float64(refusedLate), 0.01*float64(late))
			require.LessOrEqual(t, refusedEarly, 10)
		})
	}
}

// A server that takes only so many contacts at once refuses little, too, and is
// used for what it gives.
func TestServersWithFewConnectionsRefuseLittle(t *testing.T) {
	for _, limit := range []int{1, 2, 3, 4, 7, 8} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, frontier.Options{HostConcurrency: 8, Delay: frontier.FixedDelay(500 * ms)})
			type contact struct {
				lease frontier.Lease
				end   time.Time
				o     frontier.Outcome
			}
			var out []contact // by their ends
			var early, late, refusedEarly, refusedLate, added int
			const hours, fetch = 4, 2 * sec
			for w.at() < hours*time.Hour {
				if w.f.Stats().Waiting == 0 {
					added++
					w.addMany(fmt.Sprintf("a.example/%d", added), 500)
				}
				l, at, err := w.f.TryNext()
				if err == nil {
					x := contact{l, w.clk.Now().Add(fetch), frontier.Outcome{}}
					refused := len(out) >= limit
					if refused {
						x.o, x.end = failing(frontier.FailureTooMany), w.clk.Now().Add(10*ms)
					}
					if w.at() < time.Minute {
						early, refusedEarly = early+1, refusedEarly+btoi(refused)
					} else {
						late, refusedLate = late+1, refusedLate+btoi(refused)
					}
					out = append(out, x)
					sort.SliceStable(out, func(a, b int) bool { return out[a].end.Before(out[b].end) })
					continue
				}
				require.ErrorIs(t, err, frontier.ErrNotDue)
				if len(out) > 0 && (at.IsZero() || !out[0].end.After(at)) {
					w.clk.Set(out[0].end)
					require.NoError(t, w.f.Done(out[0].lease, out[0].o))
					out = out[1:]
					continue
				}
				w.clk.Set(at)
			}
			for _, x := range out {
				w.clk.Set(x.end)
				require.NoError(t, w.f.Done(x.lease, x.o))
			}
			used := float64(late) / (hours * 3600 / 2.5 * float64(limit))
			t.Logf("%d of %d refused in the first minute, %d of %d later; %.0f %% of what it gives", refusedEarly, early, refusedLate, late, 100*used)
			require.LessOrEqual(t, float64(refusedLate), 0.01*float64(late))
			require.Greater(t, used, 0.3)
		})
	}
}

// Failures that were under way together raise one step, and are one of the
// failures in a row.
func TestFailuresUnderWayTogetherCountOnce(t *testing.T) {
	for _, kind := range failureKinds {
		t.Run(kind.String(), func(t *testing.T) {
			inBothWorlds(t, frontier.Options{HostConcurrency: 100, Delay: frontier.FixedDelay(sec), Backoff: exactBackoff}, func(t *testing.T, w *world) {
				w.addMany("a.example", 300)
				leases := make([]frontier.Lease, 100)
				for i := range leases {
					leases[i] = w.nextIs(0, fmt.Sprintf("http://a.example/%d", i))
				}
				for _, l := range leases {
					w.fetched(l, 10*ms, failing(kind))
				}
				x := w.info("a.example").Backoff
				require.Equal(t, 1, x.Failures)
				if kind < frontier.FailureConnect || kind == frontier.FailureServer {
					require.Zero(t, x.Step)
					return
				}
				require.Equal(t, 1, x.Step)
				l := w.next()
				require.Equal(t, sec+2*sec, w.at(), "after the last of them")
				w.nothingUntil(w.at() + sec)
				require.NoError(t, w.f.Done(l, failing(kind)))
				require.Equal(t, 2, w.info("a.example").Backoff.Step)
			})
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A host that was down for a while is crawled as before soon after it returned.
func TestAnOutageIsForgivenSoon(t *testing.T) {
	for _, kind := range []frontier.Failure{frontier.FailureConnect, frontier.FailureUnavailable} {
		for _, outage := range []time.Duration{10 * sec, time.Minute, 3 * time.Minute, time.Hour} {
			t.Run(fmt.Sprint(kind, " ", outage), func(t *testing.T) {
				w := newWorld(t, frontier.Options{Delay: frontier.FixedDelay(sec)})
				w.addMany("a.example", 5000)
				var back time.Duration
				for back == 0 || w.at() < back+20*time.Minute {
					l, o := w.next(), frontier.Outcome{}
					if w.at() < outage {
						o = failing(kind)
					} else if back == 0 {
						back = w.at()
					}
					w.fetched(l, 20*ms, o)
				}
				require.LessOrEqual(t, w.info("a.example").Backoff.Step, 1)
			})
		}
	}
}

func TestQuarantine(t *testing.T) {
	var told []frontier.Entry
	o := frontier.Options{
		Delay: frontier.FixedDelay(sec), Backoff: exactBackoff, Retry: frontier.Retries(2, 0),
		OnGiveUp: func(e frontier.Entry, _ frontier.Outcome) { told = append(told, e) },
	}
	for _, kind := range failureKinds {
		t.Run(kind.String(), func(t *testing.T) {
			inBothWorlds(t, o, func(t *testing.T, w *world) {
				told = nil
				w.addMany("a.example", 20)
				l := w.next()
				for range 7 {
					w.gap(&l, failing(kind))
				}
				require.Zero(t, w.f.Stats().Quarantined)
				require.Equal(t, 10*time.Minute, w.gap(&l, failing(kind)), "after 8 failures in a row")
				require.EqualValues(t, 1, w.f.Stats().Quarantined)
				for _, want := range []time.Duration{20, 40, 80, 160, 320, 640, 1280, 1440, 1440} {
					end := w.at()
					require.NoError(t, w.f.Done(l, failing(kind)))
					require.Equal(t, frontier.ReasonQuarantine, w.info("a.example").Reason)
					l = w.next()
					require.Equal(t, want*time.Minute, w.at()-end)
				}
				require.Empty(t, told, "its URLs are kept")
				require.LessOrEqual(t, w.gap(&l, frontier.Outcome{}), 10*time.Minute, "everything continues")
				require.Zero(t, w.f.Stats().Quarantined)
				require.NoError(t, w.f.Done(l, frontier.Outcome{}))
				seen := map[string]bool{}
				for len(seen) < 18 {
					l := w.next()
					require.LessOrEqual(t, l.Attempt, 2, "probes do not count as tries")
					seen[l.Entry.URL] = true
					require.NoError(t, w.f.Done(l, frontier.Outcome{}))
				}
				w.over()
				require.Empty(t, told)
			})
		})
	}
}

func TestGoodContactsKeepAHostOutOfQuarantine(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(sec)}, func(t *testing.T, w *world) {
		w.addMany("a.example", 100)
		for i := range 50 {
			o := failing(frontier.FailureServer)
			if i%8 == 7 {
				o = frontier.Outcome{Result: frontier.Gone}
			}
			w.fetched(w.next(), 0, o)
		}
		require.Zero(t, w.f.Stats().Quarantined)
	})
}

func TestExpiredLeasesAreNotTheHostsFault(t *testing.T) {
	inBothWorlds(t, frontier.Options{LeaseTime: sec, Delay: frontier.FixedDelay(sec), Retry: frontier.Retries(20, 0)}, func(t *testing.T, w *world) {
		w.add("http://a.example/")
		for range 12 {
			w.next()
			w.clk.Advance(sec)
		}
		w.f.Stats()
		require.Zero(t, w.info("a.example").Backoff)
	})
}

// What failures did to a host outlives a clean restart and a crash, and the host
// is not contacted earlier than without.
func TestBackoffSurvives(t *testing.T) {
	for failures := 1; failures <= 10; failures++ {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprint(failures, " failures, killed ", kill), func(t *testing.T) {
				w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(sec), Backoff: exactBackoff}, spill.Options{})
				w.addMany("a.example", 20)
				for i := range failures {
					l := w.next()
					require.NoError(t, w.f.Done(l, failing(frontier.FailureTooMany)))
					_ = i
				}
				x := w.info("a.example")
				if kill {
					w = w.killed()
				} else {
					w.reopen()
				}
				y := w.info("a.example")
				require.Equal(t, x.Backoff, y.Backoff)
				require.False(t, y.Due.Before(x.Due))
				if !kill {
					require.Equal(t, x.Due, y.Due)
					require.Equal(t, x.Reason, y.Reason)
				}
				w.next()
				require.False(t, w.clk.Now().Before(x.Due))
			})
		}
	}
}

// A host in trouble leaves memory like any other, and comes back as it was.
func TestHostsInTroubleLeaveMemory(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(sec), Backoff: exactBackoff, Retry: frontier.Retries(1, 0), KeepOpen: true}, spill.Options{})
	w.add("http://a.example/1")
	w.fetched(w.next(), 0, failing(frontier.FailureTooMany))
	w.clk.Advance(time.Minute)
	w.asleep()
	require.False(t, w.f.Resident("a.example"))
	require.Equal(t, frontier.BackoffState{Step: 1, Gap: 2 * sec, Failures: 1}, w.info("a.example").Backoff)
	require.EqualValues(t, 0, w.f.Stats().BackedOff)
	w.add("http://a.example/2", "http://a.example/3")
	require.EqualValues(t, 1, w.f.Stats().BackedOff)
	l := w.next()
	require.Equal(t, 4*sec, w.gap(&l, failing(frontier.FailureTooMany)))
}

// Without a Spill hosts in trouble are forgotten a week after their last failure,
// or a day if that slowed them down no more.
func TestTroubleIsForgottenInMemory(t *testing.T) {
	for _, c := range []struct {
		kind frontier.Failure
		kept time.Duration
	}{{frontier.FailureTooMany, 7 * 24 * time.Hour}, {frontier.FailureServer, 24 * time.Hour}} {
		t.Run(c.kind.String(), func(t *testing.T) {
			w := newWorld(t, frontier.Options{Retry: frontier.Retries(1, 0), KeepOpen: true})
			w.add("http://a.example/")
			w.fetched(w.next(), 0, failing(c.kind))
			w.until(c.kept - 1)
			require.EqualValues(t, 1, w.f.Stats().Hosts)
			w.until(c.kept)
			require.EqualValues(t, 0, w.f.Stats().Hosts)
		})
	}
}

func TestBadBackoffsAreRefused(t *testing.T) {
	for _, c := range []struct {
		o     frontier.Options
		fault string
	}{
		{frontier.Options{Backoff: frontier.Backoff{Base: -1}}, "Backoff has Base -1ns and Max 10m0s; want 1ms <= Base <= Max <= 720h0m0s"},
		{frontier.Options{Backoff: frontier.Backoff{Base: sec, Max: ms}}, "Backoff has Base 1s and Max 1ms"},
		{frontier.Options{Backoff: frontier.Backoff{Max: 721 * time.Hour}}, "Max 721h0m0s"},
		{frontier.Options{Backoff: frontier.Backoff{Jitter: 1.5}}, "Backoff.Jitter is 1.5; want 0 to 1"},
		{frontier.Options{Backoff: frontier.Backoff{ForgiveAfter: -1}}, "Backoff.ForgiveAfter is -1ns; want 0 to 720h0m0s"},
		{frontier.Options{Quarantine: frontier.Quarantine{After: -1}}, "Quarantine.After is -1; want 1 to 10000"},
		{frontier.Options{Quarantine: frontier.Quarantine{Probe: 2 * sec, MaxProbe: sec}}, "Quarantine has Probe 2s and MaxProbe 1s"},
	} {
		_, err := frontier.Open(t.Context(), c.o)
		require.ErrorContains(t, err, c.fault)
	}
}

func TestTroubleIsTold(t *testing.T) {
	var told []frontier.Event
	w := newWorld(t, frontier.Options{
		Delay: frontier.FixedDelay(sec), Backoff: frontier.Backoff{Jitter: 1e-9, Max: 4 * sec}, Quarantine: frontier.Quarantine{After: 3},
		OnEvent: func(e frontier.Event) { told = append(told, e) },
	})
	w.addMany("a.example", 20)
	l := w.next()
	for range 5 {
		w.gap(&l, failing(frontier.FailureTooMany))
	}
	w.gap(&l, frontier.Outcome{})
	require.NoError(t, w.f.Done(l, frontier.Outcome{}))
	require.NoError(t, w.f.Close()) // tells what is left
	want := []struct {
		kind  frontier.EventKind
		count int64
	}{
		{frontier.EventHostBackedOff, 1}, {frontier.EventHostBackedOff, 2}, {frontier.EventHostQuarantined, 3}, {frontier.EventHostReturned, 0},
	}
	require.Len(t, told, len(want))
	for i, x := range want {
		require.Equal(t, x.kind, told[i].Kind)
		require.Equal(t, x.count, told[i].Count)
		require.Equal(t, "a.example", told[i].Host)
	}
	require.Equal(t, dawn.Add(2*sec+4*sec+10*time.Minute), told[2].Until)
}

// A server with a quota per minute is found out like one with a gap.
func TestServersWithAQuotaRefuseLittle(t *testing.T) {
	for _, quota := range []int{3, 10, 30} {
		t.Run(fmt.Sprint(quota), func(t *testing.T) {
			w := newWorld(t, frontier.Options{})
			var minute, used, late, refusedLate, added int
			for w.at() < 24*time.Hour {
				if w.f.Stats().Waiting == 0 {
					added++
					w.addMany(fmt.Sprintf("a.example/%d", added), 500)
				}
				l, o := w.next(), frontier.Outcome{}
				if m := int(w.at() / time.Minute); m != minute {
					minute, used = m, 0
				}
				if used++; used > quota {
					o = failing(frontier.FailureTooMany)
				}
				if w.at() > 10*time.Minute {
					late, refusedLate = late+1, refusedLate+btoi(used > quota)
				}
				w.fetched(l, 20*ms, o)
			}
			t.Logf("%d of %d refused after the first 10 minutes", refusedLate, late)
			require.Less(t, float64(refusedLate), 0.01*float64(late))
		})
	}
}
