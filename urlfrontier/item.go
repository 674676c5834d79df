// This file converts URLs between the API and the frontier, and derives priorities from refetch dates.

package urlfrontier

import (
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// lateness maps how late a URL is to its priority.
var lateness = [...]struct {
	late  time.Duration
	class uint8
}{
	{30 * 24 * time.Hour, 12}, {7 * 24 * time.Hour, 11}, {24 * time.Hour, 10}, {6 * time.Hour, 9},
	{time.Hour, 8}, {10 * time.Minute, 7}, {time.Minute, 6},
}

// classOf derives a known URL's priority from its refetch date. Clients use dates shortly after 1970 for
// URLs that go before others.
func classOf(date uint64, now time.Time) uint8 {
	switch {
	case date < 10:
		return 16
	case date < 100:
		return 15
	case date < 1000:
		return 14
	case date < 1_000_000:
		return 13
	}
	for _, l := range lateness {
		if int64(date) <= now.Add(-l.late).Unix() {
			return l.class
		}
	}
	return 5
}

// latest is the last date that the frontier can schedule.
var latest = time.Date(2250, 1, 1, 0, 0, 0, 0, time.UTC)

// timeOf converts a date of the API.
func timeOf(seconds uint64) time.Time {
	return time.Unix(int64(min(seconds, uint64(latest.Unix()))), 0)
}

// metadataOf and listsOf convert metadata.
func metadataOf(m map[string]*pb.StringList) map[string][]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string][]string, len(m))
	for k, v := range m {
		out[k] = v.GetValues()
	}
	return out
}

func listsOf(m map[string][]string) map[string]*pb.StringList {
	out := make(map[string]*pb.StringList, len(m))
	for k, v := range m {
		out[k] = &pb.StringList{Values: v}
	}
	return out
}

// envelopeOf decodes an entry's Meta. A Meta that is not an Envelope counts as no metadata.
func envelopeOf(meta []byte) serve.Envelope {
	e, err := serve.OpenEnvelope(meta)
	if err != nil {
		return serve.Envelope{}
	}
	return e
}

// itemOf returns a URL as listings and status show it. Its NotBefore is zero if it waits.
func itemOf(entry frontier.Entry, key, crawl string) *pb.URLItem {
	e := envelopeOf(entry.Meta)
	date := e.Refetch
	switch {
	case entry.Finished:
		date = 0
	case date == 0 && !entry.NotBefore.IsZero():
		date = uint64(entry.NotBefore.Unix())
	case date == 0:
		date = uint64(max(1, e.Created.Unix()))
	}
	item := &pb.URLItem{Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{
		Info:                &pb.URLInfo{Url: entry.URL, Key: key, CrawlID: crawl, Metadata: listsOf(e.Meta)},
		RefetchableFromDate: date,
	}}}
	if !e.Created.IsZero() {
		item.CreationDate = uint64(e.Created.Unix())
	}
	return item
}
