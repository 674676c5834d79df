// This file says when something happens next, and who is woken for it.
//
// Mercator's heap of hosts by earliest time, and those of groups, leases and scheduled URLs, lie in
// package mercator. Their earliest time sets the one timer of the calls that wait. What becomes
// available goes to the first of them: no other wakes, and none polls.

package frontier

import (
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/waitqueue"
)

// grant is what a waiter waited for: a lease, a host whose next record it must
// read itself, an error, or nothing: it must wait again.
type grant struct {
	lease Lease
	load  *loadJob
	err   error
	again bool
}

// dispatchLocked gives waiters what may be had now, and sets the timer for the
// rest. It must be called after any change that a waiter could wait for.
func (f *Frontier) dispatchLocked() {
	if err := f.refusalLocked(); err != nil {
		f.refuseLocked(err)
		return
	}
	if f.core.Timed.Len() > 0 {
		f.reader.Wake()
	}
	if len(f.core.Lost) > 0 {
		f.startGivingUpLocked()
	}
	f.found.Wake()
	if !f.awaited() && len(f.contacts) == 0 {
		f.armLocked(f.last)
		return
	}
	now := f.nowLocked()
	for !f.waiters.Empty() {
		var g grant
		if !f.nextLocked(&g, now, nil) {
			break
		}
		f.waiters.Give(&g)
	}
	if f.waiters.Empty() { // else nextLocked did, and took all that came of it
		f.core.Advance(now)
	}
	f.callLocked(now)
	if len(f.takers) > 0 {
		f.giveTakersLocked(now)
	}
	if f.moreLocked(now) {
		f.goOnLocked()
		return
	}
	if f.awaited() && f.overLocked() {
		err := f.exhaustedLocked()
		f.waiters.GiveAll(&grant{err: err})
		f.endTakersLocked(err)
	}
	f.armLocked(now)
}

// goOnLocked dispatches again as soon as others have had the lock.
func (f *Frontier) goOnLocked() {
	if f.goingOn || f.closed {
		return
	}
	f.goingOn = true
	f.background.Go(func() {
		f.lock()
		defer f.mu.Unlock()
		f.goingOn = false
		if !f.closed {
			f.dispatchLocked()
		}
	})
}

// callLocked gives hosts to the Contact calls that wait for them.
func (s *shard) callLocked(now int64) {
	for {
		id, due := s.core.NextCall(now)
		if id == 0 {
			return
		}
		q := s.contacts[id]
		var g grant
		s.newLeaseLocked(&g.lease, s.core.LeaseHost(mercator.Lease{
			Token: s.nextTokenLocked(), LeasedAt: now, Deadline: now + int64(s.opts.LeaseTime), Host: id,
		}, now))
		s.setDue(&g.lease, due)
		q.Give(&g)
		if q.Empty() {
			s.dropContactsLocked(id, now) // with more lanes it has a place for a Contact that waits
			continue
		}
		s.core.Advance(now) // it may have another lane
	}
}

// refuseLocked gives an error to all waiters, and lets Drain return once the last lease has ended.
func (f *Frontier) refuseLocked(err error) {
	f.waiters.GiveAll(&grant{err: err})
	f.endTakersLocked(err)
	for id, q := range f.contacts {
		q.GiveAll(&grant{err: err})
		f.dropContactsLocked(id, f.nowLocked())
	}
	if f.drained != nil && f.core.Stats.Leased == 0 && f.ledger.Pending() == 0 {
		close(f.drained)
		f.drained = nil
	}
	if f.drained != nil {
		f.armLocked(f.nowLocked())
	}
}

// armLocked makes sure that the timer fires at the next event.
func (f *Frontier) armLocked(now int64) {
	at := f.core.Expiry.Min()
	switch {
	case f.closed:
		return
	case !f.awaited() && len(f.contacts) == 0 && f.drained == nil: // no call waits
		at = f.found.Rises.NextRound()
	case !f.draining:
		at = min(f.core.NextEvent(now), f.reader.Event(now), f.found.HintsDue(), f.found.Rises.NextRound(), f.tellWaitLocked(now))
	}
	if at == instant.Never || f.timer != nil && f.timerAt <= at && f.timerAt > now {
		return
	}
	if f.core.AwaitsDate() {
		at = min(at, now+int64(f.opts.tuning.LookAgain))
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

// nextEventFor returns when to look again for a waiting call of Take, or of Next if t is nil.
func (s *shard) nextEventFor(t *taking, now int64) int64 {
	if t != nil && t.Host != "" {
		if id := s.core.Lookup(s.core.HashOf(t.Host), t.Host); id != 0 {
			if at := s.core.DueFor(id, t.Crawls); at > now {
				return at
			}
		}
	}
	return s.core.NextEvent(now)
}

// giveTakersLocked gives waiting calls of Take what may be had now.
func (f *Frontier) giveTakersLocked(now int64) {
	f.takers = slices.DeleteFunc(f.takers, func(t *taking) bool {
		var g grant
		if !f.chooseLocked(&g, t, now) {
			return false
		}
		t.calls.Give(&g)
		return true
	})
}

// endTakersLocked gives all waiting calls of Take an error.
func (s *shard) endTakersLocked(err error) {
	for _, t := range s.takers {
		t.calls.GiveAll(&grant{err: err})
	}
	s.takers = nil
}

// awaited reports whether a call of Next or Take waits.
func (s *shard) awaited() bool { return !s.waiters.Empty() || len(s.takers) > 0 }

// queueFor returns the queue that a call waits in.
func (f *Frontier) queueFor(t *taking) *waitqueue.Queue[grant] {
	if !t.filtered() {
		return &f.waiters
	}
	f.takers = append(f.takers, t)
	return &t.calls
}
