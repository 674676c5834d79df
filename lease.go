// This file has the records of leases that are out, and what may happen to a lease before
// its Done: it is extended, joins a group, is exchanged for one without a URL, or
// expires.

package frontier

import (
	"fmt"
	"iter"
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// reapYieldingLocked settles leases whose deadline has passed, as failed contacts that
// lasted until then. It releases the lock while it asks the policies.
func (f *Frontier) reapYieldingLocked() {
	now := f.nowLocked()
	if f.sched.expiry.Min() > now {
		return
	}
	for _, id := range f.sched.expired(now) {
		if !f.expireYieldingLocked(id) {
			return
		}
	}
	f.dispatchLocked()
}

// expireYieldingLocked settles a lease whose deadline has passed. It releases the lock
// while it calls the policies. If the frontier was closed meanwhile it does nothing and
// reports false.
//
// If a policy panics, or calls runtime.Goexit, the URL is tried again, its host and group rest for the
// longest delay, and a call of Next has the error: the call that comes upon the lease has nothing to do
// with it.
func (f *Frontier) expireYieldingLocked(id uint32) bool {
	var l Lease
	f.newLeaseLocked(&l, id)
	deadline := f.sched.leases.At(id).deadline
	f.mu.Unlock()
	o := Outcome{Result: Failed, Ended: l.Deadline, Duration: time.Duration(deadline - l.moment)}
	if l.ContactOnly() {
		o.Result = Visited
	}
	p := plan{outcome: o, expired: true}
	if !f.guard("a policy", l.Host, func() { _ = f.plan(&p, &l, deadline) }) {
		longest := max(f.maxDelay, f.sched.cfg.groupMax)
		p = plan{
			outcome: o, expired: true, end: deadline, hostGap: longest, groupGap: longest,
			stays: l.Entry.URL != "", retry: l.Entry.URL != "",
		}
	}
	f.mu.Lock()
	if f.closed {
		return false
	}
	f.settleExpiredLocked(id, &l, p)
	return true
}

func (f *Frontier) settleExpiredLocked(id uint32, l *Lease, p plan) {
	job := newOp()
	f.sched.stats.Expired++
	f.emitLocked(Event{Kind: EventLeaseExpired, Host: l.Host, URL: l.Entry.URL, Crawl: l.Entry.Crawl, Attempt: l.Attempt})
	f.spareLocked(id, &p)
	f.finishLocked(job, id, &p)
	due, again := int64(0), len(job.entries) > 0
	if again {
		due = job.entries[0].due
	}
	f.sched.countExpired(&job.outgoing, due, again, f.last)
	e, host := l.Entry, l.Host
	job.after = func(err error) {
		if err == nil && p.givenUp {
			f.gaveUp(e, host, p.outcome)
		}
	}
	f.submitAsyncLocked(job)
}

// Extend moves a lease's deadline to d from now and updates l.
func (f *Frontier) Extend(l *Lease, d time.Duration) error {
	if d <= 0 || d > maxDelay {
		return fmt.Errorf("frontier: extend by %v; want more than 0 and at most %v", d, maxDelay)
	}
	if err := unit.Check("d", d, unit.Measured); err != nil {
		return fmt.Errorf("frontier: extend: %w", err)
	}
	if l == nil {
		return ErrNotLeased
	}
	f.lock()
	defer f.mu.Unlock()
	r, err := f.leaseOutLocked(l)
	if err != nil {
		return err
	}
	r.deadline = f.nowLocked() + int64(d)
	f.sched.expiry.Fix(int(r.pos), r.deadline)
	l.Deadline = f.wall(r.deadline)
	f.dispatchLocked() // it may end before what the timer waits for
	return nil
}

// Join puts a lease's host into a group, whichever it was assigned to, and updates l. Call it before each contact: the
// host stays in the group until it joins another, or until it can be forgotten (only
// scheduled URLs, no lease, its time has passed). If the group may be contacted now the
// lease takes a slot of it. Otherwise Join returns ErrGroupBusy, and the lease must be
// handed back uncontacted: its host comes again when the group is free. If the host has
// no other URLs, set Outcome.RetryAfter when handing it back: the membership is kept that
// long. Group names have 1 to 255 bytes.
func (f *Frontier) Join(l *Lease, name string) error {
	if len(name) < 1 || len(name) > 255 {
		return fmt.Errorf("frontier: group name has %d bytes; want 1 to 255", len(name))
	}
	if l == nil {
		return ErrNotLeased
	}
	f.lock()
	defer f.mu.Unlock()
	r, err := f.leaseOutLocked(l)
	if err != nil {
		return err
	}
	c := f.sched
	now := f.nowLocked()
	c.sweepGroups(now)
	id := c.groupOf(name)
	if r.group == id && c.hosts.At(r.host).group == id {
		l.Group = name
		return nil
	}
	granted := r.group == id
	if !granted {
		granted = r.oldSlot && r.oldGroup == id || c.takeSlot(id, now)
		c.moveLease(r, id, granted, now)
	}
	c.moveHost(r.host, id, now)
	h := c.hosts.At(r.host)
	h.set(unsaved)
	h.clear(assigned)
	l.Group = name
	f.dispatchLocked()
	if !granted {
		return ErrGroupBusy
	}
	return nil
}

// HandBack returns a lease's URL to the head of its queue, untried, but keeps the host's
// slot: it returns a lease for contact only, and ends the one given. A crawler uses it to
// read robots.txt before the page.
func (f *Frontier) HandBack(l Lease) (Lease, error) {
	f.lock()
	defer f.mu.Unlock()
	r, err := f.leaseOutLocked(&l)
	if err != nil {
		return Lease{}, err
	}
	now := f.nowLocked()
	if f.sched.limits != nil && r.record != 0 {
		f.sched.use(r.host, f.sched.crawlOf(f.sched.queues.At(r.queue)), quota.Amount{Served: -1}, f.sched.leaseNumber(r.token), now)
	}
	switch {
	case r.record == 0:
	case f.sched.markDead(r) != 0:
		o := newOp()
		f.endDeadLocked(o, r, plan{outcome: Outcome{Result: Requeue}})
		o.after = func(error) {} // nobody waits
		f.submitAsyncLocked(o)
	case f.againLocked(r.record) != nil: // a Force met the lease: the URL comes again as it was forced
		o := newOp()
		again := f.againLocked(r.record)
		f.endsLocked(o, r.queue, r.record)
		f.admitAgainLocked(o, again)
		o.after = func(error) {} // nobody waits
		f.submitAsyncLocked(o)
	default:
		f.sched.returnHead(r.queue, r.record)
		f.sched.filled(r.queue, now)
	}
	f.sched.unlease(r)
	r.record, r.queue, r.dead = 0, 0, 0
	r.token = f.nextTokenLocked()
	r.deadline = now + int64(f.opts.LeaseTime)
	f.sched.expiry.Fix(int(r.pos), r.deadline)
	f.dispatchLocked() // an extended lease ends earlier now
	var again Lease
	f.newLeaseLocked(&again, l.record)
	again.Due, again.Gap = l.Due, l.Gap // another lane may have ended meanwhile
	return again, nil
}

// There is one record for each lease that is out. A lease is found by the number of its
// record; the records of a host are linked.

// leaseRecord is a lease that is out.
type leaseRecord struct {
	token      uint64
	leasedAt   int64
	deadline   int64
	record     arena.Ref // 0: contact only
	queue      uint32    // that the record came from
	host       uint32
	prev, next uint32 // leases of the same host
	group      uint32 // whose slot it holds; 0: none
	pos        int32  // in scheduler.expiry
	oldGroup   uint32 // that its host belonged to before it moved, and which counts its contact, too
	oldSlot    bool   // it holds a slot of that as well
	bundle     uint32 // that it belongs to; 0: none
	ending     bool   // its deadline has passed and it is being settled: it is not in scheduler.expiry
	dead       uint64 // number of the deletion that has the record; 0: none
}

// firstLease returns the number of the host's latest lease, or 0; its record leads
// to the others.
func (s *scheduler) firstLease(id uint32) uint32 {
	if x := s.lanesOf(id); x != nil {
		return x.first
	}
	if h := s.hosts.At(id); h.place == leased {
		return uint32(h.pos)
	}
	return 0
}

// leasesOf yields the numbers of the host's leases, the latest first.
func (s *scheduler) leasesOf(host uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := s.firstLease(host); id != 0; {
			next := s.leases.At(id).next
			if !yield(id) {
				return
			}
			id = next
		}
	}
}

// expired ends the leases whose deadline has passed, and returns them. They stay
// their hosts' until they are settled.
func (s *scheduler) expired(now int64) []uint32 {
	var ids []uint32
	for s.expiry.Min() <= now {
		id := s.expiry.Pop().ID
		s.leases.At(id).ending = true
		ids = append(ids, id)
	}
	return ids
}

// lease hands out the next record of a queue whose host is in place loading.
func (s *scheduler) lease(qid uint32, token uint64, now, deadline int64) uint32 {
	return s.leaseHost(s.handOut(qid, token, now, deadline), now)
}

// handOut takes the next record of a queue, for a lease.
func (s *scheduler) handOut(qid uint32, token uint64, now, deadline int64) leaseRecord {
	q := s.queues.At(qid)
	ref := s.pop(q)
	s.fifo.Took(q.host, ref)
	s.waits.Ended(s.records.At(ref).Seq(), int(q.level), now, s.stats.Waiting)
	s.hosts.At(q.host).served++
	x := s.crawlOf(q)
	x.stats.HandedOut++
	x.stats.Leased++
	if s.limits != nil {
		s.use(q.host, x, quota.Amount{Served: 1}, s.leaseNumber(token), now)
	}
	return leaseRecord{token: token, leasedAt: now, deadline: deadline, record: ref, queue: qid, host: q.host}
}

// leaseHost gives a lane of a host out. The host is in no structure. If it has
// more lanes it goes where it belongs.
func (s *scheduler) leaseHost(l leaseRecord, now int64) uint32 {
	h := s.hosts.At(l.host)
	if h.hasSlot {
		l.group, h.hasSlot = h.group, false
	}
	id := s.leases.Alloc()
	x, n := s.lanesOf(l.host), s.allowed(l.host)
	if x == nil && n > 1 {
		x = s.addLanes(l.host)
	}
	if x != nil {
		s.link(&l, id, x)
		x.limit = n
		x.used++
	}
	*s.leases.At(id) = l
	s.expiry.Push(timeheap.Item{At: l.deadline, ID: id})
	if s.stats.Leased == 0 {
		s.quiet = quiet{since: now}
	}
	s.stats.Leased++
	s.stats.HandedOut++
	if x == nil {
		s.put(h, leased)
		h.pos = int32(id)
		return id
	}
	h.due = x.next(n)
	s.put(h, nowhere)
	s.settle(l.host, now)
	return id
}

// link makes a lease the first of its host's.
func (s *scheduler) link(l *leaseRecord, id uint32, x *hostLanes) {
	if l.next = x.first; l.next != 0 {
		s.leases.At(l.next).prev = id
	}
	x.first = id
}

// endLease removes the record of a lease; settleLease must follow.
func (s *scheduler) endLease(id uint32) leaseRecord {
	l := *s.leases.At(id)
	if !l.ending {
		s.expiry.Remove(int(l.pos))
	}
	s.leases.Release(id)
	s.stats.Leased--
	s.unlease(&l)
	x := s.lanesOf(l.host)
	if x == nil {
		s.hosts.At(l.host).pos = 0 // it stays in place leased until it is settled
		return l
	}
	if b := s.bundleOf(&l); b == nil {
		x.used--
	} else if b.left--; b.left == 0 {
		x.used--
	}
	if l.next != 0 {
		s.leases.At(l.next).prev = l.prev
	}
	if l.prev != 0 {
		s.leases.At(l.prev).next = l.next
	} else {
		x.first = l.next
	}
	return l
}

// moveLease gives up a lease's slots, or those of its bundle, because its holder takes it to
// another group; granted says whether it has a slot of that.
func (s *scheduler) moveLease(l *leaseRecord, id uint32, granted bool, now int64) {
	old, kept := l.oldGroup, l.oldSlot && granted && id == l.oldGroup
	if left := l.group; left != 0 {
		if old == 0 {
			old = left
			s.groups.At(left).members++ // until the lease ends: its clock is not forgotten
		}
		s.leaveSlot(l, left, granted, now)
	}
	if l.oldSlot && !kept {
		s.leaveSlot(l, l.oldGroup, granted, now)
	}
	if !granted {
		id = 0
	}
	if kept {
		old = 0
		s.leftGroup(id)
	}
	for m := range s.sharing(l) {
		m.group, m.oldGroup, m.oldSlot = id, old, false
	}
}

// leaveSlot frees the slot of a lease, or of its bundle, before it ends. A contact may have
// happened under the group it left.
func (s *scheduler) leaveSlot(l *leaseRecord, left uint32, contacted bool, now int64) {
	at := int64(0)
	if contacted {
		at = now + s.longest(s.groups.At(left))
	}
	if b := s.bundleOf(l); b != nil {
		at, b.slot = max(at, b.slot), 0
	}
	s.freeSlot(left, at, now)
}

// spreadLease takes a slot of another group for a lease, or for its bundle, if one is free:
// its host was moved there, and its holder does not know. It keeps the slot that it has.
func (s *scheduler) spreadLease(l *leaseRecord, id uint32, now int64) {
	old, both := l.oldGroup, true
	switch {
	case l.oldSlot && id == old: // it comes back
		s.leaveSlot(l, l.group, true, now)
		s.leftGroup(old)
		old, both = 0, false
	case !s.takeSlot(id, now):
		return
	case l.group == 0:
		both = false
	case l.oldSlot:
		s.leaveSlot(l, l.group, true, now)
	default:
		if old != 0 {
			s.stampGroup(old, now+s.longest(s.groups.At(old)), now)
			s.leftGroup(old)
		}
		old = l.group
		s.groups.At(old).members++
	}
	for m := range s.sharing(l) {
		m.group, m.oldGroup, m.oldSlot = id, old, both
	}
}

// longest is how long a group may be left alone after a contact.
func (t *tables) longest(g *group) int64 {
	if d := t.delayOf(g); d != nil {
		return int64(d.Max())
	}
	return t.cfg.groupMax
}

// endGroups frees the slots of a lease. due returns until when a slot of a group is left
// alone because its host was contacted, for the lease's group and those that its host
// belonged to since; 0 if it was not contacted. Of a bundle the last lease frees the slots.
func (s *scheduler) endGroups(l *leaseRecord, now int64, due func(*group) int64) {
	b := s.bundleOf(l)
	last := b == nil || b.left == 0
	free := func(id uint32) {
		at := due(s.groups.At(id))
		if b != nil {
			b.slot = max(b.slot, at)
			at = b.slot
		}
		if last {
			s.freeSlot(id, at, now)
		}
	}
	if l.group != 0 {
		free(l.group)
	}
	if id := s.hosts.At(l.host).group; id != 0 && id != l.group && id != l.oldGroup {
		s.stampGroup(id, due(s.groups.At(id)), now)
	}
	if id := l.oldGroup; id != 0 {
		if l.oldSlot {
			free(id)
		} else {
			s.stampGroup(id, due(s.groups.At(id)), now)
		}
		if last {
			s.leftGroup(id)
		}
	}
}

// settleLease puts a lease's host where it belongs. by says how long its lane and the
// host must wait.
func (s *scheduler) settleLease(l *leaseRecord, now int64, by clocks) {
	h := s.hosts.At(l.host)
	if x := s.lanesOf(l.host); x != nil {
		n := s.allowed(l.host)
		x.opens = max(x.opens, by.all)
		x.leave(s.leaveLane(l, by.lane, n), now, n)
		switch due := x.next(n); {
		case due == h.due:
		case due == by.all:
			h.due, h.why = due, by.why
		default:
			h.due, h.why = due, whyDelay
		}
		if n == 1 && x.used == 0 && len(x.until) == 0 {
			s.hostLanes.Release(s.laned[l.host]) // its due says it all
			delete(s.laned, l.host)
		}
	} else if due, why := by.due(); due > h.due {
		h.due, h.why = due, why
	}
	h.served = max(h.served, 1) // it keeps its back queue
	s.resettle(l.host, now)
}

// leaseLocked hands out the next record of a queue, which is in memory.
func (s *shard) leaseLocked(l *Lease, qid uint32) {
	now := s.last
	due := s.sched.hosts.At(s.sched.queues.At(qid).host).due // of the lane that is taken
	s.newLeaseLocked(l, s.sched.lease(qid, s.nextTokenLocked(), now, now+int64(s.opts.LeaseTime)))
	s.setDue(l, due)
}

// setDue sets the time at which the host of a lease might be contacted.
func (s *shared) setDue(l *Lease, due int64) {
	if due > 0 {
		l.Due = s.wall(due)
	}
}

// newLeaseLocked describes lease record id in l, which is zero except for Due.
func (s *shard) newLeaseLocked(l *Lease, id uint32) {
	r := s.sched.leases.At(id)
	h := s.sched.hosts.At(r.host)
	l.LeasedAt, l.Deadline = s.wall(r.leasedAt), s.wall(r.deadline)
	l.Attempt = 1
	l.token, l.record, l.moment, l.bundle = r.token, id, r.leasedAt, r.bundle
	if r.bundle != 0 {
		l.Gap = leastGap + time.Duration(h.crawlDelayNs())
	}
	if r.group != 0 {
		l.Group = s.sched.groupName(s.sched.groups.At(r.group))
	}
	if r.record == 0 {
		l.Host = string(s.sched.name(h))
		return
	}
	q := s.sched.queues.At(r.queue)
	l.Priority = s.sched.priorityOf(q)
	s.describeLocked(r.record, h, &l.Entry, &l.History, &l.Attempt)
	l.Entry.Crawl = s.sched.crawlOf(q).id
	if l.Host = l.Entry.Host; l.Host == "" {
		l.Host = within(l.Entry.URL, s.sched.name(h))
	}
}

// describeLocked decodes a resident record of a host into e, h and attempt, which are zero.
func (s *shard) describeLocked(ref arena.Ref, of *host, e *Entry, h *History, attempt *int) {
	b, err := record.Decode(s.sched.records.At(ref).Body())
	if err != nil {
		panic("frontier: a record in memory is malformed") // we encoded it, or checked it
	}
	e.URL, e.Depth, e.Weight = string(b.URL), b.Depth, b.Weight
	if b.Named {
		e.Host = string(s.sched.name(of))
	}
	if len(b.Meta) > 0 {
		e.Meta = append([]byte(nil), b.Meta...)
	}
	if b.History != (record.History{}) {
		*h = historyOf(&b.History)
	}
	*attempt = b.Fails + 1
}

// entryLocked decodes a resident record of a host.
func (s *shard) entryLocked(ref arena.Ref, h *host) (e Entry, attempt int) {
	s.describeLocked(ref, h, &e, &History{}, &attempt)
	return e, attempt
}

// entryOf copies what a body says of a URL of a host, its crawl excepted.
func entryOf(b *record.Body, host string) Entry {
	e := Entry{URL: string(b.URL), Depth: b.Depth, Weight: b.Weight}
	if b.Named {
		e.Host = host
	}
	if len(b.Meta) > 0 {
		e.Meta = append([]byte(nil), b.Meta...)
	}
	return e
}

// sweepLeases marks the leases whose records are dead.
func (f *Frontier) sweepLeases(d *deletion) bool {
	c := f.sched
	if d.OfHost() {
		return f.sweepInSteps(func(int) (done, wait bool) {
			if id := c.lookup(f.hostHash(d.Scope.Name), d.Scope.Name); id != 0 {
				for lease := range c.leasesOf(id) {
					f.sched.markDead(c.leases.At(lease))
				}
			}
			return true, false
		})
	}
	id := uint32(1)
	return f.sweepInSteps(func(steps int) (done, wait bool) {
		for ; id <= c.leases.Top && steps > 0; id++ {
			steps -= fifo.PurgedRecord
			if l := c.leases.At(id); l.token != 0 {
				f.sched.markDead(l)
			}
		}
		return id > c.leases.Top, false
	})
}
