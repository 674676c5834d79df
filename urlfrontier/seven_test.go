package urlfrontier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"github.com/stretchr/testify/require"
)

// The seven tests of the API's own suite, written anew, in the order in which it runs them.
var seven = []struct {
	name string
	run  func(*api)
}{
	{"crawl IDs", crawlIDs}, {"updates", updates}, {"right order", rightOrder}, {"never refetched", neverRefetched},
	{"queue names", queueNames}, {"parallel dump", parallelDump}, {"round trip", roundTrip},
}

func TestTheSevenPassFiveTimesOnOneServer(t *testing.T) {
	t.Parallel()
	a := start(t)
	for range 5 {
		for _, c := range seven {
			t.Run(c.name, func(t *testing.T) { one := *a; one.T = t; one.empty(); c.run(&one) })
		}
	}
}

func TestTheSevenPassWithKillsBetween(t *testing.T) {
	t.Parallel()
	if *address != "" {
		t.Skip("the server is not ours to kill")
	}
	dir := t.TempDir()
	for _, c := range seven {
		t.Run(c.name, func(t *testing.T) {
			at, kill := startProcess(t, dir)
			a := dial(t, at)
			a.empty()
			c.run(a)
			kill()
		})
	}
}

func crawlIDs(a *api) {
	const url = "http://a.example/"
	require.Equal(a, map[string][]string{url: {"OK"}}, a.put(discovered("BESPOKE", "", url)))
	require.Equal(a, map[string][]string{url: {"OK", "SKIPPED"}}, a.put(discovered("", "", url), discovered("DEFAULT", "", url)))
	require.Equal(a, []string{"BESPOKE", "DEFAULT"}, a.crawls())
	for crawl, name := range map[string]string{"": "DEFAULT", " ": "DEFAULT", "BESPOKE": "BESPOKE"} {
		s := a.stats(crawl, "")
		require.Equal(a, []any{uint64(1), uint64(1), name}, []any{s.GetSize(), s.GetNumberOfQueues(), s.GetCrawlID()})
	}
	n, err := a.DeleteCrawl(a.Context(), &pb.DeleteCrawlMessage{Value: "BESPOKE"})
	require.NoError(a, err)
	require.EqualValues(a, 1, n.GetValue())
	require.EqualValues(a, 1, a.stats("", "").GetSize())
	s := a.stats("BESPOKE", "")
	require.Equal(a, []any{uint64(0), "BESPOKE"}, []any{s.GetSize(), s.GetCrawlID()})
	_, err = a.DeleteCrawl(a.Context(), &pb.DeleteCrawlMessage{})
	require.NoError(a, err)
	require.Empty(a, a.crawls())
}

func updates(a *api) {
	const url, key = "http://key.example/page", "key.example"
	require.Equal(a, map[string][]string{url: {"OK", "SKIPPED"}}, a.put(discovered("", key, url), discovered("", key, url)))
	require.Equal(a, []string{key}, a.queues(""))
	var got, again []string
	var s *pb.Stats
	require.Eventually(a, func() bool {
		began := time.Now()
		if got = a.get(byKey("DEFAULT", key, 1)); len(got) == 0 {
			return false
		}
		s, again = a.stats("", key), a.get(byKey("DEFAULT", key, 1))
		return time.Since(began) < time.Second // or the lease may have ended meanwhile
	}, time.Minute, time.Millisecond)
	require.Equal(a, []string{url}, got)
	require.Equal(a, []any{uint64(1), uint64(1), uint32(1)}, []any{s.GetNumberOfQueues(), s.GetSize(), s.GetInProcess()})
	require.Empty(a, again)
	time.Sleep(time.Second)
	require.Zero(a, a.stats("", key).GetInProcess(), "the first answer after the deadline")
	n, err := a.DeleteQueue(a.Context(), &pb.QueueWithinCrawlParams{Key: key})
	require.NoError(a, err)
	require.EqualValues(a, 1, n.GetValue())
	require.Zero(a, a.stats("", "").GetNumberOfQueues())
}

func rightOrder(a *api) {
	now := time.Now().Unix()
	a.put(known("", "key.example", "http://key.example/new", now), known("", "key.example", "http://key.example/old", now-10_000))
	var got []string
	require.Eventually(a, func() bool { got = a.get(byKey("", "key.example", 30)); return len(got) > 0 }, time.Minute, time.Millisecond)
	require.Equal(a, []string{"http://key.example/old"}, got)
}

func neverRefetched(a *api) {
	const url = "http://key.example/old"
	require.Equal(a, map[string][]string{url: {"OK"}}, a.put(known("", "key.example", url, 0)))
	require.Empty(a, a.get(byKey("", "key.example", 30)))
	s := a.stats("", "key.example")
	require.Equal(a, []any{uint64(0), uint64(1)}, []any{s.GetSize(), s.GetCounts()["completed"]})
	require.Equal(a, map[string][]string{url: {"SKIPPED"}}, a.put(discovered("", "key.example", url)))
	require.Zero(a, a.dateOf("", url))
}

func queueNames(a *api) {
	const url = "http://gac.icann.org?language_id=9"
	require.Equal(a, map[string][]string{url: {"OK"}}, a.put(discovered("", "", url)))
	require.EqualValues(a, 1, a.stats("", "gac.icann.org").GetSize())
	n, err := a.DeleteQueue(a.Context(), &pb.QueueWithinCrawlParams{Key: "gac.icann.org"})
	require.NoError(a, err)
	require.EqualValues(a, 1, n.GetValue())
}

// dump lists a crawl as the command DumpURLs does.
func (a *api) dump(crawl string) (items []*pb.URLItem) {
	for _, key := range a.queues(crawl) {
		items = append(items, a.list(&pb.ListUrlParams{CrawlID: crawl, Key: key, Size: 1<<31 - 1})...)
	}
	return items
}

func parallelDump(a *api) {
	var items []*pb.URLItem
	for i := range 20 {
		items = append(items, discovered("", "", fmt.Sprintf("http://host%d.example/%d", i%4, i)))
	}
	a.put(append(items, discovered("BESPOKE", "", "http://host0.example/0"))...)
	main, other := a.dump(""), a.dump("BESPOKE")
	require.Len(a, main, 20)
	require.Len(a, other, 1)
	a.empty()
	for _, acks := range a.put(append(main, other...)...) {
		for _, ack := range acks {
			require.Equal(a, "OK", ack)
		}
	}
	for crawl, want := range map[string]int{"": 20, "BESPOKE": 1} {
		n, err := a.CountURLs(a.Context(), &pb.CountUrlParams{CrawlID: crawl})
		require.NoError(a, err)
		require.EqualValues(a, want, n.GetValue())
	}
}

func roundTrip(a *api) {
	date := time.Now().Unix() + 100_000
	seed := discovered("", "", "http://a.example/seed")
	seed.GetDiscovered().Info.Metadata = map[string]*pb.StringList{"source": {Values: []string{"seed"}}}
	a.put(seed, known("", "", "http://a.example/done", 0), known("", "", "http://b.example/later", date), discovered("BESPOKE", "", "http://a.example/seed"))
	items := append(a.dump(""), a.dump("BESPOKE")...)
	require.Len(a, items, 4)
	a.empty()
	a.put(items...)
	require.Zero(a, a.dateOf("", "http://a.example/done"))
	require.Equal(a, date, a.dateOf("", "http://b.example/later"))
	item, err := a.status("", "", "http://a.example/seed")
	require.NoError(a, err)
	require.Equal(a, []string{"seed"}, item.GetKnown().GetInfo().GetMetadata()["source"].GetValues())
	require.Positive(a, item.GetCreationDate())
}
