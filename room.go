// This file says how much memory URLs may take beside a Spill, and who must wait
// because the disk is behind.

package frontier

import "fmt"

// residentLimitLocked is how many bytes of URLs may be in memory with a Spill:
// what hosts, marks and the rest leave of the budget, and not more than a quarter
// of it: hosts and marks become more.
func (f *Frontier) residentLimitLocked() int64 {
	return min(f.opts.MemoryBudget-f.footprint-f.fixedLocked()-minPopular, f.opts.MemoryBudget/4)
}

// space is what callers wait for that need room.
type space struct {
	free chan struct{} // closed when there may be some
	full bool          // there is none: moving does not help
}

// roomLocked says whether need bytes of o may be admitted with a Spill: now, after
// waiting for the channel, or not at all.
func (c *committer) roomLocked(f *Frontier, o *op, need int64) (<-chan struct{}, error) {
	limit := f.residentLimitLocked()
	if limit < minResident/4 {
		return nil, ErrFull // hosts and marks alone use the budget up
	}
	if f.core.resident+c.bytes+need <= limit*9/10 || need > limit/2 && f.core.resident+c.bytes < limit/4 {
		c.stuck = c.resting
		return nil, nil
	}
	if o.space != nil && o.space.full || c.stuck && !c.moving {
		if need > limit/2 {
			return nil, fmt.Errorf("%w: the %d entries of the call take %d bytes of the %d that URLs may have in memory now; fewer at once may be admitted", ErrFull, len(o.entries), need, limit)
		}
		return nil, ErrFull
	}
	f.signalMoverLocked()
	if c.space == nil {
		c.space = &space{free: make(chan struct{})}
	}
	o.space = c.space
	return c.space.free, nil
}

// freedLocked lets those who wait for room look again. If the mover is stuck, and
// they still find none, they wait no more.
func (f *Frontier) freedLocked() {
	if c := &f.committer; c.space != nil {
		c.space.full = c.stuck
		close(c.space.free)
		c.space = nil
	}
}
