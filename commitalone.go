// This file lets what frees memory and disk be committed while what needs room is
// refused: callers of Add and Done share the price of a write, not its refusal.

package frontier

import (
	"errors"
	"syscall"
)

// noRoom reports whether the Spill refused a batch because its disk is full.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// needsRoom reports whether an op asks for more than a few bytes, or has told a
// caller that what is refused now is known.
func (o *op) needsRoom() bool {
	return o.links || len(o.entries)+len(o.marks)+len(o.replaced) > 0
}

// commitAlone is called when a batch was refused for want of room. It fails the
// ops that need any, those that queued behind them too, and commits the others. It returns
// what is left to be settled, with its batch and the error of that.
func (f *Frontier) commitAlone(group []*op, refused *Batch, err error) ([]*op, *Batch, error) {
	f.mu.Lock()
	var kept, failed []*op
	for _, o := range group {
		if o.needsRoom() {
			failed = append(failed, o)
		} else {
			kept = append(kept, o)
		}
	}
	if len(kept) == 0 || len(failed) == 0 {
		f.mu.Unlock()
		return group, refused, err
	}
	c := &f.committer
	queue := c.queue[:0:0]
	for _, o := range c.queue {
		if o.run == nil && o.needsRoom() {
			failed = append(failed, o)
		} else {
			queue = append(queue, o)
		}
	}
	c.queue = queue
	f.commitFailedLocked(err)
	for i := range failed {
		o := failed[len(failed)-1-i] // the last first, as always
		f.undoLocked(o)
		f.finishing--
		c.bytes -= int64(len(o.buf))
	}
	own := len(refused.Rows)
	for _, o := range group {
		own -= len(o.rows) + btoi(o.deletion != nil) + btoi(o.noteBlock != 0)
	}
	b := &Batch{ID: refused.ID, Time: refused.Time, Drop: refused.Drop, Rows: refused.Rows[:own:own]}
	for _, o := range kept {
		if o.deletion != nil {
			b.Rows = append(b.Rows, o.deletion.row())
		}
		b.Rows = append(b.Rows, o.rows...)
		if o.ends {
			b.Finish = append(b.Finish, f.completionLocked(o.record))
		}
	}
	f.freedLocked()
	f.mu.Unlock()
	for _, o := range failed {
		f.settled(o, err)
	}
	return kept, b, f.commit(b)
}
