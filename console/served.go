// This file shows what only a server has: crawls with names, and clients.

package console

import (
	"time"

	"github.com/seed-7440039f/frontier"
)

// ServedCrawl is a crawl with a name, as the first page shows it.
type ServedCrawl struct {
	Name string
	frontier.CrawlStats
}

// State is why nothing of it is handed out, or empty.
func (c ServedCrawl) State() string {
	l, u := c.Rule.Limits, c.Used
	switch {
	case c.Rule.Paused == frontier.On:
		return "paused"
	case l.Served > 0 && u.Served >= l.Served, l.Bytes > 0 && u.Bytes >= l.Bytes, l.Errors > 0 && u.Errors >= l.Errors:
		return "at a limit"
	}
	return ""
}

// Ended is how many of its leases came to an answer, or to a refusal, since Open.
func (c ServedCrawl) Ended() int64 {
	d := c.Done
	return d[frontier.Visited] + d[frontier.Changed] + d[frontier.Unchanged] + d[frontier.Gone] + d[frontier.Denied]
}

// Limits says what it may have, or is empty.
func (c ServedCrawl) Limits() string {
	if c.Rule.Limits == (frontier.Limits{}) {
		return ""
	}
	return limitsOf(c.Rule.Limits).String()
}

// ServedClient is a client that has leases, or had them when an earlier server ended.
type ServedClient struct {
	Client string // as in Lease.Client
	Leases int
	Since  time.Time // of the oldest of them
	Until  time.Time // when the last ends by itself
}

// How many crawls and clients the first page shows.
const (
	shownCrawls  = 50
	shownClients = 20
)

// served adds what a server has.
func (x *overviewData) served(o *Options) {
	if o.Crawls != nil {
		var total int
		x.Crawls, total = o.Crawls(shownCrawls)
		x.MoreCrawls = total - len(x.Crawls)
	}
	if o.Clients == nil {
		return
	}
	x.Served, x.Clients = true, o.Clients()
	x.MoreClients = max(0, len(x.Clients)-shownClients)
	x.Clients = x.Clients[:len(x.Clients)-x.MoreClients]
}
