// This file does what the lines of an import say.

package frontier

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
)

const (
	importURLs   = 1000      // admitted in one commit, at most
	importBytes  = 256 << 10 // of their bodies
	importMarks  = 2048      // that become known in one commit
	importAtOnce = 128       // hosts that are let go under one lock
	importAhead  = 1024      // commits of hosts under way
)

// pendingOps are commits that nobody waits for one by one. The zero value has
// none.
type pendingOps struct {
	slots chan struct{}
	ended sync.WaitGroup
	mu    sync.Mutex
	err   error // guarded by mu; the first

	members []uint32 // hosts that stay in memory until the end: without URLs they would forget their group
}

// letGo lets hosts leave memory that were kept there.
func (f *Frontier) letGo(hosts []uint32) {
	for len(hosts) > 0 {
		n := min(len(hosts), importAtOnce)
		f.lock()
		if f.closed {
			f.mu.Unlock()
			return
		}
		for _, id := range hosts[:n] {
			f.unpinLocked(id, f.last)
		}
		f.dispatchLocked()
		f.mu.Unlock()
		hosts = hosts[n:]
	}
}

// begin waits until there are few others, and returns what the op must be given
// as its after function.
func (p *pendingOps) begin() func(error) {
	if p.slots == nil {
		p.slots = make(chan struct{}, importAhead)
	}
	p.slots <- struct{}{}
	p.ended.Add(1)
	return func(err error) {
		p.mu.Lock()
		if p.err == nil {
			p.err = err
		}
		p.mu.Unlock()
		<-p.slots
		p.ended.Done()
	}
}

// wait returns when all have ended, with the first error.
func (p *pendingOps) wait() error {
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// url takes a URL for the next commit. A priority of 0 leaves it to the
// Prioritizer.
func (im *importer) url(e *Entry, priority, fails int, h History) error {
	f := im.f
	if (priority < 0 || priority > f.opts.Priorities) && priority != Immediate {
		return &PriorityError{Got: priority, Levels: f.opts.Priorities}
	}
	if im.op == nil {
		im.op = newOp()
	}
	n := newEntry{index: len(im.op.entries)}
	err := f.prepareAs(im.op, &n, e, &h, fails, uint8(priority))
	if im.dry {
		im.op.buf = im.op.buf[:0]
		return err
	}
	if err != nil {
		return err
	}
	if im.op.entries = append(im.op.entries, n); len(im.op.entries) >= importURLs || len(im.op.buf) >= importBytes {
		return im.flush()
	}
	return nil
}

// flush admits the URLs that were taken. Clocks of their hosts are durable before.
func (im *importer) flush() error {
	if im.op == nil || im.dry {
		return nil
	}
	o := im.op
	im.op = nil
	o.unlimited = true
	defer o.free()
	if err := im.pending.wait(); err != nil {
		return failed(err)
	}
	total := int64(len(o.entries))
	n, err := im.f.add(im.ctx, o)
	im.done.URLs += int64(n)
	if err != nil {
		return failed(fmt.Errorf("frontier: import: before line %d: %w", im.done.Lines+1, err))
	}
	im.done.KnownURLs += total - int64(n)
	return nil
}

// flushMarks makes the marks known that were taken. The URLs come first: they
// would not be admitted any more.
func (im *importer) flushMarks() error {
	if err := im.flush(); err != nil {
		return err
	}
	n, err := im.f.addMarks(im.ctx, im.marks)
	im.done.Marks += n
	im.marks = im.marks[:0]
	return failed(err)
}

// addMarks makes marks known, and returns how many were not.
func (f *Frontier) addMarks(ctx context.Context, ms []Mark) (int64, error) {
	if len(ms) == 0 {
		return 0, nil
	}
	o := newOp()
	defer o.free()
	known := make([]bool, len(ms))
	for {
		f.mu.Lock()
		covered := f.known.covered
		f.mu.Unlock()
		clear(known)
		if covered > 0 && f.opts.Spill != nil {
			if err := f.opts.Spill.Known(ms, known); err != nil {
				return 0, fmt.Errorf("frontier: import: known URLs: %w", err)
			}
		}
		f.mu.Lock()
		if f.closed {
			f.mu.Unlock()
			return 0, ErrClosed
		}
		wait, err := f.roomLocked(o)
		if f.opts.Spill == nil && f.freeLocked() < int64(len(ms))*16 {
			err = ErrFull
		}
		if err == nil && wait == nil && covered == f.known.covered {
			break
		}
		f.mu.Unlock()
		switch {
		case err != nil:
			return 0, err
		case wait != nil:
			select {
			case <-wait:
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
	}
	for i, m := range ms {
		if !known[i] && f.known.insert(m) {
			o.marks = append(o.marks, m)
		}
	}
	n := int64(len(o.marks))
	if n == 0 {
		f.mu.Unlock()
		return 0, nil
	}
	return n, f.submitLocked(o) // unlocks
}

// takeKey makes key that of the frontier if there never was a URL or host in it. It
// reports whether the frontier's is another one.
func (f *Frontier) takeKey(key [16]byte) (foreign bool, err error) {
	k := [2]uint64{binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:])}
	f.lock()
	switch {
	case f.closed:
		f.mu.Unlock()
		return false, ErrClosed
	case f.core.key == k:
		f.mu.Unlock()
		return false, nil
	}
	f.rekeying.Store(true) // an Add that begins waits for the lock
	c := f.core
	fresh := f.adding.Load() == 1 && f.finishing == 0 && f.seq == 0 && f.known.total == 0 &&
		c.hosts.len() == 0 && c.rows.Len() == 0
	if fresh {
		c.key = k
	}
	f.rekeying.Store(false)
	if !fresh || f.opts.Spill == nil {
		f.mu.Unlock()
		return !fresh, nil
	}
	o := newOp()
	defer o.free()
	o.rows = append(o.rows, f.metaRowLocked(f.gen, false))
	return false, f.submitLocked(o) // unlocks
}

// importHold leaves all hosts alone until a time, in Unix milliseconds: nobody knows
// when those were contacted last of which nothing is told.
func (f *Frontier) importHold(until int64) error {
	if until == 0 {
		return nil
	}
	f.lock()
	at := min(f.owed(millisTime(until)), f.last+int64(maxDelay))
	if f.closed || at <= f.last || at <= f.core.hold {
		f.mu.Unlock()
		return nil
	}
	f.heldFrom = max(f.heldFrom, at-f.maxDelay)
	f.core.hold = at
	f.core.holdGroups(at)
	f.core.holdOf = f.hold
	if f.opts.Spill == nil {
		f.mu.Unlock()
		return nil
	}
	o := newOp()
	defer o.free()
	o.rows = append(o.rows, f.metaRowLocked(f.gen, false))
	return f.submitLocked(o) // unlocks
}

// importGroup leaves a group alone until due, in Unix milliseconds.
func (f *Frontier) importGroup(p *pendingOps, name string, due int64) error {
	after := p.begin()
	if err := f.lockOpen(); err != nil {
		after(nil)
		return err
	}
	at := min(f.owed(millisTime(due)), f.last+int64(maxDelay))
	if due == 0 || at <= f.last {
		f.mu.Unlock()
		after(nil)
		return nil
	}
	c := f.core
	c.holdGroup(c.groupOf(name), at)
	o := newOp()
	if f.opts.Spill != nil {
		o.rows = append(o.rows, groupRow(name, groupState{f.groupRules.of(name), wallMillis(f.wall(at))}))
	}
	f.submitImport(o, after)
	return nil
}

// importHost gives a host what is told of it, unless it knows better.
func (f *Frontier) importHost(p *pendingOps, name string, s *hostState) error {
	after := p.begin()
	if err := f.lockWithHost(context.Background(), name); err != nil {
		after(nil)
		return err
	}
	c := f.core
	id := c.ensure(f.hostHash(name), name)
	h := c.hosts.at(id)
	now := f.nowLocked()
	due, why := h.due, h.why
	if at := min(f.owed(millisTime(s.due)), now+int64(maxDelay)); at >= due {
		due, why = at, max(s.why, whyDelay)
		if due == h.due {
			h.why = why // what is told is more exact
		}
	}
	idle := h.place != leased && h.place != loading
	if idle {
		c.detach(id) // its group changes only while it is in no structure
		c.dropSlot(h, now)
	}
	if s.crawlDelay > h.crawlDelay {
		h.crawlDelay = s.crawlDelay
		h.set(unsaved)
	}
	if t := f.stateTrouble(s); !h.has(troubled) && !t.over() {
		c.setTrouble(id, t)
		h.set(unsaved)
	}
	if s.used != (usageState{}) {
		f.importHostUsed(id, s.used)
	}
	if s.group != "" && h.group == 0 && idle {
		c.joinGroup(h, c.groupOf(s.group))
		h.set(unsaved)
		if s.assigned {
			h.set(assigned)
		}
	}
	o := newOp()
	if f.opts.Spill != nil {
		f.noteLocked(o, id, due, why, now)
	}
	if h.group != 0 && !h.learned() {
		h.pins++
		p.members = append(p.members, id)
	}
	if h.has(troubled) && !why.forgettable() {
		c.freeFrom(id, due)
	}
	c.holdBack(id, due, why)
	if idle {
		c.settle(id, now)
	}
	f.submitImport(o, after)
	return nil
}

// submitImport commits o, if it has anything, and calls after then. It unlocks.
func (f *Frontier) submitImport(o *op, after func(error)) {
	if f.opts.Spill == nil || o.empty() {
		o.free()
		f.dispatchLocked()
		f.mu.Unlock()
		after(nil)
		return
	}
	o.after = after
	f.submitAsyncLocked(o)
	f.mu.Unlock()
}
