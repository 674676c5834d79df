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
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

func TestCrawlNowComesFirst(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		w.Many(20, 20)
		if w.Machine != nil {
			require.NoError(t, hook.Of(w.F).MoveNow(true))
		}
		for range 30 {
			w.Fetched(w.Next(), 10*time.Millisecond, frontier.Outcome{})
		}
		w.Clock.Advance(2 * time.Second)
		w.CrawlNow(
			frontier.Entry{URL: "http://h3.example/19", Depth: 7}, // it waits
			frontier.Entry{URL: "http://new.example/"},
		)
		w.CrawlNow(frontier.Entry{URL: "http://h3.example/new", NotBefore: harness.Dawn.Add(time.Hour)})
		require.EqualValues(t, 3, w.F.Stats().Immediate)
		got := []string{}
		for range 2 {
			l := w.Next()
			require.Equal(t, frontier.Immediate, l.Priority)
			got = append(got, l.Entry.URL)
			w.Fetched(l, 0, frontier.Outcome{})
		}
		require.ElementsMatch(t, []string{"http://h3.example/19", "http://new.example/"}, got)
		at := w.At() // its host must wait: others continue meanwhile
		for w.F.Stats().Immediate > 0 {
			l := w.Next()
			if l.Entry.URL == "http://h3.example/new" {
				require.Equal(t, at+time.Second, w.At(), "ahead of all others as soon as its host is due")
			} else {
				require.NotEqual(t, "h3.example", l.Host)
			}
			w.Fetched(l, 0, frontier.Outcome{})
		}
		seen := map[string]int{}
		for _, _, err := w.TryNext(); err != nil && w.F.Stats().Waiting > 0; {
			l := w.Next()
			seen[l.Entry.URL]++
			w.Fetched(l, 0, frontier.Outcome{})
		}
		require.Zero(t, seen["http://h3.example/19"], "it came already")
	})
}

func TestCrawlNowOfURLsInAllStates(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{
		Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(2, time.Minute),
	}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/done", "http://b.example/leased")
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		leased := w.Next()
		_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://c.example/later", NotBefore: harness.Dawn.Add(time.Hour)})
		require.NoError(t, err)
		if w.Machine != nil {
			require.NoError(t, hook.Of(w.F).MoveNow(true))
		}
		w.Until(time.Minute)
		w.CrawlNow(frontier.Entry{URL: "http://a.example/done"}, frontier.Entry{URL: "http://b.example/leased"}, frontier.Entry{URL: "http://c.example/later"})
		w.Many(5, 1)
		got := []string{}
		for range 2 {
			l := w.Next()
			got = append(got, l.Entry.URL)
			w.Fetched(l, 0, frontier.Outcome{})
		}
		require.ElementsMatch(t, []string{"http://a.example/done", "http://c.example/later"}, got)
		w.Fetched(leased, 0, frontier.Outcome{})
		w.Clock.Advance(time.Second)
		l := w.Next()
		require.Equal(t, "http://b.example/leased", l.Entry.URL)
		require.Equal(t, frontier.Immediate, l.Priority)
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.Requeue})
		w.Clock.Advance(time.Second)
		l = w.Next()
		require.Equal(t, "http://b.example/leased", l.Entry.URL, "it was not tried, and is as urgent as before")
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
		require.Zero(t, w.F.Stats().Immediate)
		for range 6 {
			l = w.Next()
			w.Fetched(l, 0, frontier.Outcome{})
		}
		require.Equal(t, "http://b.example/leased", l.Entry.URL)
		require.Equal(t, 8, l.Priority, "a later try is like any other")
		hook.Of(w.F).ReadTimed() // of the scheduled one, something is left on disk
		w.Over()
	})
}

func TestCrawlNowLasts(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	w.Many(10, 2)
	w.CrawlNow(frontier.Entry{URL: "http://h5.example/1"}, frontier.Entry{URL: "http://h6.example/1"})
	for n := range 2 {
		w = w.Killed()
		require.EqualValues(t, 2-n, w.F.Stats().Immediate)
		require.EqualValues(t, 20-n, w.F.Stats().Waiting)
		w.Clock.Advance(time.Second)
		l := w.Next()
		require.Equal(t, fmt.Sprintf("http://h%d.example/1", 5+n), l.Entry.URL)
		w.Fetched(l, 0, frontier.Outcome{})
		require.NoError(t, hook.Of(w.F).MoveNow(true))
	}
}

// A host that failed and answers again delays no call, although the completion that reports it had
// nothing to commit.
func TestCrawlNowOfAHostThatAnswersAgain(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Add("http://a.example/1", "http://a.example/2")
	w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Failed})
	w.Until(time.Hour)
	w.Fetched(w.Next(), 0, frontier.Outcome{Result: frontier.Requeue})
	require.NoError(t, w.F.Check())
	w.CrawlNow(frontier.Entry{URL: "http://a.example/2"})
	w.Until(2 * time.Hour)
	w.NextIs(2*time.Hour, "http://a.example/2")
}

// Crawls with such URLs take turns, whatever their weights; a paused one waits.
func TestCrawlNowAmongCrawls(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
	w.SetCrawl(1, frontier.Rule{Weight: 100})
	w.SetCrawl(3, frontier.Rule{Paused: scope.On})
	w.InCrawl(1, "x", 50)
	for crawl := uint32(1); crawl <= 3; crawl++ {
		for i := range 10 {
			w.CrawlNow(frontier.Entry{URL: fmt.Sprintf("http://c%d-%d.example/", crawl, i), Crawl: crawl})
		}
	}
	had := map[uint32]int{}
	for range 20 {
		l := w.Next()
		require.Equal(t, frontier.Immediate, l.Priority)
		had[l.Entry.Crawl]++
		require.InDelta(t, had[1], had[2], 1)
		w.Fetched(l, 0, frontier.Outcome{})
	}
	require.Equal(t, 8, w.Next().Priority)
	w.SetCrawl(3, frontier.Rule{})
	require.Equal(t, frontier.Immediate, w.Next().Priority)
	require.EqualValues(t, 9, w.F.Stats().Immediate)
	s, _ := inspect.New(w.F).Crawl(3)
	require.EqualValues(t, 9, s.Immediate)
}

func TestCrawlNowOfBadEntries(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	n, err := w.F.CrawlNow(context.Background(), frontier.Entry{}, frontier.Entry{URL: "http://a.example/"})
	require.Equal(t, 1, n)
	require.Len(t, frontier.EntryErrors(err), 1)
	require.NoError(t, w.F.Close())
	_, err = w.F.CrawlNow(context.Background(), frontier.Entry{URL: "http://b.example/"})
	require.ErrorIs(t, err, frontier.ErrClosed)
}
