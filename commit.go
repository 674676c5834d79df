// This file makes what was accepted durable, and only then visible.
//
// Without a Spill there is nothing to wait for. With one, a single goroutine
// takes whatever Adds and Dones are waiting, writes them as one batch, and
// applies them: callers share the price of a write. If a write fails, all that
// it held and all that queued behind it are undone and get the error, since an
// Add behind it may have been told that its URLs were already coming.

package frontier

import (
	"cmp"
	"runtime"
)

// committer is the state of the goroutine that commits. Its fields are guarded
// by Frontier.mu.
type committer struct {
	queue   []*op
	bytes   int64 // of bodies in queue and in the batch under way
	working bool  // a batch is under way
	batchID uint64
	wake    chan struct{} // has a token when queue may not be empty
	stop    chan struct{} // closed by Close
	space   *space        // for those who wait for room; nil if nobody does
	move    chan struct{} // has a token when records should move to blocks
	read    chan struct{} // has a token when timed blocks should be read
	moving  bool
	resting bool // moving failed, and waits before it is tried again
	stuck   bool // moving everything did not free enough memory

	failures  int   // commits that failed
	failedNow int64 // the same since EventStoreWorks
	failedAt  int64 // when the latest did

	usages []*usage // whose rows the batch under way has
	saving []uint32 // hosts whose rows the batch under way has so that they may leave
}

func (c *committer) busy() bool { return c.working || len(c.queue) > 0 }

// submitLocked commits an op and waits for it. It releases the lock.
func (f *Frontier) submitLocked(o *op) error {
	f.finishing++
	if f.opts.Spill == nil && !f.closed {
		f.applyLocked(o)
		f.finishing--
		f.dispatchLocked()
		f.mu.Unlock()
		return nil
	}
	f.enqueueLocked(o)
	f.mu.Unlock()
	return f.awaitOp(o)
}

// submitAsyncLocked commits an op without waiting; o.after is told the result.
func (f *Frontier) submitAsyncLocked(o *op) {
	f.finishing++
	if f.opts.Spill != nil {
		f.enqueueLocked(o)
		return
	}
	f.applyLocked(o)
	f.finishing--
	if o.after != nil {
		f.afterwards(o, nil)
		return
	}
	o.free()
}

// enqueueLocked hands an op over to the one that commits, who sends on o.done.
// After Close there is no such goroutine any more: the op is undone, and fails.
func (f *Frontier) enqueueLocked(o *op) {
	o.done = make(chan error, 1)
	if f.closed {
		f.undoLocked(o)
		f.finishing--
		o.done <- ErrClosed
		return
	}
	f.core.named(o.entries)
	f.committer.queue = append(f.committer.queue, o)
	f.committer.bytes += int64(len(o.buf))
	select {
	case f.committer.wake <- struct{}{}:
	default:
	}
}

// applyLocked makes a committed op visible.
func (f *Frontier) applyLocked(o *op) {
	now := f.last
	if len(o.entries) > 0 {
		now = f.nowLocked()
	}
	seq := f.numberLocked(o)
	for i := range o.entries {
		if i > 0 && i%applyAtOnce == 0 {
			f.dispatchLocked()
			f.mu.Unlock()
			f.mu.Lock()
			now = f.nowLocked()
			if f.opts.Spill == nil { // others may have added to the same queues meanwhile
				seq = f.seq + 1 - uint64(i)
				f.seq += uint64(min(len(o.entries)-i, applyAtOnce))
			}
		}
		f.core.unreserve(o, i)
		f.admitLocked(&o.entries[i], seq+uint64(i), now)
		if o.entries[i].marked && f.opts.Spill != nil {
			f.known.keep(o.entries[i].mark)
			f.logMarks.add(o.entries[i].mark)
		}
	}
	if len(o.marks) > 0 && f.opts.Spill != nil {
		for _, m := range o.marks {
			f.known.keep(m)
			f.logMarks.add(m)
		}
	}
	if o.noteBlock != 0 {
		f.notes.set(o.entries[0].mark, note{seq, o.noteBlock})
	}
	if o.tally != nil {
		*o.tally++
	}
	if o.ends {
		f.core.finished(o.record)
		f.settledLocked(o)
		f.unpinLocked(o.host, now)
	}
	if len(o.replaced) > 0 {
		f.replacedLocked(o)
	}
	if o.pinned != 0 {
		f.unpinLocked(o.pinned, now)
	}
	if o.rule != nil {
		o.rule()
	}
	if o.deletion != nil {
		f.enactLocked(o.deletion)
	}
	if o.event != nil {
		f.emitLocked(*o.event)
	}
}

// numberLocked gives an op's entries their sequence numbers, once. Without a Spill
// these are the first of them, which are visible before anything else is numbered.
func (f *Frontier) numberLocked(o *op) uint64 {
	if o.deletion != nil {
		f.numberedLocked(o.deletion)
	}
	if o.firstSeq == 0 {
		n := len(o.entries)
		if f.opts.Spill == nil {
			n = min(n, applyAtOnce)
		}
		o.firstSeq = f.seq + 1
		f.seq += uint64(n)
	}
	return o.firstSeq
}

// undoLocked forgets an op that could not be committed: its URLs are unknown
// again, and what it would have finished waits again.
func (f *Frontier) undoLocked(o *op) {
	for i := range o.entries {
		f.core.unreserve(o, i)
		if o.entries[i].marked {
			f.known.remove(o.entries[i].mark)
		}
	}
	now := f.nowLocked()
	if o.unrule != nil {
		o.unrule()
	}
	for _, m := range o.marks {
		f.known.remove(m)
	}
	if o.unlearn != nil {
		o.unlearn()
	}
	if o.pinned != 0 {
		h := f.core.hosts.at(o.pinned)
		if len(o.rows) > 0 {
			h.set(unsaved) // the next commit of it tries again
		}
		f.unpinLocked(o.pinned, now)
	}
	if !o.ends {
		return
	}
	defer f.returnedLocked(o)
	h := f.core.hosts.at(o.host)
	if o.due != 0 {
		f.core.schedule(o.queue, o.record, o.due)
		f.unpinLocked(o.host, now)
		return
	}
	h.pins--
	switch h.place {
	case leased, loading:
		f.core.returnHead(o.queue, o.record)
	default: // its place depends on which of its queues have URLs
		f.core.detach(o.host)
		f.core.returnHead(o.queue, o.record)
		f.core.settle(o.host, now)
	}
}

// unpinLocked ends the wait of a host for a completion.
func (f *Frontier) unpinLocked(id uint32, now int64) {
	h := f.core.hosts.at(id)
	if h.pins--; h.pins == 0 && h.place == nowhere {
		f.core.settle(id, now)
	}
}

// startCommitter starts the goroutines that write to the Spill.
func (f *Frontier) startCommitter() {
	c := &f.committer
	c.wake, c.move, c.stop = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
	c.read = make(chan struct{}, 1)
	c.read <- struct{}{} // what became due while the store was closed
	f.background.Add(3)
	go func() { defer f.background.Done(); f.commitLoop() }()
	go func() { defer f.background.Done(); f.moveLoop() }()
	go func() { defer f.background.Done(); f.readLoop() }()
}

func (f *Frontier) commitLoop() {
	c := &f.committer
	for {
		select {
		case <-c.wake:
		case <-c.stop:
			f.mu.Lock()
			left := len(c.queue)
			f.mu.Unlock()
			if left == 0 {
				return
			}
		}
		runtime.Gosched() // callers that are about to submit share this write
		for f.commitGroup() {
		}
	}
}

// afterwards tells o.after how its commit ended, in a goroutine of its own: it may
// call the frontier, and so wait for the one that commits.
func (f *Frontier) afterwards(o *op, err error) {
	f.background.Add(1)
	go func() {
		defer f.background.Done()
		o.after(err)
		o.free()
	}()
}

// commitGroup writes and applies what is queued, up to maxGroup. It reports
// whether there was anything.
func (f *Frontier) commitGroup() bool {
	c := &f.committer
	f.mu.Lock()
	group, b := f.takeGroupLocked()
	lastSeq := f.seq
	f.mu.Unlock()
	if len(group) == 0 {
		return false
	}
	if run := group[0].run; run != nil {
		err := run()
		f.mu.Lock()
		c.working = false
		f.finishing--
		f.dispatchLocked()
		if !c.moving { // else it belongs to the round
			f.freedLocked()
		}
		f.mu.Unlock()
		group[0].done <- err
		return true
	}
	b.Admit = f.admissions(group)
	err := f.commit(b)
	if err != nil && noRoom(err) {
		group, b, err = f.commitAlone(group, b, err)
	}
	bytes := batchBytes(b)
	f.mu.Lock()
	if err != nil {
		// The drops were not told: they go with the next batch.
		f.core.drops = append(f.core.drops, b.Drop...)
		f.commitFailedLocked(err)
		group = append(group, f.takeQueuedLocked()...)
	} else {
		c.batchID = b.ID
		f.logBytes += bytes
		f.storeWorksLocked()
	}
	done := 0 // under this lock, about as many entries
	for i, o := range group {
		if err == nil && done >= applyAtOnce {
			done = 0
			f.dispatchLocked()
			f.mu.Unlock()
			f.mu.Lock()
		}
		done += opPrice + len(o.entries)
		if err != nil {
			f.undoLocked(group[len(group)-1-i]) // the last first: each returns to the head
		} else {
			f.applyLocked(o)
		}
		f.finishing--
		c.bytes -= int64(len(o.buf))
	}
	f.settleSavesLocked(err)
	f.usageSavedLocked(err)
	f.departLocked()
	c.working = false
	if err == nil {
		f.applied.batch, f.applied.seq, f.applied.marks = b.ID, lastSeq, f.logMarks.n
	}
	f.dispatchLocked()
	f.sharePopularLocked()
	f.wakeMoverLocked()
	f.freedLocked()
	f.mu.Unlock()
	for _, o := range group {
		f.settled(o, err)
	}
	return true
}

// commit writes a batch if there is anything in it.
func (f *Frontier) commit(b *Batch) error {
	if len(b.Admit)+len(b.Finish)+len(b.Rows)+len(b.Drop)+len(b.Marks) == 0 {
		b.ID-- // callers that only waited for those before them
		return nil
	}
	return f.opts.Spill.Commit(b)
}

// settled tells whoever waits for an op how its commit ended.
func (f *Frontier) settled(o *op, err error) {
	if o.after != nil {
		f.afterwards(o, err)
		return
	}
	o.done <- err
}

// takeGroupLocked takes ops off the queue and lists what they want written, but for
// the admissions. An op with a run function is taken alone.
func (f *Frontier) takeGroupLocked() ([]*op, *Batch) {
	c := &f.committer
	n, size := 0, 0
	for n < len(c.queue) && size < maxGroup {
		if c.queue[n].run != nil {
			if n == 0 {
				n = 1
			}
			break
		}
		size += len(c.queue[n].buf)
		n++
	}
	if n == 0 {
		return nil, nil
	}
	group := append([]*op(nil), c.queue[:n]...)
	clear(c.queue[:n])
	if c.queue = c.queue[n:]; len(c.queue) == 0 {
		c.queue = nil
	}
	c.working = true
	if group[0].run != nil {
		return group, nil
	}
	b := &Batch{ID: c.batchID + 1, Time: wallMillis(f.wall(f.nowLocked())), Drop: f.core.drops, Rows: f.savesLocked()}
	f.core.drops = nil
	b.Rows = append(b.Rows, f.usageRowsLocked()...)
	for i, o := range group {
		seq := f.numberLocked(o)
		if o.deletion != nil {
			b.Rows = append(b.Rows, o.deletion.row())
			for _, later := range group[i+1:] {
				f.overtakenLocked(later, o.deletion)
			}
		}
		b.Rows = append(b.Rows, o.rows...)
		b.Marks = append(b.Marks, o.marks...)
		if o.noteBlock != 0 {
			b.Rows = append(b.Rows, noteRow(o.entries[0].mark, note{seq, o.noteBlock}))
		}
		if o.ends {
			b.Finish = append(b.Finish, f.completionLocked(o.record))
		}
		b.Finish = append(b.Finish, o.replaced...)
	}
	return group, b
}

// admissions lists the entries of ops that have their numbers. They are the committer's,
// so no lock is needed.
func (f *Frontier) admissions(group []*op) []Admission {
	n := 0
	for _, o := range group {
		n += len(o.entries)
	}
	all := make([]Admission, 0, n)
	for _, o := range group {
		for i := range o.entries {
			e := &o.entries[i]
			a := Admission{
				Queue:   Queue{Host: e.host, Crawl: e.crawl, Priority: e.priority},
				Record:  Record{Seq: o.firstSeq + uint64(i), Body: e.body},
				Mark:    e.mark,
				HasMark: e.marked,
			}
			if e.due != 0 {
				a.Due = cmp.Or(wallMillis(f.day(e.due)), 1)
			}
			all = append(all, a)
		}
	}
	return all
}

// takeQueuedLocked takes all ops that wait, but for those with a run function.
func (f *Frontier) takeQueuedLocked() []*op {
	var out, kept []*op
	for _, o := range f.committer.queue {
		if o.run != nil {
			kept = append(kept, o)
		} else {
			out = append(out, o)
		}
	}
	f.committer.queue = kept
	return out
}
