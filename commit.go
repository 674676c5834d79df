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
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/room"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/internal/view"
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

// inside is the frontier as these packages have it, and inspect and transfer: see look.go.
type inside struct{ *Frontier }

func (f inside) Now() int64                      { return f.nowLocked() }
func (f inside) Last() int64                     { return f.last }
func (f inside) Closed() bool                    { return f.closed }
func (f inside) Dispatch()                       { f.dispatchLocked() }
func (f inside) Limit() int64                    { return f.residentLimitLocked() }
func (f inside) Share()                          { f.sharePopularLocked() }
func (f inside) Emit(e event.Event)              { f.emitLocked(e) }
func (f inside) Sweep(ds ...*tombstone.Deletion) { f.startSweepLocked(ds...) }

func (f inside) Report(what string, err error) {
	f.emit(event.Event{Kind: event.StoreError, Reason: what, Err: err})
}

func (f inside) Ended() bool     { return f.refusalLocked() != nil }
func (f inside) Go(walk func())  { f.sweepers.Go(walk) }
func (f inside) LockOpen() error { return f.lockOpen() }
func (f inside) LockPresent()    { f.lock() }

func (f inside) LockWithHost(ctx context.Context, host string) error {
	return f.lockWithHost(ctx, host)
}

func (f inside) Load(ctx context.Context, p storage.Part, want uint32) ([]fifo.Loaded, error) {
	return f.readFor(ctx, p, want)
}

func (f inside) SweepInSteps(step func(steps int) (done, wait bool)) bool {
	return f.sweepInSteps(step)
}

// WalkAndUnlock walks a host in steps of view.AtOnce, and calls rest without the lock between them.
func (f inside) WalkAndUnlock(w *fifo.Walk, rest func()) {
	for f.core.Fifo.Step(w, view.AtOnce) && !f.closed {
		f.mu.Unlock()
		rest()
		f.mu.Lock()
	}
	f.core.EndWalk(w)
	f.mu.Unlock()
}

func (f inside) Guard(who, host string, code func()) bool { return f.guard(who, host, code) }

// LockWithHosts takes the lock with the hosts of entries in memory of which anything was stored.
func (f inside) LockWithHosts(of []ledger.Entry) error {
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

func (f inside) ListTimed() *timed.List             { return f.reader.List() }
func (f inside) ReadTimed(block uint32) (more bool) { return f.reader.ReadFor(block) }
func (f inside) Token() uint64                      { return f.token }
func (f inside) Awaited() bool                      { return f.awaited() }

// Fault gives an error to the next call of Next; with once, unless another waits for one.
func (f inside) Fault(err error, once bool) {
	if !once || len(f.faults) == 0 {
		f.faults = append(f.faults, err)
	}
}

// ReadRows reads the rows of hosts.
func (f inside) ReadRows(hosts []*mercator.Absentee) error {
	for _, a := range hosts {
		if err := f.readRow(patience.Forever, a); err != nil {
			return err
		}
	}
	return nil
}
