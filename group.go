// This file holds groups: hosts that share something to which politeness is owed
// as well, for instance an address.
//
// A host belongs to one group at most. The heap orders groups like hosts: a
// group's key is when it is free and its first host due, whichever is later. A
// group whose slots are taken is out of the heap, however many hosts it has, so
// each step is O(log n).

package frontier

// groupBit tells a group from a host in core.pace.
const groupBit = 1 << 31

type group struct {
	name    string
	free    int64    // it may be contacted from here on
	hosts   timeHeap // its hosts in place pacing, by due
	taken   int32    // slots held by hosts that are ready, called, loading or leased
	slots   int32
	members int32 // hosts that belong to it
	pos     int32 // in core.pace
	queued  bool  // is in core.pace
}

// groupOf returns the group's number, of a new record if there is none.
func (c *core) groupOf(name string) uint32 {
	if id := c.groupNames[name]; id != 0 {
		return id
	}
	id := c.groups.alloc()
	g := c.groups.at(id)
	g.name, g.slots, g.free = name, 1, c.groupHold
	g.hosts.moved = c.parks.moved
	c.groupNames[name] = id
	return id
}

// requeueGroup puts the group where its key belongs in the heap, or out of it.
func (c *core) requeueGroup(id uint32) {
	g := c.groups.at(id)
	switch wanted := g.taken < g.slots && g.hosts.len() > 0; {
	case wanted && g.queued:
		c.pace.fix(int(g.pos), max(g.free, g.hosts.min()))
	case wanted:
		g.queued = true
		c.pace.push(timeItem{at: max(g.free, g.hosts.min()), id: id | groupBit})
	case g.queued:
		g.queued = false
		c.pace.remove(int(g.pos))
	}
}

// takeSlot tries to occupy a slot of the group now. Group 0 has no limits.
func (c *core) takeSlot(id uint32, now int64) bool {
	if id == 0 {
		return true
	}
	g := c.groups.at(id)
	if g.taken >= g.slots || g.free > now {
		return false
	}
	g.taken++
	c.requeueGroup(id)
	return true
}

func (c *core) freeSlot(id uint32) {
	if id != 0 {
		c.groups.at(id).taken--
		c.requeueGroup(id)
	}
}

// stampGroup leaves the group alone until at.
func (c *core) stampGroup(id uint32, at int64) {
	if id != 0 {
		g := c.groups.at(id)
		g.free = max(g.free, at)
		c.requeueGroup(id)
	}
}

// joinGroup moves a host, which is leased, to a group.
func (c *core) joinGroup(h *host, id uint32) {
	if h.group != id {
		c.leaveGroup(h)
		h.group = id
		c.groups.at(id).members++
	}
}

// leaveGroup ends a host's membership. An empty group is forgotten when its
// time has passed (sweepGroups).
func (c *core) leaveGroup(h *host) {
	if h.group != 0 {
		c.groups.at(h.group).members--
		h.group = 0
	}
}

// sweepGroups forgets groups without members whose time has passed.
func (c *core) sweepGroups(now int64) {
	for name, id := range c.groupNames {
		if g := c.groups.at(id); g.members == 0 && g.taken == 0 && g.free <= now {
			delete(c.groupNames, name)
			c.groups.release(id)
		}
	}
}
