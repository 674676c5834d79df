// This file is what may happen to a lease before its Done: it is extended, joins
// a group, is exchanged for one without a URL, or its deadline passes.

package frontier

import (
	"fmt"
	"time"
)

// reapLocked settles leases whose deadline has passed, as failed contacts that
// lasted until then. It releases the lock while it asks the policies.
func (f *Frontier) reapLocked() {
	now := f.nowLocked()
	if f.core.expiry.min() > now {
		return
	}
	ids := f.core.expired(now)
	for n, id := range ids {
		if !f.expireLocked(id, ids[n+1:]) {
			return
		}
	}
	f.dispatchLocked()
}

// expireLocked settles a lease whose deadline has passed. It releases the lock while
// it asks the policies. It reports false, and does nothing, if the frontier was closed meanwhile.
//
// If a policy panics, so does expireLocked, without the lock: the lease is settled as
// one that is tried again, and those behind it expire with the next call.
func (f *Frontier) expireLocked(id uint32, behind []uint32) bool {
	var l Lease
	f.newLease(&l, id)
	deadline := f.core.leases.at(id).deadline
	f.mu.Unlock()
	o := Outcome{Result: Failed, Ended: l.Deadline, Duration: time.Duration(deadline - l.moment)}
	if l.ContactOnly() {
		o.Result = Visited
	}
	p := plan{outcome: o, expired: true}
	asked := false
	defer func() {
		if asked {
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.closed {
			return
		}
		longest := max(f.maxDelay, f.core.cfg.groupMax)
		f.settleExpiredLocked(id, &l, plan{
			outcome: o, expired: true, end: deadline, hostHold: longest, groupHold: longest,
			stays: l.Entry.URL != "", retry: l.Entry.URL != "",
		})
		for _, id := range behind {
			r := f.core.leases.at(id)
			r.ending = false
			f.core.expiry.push(timeItem{at: r.deadline, id: id})
		}
		f.dispatchLocked()
	}()
	f.plan(&p, &l, deadline)
	asked = true
	f.mu.Lock()
	if f.closed {
		return false
	}
	f.settleExpiredLocked(id, &l, p)
	return true
}

func (f *Frontier) settleExpiredLocked(id uint32, l *Lease, p plan) {
	job := newOp()
	f.core.stats.Expired++
	f.emitLocked(Event{Kind: EventLeaseExpired, Host: l.Host, URL: l.Entry.URL, Crawl: l.Entry.Crawl, Attempt: l.Attempt})
	f.spareLocked(id, &p)
	f.finishLocked(job, id, &p)
	e := l.Entry
	job.after = func(err error) {
		if err == nil && p.givenUp && f.opts.OnGiveUp != nil {
			f.opts.OnGiveUp(e, p.outcome)
		}
	}
	f.submitAsyncLocked(job)
}

// Extend moves a lease's deadline to d from now and updates l.
func (f *Frontier) Extend(l *Lease, d time.Duration) error {
	if d <= 0 || d > maxDelay {
		return fmt.Errorf("frontier: extend by %v; want more than 0 and at most %v", d, maxDelay)
	}
	if l == nil {
		return ErrNotLeased
	}
	f.lock()
	defer f.mu.Unlock()
	r, err := f.heldLocked(l)
	if err != nil {
		return err
	}
	r.deadline = f.nowLocked() + int64(d)
	f.core.expiry.fix(int(r.pos), r.deadline)
	l.Deadline = f.wall(r.deadline)
	f.dispatchLocked() // it may end before what the timer waits for
	return nil
}

// Join puts a lease's host into a group and updates l. Call it before each
// contact: the host stays in the group until it joins another or nothing more
// must be known of it (no URLs but such as are scheduled, no lease, its time has
// passed). If the group may be
// contacted now the lease holds a slot of it; otherwise Join returns
// ErrGroupBusy, and the lease must be handed back uncontacted: its host comes
// again when the group is free. A host without URLs would forget the group then;
// it keeps it for as long as Outcome.RetryAfter says. Group names have 1 to 255 bytes.
func (f *Frontier) Join(l *Lease, name string) error {
	if len(name) < 1 || len(name) > 255 {
		return fmt.Errorf("frontier: group name has %d bytes; want 1 to 255", len(name))
	}
	if l == nil {
		return ErrNotLeased
	}
	f.lock()
	defer f.mu.Unlock()
	r, err := f.heldLocked(l)
	if err != nil {
		return err
	}
	c := f.core
	now := f.nowLocked()
	c.sweepGroups(now)
	id := c.groupOf(name)
	if r.group == id {
		l.Group = name
		return nil
	}
	granted := c.takeSlot(id, now)
	c.moveLease(r, id, granted, now)
	c.moveHost(r.host, id, now)
	h := c.hosts.at(r.host)
	h.set(unsaved)
	h.clear(assigned)
	l.Group = name
	f.dispatchLocked()
	if !granted {
		return ErrGroupBusy
	}
	return nil
}

// HandBack returns a lease's URL to the head of its queue, untried, but keeps the
// host's slot: the lease that comes back is for contact only, and the one given
// has ended. It is how a crawler reads robots.txt before the page.
func (f *Frontier) HandBack(l Lease) (Lease, error) {
	f.lock()
	defer f.mu.Unlock()
	r, err := f.heldLocked(&l)
	if err != nil {
		return Lease{}, err
	}
	now := f.nowLocked()
	if f.core.limits != nil && r.record != 0 {
		f.core.use(r.host, f.core.crawlOf(f.core.queues.at(r.queue)), count{served: -1, lease: f.core.leaseNumber(r.token)}, now)
	}
	switch {
	case r.record == 0:
	case f.deadLeaseLocked(r) != 0:
		o := newOp()
		f.endDeadLocked(o, r, plan{outcome: Outcome{Result: Requeue}})
		o.after = func(error) {} // nobody waits
		f.submitAsyncLocked(o)
	case r.again != nil: // a Force met the lease: the URL comes again as it was forced
		o := newOp()
		f.endsLocked(o, r.queue, r.record)
		again := *r.again
		again.body = o.hold(again.body)
		o.entries = append(o.entries, again)
		o.after = func(error) {} // nobody waits
		f.submitAsyncLocked(o)
	default:
		f.core.returnHead(r.queue, r.record)
		f.core.filled(r.queue, now)
	}
	f.core.unlease(r)
	r.record, r.queue, r.again, r.dead = 0, 0, nil, 0
	r.token = f.nextToken()
	r.deadline = now + int64(f.opts.LeaseTime)
	f.core.expiry.fix(int(r.pos), r.deadline)
	f.dispatchLocked() // an extended lease ends earlier now
	var again Lease
	f.newLease(&again, l.record)
	again.Due = l.Due // another lane may have ended meanwhile
	return again, nil
}
