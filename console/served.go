// This file shows what only a server has: named crawls, and clients.

package console

import (
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// ServedCrawl is a named crawl on the first page.
type ServedCrawl struct {
	Name string
	inspect.Crawl
}

// State returns why the crawl hands out nothing, or "".
func (c ServedCrawl) State() string {
	l, u := c.Rule.Limits, c.Used
	switch {
	case c.Rule.Paused == scope.On:
		return "paused"
	case l.Served > 0 && u.Served >= l.Served, l.Bytes > 0 && u.Bytes >= l.Bytes, l.Errors > 0 && u.Errors >= l.Errors:
		return "at a limit"
	}
	return ""
}

// Ended counts its leases that ended with a response or a refusal since Open.
func (c ServedCrawl) Ended() int64 {
	d := c.Done
	return d[frontier.Visited] + d[frontier.Changed] + d[frontier.Unchanged] + d[frontier.Gone] + d[frontier.Denied]
}

// Limits describes its limits, or is empty.
func (c ServedCrawl) Limits() string {
	if c.Rule.Limits == (scope.Limits{}) {
		return ""
	}
	return limitsOf(c.Rule.Limits).String()
}

// ServedClient is a client that holds leases, or held them when an earlier server ended.
type ServedClient struct {
	Client string // as in Lease.Client
	Leases int
	Since  time.Time // of its oldest lease
	Until  time.Time // deadline of its last lease
}

// How many crawls and clients the first page shows.
const (
	shownCrawls  = 50
	shownClients = 20
)

// served adds a server's crawls and clients.
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
