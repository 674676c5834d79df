// This file has one record for each lease that is out. A lease is found by the number of its
// record; the records of a host are linked.
//
// Several leases of one host on one lane are a bundle: the lane is free after the last.

package mercator

import (
	"iter"
	"slices"

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

// firstLease returns the number of the host's latest lease, or 0; its record leads to the others.
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
	if h.Has(HasSlot) {
		l.Group = h.Group
		h.Clear(HasSlot)
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

// EndLease removes the record of a lease; SettleLease must follow.
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

// SettleLease puts a lease's host where it belongs. by says how long its lane and the host must wait.
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

// bundle is leases of one host that share its lane and its group's slot. All of them
// belong to the same groups.
type bundle struct {
	left int32 // leases that are out
	lane int64 // until when their lane keeps its distance once it is free
	slot int64 // the same of the slots of their groups
}

// bundleOf returns the bundle that a lease belongs to; nil: it is alone.
func (t *tables) bundleOf(l *Lease) *bundle {
	if l.Bundle == 0 {
		return nil
	}
	return t.bundles.At(l.Bundle)
}

// sharing yields a lease and those of its bundle.
func (s *Core) sharing(l *Lease) iter.Seq[*Lease] {
	return func(yield func(*Lease) bool) {
		if l.Bundle == 0 {
			yield(l)
			return
		}
		for id := range s.LeasesOf(l.Host) {
			if m := s.Leases.At(id); m.Bundle == l.Bundle && !yield(m) {
				return
			}
		}
	}
}

// mayBundle reports whether a lease may get company: its host is not failing, no rule,
// limit or Contact keeps it, and none of its URLs is being read.
func (s *Core) mayBundle(l *Lease, now int64) bool {
	h := s.Hosts.At(l.Host)
	switch h.Place {
	case Leased, Parked, Pacing, Queued, Ready, Unbound:
	default:
		return false
	}
	if h.Has(Troubled) {
		if t := s.Troubles[l.Host]; t.Step > 0 || t.Probes > 0 {
			return false
		}
	}
	return h.Waiting > 0 && !h.Wanted && s.mayServe(l.Host, now)
}

// DueFor returns when a host may be contacted for its URLs of the crawls, or of all if there are none; 0
// if time alone does not bring that.
func (s *Core) DueFor(id uint32, crawls []uint32) int64 {
	h := s.Hosts.At(id)
	switch h.Place {
	case Unbound, Parked, Pacing:
		if s.urgentQueue(h, crawls, false) != 0 { // else its URLs are not wanted, or their crawl is paused
			return max(h.Due, s.StartsAt)
		}
	}
	return 0
}

// ClockKeeps reports whether URLs of a host and the crawls, or of all crawls if there are none, may become
// due by time alone.
func (s *Core) ClockKeeps(id uint32, crawls []uint32) bool {
	h := s.Hosts.At(id)
	if s.urgentQueue(h, crawls, false) == 0 {
		return false
	}
	switch h.Place {
	case Unbound, Parked, Pacing:
		return true
	case Queued:
		g := s.Groups.At(h.Group)
		return g.Used < g.Limit
	}
	return false
}

// ClockKeepsSome is ClockKeeps for any host.
func (s *Core) ClockKeepsSome(crawls []uint32) bool {
	return s.haveWaiting(crawls) && s.Places[Unbound]+s.Places[Pacing]+s.Places[Parked] > 0
}

// Bound returns the number of hosts that have a back queue.
func (s *Core) Bound() int {
	p := &s.Places
	return p[Pacing] + p[Queued] + p[Ready] + p[Called] + p[Loading] + p[Leased]
}

// urgentQueue returns the host's queue that comes first of those of the crawls, or of all
// if there are none, and whose crawl may offer its URLs. With resident set its next URL is
// in memory and alive. 0: there is none.
func (s *Core) urgentQueue(h *Host, crawls []uint32, resident bool) uint32 {
	for id := h.Queues; id != 0; id = s.Queues.At(id).Sibling {
		q := s.Queues.At(id)
		x := s.CrawlOf(q)
		if q.Waiting == 0 || !x.mayOffer() || crawls != nil && !slices.Contains(crawls, x.ID) {
			continue
		}
		if !resident {
			return id
		}
		if s.Deletions.InForce.Len() > 0 {
			if d := s.DeadIn(q); s.deadHead(q, &d) {
				continue
			}
		}
		if part, _ := s.Fifo.Next(&q.Queue); part != 0 {
			return 0 // what comes first is on disk: it is for a later call
		}
		return id
	}
	return 0
}

// Join hands out up to n more URLs of a lease's host under its lane, the most urgent
// first, and appends the numbers of their leases to dst.
func (s *Core) Join(dst []uint32, first uint32, n int, crawls []uint32, token func() uint64, now int64) []uint32 {
	l := *s.Leases.At(first)
	if n == 0 || !s.mayBundle(&l, now) {
		return dst
	}
	h := s.Hosts.At(l.Host)
	qid := s.urgentQueue(h, crawls, true)
	if qid == 0 {
		return dst
	}
	if s.lanesOf(l.Host) == nil {
		x := s.addLanes(l.Host)
		x.used, x.first, x.limit = 1, first, 1
	}
	if l.Bundle == 0 {
		l.Bundle = s.bundles.Alloc()
		s.bundles.At(l.Bundle).left = 1
		s.Leases.At(first).Bundle = l.Bundle
	}
	s.Detach(l.Host)
	for ; n > 0 && qid != 0; n-- {
		q := s.Queues.At(qid)
		x, level := s.CrawlOf(q), q.level
		m := s.handOut(qid, token(), now, l.Deadline)
		m.Bundle, m.Group, m.OldGroup, m.OldSlot = l.Bundle, l.Group, l.OldGroup, l.OldSlot
		dst = append(dst, s.enroll(m))
		s.served(x, level)
		if qid = 0; s.mayServe(l.Host, now) {
			qid = s.urgentQueue(h, crawls, true)
		}
	}
	s.Settle(l.Host, now)
	return dst
}

// enroll adds a lease to the bundle that it names.
func (s *Core) enroll(l Lease) uint32 {
	id := s.Leases.Alloc()
	s.link(&l, id, s.lanesOf(l.Host))
	*s.Leases.At(id) = l
	s.bundles.At(l.Bundle).left++
	s.Expiry.Push(timeheap.Item{At: l.Deadline, ID: id})
	s.Stats.Leased++
	s.Stats.HandedOut++
	return id
}

// leaveLane is when the lane of a lease that has ended may be used again, which by says
// for its own contact. It ends the bundle with its last lease.
func (s *Core) leaveLane(l *Lease, by int64, lanes int32) int64 {
	b := s.bundleOf(l)
	if b == nil {
		return by
	}
	b.lane = max(b.lane, by)
	switch {
	case b.left == 0:
		by = b.lane
		s.bundles.Release(l.Bundle)
	case lanes > 1:
		by = 0 // the lane is in use: of the others none has to wait for it
	}
	return by
}
