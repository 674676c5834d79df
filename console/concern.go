// This file reports which hosts an action applies to: a control with a misspelled name would control
// nothing, and still look effective.

package console

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// countFor is how long an action counts the hosts of its scope.
const countFor = time.Second

// maxNear is how many similar names a response offers.
const maxNear = 3

// concern is the extent of a scope.
type concern struct {
	hosts, urls int64
	crawl       bool     // the scope is a crawl; hosts are not counted
	all         bool     // the scope is all hosts
	more        bool     // the count is incomplete
	over        bool     // all URLs of the host are done
	near        []string // without hosts: similar names
}

// concern counts the hosts of a scope, and their URLs that wait, are scheduled or leased.
func (c *Console) concern(ctx context.Context, s scope.Scope) (x concern) {
	ctx, stop := context.WithTimeout(ctx, countFor)
	defer stop()
	if id, ok := s.Crawl(); ok {
		all, _ := c.views.Crawl(id)
		return concern{crawl: true, urls: all.Waiting + all.Leased}
	}
	name := s.Hosts().Name
	switch {
	case s == scope.All():
		all := c.f.Stats()
		return concern{all: true, hosts: all.Hosts, urls: all.Waiting + all.Scheduled + all.Leased}
	case s.Hosts().Domain:
		if x.more = c.f.Stats().Scheduled > 0 || !c.ready(c.ordered); !c.ready(c.ordered) {
			return x // hosts whose URLs are all scheduled are on disk
		}
		for h := range c.views.Hosts(s, "") {
			if ctx.Err() != nil {
				x.more = true
				break
			}
			x.hosts, x.urls = x.hosts+1, x.urls+h.Waiting+h.Scheduled+int64(h.Leased)
		}
	default:
		h, err := c.views.Host(ctx, name)
		switch {
		case err == nil:
			x.hosts, x.urls = 1, h.Waiting+h.Scheduled+int64(h.Leased)
		case !errors.Is(err, frontier.ErrUnknownHost):
			x.more = true
		}
	}
	if x.hosts == 0 && !x.more {
		if x.over = c.over(ctx, name); !x.over {
			x.near = c.near(name)
		}
	}
	return x
}

// over reports whether all URLs of a host without waiting URLs are done, as far as is known: it was contacted recently,
// the record has it, or its first page is known. Only the last of these asks for a URL, because a host's key does not
// name its ports.
func (c *Console) over(ctx context.Context, host string) bool {
	ctx, stop := context.WithTimeout(ctx, countFor)
	defer stop()
	if len(c.o.Watch.lastOf(func(f Fetch) bool { return f.Host == host })) > 0 {
		return true
	}
	if c.o.Newest != nil {
		if ends, err := c.o.Newest(ctx, EndsQuery{Host: host, N: 1}); err == nil && len(ends) > 0 {
			return true
		}
	}
	name := host
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	for _, crawl := range append([]uint32{0}, c.views.Crawls()...) {
		for _, scheme := range []string{"http://", "https://"} {
			if s, err := c.views.Status(ctx, frontier.Entry{URL: scheme + name + "/", Crawl: crawl}); err == nil && s.State != inspect.URLUnknown {
				return true
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	return false
}

// noURL states that no URL of a host waits, is scheduled or is being fetched.
func (c *Console) noURL(ctx context.Context, host string) string {
	if c.over(ctx, host) {
		return "all its URLs are done"
	}
	return "the crawl has no URL of it" + offer(c.near(host))
}

// contrary maps an action on a scope to the rules that override it in narrower scopes.
var contrary = map[string]struct {
	is    func(r *frontier.Rule) bool
	words string
}{
	"pause": {func(r *frontier.Rule) bool { return r.Paused == scope.Off }, "go on"},
	"resume": {func(r *frontier.Rule) bool {
		return r.Paused == scope.On || !r.BlockedUntil.IsZero()
	}, "stay paused or blocked"},
	"delay":       {func(r *frontier.Rule) bool { return r.Delay != nil }, "keep another delay"},
	"concurrency": {func(r *frontier.Rule) bool { return r.Concurrency != 0 }, "keep another number"},
	"priority": {func(r *frontier.Rule) bool {
		return r.Priority != 0 || r.Priorities != frontier.PriorityMap{}
	}, "keep another priority"},
}

// narrower names the scopes inside s whose rules override the action.
func (c *Console) narrower(a Action, s scope.Scope) string {
	against, ok := contrary[a.Do]
	if !ok || a.lifts() {
		return ""
	}
	var names []string
	more := 0
	for in, r := range c.f.Rules() {
		switch {
		case !within(in, s) || !against.is(&r):
		case len(names) < maxNear:
			names = append(names, in.String())
		default:
			more++
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("; by rules of their own these %s: %s", against.words, text)
}

// within reports whether scope in is narrower than scope out, and inside it.
func within(in, out scope.Scope) bool {
	if _, isCrawl := in.Crawl(); in == out || in == scope.All() || isCrawl {
		return false
	}
	return out == scope.All() || out.Hosts().Domain && out.Hosts().Contains(in.Hosts().Name)
}

// near finds hosts with a name like one that no host has: names that contain it, or a domain of it. It
// searches for a moment only.
func (c *Console) near(name string) (names []string) {
	if !c.ready(c.ordered) {
		return nil
	}
	name = strings.ToLower(name)
	looked, until := 0, time.Now().Add(c.lookFor)
	for host := range c.views.HostNames(scope.All(), "") {
		if looked++; len(names) == maxNear || looked > leastLooked && looked%32 == 0 && time.Now().After(until) {
			break
		}
		if strings.Contains(host, name) || strings.HasSuffix(name, "."+host) {
			names = append(names, host)
		}
	}
	return names
}

// String describes the extent.
func (x concern) String() string {
	switch {
	case x.crawl:
		return plural(x.urls, "URL") + " that wait or are fetched now"
	case x.hosts == 0 && x.more:
		return "how many hosts and URLs it has was not counted"
	case x.over:
		return "all its URLs are done"
	case x.hosts == 0 && !x.all:
		return "no host of the crawl has this name" + offer(x.near)
	case x.more:
		return fmt.Sprintf("at least %s now", x.amount())
	}
	return x.amount() + " now"
}

func (x concern) amount() string { return plural(x.hosts, "host") + ", " + plural(x.urls, "URL") }

// offer suggests similar hosts.
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
