// This file is how a frontier ends, and Contact, whose waiters an end must reach
// too.

package frontier

import (
	"context"
	"errors"
	"fmt"
)

// Contact waits until a host may be contacted and returns a lease of its slot
// without a URL, for robots.txt and the like. host is a host key. One lease is
// one contact: call Done with it, which moves the host's clock. Calls for one
// host are served in order, and before its URLs. While a lease of the host is
// out, Contact waits for its end. Errors are those of Next, but for ErrExhausted,
// and the Spill's if what is stored of the host cannot be read.
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
	id := f.core.ensure(f.hostHash(host), host)
	f.core.wantContact(id, f.last)
	q := f.contacts[id]
	if q == nil {
		q = &waiterQueue{}
		f.contacts[id] = q
	}
	w := q.push()
	f.dispatchLocked()
	f.mu.Unlock()
	select {
	case g := <-w.grant:
		f.accept(ctx, &g) // of nothing that could be put off
		return g.lease, g.err
	case <-ctx.Done():
	}
	f.mu.Lock()
	if !w.queued {
		f.mu.Unlock()
		g := <-w.grant
		f.giveBack(&g, ctx.Err())
		return Lease{}, g.err
	}
	q.remove(w)
	if q.first == nil {
		f.dropContactsLocked(id)
	}
	f.dispatchLocked() // its URLs may be had again, or the crawl is over
	f.mu.Unlock()
	return Lease{}, ctx.Err()
}

// dropContactsLocked forgets the Contact calls of a host; no one waits any more.
func (f *Frontier) dropContactsLocked(id uint32) {
	delete(f.contacts, id)
	h := f.core.hosts.at(id)
	h.wanted = false
	switch h.place {
	case leased, loading:
	default:
		f.core.detach(id)
		f.core.settle(id, f.nowLocked())
	}
}

// wantContact notes that a Contact waits for a host, which needs a back queue
// then even if it has no URLs.
func (c *core) wantContact(id uint32, now int64) {
	h := c.hosts.at(id)
	h.wanted = true
	switch h.place {
	case leased, loading, pacing, called, held:
	case queued:
		c.hurry(id, now)
	case ready:
		c.detach(id) // it keeps its group's slot
		c.put(h, called)
		c.calls = append(c.calls, id)
	default:
		c.detach(id)
		c.setPacing(id, h, now)
	}
}

// Drain ends the handing out: calls waiting in Next and Contact, and later ones,
// get ErrClosed. It returns when the last lease has ended and all is committed,
// or with ctx's error. Add and Done work until Close.
func (f *Frontier) Drain(ctx context.Context) error {
	if err := f.lockOpen(); err != nil {
		return err
	}
	f.draining = true
	if f.drained == nil {
		f.drained = make(chan struct{})
	}
	done := f.drained
	f.dispatchLocked()
	f.mu.Unlock()
	select {
	case <-done:
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.core.stats.Leased > 0 {
			return ErrClosed // by Close, with leases out
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close commits what was accepted, has OnEvent told of all that happened, and
// ends the frontier. Leases that are out
// come again when the store is opened next. Afterwards every call returns
// ErrClosed; Close itself may be called again. It does not close the Spill.
func (f *Frontier) Close() error { return f.CloseContext(context.Background()) }

// CloseContext is Close, but waits no longer than ctx lasts. When that ends, every
// call that waits for the Spill returns, with ErrClosed or an error that wraps
// ErrUnsettled, and so does CloseContext. What was begun goes on in the background
// until the disk answers; the store is in use until then. Another call of Close or
// CloseContext waits for the end of it.
func (f *Frontier) CloseContext(ctx context.Context) error {
	f.closeOnce.Do(func() {
		go func() {
			defer close(f.isEnded)
			f.closeErr = f.close()
			f.abandon() // what is being read nobody needs
		}()
	})
	select {
	case <-f.isEnded:
		return f.closeErr
	case <-ctx.Done():
	}
	select {
	case <-f.isEnded:
		return f.closeErr
	default:
	}
	f.abandon()
	return fmt.Errorf("%w: close: %w", ErrUnsettled, ctx.Err())
}

// abandon lets every call return that waits for the Spill.
func (f *Frontier) abandon() { f.leaveOnce.Do(func() { close(f.abandoned) }) }

// isAbandoned reports whether nobody waits for the Spill any more.
func (f *Frontier) isAbandoned() bool {
	select {
	case <-f.abandoned:
		return true
	default:
		return false
	}
}

func (f *Frontier) close() error {
	f.lock()
	f.draining, f.closed = true, true
	f.refuseLocked()
	if f.drained != nil {
		close(f.drained)
		f.drained = nil
	}
	if f.timer != nil {
		f.timer.Stop()
	}
	f.freedLocked()
	f.readEndedLocked()
	f.mu.Unlock()
	defer f.events.end()
	if f.opts.Spill == nil {
		f.sweepers.Wait()
		return nil
	}
	close(f.committer.stop)
	f.background.Wait()
	f.sweepers.Wait()
	err := f.saveClocks()
	if err != nil {
		f.emit(Event{Kind: EventStoreError, Reason: "saving clocks", Err: err})
	}
	return errors.Join(err, f.opts.Spill.Release())
}
