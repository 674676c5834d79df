// This file has one record for each lease that is out. A lease is found by the number of its
// record; the records of a host are linked.

package mercator

import (
	"iter"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

// Lease is a lease that is out.
type Lease struct {
	Token      uint64
	LeasedAt   int64
	Deadline   int64
	Record     arena.Ref // 0: contact only
	Queue      uint32    // that the record came from
	Host       uint32
	Prev, Next uint32 // leases of the same host
	Group      uint32 // whose slot it holds; 0: none
	Pos        int32  // in Core.Expiry
	OldGroup   uint32 // that its host belonged to before it moved, and which counts its contact, too
	OldSlot    bool   // it holds a slot of that as well
	Bundle     uint32 // that it belongs to; 0: none
	Ending     bool   // its deadline has passed and it is being settled: it is not in Core.Expiry
	Dead       uint64 // number of the deletion that has the record; 0: none
}

// firstLease returns the number of the host's latest lease, or 0; its record leads
// to the others.
func (s *Core) firstLease(id uint32) uint32 {
	if x := s.lanesOf(id); x != nil {
		return x.first
	}
	if h := s.Hosts.At(id); h.Place == Leased {
		return uint32(h.Pos)
	}
	return 0
}

// LeasesOf yields the numbers of the host's leases, the latest first.
func (s *Core) LeasesOf(host uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := s.firstLease(host); id != 0; {
			next := s.Leases.At(id).Next
			if !yield(id) {
				return
			}
			id = next
		}
	}
}

// Expired ends the leases whose deadline has passed, and returns them. They stay
// their hosts' until they are settled.
func (s *Core) Expired(now int64) []uint32 {
	var ids []uint32
	for s.Expiry.Min() <= now {
		id := s.Expiry.Pop().ID
		s.Leases.At(id).Ending = true
		ids = append(ids, id)
	}
	return ids
}

// Lease hands out the next record of a queue whose host is in place loading.
func (s *Core) Lease(qid uint32, token uint64, now, deadline int64) uint32 {
	return s.LeaseHost(s.handOut(qid, token, now, deadline), now)
}

// handOut takes the next record of a queue, for a lease.
func (s *Core) handOut(qid uint32, token uint64, now, deadline int64) Lease {
	q := s.Queues.At(qid)
	ref := s.Pop(q)
	s.Fifo.Took(q.Host, ref)
	s.Waits.Ended(s.Records.At(ref).Seq(), int(q.level), now, s.Stats.Waiting)
	s.Hosts.At(q.Host).Served++
	x := s.CrawlOf(q)
	x.Stats.HandedOut++
	x.Stats.Leased++
	if s.Limits != nil {
		s.Use(q.Host, x, quota.Amount{Served: 1}, s.LeaseNumber(token), now)
	}
	return Lease{Token: token, LeasedAt: now, Deadline: deadline, Record: ref, Queue: qid, Host: q.Host}
}

// LeaseHost gives a lane of a host out. The host is in no structure. If it has
// more lanes it goes where it belongs.
func (s *Core) LeaseHost(l Lease, now int64) uint32 {
	h := s.Hosts.At(l.Host)
	if h.HasSlot {
		l.Group, h.HasSlot = h.Group, false
	}
	id := s.Leases.Alloc()
	x, n := s.lanesOf(l.Host), s.allowed(l.Host)
	if x == nil && n > 1 {
		x = s.addLanes(l.Host)
	}
	if x != nil {
		s.link(&l, id, x)
		x.limit = n
		x.used++
	}
	*s.Leases.At(id) = l
	s.Expiry.Push(timeheap.Item{At: l.Deadline, ID: id})
	if s.Stats.Leased == 0 {
		s.Quiet = Quiet{Since: now}
	}
	s.Stats.Leased++
	s.Stats.HandedOut++
	if x == nil {
		s.Put(h, Leased)
		h.Pos = int32(id)
		return id
	}
	h.Due = x.next(n)
	s.Put(h, Nowhere)
	s.Settle(l.Host, now)
	return id
}

// link makes a lease the first of its host's.
func (s *Core) link(l *Lease, id uint32, x *hostLanes) {
	if l.Next = x.first; l.Next != 0 {
		s.Leases.At(l.Next).Prev = id
	}
	x.first = id
}

// EndLease removes the record of a lease; settleLease must follow.
func (s *Core) EndLease(id uint32) Lease {
	l := *s.Leases.At(id)
	if !l.Ending {
		s.Expiry.Remove(int(l.Pos))
	}
	s.Leases.Release(id)
	s.Stats.Leased--
	s.Unlease(&l)
	x := s.lanesOf(l.Host)
	if x == nil {
		s.Hosts.At(l.Host).Pos = 0 // it stays in place leased until it is settled
		return l
	}
	if b := s.bundleOf(&l); b == nil {
		x.used--
	} else if b.left--; b.left == 0 {
		x.used--
	}
	if l.Next != 0 {
		s.Leases.At(l.Next).Prev = l.Prev
	}
	if l.Prev != 0 {
		s.Leases.At(l.Prev).Next = l.Next
	} else {
		x.first = l.Next
	}
	return l
}

// MoveLease gives up a lease's slots, or those of its bundle, because its holder takes it to
// another group; granted says whether it has a slot of that.
func (s *Core) MoveLease(l *Lease, id uint32, granted bool, now int64) {
	old, kept := l.OldGroup, l.OldSlot && granted && id == l.OldGroup
	if left := l.Group; left != 0 {
		if old == 0 {
			old = left
			s.Groups.At(left).Members++ // until the lease ends: its clock is not forgotten
		}
		s.leaveSlot(l, left, granted, now)
	}
	if l.OldSlot && !kept {
		s.leaveSlot(l, l.OldGroup, granted, now)
	}
	if !granted {
		id = 0
	}
	if kept {
		old = 0
		s.leftGroup(id)
	}
	for m := range s.sharing(l) {
		m.Group, m.OldGroup, m.OldSlot = id, old, false
	}
}

// leaveSlot frees the slot of a lease, or of its bundle, before it ends. A contact may have
// happened under the group it left.
func (s *Core) leaveSlot(l *Lease, left uint32, contacted bool, now int64) {
	at := int64(0)
	if contacted {
		at = now + s.Longest(s.Groups.At(left))
	}
	if b := s.bundleOf(l); b != nil {
		at, b.slot = max(at, b.slot), 0
	}
	s.freeSlot(left, at, now)
}

// spreadLease takes a slot of another group for a lease, or for its bundle, if one is free:
// its host was moved there, and its holder does not know. It keeps the slot that it has.
func (s *Core) spreadLease(l *Lease, id uint32, now int64) {
	old, both := l.OldGroup, true
	switch {
	case l.OldSlot && id == old: // it comes back
		s.leaveSlot(l, l.Group, true, now)
		s.leftGroup(old)
		old, both = 0, false
	case !s.TakeSlot(id, now):
		return
	case l.Group == 0:
		both = false
	case l.OldSlot:
		s.leaveSlot(l, l.Group, true, now)
	default:
		if old != 0 {
			s.StampGroup(old, now+s.Longest(s.Groups.At(old)), now)
			s.leftGroup(old)
		}
		old = l.Group
		s.Groups.At(old).Members++
	}
	for m := range s.sharing(l) {
		m.Group, m.OldGroup, m.OldSlot = id, old, both
	}
}

// Longest is how long a group may be left alone after a contact.
func (t *tables) Longest(g *Group) int64 {
	if d := t.DelayOf(g); d != nil {
		return int64(d.Max())
	}
	return t.Cfg.GroupMax
}

// EndGroups frees the slots of a lease. due returns until when a slot of a group is left
// alone because its host was contacted, for the lease's group and those that its host
// belonged to since; 0 if it was not contacted. Of a bundle the last lease frees the slots.
func (s *Core) EndGroups(l *Lease, now int64, due func(*Group) int64) {
	b := s.bundleOf(l)
	last := b == nil || b.left == 0
	free := func(id uint32) {
		at := due(s.Groups.At(id))
		if b != nil {
			b.slot = max(b.slot, at)
			at = b.slot
		}
		if last {
			s.freeSlot(id, at, now)
		}
	}
	if l.Group != 0 {
		free(l.Group)
	}
	if id := s.Hosts.At(l.Host).Group; id != 0 && id != l.Group && id != l.OldGroup {
		s.StampGroup(id, due(s.Groups.At(id)), now)
	}
	if id := l.OldGroup; id != 0 {
		if l.OldSlot {
			free(id)
		} else {
			s.StampGroup(id, due(s.Groups.At(id)), now)
		}
		if last {
			s.leftGroup(id)
		}
	}
}

// SettleLease puts a lease's host where it belongs. by says how long its lane and the
// host must wait.
func (s *Core) SettleLease(l *Lease, now int64, by clocks) {
	h := s.Hosts.At(l.Host)
	if x := s.lanesOf(l.Host); x != nil {
		n := s.allowed(l.Host)
		x.opens = max(x.opens, by.all)
		x.leave(s.leaveLane(l, by.lane, n), now, n)
		switch due := x.next(n); {
		case due == h.Due:
		case due == by.all:
			h.Due, h.Why = due, by.why
		default:
			h.Due, h.Why = due, WhyDelay
		}
		if n == 1 && x.used == 0 && len(x.until) == 0 {
			s.HostLanes.Release(s.laned[l.Host]) // its due says it all
			delete(s.laned, l.Host)
		}
	} else if due, why := by.Due(); due > h.Due {
		h.Due, h.Why = due, why
	}
	h.Served = max(h.Served, 1) // it keeps its back queue
	s.resettle(l.Host, now)
}
