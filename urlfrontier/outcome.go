// This file says what a known item means for the lease of its URL.

package urlfrontier

import (
	"net/http"
	"strconv"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/reply"
)

// outcomeOf is how a lease ends whose URL comes back as e. Crawlers that send their metadata along,
// as StormCrawler can, make hosts back off.
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
	status, _ := strconv.Atoi(first("fetch.statusCode"))
	switch {
	case status == http.StatusTooManyRequests:
		o.Result, o.Failure = frontier.Failed, frontier.FailureTooMany
	case status == http.StatusServiceUnavailable:
		o.Result, o.Failure = frontier.Failed, frontier.FailureUnavailable
	case status >= 500 && status < 600:
		o.Result, o.Failure = frontier.Failed, frontier.FailureServer
	case status == http.StatusNotFound, status == http.StatusGone:
		o.Result = frontier.Gone
	}
	o.RetryAfter = reply.RetryAfter(http.Header{"Retry-After": {first("protocol.retry-after")}, "Date": {first("protocol.date")}}, now)
	if d, err := strconv.ParseFloat(first("robots.crawl.delay"), 64); err == nil && d > 0 && d < 1e6 {
		o.CrawlDelay = time.Duration(d * float64(time.Second))
	}
	return o
}
