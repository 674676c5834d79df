package urlfrontier_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"github.com/stretchr/testify/require"
)

// troubled is a report that the host of a URL wants to be left alone.
func troubled(key, url string, date int64) *pb.URLItem {
	item := known("", key, url, date)
	item.GetKnown().Info.Metadata = map[string]*pb.StringList{"fetch.statusCode": {Values: []string{"503"}}, "protocol.retry-after": {Values: []string{"1000"}}}
	return item
}

func TestALateReportOfATroubledHostSlowsItDown(t *testing.T) {
	a, _ := beside(t)
	a.put(discovered("", "", "http://a.example/1"), discovered("", "", "http://a.example/2"))
	got := a.due(byKey("", "a.example", 1))
	require.Eventually(t, func() bool { return a.stats("", "").GetInProcess() == 0 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, map[string][]string{got[0]: {"OK"}}, a.put(troubled("", got[0], 0)))
	require.Empty(t, a.get(byKey("", "a.example", 600)))
	require.Zero(t, a.dateOf("", got[0]))
	require.EqualValues(t, 1, a.stats("", "a.example").GetCounts()["completed"])
}

func TestAReportUnderAnotherKeySlowsItsHostDown(t *testing.T) {
	a, _ := beside(t)
	a.put(discovered("", "", "http://a.example/1"), discovered("", "", "http://a.example/2"))
	got := a.due(byKey("", "a.example", 600))
	date := time.Now().Unix() + 1000
	require.Equal(t, map[string][]string{got[0]: {"OK"}}, a.put(troubled("b.example", got[0], date)))
	require.Empty(t, a.get(byKey("", "a.example", 600)))
	s := a.stats("", "a.example")
	require.Equal(t, []uint64{1, 1}, []uint64{s.GetSize(), s.GetCounts()["completed"]}, "it does not come again in its queue")
	item, err := a.status("", "b.example", got[0])
	require.NoError(t, err)
	require.EqualValues(t, date, item.GetKnown().GetRefetchableFromDate())
}

func TestTooMuchMetadataChangesNothing(t *testing.T) {
	a, f := beside(t)
	const url = "http://a.example/"
	long := map[string]*pb.StringList{"x": {Values: []string{strings.Repeat("x", 64<<10)}}}
	first := info("", "", url)
	first.Metadata = long
	require.Equal(t, []string{"SKIPPED", "OK"}, a.batch("1", first, info("", "", url)))

	require.Equal(t, []string{url}, a.due(byKey("", "a.example", 600)))
	item := known("", "", url, 0)
	item.GetKnown().Info.Metadata = long
	require.Equal(t, map[string][]string{url: {"SKIPPED"}}, a.put(item))
	a.put(known("", "", url, 0))
	require.Zero(t, a.stats("", "").GetInProcess(), "it was out all the time")

	first.CrawlID = "other"
	require.Equal(t, []string{"SKIPPED", "SKIPPED"}, a.batch("2", first, info("other", "", "no URL")))
	_, ok, err := f.Value("crawl/other")
	require.NoError(t, err)
	require.False(t, ok, "what is skipped begins no crawl")
}

// A URL is out again because its lease has ended. The report of its first contact completes it, but says nothing of the
// second, which may be under way: the host is left alone until the second lease ends.
func TestAReportOfAnEarlierLeaseDoesNotFreeTheHost(t *testing.T) {
	a, _ := beside(t)
	a.put(discovered("", "", "http://a.example/1"))
	take := func(hold uint32) (all []*pb.URLInfo) {
		stream, err := a.GetURLs(t.Context(), &pb.GetParams{MaxUrlsPerQueue: 1, DelayRequestable: hold, Item: anyCrawl})
		require.NoError(t, err)
		for {
			info, err := stream.Recv()
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				return all
			}
			all = append(all, info)
		}
	}
	first := take(1)
	require.Len(t, first, 1)
	var second []*pb.URLInfo
	require.Eventually(t, func() bool { second = take(4); return len(second) > 0 }, time.Minute, 10*time.Millisecond)
	began := time.Now()
	require.Equal(t, first[0].GetUrl(), second[0].GetUrl())
	a.put(discovered("", "", "http://a.example/2"))
	report := &pb.URLItem{ID: first[0].GetUrl(), Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: first[0]}}}
	require.Equal(t, map[string][]string{first[0].GetUrl(): {"OK"}}, a.put(report))
	require.EqualValues(t, 1, a.stats("", "a.example").GetCounts()["completed"])
	require.Eventually(t, func() bool { second = take(1); return len(second) > 0 }, time.Minute, 10*time.Millisecond)
	require.Greater(t, time.Since(began), 3*time.Second)
	require.NotEqual(t, first[0].GetUrl(), second[0].GetUrl())
	item, err := a.status("", "a.example", first[0].GetUrl())
	require.NoError(t, err)
	require.NotContains(t, item.GetKnown().GetInfo().GetMetadata(), "frontier.lease")
	report = &pb.URLItem{ID: second[0].GetUrl(), Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: second[0]}}}
	require.Equal(t, map[string][]string{second[0].GetUrl(): {"OK"}}, a.put(report))
	require.EqualValues(t, 2, a.stats("", "a.example").GetCounts()["completed"])
}
