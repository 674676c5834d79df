// This file keeps one record for each lease that is out. A lease is found by the
// number of its record; the records of a host are linked.

package frontier

import (
	"iter"

	"github.com/seed-7440039f/frontier/internal/arena"
)

// leaseRecord is a lease that is out.
type leaseRecord struct {
	token      uint64
	leasedAt   int64
	deadline   int64
	record     arena.Ref // 0: contact only
	queue      uint32    // that the record came from
	host       uint32
	prev, next uint32    // leases of the same host
	group      uint32    // whose slot it holds; 0: none
	pos        int32     // in core.expiry
	oldGroup   uint32    // that its host belonged to when it was handed out, if it moved since
	ending     bool      // its deadline has passed and it is being settled: it is not in core.expiry
	again      *newEntry // of a Force that met the lease
	dead       uint64    // number of the deletion that has the record; 0: none
}

// firstLease returns the number of the host's latest lease, or 0; its record leads
// to the others.
func (c *core) firstLease(id uint32) uint32 {
	if x := c.lanesOf(id); x != nil {
		return x.first
	}
	if h := c.hosts.at(id); h.place == leased {
		return uint32(h.pos)
	}
	return 0
}

// leasesOf yields the numbers of the host's leases, the latest first.
func (c *core) leasesOf(host uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := c.firstLease(host); id != 0; {
			next := c.leases.at(id).next
			if !yield(id) {
				return
			}
			id = next
		}
	}
}

// expired ends the leases whose deadline has passed, and returns them. They stay
// their hosts' until they are settled.
func (c *core) expired(now int64) []uint32 {
	var ids []uint32
	for c.expiry.min() <= now {
		id := c.expiry.pop().id
		c.leases.at(id).ending = true
		ids = append(ids, id)
	}
	return ids
}

// lease hands out the next record of a queue whose host is in place loading.
func (c *core) lease(qid uint32, token uint64, now, deadline int64) uint32 {
	q := c.queues.at(qid)
	ref := c.pop(q)
	if c.walks != nil {
		c.urlTaken(q.host, ref)
	}
	c.waits.ended(c.record(ref).seq(), int(q.level), now, c.stats.Waiting)
	c.hosts.at(q.host).served++
	x := c.crawlOf(q)
	x.stats.HandedOut++
	x.stats.Leased++
	if c.limits != nil {
		c.use(q.host, x, count{served: 1, lease: c.leaseNumber(token)}, now)
	}
	return c.leaseHost(leaseRecord{token: token, leasedAt: now, deadline: deadline, record: ref, queue: qid, host: q.host}, now)
}

// leaseHost gives a lane of a host out. The host is in no structure. If it has
// more lanes it goes where it belongs.
func (c *core) leaseHost(l leaseRecord, now int64) uint32 {
	h := c.hosts.at(l.host)
	if h.holdsSlot {
		l.group, h.holdsSlot = h.group, false
	}
	id := c.leases.alloc()
	x, n := c.lanesOf(l.host), c.allowed(l.host)
	if x == nil && n > 1 {
		x = c.addLanes(l.host)
	}
	if x != nil {
		if l.next = x.first; l.next != 0 {
			c.leases.at(l.next).prev = id
		}
		x.first, x.limit = id, n
		x.used++
	}
	*c.leases.at(id) = l
	c.expiry.push(timeItem{at: l.deadline, id: id})
	c.stats.Leased++
	c.stats.HandedOut++
	if x == nil {
		c.put(h, leased)
		h.pos = int32(id)
		return id
	}
	h.due = x.next(n)
	c.put(h, nowhere)
	c.settle(l.host, now)
	return id
}

// endLease takes a lease off the books; settleLease must follow.
func (c *core) endLease(id uint32) leaseRecord {
	l := *c.leases.at(id)
	if !l.ending {
		c.expiry.remove(int(l.pos))
	}
	c.leases.release(id)
	c.stats.Leased--
	c.unlease(&l)
	x := c.lanesOf(l.host)
	if x == nil {
		c.hosts.at(l.host).pos = 0 // it stays in place leased until it is settled
		return l
	}
	x.used--
	if l.next != 0 {
		c.leases.at(l.next).prev = l.prev
	}
	if l.prev != 0 {
		c.leases.at(l.prev).next = l.next
	} else {
		x.first = l.next
	}
	return l
}

// moveLease ends what a lease holds of a group because its host comes to another,
// of which it was granted a slot or not.
func (c *core) moveLease(l *leaseRecord, id uint32, granted bool, now int64) {
	if left := l.group; left != 0 {
		if l.oldGroup == 0 {
			l.oldGroup = left
			c.groups.at(left).members++ // until the lease ends: its clock is not forgotten
		}
		at := int64(0)
		if granted { // nobody knows whether a contact happened under the group it left
			at = now + c.longest(c.groups.at(left))
		}
		c.freeSlot(left, at, now)
	}
	l.group = 0
	if granted {
		l.group = id
	}
}

// longest is how long a group may be left alone after a contact.
func (c *core) longest(g *group) int64 {
	if d := c.delayOf(g); d != nil {
		return int64(d.Max())
	}
	return c.cfg.groupMax
}

// endGroups frees the slot that a lease held. due tells until when a slot of a
// group is left alone because its host was contacted: that which it held, and
// others that its host belonged to since; 0: it was not.
func (c *core) endGroups(l *leaseRecord, now int64, due func(*group) int64) {
	if id := l.group; id != 0 {
		c.freeSlot(id, due(c.groups.at(id)), now)
	}
	if id := c.hosts.at(l.host).group; id != 0 && id != l.group && id != l.oldGroup {
		c.stampGroup(id, due(c.groups.at(id)), now)
	}
	if id := l.oldGroup; id != 0 {
		c.stampGroup(id, due(c.groups.at(id)), now)
		c.leftGroup(id)
	}
}

// settleLease puts a lease's host where it belongs. Its lane, and the whole host, are
// left alone as by says.
func (c *core) settleLease(l *leaseRecord, now int64, by clocks) {
	h := c.hosts.at(l.host)
	if x := c.lanesOf(l.host); x != nil {
		n := c.allowed(l.host)
		x.hold = max(x.hold, by.hold)
		x.leave(by.lane, now, n)
		switch due := x.next(n); {
		case due == h.due:
		case due == by.hold:
			h.due, h.why = due, by.why
		default:
			h.due, h.why = due, whyDelay
		}
	} else if due, why := by.due(); due > h.due {
		h.due, h.why = due, why
	}
	h.served = max(h.served, 1) // it keeps its back queue
	c.resettle(l.host, now)
}
