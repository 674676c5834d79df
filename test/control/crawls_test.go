package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

func TestCrawlsShareByWeight(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		weights := map[uint32]int{0: 1, 7: 2, 9: 5}
		for id, weight := range weights {
			w.SetCrawl(id, frontier.Rule{Weight: weight})
			w.InCrawl(id, fmt.Sprint("c", id, "-"), 800)
		}
		had := map[uint32]int{}
		for n := 1; n <= 800; n++ {
			l := w.Next()
			had[l.Entry.Crawl]++
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
			for id, weight := range weights {
				require.InDelta(t, float64(n*weight)/8, had[id], 2, "crawl %d after %d hand-outs", id, n)
			}
		}
		w.SetCrawl(9, frontier.Rule{}) // from now on all weigh 1, but for 7
		had = map[uint32]int{}
		for range 400 {
			l := w.Next()
			had[l.Entry.Crawl]++
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		require.InDelta(t, 200, had[7], 3)
		require.InDelta(t, 100, had[9], 3)
	})
}

// A crawl has not saved up turns while it had nothing to offer.
func TestCrawlThatComesBackHasItsShareOnly(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
	w.InCrawl(1, "a", 2000)
	w.InCrawl(2, "early", 1)
	for range 1000 {
		w.Fetched(w.Next(), 0, frontier.Outcome{})
	}
	w.InCrawl(2, "b", 500)
	had := map[uint32]int{}
	for range 100 {
		l := w.Next()
		had[l.Entry.Crawl]++
		w.Fetched(l, 0, frontier.Outcome{})
	}
	require.InDelta(t, 50, had[2], 1)
}

// A crawl of many URLs, on hosts of its own and on shared ones, does not
// starve one of ten; hosts that are in both are contacted as one.
func TestSmallCrawlIsDoneWithinItsShare(t *testing.T) {
	const small, hosts = 10, 20_000
	big := 200_000
	if *harness.Long {
		big = 10_000_000
	}
	w := harness.NewWorld(t, frontier.Options{
		Delay: frontier.FixedDelay(10 * time.Second), Selector: selector.BiasedRandom(1), MemoryBudget: 4 << 30,
	})
	es := make([]frontier.Entry, 0, 10_000)
	for i := range big {
		es = append(es, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%hosts, i), Crawl: 1, Depth: i % 8})
		if len(es) == cap(es) {
			_, err := w.F.Add(context.Background(), es...)
			require.NoError(t, err)
			es = es[:0]
		}
	}
	const workers = 20
	contacted := map[string]time.Duration{}
	took := func(l frontier.Lease) {
		if at, ok := contacted[l.Host]; ok {
			require.GreaterOrEqual(t, w.At()-at, 10*time.Second, "%s was contacted too early", l.Host)
		}
		contacted[l.Host] = w.At()
	}
	// work is one round of the workers.
	work := func() (of [3]int) {
		var out []frontier.Lease
		for range workers {
			l, _, err := w.F.TryNext()
			require.NoError(t, err)
			took(l)
			of[l.Entry.Crawl]++
			out = append(out, l)
		}
		w.Clock.Advance(100 * time.Millisecond)
		for _, l := range out {
			contacted[l.Host] = w.At()
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		return of
	}
	for range 500 {
		work()
	}
	for i := range small { // half of them on hosts of the big one that have not been contacted just now
		e := frontier.Entry{URL: fmt.Sprintf("http://own%d.example/", i), Crawl: 2, Depth: 7}
		for n := i * 900; i%2 == 0; n++ {
			if at, ok := contacted[fmt.Sprintf("h%d.example", n)]; !ok || w.At()-at >= 10*time.Second {
				e.URL = fmt.Sprintf("http://h%d.example/small", n)
				break
			}
		}
		_, err := w.F.Add(context.Background(), e)
		require.NoError(t, err)
	}
	n, handedOut := 0, 0
	for n < small {
		of := work()
		n += of[2]
		handedOut += of[1] + of[2]
		require.LessOrEqual(t, handedOut, 2*small+2*workers, "the small crawl has had %d of its %d", n, small)
	}
	s, ok := inspect.New(w.F).Crawl(2)
	require.True(t, ok)
	require.EqualValues(t, small, s.HandedOut)
	require.Zero(t, s.Waiting+s.Leased)
	require.EqualValues(t, small, s.Done[frontier.Visited])
	require.Equal(t, []uint32{1, 2}, inspect.New(w.F).Crawls())
	t.Logf("%d URLs beside %d: all were handed out among %d", small, big, handedOut)
}

func TestHostOfTwoCrawlsIsContactedAsOne(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		for crawl := range uint32(2) {
			for i := range 4 {
				_, err := w.F.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), Crawl: crawl})
				require.NoError(t, err)
			}
		}
		had := map[uint32]int{}
		for n := range 8 {
			l := w.Next()
			require.Equal(t, time.Duration(n)*time.Second, w.At())
			had[l.Entry.Crawl]++
			require.InDelta(t, had[0], had[1], 1)
			w.Fetched(l, 0, frontier.Outcome{})
		}
		w.Over()
	})
}

func TestPausedCrawlIsHeld(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		w.InCrawl(1, "a", 10)
		w.InCrawl(2, "a", 10) // on the same hosts
		l := w.Next()
		w.SetCrawl(1, frontier.Rule{Paused: scope.On})
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.Requeue})
		one, _ := inspect.New(w.F).Crawl(1)
		require.Equal(t, one.Waiting, w.F.Stats().Held)
		for range w.F.Stats().Waiting - one.Waiting {
			l := w.Next()
			require.EqualValues(t, 2, l.Entry.Crawl)
			w.Fetched(l, 0, frontier.Outcome{})
		}
		w.Over()
		if w.Machine != nil {
			require.NoError(t, hook.Of(w.F).MoveNow(true))
			w = w.Killed()
			w.Until(w.At() + time.Second)
			w.Over()
			s, _ := inspect.New(w.F).Crawl(1)
			require.Equal(t, scope.On, s.Rule.Paused)
		}
		w.SetCrawl(1, frontier.Rule{})
		require.Zero(t, w.F.Stats().Held)
		for range one.Waiting {
			l := w.Next()
			require.EqualValues(t, 1, l.Entry.Crawl)
			w.Fetched(l, 0, frontier.Outcome{})
		}
		w.Over()
	})
}

// A URL that is held by its host and by its crawl counts once.
func TestPausedHostsOfPausedCrawls(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
	for crawl := range uint32(2) {
		w.InCrawl(crawl, "a", 4)
	}
	pause := func(crawl uint32, paused scope.Switch) func() {
		return func() { w.SetCrawl(crawl, frontier.Rule{Paused: paused}) }
	}
	host := func(rule func(scope.Scope) error) func() {
		return func() { require.NoError(t, rule(scope.Host("a1.example"))) }
	}
	held := func(want int64, do ...func()) {
		for _, fn := range do {
			fn()
		}
		var out []frontier.Lease
		for {
			l, _, err := w.TryNext()
			if err != nil {
				break
			}
			out = append(out, l)
		}
		for _, l := range out {
			require.NoError(t, w.F.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
		}
		require.Equal(t, want, w.F.Stats().Held)
		require.NoError(t, w.F.Check())
	}
	held(0)
	held(2, host(w.F.Pause))
	held(5, pause(1, scope.On))
	held(8, pause(0, scope.On))
	_, _, err := w.TryNext()
	var e *frontier.HeldError
	require.ErrorAs(t, err, &e)
	require.EqualValues(t, 8, e.Held)
	held(8, host(w.F.Resume))
	held(5, host(w.F.Pause), pause(1, scope.Off))
	held(4, host(w.F.Resume))
	held(0, pause(0, scope.Unset))
}

// Hosts that a pause holds back do not keep others from the group's slot, whether
// they had it or not.
func TestPausedCrawlHoldsNoGroupSlot(t *testing.T) {
	for paused, left := range map[uint32][]string{
		1: {"http://b.example/", "http://b.example/2"},
		2: {"http://a.example/2"},
	} {
		w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)})
		for i, e := range []frontier.Entry{{URL: "http://a.example/", Crawl: 1}, {URL: "http://b.example/", Crawl: 2}} {
			_, err := w.F.Add(context.Background(), e, frontier.Entry{URL: e.URL + "2", Crawl: e.Crawl})
			require.NoError(t, err)
			l := w.Next()
			require.Equal(t, e.URL, l.Entry.URL)
			if i == 0 {
				require.NoError(t, w.F.Join(&l, "g"))
				w.Fetched(l, 0, frontier.Outcome{})
				continue
			}
			require.ErrorIs(t, w.F.Join(&l, "g"), frontier.ErrGroupBusy)
			w.Fetched(l, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		}
		w.Until(time.Second)
		w.F.Stats() // one of the two is ready now, and has the slot
		w.SetCrawl(paused, frontier.Rule{Paused: scope.On})
		for _, url := range left {
			l := w.Next()
			require.Equal(t, url, l.Entry.URL)
			w.Fetched(l, 0, frontier.Outcome{})
		}
		w.Over()
		w.SetCrawl(paused, frontier.Rule{})
		require.NotContains(t, left, w.Next().Entry.URL)
	}
}

// A crawl that is paused while one of its URLs is read from disk is not handed out.
func TestPauseMeetsALoad(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	w.InCrawl(1, "a", 1)
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	paused := false
	w.Machine.Faults.Before(spilltest.Read, 1, func() {
		paused = true
		w.SetCrawl(1, frontier.Rule{Paused: scope.On})
	})
	w.Over()
	require.True(t, paused)
}

func TestForgottenCrawls(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
	w.SetCrawl(5, frontier.Rule{Weight: 3})
	for id := uint32(10); id < 2000; id++ {
		_, err := w.F.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", id), Crawl: id})
		require.NoError(t, err)
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Clock.Advance(time.Second)
	}
	w.F.Stats()
	require.Less(t, len(inspect.New(w.F).Crawls()), 300)
	_, ok := inspect.New(w.F).Crawl(10)
	require.False(t, ok)
	s, ok := inspect.New(w.F).Crawl(1999)
	require.True(t, ok)
	require.EqualValues(t, 1, s.HandedOut)
	s, ok = inspect.New(w.F).Crawl(5)
	require.True(t, ok)
	require.Equal(t, frontier.Rule{Weight: 3}, s.Rule)
	require.NotContains(t, inspect.New(w.F).Crawls(), uint32(0))
}

func TestSettingsOfCrawlsLast(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.SetCrawl(0, frontier.Rule{Weight: 1000})
	w.SetCrawl(1<<32-1, frontier.Rule{Weight: 2, Paused: scope.On})
	w.SetCrawl(3, frontier.Rule{Weight: 2})
	w.SetCrawl(3, frontier.Rule{}) // taken back
	for _, id := range []uint32{0, 1<<32 - 1} {
		require.ErrorContains(t, w.F.UpdateRule(scope.Crawl(id), func(r *frontier.Rule) { *r = frontier.Rule{Weight: 1001} }), "Weight is 1001; want 1 to 1000")
		require.ErrorContains(t, w.F.UpdateRule(scope.Crawl(id), func(r *frontier.Rule) { *r = frontier.Rule{Weight: -1} }), "Weight is -1; want 1 to 1000")
		require.ErrorContains(t, w.F.BlockUntil(scope.Crawl(id), w.Clock.Now().Add(time.Hour)), "the other settings are of hosts")
	}
	w = w.Killed()
	require.Equal(t, []uint32{0, 1<<32 - 1}, inspect.New(w.F).Crawls())
	s, _ := inspect.New(w.F).Crawl(0)
	require.Equal(t, frontier.Rule{Weight: 1000}, s.Rule)
	s, _ = inspect.New(w.F).Crawl(1<<32 - 1)
	require.Equal(t, frontier.Rule{Weight: 2, Paused: scope.On}, s.Rule)
	require.NoError(t, w.F.Close())
	require.ErrorIs(t, w.F.UpdateRule(scope.Crawl(1), func(r *frontier.Rule) { *r = frontier.Rule{} }), frontier.ErrClosed)
}
