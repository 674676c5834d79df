package politeness

import (
	"context"
	"fmt"
	"math"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

func TestHostIsLeftAloneForTheFixedDelay(t *testing.T) {
	for _, delay := range []time.Duration{250 * time.Millisecond, 1900 * time.Millisecond, 2900 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(delay)}, func(t *testing.T, w *harness.World) {
				urls := harness.UrlsOf("a.example", 100) // three quanta
				w.Add(urls...)
				var due time.Duration
				for i, u := range urls {
					l := w.NextIs(due, u)
					w.Fetched(l, time.Duration(i*i)*time.Millisecond, frontier.Outcome{})
					due = w.At() + delay
				}
				w.Over()
			})
		})
	}
}

func TestHostsDoNotWaitForEachOther(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(1900 * time.Millisecond)}, func(t *testing.T, w *harness.World) {
		for round := range 3 {
			for h := range 50 {
				w.Add(fmt.Sprintf("http://h%02d.example/%d", h, round))
			}
		}
		for round := range 3 {
			for h := range 50 { // host h is fetched at h ms after the round's start, in no time
				l := w.NextIs(time.Duration(round)*1900*time.Millisecond+time.Duration(h)*time.Millisecond, fmt.Sprintf("http://h%02d.example/%d", h, round))
				w.Fetched(l, 0, frontier.Outcome{})
				if round == 0 {
					w.Clock.Advance(time.Millisecond)
				}
			}
		}
		w.Over()
	})
}

func TestHostIsLeftAloneForAMultipleOfTheFetch(t *testing.T) {
	for _, c := range []struct {
		name        string
		fetch, wait time.Duration
	}{
		{"no time at all, so the minimum", 0, time.Second},
		{"ten times it is below the minimum", 99 * time.Millisecond, time.Second},
		{"ten times it is the minimum", 100 * time.Millisecond, time.Second},
		{"ten times it is just above the minimum", 101 * time.Millisecond, 1010 * time.Millisecond},
		{"between the bounds", 1234 * time.Millisecond, 12340 * time.Millisecond},
		{"ten times it is the maximum", 3 * time.Second, 30 * time.Second},
		{"ten times it is above the maximum", 3001 * time.Millisecond, 30 * time.Second},
		{"far above the maximum", 9 * time.Minute, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
				w.Add(harness.UrlsOf("a.example", 2)...)
				w.Fetched(w.NextIs(0, "http://a.example/1"), c.fetch, frontier.Outcome{})
				l := w.NextIs(c.fetch+c.wait, "http://a.example/2")
				w.Fetched(l, 0, frontier.Outcome{})
			})
		})
	}
}

// overflowing is a policy with a mistake: its delays are negative.
type overflowing struct{ max time.Duration }

func (d overflowing) Delay(string, frontier.Outcome) time.Duration { return -1 << 62 }
func (d overflowing) Max() time.Duration                           { return d.max }

func TestNegativeDelayIsTheLongest(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: overflowing{7 * time.Second}, GroupDelay: overflowing{9 * time.Second}}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 2)...)
		w.Add("http://b.example/1", "http://c.example/1")
		require.NoError(t, w.F.Assign("b.example", "g"))
		require.NoError(t, w.F.Assign("c.example", "g"))
		for range 2 {
			w.Fetched(w.Next(), 0, frontier.Outcome{})
		}
		w.Fetched(w.NextIs(7*time.Second, "http://a.example/2"), 0, frontier.Outcome{})
		w.Fetched(w.NextIs(9*time.Second, "http://c.example/1"), 0, frontier.Outcome{})
	})
}

func (overflowing) Retry(frontier.Entry, int, frontier.Outcome) (time.Duration, bool) {
	return -1 << 62, true
}

// A negative wait for a retry is none: the host's delay applies as always.
func TestNegativeWaitForARetryIsNone(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(7 * time.Second), Retry: overflowing{}}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/")
		w.Fetched(w.Next(), 0, harness.Failing(frontier.FailureOther))
		require.Equal(t, 2, w.NextIs(7*time.Second, "http://a.example/").Attempt)
	})
}

func TestDelayCountsFromTheEndOfTheContact(t *testing.T) {
	const fetch = 400 * time.Millisecond
	for _, c := range []struct {
		name    string
		outcome func(leased time.Time) frontier.Outcome
		due     time.Duration // Done is called 2 s after the lease
	}{
		{"ended now, took as long as the lease was out", func(time.Time) frontier.Outcome {
			return frontier.Outcome{}
		}, 2*time.Second + 20*time.Second},
		{"ended now, took less", func(time.Time) frontier.Outcome {
			return frontier.Outcome{Duration: fetch}
		}, 2*time.Second + 4*time.Second},
		{"ended before Done", func(t time.Time) frontier.Outcome {
			return frontier.Outcome{Ended: t.Add(fetch)}
		}, fetch + 4*time.Second},
		{"ended before Done, took less", func(t time.Time) frontier.Outcome {
			return frontier.Outcome{Ended: t.Add(fetch), Duration: 300 * time.Millisecond}
		}, fetch + 3*time.Second},
		{"an end in the future counts as now", func(t time.Time) frontier.Outcome {
			return frontier.Outcome{Ended: t.Add(time.Hour), Duration: fetch}
		}, 2*time.Second + 4*time.Second},
		{"an end before the lease, by another clock, counts as now", func(t time.Time) frontier.Outcome {
			return frontier.Outcome{Ended: t.Add(-time.Hour), Duration: fetch}
		}, 2*time.Second + 4*time.Second},
		{"a negative duration counts as none given", func(t time.Time) frontier.Outcome {
			return frontier.Outcome{Ended: t.Add(fetch), Duration: -1}
		}, fetch + 4*time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
				w.Add(harness.UrlsOf("a.example", 2)...)
				l := w.NextIs(0, "http://a.example/1")
				w.Fetched(l, 2*time.Second, c.outcome(l.LeasedAt))
				w.NextIs(c.due, "http://a.example/2")
			})
		})
	}
}

func TestEveryContactMovesTheClockAndNothingElseDoes(t *testing.T) {
	const delay = 1900 * time.Millisecond
	for _, c := range []struct {
		name    string
		outcome frontier.Outcome
		due     time.Duration // of the host, whose fetch lasts 100 ms
		again   bool          // the first URL comes first again
	}{
		{"visited", frontier.Outcome{}, 100*time.Millisecond + delay, false},
		{"changed", frontier.Outcome{Result: frontier.Changed}, 100*time.Millisecond + delay, false},
		{"unchanged", frontier.Outcome{Result: frontier.Unchanged}, 100*time.Millisecond + delay, false},
		{"gone", frontier.Outcome{Result: frontier.Gone}, 100*time.Millisecond + delay, false},
		{"failed", frontier.Outcome{Result: frontier.Failed}, 100*time.Millisecond + delay, false},
		{"denied after a contact", frontier.Outcome{Result: frontier.Denied}, 100*time.Millisecond + delay, false},
		{"denied without a contact", frontier.Outcome{Result: frontier.Denied, Uncontacted: true}, 100 * time.Millisecond, false},
		{"requeued after a contact", frontier.Outcome{Result: frontier.Requeue}, 100*time.Millisecond + delay, true},
		{"requeued without a contact", harness.Requeue, 100 * time.Millisecond, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(delay)}, func(t *testing.T, w *harness.World) {
				w.Add(harness.UrlsOf("a.example", 2)...)
				w.Fetched(w.NextIs(0, "http://a.example/1"), 100*time.Millisecond, c.outcome)
				want := "http://a.example/2"
				if c.again {
					want = "http://a.example/1"
				}
				require.Equal(t, 1, w.NextIs(c.due, want).Attempt)
			})
		})
	}
}

func TestRetryAfterHoldsTheHost(t *testing.T) {
	const delay = 2900 * time.Millisecond
	for _, c := range []struct {
		name    string
		outcome frontier.Outcome
		due     time.Duration // of the host, whose fetch lasts 100 ms
	}{
		{"longer than the delay", frontier.Outcome{RetryAfter: 7 * time.Second}, 7100 * time.Millisecond},
		{"shorter than the delay", frontier.Outcome{RetryAfter: time.Second}, 3000 * time.Millisecond},
		{"with a failure", frontier.Outcome{Result: frontier.Failed, RetryAfter: 31 * time.Second}, 31100 * time.Millisecond},
		{"beyond the time for which a host is bound", frontier.Outcome{RetryAfter: time.Hour}, time.Hour + 100*time.Millisecond},
		{"a day and more", frontier.Outcome{RetryAfter: 25 * time.Hour}, 25*time.Hour + 100*time.Millisecond},
		{"at most a month", frontier.Outcome{RetryAfter: 365 * 24 * time.Hour}, 30*24*time.Hour + 100*time.Millisecond},
		{"without end", frontier.Outcome{RetryAfter: math.MaxInt64}, 30*24*time.Hour + 100*time.Millisecond},
		{"negative", frontier.Outcome{RetryAfter: -time.Hour}, 3000 * time.Millisecond},
		{"of an earlier answer, under a lease without a contact", frontier.Outcome{
			Result: frontier.Denied, Uncontacted: true, RetryAfter: 7 * time.Second,
		}, 7100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(delay)}, func(t *testing.T, w *harness.World) {
				w.Add(harness.UrlsOf("a.example", 2)...)
				w.Fetched(w.NextIs(0, "http://a.example/1"), 100*time.Millisecond, c.outcome)
				w.NextIs(c.due, "http://a.example/2")
			})
		})
	}
}

func TestRetryAfterOutlivesLaterContacts(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 2)...)
		l := w.NextIs(0, "http://a.example/1")
		late := l
		w.Until(10 * time.Minute) // its lease ends by deadline
		w.Add("http://b.example/1")
		w.NextIs(10*time.Minute, "http://b.example/1")
		l = w.NextIs(10*time.Minute+time.Second, "http://a.example/2")
		require.ErrorIs(t, w.F.Done(late, frontier.Outcome{RetryAfter: time.Hour}), frontier.ErrNotLeased)
		w.Fetched(l, time.Second, frontier.Outcome{})
		w.NothingUntil(20 * time.Minute) // b's lease ends, and it may be had a second later
		require.Equal(t, "http://b.example/1", w.Next().Entry.URL)
		w.NothingUntil(30*time.Minute + time.Second)
		require.Equal(t, "http://b.example/1", w.Next().Entry.URL)
		w.NextIs(70*time.Minute+time.Second, "http://a.example/1")
	})
}

func TestCrawlDelayIsTheLeastDelay(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		urls := harness.UrlsOf("a.example", 8)
		w.Add(urls...)
		due := time.Duration(0)
		for i, c := range []struct {
			fetch   time.Duration
			outcome frontier.Outcome
			wait    time.Duration
		}{
			{200 * time.Millisecond, frontier.Outcome{CrawlDelay: 5 * time.Second}, 5 * time.Second},
			{200 * time.Millisecond, frontier.Outcome{}, 5 * time.Second}, // it is remembered
			{600 * time.Millisecond, frontier.Outcome{}, 6 * time.Second}, // the longest holds
			{200 * time.Millisecond, frontier.Outcome{RetryAfter: 9 * time.Second}, 9 * time.Second},
			{200 * time.Millisecond, frontier.Outcome{CrawlDelay: 90*time.Second + 1}, 90*time.Second + time.Millisecond}, // rounded up
			{200 * time.Millisecond, frontier.Outcome{CrawlDelay: 3 * time.Second}, 3 * time.Second},
			{200 * time.Millisecond, frontier.Outcome{CrawlDelay: frontier.NoCrawlDelay}, 2 * time.Second},
		} {
			l := w.NextIs(due, urls[i])
			w.Fetched(l, c.fetch, c.outcome)
			due = w.At() + c.wait
		}
		w.NextIs(due, urls[7])
	})
}

func TestCrawlDelayOutlivesTheHostsURLs(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{KeepOpen: true}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		w.Fetched(w.NextIs(0, "http://a.example/1"), 0, frontier.Outcome{CrawlDelay: 40 * time.Second})
		w.Until(time.Hour)
		w.Add("http://a.example/2", "http://a.example/3")
		w.Fetched(w.NextIs(time.Hour, "http://a.example/2"), 0, frontier.Outcome{})
		w.NextIs(time.Hour+40*time.Second, "http://a.example/3")
	})
}

// groupRules are a host delay of 1 s and a group delay of 5 s.
var groupRules = frontier.Options{
	Delay:      frontier.FixedDelay(time.Second),
	GroupDelay: frontier.FixedDelay(5 * time.Second),
}

func TestHostsOfAGroupTakeTurns(t *testing.T) {
	harness.InBothWorlds(t, groupRules, func(t *testing.T, w *harness.World) {
		for _, h := range []string{"a", "b", "c"} {
			w.Add(harness.UrlsOf(h+".example", 2)...)
		}
		w.Add("http://other.example/1")
		a := w.NextIs(0, "http://a.example/1")
		require.NoError(t, w.F.Join(&a, "g"))
		require.Equal(t, "g", a.Group)
		for _, u := range []string{"http://b.example/1", "http://c.example/1"} {
			l := w.NextIs(0, u)
			require.ErrorIs(t, w.F.Join(&l, "g"), frontier.ErrGroupBusy)
			require.Equal(t, "g", l.Group)
			require.NoError(t, w.F.Done(l, harness.Requeue))
		}
		w.NextIs(0, "http://other.example/1") // no member waits for another's slot
		w.Fetched(a, 300*time.Millisecond, frontier.Outcome{})

		// The group is free 5 s after each end, whichever host is due by then.
		for i, u := range []string{"http://b.example/1", "http://c.example/1", "http://a.example/2", "http://b.example/2", "http://c.example/2"} {
			l := w.NextIs(time.Duration(i+1)*5300*time.Millisecond, u)
			require.Equal(t, "g", l.Group)
			require.Equal(t, 1, l.Attempt)
			require.NoError(t, w.F.Join(&l, "g"), "the lease has the slot already")
			w.Fetched(l, 300*time.Millisecond, frontier.Outcome{})
		}
		require.EqualValues(t, 1, w.F.Stats().Groups)
	})
}

func TestHostOfAGroupIsOwedItsOwnDelayToo(t *testing.T) {
	harness.InBothWorlds(t, groupRules, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 2)...)
		w.Add("http://b.example/1")
		a := w.NextIs(0, "http://a.example/1")
		require.NoError(t, w.F.Join(&a, "g"))
		b := w.NextIs(0, "http://b.example/1")
		require.ErrorIs(t, w.F.Join(&b, "g"), frontier.ErrGroupBusy)
		require.NoError(t, w.F.Done(b, harness.Requeue))
		w.Fetched(a, 0, frontier.Outcome{RetryAfter: 42 * time.Second})
		w.Fetched(w.NextIs(5*time.Second, "http://b.example/1"), 0, frontier.Outcome{}) // a's Retry-After is not b's
		w.NextIs(42*time.Second, "http://a.example/2")
	})
}

func TestBusyGroupIsFreeWhenItsLeaseIsHandedBack(t *testing.T) {
	harness.InBothWorlds(t, groupRules, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://b.example/1")
		a := w.NextIs(0, "http://a.example/1")
		require.NoError(t, w.F.Join(&a, "g"))
		b := w.NextIs(0, "http://b.example/1")
		require.ErrorIs(t, w.F.Join(&b, "g"), frontier.ErrGroupBusy)
		require.NoError(t, w.F.Done(b, harness.Requeue))
		w.Fetched(a, 250*time.Millisecond, harness.Requeue) // no byte was sent
		w.NextIs(250*time.Millisecond, "http://b.example/1")
	})
}

func TestLeaseThatChangesItsGroupHoldsBackBoth(t *testing.T) {
	harness.InBothWorlds(t, groupRules, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 2)...)
		w.Add(harness.UrlsOf("b.example", 2)...)
		w.Add(harness.UrlsOf("c.example", 2)...)
		for _, x := range [][2]string{{"a", "old"}, {"b", "old"}, {"c", "new"}} {
			l := w.Next()
			require.Equal(t, "http://"+x[0]+".example/1", l.Entry.URL)
			if w.F.Join(&l, x[1]) != nil {
				require.NoError(t, w.F.Done(l, harness.Requeue))
				continue
			}
			w.Fetched(l, 0, frontier.Outcome{})
		}
		b := w.NextIs(5*time.Second, "http://b.example/1")
		c := w.NextIs(5*time.Second, "http://c.example/2")
		w.Fetched(c, 0, frontier.Outcome{})
		require.ErrorIs(t, w.F.Join(&b, "new"), frontier.ErrGroupBusy)
		require.NoError(t, w.F.Done(b, harness.Requeue))
		a := w.NextIs(5*time.Second, "http://a.example/2") // old is free: b was not contacted
		require.NoError(t, w.F.Join(&a, "third"))
		w.Fetched(a, time.Second, frontier.Outcome{})
		w.NextIs(10*time.Second, "http://b.example/1") // when new is free
	})
}

func TestExpiredLeaseHoldsItsGroup(t *testing.T) {
	harness.InBothWorlds(t, groupRules, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://b.example/1")
		a := w.NextIs(0, "http://a.example/1")
		require.NoError(t, w.F.Join(&a, "g"))
		b := w.NextIs(0, "http://b.example/1")
		require.ErrorIs(t, w.F.Join(&b, "g"), frontier.ErrGroupBusy)
		require.NoError(t, w.F.Done(b, harness.Requeue))
		b = w.NextIs(10*time.Minute+5*time.Second, "http://b.example/1")
		w.Fetched(b, 0, frontier.Outcome{})
		require.Equal(t, 2, w.NextIs(10*time.Minute+10*time.Second, "http://a.example/1").Attempt)
	})
}

func TestHandBackKeepsTheSlotAndTheURLItsPlace(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(1900 * time.Millisecond)}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 2)...)
		page := w.NextIs(0, "http://a.example/1")
		robots, err := w.F.HandBack(page)
		require.NoError(t, err)
		require.True(t, robots.ContactOnly())
		require.Equal(t, "a.example", robots.Host)
		require.NotEqual(t, page.Token(), robots.Token())
		require.ErrorIs(t, w.F.Done(page, frontier.Outcome{}), frontier.ErrNotLeased)
		w.Until(600 * time.Millisecond)
		_, _, err = w.F.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue, "the host's slot is taken")
		require.NoError(t, w.F.Done(robots, frontier.Outcome{}))
		l := w.NextIs(2500*time.Millisecond, "http://a.example/1")
		require.Equal(t, 1, l.Attempt)
		w.Fetched(l, 0, frontier.Outcome{})
		w.NextIs(4400*time.Millisecond, "http://a.example/2")
	})
}

func TestHandedBackSlotEndsByItsOwnDeadline(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(1900 * time.Millisecond)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		page := w.NextIs(0, "http://a.example/1")
		w.Until(time.Minute)
		robots, err := w.F.HandBack(page)
		require.NoError(t, err)
		require.Equal(t, harness.Dawn.Add(11*time.Minute), robots.Deadline)
		l := w.NextIs(11*time.Minute+1900*time.Millisecond, "http://a.example/1")
		require.Equal(t, 1, l.Attempt, "the page was not tried")
	})
}

// The calls that wait are tested on the system's clock, in a bubble where it
// moves only when all are asleep.

func TestNextWakesExactlyWhenTheHostIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(2900 * time.Millisecond)})
		require.NoError(t, err)
		defer harness.Ended(t, f)
		for _, u := range harness.UrlsOf("a.example", 3) {
			_, err := f.Add(ctx, frontier.Entry{URL: u})
			require.NoError(t, err)
		}
		start := time.Now()
		l, err := f.Next(ctx)
		require.NoError(t, err)
		got := make(chan time.Duration, 2)
		var workers sync.WaitGroup
		for range 2 {
			workers.Go(func() {
				l, err := f.Next(ctx)
				if err == nil {
					got <- time.Since(start)
					time.Sleep(100 * time.Millisecond)
					err = f.Done(l, frontier.Outcome{})
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(400 * time.Millisecond)
		require.NoError(t, f.Done(l, frontier.Outcome{}))
		require.Equal(t, 3300*time.Millisecond, <-got)
		require.Equal(t, 6300*time.Millisecond, <-got)
		workers.Wait()
	})
}

func TestContactsComeBeforeURLsAndKeepTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(1900 * time.Millisecond)})
		require.NoError(t, err)
		defer harness.Ended(t, f)
		start := time.Now()
		order := make(chan string, 4)
		use := func(what string, l frontier.Lease, err error) {
			if err != nil {
				t.Error(err)
				return
			}
			order <- fmt.Sprintf("%s at %v", what, time.Since(start))
			time.Sleep(100 * time.Millisecond)
			if err := f.Done(l, frontier.Outcome{}); err != nil {
				t.Error(err)
			}
		}
		robots, err := f.Contact(ctx, "a.example") // a host without URLs
		require.NoError(t, err)
		require.True(t, robots.ContactOnly())
		require.Equal(t, "a.example", robots.Host)
		_, err = f.Add(ctx, frontier.Entry{URL: "http://a.example/1"})
		require.NoError(t, err)
		var workers sync.WaitGroup
		workers.Go(func() { l, err := f.Next(ctx); use("page", l, err) })
		synctest.Wait()
		for _, what := range []string{"first", "second"} {
			workers.Go(func() { l, err := f.Contact(ctx, "a.example"); use(what, l, err) })
			synctest.Wait()
		}
		left, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = f.Contact(left, "a.example") // goes away, and holds up no other call
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, f.Done(robots, frontier.Outcome{}))
		require.Equal(t, "first at 2.9s", <-order)
		require.Equal(t, "second at 4.9s", <-order)
		require.Equal(t, "page at 6.9s", <-order)
		workers.Wait()
	})
}

func TestContactWaitsForTheHostsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		f, err := frontier.Open(ctx, groupRules)
		require.NoError(t, err)
		defer harness.Ended(t, f)
		_, err = f.Add(ctx, frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://b.example/1"})
		require.NoError(t, err)
		a, err := f.Next(ctx)
		require.NoError(t, err)
		require.NoError(t, f.Join(&a, "g"))
		b, err := f.Next(ctx)
		require.NoError(t, err)
		require.ErrorIs(t, f.Join(&b, "g"), frontier.ErrGroupBusy)
		require.NoError(t, f.Done(b, harness.Requeue))
		start := time.Now()
		require.NoError(t, f.Done(a, frontier.Outcome{}))
		l, err := f.Contact(ctx, b.Host)
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, "g", l.Group)
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	})
}

func TestLeaseEndsAtItsDeadlineAsAFailedContact(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(2900 * time.Millisecond)}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 2)...)
		l := w.NextIs(0, "http://a.example/1")
		require.Equal(t, harness.Dawn.Add(10*time.Minute), l.Deadline)
		w.NothingUntil(10 * time.Minute)
		require.ErrorIs(t, w.F.Extend(&l, time.Minute), frontier.ErrNotLeased, "the deadline is not part of the lease")
		l = w.NextIs(10*time.Minute+2900*time.Millisecond, "http://a.example/2") // the other went to the tail
		require.EqualValues(t, 1, w.F.Stats().Expired)
		w.Fetched(l, 0, frontier.Outcome{})
		for attempt := 2; attempt <= 3; attempt++ { // and its deadline was the end of a contact
			l = w.Next()
			require.Equal(t, "http://a.example/1", l.Entry.URL)
			require.Equal(t, attempt, l.Attempt)
		}
		require.Equal(t, 20*time.Minute+3*2900*time.Millisecond, w.At())
		w.Until(time.Hour)
		w.Over()
		require.EqualValues(t, 1, w.F.Stats().GivenUp)
	})
}

func TestExpiredLeaseCountsAsAFetchUntilItsDeadline(t *testing.T) {
	o := frontier.Options{LeaseTime: 2 * time.Second, Delay: frontier.FactorDelay(10, time.Second, time.Minute)}
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		w.NextIs(0, "http://a.example/1")
		w.Until(5 * time.Second) // no call looks at the deadline itself
		w.NextIs(22*time.Second, "http://a.example/1")
	})
}

func TestLateDoneOnlyMovesTheClockLater(t *testing.T) {
	const delay = 2 * time.Second
	for _, c := range []struct {
		name string
		late frontier.Outcome
		due  time.Duration // of the host, whose lease ended at 10 s; the late Done comes at 11 s
	}{
		{"of a contact that ended later", frontier.Outcome{}, 13 * time.Second},
		{"of a contact that ended before the deadline", frontier.Outcome{Ended: harness.Dawn.Add(9 * time.Second)}, 12 * time.Second},
		{"with a Retry-After", frontier.Outcome{RetryAfter: time.Hour}, time.Hour + 11*time.Second},
		{"with a Retry-After without end", frontier.Outcome{RetryAfter: math.MaxInt64}, 30*24*time.Hour + 11*time.Second},
		{"with a Crawl-delay", frontier.Outcome{CrawlDelay: 7 * time.Second}, 18 * time.Second},
		{"without a contact", harness.Requeue, 12 * time.Second},
		{"with a Retry-After without a contact", frontier.Outcome{Result: frontier.Requeue, Uncontacted: true, RetryAfter: time.Hour}, time.Hour + 11*time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := frontier.Options{LeaseTime: 10 * time.Second, Delay: frontier.FixedDelay(delay)}
			harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
				w.Add(harness.UrlsOf("a.example", 2)...)
				l := w.NextIs(0, "http://a.example/1")
				w.Until(11 * time.Second)
				require.ErrorIs(t, w.F.Done(l, c.late), frontier.ErrNotLeased)
				w.NextIs(c.due, "http://a.example/2")
			})
		})
	}
}

func TestLateDoneMovesTheClockUnderTheNextLease(t *testing.T) {
	o := frontier.Options{LeaseTime: 10 * time.Second, Delay: frontier.FixedDelay(2 * time.Second)}
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 3)...)
		late := w.NextIs(0, "http://a.example/1")
		l := w.NextIs(12*time.Second, "http://a.example/2")
		w.Until(13 * time.Second)
		require.NoError(t, w.F.Done(l, frontier.Outcome{Ended: harness.Dawn.Add(12 * time.Second)}))
		require.ErrorIs(t, w.F.Done(late, frontier.Outcome{}), frontier.ErrNotLeased)
		w.NextIs(15*time.Second, "http://a.example/3")
	})
}

func TestExtendMovesTheDeadline(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(1900 * time.Millisecond)}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 2)...)
		l := w.NextIs(0, "http://a.example/1")
		w.Until(9 * time.Minute)
		require.NoError(t, w.F.Extend(&l, 20*time.Minute))
		require.Equal(t, harness.Dawn.Add(29*time.Minute), l.Deadline)
		w.NothingUntil(29*time.Minute - 1)
		require.NoError(t, w.F.Extend(&l, time.Second)) // it may be shortened too
		w.NextIs(29*time.Minute-1+2900*time.Millisecond, "http://a.example/2")
		require.ErrorIs(t, w.F.Extend(&l, time.Minute), frontier.ErrNotLeased)
	})
}

func TestClockThatJumpsBackMakesNoHostDueEarlier(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(1900 * time.Millisecond)}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 2)...)
		w.Until(time.Minute)
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Until(30 * time.Second)
		w.NothingUntil(30*time.Second + 1900*time.Millisecond)
		w.NextIs(30*time.Second+1900*time.Millisecond, "http://a.example/2")
	})
}

func TestPolitenessOnBadger(t *testing.T) {
	dir := t.TempDir()
	w := &harness.World{TB: t, Clock: simclock.New(harness.Dawn), Options: frontier.Options{}}
	w.Options.Clock = w.Clock
	open := func(dir string) {
		s, err := spill.Open(dir, spill.Options{MemoryBudget: 64 << 20})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		w.Options.Spill = s
		w.Open()
	}
	open(dir)
	beforeTheCrash(w)
	w.Reopen()
	w.Until(time.Minute)
	// What the kernel holds of the folder is what the death of the process leaves.
	left := t.TempDir()
	require.NoError(t, os.CopyFS(left, os.DirFS(dir)))
	open(left)
	afterTheCrash(w, time.Minute)
}
