// This file searches a million hosts in short steps: each request looks for a moment, and
// returns a cursor for the next.

package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

const (
	// lookFor is how long a request searches; it looks at leastLooked hosts in any case.
	lookFor     = 50 * time.Millisecond
	leastLooked = 128
	fewHosts    = 5000 // sorted while a reader waits
)

// hosts lists hosts, in domain order or the largest first.
func (c *Console) hosts(r *http.Request) (any, error) {
	q := &query{r: r}
	of, n := q.scope(c.f), q.num("n", maxList, 100)
	reason, match, after, sorted := q.str("reason"), strings.ToLower(q.str("match")), q.str("after"), q.str("sort")
	sunk := q.flag("sunk")
	q.errs.If(reason != "" && !slices.Contains(Reasons(), reason), "reason: want one of %s", strings.Join(Reasons(), ", "))
	q.errs.If(sorted != "" && sorted != "domain" && sorted != "waiting", "sort: want domain or waiting")
	if err := q.err(); err != nil {
		return nil, err
	}
	release, err := c.scan()
	if err != nil {
		return nil, err
	}
	defer release()
	wanted := func(h inspect.Host) bool {
		return (!sunk || h.Standing < 0) && (reason == "" || c.hostRow(h).Reason == reason) && (match == "" || strings.Contains(h.Host, match))
	}
	out := HostList{Now: c.f.Now().UTC(), Hosts: []HostRow{}}
	needs := c.ordered
	if sorted == "waiting" {
		needs = c.sized
	}
	if !c.ready(needs) {
		out.Preparing = true
		return out, nil
	}
	if sorted == "waiting" {
		for _, h := range c.views.Largest(maxList) {
			if host := scope.Host(h.Host); len(out.Hosts) < n && (host == of || within(host, of)) && wanted(h) {
				out.Hosts = append(out.Hosts, c.ranked(c.hostRow(h)))
			}
		}
		return out, nil
	}
	looked, until := 0, time.Now().Add(c.lookFor)
	// enough reports, before each host, whether that one begins the next part.
	enough := func() bool {
		looked++
		if len(out.Hosts) == n || looked > leastLooked && looked%32 == 0 && time.Now().After(until) {
			out.Next = after
			return true
		}
		return false
	}
	take := func(h inspect.Host) {
		if wanted(h) {
			out.Hosts = append(out.Hosts, c.ranked(c.hostRow(h)))
		}
	}
	if match == "" {
		for h := range c.views.Hosts(of, after) {
			if enough() {
				break
			}
			after = h.Host
			take(h)
		}
		return out, r.Context().Err()
	}
	for name := range c.views.HostNames(of, after) {
		if enough() {
			break
		}
		after = name
		if !strings.Contains(name, match) {
			continue
		}
		switch h, err := c.views.Host(r.Context(), name); {
		case err == nil && h.Resident: // otherwise it has gone
			take(h)
		case err != nil && !errors.Is(err, frontier.ErrUnknownHost):
			return nil, refused(err)
		}
	}
	return out, r.Context().Err()
}

// ready reports whether hosts can be listed without a long wait: by size, or in domain order. The first
// reader starts the sorting, so a crawl without readers does not pay for it.
func (c *Console) ready(what <-chan struct{}) bool {
	if c.f.Stats().Hosts <= fewHosts {
		c.ordering.Do(c.order)
	} else {
		c.ordering.Do(func() { go c.order() }) // ends with the frontier at the latest
	}
	select {
	case <-what:
		return true
	default:
	}
	select {
	case <-what:
		return true
	case <-time.After(c.lookFor):
		return false
	}
}

// order lets the frontier sort its hosts, in short steps.
func (c *Console) order() {
	c.views.Largest(1)
	close(c.sized)
	for range c.views.HostNames(scope.All(), "") {
		break
	}
	close(c.ordered)
}

// Reasons returns the reasons by which hosts can be listed: those of inspect.Reason, and parked.
func Reasons() (names []string) {
	for r := inspect.ReasonTurn; r <= inspect.ReasonLimit; r++ {
		names = append(names, r.String())
	}
	return append(names, reasonParked)
}
