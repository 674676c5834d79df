// This file has what a call wants committed, and what the packages below that share the frontier's lock ask of it:
// ledger, which commits, found, which changes known URLs, and readahead, which reads scheduled ones.

package frontier

import (
	"context"
	"sync"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/room"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
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

// submitAsyncLocked commits an op without waiting; after gets the result, unless it is nil. The op has at
// most ledger.AtOnce entries, so that the lock is not given up.
func (s *shard) submitAsyncLocked(o *op, after func(error)) {
	o.After = func(err error) {
		if after != nil {
			after(err)
		}
		o.free()
	}
	s.ledger.SubmitAsync(&o.Op)
}

// above is the frontier as these packages see it.
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

func (f above) Ended() bool     { return f.refusalLocked() != nil }
func (f above) Go(walk func())  { f.sweepers.Go(walk) }
func (f above) LockOpen() error { return f.lockOpen() }
func (f above) LockPresent()    { f.lock() }

func (f above) LockWithHost(ctx context.Context, host string) error { return f.lockWithHost(ctx, host) }

func (f above) ReadPart(ctx context.Context, p storage.Part, want uint32) ([]fifo.Loaded, error) {
	return f.readFor(ctx, p, want)
}

func (f above) SweepInSteps(step func(steps int) (done, wait bool)) bool { return f.sweepInSteps(step) }

func (f above) WalkAndUnlock(w *fifo.Walk, rest func()) { f.walkHostAndUnlock(w, rest) }

func (f above) Guard(who, host string, code func()) bool { return f.guard(who, host, code) }

// LockWithHosts takes the lock with the hosts of entries in memory of which anything was stored.
func (f above) LockWithHosts(of []ledger.Entry) error {
	o := newOp()
	defer o.free()
	o.Entries = append(o.Entries, of...)
	for {
		if err := f.lockOpen(); err != nil {
			return err
		}
		if f.core.Dormant.Rows() == 0 || !f.hostsAbsentLocked(o) {
			return nil
		}
		f.mu.Unlock()
		if err := f.readHosts(o); err != nil {
			return err
		}
	}
}

func (f above) ListTimed() *timed.List { return f.reader.List() }

func (f above) ReadTimed(block uint32) (more bool) { return f.reader.ReadFor(block) }

func (f above) Token() uint64 { return f.token }
func (f above) Awaited() bool { return f.awaited() }

// Fault gives an error to the next call of Next; with once, unless another waits for one.
func (f above) Fault(err error, once bool) {
	if !once || len(f.faults) == 0 {
		f.faults = append(f.faults, err)
	}
}

func (f above) ReadRows(of []*mercator.Absentee) error { return f.readRows(of) }
