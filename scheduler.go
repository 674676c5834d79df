// This file asks the user's Scheduler: what is next after a visit, whether a visit that
// is due should still be made now, and what a hint changes.

package frontier

import "time"

// Scheduler says when a URL is visited again. It is asked when a URL was
// visited, gone or denied, and when the tries of one that failed are used up,
// unless Outcome.Next says so; outside the lock, from any goroutine. A time that has
// passed is as good as now. If it panics, whoever called Done does, and the lease
// is out as before.
type Scheduler interface {
	// Next returns the time of the next visit, zero for never (the URL leaves,
	// and was given up if it failed), and what is to be kept of it.
	Next(v Visit) (due time.Time, keep State)
}

// Visit is the end of a lease, as a Scheduler is told of it.
type Visit struct {
	Entry   Entry   // with the new Meta
	Host    string  // host key
	Before  History // without this visit
	History History // with it, and with the State of before
	Outcome Outcome // Ended and Duration are set
}

// Rechecker is a Scheduler that is asked once more when the time of a URL has
// come, before it is handed out: prices may have changed since its last visit.
// One of which it keeps nothing, one that is tried again after a failure, and one
// of CrawlNow are handed out without asking.
type Rechecker interface {
	Scheduler
	// Recheck returns when to visit the URL and what is to be kept of it. If that
	// is later than now the URL is PutOff: no caller of Next sees it, and its
	// host is not contacted. A crash may undo that: then it is asked again. If it
	// panics, whoever called Next does, and the URL waits as before.
	Recheck(e Entry, host string, h History, now time.Time) (due time.Time, keep State)
}

// Hinter is a Scheduler that decides what becomes of a scheduled URL that was added
// again with Entry.Hint. It is asked outside the lock, from any goroutine, and must
// not call the Frontier. Without one, a URL comes at the hint's NotBefore if that is
// not zero and earlier than its own time.
//
// In any case the URL has the greater Weight of both and the lesser Depth, and the
// Prioritizer is asked anew. One that is tried again after a failure keeps its time,
// and no Hinter is asked. When its time has come a Rechecker is asked as always.
type Hinter interface {
	Scheduler
	// Hint is told of the URL as it is known, with the greater Weight, the lesser Depth
	// and its time in NotBefore; and as it was found. NotBefore of that is from when on
	// a visit is said to find something new, usually in the past, or zero.
	Hint(known, found Entry, host string, h History, now time.Time) Hinted
}

// Hinted is what becomes of a URL that there was a hint of.
type Hinted struct {
	Due  time.Time // when to visit it; zero leaves its time
	Keep State     // what is to be kept of it
	Meta []byte    // replaces its Meta; nil, or more than MaxMeta, keeps it
}

// SchedulerFunc makes a function a Scheduler that keeps nothing.
type SchedulerFunc func(v Visit) (due time.Time)

// Next calls the function.
func (f SchedulerFunc) Next(v Visit) (time.Time, State) { return f(v), v.Before.State }

// putOff asks whether a lease that is about to go out should, and ends it if it
// should not: as uncontacted, without waiting for the commit. It reports whether
// the caller must look for another one.
func (f *Frontier) putOff(l *Lease) bool {
	if l.Attempt > 1 || l.Priority == Immediate || l.History.State == (State{}) {
		return false
	}
	moment := f.moment()
	now := f.wall(moment)
	asked := false
	defer func() {
		if !asked { // it panics: nobody gets the lease
			f.giveBack(&grant{lease: *l}, nil)
		}
	}()
	due, keep := f.rechecker.Recheck(l.Entry, l.Host, l.History, now)
	asked = true
	l.History.State = keep
	if !due.After(now) {
		return false
	}
	p := plan{outcome: Outcome{Result: PutOff, Uncontacted: true, Ended: now, Next: due}}
	_ = f.plan(&p, l, moment) // asks nobody
	f.lock()
	defer f.mu.Unlock()
	if _, err := f.heldLocked(l); err != nil {
		return true // it expired, or the frontier was closed
	}
	job := newOp()
	_ = f.finishLocked(job, l.record, &p) // it has no outlinks
	job.after = func(error) {}            // nobody waits
	f.submitAsyncLocked(job)
	f.dispatchLocked()
	return true
}
