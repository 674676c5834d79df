// This file makes operations durable, and only then visible.
//
// Without a Spill there is nothing to wait for. With one, a single goroutine takes all waiting Adds and
// Dones, writes them as one batch, and applies them: callers share the cost of a write. If a write
// fails, its operations and all that queued behind it are undone and get the error, since an Add behind
// it may have taken URLs of the failed batch for known.
//
// If the disk is full, only operations that need room fail, and those that free memory
// and disk are committed: callers share the cost of a write, not its failure.

package frontier

import (
	"context"
	"fmt"
	"sync"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/commit"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/room"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

// maxGroup is how many bytes of bodies one batch holds, about.
const maxGroup = 4 << 20

// applyAtOnce is how many URLs are admitted under one lock. The rest of an op counts as
// opPrice of them.
const (
	applyAtOnce = 128
	opPrice     = 4
)

// op is what one call wants committed.
type op struct {
	ctx  context.Context // ends the waiting for it; nil: nothing but CloseContext does
	left bool            // its caller waits no more: it is the committer's for good
	told bool            // it was released

	entries       []newEntry
	record.Pieces // the bodies of entries, and values
	rows          []storage.Row
	forced        []newEntry // known outlinks to be forced once this is committed
	found         []newEntry // known URLs that may rise
	refused       []*EntryError
	verdicts      []Verdict // by index of the entries of the call; nil: not wanted
	lookup        lookup
	forgets       uint64              // version of the numbers with which entries are marked
	absent        []mercator.Absentee // hosts of entries that were not in memory

	space     *room.Space         // that it waited for
	links     bool                // it admits, or finds that others did: see commitAlone
	unlimited bool                // no limit refuses its entries
	reserved  []limit.Reservation // by entry: where it is counted until it waits; may be shorter
	counts    bool                // the batch writes rows of what limits have used

	marks []storage.Mark // of URLs that become known, and were inserted for it

	ends bool // record, of queue and host, is finished
	mercator.Outgoing
	pinned uint32 // host that stays in memory until then, and whose row may be among rows; 0: none

	replaced   []storage.Completion // records of the timed block being read that entries replace
	replacedIn []storage.Queue      // the queue of each

	noteBlock uint32 // the entry supersedes a record in a timed block up to this one; 0: none

	tally   *int64 // counts it once this is committed; nil: nothing does
	unlearn func() // takes back what a failed commit must not teach; nil: nothing

	firstSeq uint64
	event    *event.Event        // reported once this is committed
	deletion *tombstone.Deletion // comes into force
	rule     func()              // puts a control in force, under the lock, in the order of commits
	unrule   func()              // called instead if it could not be committed
	run      func() error        // instead of all that: called between two commits
	after    func(error)         // called outside the lock if no call waits for done
	done     commit.Reply        // of the commit, if a call waits for it
}

// maxPooled is the room for entries of the largest op that is used again.
const maxPooled = 4 << 10

var ops = sync.Pool{New: func() any { return &op{} }}

func newOp() *op { return ops.Get().(*op) }

// free gives the op back. Nothing may be sent on done after that.
func (o *op) free() {
	if o.left {
		return
	}
	clear(o.entries)
	clear(o.found)
	clear(o.absent)
	entries, found, pieces, absent, l := o.entries[:0], o.found[:0], o.Reused(), o.absent[:0], o.lookup
	*o = op{} // it is large: a literal with these would be copied
	o.entries, o.found, o.Pieces, o.absent = entries, found, pieces, absent
	o.lookup.marks, o.lookup.at, o.lookup.known = l.marks[:0], l.at[:0], l.known[:0]
	if cap(o.entries)+cap(o.found) <= maxPooled {
		ops.Put(o)
	}
}

func (o *op) empty() bool {
	return len(o.entries) == 0 && !o.ends && !o.counts && len(o.rows) == 0 && len(o.forced) == 0 && len(o.marks) == 0
}

// committer is the state of the goroutine that commits. Its fields are guarded by shard.mu.
type committer struct {
	log     commit.Log[*op]
	batchID uint64
	stop    chan struct{} // closed by Close
	room    room.Room
	move    chan struct{} // has a token when records should move to blocks
	read    chan struct{} // has a token when timed blocks should be read

	failures  int   // commits that failed
	failedNow int64 // the same since event.StoreWorks
	failedAt  int64 // when the latest did

	saving []uint32 // hosts whose rows the batch under way has so that they may leave
}

// submitAndUnlock commits an op and waits for it.
func (f *Frontier) submitAndUnlock(o *op) error {
	if f.submitYieldingLocked(o) {
		f.mu.Unlock()
		return f.awaitOp(o)
	}
	f.dispatchLocked()
	f.mu.Unlock()
	return nil
}

// submitYieldingLocked commits an op, and reports whether its result must be waited for.
func (f *Frontier) submitYieldingLocked(o *op) (waits bool) {
	f.finishing++
	if f.opts.Spill != nil || f.closed {
		f.enqueueLocked(o)
		return true
	}
	f.applyYieldingLocked(o)
	f.finishing--
	return false
}

// submitAsyncLocked commits an op without waiting; o.after gets the result. The op has at
// most applyAtOnce entries, so that the lock is not given up.
func (f *Frontier) submitAsyncLocked(o *op) {
	switch {
	case f.submitYieldingLocked(o):
	case o.after != nil:
		f.afterwards(o, nil)
	default:
		o.free()
	}
}

// enqueueLocked hands an op to the committer's goroutine, which sends on o.done. After
// Close there is no such goroutine any more: the op is undone, and fails.
func (f *Frontier) enqueueLocked(o *op) {
	if o.after == nil {
		o.done = f.replies.New()
	}
	if f.closed {
		f.undoLocked(o)
		f.finishing--
		if o.after == nil {
			o.done.Send(ErrClosed)
		}
		return
	}
	f.namedLocked(o.entries)
	f.committer.log.Add(o)
	if f.unwaited {
		o.release()
	}
}

// applyYieldingLocked makes a committed op visible. After each applyAtOnce entries it
// releases the lock for a moment, so that no call waits long for it.
func (f *Frontier) applyYieldingLocked(o *op) {
	now := f.last
	if len(o.entries) > 0 {
		now = f.nowLocked()
	}
	seq := f.numberLocked(o)
	steps := f.opts.Spill == nil && len(o.entries) > applyAtOnce
	if steps {
		f.stepping++
	}
	for i := range o.entries {
		if i > 0 && i%applyAtOnce == 0 {
			f.dispatchLocked()
			f.yield()
			now = f.nowLocked()
			if f.opts.Spill == nil { // others may have added to the same queues meanwhile
				seq = f.seq + 1 - uint64(i)
				f.seq += uint64(min(len(o.entries)-i, applyAtOnce))
			}
		}
		if i < len(o.reserved) {
			f.unreserveLocked(o, i)
		}
		f.admitLocked(&o.entries[i], seq+uint64(i), now)
		e := &o.entries[i]
		f.core.CountAdmitted(e.host, e.crawl, e.due, seq+uint64(i))
		if o.entries[i].marked && f.opts.Spill != nil {
			f.known.Log(o.entries[i].mark)
		}
	}
	if steps {
		f.steppedLocked()
	}
	if len(o.marks) > 0 && f.opts.Spill != nil {
		for _, m := range o.marks {
			f.known.Log(m)
		}
	}
	if o.noteBlock != 0 {
		f.notes.Set(o.entries[0].mark, seq, o.noteBlock)
	}
	if o.tally != nil {
		*o.tally++
	}
	if o.ends {
		f.core.CountEnded(&o.Outgoing, f.seq)
		if len(f.again) > 0 { // else its record need not be looked at
			delete(f.again, f.core.Records.At(o.Record).Seq())
		}
		f.core.Fifo.Finish(o.Record)
		if o.Dead {
			f.core.SettleDead(&o.Outgoing)
		}
		f.core.Uncount(&o.Outgoing)
		f.unpinLocked(o.Host, now)
	}
	for _, x := range o.replaced { // of the block being read
		f.core.Timed.BuryAt(int(x.Pos))
		f.core.Stats.Scheduled-- // hints are of those only
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
func (s *shard) numberLocked(o *op) uint64 {
	if d := o.deletion; d != nil && d.Seq == 0 {
		s.seq++
		d.Number(s.seq, s.core.Blocks.Last())
	}
	if o.firstSeq == 0 {
		n := len(o.entries)
		if s.opts.Spill == nil {
			n = min(n, applyAtOnce)
		}
		o.firstSeq = s.seq + 1
		s.seq += uint64(n)
	}
	return o.firstSeq
}

// undoLocked forgets an op that could not be committed: its URLs are unknown
// again, and what it would have finished waits again.
func (f *Frontier) undoLocked(o *op) {
	for i := range o.entries {
		if i < len(o.reserved) {
			f.unreserveLocked(o, i)
		}
		if o.entries[i].marked {
			f.known.Remove(o.entries[i].mark)
		}
	}
	now := f.nowLocked()
	if o.unrule != nil {
		o.unrule()
	}
	for _, m := range o.marks {
		f.known.Remove(m)
	}
	if o.unlearn != nil {
		o.unlearn()
	}
	if o.pinned != 0 {
		h := f.core.Hosts.At(o.pinned)
		if len(o.rows) > 0 {
			h.Set(mercator.Unsaved) // the next commit of it tries again
		}
		f.unpinLocked(o.pinned, now)
	}
	if !o.ends {
		return
	}
	defer f.returnedLocked(o)
	f.core.Uncount(&o.Outgoing)
	h := f.core.Hosts.At(o.Host)
	if o.Due != 0 {
		f.core.Schedule(o.Queue, o.Record, o.Due)
		f.unpinLocked(o.Host, now)
		return
	}
	h.Pins--
	switch h.Place {
	case mercator.Leased, mercator.Loading:
		f.core.ReturnHead(o.Queue, o.Record)
	default: // its place depends on which of its queues have URLs
		f.core.Detach(o.Host)
		f.core.ReturnHead(o.Queue, o.Record)
		f.core.Settle(o.Host, now)
	}
}

// unpinLocked ends the wait of a host for a completion.
func (s *shard) unpinLocked(id uint32, now int64) {
	h := s.core.Hosts.At(id)
	if h.Pins--; h.Pins == 0 && h.Place == mercator.Nowhere {
		s.core.Settle(id, now)
	}
}

// afterwards calls o.after with the result of the commit, in another goroutine: o.after
// may call the frontier, and so wait for the committer.
func (s *shard) afterwards(o *op, err error) {
	s.background.Go(func() {
		o.after(err)
		o.free()
	})
}

// replacements are ops that replace one record in memory each.
type replacements struct {
	f    *Frontier
	jobs []*op // that wait for a commit
}

// addYieldingLocked submits one.
func (r *replacements) addYieldingLocked(o *op) {
	if r.f.submitYieldingLocked(o) {
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
		if e := o.done.Result(); e != nil {
			err = e
		}
		o.free()
	}
	return err
}

// commitGroup writes and applies what is queued, up to maxGroup. It reports whether there was anything.
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
		c.log.End()
		f.finishing--
		f.dispatchLocked()
		c.room.Committed()
		f.mu.Unlock()
		group[0].done.Send(err)
		return true
	}
	b.Admit = f.admissions(group)
	err := f.commitCounted(b, lastSeq)
	if err != nil && noRoom(err) {
		group, b, err = f.commitAlone(group, b, err)
	}
	bytes := move.LogBytes(b)
	f.mu.Lock()
	if err != nil {
		// The Spill did not get the drops: they go with the next batch.
		f.core.Blocks.PutDrops(b.Drop)
		f.commitFailedLocked(err)
		group = append(group, c.log.TakeWith(func(*op) bool { return true })...)
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
			f.yield()
		}
		done += opPrice + len(o.entries)
		if err != nil {
			f.undoLocked(group[len(group)-1-i]) // the last first: each returns to the head
		} else {
			f.applyYieldingLocked(o)
		}
		f.finishing--
		c.log.Settled(o)
	}
	f.core.EndCounting(err == nil)
	f.settleSavesLocked(err)
	if f.core.Limits != nil {
		f.core.Limits.Saved(err)
	}
	f.core.Departed(f.finishing)
	c.log.End()
	if err == nil {
		f.applied.batch, f.applied.seq, f.applied.marks = b.ID, lastSeq, f.known.Logged()
	}
	f.dispatchLocked()
	f.sharePopularLocked()
	f.wakeMoverLocked()
	c.room.Freed()
	f.mu.Unlock()
	for _, o := range group {
		f.settled(o, err)
	}
	return true
}

// commit writes a batch if there is anything in it.
func (s *shared) commit(b *storage.Batch) error {
	if len(b.Admit)+len(b.Finish)+len(b.Rows)+len(b.Drop)+len(b.Marks) == 0 {
		b.ID-- // callers that only waited for those before them
		return nil
	}
	return s.opts.Spill.Commit(b)
}

// settled passes the result of the commit to the caller of an op.
func (s *shard) settled(o *op, err error) {
	if o.after != nil {
		s.afterwards(o, err)
		return
	}
	o.done.Send(err)
}

// takeGroupLocked takes ops off the queue and lists what they want written, except the
// admissions. An op with a run function is taken alone.
func (f *Frontier) takeGroupLocked() ([]*op, *storage.Batch) {
	c := &f.committer
	group := c.log.Take(maxGroup)
	if len(group) == 0 {
		return nil, nil
	}
	if group[0].run != nil {
		return group, nil
	}
	b := &storage.Batch{ID: c.batchID + 1, Time: instant.Millis(f.wall(f.nowLocked())), Drop: f.core.Blocks.TakeDrops(), Rows: f.savesLocked()}
	b.Rows = append(b.Rows, f.core.Limits.Rows()...)
	for i, o := range group {
		f.numberLocked(o)
		if o.deletion != nil {
			for _, later := range group[i+1:] {
				f.overtakenLocked(later, o.deletion)
			}
		}
		f.listLocked(b, o)
	}
	f.countGroupLocked(group, b)
	return group, b
}

// listLocked lists in a batch what an op wants written, except its admissions.
func (s *shard) listLocked(b *storage.Batch, o *op) {
	if o.deletion != nil {
		b.Rows = append(b.Rows, o.deletion.Row())
	}
	b.Rows = append(b.Rows, o.rows...)
	b.Marks = append(b.Marks, o.marks...)
	if o.noteBlock != 0 {
		note := row.Outdated{Mark: o.entries[0].mark, Seq: o.firstSeq, Block: o.noteBlock}
		b.Rows = append(b.Rows, note.Row())
	}
	if o.ends {
		b.Finish = append(b.Finish, s.completionLocked(o.Record))
	}
	b.Finish = append(b.Finish, o.replaced...)
}

// admissions lists the entries of ops that have their numbers. They are the committer's,
// so no lock is needed.
func (s *shared) admissions(group []*op) []storage.Admission {
	n := 0
	for _, o := range group {
		n += len(o.entries)
	}
	all := make([]storage.Admission, 0, n)
	for _, o := range group {
		for i := range o.entries {
			e := &o.entries[i]
			a := storage.Admission{
				Queue:   storage.Queue{Host: e.host, Crawl: e.crawl, Priority: e.priority},
				Record:  storage.Record{Seq: o.firstSeq + uint64(i), Body: e.body},
				Mark:    e.mark,
				HasMark: e.marked,
			}
			if e.due != 0 {
				a.Due = s.clock.DueMillis(e.due)
			}
			all = append(all, a)
		}
	}
	return all
}

// awaitOp waits for an op that was handed over. If that ends before the op is
// settled the op belongs to the committer, and is not used again.
func (s *shared) awaitOp(o *op) error {
	err, why := s.replies.Wait(o.ctx, o.done)
	if why == nil {
		return err
	}
	o.left = true
	if why == commit.ErrReleased {
		why = ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrUnsettled, why)
}

// context is how long the caller that submits the op waits.
func (o *op) context() context.Context {
	if o.ctx == nil {
		return context.Background()
	}
	return o.ctx
}

// needsRoom reports whether an op asks for more than a few bytes, or took URLs for known
// that are refused now.
func (o *op) needsRoom() bool {
	return o.links || len(o.entries)+len(o.marks)+len(o.replaced) > 0
}

// commitAlone is called when a batch was refused for want of room. It fails the
// ops that need any, those that queued behind them too, and commits the others. It returns
// what is left to be settled, with its batch and the error of that.
func (f *Frontier) commitAlone(group []*op, refused *storage.Batch, err error) ([]*op, *storage.Batch, error) {
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
	failed = append(failed, c.log.TakeWith((*op).needsRoom)...)
	f.commitFailedLocked(err)
	for i := range failed {
		o := failed[len(failed)-1-i] // the last first, as always
		f.undoLocked(o)
		f.finishing--
		c.log.Settled(o)
	}
	own := len(refused.Rows)
	for _, o := range group {
		own -= len(o.rows) + btoi(o.deletion != nil) + btoi(o.noteBlock != 0)
	}
	b := &storage.Batch{ID: refused.ID, Time: refused.Time, Drop: refused.Drop, Rows: refused.Rows[:own:own]}
	for _, o := range kept {
		f.listLocked(b, o)
	}
	c.log.Keep(kept)
	f.core.EndCounting(err == nil)
	f.countGroupLocked(kept, b)
	seq := f.seq
	c.room.Freed()
	f.mu.Unlock()
	for _, o := range failed {
		f.settled(o, err)
	}
	return kept, b, f.commitCounted(b, seq)
}
