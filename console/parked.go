// This file knows URLs that a crawler has put aside: they wait in paused crawls, whose
// numbers mean nothing to an operator.

package console

import (
	"strconv"
	"strings"

	"github.com/seed-7440039f/frontier"
)

// lot tells whether a crawl is one in which a crawler puts URLs aside, of which crawl they are,
// and why.
func (c *Console) lot(crawl uint32) (home uint32, why string, ok bool) {
	if c.o.Lot == nil {
		return crawl, "", false
	}
	return c.o.Lot(crawl)
}

// parkedURLs is how many URLs are put aside, and of which priorities, from 1 on.
func (c *Console) parkedURLs() (n int64, by []int64) {
	if c.o.Lot == nil {
		return 0, nil
	}
	for _, id := range c.f.Crawls() {
		if _, _, ok := c.lot(id); !ok {
			continue
		}
		x, _ := c.f.CrawlStats(id)
		n += x.Waiting
		for i, w := range x.WaitingBy {
			if i == len(by) {
				by = append(by, 0)
			}
			by[i] += w
		}
	}
	return n, by
}

// aside is how many of a host's waiting URLs are put aside, and why the first of them are.
func (c *Console) aside(h frontier.HostInfo) (n int64, why string) {
	for _, q := range h.Queues {
		if _, w, ok := c.lot(q.Crawl); ok {
			if n += q.Waiting; why == "" {
				why = w
			}
		}
	}
	return n, why
}

// reasonParked is the reason of a host all of whose waiting URLs are put aside.
const reasonParked = "parked"

// isLot tells whether a rule is one that puts URLs aside.
func (c *Console) isLot(s frontier.Scope) bool {
	number, isCrawl := strings.CutPrefix(s.String(), "crawl:")
	id, err := strconv.ParseUint(number, 10, 32)
	if !isCrawl || err != nil {
		return false
	}
	_, _, lot := c.lot(uint32(id))
	return lot
}
