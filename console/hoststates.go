// This file counts hosts by state, which explains the pace of a crawl.

package console

import (
	"context"
	"errors"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// hostState is the state of a host that has URLs.
type hostState uint8

const (
	hostFetching hostState = iota // a request is under way
	hostReady                     // the next worker may take it
	hostPausing                   // waits for its delay
	hostSlowed                    // slowed down after failures or at its request
	hostProbed                    // in quarantine: it only fails
	hostHeld                      // held by an operator or a limit
	numStates
)

var stateNames = [numStates]string{"fetching", "ready", "delayed", "backing off", "in quarantine", "held"}

// hostStates counts hosts by state.
type hostStates struct {
	n    [numStates]int64
	of   int64 // hosts with URLs that wait or are being fetched, as far as counted
	part bool  // only the largest hosts were counted
}

// stateOf returns a host's state; ok is false if it has nothing to fetch.
func stateOf(row HostRow, reason inspect.Reason) (_ hostState, ok bool) {
	switch {
	case row.Leased > 0:
		return hostFetching, true
	case row.Waiting == 0:
		return 0, false
	}
	switch reason {
	case inspect.ReasonDelay, inspect.ReasonCrawlDelay, inspect.ReasonGroup, inspect.ReasonReopened, inspect.ReasonNotBefore:
		return hostPausing, true
	case inspect.ReasonBackoff, inspect.ReasonRetryAfter:
		return hostSlowed, true
	case inspect.ReasonQuarantine:
		return hostProbed, true
	case inspect.ReasonPaused, inspect.ReasonBlocked, inspect.ReasonLimit:
		return hostHeld, true
	}
	return hostReady, true
}

// watchedFor is how long hosts are counted after a reader's last request, where counting is expensive.
const watchedFor = time.Minute

// survey counts the hosts. Of many hosts it counts only the largest, and only while a reader watches.
func (c *Console) survey(now time.Time) (x hostStates) {
	count := func(h inspect.Host) {
		row := c.hostRow(h)
		if s, ok := stateOf(row, h.Reason); ok {
			x.n[s]++
			x.of++
		}
	}
	if c.f.Stats().Hosts <= surveyed {
		for h := range c.views.Hosts(scope.All(), "") {
			count(h)
		}
		return x
	}
	x.part = true
	if c.lookedAt().Before(now.Add(-watchedFor)) || !c.ready(c.sized) {
		return x
	}
	for _, h := range c.views.Largest(maxList) {
		count(h)
	}
	return x
}

// surveyed is how many hosts are counted each second.
const surveyed = 1000

// Problem is a host that fails.
type Problem struct {
	Host    string     `json:"host"`
	What    string     `json:"what"`             // kind of failure, for people
	Status  int        `json:"status,omitempty"` // of the last failed response
	Error   string     `json:"error,omitempty"`
	URL     string     `json:"url,omitempty"` // that failed last
	Since   *time.Time `json:"since,omitempty"`
	Last    *time.Time `json:"last,omitempty"` // last failure
	Good    *time.Time `json:"good,omitempty"` // last answer since the first failure, if any
	Waiting int64      `json:"waiting"`
	Row     int        `json:"failures,omitempty"` // consecutive
	Next    string     `json:"next"`               // what happens next, for people
	Severe  bool       `json:"severe,omitempty"`   // in quarantine
}

const maxProblems = 50

// problems returns the failing hosts, the longest-failing first, up to maxProblems, and their total
// number.
func (c *Console) problems(ctx context.Context, now time.Time) (list []Problem, all int) {
	hosts := c.o.Watch.failingNow()
	for _, name := range hosts[:min(len(hosts), maxProblems)] {
		h, err := c.views.Host(ctx, name)
		if errors.Is(err, frontier.ErrUnknownHost) {
			h = inspect.Host{Host: name}
		} else if err != nil {
			continue
		}
		list = append(list, c.problem(h, now))
	}
	return list, len(hosts)
}

// problem describes a failing host.
func (c *Console) problem(h inspect.Host, now time.Time) Problem {
	row := c.hostRow(h)
	p := Problem{Host: h.Host, Waiting: row.Waiting, Row: h.Backoff.Failures, Severe: h.Backoff.Probes > 0}
	if a, ok := c.o.Watch.ailingOf(h.Host); ok {
		p.What, p.Status, p.Error, p.URL = a.last.kindWords(), a.last.Status, a.last.Error, a.last.URL
		p.Since, p.Last, p.Good = when(a.since), when(a.last.At), when(a.good)
	}
	p.Next = nextOf(h, row, now)
	return p
}

// nextOf describes what happens next to a failing host.
func nextOf(h inspect.Host, row HostRow, now time.Time) string {
	wait := ""
	if row.Due != nil && row.Due.Sub(now) >= time.Second {
		wait = " in " + Ago(row.Due.Sub(now).Round(time.Second))
	}
	switch {
	case h.Rule.Paused == scope.On:
		return "nothing: it is paused"
	case h.Leased > 0:
		return "a request is under way"
	case row.Waiting+row.Scheduled == 0:
		return "nothing: no URL of it waits"
	case h.Backoff.Probes > 0 && wait == "":
		return "a probe, as soon as a worker is free"
	case h.Backoff.Probes > 0:
		return "a probe" + wait
	case h.Backoff.Gap > 0 && wait == "":
		return "the next try now, then one each " + Ago(h.Backoff.Gap) + " at most"
	case h.Backoff.Gap > 0:
		return "the next try" + wait + ", then one each " + Ago(h.Backoff.Gap) + " at most"
	case wait == "":
		return "the next try now"
	}
	return "the next try" + wait
}
