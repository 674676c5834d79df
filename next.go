// This file has the calls that ask for one lease: Next, TryNext, Contact.
//
// Waiting calls of Next form one queue, those of Contact one for each host: see heap.go.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/waitqueue"
)

// Next returns the lease of the next URL that may be fetched, and waits for one if
// necessary. Waiting calls are served in the order of their arrival. It returns ctx's
// error, ErrClosed, ErrExhausted when the crawl is over, a *SelectorError, or the Spill's
// error for URLs that could not be read.
func (f *Frontier) Next(ctx context.Context) (Lease, error) {
	var g grant
	for f.await(ctx, &g, nil) { // any number may be put off after a pause
		g = grant{}
	}
	return g.lease, g.err
}

// await fills g, which must be zero, with what a call of Next gets, or one of Take at first.
// It reports whether there is neither a lease nor an error, so that the caller must ask
// again.
func (f *Frontier) await(ctx context.Context, g *grant, t *taking) (again bool) {
	if g.err = ctx.Err(); g.err != nil {
		return false // a cancelled worker must not take a host
	}
	f.lock()
	if g.err = f.refusalLocked(); g.err != nil {
		f.mu.Unlock()
		return false
	}
	for t.filtered() || f.waiters.Empty() { // no call came before
		if f.chooseLocked(g, t, f.last) {
			f.mu.Unlock()
			return f.accept(ctx, g)
		}
		if !f.moreLocked(f.last) {
			break
		}
		f.mu.Unlock()
		f.lock()
		if g.err = f.refusalLocked(); g.err != nil {
			f.mu.Unlock()
			return false
		}
	}
	calls := f.queueFor(t)
	w := calls.Push()
	f.dispatchLocked() // may give w the end of the crawl
	f.mu.Unlock()
	select {
	case *g = <-w.Granted:
		return f.accept(ctx, g)
	case <-ctx.Done():
	}
	f.mu.Lock()
	if w.Waits() {
		calls.Remove(w)
		f.leftLocked(t)
		f.mu.Unlock()
		g.err = ctx.Err()
		return false
	}
	f.mu.Unlock() // a grant is on its way: take it, and give it back
	*g = <-w.Granted
	if g.load != nil {
		*g = f.loadFor(ctx, g.load)
	}
	f.giveBack(g, ctx.Err())
	return false
}

// TryNext is Next without waiting for a host or for an Add; it may read from disk. If no
// URL may be fetched now it returns ErrNotDue and the earliest time at which one may
// become available. Treat it as a lower bound: another rule or group may still withhold
// the host then. A zero time means that only another call can change anything.
func (f *Frontier) TryNext() (Lease, time.Time, error) {
	for {
		l, at, again, err := f.tryNext(context.Background(), nil)
		if again || f.rechecker != nil && err == nil && f.putOff(&l) {
			continue
		}
		return l, at, err
	}
}

func (f *Frontier) tryNext(ctx context.Context, t *taking) (l Lease, at time.Time, again bool, err error) {
	f.lock()
	defer f.mu.Unlock()
	if err := f.refusalLocked(); err != nil {
		return l, at, false, err
	}
	if t.filtered() || f.waiters.Empty() {
		var g grant
		ok := f.chooseLocked(&g, t, f.last)
		if ok && g.load != nil {
			f.mu.Unlock()
			g = f.loadFor(ctx, g.load)
			f.mu.Lock()
		}
		if ok {
			return g.lease, at, g.again, g.err
		}
		if f.moreLocked(f.last) {
			return l, at, true, nil
		}
		if f.readDueLocked(f.last) {
			f.mu.Unlock()
			_, err := patience.Ask(ctx, f.abandoned, func() (bool, error) { return f.readTimed(true), nil })
			f.mu.Lock()
			return l, at, err == nil, err
		}
		if len(f.core.Lost) > 0 || f.givingStep != nil {
			f.mu.Unlock()
			_, err := patience.Ask(ctx, f.abandoned, func() (bool, error) { return f.giveUpSome(false), nil })
			f.mu.Lock()
			return l, at, err == nil, err
		}
		if f.overLocked() {
			return l, at, false, f.exhaustedLocked()
		}
	}
	next := f.nextEventFor(t, f.last)
	if f.core.Places[mercator.Unpurged]+f.core.SweptCrawls > 0 {
		next = min(next, f.last+sweepTime)
	}
	if next != instant.Never {
		at = f.wall(next)
	}
	return l, at, false, ErrNotDue
}

// Contact waits until a host may be contacted and returns a lease without a URL, for
// robots.txt and the like. host is a host key. One lease is one contact: call Done with
// it, which moves the host's clock. Calls for one host are served in order, and before
// its URLs. While a lease of the host is out, Contact waits for its end. Errors are those
// of Next, except ErrExhausted, and the Spill's if the host's row cannot be read.
func (f *Frontier) Contact(ctx context.Context, host string) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return Lease{}, err
	}
	host, err := f.hostKey(host)
	if err != nil {
		return Lease{}, fmt.Errorf("frontier: contact: %w", err)
	}
	if err := f.lockWithHost(ctx, host); err != nil {
		return Lease{}, err
	}
	if err := f.refusalLocked(); err != nil {
		f.mu.Unlock()
		return Lease{}, err
	}
	id := f.core.Ensure(f.core.HashOf(host), host)
	f.core.WantContact(id, f.last)
	q := f.contacts[id]
	if q == nil {
		q = &waitqueue.Queue[grant]{}
		f.contacts[id] = q
	}
	w := q.Push()
	f.dispatchLocked()
	f.mu.Unlock()
	select {
	case g := <-w.Granted:
		f.accept(ctx, &g) // of nothing that could be put off
		return g.lease, g.err
	case <-ctx.Done():
	}
	f.mu.Lock()
	if !w.Waits() {
		f.mu.Unlock()
		g := <-w.Granted
		f.giveBack(&g, ctx.Err())
		return Lease{}, g.err
	}
	q.Remove(w)
	if q.Empty() {
		f.dropContactsLocked(id, f.nowLocked())
	}
	f.dispatchLocked() // its URLs may be had again, or the crawl is over
	f.mu.Unlock()
	return Lease{}, ctx.Err()
}

// dropContactsLocked forgets the Contact calls of a host: none waits any more.
func (s *shard) dropContactsLocked(id uint32, now int64) {
	delete(s.contacts, id)
	h := s.core.Hosts.At(id)
	h.Wanted = false
	switch h.Place {
	case mercator.Leased, mercator.Loading:
	default:
		s.core.Detach(id)
		s.core.Settle(id, now)
	}
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
