// This file tests what happens when calls meet each other, a crash, a failed
// commit or a deadline.

package frontier_test

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
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

var bg = context.Background()

// hooked is a Spill with hooks.
type hooked struct {
	frontier.Spill
	mu     sync.Mutex
	commit func(*frontier.Batch) error // before; an error fails the commit
	loaded func()                      // after a Load
}

func (h *hooked) set(c func(*frontier.Batch) error, l func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commit, h.loaded = c, l
}
func (h *hooked) Commit(b *frontier.Batch) error {
	h.mu.Lock()
	c := h.commit
	h.mu.Unlock()
	if c != nil {
		if err := c(b); err != nil {
			return err
		}
	}
	return h.Spill.Commit(b)
}
func (h *hooked) Load(p frontier.Part, want uint32, fn func(int, frontier.Record)) error {
	err := h.Spill.Load(p, want, fn)
	h.mu.Lock()
	l := h.loaded
	h.mu.Unlock()
	if l != nil {
		l()
	}
	return err
}

func hookedWorld(t *testing.T, o frontier.Options) (*world, *hooked) {
	w := newStoredWorld(t, o, spill.Options{})
	require.NoError(t, w.f.Close())
	h := &hooked{Spill: w.machine.Store}
	w.opts.Spill = h
	w.open()
	return w, h
}

func TestFailedOpenLeavesTheStoreToItsFrontier(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{}, spill.Options{})
	_, err := frontier.Open(bg, w.opts)
	require.ErrorIs(t, err, frontier.ErrInUse)
	_, err = w.f.Add(bg, frontier.Entry{URL: "http://a.example/"})
	t.Log("add on first:", err)
	f3, err3 := frontier.Open(bg, w.opts)
	t.Log("third open:", f3 != nil, err3)
	require.NoError(t, err)
}

func TestHugeCrawlDelayCanBeStored(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{}, spill.Options{})
	w.add("http://a.example/1", "http://a.example/2")
	w.fetched(w.next(), 0, frontier.Outcome{CrawlDelay: math.MaxInt64})
	w.reopen()
}

func TestRuleHoldsAfterACrashBesideAStoredTime(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	require.NoError(t, w.f.SetDelay(frontier.Host("a.example"), frontier.FixedDelay(10*time.Minute)))
	w.add(urlsOf("a.example", 3)...)
	w.fetched(w.nextIs(0, "http://a.example/1"), 0, frontier.Outcome{})
	w.nextIs(10*time.Minute, "http://a.example/2") // its lease is lost
	w.until(10*time.Minute + 5*time.Second)
	w2 := w.killed()
	l := w2.next()
	t.Log(l.Entry.URL, "at", w2.at())
	require.GreaterOrEqual(t, w2.at(), 20*time.Minute+5*time.Second)
}

func TestForceTakesTheLastURLOfAParkedHost(t *testing.T) {
	inBothWorlds(t, frontier.Options{}, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2")
		w.fetched(w.next(), 0, frontier.Outcome{RetryAfter: time.Hour})
		_, err := w.f.Add(bg, frontier.Entry{URL: "http://a.example/2", Force: true, NotBefore: dawn.Add(24 * time.Hour)})
		require.NoError(t, err)
		require.NoError(t, w.f.Check())
	})
}

func TestOnGiveUpMayCallTheFrontier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		called := make(chan error, 1)
		o := frontier.Options{LeaseTime: time.Second, Retry: frontier.Retries(1, 0)}
		o.OnGiveUp = func(e frontier.Entry, _ frontier.Outcome) {
			_, err := w.f.Add(bg, frontier.Entry{URL: "http://graveyard.example/"})
			called <- err
		}
		w = newStoredWorld(t, o, spill.Options{})
		w.add("http://a.example/1")
		w.next()
		w.until(2 * time.Second)
		w.f.Stats() // reaps
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
		w, h := hookedWorld(t, frontier.Options{LeaseTime: 10 * time.Second, Delay: frontier.FixedDelay(0)})
		w.add(urlsOf("a.example", 2)...)
		require.NoError(t, w.f.MoveNow(true))
		started, gate := make(chan struct{}), make(chan struct{})
		var once sync.Once
		h.set(nil, func() { once.Do(func() { close(started); <-gate }) })
		a := make(chan error, 1)
		go func() { _, err := w.f.Next(bg); a <- err }()
		<-started
		ctx, cancel := context.WithCancel(bg)
		b := make(chan error, 1)
		go func() { _, err := w.f.Next(ctx); b <- err }()
		time.Sleep(200 * time.Millisecond)
		close(gate)
		require.NoError(t, <-a) // and it is never heard of again
		w.clk.Advance(time.Hour)
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
	w, h := hookedWorld(t, frontier.Options{})
	_, err := w.f.Add(bg, frontier.Entry{URL: "http://a.example/1", NotBefore: dawn.Add(24 * time.Hour)})
	require.NoError(t, err)
	h.set(func(*frontier.Batch) error { return errors.New("disk full") }, nil)
	_, err = w.f.Add(bg, frontier.Entry{URL: "http://a.example/1", Force: true, NotBefore: dawn.Add(48 * time.Hour)})
	require.Error(t, err)
	h.set(nil, nil)
	w.next()
	require.GreaterOrEqual(t, w.at(), 24*time.Hour)
}

func TestCrawlIsNotOverWhileOutlinksAreForced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range 20 {
			w, h := hookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
			w.add("http://seed.example/", "http://a.example/1")
			l1, l2 := w.next(), w.next()
			if l1.Host != "a.example" {
				l1, l2 = l2, l1
			}
			w.fetched(l1, 0, frontier.Outcome{})
			h.set(func(b *frontier.Batch) error { time.Sleep(20 * time.Millisecond); return nil }, nil)
			res := make(chan error, 1)
			go func() { _, err := w.f.Next(bg); res <- err }()
			time.Sleep(20 * time.Millisecond)
			require.NoError(t, w.f.Done(l2, frontier.Outcome{Add: []frontier.Entry{{URL: "http://a.example/1", Force: true}}}))
			require.NoError(t, <-res, "try %d", i)
		}
	})
}

func TestForceOutlivesARequeue(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *world) {
		w.add("http://a.example/1")
		l := w.next()
		_, err := w.f.Add(bg, frontier.Entry{URL: "http://a.example/1", Force: true, Meta: []byte("new")})
		require.NoError(t, err)
		require.NoError(t, w.f.Done(l, requeue))
		n := 0
		var meta []string
		for {
			l, _, err := w.tryNext()
			if err != nil {
				break
			}
			n++
			meta = append(meta, string(l.Entry.Meta))
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		}
		t.Log(n, meta)
		require.Equal(t, "new", meta[len(meta)-1])
	})
}

func TestFailedCommitsKeepTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := hookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
		w.add(urlsOf("a.example", 4)...)
		w.add("http://z.example/1")
		gate := make(chan struct{})
		var once sync.Once
		h.set(func(b *frontier.Batch) error {
			once.Do(func() { <-gate })
			return errors.New("disk full")
		}, nil)
		go w.f.Add(bg, frontier.Entry{URL: "http://blocker.example/"})
		time.Sleep(50 * time.Millisecond)
		var wg sync.WaitGroup
		n := 0
		for n < 3 {
			l, _, err := w.f.TryNext()
			require.NoError(t, err)
			if l.Host == "a.example" {
				n++
			}
			wg.Add(1)
			go func() { defer wg.Done(); w.f.Done(l, frontier.Outcome{}) }()
			time.Sleep(30 * time.Millisecond)
		}
		close(gate)
		wg.Wait()
		h.set(nil, nil)
		var got []string
		for {
			l, _, err := w.tryNext()
			if err != nil {
				break
			}
			if l.Host == "a.example" {
				got = append(got, l.Entry.URL)
			}
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		}
		require.Equal(t, urlsOf("a.example", 4), got)
	})
}

func TestForceToALaterTimeFreesTheGroup(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2", "http://b.example/1", "http://b.example/2", "http://b.example/3")
		la, lb := w.next(), w.next()
		if la.Host != "a.example" {
			la, lb = lb, la
		}
		require.NoError(t, w.f.Join(&la, "g"))
		require.NoError(t, w.f.Done(la, frontier.Outcome{}))
		require.ErrorIs(t, w.f.Join(&lb, "g"), frontier.ErrGroupBusy)
		require.NoError(t, w.f.Done(lb, requeue))
		_, err := w.f.Add(bg, frontier.Entry{URL: "http://a.example/2", Force: true, NotBefore: dawn.Add(24 * time.Hour)})
		require.NoError(t, err)
		for range 3 {
			l := w.next()
			t.Log(l.Entry.URL, w.at())
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		}
		require.Less(t, w.at(), 10*time.Second)
	})
}

func TestTwoForcesAdmitAURLOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := hookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
		w.add("http://a.example/1")
		w.fetched(w.next(), 0, frontier.Outcome{})
		w.over()
		gate := make(chan struct{})
		var once sync.Once
		h.set(func(b *frontier.Batch) error {
			once.Do(func() { <-gate })
			time.Sleep(50 * time.Millisecond)
			return nil
		}, nil)
		var wg sync.WaitGroup
		wg.Add(3)
		go func() { defer wg.Done(); w.f.Add(bg, frontier.Entry{URL: "http://blocker.example/"}) }()
		time.Sleep(50 * time.Millisecond)
		for range 2 {
			go func() {
				defer wg.Done()
				_, err := w.f.Add(bg, frontier.Entry{URL: "http://a.example/1", Force: true})
				require.NoError(t, err)
			}()
		}
		time.Sleep(50 * time.Millisecond)
		close(gate)
		wg.Wait()
		require.EqualValues(t, 2, w.f.Stats().Waiting) // blocker and a/1
	})
}

func TestForceMeetsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := hookedWorld(t, frontier.Options{})
		w.add(urlsOf("a.example", 50)...)
		require.NoError(t, w.f.MoveNow(true))
		w.f.Check()
		started, gate := make(chan struct{}), make(chan struct{})
		var once sync.Once
		h.set(nil, func() { once.Do(func() { close(started); <-gate }) })
		res := make(chan error, 1)
		go func() {
			_, err := w.f.Add(bg, frontier.Entry{URL: "http://a.example/10", Force: true})
			res <- err
		}()
		<-started
		require.NoError(t, w.f.Close())
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
	w, h := hookedWorld(t, frontier.Options{})
	w.add(urlsOf("a.example", 5)...)
	l := w.next()
	h.set(func(*frontier.Batch) error { return errors.New("disk full") }, nil)
	require.Error(t, w.f.Done(l, frontier.Outcome{CrawlDelay: 20 * time.Second}))
	h.set(nil, nil)
	w.fetched(w.next(), 0, frontier.Outcome{})
	l = w.next()
	require.Equal(t, 40*time.Second, w.at())
	require.NoError(t, w.f.Done(l, frontier.Outcome{}))
	w2 := w.killed()
	w2.fetched(w2.next(), 0, frontier.Outcome{})
	at := w2.at()
	w2.next()
	require.GreaterOrEqual(t, w2.at()-at, 20*time.Second)
}

func TestLateDoneMeetsALoad(t *testing.T) {
	w, h := hookedWorld(t, frontier.Options{LeaseTime: 10 * time.Second, Delay: frontier.FixedDelay(time.Second)})
	w.add(urlsOf("a.example", 200)...)
	l := w.next()
	w.until(12 * time.Second)
	w.f.Stats()
	_, err := w.f.Add(bg)
	require.NoError(t, err)
	require.NoError(t, w.f.MoveNow(true))
	var once sync.Once
	var hit bool
	h.set(nil, func() {
		once.Do(func() {
			hit = true
			require.ErrorIs(t, w.f.Done(l, frontier.Outcome{RetryAfter: time.Hour}), frontier.ErrNotLeased)
		})
	})
	for !hit {
		l2, at, err := w.f.TryNext()
		if errors.Is(err, frontier.ErrNotDue) {
			w.clk.Set(at)
			continue
		}
		require.NoError(t, err)
		if hit {
			t.Fatalf("handed out %s at the moment a late Done asked for an hour", l2.Entry.URL)
		}
		require.NoError(t, w.f.Done(l2, frontier.Outcome{}))
	}
}

func TestOutlinksOfDoneKeepTheMemoryBudget(t *testing.T) {
	w, _ := hookedWorld(t, frontier.Options{MemoryBudget: 9 << 20, Delay: frontier.FixedDelay(0)})
	for i := range 10 {
		w.add(fmt.Sprintf("http://s%d.example/", i))
	}
	meta := make([]byte, 1000)
	for i := range 10 {
		l := w.next()
		var out []frontier.Entry
		for j := range 5000 {
			out = append(out, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d/%d", j%50, i, j), Meta: meta, NotBefore: dawn.Add(24 * time.Hour)})
		}
		if err := w.f.Done(l, frontier.Outcome{Add: out}); err != nil {
			require.ErrorIs(t, err, frontier.ErrFull)
		}
	}
	require.LessOrEqual(t, w.f.Stats().MemoryBytes, int64(18<<20), "one page's links may come on top")
}

func TestWaiterGetsWhatManyPromotionsBring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)})
		es := make([]frontier.Entry, 3501)
		for i := range es {
			es[i] = frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), NotBefore: dawn.Add(time.Minute)}
		}
		es[3500] = frontier.Entry{URL: "http://b.example/", NotBefore: dawn.Add(time.Minute + time.Millisecond)}
		_, err := w.f.Add(bg, es...)
		require.NoError(t, err)
		w.until(2 * time.Minute)
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		got := make(chan string, 2)
		for range 2 {
			time.Sleep(50 * time.Millisecond)
			go func() {
				l, err := w.f.Next(ctx)
				if err != nil {
					got <- err.Error()
					return
				}
				got <- l.Host
			}()
		}
		time.Sleep(200 * time.Millisecond)
		w.clk.Advance(time.Minute)
		for range 2 {
			select {
			case h := <-got:
				t.Log(h)
			case <-time.After(2 * time.Second):
				t.Errorf("a Next waits although b may be had: %+v", w.f.Stats())
				cancel()
				<-got
				return
			}
		}
	})
}

func TestRowsOfForgottenHostsAreDeleted(t *testing.T) {
	const n = 500
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Hour), ParkAfter: 2 * time.Hour, Priorities: 1}, spill.Options{})
	for i := range n {
		w.add(fmt.Sprintf("http://h%d.example/", i))
	}
	for range n {
		l, _, err := w.f.TryNext()
		require.NoError(t, err)
		require.NoError(t, w.f.Done(l, frontier.Outcome{}))
	}
	rows := func() (found int) {
		w.machine.Damage(func(k, v []byte) []byte {
			if len(k) > 7 && string(k[5:7]) == "h:" {
				found++
			}
			return v
		})
		return found
	}
	w.reopen()
	require.Equal(t, n, rows(), "exact times are kept")
	w.until(w.at() + 2*time.Hour)
	w.reopen() // their times have passed, and nothing is left of them
	w.reopen()
	require.Zero(t, rows())
}

func TestGroupLeftByALeaseIsLeftAlone(t *testing.T) {
	w := newWorld(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second)})
	w.add("http://x.example/1", "http://y.example/1")
	lx, ly := w.next(), w.next()
	require.NoError(t, w.f.Join(&lx, "a")) // x is contacted at address a ...
	w.until(time.Second)
	require.NoError(t, w.f.Join(&lx, "b")) // ... and then at address b
	require.ErrorIs(t, w.f.Join(&ly, "a"), frontier.ErrGroupBusy, "a was contacted under a lease that is still out")
}

func TestEveryGroupLeftByALeaseIsLeftAlone(t *testing.T) {
	w := newWorld(t, frontier.Options{Delay: frontier.FixedDelay(10 * time.Second)})
	w.add("http://x.example/1", "http://y.example/1")
	lx, ly := w.next(), w.next()
	for _, g := range []string{"a", "b", "c"} {
		require.NoError(t, w.f.Join(&lx, g))
	}
	require.NoError(t, w.f.Done(lx, frontier.Outcome{}))
	require.ErrorIs(t, w.f.Join(&ly, "a"), frontier.ErrGroupBusy)
	require.ErrorIs(t, w.f.Join(&ly, "b"), frontier.ErrGroupBusy)
}
func TestGroupsOfThePastLeaveNoRows(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{}, spill.Options{})
	n := func() (n int) {
		w.machine.Damage(func(k, v []byte) []byte {
			if len(k) > 7 && string(k[5:7]) == "g:" {
				n++
			}
			return v
		})
		return n
	}
	for i := range 5 {
		for j := range 20 {
			w.add(fmt.Sprintf("http://h%d-%d.example/", i, j))
			l := w.next()
			require.NoError(t, w.f.Join(&l, fmt.Sprint("ip", i, j)))
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		}
		w.reopen()
		w.clk.Advance(time.Hour)
		w.reopen()
		w.add(fmt.Sprintf("http://x%d.example/", i))
		require.LessOrEqual(t, n(), 20, "rows of groups")
	}
}
