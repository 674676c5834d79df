// This file turns a known item into the outcome of its URL's lease.

package urlfrontier

import (
	"net/http"
	"strconv"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/failure"
	"github.com/seed-7440039f/frontier/internal/reply"
)

// outcomeOf returns the outcome for a URL that its client puts back as e. Hosts back off if the crawler
// sends its fetch metadata along, as StormCrawler can.
func outcomeOf(p *put, e frontier.Entry, now time.Time) frontier.Outcome {
	o := frontier.Outcome{Next: e.NotBefore, Meta: e.Meta}
	if !e.Finished && !o.Next.After(now) {
		o.Next = now.Add(time.Millisecond)
	}
	first := func(name string) string {
		if v := p.info.GetMetadata()[name].GetValues(); len(v) > 0 {
			return v[0]
		}
		return ""
	}
	if len(p.info.GetMetadata()) == 0 {
		return o
	}
	o.RetryAfter = reply.RetryAfter(http.Header{"Retry-After": {first("protocol.retry-after")}, "Date": {first("protocol.date")}}, now)
	status, _ := strconv.Atoi(first("fetch.statusCode"))
	switch result := failure.Result(status, true, o.RetryAfter); result {
	case frontier.Failed:
		o.Result, o.Failure = result, failure.Of(status, o.RetryAfter, reply.Other)
	case frontier.Gone:
		o.Result = result
	}
	if d, err := strconv.ParseFloat(first("robots.crawl.delay"), 64); err == nil && d > 0 && d < 1e6 {
		o.CrawlDelay = time.Duration(d * float64(time.Second))
	}
	return o
}
