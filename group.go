// This file holds groups: hosts that share something to which politeness is owed
// as well, for instance an address.
//
// A host belongs to one group at most. The heap orders groups like hosts: a
// group's key is when it is free and its first host due, whichever is later. A
// group whose slots are taken is out of the heap, however many hosts it has, so
// each step is O(log n). Which of its due hosts gets a slot is in grouporder.go.

package frontier

import (
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/arena"
)

// groupBit tells a group from a host in core.pace.
const groupBit = 1 << 31

// group is what is known of one group. Its memory holds no pointers. Its heaps are
// in core.grouped.
type group struct {
	hold    int64     // no slot may be given before
	free    int64     // when a slot may be given: next of its slots
	given   int64     // slots since it was last set back
	name    arena.Ref // with nameLen bytes
	hosts   uint32    // heap of its hosts in place pacing, by due
	due     uint32    // heap of its hosts in place queued, by rank; aux is their urgency
	offered uint32    // heap of its hosts in place ready: what they were in due
	waits   int32     // hosts in due
	used    int32     // slots in use: held by hosts that are ready, called, loading or leased
	limit   int32     // how many slots it has
	most    int32     // how many it had when one was last given
	members int32     // hosts that belong to it, and leases that will tell it of a contact
	pos     int32     // in core.pace
	nameLen uint8
	delays  bool // it has a delay, other than Options.GroupDelay
	queued  bool // is in core.pace
	listed  bool // is in core.lonely
}

func (c *core) groupName(g *group) string {
	return string(c.names.Bytes(g.name)[:g.nameLen])
}

// groupNamed returns the group's number, or 0.
func (c *core) groupNamed(name string) uint32 {
	for id := range c.groupIndex.candidates(c.hash([]byte(name))) {
		if g := c.groups.at(id); string(c.names.Bytes(g.name)[:g.nameLen]) == name {
			return id
		}
	}
	return 0
}

// groupOf returns the group's number, of a new record if there is none.
func (c *core) groupOf(name string) uint32 {
	if id := c.groupNamed(name); id != 0 {
		return id
	}
	id := c.groups.alloc()
	g := c.groups.at(id)
	var mem []byte
	g.name, mem = c.names.Alloc(len(name))
	g.nameLen = uint8(copy(mem, name))
	c.groupIndex.add(c.hash([]byte(name)), id)
	c.setUpGroup(id)
	c.lone(id, g)
	return id
}

// setUpGroup gives a group what was set for it.
func (c *core) setUpGroup(id uint32) {
	g := c.groups.at(id)
	s := GroupSettings{}
	if c.groupSettings != nil {
		s = c.groupSettings(c.groupName(g))
	}
	g.set(s)
	if c.groupHold != nil {
		g.hold = max(g.hold, c.groupHold(s.Delay))
	}
	g.free = c.slotsOf(id).next(g.limit)
}

func (g *group) set(s GroupSettings) {
	g.limit, g.delays = int32(max(1, s.Concurrency)), s.Delay != nil
}

// delayOf is the group's delay: a FixedDelay or FactorDelay; nil: Options.GroupDelay.
func (c *core) delayOf(g *group) DelayPolicy {
	if !g.delays {
		return nil
	}
	return c.groupSettings(c.groupName(g)).Delay
}

// slotsOf are the group's slots. Few groups have several that keep a distance.
func (c *core) slotsOf(id uint32) *slots {
	g := c.groups.at(id)
	s := &slots{used: g.used, hold: g.hold}
	if len(c.distances) > 0 {
		s.until = c.distances[id]
	}
	return s
}

// keepSlots notes what became of slots of slotsOf.
func (c *core) keepSlots(id uint32, s *slots) {
	g := c.groups.at(id)
	g.used, g.hold = s.used, s.hold
	if len(c.distances) > 0 || len(s.until) > 0 {
		c.distanceBytes -= distanceBytes(c.distances[id])
		c.distanceBytes += distanceBytes(s.until)
		if c.distances[id] = s.until; len(s.until) == 0 {
			delete(c.distances, id)
		}
	}
}

// distanceBytes is about what an entry of core.distances takes.
func distanceBytes(until []int64) int64 {
	if len(until) == 0 {
		return 0
	}
	return 2*int64(unsafe.Sizeof(until)+8) + int64(cap(until))*8
}

// requeueGroup puts the group where its key belongs in the heap, or out of it.
func (c *core) requeueGroup(id uint32) {
	g := c.groups.at(id)
	g.free = c.slotsOf(id).next(g.limit)
	switch at := c.groupKey(g); {
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

// groupKey is when one of the group's hosts may get a slot; never if that does not
// depend on time.
func (c *core) groupKey(g *group) int64 {
	switch {
	case g.used >= g.limit:
		return never
	case g.due != 0:
		return g.free
	case g.hosts != 0:
		return max(g.free, c.grouped.min(g.hosts))
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
		s := c.slotsOf(id)
		s.leave(at, now, c.groups.at(id).limit)
		c.keepSlots(id, s)
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
		case g.used > 0 || c.slotsOf(id).last() > now:
			c.lone(id, g) // behind the others
		default:
			c.keepSlots(id, &slots{})
			c.groupIndex.remove(c.hash(c.names.Bytes(g.name)[:g.nameLen]), id)
			c.names.Free(g.name, int(g.nameLen))
			c.groups.release(id)
		}
	}
	if c.lonely = c.lonely[n:]; len(c.lonely) == 0 {
		c.lonely = nil
	}
}
