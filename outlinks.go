// This file is what a Done must know before it admits the outlinks of a page:
// whether there is room, which are known already, and what is stored of their
// hosts.

package frontier

import (
	"errors"
	"fmt"
)

// awaitRoom waits while the disk is behind and outlinks would fill the memory, but
// not during shutdown.
func (f *Frontier) awaitRoom(o *op) {
	for len(o.entries) > 0 && f.opts.Spill != nil {
		f.mu.Lock()
		wait, err := f.roomLocked(o)
		stop := f.draining || err != nil
		f.mu.Unlock()
		if wait == nil || stop {
			return
		}
		<-wait
	}
}

// lockKnowing takes the lock when the Spill has told which of the outlinks in o it
// knows, with the hosts of the others in memory if anything was stored of them. If
// it cannot tell they are refused.
func (f *Frontier) lockKnowing(o *op) (err error) {
	for {
		if lerr := f.lookUp(o); lerr != nil {
			o.entries = o.entries[:0]
			err = fmt.Errorf("outlinks: %w", lerr)
		}
		f.lock()
		stale := f.staleLocked(o)
		if !stale && !f.hostsAbsentLocked(o) {
			return err
		}
		f.mu.Unlock()
		if stale {
			continue
		}
		if rerr := f.readHosts(o); rerr != nil {
			o.entries = o.entries[:0]
			err = fmt.Errorf("outlinks: %w", rerr)
		}
	}
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
