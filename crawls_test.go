package frontier_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

// inCrawl adds n URLs of a crawl, each of a host of its own named after prefix.
func (w *world) inCrawl(crawl uint32, prefix string, n int) {
	w.Helper()
	for i := 0; i < n; i += 10_000 {
		var es []frontier.Entry
		for j := i; j < min(n, i+10_000); j++ {
			es = append(es, frontier.Entry{URL: fmt.Sprintf("http://%s%d.example/", prefix, j), Crawl: crawl})
		}
		_, err := w.f.Add(context.Background(), es...)
		require.NoError(w, err)
	}
}

func (w *world) setCrawl(id uint32, s frontier.CrawlSettings) {
	w.Helper()
	require.NoError(w, w.f.SetCrawl(id, s))
}

func TestCrawlsShareByWeight(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *world) {
		weights := map[uint32]int{0: 1, 7: 2, 9: 5}
		for id, weight := range weights {
			w.setCrawl(id, frontier.CrawlSettings{Weight: weight})
			w.inCrawl(id, fmt.Sprint("c", id, "-"), 800)
		}
		had := map[uint32]int{}
		for n := 1; n <= 800; n++ {
			l := w.next()
			had[l.Entry.Crawl]++
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
			for id, weight := range weights {
				require.InDelta(t, float64(n*weight)/8, had[id], 2, "crawl %d after %d hand-outs", id, n)
			}
		}
		w.setCrawl(9, frontier.CrawlSettings{}) // from now on all weigh 1, but for 7
		had = map[uint32]int{}
		for range 400 {
			l := w.next()
			had[l.Entry.Crawl]++
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		}
		require.InDelta(t, 200, had[7], 3)
		require.InDelta(t, 100, had[9], 3)
	})
}

// A crawl has not saved up turns while it had nothing to offer.
func TestCrawlThatComesBackHasItsShareOnly(t *testing.T) {
	w := newWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
	w.inCrawl(1, "a", 2000)
	w.inCrawl(2, "early", 1)
	for range 1000 {
		w.fetched(w.next(), 0, frontier.Outcome{})
	}
	w.inCrawl(2, "b", 500)
	had := map[uint32]int{}
	for range 100 {
		l := w.next()
		had[l.Entry.Crawl]++
		w.fetched(l, 0, frontier.Outcome{})
	}
	require.InDelta(t, 50, had[2], 1)
}

// A crawl of many URLs, on hosts of its own and on shared ones, does not
// starve one of ten; hosts that are in both are contacted as one.
func TestSmallCrawlIsDoneWithinItsShare(t *testing.T) {
	const small, hosts = 10, 20_000
	big := 200_000
	if *long {
		big = 10_000_000
	}
	w := newWorld(t, frontier.Options{
		Delay: frontier.FixedDelay(10 * time.Second), Selector: frontier.BiasedRandom(1), MemoryBudget: 4 << 30,
	})
	es := make([]frontier.Entry, 0, 10_000)
	for i := range big {
		es = append(es, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%hosts, i), Crawl: 1, Depth: i % 8})
		if len(es) == cap(es) {
			_, err := w.f.Add(context.Background(), es...)
			require.NoError(t, err)
			es = es[:0]
		}
	}
	const workers = 20
	contacted := map[string]time.Duration{}
	took := func(l frontier.Lease) {
		if at, ok := contacted[l.Host]; ok {
			require.GreaterOrEqual(t, w.at()-at, 10*time.Second, "%s was contacted too early", l.Host)
		}
		contacted[l.Host] = w.at()
	}
	// work is one round of the workers.
	work := func() (of [3]int) {
		var out []frontier.Lease
		for range workers {
			l, _, err := w.f.TryNext()
			require.NoError(t, err)
			took(l)
			of[l.Entry.Crawl]++
			out = append(out, l)
		}
		w.clk.Advance(100 * ms)
		for _, l := range out {
			contacted[l.Host] = w.at()
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		}
		return of
	}
	for range 500 {
		work()
	}
	for i := range small { // half of them on hosts of the big one that have not been contacted just now
		e := frontier.Entry{URL: fmt.Sprintf("http://own%d.example/", i), Crawl: 2, Depth: 7}
		for n := i * 900; i%2 == 0; n++ {
			if at, ok := contacted[fmt.Sprintf("h%d.example", n)]; !ok || w.at()-at >= 10*time.Second {
				e.URL = fmt.Sprintf("http://h%d.example/small", n)
				break
			}
		}
		_, err := w.f.Add(context.Background(), e)
		require.NoError(t, err)
	}
	n, handedOut := 0, 0
	for n < small {
		of := work()
		n += of[2]
		handedOut += of[1] + of[2]
		require.LessOrEqual(t, handedOut, 2*small+2*workers, "the small crawl has had %d of its %d", n, small)
	}
	s, ok := w.f.CrawlStats(2)
	require.True(t, ok)
	require.EqualValues(t, small, s.HandedOut)
	require.Zero(t, s.Waiting+s.Leased)
	require.EqualValues(t, small, s.Done[frontier.Visited])
	require.Equal(t, []uint32{1, 2}, w.f.Crawls())
	t.Logf("%d URLs beside %d: all were handed out among %d", small, big, handedOut)
}

func TestHostOfTwoCrawlsIsContactedAsOne(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *world) {
		for crawl := range uint32(2) {
			for i := range 4 {
				_, err := w.f.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), Crawl: crawl})
				require.NoError(t, err)
			}
		}
		had := map[uint32]int{}
		for n := range 8 {
			l := w.next()
			require.Equal(t, time.Duration(n)*time.Second, w.at())
			had[l.Entry.Crawl]++
			require.InDelta(t, had[0], had[1], 1)
			w.fetched(l, 0, frontier.Outcome{})
		}
		w.over()
	})
}

func TestPausedCrawlIsHeld(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *world) {
		w.inCrawl(1, "a", 10)
		w.inCrawl(2, "a", 10) // on the same hosts
		l := w.next()
		w.setCrawl(1, frontier.CrawlSettings{Paused: true})
		w.fetched(l, 0, frontier.Outcome{Result: frontier.Requeue})
		one, _ := w.f.CrawlStats(1)
		require.Equal(t, one.Waiting, w.f.Stats().Held)
		for range w.f.Stats().Waiting - one.Waiting {
			l := w.next()
			require.EqualValues(t, 2, l.Entry.Crawl)
			w.fetched(l, 0, frontier.Outcome{})
		}
		w.over()
		if w.machine != nil {
			require.NoError(t, w.f.MoveNow(true))
			w = w.killed()
			w.until(w.at() + time.Second)
			w.over()
			s, _ := w.f.CrawlStats(1)
			require.True(t, s.Settings.Paused)
		}
		w.setCrawl(1, frontier.CrawlSettings{})
		require.Zero(t, w.f.Stats().Held)
		for range one.Waiting {
			l := w.next()
			require.EqualValues(t, 1, l.Entry.Crawl)
			w.fetched(l, 0, frontier.Outcome{})
		}
		w.over()
	})
}

// A URL that is held by its host and by its crawl counts once.
func TestPausedHostsOfPausedCrawls(t *testing.T) {
	w := newWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
	for crawl := range uint32(2) {
		w.inCrawl(crawl, "a", 4)
	}
	pause := func(crawl uint32, paused bool) func() {
		return func() { w.setCrawl(crawl, frontier.CrawlSettings{Paused: paused}) }
	}
	host := func(rule func(frontier.Scope) error) func() {
		return func() { require.NoError(t, rule(frontier.Host("a1.example"))) }
	}
	held := func(want int64, do ...func()) {
		for _, fn := range do {
			fn()
		}
		var out []frontier.Lease
		for {
			l, _, err := w.tryNext()
			if err != nil {
				break
			}
			out = append(out, l)
		}
		for _, l := range out {
			require.NoError(t, w.f.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
		}
		require.Equal(t, want, w.f.Stats().Held)
		require.NoError(t, w.f.Check())
	}
	held(0)
	held(2, host(w.f.Pause))
	held(5, pause(1, true))
	held(8, pause(0, true))
	_, _, err := w.tryNext()
	var e *frontier.HeldError
	require.ErrorAs(t, err, &e)
	require.EqualValues(t, 8, e.Held)
	held(8, host(w.f.Resume))
	held(5, host(w.f.Pause), pause(1, false))
	held(4, host(w.f.Resume))
	held(0, pause(0, false))
}

// Hosts that a pause holds back do not keep others from the group's slot, whether
// they had it or not.
func TestPausedCrawlHoldsNoGroupSlot(t *testing.T) {
	for paused, left := range map[uint32][]string{
		1: {"http://b.example/", "http://b.example/2"},
		2: {"http://a.example/2"},
	} {
		w := newWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)})
		for i, e := range []frontier.Entry{{URL: "http://a.example/", Crawl: 1}, {URL: "http://b.example/", Crawl: 2}} {
			_, err := w.f.Add(context.Background(), e, frontier.Entry{URL: e.URL + "2", Crawl: e.Crawl})
			require.NoError(t, err)
			l := w.next()
			require.Equal(t, e.URL, l.Entry.URL)
			if i == 0 {
				require.NoError(t, w.f.Join(&l, "g"))
				w.fetched(l, 0, frontier.Outcome{})
				continue
			}
			require.ErrorIs(t, w.f.Join(&l, "g"), frontier.ErrGroupBusy)
			w.fetched(l, 0, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		}
		w.until(time.Second)
		w.f.Stats() // one of the two is ready now, and has the slot
		w.setCrawl(paused, frontier.CrawlSettings{Paused: true})
		for _, url := range left {
			l := w.next()
			require.Equal(t, url, l.Entry.URL)
			w.fetched(l, 0, frontier.Outcome{})
		}
		w.over()
		w.setCrawl(paused, frontier.CrawlSettings{})
		require.NotContains(t, left, w.next().Entry.URL)
	}
}

// A crawl that is paused while one of its URLs is read from disk is not handed out.
func TestPauseMeetsALoad(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	w.inCrawl(1, "a", 1)
	require.NoError(t, w.f.MoveNow(true))
	paused := false
	w.machine.Faults.Before(spilltest.Read, 1, func() {
		paused = true
		w.setCrawl(1, frontier.CrawlSettings{Paused: true})
	})
	w.over()
	require.True(t, paused)
}

func TestForgottenCrawls(t *testing.T) {
	w := newWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
	w.setCrawl(5, frontier.CrawlSettings{Weight: 3})
	for id := uint32(10); id < 2000; id++ {
		_, err := w.f.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", id), Crawl: id})
		require.NoError(t, err)
		w.fetched(w.next(), 0, frontier.Outcome{})
		w.clk.Advance(time.Second)
	}
	w.f.Stats()
	require.Less(t, len(w.f.Crawls()), 300)
	_, ok := w.f.CrawlStats(10)
	require.False(t, ok)
	s, ok := w.f.CrawlStats(1999)
	require.True(t, ok)
	require.EqualValues(t, 1, s.HandedOut)
	s, ok = w.f.CrawlStats(5)
	require.True(t, ok)
	require.Equal(t, frontier.CrawlSettings{Weight: 3}, s.Settings)
	require.NotContains(t, w.f.Crawls(), uint32(0))
}

func TestSettingsOfCrawlsLast(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{}, spill.Options{})
	w.setCrawl(0, frontier.CrawlSettings{Weight: 1000})
	w.setCrawl(1<<32-1, frontier.CrawlSettings{Weight: 2, Paused: true})
	w.setCrawl(3, frontier.CrawlSettings{Weight: 2})
	w.setCrawl(3, frontier.CrawlSettings{}) // taken back
	for _, id := range []uint32{0, 1<<32 - 1} {
		require.ErrorContains(t, w.f.SetCrawl(id, frontier.CrawlSettings{Weight: 1001}), "Weight is 1001; want 0 to 1000")
		require.ErrorContains(t, w.f.SetCrawl(id, frontier.CrawlSettings{Weight: -1}), "Weight is -1; want 0 to 1000")
	}
	w = w.killed()
	require.Equal(t, []uint32{0, 1<<32 - 1}, w.f.Crawls())
	s, _ := w.f.CrawlStats(0)
	require.Equal(t, frontier.CrawlSettings{Weight: 1000}, s.Settings)
	s, _ = w.f.CrawlStats(1<<32 - 1)
	require.Equal(t, frontier.CrawlSettings{Weight: 2, Paused: true}, s.Settings)
	require.NoError(t, w.f.Close())
	require.ErrorIs(t, w.f.SetCrawl(1, frontier.CrawlSettings{}), frontier.ErrClosed)
}
