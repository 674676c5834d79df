// This file holds the calls that wait, and the timer that serves them all.
//
// Waiters of Next form one queue, those of Contact one for each host. What
// becomes available is handed to the first waiter: nobody else wakes, and nobody
// polls.

package frontier

import (
	"context"
	"errors"
	"time"
)

// waiter is a blocked call of Next or Contact.
type waiter struct {
	grant      chan grant // gets exactly one, or none if the waiter left
	prev, next *waiter
	queued     bool
}

// grant is what a waiter waited for: a lease, a host whose next record it must
// read itself, an error, or nothing: it must wait again.
type grant struct {
	lease Lease
	load  *loadJob
	err   error
	again bool
}

// waiterQueue is a FIFO. The zero value is empty.
type waiterQueue struct{ first, last *waiter }

func (q *waiterQueue) push() *waiter {
	w := &waiter{grant: make(chan grant, 1), prev: q.last, queued: true}
	if q.last != nil {
		q.last.next = w
	} else {
		q.first = w
	}
	q.last = w
	return w
}

func (q *waiterQueue) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
}

// give hands g to the first waiter.
func (q *waiterQueue) give(g *grant) {
	w := q.first
	q.remove(w)
	w.grant <- *g
}

// dispatchLocked gives waiters what may be had now, and sets the timer for the
// rest. Whoever changes anything that a waiter could wait for calls it.
func (f *Frontier) dispatchLocked() {
	if f.draining {
		f.refuseLocked()
		return
	}
	f.wakeReaderLocked()
	f.startGivingUpLocked()
	f.startHintsLocked()
	if f.waiters.first == nil && len(f.contacts) == 0 {
		return
	}
	now := f.nowLocked()
	for f.waiters.first != nil {
		var g grant
		if !f.nextLocked(&g, now) {
			break
		}
		f.waiters.give(&g)
	}
	if f.waiters.first == nil { // else nextLocked did, and took all that came of it
		f.core.advance(now)
	}
	f.callLocked(now)
	if f.moreLocked(now) {
		f.goOnLocked()
		return
	}
	if f.waiters.first != nil && f.overLocked() {
		for f.waiters.first != nil {
			f.waiters.give(&grant{err: f.exhaustedLocked()})
		}
	}
	f.armLocked(now)
}

// moreLocked reports whether time has more to bring now than was looked at under
// one lock.
func (f *Frontier) moreLocked(now int64) bool { return f.core.nextEvent(now) <= now }

// goOnLocked dispatches again as soon as others have had the lock.
func (f *Frontier) goOnLocked() {
	if f.goingOn || f.closed {
		return
	}
	f.goingOn = true
	f.background.Add(1)
	go func() {
		defer f.background.Done()
		f.lock()
		defer f.mu.Unlock()
		f.goingOn = false
		if !f.closed {
			f.dispatchLocked()
		}
	}()
}

// callLocked gives hosts to the Contact calls that wait for them.
func (f *Frontier) callLocked(now int64) {
	for len(f.core.calls) > 0 {
		id := f.core.calls[0]
		f.core.detach(id)
		if !f.core.stillDue(id, now) {
			continue
		}
		q := f.contacts[id]
		var g grant
		due := f.core.hosts.at(id).due
		f.newLease(&g.lease, f.core.leaseHost(leaseRecord{
			token: f.nextToken(), leasedAt: now, deadline: now + int64(f.opts.LeaseTime), host: id,
		}, now))
		f.setDue(&g.lease, due)
		q.give(&g)
		if q.first == nil {
			delete(f.contacts, id)
			f.core.hosts.at(id).wanted = false
			continue
		}
		f.core.advance(now) // it may have another lane
	}
}

// refuseLocked tells all waiters that the frontier is closed to them, and who
// waits for the last lease that it has ended.
func (f *Frontier) refuseLocked() {
	for f.waiters.first != nil {
		f.waiters.give(&grant{err: ErrClosed})
	}
	for id, q := range f.contacts {
		for q.first != nil {
			q.give(&grant{err: ErrClosed})
		}
		f.dropContactsLocked(id)
	}
	if f.drained != nil && f.core.stats.Leased == 0 && f.finishing == 0 {
		close(f.drained)
		f.drained = nil
	}
	if f.drained != nil {
		f.armLocked(f.nowLocked())
	}
}

// armLocked makes sure that the timer fires at the next event.
func (f *Frontier) armLocked(now int64) {
	if f.waiters.first == nil && len(f.contacts) == 0 && f.drained == nil || f.closed {
		return
	}
	at := f.core.expiry.min()
	if !f.draining {
		at = min(f.core.nextEvent(now), f.readEventLocked(now), f.hintsDueLocked())
	}
	if at == never || f.timer != nil && f.timerAt <= at && f.timerAt > now {
		return
	}
	if f.core.awaitsDate() {
		at = min(at, now+int64(lookAgain))
	}
	f.timerAt = at
	wait := time.Duration(max(0, at-now))
	if f.timer == nil {
		f.timer = f.opts.Clock.AfterFunc(wait, f.tick)
		return
	}
	f.timer.Reset(wait)
}

// tick is called by the timer.
func (f *Frontier) tick() {
	f.lock()
	f.timerAt = 0
	if !f.closed {
		f.dispatchLocked()
	}
	f.mu.Unlock()
}

// accept makes of a grant what its caller gets: a lease or an error, or neither
// but to be given back if its context ended meanwhile. It reports whether the caller
// must ask again.
func (f *Frontier) accept(ctx context.Context, g *grant) (again bool) {
	if g.load != nil {
		*g = f.loadFor(ctx, g.load)
	}
	if err := ctx.Err(); err != nil && g.err == nil {
		f.giveBack(g, err)
		return false
	}
	return g.again || f.rechecker != nil && g.err == nil && f.putOff(&g.lease)
}

// giveBack returns the lease of a grant that came too late, uncontacted. What is left
// of the grant is the error.
func (f *Frontier) giveBack(g *grant, err error) {
	switch {
	case g.err != nil:
		return
	case !g.again:
		err = errors.Join(err, f.Done(g.lease, Outcome{Result: Requeue, Uncontacted: true}))
	}
	*g = grant{err: err}
}
