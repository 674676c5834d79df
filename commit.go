// This file has what a call wants committed, and what package ledger, which commits it, asks of the frontier.

package frontier

import (
	"sync"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/room"
	"github.com/seed-7440039f/frontier/internal/tombstone"
)

// op is what one call wants committed, and what the call needs on the way.
type op struct {
	ledger.Op

	forced    []ledger.Entry // known outlinks to be forced once this is committed
	found     []ledger.Entry // known URLs that may rise
	refused   []*EntryError
	verdicts  []Verdict // by index of the entries of the call; nil: not wanted
	lookup    lookup
	forgets   uint64              // version of the numbers with which entries are marked
	absent    []mercator.Absentee // hosts of entries that were not in memory
	space     *room.Space         // that it waited for
	unlimited bool                // no limit refuses its entries
}

// maxPooled is the room for entries of the largest op that is used again.
const maxPooled = 4 << 10

var ops = sync.Pool{New: func() any { return &op{} }}

func newOp() *op { return ops.Get().(*op) }

// free gives the op back, unless the ledger has it for good.
func (o *op) free() {
	if o.Left {
		return
	}
	o.Reset()
	clear(o.found)
	clear(o.absent)
	o.forced, o.found, o.refused, o.verdicts, o.absent = nil, o.found[:0], nil, nil, o.absent[:0]
	o.lookup = lookup{marks: o.lookup.marks[:0], at: o.lookup.at[:0], known: o.lookup.known[:0]}
	o.forgets, o.space, o.unlimited = 0, nil, false
	if cap(o.Entries)+cap(o.found) <= maxPooled {
		ops.Put(o)
	}
}

func (o *op) empty() bool { return o.Empty() && len(o.forced) == 0 }

// submitAsyncLocked commits an op without waiting; after gets the result. The op has at
// most ledger.AtOnce entries, so that the lock is not given up.
func (s *shard) submitAsyncLocked(o *op, after func(error)) {
	o.After = func(err error) {
		after(err)
		o.free()
	}
	s.ledger.SubmitAsync(&o.Op)
}

// whenever takes the result of an op that no call waits for.
func whenever(error) {}

// replacements are ops that replace one record in memory each.
type replacements struct {
	f    *Frontier
	jobs []*op // that wait for a commit
}

// addYieldingLocked submits one.
func (r *replacements) addYieldingLocked(o *op) {
	if r.f.ledger.SubmitYielding(&o.Op) {
		r.jobs = append(r.jobs, o)
		return
	}
	o.free()
}

// awaitAndUnlock waits for their commits.
func (r *replacements) awaitAndUnlock() (err error) {
	r.f.dispatchLocked()
	r.f.mu.Unlock()
	for _, o := range r.jobs {
		if e := o.Result(); e != nil {
			err = e
		}
		o.free()
	}
	return err
}

// above is the frontier as the ledger sees it.
type above struct{ *Frontier }

func (f above) Now() int64                      { return f.nowLocked() }
func (f above) Last() int64                     { return f.last }
func (f above) Closed() bool                    { return f.closed }
func (f above) Dispatch()                       { f.dispatchLocked() }
func (f above) Limit() int64                    { return f.residentLimitLocked() }
func (f above) Share()                          { f.sharePopularLocked() }
func (f above) Emit(e event.Event)              { f.emitLocked(e) }
func (f above) Sweep(ds ...*tombstone.Deletion) { f.startSweepLocked(ds...) }
func (f above) Failed(err error)                { f.commitFailedLocked(err) }
func (f above) Lost(err error)                  { f.storeFailedLocked(err) }
func (f above) Works()                          { f.storeWorksLocked() }

// Report emits an event of the Spill's.
func (f above) Report(what string, err error) {
	f.emit(event.Event{Kind: event.StoreError, Reason: what, Err: err})
}
