// This file ends many leases at once.
//
// The user's code runs before the lock is taken, for all of them. Then they end one after the
// other, many under one lock, so that the committer finds them together.

package frontier

import (
	"cmp"
	"context"
	"errors"
)

// End is a lease, and how it ended.
type End struct {
	Lease   Lease
	Outcome Outcome
}

// Ended is what DoneAll did with an End.
type Ended struct {
	// Verdicts say what became of Outcome.Add, in its order. They are nil if the completion is
	// not recorded, and not nil if it is.
	Verdicts []Verdict
	// Refused are the outlinks that DoneContext returns.
	Refused []*EntryError
	// Err is the error of DoneContext.
	Err error
}

// DoneAll ends leases as DoneContext does, in their order, and returns an Ended for each End.
// Each is on its own: the errors of one do not concern the others, and each is one commit
// with its outlinks. Many of them share one taking of the lock and one write to the disk:
// DoneAll of many leases costs much less than a Done of each.
func (f *Frontier) DoneAll(ctx context.Context, ends []End) []Ended {
	all, done := make([]ending, len(ends)), make([]Ended, len(ends))
	f.planAll(ctx, ends, all)
	i := 0
	settle := func() {
		for i < len(all) {
			i++
			done[i-1] = f.endedOf(ctx, &ends[i-1].Lease, &all[i-1])
		}
	}
	defer func() { // code of the user's has panicked: the others are settled all the same
		for i < len(all) {
			func() {
				defer func() { _ = recover() }() // the first panic goes on
				settle()
			}()
		}
	}()
	f.endAll(ctx, ends, all)
	settle()
	return done
}

// ending is an End on its way.
type ending struct {
	plan     plan
	job      *op
	verdicts []Verdict
	refused  []*EntryError
	bad      error // of a lease that has ended
	err      error // why it has not
	ended    bool  // in memory
	waits    bool  // the committer has its job
	forces   bool  // it is counted in adding
}

// planAll checks all, and asks the user's policies.
func (f *Frontier) planAll(ctx context.Context, ends []End, all []ending) {
	if f.opts.Scheduler != nil { // it sees each visit once
		seen := make(map[uint64]bool, len(ends))
		f.lock()
		for i := range all {
			l := &ends[i].Lease
			_, err := f.leaseOutLocked(l)
			all[i].plan.late = err != nil || seen[l.token]
			seen[l.token] = true
		}
		f.mu.Unlock()
	}
	for i := range all {
		x := &all[i]
		x.plan.outcome = ends[i].Outcome
		if x.err = ctx.Err(); x.err == nil {
			x.err = checkOutcome(&x.plan.outcome)
		}
		if x.err != nil {
			continue
		}
		x.verdicts = make([]Verdict, len(x.plan.outcome.Add))
		var lost, undone error
		if x.job, lost, undone, x.err = f.prepareLinks(ctx, &ends[i].Lease, &x.plan.outcome, x.verdicts); x.err != nil {
			continue
		}
		if undone != nil {
			x.verdicts = nil
		}
		x.bad = errors.Join(undone, lost, f.plan(&x.plan, &ends[i].Lease, f.moment()))
	}
}

// endAll ends all in memory, and submits what must be committed.
func (f *Frontier) endAll(ctx context.Context, ends []End, all []ending) {
	held, under := false, 0 // whether the lock is held, and the cost of the work done under it
	free := func() {
		if held {
			held, under = false, 0
			f.dispatchLocked()
			f.mu.Unlock()
		}
	}
	defer free()
	for i := range all {
		x := &all[i]
		if x.err != nil {
			continue
		}
		links := len(x.job.entries)
		if under >= applyAtOnce || links > 0 {
			free()
		}
		if !held {
			if x.err = f.awaitRoom(x.job); x.err != nil {
				continue
			}
			var unknown error
			if unknown, x.err = f.lockKnowing(x.job); x.err != nil {
				continue
			}
			held, x.bad = true, errors.Join(x.bad, unknown)
		}
		l := &ends[i].Lease
		if _, err := f.leaseOutLocked(l); err != nil || x.plan.late {
			free()
			x.err = errors.Join(cmp.Or(err, ErrNotLeased), f.late(ctx, *l, x.plan)) // its host's clock moves now
			continue
		}
		f.endYieldingLocked(l, x)
		under += opPrice + links
	}
}

// endYieldingLocked ends a lease in memory, and submits what must be committed.
func (f *Frontier) endYieldingLocked(l *Lease, x *ending) {
	x.ended = true
	x.bad = errors.Join(x.bad, f.endLocked(x.job, l, &x.plan))
	var lost error
	x.refused, lost = lostByCode(x.job.refused)
	x.bad = errors.Join(x.bad, lost)
	if f.needsNoCommitLocked(x.job, &x.plan) {
		return
	}
	if x.forces = len(x.job.forced) > 0; x.forces {
		f.adding.Add(1) // the crawl is not over before they are admitted
	}
	f.finishing++
	if x.waits = f.opts.Spill != nil; x.waits {
		f.enqueueLocked(x.job)
		return
	}
	f.applyYieldingLocked(x.job)
	f.finishing--
}

// endedOf waits for the commit of an End, and does what follows it.
func (f *Frontier) endedOf(ctx context.Context, l *Lease, x *ending) Ended {
	if x.job == nil {
		return Ended{Err: x.err}
	}
	defer x.job.free()
	if !x.ended { // or not by this call
		return Ended{Err: x.err}
	}
	if x.forces {
		defer f.addedAll()
	}
	if x.waits {
		x.err = f.awaitOp(x.job)
	}
	if x.job.left {
		go f.doneLate(x.job, *l, x.plan)
	} else {
		x.bad = errors.Join(x.bad, f.doneRest(ctx, x.job, x.err, l, &x.plan))
	}
	if x.err != nil {
		return Ended{Refused: x.refused, Err: errors.Join(x.err, x.bad)}
	}
	return Ended{Verdicts: x.verdicts, Refused: x.refused, Err: x.bad}
}
