// This file holds groups: hosts that share something to which politeness is owed
// as well, for instance an address.
//
// A host belongs to one group at most. The heap orders groups like hosts: a
// group's key is when it is free and its first host due, whichever is later. A
// group whose slots are taken is out of the heap, however many hosts it has, so
// each step is O(log n). Which of its due hosts gets a slot is in grouporder.go.

package frontier

// groupBit tells a group from a host in core.pace.
const groupBit = 1 << 31

type group struct {
	name    string
	slots               // those in use are held by hosts that are ready, called, loading or leased
	limit   int32       // how many slots it has
	most    int32       // how many it had when one was last given
	free    int64       // when a slot may be given: next(limit)
	delay   DelayPolicy // FixedDelay or FactorDelay; nil: Options.GroupDelay
	hosts   timeHeap    // its hosts in place pacing, by due
	due     timeHeap    // its hosts in place queued, by rank; aux is their urgency
	offered []timeItem  // its hosts in place ready: what they were in due
	given   int64       // slots since it was last set back
	members int32       // hosts that belong to it, and leases that will tell it of a contact
	pos     int32       // in core.pace
	queued  bool        // is in core.pace
	listed  bool        // is in core.lonely
}

// groupOf returns the group's number, of a new record if there is none.
func (c *core) groupOf(name string) uint32 {
	if id := c.groupNames[name]; id != 0 {
		return id
	}
	id := c.groups.alloc()
	g := c.groups.at(id)
	g.name = name
	g.hosts.moved, g.due.moved = c.parks.moved, c.parks.moved
	c.groupNames[name] = id
	c.setUpGroup(g)
	c.lone(id, g)
	return id
}

// setUpGroup gives a group what was set for it.
func (c *core) setUpGroup(g *group) {
	g.limit, g.delay = 1, nil
	if c.groupSettings != nil {
		s := c.groupSettings(g.name)
		g.limit, g.delay = int32(max(1, s.Concurrency)), s.Delay
	}
	if c.groupHold != nil {
		g.hold = max(g.hold, c.groupHold(g.delay))
	}
	g.free = g.next(g.limit)
}

// requeueGroup puts the group where its key belongs in the heap, or out of it.
func (c *core) requeueGroup(id uint32) {
	g := c.groups.at(id)
	g.free = g.next(g.limit)
	switch at := g.key(); {
	case at == never && g.queued:
		g.queued = false
		c.pace.remove(int(g.pos))
	case at == never:
	case g.queued:
		c.pace.fix(int(g.pos), at)
	default:
		g.queued = true
		c.pace.push(timeItem{at: at, id: id | groupBit})
	}
}

// key is when one of the group's hosts may get a slot; never if that does not
// depend on time.
func (g *group) key() int64 {
	switch {
	case g.used >= g.limit:
		return never
	case g.due.len() > 0:
		return g.free
	case g.hosts.len() > 0:
		return max(g.free, g.hosts.min())
	}
	return never
}

// takeSlot tries to occupy a slot of the group now. Group 0 has no limits.
func (c *core) takeSlot(id uint32, now int64) bool {
	if id == 0 {
		return true
	}
	g := c.groups.at(id)
	if g.used >= g.limit || g.free > now {
		return false
	}
	g.take()
	c.requeueGroup(id)
	return true
}

func (g *group) take() {
	g.used++
	g.given++
	g.most = g.limit
}

// freeSlot gives a slot back, which is left alone until at.
func (c *core) freeSlot(id uint32, at, now int64) {
	if id != 0 {
		c.groups.at(id).used--
		c.stampGroup(id, at, now)
	}
}

// stampGroup notes a contact because of which a slot of the group is left alone
// until at.
func (c *core) stampGroup(id uint32, at, now int64) {
	if id != 0 {
		g := c.groups.at(id)
		g.leave(at, now, g.limit)
		c.requeueGroup(id)
	}
}

// holdGroup leaves a group alone until at, with all of its slots.
func (c *core) holdGroup(id uint32, at int64) {
	g := c.groups.at(id)
	g.hold = max(g.hold, at)
	c.requeueGroup(id)
}

// holdGroups leaves groups alone that are met for the first time, until at.
func (c *core) holdGroups(at int64) {
	before := c.groupHold
	c.groupHold = func(d DelayPolicy) int64 {
		if before == nil {
			return at
		}
		return max(at, before(d))
	}
}

// moveHost makes a host, which may be anywhere, a member of a group; 0: of none.
// Its leases keep the slots that they have.
func (c *core) moveHost(id, group uint32, now int64) {
	h := c.hosts.at(id)
	if h.group == group {
		return
	}
	switch h.place {
	case leased, loading, unbound, parked, idling, nowhere, departing:
		c.dropSlot(h, now) // whoever loads looks for one of the new group
		c.joinGroup(h, group)
	default:
		c.detach(id)
		c.dropSlot(h, now)
		c.joinGroup(h, group)
		c.settle(id, now)
	}
}

// joinGroup makes a host, which is in no structure of its group, a member of
// another.
func (c *core) joinGroup(h *host, id uint32) {
	if h.group == id {
		return
	}
	c.leaveGroup(h)
	if h.group = id; id != 0 {
		c.groups.at(id).members++
	}
}

// leaveGroup ends a host's membership. An empty group is forgotten when its
// time has passed (sweepGroups).
func (c *core) leaveGroup(h *host) {
	if h.group != 0 {
		c.leftGroup(h.group)
		h.group = 0
	}
}

func (c *core) leftGroup(id uint32) {
	g := c.groups.at(id)
	if g.members--; g.members == 0 {
		c.lone(id, g)
	}
}

// lone notes that a group has no members.
func (c *core) lone(id uint32, g *group) {
	if !g.listed {
		g.listed = true
		c.lonely = append(c.lonely, id)
	}
}

// lonelyAtOnce is how many groups without members are looked at for each one that
// is named.
const lonelyAtOnce = 4

// sweepGroups forgets groups without members whose time has passed.
func (c *core) sweepGroups(now int64) {
	n := min(len(c.lonely), lonelyAtOnce)
	for _, id := range c.lonely[:n] {
		g := c.groups.at(id)
		g.listed = false
		switch {
		case g.members > 0:
		case g.used > 0 || g.last() > now:
			c.lone(id, g) // behind the others
		default:
			delete(c.groupNames, g.name)
			g.hosts.Free()
			g.due.Free()
			c.groups.release(id)
		}
	}
	if c.lonely = c.lonely[n:]; len(c.lonely) == 0 {
		c.lonely = nil
	}
}
