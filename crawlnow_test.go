package frontier_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

func (w *world) crawlNow(entries ...frontier.Entry) {
	w.Helper()
	n, err := w.f.CrawlNow(context.Background(), entries...)
	require.NoError(w, err)
	require.Equal(w, len(entries), n)
	require.NoError(w, w.f.Check())
}

// many adds n URLs of each of so many hosts.
func (w *world) many(hosts, n int) {
	w.Helper()
	for i := range hosts * n {
		_, err := w.f.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%hosts, i/hosts)})
		require.NoError(w, err)
	}
}

func TestCrawlNowComesFirst(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *world) {
		w.many(20, 20)
		if w.machine != nil {
			require.NoError(t, w.f.MoveNow(true))
		}
		for range 30 {
			w.fetched(w.next(), 10*ms, frontier.Outcome{})
		}
		w.clk.Advance(2 * time.Second)
		w.crawlNow(
			frontier.Entry{URL: "http://h3.example/19", Depth: 7}, // it waits
			frontier.Entry{URL: "http://new.example/"},
		)
		w.crawlNow(frontier.Entry{URL: "http://h3.example/new", NotBefore: dawn.Add(time.Hour)})
		require.EqualValues(t, 3, w.f.Stats().Immediate)
		got := []string{}
		for range 2 {
			l := w.next()
			require.Equal(t, frontier.Immediate, l.Priority)
			got = append(got, l.Entry.URL)
			w.fetched(l, 0, frontier.Outcome{})
		}
		require.ElementsMatch(t, []string{"http://h3.example/19", "http://new.example/"}, got)
		at := w.at() // its host must wait: others go on meanwhile
		for w.f.Stats().Immediate > 0 {
			l := w.next()
			if l.Entry.URL == "http://h3.example/new" {
				require.Equal(t, at+time.Second, w.at(), "ahead of all others as soon as its host is due")
			} else {
				require.NotEqual(t, "h3.example", l.Host)
			}
			w.fetched(l, 0, frontier.Outcome{})
		}
		seen := map[string]int{}
		for _, _, err := w.tryNext(); err != nil && w.f.Stats().Waiting > 0; {
			l := w.next()
			seen[l.Entry.URL]++
			w.fetched(l, 0, frontier.Outcome{})
		}
		require.Zero(t, seen["http://h3.example/19"], "it came already")
	})
}

func TestCrawlNowOfURLsInAllStates(t *testing.T) {
	inBothWorlds(t, frontier.Options{
		Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(2, time.Minute),
	}, func(t *testing.T, w *world) {
		w.add("http://a.example/done", "http://b.example/leased")
		w.fetched(w.next(), 0, frontier.Outcome{})
		leased := w.next()
		_, err := w.f.Add(context.Background(), frontier.Entry{URL: "http://c.example/later", NotBefore: dawn.Add(time.Hour)})
		require.NoError(t, err)
		if w.machine != nil {
			require.NoError(t, w.f.MoveNow(true))
		}
		w.until(time.Minute)
		w.crawlNow(frontier.Entry{URL: "http://a.example/done"}, frontier.Entry{URL: "http://b.example/leased"}, frontier.Entry{URL: "http://c.example/later"})
		w.many(5, 1)
		got := []string{}
		for range 2 {
			l := w.next()
			got = append(got, l.Entry.URL)
			w.fetched(l, 0, frontier.Outcome{})
		}
		require.ElementsMatch(t, []string{"http://a.example/done", "http://c.example/later"}, got)
		w.fetched(leased, 0, frontier.Outcome{})
		w.clk.Advance(time.Second)
		l := w.next()
		require.Equal(t, "http://b.example/leased", l.Entry.URL)
		require.Equal(t, frontier.Immediate, l.Priority)
		w.fetched(l, 0, frontier.Outcome{Result: frontier.Requeue})
		w.clk.Advance(time.Second)
		l = w.next()
		require.Equal(t, "http://b.example/leased", l.Entry.URL, "it was not tried, and is as urgent as before")
		w.fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
		require.Zero(t, w.f.Stats().Immediate)
		for range 6 {
			l = w.next()
			w.fetched(l, 0, frontier.Outcome{})
		}
		require.Equal(t, "http://b.example/leased", l.Entry.URL)
		require.Equal(t, 8, l.Priority, "a later try is like any other")
		w.f.ReadTimed() // of the scheduled one, something is left on disk
		w.over()
	})
}

func TestCrawlNowLasts(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	w.many(10, 2)
	w.crawlNow(frontier.Entry{URL: "http://h5.example/1"}, frontier.Entry{URL: "http://h6.example/1"})
	for n := range 2 {
		w = w.killed()
		require.EqualValues(t, 2-n, w.f.Stats().Immediate)
		require.EqualValues(t, 20-n, w.f.Stats().Waiting)
		w.clk.Advance(time.Second)
		l := w.next()
		require.Equal(t, fmt.Sprintf("http://h%d.example/1", 5+n), l.Entry.URL)
		w.fetched(l, 0, frontier.Outcome{})
		require.NoError(t, w.f.MoveNow(true))
	}
}

// A host that failed and answers again holds nobody up, though the completion that says
// so had nothing to commit.
func TestCrawlNowOfAHostThatAnswersAgain(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{}, spill.Options{})
	w.add("http://a.example/1", "http://a.example/2")
	w.fetched(w.next(), 0, frontier.Outcome{Result: frontier.Failed})
	w.until(time.Hour)
	w.fetched(w.next(), 0, frontier.Outcome{Result: frontier.Requeue})
	require.NoError(t, w.f.Check())
	w.crawlNow(frontier.Entry{URL: "http://a.example/2"})
	w.until(2 * time.Hour)
	w.nextIs(2*time.Hour, "http://a.example/2")
}

// Crawls with such URLs take turns, whatever their weights; a paused one waits.
func TestCrawlNowAmongCrawls(t *testing.T) {
	w := newWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
	w.setCrawl(1, frontier.CrawlSettings{Weight: 100})
	w.setCrawl(3, frontier.CrawlSettings{Paused: true})
	w.inCrawl(1, "x", 50)
	for crawl := uint32(1); crawl <= 3; crawl++ {
		for i := range 10 {
			w.crawlNow(frontier.Entry{URL: fmt.Sprintf("http://c%d-%d.example/", crawl, i), Crawl: crawl})
		}
	}
	had := map[uint32]int{}
	for range 20 {
		l := w.next()
		require.Equal(t, frontier.Immediate, l.Priority)
		had[l.Entry.Crawl]++
		require.InDelta(t, had[1], had[2], 1)
		w.fetched(l, 0, frontier.Outcome{})
	}
	require.Equal(t, 8, w.next().Priority)
	w.setCrawl(3, frontier.CrawlSettings{})
	require.Equal(t, frontier.Immediate, w.next().Priority)
	require.EqualValues(t, 9, w.f.Stats().Immediate)
	s, _ := w.f.CrawlStats(3)
	require.EqualValues(t, 9, s.Immediate)
}

func TestCrawlNowOfBadEntries(t *testing.T) {
	w := newWorld(t, frontier.Options{})
	n, err := w.f.CrawlNow(context.Background(), frontier.Entry{}, frontier.Entry{URL: "http://a.example/"})
	require.Equal(t, 1, n)
	require.Len(t, frontier.EntryErrors(err), 1)
	require.NoError(t, w.f.Close())
	_, err = w.f.CrawlNow(context.Background(), frontier.Entry{URL: "http://b.example/"})
	require.ErrorIs(t, err, frontier.ErrClosed)
}
