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
}

// firstLease returns the number of a lease of the host, or 0; its record leads to
// the others.
func (c *core) firstLease(h *host) uint32 {
	if h.place == leased {
		return uint32(h.pos)
	}
	return 0
}

// leasesOf yields the numbers of the host's leases.
func (c *core) leasesOf(h *host) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := c.firstLease(h); id != 0; {
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
	c.waits.ended(c.record(ref).seq(), int(q.priority), now, c.stats.Waiting)
	c.hosts.at(q.host).served++
	return c.leaseHost(leaseRecord{token: token, leasedAt: now, deadline: deadline, record: ref, queue: qid, host: q.host})
}

// leaseHost gives a host's slot out. The host is in no structure.
func (c *core) leaseHost(l leaseRecord) uint32 {
	h := c.hosts.at(l.host)
	if h.holdsSlot {
		l.group, h.holdsSlot = h.group, false
	}
	c.put(h, leased)
	id := c.leases.alloc()
	h.pos = int32(id)
	*c.leases.at(id) = l
	c.expiry.push(timeItem{at: l.deadline, id: id})
	c.stats.Leased++
	c.stats.HandedOut++
	return id
}

// endLease takes a lease off the books; settleLease must follow.
func (c *core) endLease(id uint32) leaseRecord {
	l := *c.leases.at(id)
	if !l.ending {
		c.expiry.remove(int(l.pos))
	}
	c.leases.release(id)
	c.put(c.hosts.at(l.host), nowhere)
	c.stats.Leased--
	return l
}

// settleLease frees the slots that a lease held. If its host was contacted, host
// and groups are left alone until hostDue and groupDue; otherwise these are 0.
func (c *core) settleLease(l *leaseRecord, now, hostDue, groupDue int64) {
	h := c.hosts.at(l.host)
	h.due = max(h.due, hostDue)
	c.stampGroup(l.group, groupDue)
	c.freeSlot(l.group)
	if l.oldGroup != 0 {
		c.stampGroup(l.oldGroup, groupDue)
		c.groups.at(l.oldGroup).members--
	}
	h.served = max(h.served, 1) // it keeps its back queue
	c.settle(l.host, now)
}
