// This file has what may happen to a lease before its Done: it is extended, joins a group, is
// exchanged for one without a URL, or expires. The records of leases lie in package mercator.

package frontier

import (
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/leaseid"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// reapYieldingLocked settles leases whose deadline has passed, as failed contacts that
// lasted until then. It releases the lock while it asks the policies.
func (f *Frontier) reapYieldingLocked() {
	for _, id := range f.core.Expired(f.last) {
		if !f.expireYieldingLocked(id) {
			return
		}
	}
	f.dispatchLocked()
}

// expireYieldingLocked settles a lease whose deadline has passed. It releases the lock while it calls
// the policies. If the frontier was closed meanwhile it does nothing and reports false.
//
// If a policy panics, or calls runtime.Goexit, the URL is tried again, its host and group rest for the
// longest delay, and a call of Next has the error: the call that comes upon the lease has nothing to do
// with it.
func (f *Frontier) expireYieldingLocked(id uint32) bool {
	var l Lease
	f.newLeaseLocked(&l, id)
	deadline := f.core.Leases.At(id).Deadline
	f.mu.Unlock()
	o := Outcome{Result: Failed, Ended: l.Deadline, Duration: time.Duration(deadline - l.moment)}
	if l.ContactOnly() {
		o.Result = Visited
	}
	p := plan{outcome: o, expired: true}
	if !f.guard("a policy", l.Host, func() { _ = f.plan(&p, &l, deadline) }) {
		longest := max(f.core.Cfg.MaxDelay, f.core.Cfg.GroupMax)
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
	f.core.Stats.Expired++
	f.emitLocked(event.Event{Kind: event.LeaseExpired, Host: l.Host, URL: l.Entry.URL, Crawl: l.Entry.Crawl, Attempt: l.Attempt})
	if p.outcome.Result == Failed {
		f.spareLocked(id, &p)
	}
	f.finishLocked(job, id, &p)
	due, again := int64(0), len(job.Entries) > 0
	if again {
		due = job.Entries[0].Due
	}
	f.core.CountExpired(&job.Outgoing, due, again, f.last)
	e, host := l.Entry, l.Host
	f.submitAsyncLocked(job, func(err error) {
		if err == nil && p.givenUp {
			f.gaveUp(e, host, p.outcome)
		}
	})
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
	r.Deadline = f.nowLocked() + int64(d)
	f.core.Expiry.Fix(int(r.Pos), r.Deadline)
	l.Deadline = f.clock.Wall(r.Deadline)
	f.dispatchLocked() // it may end before what the timer waits for
	return nil
}

// Join puts a lease's host into a group, whichever it was assigned to, and updates l. Call it before
// each contact: the host stays in the group until it joins another, or until it can be forgotten (only
// scheduled URLs, no lease, its time has passed). If the group may be contacted now the lease takes a
// slot of it. Otherwise Join returns ErrGroupBusy, and the lease must be handed back uncontacted: its
// host comes again when the group is free. If the host has no other URLs, set Outcome.RetryAfter when
// handing it back: the membership is kept that long. Group names have 1 to 255 bytes.
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
	granted, moved := f.core.JoinGroup(r, name, f.nowLocked())
	l.Group = name
	if moved {
		f.dispatchLocked()
	}
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
	if f.core.Limits != nil && r.Record != 0 {
		f.core.Use(r.Host, f.core.CrawlOf(f.core.Queues.At(r.Queue)), quota.Amount{Served: -1}, f.core.LeaseNumber(r.Token), now)
	}
	switch {
	case r.Record == 0:
	case f.core.MarkDead(r) != 0:
		o := newOp()
		f.endDeadLocked(o, r, plan{outcome: Outcome{Result: Requeue}})
		f.submitAsyncLocked(o, nil)
	case f.ledger.Again(r.Record) != nil: // a Force met the lease: the URL comes again as it was forced
		o := newOp()
		again := f.ledger.Again(r.Record)
		f.ledger.End(&o.Op, r.Queue, r.Record)
		o.AdmitAgain(again)
		f.submitAsyncLocked(o, nil)
	default:
		f.core.ReturnHead(r.Queue, r.Record)
		f.core.Filled(r.Queue, now)
	}
	f.core.Unlease(r)
	r.Record, r.Queue, r.Dead = 0, 0, 0
	r.Token = f.nextTokenLocked()
	r.Deadline = now + int64(f.opts.LeaseTime)
	f.core.Expiry.Fix(int(r.Pos), r.Deadline)
	f.dispatchLocked() // an extended lease ends earlier now
	var again Lease
	f.newLeaseLocked(&again, l.record)
	again.Due, again.Gap = l.Due, l.Gap // another lane may have ended meanwhile
	return again, nil
}

// ID returns a text of 16 letters, digits, dashes and underscores that stands for the
// lease: LeaseByID finds it again. A program in another process can store it. It cannot be
// derived from other IDs. That of the zero Lease is empty; package fleet/route makes it longer.
func (l Lease) ID() string {
	if l.token == 0 {
		return ""
	}
	return leaseid.Seal(l.record, l.token) + l.tail
}

// LeaseByID returns the lease with this ID, as it is now, without its Due. It returns ErrNotLeased if
// the lease has ended or the store was opened since, and another error if id is not an ID.
func (f *Frontier) LeaseByID(id string) (Lease, error) {
	l, err := RestoreLease(id, Lease{})
	if err != nil {
		return Lease{}, err
	}
	f.lock()
	if _, err := f.leaseOutLocked(&l); err != nil {
		f.mu.Unlock()
		return Lease{}, err
	}
	var found Lease
	f.newLeaseLocked(&found, l.record)
	f.mu.Unlock()
	f.setGap(&found)
	return found, nil
}

// RestoreLease gives a lease its ID back: it returns l with that ID. It is for clients that
// receive the fields of a lease and its ID from the process of the frontier. In that
// process use LeaseByID, which knows when the lease began.
func RestoreLease(id string, l Lease) (Lease, error) {
	var err error
	if l.record, l.token, l.tail, err = leaseid.Open(id); err != nil {
		return Lease{}, fmt.Errorf("frontier: %w", err)
	}
	return l, nil
}
