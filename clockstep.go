// This file takes in that the wall clock and the steady one have drifted apart:
// somebody set the wall clock, or the machine was suspended.
//
// What is timed by moments or by dates goes on as it is, for each keeps to its own
// clock. But the store knows moments by the time of day that they had when they were
// written. So the rows are written again of hosts that would be contacted too early, or
// late by as much as the clock was set back, if the process were killed now.

package frontier

import (
	"fmt"
	"math"
	"time"
)

const (
	toldStep     = time.Second // a step of less is not worth an event
	restateHosts = 256         // hosts that are looked at under one lock
)

// clockSteppedLocked takes in that dates are further ahead of moments by step than
// they were.
func (f *Frontier) clockSteppedLocked(step int64) {
	if d := time.Duration(step); d >= toldStep || d <= -toldStep {
		way := "ahead"
		if d < 0 {
			way = "back"
		}
		f.emitLocked(Event{Kind: EventClockStepped, Reason: fmt.Sprintf("by %v %s", d.Abs().Round(time.Millisecond), way)})
	}
	if step < 0 {
		f.core.shiftPeriods(step)
	}
	if f.opts.Spill == nil || f.committer.stop == nil || f.closed {
		return
	}
	f.steps++
	f.steppedBack = max(f.steppedBack, -step)
	if f.steps > 1 {
		return // who is at it begins again
	}
	f.sweepers.Add(1)
	go f.restateClocks()
}

// shiftPeriods moves the beginnings of periods by step, which is negative: no period
// lasts longer than it should because the clock went back.
func (c *core) shiftPeriods(step int64) {
	if c.limits == nil {
		return
	}
	shift := func(u *usage) {
		if u != nil && u.begun {
			u.since += step
			c.soil(u)
		}
	}
	if t := c.controls.table.Load(); t != nil {
		t.tree.Ascend(func(r *scopeRule) bool {
			shift(r.use)
			if r.ended != math.MinInt64 {
				r.ended += step
			}
			return true
		})
	}
	for _, x := range c.crawls {
		if x != nil {
			shift(x.use)
		}
	}
	for id, u := range c.limits.hosts {
		shift(u)
		c.hosts.at(id).set(behind)
	}
	for _, h := range []*timeHeap{&c.limits.ends, &c.limits.crawlEnds} {
		for i := range h.Items {
			h.Items[i].at += step // all of them: their order stays
		}
	}
}

// restateClocks writes the rows again of hosts whose times the store would have wrong
// after a crash, until no step came meanwhile.
func (f *Frontier) restateClocks() {
	defer f.sweepers.Done()
	f.mu.Lock()
	defer f.mu.Unlock()
	for steps := 0; f.steps > steps; {
		steps = f.steps
		for id := uint32(1); id <= f.core.hosts.top && !f.closed; {
			id = f.restateSomeLocked(id)
		}
		if f.closed {
			break
		}
	}
	f.steps, f.steppedBack = 0, 0
}

// restateSomeLocked writes the rows of some hosts from number id on, and returns the
// number to go on with. It releases the lock while they are written.
func (f *Frontier) restateSomeLocked(id uint32) uint32 {
	c := f.core
	now := f.nowLocked()
	o := newOp()
	var pinned []uint32
	for n := 0; n < restateHosts && id <= c.hosts.top; n, id = n+1, id+1 {
		h := c.hosts.at(id)
		due, why := h.due, h.why
		if at := c.restsUntil(id); at > due {
			due, why = at, whyDelay
		}
		early := due-now > f.maxDelay                     // else every host is left alone for as long after a crash
		late := h.has(stored) && due-now > -f.steppedBack // its row may tell of a time before the clock was set back
		if h.nameLen == 0 || h.place == departing || !early && !late {
			continue
		}
		h.clear(unsaved | behind)
		h.set(stored)
		c.rows.Add(c.hash(c.name(h)))
		h.pins++
		pinned = append(pinned, id)
		o.rows = append(o.rows, f.hostRow(id, due, why))
	}
	if len(pinned) == 0 {
		o.free()
		f.mu.Unlock()
		f.mu.Lock()
		return id
	}
	err := f.submitLocked(o) // unlocks
	o.free()
	f.mu.Lock()
	for _, host := range pinned {
		if err != nil {
			c.hosts.at(host).set(unsaved)
		}
		f.unpinLocked(host, f.last)
	}
	return id
}
