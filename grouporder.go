// This file decides which of a group's due hosts gets a slot of it.
//
// The most urgent does: the one with the highest priority of its URLs, and of
// those the one that is due longest. But a priority is worth only so many slots: a
// host for which agePerLevel slots were given for each level between it and the
// others comes first, so that none starves. With the selector Strict, which lets
// low priorities starve, it never does.
//
// A host that got a slot waits in the ready lists for the selector to choose it.
// Until then it gives the slot up to a host that comes before it.

package frontier

import "math"

const (
	agePerLevel   = 16
	offersAtOnce  = 128               // due hosts that are ranked under one lock before one is chosen
	calledUrgency = maxPriorities + 2 // of a host that a Contact waits for
)

// isStrict reports whether a selector lets low priorities starve.
func isStrict(s Selector) bool { _, ok := s.(strict); return ok }

// urgency is the level of the most urgent URLs that wait of a host.
func (c *core) urgency(h *host) uint32 {
	if h.wanted {
		return calledUrgency
	}
	most := uint8(0)
	for id := h.queues; id != 0; id = c.queues.at(id).sibling {
		if q := c.queues.at(id); q.waiting > 0 {
			most = max(most, q.level)
		}
	}
	return uint32(most)
}

// A rank has an age above dueBits bits with a due moment in milliseconds, which are
// enough for 34 years since Open. An age is counted from where the group's given
// was set back last, so it may be negative.
const (
	dueBits = 40
	mostAge = 1<<(63-dueBits) - 1
	ageSpan = 1 << 22 // slots after which a group's given is set back
)

// rank orders due hosts: by how many slots the group had given when they became
// due and by urgency, then by due in milliseconds.
func (c *core) rank(given int64, urgency uint32, due int64) int64 {
	if c.cfg.strict {
		given = 0
	}
	age := min(given+int64(calledUrgency-urgency)*agePerLevel, mostAge)
	return age<<dueBits | min(max(due, 0)/1e6, 1<<dueBits-1)
}

// earlier is a rank of an age that is lower, as far as there are such.
func earlier(rank, age int64) int64 {
	by := min(age, mostAge) << dueBits
	return max(rank, math.MinInt64+by) - by
}

// setBack counts the group's slots anew, long before an age has too few bits. The
// order of its hosts stays.
func (c *core) setBack(g *group) {
	if !c.cfg.strict { // else no rank has an age that grows
		for _, root := range [...]uint32{g.due, g.offered} {
			for n := range c.grouped.all(root) {
				it := &c.grouped.at(n).timeItem
				it.at = earlier(it.at, g.given)
			}
		}
	}
	g.given = 0
}

// ranked is a due host's place among those of its group.
func (c *core) ranked(id uint32, g *group) timeItem {
	h := c.hosts.at(id)
	u := c.urgency(h)
	return timeItem{at: c.rank(g.given, u, h.due), id: id, aux: u}
}

// queueUp lets a due host, which is in no structure, wait for a slot of its group.
func (c *core) queueUp(id uint32, now int64) {
	h := c.hosts.at(id)
	g := c.groups.at(h.group)
	it := c.ranked(id, g)
	c.await(g, it)
	c.yield(g, it, now)
	c.requeueGroup(h.group)
}

// await puts a host, which is in no structure, among those that wait for a slot.
func (c *core) await(g *group, it timeItem) {
	h := c.hosts.at(it.id)
	c.put(h, queued)
	h.pos = int32(c.grouped.push(&g.due, it))
	g.waits++
}

// unawait takes a host out of those that wait for a slot.
func (c *core) unawait(g *group, h *host) timeItem {
	c.put(h, nowhere)
	g.waits--
	return c.grouped.remove(&g.due, uint32(h.pos))
}

// hurry moves a host up that waits for a slot of its group and got a URL.
func (c *core) hurry(id uint32, now int64) {
	h := c.hosts.at(id)
	g := c.groups.at(h.group)
	it := c.grouped.at(uint32(h.pos)).timeItem
	u := c.urgency(h)
	if u <= it.aux {
		return
	}
	it.at = earlier(it.at, int64(u-it.aux)*agePerLevel)
	it.aux = u
	c.grouped.fix(&g.due, uint32(h.pos), it)
	c.yield(g, it, now)
}

// yield takes a slot back from a host that is ready if the one that is it waits
// for one and comes before it.
func (c *core) yield(g *group, it timeItem, now int64) {
	if g.used < g.limit {
		return
	}
	last := timeItem{}
	for n := range c.grouped.all(g.offered) {
		x := c.grouped.at(n).timeItem
		if x.at > it.at && c.urgency(c.hosts.at(x.id)) < it.aux && (last.id == 0 || x.at > last.at) {
			last = x
		}
	}
	if last.id == 0 {
		return
	}
	c.detach(last.id)
	c.settle(last.id, now)
	if h := c.hosts.at(last.id); h.place == queued {
		last.aux = c.grouped.at(uint32(h.pos)).aux
		c.grouped.fix(&g.due, uint32(h.pos), last) // it keeps its age
	}
}

// giveSlot gives a slot of a group that may be contacted to one of its due hosts.
func (c *core) giveSlot(gid uint32, now int64) {
	g := c.groups.at(gid)
	if g.given >= ageSpan {
		c.setBack(g)
	}
	it := timeItem{}
	if g.due == 0 {
		it = c.ranked(c.grouped.remove(&g.hosts, g.hosts).id, g)
		c.put(c.hosts.at(it.id), nowhere)
	}
	if c.grouped.min(g.hosts) <= now {
		if it.id != 0 {
			c.await(g, it)
		}
		for n := 1; n < offersAtOnce && c.grouped.min(g.hosts) <= now; n++ {
			c.await(g, c.ranked(c.grouped.remove(&g.hosts, g.hosts).id, g))
		}
		it.id = 0
	}
	if it.id == 0 {
		it = c.unawait(g, c.hosts.at(c.grouped.at(g.due).id))
	}
	h := c.hosts.at(it.id)
	h.holdsSlot = true
	g.take()
	c.requeueGroup(gid)
	c.makeReady(it.id, now)
	if h.place == ready {
		c.grouped.fix(&g.offered, uint32(h.pos), it) // with its age
	}
}
