// This file forgets what was learned of a host. Its clock stays: what it is owed
// for the last contact is not learned.

package frontier

import (
	"context"
	"fmt"
)

// Forget makes the frontier forget what was learned of a host: its Crawl-delay, its
// back-off or quarantine with the failures behind it, and the group that it is a
// member of, by Assign too. Its URLs, the rules, and what limits have counted stay.
//
// So does its clock: the host is contacted no earlier than its last contact, its
// Crawl-delay then, and Retry-After asked for. Only what back-off or quarantine
// added to that counts no more. Leases that are out go on; how they end is learned
// anew. Of a host of which nothing is known nothing is forgotten, and that is no
// error. Forget is durable when it returns; after the Spill's error it holds, and
// the next Done of the host stores it.
func (f *Frontier) Forget(host string) error {
	host, err := f.hostKey(host)
	if err != nil {
		return fmt.Errorf("frontier: forget: %w", err)
	}
	if err := f.lockWithHost(context.Background(), host); err != nil {
		return err
	}
	c := f.core
	id := c.lookup(f.hostHash(host), host)
	if id == 0 {
		f.mu.Unlock()
		return nil
	}
	h := c.hosts.at(id)
	if h.place == departing {
		c.put(h, nowhere) // it stays until this is durable
	}
	o := newOp()
	defer o.free()
	f.pinLocked(o, id)
	f.core.unlearn(id, f.last, max(c.hold, f.hold(host), f.heldUntil(h.crawlDelayNs())))
	if f.opts.Spill != nil {
		h.set(unsaved)
		f.noteLocked(o, id, h.due, h.why, f.last)
	}
	return f.submitLocked(o) // unlocks
}

// unlearn forgets what was learned of a host, which may be anywhere. After a crash
// it is not contacted before reopened.
func (c *core) unlearn(id uint32, now, reopened int64) {
	h := c.hosts.at(id)
	h.crawlDelay = 0
	c.assign(id, "", now)
	if !h.has(troubled) {
		return
	}
	free := max(c.troubles[id].free, reopened)
	c.setTrouble(id, trouble{})
	if h.why.forgettable() {
		c.advanceDue(id, free, now)
	}
	c.revise(id, now) // it may have more lanes now
	if h.place == idling {
		c.detach(id) // it waited for its trouble to be outlived
		c.settle(id, now)
	}
}

// forgettable reports whether a host in trouble would be due earlier without it.
func (w why) forgettable() bool { return w == whyBackoff || w == whyQuarantine || w == whyReopened }

// advanceDue lets a host be contacted earlier, from at on.
func (c *core) advanceDue(id uint32, at, now int64) {
	h := c.hosts.at(id)
	x := c.lanesOf(id)
	if x != nil {
		x.hold = min(x.hold, at)
	}
	if at >= h.due {
		return
	}
	switch h.place {
	case leased, loading, unbound, held, dying:
		h.due, h.why = at, whyDelay
	default:
		c.detach(id)
		h.due, h.why = at, whyDelay
		c.settle(id, now)
	}
}

// freeFrom notes that a host in trouble may not be contacted before at whatever
// becomes of its trouble.
func (c *core) freeFrom(id uint32, at int64) {
	if t := c.troubles[id]; at > t.free {
		t.free = at
		c.troubles[id] = t // no row is out of date: who leaves memory is due, and so is this
	}
}

// leasedTroubleLocked is freeFrom for a host whose lease counts as a contact that
// ends now.
func (f *Frontier) leasedTroubleLocked(id uint32, now int64) {
	if h := f.core.hosts.at(id); h.has(troubled) {
		f.core.freeFrom(id, now+max(f.longestDelay(string(f.core.name(h))), h.crawlDelayNs()))
	}
}
