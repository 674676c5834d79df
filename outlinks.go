// This file is what a Done must know before it admits the outlinks of a page:
// whether there is room, which are known already, and what is stored of their
// hosts.

package frontier

import (
	"errors"
	"fmt"
)

// awaitRoom waits while the disk is behind and outlinks would fill the memory, but
// not during shutdown. Its error is why nobody waits any more.
func (f *Frontier) awaitRoom(o *op) error {
	for len(o.entries) > 0 && f.opts.Spill != nil {
		f.mu.Lock()
		wait, err := f.roomLocked(o)
		stop := f.draining || err != nil
		f.mu.Unlock()
		if wait == nil || stop {
			return nil
		}
		select {
		case <-wait:
		case <-o.context().Done():
			return o.context().Err()
		case <-f.abandoned:
			return ErrClosed
		}
	}
	return nil
}

// lockKnowing takes the lock when the Spill has told which of the outlinks in o it
// knows, with the hosts of the others in memory if anything was stored of them. If
// it cannot tell they are refused. After err, which is why nobody waits any more, the
// lock is not held.
func (f *Frontier) lockKnowing(o *op) (refused, err error) {
	for {
		if lerr := f.lookUp(o); lerr != nil {
			if err := f.waitedEnough(o); err != nil {
				return nil, err
			}
			o.entries = o.entries[:0]
			refused = fmt.Errorf("outlinks: %w", lerr)
		}
		f.lock()
		stale := f.staleLocked(o)
		if !stale && !f.hostsAbsentLocked(o) {
			return refused, nil
		}
		f.mu.Unlock()
		if stale {
			continue
		}
		if rerr := f.readHosts(o); rerr != nil {
			if err := f.waitedEnough(o); err != nil {
				return nil, err
			}
			o.entries = o.entries[:0]
			refused = fmt.Errorf("outlinks: %w", rerr)
		}
	}
}

// waitedEnough is why nobody waits for o any more.
func (f *Frontier) waitedEnough(o *op) error {
	if err := o.context().Err(); err != nil {
		return err
	}
	if f.isAbandoned() {
		return ErrClosed
	}
	return nil
}

// outlinksLocked removes known URLs from o, and all outlinks if there is no room.
func (f *Frontier) outlinksLocked(o *op) error {
	if len(o.entries) == 0 {
		return nil
	}
	var own []newEntry // the URL's own next record is last, and never refused
	if last := len(o.entries) - 1; o.entries[last].index < 0 {
		own = append(own, o.entries[last])
		o.entries = o.entries[:last]
	}
	if len(o.entries) > 0 {
		if _, err := f.roomLocked(o); err != nil {
			o.entries = append(o.entries[:0], own...)
			return fmt.Errorf("outlinks: %w", err)
		}
	}
	forced, unheard := f.dedupLocked(o, false)
	o.forced = forced
	refused := f.limitLocked(o)
	o.entries = append(o.entries, own...)
	return errors.Join(unheard, refused)
}
