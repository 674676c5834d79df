// This file tests what happens when calls meet each other, a crash, a failed
// commit or a deadline.

package politeness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

func TestFailedOpenLeavesTheStoreToItsFrontier(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	_, err := frontier.Open(context.Background(), w.Options)
	require.ErrorIs(t, err, frontier.ErrInUse)
	_, err = w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/"})
	t.Log("add on first:", err)
	f3, err3 := frontier.Open(context.Background(), w.Options)
	t.Log("third open:", f3 != nil, err3)
	require.NoError(t, err)
}

func TestHugeCrawlDelayCanBeStored(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Add("http://a.example/1", "http://a.example/2")
	w.Fetched(w.Next(), 0, frontier.Outcome{CrawlDelay: math.MaxInt64})
	w.Reopen()
}

func TestRuleHoldsAfterACrashBesideAStoredTime(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	require.NoError(t, w.F.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(10 * time.Minute) }))
	w.Add(harness.UrlsOf("a.example", 3)...)
	w.Fetched(w.NextIs(0, "http://a.example/1"), 0, frontier.Outcome{})
	w.NextIs(10*time.Minute, "http://a.example/2") // its lease is lost
	w.Until(10*time.Minute + 5*time.Second)
	w2 := w.Killed()
	l := w2.Next()
	t.Log(l.Entry.URL, "at", w2.At())
	require.GreaterOrEqual(t, w2.At(), 20*time.Minute+5*time.Second)
}

func TestForceTakesTheLastURLOfAParkedHost(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2")
		w.Fetched(w.Next(), 0, frontier.Outcome{RetryAfter: time.Hour})
		_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/2", Force: true, NotBefore: harness.Dawn.Add(24 * time.Hour)})
		require.NoError(t, err)
		require.NoError(t, w.F.Check())
	})
}

func TestOnGiveUpMayCallTheFrontier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *harness.World
		called := make(chan error, 1)
		o := frontier.Options{LeaseTime: time.Second, Retry: frontier.Retries(1, 0)}
		o.OnGiveUp = func(e frontier.Entry, _ frontier.Outcome) {
			_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://graveyard.example/"})
			called <- err
		}
		w = harness.NewStoredWorld(t, o, spill.Options{})
		w.Add("http://a.example/1")
		w.Next()
		w.Until(2 * time.Second)
		w.F.Stats() // reaps
		select {
		case err := <-called:
			require.NoError(t, err)
		case <-time.After(3 * time.Second):
			panic("OnGiveUp -> Add deadlocks the committer")
		}
	})
}

func TestLeaseOfAReadURLArmsTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := harness.HookedWorld(t, frontier.Options{LeaseTime: 10 * time.Second, Delay: frontier.FixedDelay(0)})
		w.Add(harness.UrlsOf("a.example", 2)...)
		require.NoError(t, hook.Of(w.F).MoveNow(true))
		started, gate := make(chan struct{}), make(chan struct{})
		var once sync.Once
		h.Set(nil, func() { once.Do(func() { close(started); <-gate }) })
		a := make(chan error, 1)
		go func() { _, err := w.F.Next(context.Background()); a <- err }()
		<-started
		ctx, cancel := context.WithCancel(context.Background())
		b := make(chan error, 1)
		go func() { _, err := w.F.Next(ctx); b <- err }()
		time.Sleep(200 * time.Millisecond)
		close(gate)
		require.NoError(t, <-a) // and it is never heard of again
		w.Clock.Advance(time.Hour)
		select {
		case err := <-b:
			require.NoError(t, err)
		case <-time.After(2 * time.Second):
			cancel()
			<-b
			t.Fatal("nobody woke the second Next when the lease expired")
		}
		cancel()
	})
}

func TestFailedForceLeavesAURLScheduled(t *testing.T) {
	w, h := harness.HookedWorld(t, frontier.Options{})
	_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/1", NotBefore: harness.Dawn.Add(24 * time.Hour)})
	require.NoError(t, err)
	h.Set(func(*storage.Batch) error { return errors.New("disk full") }, nil)
	_, err = w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/1", Force: true, NotBefore: harness.Dawn.Add(48 * time.Hour)})
	require.Error(t, err)
	h.Set(nil, nil)
	w.Next()
	require.GreaterOrEqual(t, w.At(), 24*time.Hour)
}

func TestCrawlIsNotOverWhileOutlinksAreForced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range 20 {
			w, h := harness.HookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
			w.Add("http://seed.example/", "http://a.example/1")
			l1, l2 := w.Next(), w.Next()
			if l1.Host != "a.example" {
				l1, l2 = l2, l1
			}
			w.Fetched(l1, 0, frontier.Outcome{})
			h.Set(func(b *storage.Batch) error { time.Sleep(20 * time.Millisecond); return nil }, nil)
			res := make(chan error, 1)
			go func() { _, err := w.F.Next(context.Background()); res <- err }()
			time.Sleep(20 * time.Millisecond)
			require.NoError(t, w.F.Done(l2, frontier.Outcome{Add: []frontier.Entry{{URL: "http://a.example/1", Force: true}}}))
			require.NoError(t, <-res, "try %d", i)
		}
	})
}

// The crawl is over for a call that waits when the last Add has ended that kept it from being over,
// and admitted nothing.
func TestCrawlIsNotOverBeforeTheLastAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		w, _ := harness.HookedWorld(t, frontier.Options{Prioritizer: frontier.PrioritizerFunc(func(frontier.Entry, frontier.History) int {
			<-goOn
			return -1 // a bad entry
		})})
		add := func() (l frontier.Lease, err error) {
			_, err = w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/"})
			return l, err
		}
		first, second := harness.Start(add), harness.Start(add)
		next := harness.Start(func() (frontier.Lease, error) { return w.F.Next(context.Background()) })
		require.True(t, next.Waits())
		goOn <- struct{}{}
		require.True(t, next.Waits(), "one adds still")
		close(goOn)
		require.False(t, first.Waits() || second.Waits() || next.Waits())
		require.ErrorIs(t, next.Err, frontier.ErrExhausted)
	})
}

func TestForceOutlivesARequeue(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		l := w.Next()
		_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/1", Force: true, Meta: []byte("new")})
		require.NoError(t, err)
		require.NoError(t, w.F.Done(l, harness.Requeue))
		n := 0
		var meta []string
		for {
			l, _, err := w.TryNext()
			if err != nil {
				break
			}
			n++
			meta = append(meta, string(l.Entry.Meta))
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		t.Log(n, meta)
		require.Equal(t, "new", meta[len(meta)-1])
	})
}

func TestFailedCommitsKeepTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := harness.HookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
		w.Add(harness.UrlsOf("a.example", 4)...)
		w.Add("http://z.example/1")
		gate := make(chan struct{})
		var once sync.Once
		h.Set(func(b *storage.Batch) error {
			once.Do(func() { <-gate })
			return errors.New("disk full")
		}, nil)
		go w.F.Add(context.Background(), frontier.Entry{URL: "http://blocker.example/"})
		time.Sleep(50 * time.Millisecond)
		var wg sync.WaitGroup
		n := 0
		for n < 3 {
			l, _, err := w.F.TryNext()
			require.NoError(t, err)
			if l.Host == "a.example" {
				n++
			}
			wg.Add(1)
			go func() { defer wg.Done(); w.F.Done(l, frontier.Outcome{}) }()
			time.Sleep(30 * time.Millisecond)
		}
		close(gate)
		wg.Wait()
		h.Set(nil, nil)
		var got []string
		for {
			l, _, err := w.TryNext()
			if err != nil {
				break
			}
			if l.Host == "a.example" {
				got = append(got, l.Entry.URL)
			}
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		require.Equal(t, harness.UrlsOf("a.example", 4), got)
	})
}

func TestForceToALaterTimeFreesTheGroup(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2", "http://b.example/1", "http://b.example/2", "http://b.example/3")
		la, lb := w.Next(), w.Next()
		if la.Host != "a.example" {
			la, lb = lb, la
		}
		require.NoError(t, w.F.Join(&la, "g"))
		require.NoError(t, w.F.Done(la, frontier.Outcome{}))
		require.ErrorIs(t, w.F.Join(&lb, "g"), frontier.ErrGroupBusy)
		require.NoError(t, w.F.Done(lb, harness.Requeue))
		_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/2", Force: true, NotBefore: harness.Dawn.Add(24 * time.Hour)})
		require.NoError(t, err)
		for range 3 {
			l := w.Next()
			t.Log(l.Entry.URL, w.At())
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		require.Less(t, w.At(), 10*time.Second)
	})
}

func TestTwoForcesAdmitAURLOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := harness.HookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
		w.Add("http://a.example/1")
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Over()
		gate := make(chan struct{})
		var once sync.Once
		h.Set(func(b *storage.Batch) error {
			once.Do(func() { <-gate })
			time.Sleep(50 * time.Millisecond)
			return nil
		}, nil)
		var wg sync.WaitGroup
		wg.Add(3)
		go func() { defer wg.Done(); w.F.Add(context.Background(), frontier.Entry{URL: "http://blocker.example/"}) }()
		time.Sleep(50 * time.Millisecond)
		for range 2 {
			go func() {
				defer wg.Done()
				_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/1", Force: true})
				require.NoError(t, err)
			}()
		}
		time.Sleep(50 * time.Millisecond)
		close(gate)
		wg.Wait()
		require.EqualValues(t, 2, w.F.Stats().Waiting) // blocker and a/1
	})
}

func TestForceMeetsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := harness.HookedWorld(t, frontier.Options{})
		w.Add(harness.UrlsOf("a.example", 50)...)
		require.NoError(t, hook.Of(w.F).MoveNow(true))
		w.F.Check()
		started, gate := make(chan struct{}), make(chan struct{})
		var once sync.Once
		h.Set(nil, func() { once.Do(func() { close(started); <-gate }) })
		res := make(chan error, 1)
		go func() {
			_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/10", Force: true})
			res <- err
		}()
		<-started
		require.NoError(t, w.F.Close())
		close(gate)
		select {
		case err := <-res:
			t.Log(err)
		case <-time.After(3 * time.Second):
			panic("Add hangs after Close")
		}
	})
}

func TestCrawlDelayOfAFailedDoneIsKept(t *testing.T) {
	w, h := harness.HookedWorld(t, frontier.Options{})
	w.Add(harness.UrlsOf("a.example", 5)...)
	l := w.Next()
	h.Set(func(*storage.Batch) error { return errors.New("disk full") }, nil)
	require.Error(t, w.F.Done(l, frontier.Outcome{CrawlDelay: 20 * time.Second}))
	h.Set(nil, nil)
	w.Fetched(w.Next(), 0, frontier.Outcome{})
	l = w.Next()
	require.Equal(t, 40*time.Second, w.At())
	require.NoError(t, w.F.Done(l, frontier.Outcome{}))
	w2 := w.Killed()
	w2.Fetched(w2.Next(), 0, frontier.Outcome{})
	at := w2.At()
	w2.Next()
	require.GreaterOrEqual(t, w2.At()-at, 20*time.Second)
}

func TestLateDoneMeetsALoad(t *testing.T) {
	w, h := harness.HookedWorld(t, frontier.Options{LeaseTime: 10 * time.Second, Delay: frontier.FixedDelay(time.Second)})
	w.Add(harness.UrlsOf("a.example", 200)...)
	l := w.Next()
	w.Until(12 * time.Second)
	w.F.Stats()
	_, err := w.F.Add(context.Background())
	require.NoError(t, err)
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	var once sync.Once
	var hit bool
	h.Set(nil, func() {
		once.Do(func() {
			hit = true
			require.ErrorIs(t, w.F.Done(l, frontier.Outcome{RetryAfter: time.Hour}), frontier.ErrNotLeased)
		})
	})
	for !hit {
		l2, at, err := w.F.TryNext()
		if errors.Is(err, frontier.ErrNotDue) {
			w.Clock.Set(at)
			continue
		}
		require.NoError(t, err)
		if hit {
			t.Fatalf("handed out %s at the moment a late Done asked for an hour", l2.Entry.URL)
		}
		require.NoError(t, w.F.Done(l2, frontier.Outcome{}))
	}
}

func TestOutlinksOfDoneKeepTheMemoryBudget(t *testing.T) {
	w, _ := harness.HookedWorld(t, frontier.Options{MemoryBudget: 9 << 20, Delay: frontier.FixedDelay(0)})
	for i := range 10 {
		w.Add(fmt.Sprintf("http://s%d.example/", i))
	}
	meta := make([]byte, 1000)
	for i := range 10 {
		l := w.Next()
		var out []frontier.Entry
		for j := range 5000 {
			out = append(out, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d/%d", j%50, i, j), Meta: meta, NotBefore: harness.Dawn.Add(24 * time.Hour)})
		}
		if err := w.F.Done(l, frontier.Outcome{Add: out}); err != nil {
			require.ErrorIs(t, err, frontier.ErrFull)
		}
	}
	require.LessOrEqual(t, w.F.Stats().MemoryBytes, int64(18<<20), "one page's links may come on top")
}

func TestWaiterGetsWhatManyPromotionsBring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)})
		es := make([]frontier.Entry, 3501)
		for i := range es {
			es[i] = frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), NotBefore: harness.Dawn.Add(time.Minute)}
		}
		es[3500] = frontier.Entry{URL: "http://b.example/", NotBefore: harness.Dawn.Add(time.Minute + time.Millisecond)}
		_, err := w.F.Add(context.Background(), es...)
		require.NoError(t, err)
		w.Until(2 * time.Minute)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		got := make(chan string, 2)
		for range 2 {
			time.Sleep(50 * time.Millisecond)
			go func() {
				l, err := w.F.Next(ctx)
				if err != nil {
					got <- err.Error()
					return
				}
				got <- l.Host
			}()
		}
		time.Sleep(200 * time.Millisecond)
		w.Clock.Advance(time.Minute)
		for range 2 {
			select {
			case h := <-got:
				t.Log(h)
			case <-time.After(2 * time.Second):
				t.Errorf("a Next waits although b may be had: %+v", w.F.Stats())
				cancel()
				<-got
				return
			}
		}
	})
}

func TestRowsOfForgottenHostsAreDeleted(t *testing.T) {
	const n = 500
	w := harness.NewStoredWorld(t, harness.ParkAfter(2*time.Hour, frontier.Options{Delay: frontier.FixedDelay(time.Hour), Priorities: 1}), spill.Options{})
	for i := range n {
		w.Add(fmt.Sprintf("http://h%d.example/", i))
	}
	for range n {
		l, _, err := w.F.TryNext()
		require.NoError(t, err)
		require.NoError(t, w.F.Done(l, frontier.Outcome{}))
	}
	rows := func() (found int) {
		w.Machine.Damage(func(k, v []byte) []byte {
			if len(k) > 7 && string(k[5:7]) == "h:" {
				found++
			}
			return v
		})
		return found
	}
	w.Reopen()
	require.Equal(t, n, rows(), "exact times are kept")
	w.Until(w.At() + 2*time.Hour)
	w.Reopen() // their times have passed, and nothing is left of them
	w.Reopen()
	require.Zero(t, rows())
}

func TestGroupLeftByALeaseIsLeftAlone(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second)})
	w.Add("http://x.example/1", "http://y.example/1")
	lx, ly := w.Next(), w.Next()
	require.NoError(t, w.F.Join(&lx, "a")) // x is contacted at address a ...
	w.Until(time.Second)
	require.NoError(t, w.F.Join(&lx, "b")) // ... and then at address b
	require.ErrorIs(t, w.F.Join(&ly, "a"), frontier.ErrGroupBusy, "a was contacted under a lease that is still out")
}

func TestEveryGroupLeftByALeaseIsLeftAlone(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second)})
	w.Add("http://x.example/1", "http://y.example/1")
	lx, ly := w.Next(), w.Next()
	for _, g := range []string{"a", "b", "c"} {
		require.NoError(t, w.F.Join(&lx, g))
	}
	require.NoError(t, w.F.Done(lx, frontier.Outcome{}))
	require.ErrorIs(t, w.F.Join(&ly, "a"), frontier.ErrGroupBusy)
	require.ErrorIs(t, w.F.Join(&ly, "b"), frontier.ErrGroupBusy)
}

func TestGroupsOfThePastLeaveNoRows(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	n := func() (n int) {
		w.Machine.Damage(func(k, v []byte) []byte {
			if len(k) > 7 && string(k[5:7]) == "g:" {
				n++
			}
			return v
		})
		return n
	}
	for i := range 5 {
		for j := range 20 {
			w.Add(fmt.Sprintf("http://h%d-%d.example/", i, j))
			l := w.Next()
			require.NoError(t, w.F.Join(&l, fmt.Sprint("ip", i, j)))
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		w.Reopen()
		w.Clock.Advance(time.Hour)
		w.Reopen()
		w.Add(fmt.Sprintf("http://x%d.example/", i))
		require.LessOrEqual(t, n(), 20, "rows of groups")
	}
}
