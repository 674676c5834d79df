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
		for _, items := range [...][]timeItem{g.due.Items, g.offered} {
			for i := range items {
				items[i].at = earlier(items[i].at, g.given)
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
	c.put(h, queued)
	g.due.push(it)
	c.yield(g, it, now)
	c.requeueGroup(h.group)
}

// hurry moves a host up that waits for a slot of its group and got a URL.
func (c *core) hurry(id uint32, now int64) {
	h := c.hosts.at(id)
	g := c.groups.at(h.group)
	it := g.due.Items[h.pos]
	u := c.urgency(h)
	if u <= it.aux {
		return
	}
	it.at = earlier(it.at, int64(u-it.aux)*agePerLevel)
	it.aux = u
	g.due.Items[h.pos].aux = u
	g.due.fix(int(h.pos), it.at)
	c.yield(g, it, now)
}

// yield takes a slot back from a host that is ready if the one that is it waits
// for one and comes before it.
func (c *core) yield(g *group, it timeItem, now int64) {
	if g.used < g.limit {
		return
	}
	last := -1
	for i, x := range g.offered {
		if x.at > it.at && c.urgency(c.hosts.at(x.id)) < it.aux && (last < 0 || x.at > g.offered[last].at) {
			last = i
		}
	}
	if last < 0 {
		return
	}
	x := g.offered[last]
	c.detach(x.id)
	c.settle(x.id, now)
	if h := c.hosts.at(x.id); h.place == queued {
		g.due.fix(int(h.pos), x.at) // it keeps its age
	}
}

// giveSlot gives a slot of a group that may be contacted to one of its due hosts.
func (c *core) giveSlot(gid uint32, now int64) {
	g := c.groups.at(gid)
	if g.given >= ageSpan {
		c.setBack(g)
	}
	it := timeItem{}
	if g.due.len() == 0 {
		it = g.hosts.pop()
		it = c.ranked(it.id, g)
	}
	if g.hosts.min() <= now {
		if it.id != 0 {
			c.put(c.hosts.at(it.id), queued)
			g.due.push(it)
		}
		for n := 1; n < offersAtOnce && g.hosts.min() <= now; n++ {
			id := g.hosts.pop().id
			c.put(c.hosts.at(id), queued)
			g.due.push(c.ranked(id, g))
		}
		it.id = 0
	}
	if it.id == 0 {
		it = g.due.pop()
	}
	h := c.hosts.at(it.id)
	h.holdsSlot = true
	c.put(h, nowhere)
	g.take()
	c.requeueGroup(gid)
	c.makeReady(it.id, now)
	if h.place == ready {
		g.offered[len(g.offered)-1] = it // with its age
	}
}

// unoffer notes that a host is not ready any more.
func (c *core) unoffer(g *group, id uint32) {
	for i := range g.offered {
		if g.offered[i].id == id {
			g.offered = append(g.offered[:i], g.offered[i+1:]...)
			return
		}
	}
}
