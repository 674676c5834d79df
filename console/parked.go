// This file finds URLs that a crawler has parked. They wait in paused crawls, whose numbers mean nothing
// to operators.

package console

import (
	"github.com/seed-7440039f/frontier/inspect"
)

// lot reports whether a crawl is one under which a crawler parks URLs, of which crawl and why.
func (c *Console) lot(crawl uint32) (home uint32, why string, ok bool) {
	if c.o.Lot == nil {
		return crawl, "", false
	}
	return c.o.Lot(crawl)
}

// parkedURLs counts parked URLs, in all and by priority from 1 on.
func (c *Console) parkedURLs() (n int64, by []int64) {
	if c.o.Lot == nil {
		return 0, nil
	}
	for _, id := range c.views.Crawls() {
		if _, _, ok := c.lot(id); !ok {
			continue
		}
		x, _ := c.views.Crawl(id)
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

// aside counts a host's waiting URLs that are parked, and returns why the first ones are.
func (c *Console) aside(h inspect.Host) (n int64, why string) {
	for _, q := range h.Queues {
		if _, w, ok := c.lot(q.Crawl); ok {
			if n += q.Waiting; why == "" {
				why = w
			}
		}
	}
	return n, why
}

// reasonParked is the reason of a host whose waiting URLs are all parked.
const reasonParked = "parked"
