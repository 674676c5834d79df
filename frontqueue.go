// This file is the front end of Mercator's figure: it chooses what is handed out next.
//
// The front queues themselves, one FIFO of host tokens for each priority and crawl, lie with the
// hosts in package mercator. It takes the crawl whose turn it is, and asks the Selector for a
// priority among those that have something available.

package frontier

import (
	"cmp"
	"fmt"

	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/selector"
)

// Immediate is the priority of URLs that CrawlNow admitted: above all others,
// whatever Options.Priorities is.
const Immediate = maxPriorities + 1

// SelectorError reports a Selector that chose a priority with nothing available, panicked, or
// called runtime.Goexit. Nothing was handed out and nothing is lost.
type SelectorError struct {
	Got       int
	Available []int
	Panicked  any // what it panicked with, or that it called runtime.Goexit; then Got is 0
}

// Error implements error.
func (e *SelectorError) Error() string {
	if e.Panicked != nil {
		return fmt.Sprintf("frontier: selector panicked: %v; available are %v", e.Panicked, e.Available)
	}
	return fmt.Sprintf("frontier: selector chose %d; available are %v", e.Got, e.Available)
}

// nextLocked finds what a caller of Next may have now: a lease, a host to read
// for, or an error. It reports whether there is anything. g is large, so it is not
// handed around, and must be zero. If crawls are named, only their URLs will do.
func (s *shard) nextLocked(g *grant, now int64, crawls []uint32) bool {
	if len(s.faults) > 0 {
		g.err = s.faults[0]
		s.faults = s.faults[1:]
		return true
	}
	s.callLocked(now)
	ch, ok, bad := s.core.Next(now, crawls)
	switch {
	case bad != nil:
		g.err = (*SelectorError)(bad)
		return true
	case !ok:
		return false
	}
	s.grantLocked(g, ch)
	return true
}

// grantLocked leases what was chosen, or makes it a read that comes before.
func (s *shard) grantLocked(g *grant, ch mercator.Choice) {
	if ch.Load != 0 {
		g.load = s.jobLocked(ch)
		return
	}
	s.leaseLocked(&g.lease, ch.Queue)
}

// moreLocked reports whether time has more to bring now than was looked at under one lock.
func (s *shard) moreLocked(now int64) bool { return s.core.NextEvent(now) <= now }

// Selector chooses the priority of the next hand-out: see selector.Selector.
type Selector = selector.Selector

// chooseBy asks the selector. The lock is held, so code of the user's runs in a goroutine of its own,
// and what it panics with, or that it calls runtime.Goexit, becomes a value.
func chooseBy(s Selector) func(available []int) (p int, panicked any) {
	if selector.IsCalm(s) {
		return func(available []int) (int, any) { return s.Select(available), nil }
	}
	return func(available []int) (p int, panicked any) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { panicked = cmp.Or(recover(), panicked) }()
			panicked = "it called runtime.Goexit"
			p = s.Select(available)
			panicked = nil
		}()
		<-ended
		return p, panicked
	}
}

// chooseLocked is nextLocked for a call of Take, or of Next if t is nil.
func (s *shard) chooseLocked(g *grant, t *taking, now int64) bool {
	if t == nil {
		return s.nextLocked(g, now, nil)
	}
	if t.Host == "" {
		return s.nextLocked(g, now, t.Crawls)
	}
	s.callLocked(now)
	s.core.Advance(now)
	ch, ok := s.core.NextOfHost(s.core.Lookup(s.core.HashOf(t.Host), t.Host), t.Crawls, now)
	if ok {
		s.grantLocked(g, ch)
	}
	return ok
}

// filtered reports whether t wants only certain URLs. Calls of Next want any.
func (t *taking) filtered() bool { return t != nil && (t.Host != "" || t.Crawls != nil) }
