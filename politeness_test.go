package frontier_test

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
	"github.com/seed-7440039f/frontier/internal/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

var requeue = frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}

// urlsOf returns n URLs of a host: http://host/1 and so on.
func urlsOf(host string, n int) []string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://%s/%d", host, i+1)
	}
	return urls
}

func TestHostIsLeftAloneForTheFixedDelay(t *testing.T) {
	for _, delay := range []time.Duration{250 * ms, 1900 * ms, 2900 * ms} {
		t.Run(delay.String(), func(t *testing.T) {
			inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(delay)}, func(t *testing.T, w *world) {
				urls := urlsOf("a.example", 100) // three quanta
				w.add(urls...)
				var due time.Duration
				for i, u := range urls {
					l := w.nextIs(due, u)
					w.fetched(l, time.Duration(i*i)*ms, frontier.Outcome{})
					due = w.at() + delay
				}
				w.over()
			})
		})
	}
}

func TestHostsDoNotWaitForEachOther(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(1900 * ms)}, func(t *testing.T, w *world) {
		for round := range 3 {
			for h := range 50 {
				w.add(fmt.Sprintf("http://h%02d.example/%d", h, round))
			}
		}
		for round := range 3 {
			for h := range 50 { // host h is fetched at h ms after the round's start, in no time
				l := w.nextIs(time.Duration(round)*1900*ms+time.Duration(h)*ms, fmt.Sprintf("http://h%02d.example/%d", h, round))
				w.fetched(l, 0, frontier.Outcome{})
				if round == 0 {
					w.clk.Advance(ms)
				}
			}
		}
		w.over()
	})
}

func TestHostIsLeftAloneForAMultipleOfTheFetch(t *testing.T) {
	for _, c := range []struct {
		name        string
		fetch, wait time.Duration
	}{
		{"no time at all, so the minimum", 0, time.Second},
		{"ten times it is below the minimum", 99 * ms, time.Second},
		{"ten times it is the minimum", 100 * ms, time.Second},
		{"ten times it is just above the minimum", 101 * ms, 1010 * ms},
		{"between the bounds", 1234 * ms, 12340 * ms},
		{"ten times it is the maximum", 3 * time.Second, 30 * time.Second},
		{"ten times it is above the maximum", 3001 * ms, 30 * time.Second},
		{"far above the maximum", 9 * time.Minute, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBothWorlds(t, frontier.Options{}, func(t *testing.T, w *world) {
				w.add(urlsOf("a.example", 2)...)
				w.fetched(w.nextIs(0, "http://a.example/1"), c.fetch, frontier.Outcome{})
				l := w.nextIs(c.fetch+c.wait, "http://a.example/2")
				w.fetched(l, 0, frontier.Outcome{})
			})
		})
	}
}

func TestDelayCountsFromTheEndOfTheContact(t *testing.T) {
	const fetch = 400 * ms
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
			return frontier.Outcome{Ended: t.Add(fetch), Duration: 300 * ms}
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
			inBothWorlds(t, frontier.Options{}, func(t *testing.T, w *world) {
				w.add(urlsOf("a.example", 2)...)
				l := w.nextIs(0, "http://a.example/1")
				w.fetched(l, 2*time.Second, c.outcome(l.LeasedAt))
				w.nextIs(c.due, "http://a.example/2")
			})
		})
	}
}

func TestEveryContactMovesTheClockAndNothingElseDoes(t *testing.T) {
	const delay = 1900 * ms
	for _, c := range []struct {
		name    string
		outcome frontier.Outcome
		due     time.Duration // of the host, whose fetch lasts 100 ms
		again   bool          // the first URL comes first again
	}{
		{"visited", frontier.Outcome{}, 100*ms + delay, false},
		{"changed", frontier.Outcome{Result: frontier.Changed}, 100*ms + delay, false},
		{"unchanged", frontier.Outcome{Result: frontier.Unchanged}, 100*ms + delay, false},
		{"gone", frontier.Outcome{Result: frontier.Gone}, 100*ms + delay, false},
		{"failed", frontier.Outcome{Result: frontier.Failed}, 100*ms + delay, false},
		{"denied after a contact", frontier.Outcome{Result: frontier.Denied}, 100*ms + delay, false},
		{"denied without a contact", frontier.Outcome{Result: frontier.Denied, Uncontacted: true}, 100 * ms, false},
		{"requeued after a contact", frontier.Outcome{Result: frontier.Requeue}, 100*ms + delay, true},
		{"requeued without a contact", requeue, 100 * ms, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(delay)}, func(t *testing.T, w *world) {
				w.add(urlsOf("a.example", 2)...)
				w.fetched(w.nextIs(0, "http://a.example/1"), 100*ms, c.outcome)
				want := "http://a.example/2"
				if c.again {
					want = "http://a.example/1"
				}
				require.Equal(t, 1, w.nextIs(c.due, want).Attempt)
			})
		})
	}
}

func TestRetryAfterHoldsTheHost(t *testing.T) {
	const delay = 2900 * ms
	for _, c := range []struct {
		name    string
		outcome frontier.Outcome
		due     time.Duration // of the host, whose fetch lasts 100 ms
	}{
		{"longer than the delay", frontier.Outcome{RetryAfter: 7 * time.Second}, 7100 * ms},
		{"shorter than the delay", frontier.Outcome{RetryAfter: time.Second}, 3000 * ms},
		{"with a failure", frontier.Outcome{Result: frontier.Failed, RetryAfter: 31 * time.Second}, 31100 * ms},
		{"beyond the time for which a host is bound", frontier.Outcome{RetryAfter: time.Hour}, time.Hour + 100*ms},
		{"a day and more", frontier.Outcome{RetryAfter: 25 * time.Hour}, 25*time.Hour + 100*ms},
		{"at most a month", frontier.Outcome{RetryAfter: 365 * 24 * time.Hour}, 30*24*time.Hour + 100*ms},
		{"without end", frontier.Outcome{RetryAfter: math.MaxInt64}, 30*24*time.Hour + 100*ms},
		{"negative", frontier.Outcome{RetryAfter: -time.Hour}, 3000 * ms},
		{"of an earlier answer, under a lease without a contact", frontier.Outcome{
			Result: frontier.Denied, Uncontacted: true, RetryAfter: 7 * time.Second,
		}, 7100 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(delay)}, func(t *testing.T, w *world) {
				w.add(urlsOf("a.example", 2)...)
				w.fetched(w.nextIs(0, "http://a.example/1"), 100*ms, c.outcome)
				w.nextIs(c.due, "http://a.example/2")
			})
		})
	}
}

func TestRetryAfterOutlivesLaterContacts(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 2)...)
		l := w.nextIs(0, "http://a.example/1")
		late := l
		w.until(10 * time.Minute) // its lease ends by deadline
		w.add("http://b.example/1")
		w.nextIs(10*time.Minute, "http://b.example/1")
		l = w.nextIs(10*time.Minute+time.Second, "http://a.example/2")
		require.ErrorIs(t, w.f.Done(late, frontier.Outcome{RetryAfter: time.Hour}), frontier.ErrNotLeased)
		w.fetched(l, time.Second, frontier.Outcome{})
		w.nothingUntil(20 * time.Minute) // b's lease ends, and it may be had a second later
		require.Equal(t, "http://b.example/1", w.next().Entry.URL)
		w.nothingUntil(30*time.Minute + time.Second)
		require.Equal(t, "http://b.example/1", w.next().Entry.URL)
		w.nextIs(70*time.Minute+time.Second, "http://a.example/1")
	})
}

func TestCrawlDelayIsTheLeastDelay(t *testing.T) {
	inBothWorlds(t, frontier.Options{}, func(t *testing.T, w *world) {
		urls := urlsOf("a.example", 8)
		w.add(urls...)
		due := time.Duration(0)
		for i, c := range []struct {
			fetch   time.Duration
			outcome frontier.Outcome
			wait    time.Duration
		}{
			{200 * ms, frontier.Outcome{CrawlDelay: 5 * time.Second}, 5 * time.Second},
			{200 * ms, frontier.Outcome{}, 5 * time.Second}, // it is remembered
			{600 * ms, frontier.Outcome{}, 6 * time.Second}, // the longest holds
			{200 * ms, frontier.Outcome{RetryAfter: 9 * time.Second}, 9 * time.Second},
			{200 * ms, frontier.Outcome{CrawlDelay: 90*time.Second + 1}, 90*time.Second + ms}, // rounded up
			{200 * ms, frontier.Outcome{CrawlDelay: 3 * time.Second}, 3 * time.Second},
			{200 * ms, frontier.Outcome{CrawlDelay: frontier.NoCrawlDelay}, 2 * time.Second},
		} {
			l := w.nextIs(due, urls[i])
			w.fetched(l, c.fetch, c.outcome)
			due = w.at() + c.wait
		}
		w.nextIs(due, urls[7])
	})
}

func TestCrawlDelayOutlivesTheHostsURLs(t *testing.T) {
	inBothWorlds(t, frontier.Options{KeepOpen: true}, func(t *testing.T, w *world) {
		w.add("http://a.example/1")
		w.fetched(w.nextIs(0, "http://a.example/1"), 0, frontier.Outcome{CrawlDelay: 40 * time.Second})
		w.until(time.Hour)
		w.add("http://a.example/2", "http://a.example/3")
		w.fetched(w.nextIs(time.Hour, "http://a.example/2"), 0, frontier.Outcome{})
		w.nextIs(time.Hour+40*time.Second, "http://a.example/3")
	})
}

// groupRules are a host delay of 1 s and a group delay of 5 s.
var groupRules = frontier.Options{
	Delay:      frontier.FixedDelay(time.Second),
	GroupDelay: frontier.FixedDelay(5 * time.Second),
}

func TestHostsOfAGroupTakeTurns(t *testing.T) {
	inBothWorlds(t, groupRules, func(t *testing.T, w *world) {
		for _, h := range []string{"a", "b", "c"} {
			w.add(urlsOf(h+".example", 2)...)
		}
		w.add("http://other.example/1")
		a := w.nextIs(0, "http://a.example/1")
		require.NoError(t, w.f.Join(&a, "g"))
		require.Equal(t, "g", a.Group)
		for _, u := range []string{"http://b.example/1", "http://c.example/1"} {
			l := w.nextIs(0, u)
			require.ErrorIs(t, w.f.Join(&l, "g"), frontier.ErrGroupBusy)
			require.Equal(t, "g", l.Group)
			require.NoError(t, w.f.Done(l, requeue))
		}
		w.nextIs(0, "http://other.example/1") // no member waits for another's slot
		w.fetched(a, 300*ms, frontier.Outcome{})

		// The group is free 5 s after each end, whoever is due by then.
		for i, u := range []string{"http://b.example/1", "http://c.example/1", "http://a.example/2", "http://b.example/2", "http://c.example/2"} {
			l := w.nextIs(time.Duration(i+1)*5300*ms, u)
			require.Equal(t, "g", l.Group)
			require.Equal(t, 1, l.Attempt)
			require.NoError(t, w.f.Join(&l, "g"), "the lease has the slot already")
			w.fetched(l, 300*ms, frontier.Outcome{})
		}
		require.EqualValues(t, 1, w.f.Stats().Groups)
	})
}

func TestHostOfAGroupIsOwedItsOwnDelayToo(t *testing.T) {
	inBothWorlds(t, groupRules, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 2)...)
		w.add("http://b.example/1")
		a := w.nextIs(0, "http://a.example/1")
		require.NoError(t, w.f.Join(&a, "g"))
		b := w.nextIs(0, "http://b.example/1")
		require.ErrorIs(t, w.f.Join(&b, "g"), frontier.ErrGroupBusy)
		require.NoError(t, w.f.Done(b, requeue))
		w.fetched(a, 0, frontier.Outcome{RetryAfter: 42 * time.Second})
		w.fetched(w.nextIs(5*time.Second, "http://b.example/1"), 0, frontier.Outcome{}) // a's Retry-After is not b's
		w.nextIs(42*time.Second, "http://a.example/2")
	})
}

func TestBusyGroupIsFreeWhenItsLeaseIsHandedBack(t *testing.T) {
	inBothWorlds(t, groupRules, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://b.example/1")
		a := w.nextIs(0, "http://a.example/1")
		require.NoError(t, w.f.Join(&a, "g"))
		b := w.nextIs(0, "http://b.example/1")
		require.ErrorIs(t, w.f.Join(&b, "g"), frontier.ErrGroupBusy)
		require.NoError(t, w.f.Done(b, requeue))
		w.fetched(a, 250*ms, requeue) // no byte was sent
		w.nextIs(250*ms, "http://b.example/1")
	})
}

func TestLeaseThatChangesItsGroupHoldsBackBoth(t *testing.T) {
	inBothWorlds(t, groupRules, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 2)...)
		w.add(urlsOf("b.example", 2)...)
		w.add(urlsOf("c.example", 2)...)
		for _, x := range [][2]string{{"a", "old"}, {"b", "old"}, {"c", "new"}} {
			l := w.next()
			require.Equal(t, "http://"+x[0]+".example/1", l.Entry.URL)
			if w.f.Join(&l, x[1]) != nil {
				require.NoError(t, w.f.Done(l, requeue))
				continue
			}
			w.fetched(l, 0, frontier.Outcome{})
		}
		b := w.nextIs(5*time.Second, "http://b.example/1")
		c := w.nextIs(5*time.Second, "http://c.example/2")
		w.fetched(c, 0, frontier.Outcome{})
		require.ErrorIs(t, w.f.Join(&b, "new"), frontier.ErrGroupBusy)
		require.NoError(t, w.f.Done(b, requeue))
		a := w.nextIs(5*time.Second, "http://a.example/2") // old is free: b was not contacted
		require.NoError(t, w.f.Join(&a, "third"))
		w.fetched(a, time.Second, frontier.Outcome{})
		w.nextIs(10*time.Second, "http://b.example/1") // when new is free
	})
}

func TestExpiredLeaseHoldsItsGroup(t *testing.T) {
	inBothWorlds(t, groupRules, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://b.example/1")
		a := w.nextIs(0, "http://a.example/1")
		require.NoError(t, w.f.Join(&a, "g"))
		b := w.nextIs(0, "http://b.example/1")
		require.ErrorIs(t, w.f.Join(&b, "g"), frontier.ErrGroupBusy)
		require.NoError(t, w.f.Done(b, requeue))
		b = w.nextIs(10*time.Minute+5*time.Second, "http://b.example/1")
		w.fetched(b, 0, frontier.Outcome{})
		require.Equal(t, 2, w.nextIs(10*time.Minute+10*time.Second, "http://a.example/1").Attempt)
	})
}

func TestHandBackKeepsTheSlotAndTheURLItsPlace(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(1900 * ms)}, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 2)...)
		page := w.nextIs(0, "http://a.example/1")
		robots, err := w.f.HandBack(page)
		require.NoError(t, err)
		require.True(t, robots.ContactOnly())
		require.Equal(t, "a.example", robots.Host)
		require.NotEqual(t, page.Token(), robots.Token())
		require.ErrorIs(t, w.f.Done(page, frontier.Outcome{}), frontier.ErrNotLeased)
		w.until(600 * ms)
		_, _, err = w.f.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue, "the host's slot is taken")
		require.NoError(t, w.f.Done(robots, frontier.Outcome{}))
		l := w.nextIs(2500*ms, "http://a.example/1")
		require.Equal(t, 1, l.Attempt)
		w.fetched(l, 0, frontier.Outcome{})
		w.nextIs(4400*ms, "http://a.example/2")
	})
}

func TestHandedBackSlotEndsByItsOwnDeadline(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(1900 * ms)}, func(t *testing.T, w *world) {
		w.add("http://a.example/1")
		page := w.nextIs(0, "http://a.example/1")
		w.until(time.Minute)
		robots, err := w.f.HandBack(page)
		require.NoError(t, err)
		require.Equal(t, dawn.Add(11*time.Minute), robots.Deadline)
		l := w.nextIs(11*time.Minute+1900*ms, "http://a.example/1")
		require.Equal(t, 1, l.Attempt, "the page was not tried")
	})
}

// The calls that wait are tested on the system's clock, in a bubble where it
// moves only when all are asleep.

func TestNextWakesExactlyWhenTheHostIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(2900 * ms)})
		require.NoError(t, err)
		defer ended(t, f)
		for _, u := range urlsOf("a.example", 3) {
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
					time.Sleep(100 * ms)
					err = f.Done(l, frontier.Outcome{})
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(400 * ms)
		require.NoError(t, f.Done(l, frontier.Outcome{}))
		require.Equal(t, 3300*ms, <-got)
		require.Equal(t, 6300*ms, <-got)
		workers.Wait()
	})
}

func TestContactsComeBeforeURLsAndKeepTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(1900 * ms)})
		require.NoError(t, err)
		defer ended(t, f)
		start := time.Now()
		order := make(chan string, 4)
		use := func(what string, l frontier.Lease, err error) {
			if err != nil {
				t.Error(err)
				return
			}
			order <- fmt.Sprintf("%s at %v", what, time.Since(start))
			time.Sleep(100 * ms)
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
		_, err = f.Contact(left, "a.example") // goes away, and holds up nobody
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
		defer ended(t, f)
		_, err = f.Add(ctx, frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://b.example/1"})
		require.NoError(t, err)
		a, err := f.Next(ctx)
		require.NoError(t, err)
		require.NoError(t, f.Join(&a, "g"))
		b, err := f.Next(ctx)
		require.NoError(t, err)
		require.ErrorIs(t, f.Join(&b, "g"), frontier.ErrGroupBusy)
		require.NoError(t, f.Done(b, requeue))
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
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(2900 * ms)}, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 2)...)
		l := w.nextIs(0, "http://a.example/1")
		require.Equal(t, dawn.Add(10*time.Minute), l.Deadline)
		w.nothingUntil(10 * time.Minute)
		require.ErrorIs(t, w.f.Extend(&l, time.Minute), frontier.ErrNotLeased, "the deadline is not part of the lease")
		l = w.nextIs(10*time.Minute+2900*ms, "http://a.example/2") // the other went to the tail
		require.EqualValues(t, 1, w.f.Stats().Expired)
		w.fetched(l, 0, frontier.Outcome{})
		for attempt := 2; attempt <= 3; attempt++ { // and its deadline was the end of a contact
			l = w.next()
			require.Equal(t, "http://a.example/1", l.Entry.URL)
			require.Equal(t, attempt, l.Attempt)
		}
		require.Equal(t, 20*time.Minute+3*2900*ms, w.at())
		w.until(time.Hour)
		w.over()
		require.EqualValues(t, 1, w.f.Stats().GivenUp)
	})
}

func TestExpiredLeaseCountsAsAFetchUntilItsDeadline(t *testing.T) {
	o := frontier.Options{LeaseTime: 2 * time.Second, Delay: frontier.FactorDelay(10, time.Second, time.Minute)}
	inBothWorlds(t, o, func(t *testing.T, w *world) {
		w.add("http://a.example/1")
		w.nextIs(0, "http://a.example/1")
		w.until(5 * time.Second) // nobody looks at the deadline itself
		w.nextIs(22*time.Second, "http://a.example/1")
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
		{"of a contact that ended before the deadline", frontier.Outcome{Ended: dawn.Add(9 * time.Second)}, 12 * time.Second},
		{"with a Retry-After", frontier.Outcome{RetryAfter: time.Hour}, time.Hour + 11*time.Second},
		{"with a Retry-After without end", frontier.Outcome{RetryAfter: math.MaxInt64}, 30*24*time.Hour + 11*time.Second},
		{"without a contact", requeue, 12 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := frontier.Options{LeaseTime: 10 * time.Second, Delay: frontier.FixedDelay(delay)}
			inBothWorlds(t, o, func(t *testing.T, w *world) {
				w.add(urlsOf("a.example", 2)...)
				l := w.nextIs(0, "http://a.example/1")
				w.until(11 * time.Second)
				require.ErrorIs(t, w.f.Done(l, c.late), frontier.ErrNotLeased)
				w.nextIs(c.due, "http://a.example/2")
			})
		})
	}
}

func TestLateDoneMovesTheClockUnderTheNextLease(t *testing.T) {
	o := frontier.Options{LeaseTime: 10 * time.Second, Delay: frontier.FixedDelay(2 * time.Second)}
	inBothWorlds(t, o, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 3)...)
		late := w.nextIs(0, "http://a.example/1")
		l := w.nextIs(12*time.Second, "http://a.example/2")
		w.until(13 * time.Second)
		require.NoError(t, w.f.Done(l, frontier.Outcome{Ended: dawn.Add(12 * time.Second)}))
		require.ErrorIs(t, w.f.Done(late, frontier.Outcome{}), frontier.ErrNotLeased)
		w.nextIs(15*time.Second, "http://a.example/3")
	})
}

func TestExtendMovesTheDeadline(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(1900 * ms)}, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 2)...)
		l := w.nextIs(0, "http://a.example/1")
		w.until(9 * time.Minute)
		require.NoError(t, w.f.Extend(&l, 20*time.Minute))
		require.Equal(t, dawn.Add(29*time.Minute), l.Deadline)
		w.nothingUntil(29*time.Minute - 1)
		require.NoError(t, w.f.Extend(&l, time.Second)) // it may be shortened too
		w.nextIs(29*time.Minute-1+2900*ms, "http://a.example/2")
		require.ErrorIs(t, w.f.Extend(&l, time.Minute), frontier.ErrNotLeased)
	})
}

func TestClockThatJumpsBackMakesNoHostDueEarlier(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(1900 * ms)}, func(t *testing.T, w *world) {
		w.add(urlsOf("a.example", 2)...)
		w.until(time.Minute)
		w.fetched(w.next(), 0, frontier.Outcome{})
		w.until(30 * time.Second)
		w.nothingUntil(30*time.Second + 1900*ms)
		w.nextIs(30*time.Second+1900*ms, "http://a.example/2")
	})
}

func TestExactTimesGoOnAfterACleanReopening(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(2900 * ms), GroupDelay: frontier.FixedDelay(9 * time.Second)}
	w := newStoredWorld(t, o, spill.Options{})
	w.add(urlsOf("a.example", 2)...)
	w.add(urlsOf("b.example", 2)...)
	w.add(urlsOf("c.example", 2)...)
	w.add(urlsOf("d.example", 2)...)
	w.add(urlsOf("e.example", 2)...)
	w.add("http://f.example/1")
	w.fetched(w.nextIs(0, "http://a.example/1"), 0, frontier.Outcome{})
	w.fetched(w.nextIs(0, "http://b.example/1"), 500*time.Microsecond, frontier.Outcome{}) // times are stored in milliseconds, rounded up
	w.fetched(w.next(), 0, frontier.Outcome{CrawlDelay: 8 * time.Second})
	w.fetched(w.next(), 0, frontier.Outcome{RetryAfter: time.Hour})
	e := w.next()
	require.Equal(t, "http://e.example/1", e.Entry.URL)
	require.NoError(t, w.f.Join(&e, "g"))
	w.fetched(e, 0, frontier.Outcome{})
	f := w.next()
	require.ErrorIs(t, w.f.Join(&f, "g"), frontier.ErrGroupBusy)
	require.NoError(t, w.f.Done(f, requeue))
	for range 3 { // as often as one likes
		w.clk.Advance(700 * ms)
		w.reopen()
		w.clk.Advance(100*ms - 100*time.Microsecond)
	}
	const half = 500 * time.Microsecond
	w.fetched(w.nextIs(2900*ms, "http://a.example/2"), 0, frontier.Outcome{})
	w.fetched(w.nextIs(2901*ms, "http://b.example/2"), 0, frontier.Outcome{})
	w.fetched(w.nextIs(8001*ms, "http://c.example/2"), 0, frontier.Outcome{})
	first := w.next()
	require.Equal(t, 9001*ms, w.at(), "the group is free")
	require.Equal(t, "g", first.Group)
	w.fetched(first, 0, frontier.Outcome{})
	second := w.next()
	require.Equal(t, 18001*ms, w.at())
	require.ElementsMatch(t, []string{"http://e.example/2", "http://f.example/1"}, []string{first.Entry.URL, second.Entry.URL})
	w.fetched(second, 0, frontier.Outcome{})
	w.fetched(w.nextIs(time.Hour+ms, "http://d.example/2"), half, frontier.Outcome{})
	w.reopen()
	w.over()
}

func TestHostLeasedAtTheClosingCountsAsContactedThen(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{}, spill.Options{})
	w.add("http://a.example/1", "http://b.example/1")
	w.nextIs(0, "http://a.example/1")
	w.fetched(w.nextIs(0, "http://b.example/1"), 0, frontier.Outcome{Result: frontier.Requeue, CrawlDelay: 45 * time.Second})
	w.nextIs(45*time.Second, "http://b.example/1")
	w.until(time.Minute)
	w.reopen()
	require.Equal(t, 1, w.nextIs(90*time.Second, "http://a.example/1").Attempt)
	w.nextIs(105*time.Second, "http://b.example/1")
}

// beforeTheCrash gives a frontier a host for every promise about crashes. Its
// clock stands at 50 s afterwards.
func beforeTheCrash(w *world) {
	w.Helper()
	for _, h := range []string{"plain", "slow", "later", "soon", "leased"} {
		w.add(urlsOf(h+".example", 2)...)
	}
	outcomes := map[string]frontier.Outcome{
		"plain.example": {},
		"slow.example":  {CrawlDelay: 45 * time.Second},
		"later.example": {RetryAfter: time.Hour},
		"soon.example":  {RetryAfter: 31 * time.Second}, // over before the crash is
	}
	for range 5 {
		l := w.next()
		require.Zero(w, w.at())
		if o, ok := outcomes[l.Host]; ok {
			require.NoError(w, w.f.Done(l, o))
		}
	}
	w.until(50 * time.Second)
	w.add("http://fresh.example/1")
}

// afterTheCrash requires the promised times of a frontier that beforeTheCrash
// filled and that was opened at the given time. New hosts are no exception.
func afterTheCrash(w *world, opened time.Duration) {
	w.Helper()
	require.NoError(w, w.f.Check())
	w.add("http://new.example/1")
	got := map[string]time.Duration{}
	for len(got) < 7 {
		l := w.next()
		got[l.Entry.URL] = w.at()
		require.Equal(w, 1, l.Attempt)
		require.NoError(w, w.f.Extend(&l, 2*time.Hour))
	}
	require.Equal(w, map[string]time.Duration{
		"http://plain.example/2":  opened + 30*time.Second,
		"http://soon.example/2":   opened + 30*time.Second,
		"http://leased.example/1": opened + 30*time.Second,
		"http://fresh.example/1":  opened + 30*time.Second,
		"http://new.example/1":    opened + 30*time.Second,
		"http://slow.example/2":   opened + 45*time.Second,
		"http://later.example/2":  time.Hour,
	}, got)
}

func TestHostsCountAsContactedAtTheOpeningAfterACrash(t *testing.T) {
	t.Run("the process was killed", func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{}, spill.Options{})
		beforeTheCrash(w)
		w.until(time.Minute)
		afterTheCrash(w.killed(), time.Minute)
	})
	t.Run("twice in a row", func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{}, spill.Options{})
		beforeTheCrash(w)
		w = w.killed()
		w.nothingUntil(79 * time.Second)
		afterTheCrash(w.killed(), 79*time.Second)
	})
	t.Run("after a clean reopening", func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{}, spill.Options{})
		beforeTheCrash(w)
		w.reopen()
		w.until(time.Minute)
		afterTheCrash(w.killed(), time.Minute)
	})
	t.Run("with everything moved to blocks", func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{}, spill.Options{})
		beforeTheCrash(w)
		require.NoError(t, w.f.MoveNow(true))
		w.until(time.Minute)
		afterTheCrash(w.killed(), time.Minute)
	})
	t.Run("the power failed", func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{}, spill.Options{Sync: true})
		beforeTheCrash(w)
		w.until(time.Minute)
		afterTheCrash(w.on(w.machine.PowerLoss(t, 0)), time.Minute)
	})
}

func TestGroupsCountAsContactedAtTheOpeningAfterACrash(t *testing.T) {
	o := frontier.Options{GroupDelay: frontier.FactorDelay(10, time.Second, 2*time.Minute)}
	w := newStoredWorld(t, o, spill.Options{})
	w.add(urlsOf("known.example", 2)...)
	l := w.nextIs(0, "http://known.example/1")
	require.NoError(t, w.f.Join(&l, "g"))
	w.fetched(l, 0, frontier.Outcome{})
	w.add("http://new.example/1")
	w.until(time.Minute)
	w = w.killed()
	l = w.nextIs(90*time.Second, "http://new.example/1")
	require.ErrorIs(t, w.f.Join(&l, "g"), frontier.ErrGroupBusy)
	require.NoError(t, w.f.Done(l, requeue))
	w.fetched(w.next(), 0, frontier.Outcome{})
	require.Equal(t, 3*time.Minute, w.at())
	w.next()
	require.Equal(t, 3*time.Minute+time.Second, w.at())
}

func TestCleanClosingAfterACrashEndsTheHold(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{}, spill.Options{})
	w.add("http://a.example/1")
	w.until(time.Minute)
	w = w.killed()
	w.until(61 * time.Second)
	w.add("http://b.example/1")
	w.reopen() // nothing was contacted since, but the times of the crash go on
	w.until(80 * time.Second)
	w.nothingUntil(90 * time.Second)
	w.next()
	w.next()
	require.Equal(t, 90*time.Second, w.at())
}

func TestLateRetryAfterSurvivesACrash(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{LeaseTime: 10 * time.Second}, spill.Options{})
	w.add(urlsOf("a.example", 2)...)
	l := w.nextIs(0, "http://a.example/1")
	w.until(11 * time.Second)
	_, _, err := w.tryNext() // the expiry is stored
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.ErrorIs(t, w.f.Done(l, frontier.Outcome{RetryAfter: time.Hour}), frontier.ErrNotLeased)
	_, _, err = w.tryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	w.killed().nextIs(time.Hour+11*time.Second, "http://a.example/2")
}

func TestPolitenessOnBadger(t *testing.T) {
	dir := t.TempDir()
	w := &world{TB: t, clk: simclock.New(dawn), opts: frontier.Options{}}
	w.opts.Clock = w.clk
	open := func(dir string) {
		s, err := spill.Open(dir, spill.Options{MemoryBudget: 64 << 20})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		w.opts.Spill = s
		w.open()
	}
	open(dir)
	beforeTheCrash(w)
	w.reopen()
	w.until(time.Minute)
	// What the kernel holds of the folder is what the death of the process leaves.
	left := t.TempDir()
	require.NoError(t, os.CopyFS(left, os.DirFS(dir)))
	open(left)
	afterTheCrash(w, time.Minute)
}
