// This file tells an operator whom an action concerns: a control with a misspelled name
// would hold nothing, and look as if it did.

package console

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
)

// countFor is how long an action looks for those that it concerns.
const countFor = time.Second

// maxNear is how many names an answer offers.
const maxNear = 3

// concern is what a scope has now.
type concern struct {
	hosts, urls int64
	crawl       bool     // a crawl was asked for: hosts are not counted
	all         bool     // all hosts were asked for, by no name
	more        bool     // there may be more: not all were looked at
	near        []string // if there are no hosts: names that resemble the one asked for
}

// concern counts the hosts of a scope, and their URLs that wait, are scheduled or leased.
func (c *Console) concern(ctx context.Context, s frontier.Scope) (x concern) {
	ctx, stop := context.WithTimeout(ctx, countFor)
	defer stop()
	name := s.String()
	if number, isCrawl := strings.CutPrefix(name, "crawl:"); isCrawl {
		id, _ := strconv.ParseUint(number, 10, 32)
		all, _ := c.f.CrawlStats(uint32(id))
		return concern{crawl: true, urls: all.Waiting + all.Leased}
	}
	switch domain, isDomain := strings.CutPrefix(name, "*."); {
	case s == frontier.All():
		all := c.f.Stats()
		return concern{all: true, hosts: all.Hosts, urls: all.Waiting + all.Scheduled + all.Leased}
	case isDomain:
		if x.more = c.f.Stats().Scheduled > 0 || !c.ready(c.ordered); !c.ready(c.ordered) {
			return x // hosts of which all URLs are scheduled are on disk
		}
		for h := range c.f.Hosts(s, "") {
			if ctx.Err() != nil {
				x.more = true
				break
			}
			x.hosts, x.urls = x.hosts+1, x.urls+h.Waiting+h.Scheduled+int64(h.Leased)
		}
		name = domain
	default:
		h, err := c.f.Host(ctx, name)
		switch {
		case err == nil:
			x.hosts, x.urls = 1, h.Waiting+h.Scheduled+int64(h.Leased)
		case !errors.Is(err, frontier.ErrUnknownHost):
			x.more = true
		}
	}
	if x.hosts == 0 && !x.more {
		x.near = c.near(name)
	}
	return x
}

// near finds hosts that may be meant by a name that none has: those that contain it, or
// that it lies below. It looks for a moment.
func (c *Console) near(name string) (names []string) {
	if !c.ready(c.ordered) {
		return nil
	}
	name = strings.ToLower(name)
	looked, until := 0, time.Now().Add(c.lookFor)
	for host := range c.f.HostNames(frontier.All(), "") {
		if looked++; len(names) == maxNear || looked > leastLooked && looked%32 == 0 && time.Now().After(until) {
			break
		}
		if strings.Contains(host, name) || strings.HasSuffix(name, "."+host) {
			names = append(names, host)
		}
	}
	return names
}

// String says it.
func (x concern) String() string {
	switch {
	case x.crawl:
		return plural(x.urls, "URL") + " that wait or are fetched now"
	case x.hosts == 0 && x.more:
		return "how many hosts and URLs it has was not counted"
	case x.hosts == 0 && !x.all:
		return "no host of the crawl has this name" + offer(x.near)
	case x.more:
		return fmt.Sprintf("at least %s now", x.amount())
	}
	return x.amount() + " now"
}

func (x concern) amount() string {
	return plural(x.hosts, "host") + ", " + plural(x.urls, "URL")
}

// offer names the hosts that may be meant.
func offer(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return " (it has " + strings.Join(near, ", ") + ")"
}

func plural(n int64, what string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(what, "ch"):
		what += "es"
	default:
		what += "s"
	}
	return Count(n) + " " + what
}
