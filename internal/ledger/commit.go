// This file commits operations in groups.

package ledger

import (
	"errors"
	"syscall"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// maxGroup is how many bytes of bodies one batch holds, about.
	maxGroup = 4 << 20
	// AtOnce is how many URLs are admitted under one lock. The rest of an operation counts as Price of them.
	AtOnce = 128
	Price  = 4
)

// commitGroup writes and applies what is queued, up to maxGroup. It reports whether there was anything.
func (l *Ledger) commitGroup() bool {
	l.Mu.Lock()
	group, b := l.takeGroup()
	lastSeq := l.seq
	l.Mu.Unlock()
	if len(group) == 0 {
		return false
	}
	if run := group[0].run; run != nil {
		err := run()
		l.Mu.Lock()
		l.queue.End()
		l.pending--
		l.up.Dispatch()
		l.room.Committed()
		l.Mu.Unlock()
		group[0].done.Send(err)
		return true
	}
	b.Admit = l.admissions(group)
	err := l.commitCounted(b, lastSeq)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		group, b, err = l.commitAlone(group, b, err)
	}
	bytes := move.LogBytes(b)
	l.Mu.Lock()
	if err != nil {
		// The Spill did not get the drops: they go with the next batch.
		l.Core.Blocks.PutDrops(b.Drop)
		l.failed(err)
		group = append(group, l.queue.TakeWith(func(*Op) bool { return true })...)
	} else {
		l.batchID = b.ID
		l.logBytes += bytes
		l.up.Works()
	}
	done := 0 // under this lock, about as many entries
	for i, o := range group {
		if err == nil && done >= AtOnce {
			done = 0
			l.up.Dispatch()
			l.yield()
		}
		done += Price + len(o.Entries)
		if err != nil {
			l.Undo(group[len(group)-1-i]) // the last first: each returns to the head
		} else {
			l.applyYielding(o)
		}
		l.pending--
		l.queue.Settled(o)
	}
	l.Core.EndCounting(err == nil)
	l.settleSaves(err)
	if l.Core.Limits != nil {
		l.Core.Limits.Saved(err)
	}
	l.Core.Departed(l.pending)
	l.queue.End()
	if err == nil {
		l.applied.batch, l.applied.seq, l.applied.marks = b.ID, lastSeq, l.Known.Logged()
	}
	l.up.Dispatch()
	l.up.Share()
	l.WakeMover()
	l.room.Freed()
	l.Mu.Unlock()
	for _, o := range group {
		l.settled(o, err)
	}
	return true
}

// commitAlone is called when a batch was refused for want of room. It fails the
// operations that need any, those that queued behind them too, and commits the others. It returns
// what is left to be settled, with its batch and the error of that.
func (l *Ledger) commitAlone(group []*Op, refused *storage.Batch, err error) ([]*Op, *storage.Batch, error) {
	l.Mu.Lock()
	var kept, failed []*Op
	for _, o := range group {
		if o.needsRoom() {
			failed = append(failed, o)
		} else {
			kept = append(kept, o)
		}
	}
	if len(kept) == 0 || len(failed) == 0 {
		l.Mu.Unlock()
		return group, refused, err
	}
	failed = append(failed, l.queue.TakeWith((*Op).needsRoom)...)
	l.failed(err)
	for i := range failed {
		o := failed[len(failed)-1-i] // the last first, as always
		l.Undo(o)
		l.pending--
		l.queue.Settled(o)
	}
	own := len(refused.Rows)
	for _, o := range group {
		own -= len(o.Rows)
		if o.Deletion != nil {
			own--
		}
		if o.NoteBlock != 0 {
			own--
		}
	}
	b := &storage.Batch{ID: refused.ID, Time: refused.Time, Drop: refused.Drop, Rows: refused.Rows[:own:own]}
	for _, o := range kept {
		l.list(b, o)
	}
	l.queue.Keep(kept)
	l.Core.EndCounting(err == nil)
	l.count(kept, b)
	seq := l.seq
	l.room.Freed()
	l.Mu.Unlock()
	for _, o := range failed {
		l.settled(o, err)
	}
	return kept, b, l.commitCounted(b, seq)
}

// failed takes note of a commit that failed.
func (l *Ledger) failed(err error) {
	l.failures++
	l.up.Failed(err)
}

// commit writes a batch if there is anything in it.
func (l *Ledger) commit(b *storage.Batch) error {
	if len(b.Admit)+len(b.Finish)+len(b.Rows)+len(b.Drop)+len(b.Marks) == 0 {
		b.ID-- // callers that only waited for those before them
		return nil
	}
	return l.Spill.Commit(b)
}

// takeGroup takes operations off the queue and lists what they want written, except the
// admissions. One with a run function is taken alone.
func (l *Ledger) takeGroup() ([]*Op, *storage.Batch) {
	group := l.queue.Take(maxGroup)
	if len(group) == 0 {
		return nil, nil
	}
	if group[0].run != nil {
		return group, nil
	}
	b := &storage.Batch{ID: l.batchID + 1, Time: l.now(), Drop: l.Core.Blocks.TakeDrops(), Rows: l.saves()}
	b.Rows = append(b.Rows, l.Core.Limits.Rows()...)
	for i, o := range group {
		l.Number(o)
		if o.Deletion != nil {
			for _, later := range group[i+1:] {
				l.overtaken(later, o.Deletion)
			}
		}
		l.list(b, o)
	}
	l.count(group, b)
	return group, b
}

// list lists in a batch what an operation wants written, except its admissions.
func (l *Ledger) list(b *storage.Batch, o *Op) {
	if o.Deletion != nil {
		b.Rows = append(b.Rows, o.Deletion.Row())
	}
	b.Rows = append(b.Rows, o.Rows...)
	b.Marks = append(b.Marks, o.Marks...)
	if o.NoteBlock != 0 {
		note := row.Outdated{Mark: o.Entries[0].Mark, Seq: o.firstSeq, Block: o.NoteBlock}
		b.Rows = append(b.Rows, note.Row())
	}
	if o.Ends {
		b.Finish = append(b.Finish, l.completion(o.Record))
	}
	b.Finish = append(b.Finish, o.Replaced...)
}

// admissions lists the entries of operations that have their numbers. They are the committer's,
// so no lock is needed.
func (l *Ledger) admissions(group []*Op) []storage.Admission {
	n := 0
	for _, o := range group {
		n += len(o.Entries)
	}
	all := make([]storage.Admission, 0, n)
	for _, o := range group {
		for i := range o.Entries {
			e := &o.Entries[i]
			a := storage.Admission{
				Queue:   storage.Queue{Host: e.Host, Crawl: e.Crawl, Priority: e.Priority},
				Record:  storage.Record{Seq: o.firstSeq + uint64(i), Body: e.Body},
				Mark:    e.Mark,
				HasMark: e.Marked,
			}
			if e.Due != 0 {
				a.Due = l.Core.Clock.DueMillis(e.Due)
			}
			all = append(all, a)
		}
	}
	return all
}

// saves returns the rows of hosts that want to leave; settleSaves must follow.
func (l *Ledger) saves() (rows []storage.Row) {
	rows, hosts := l.Core.Saves()
	l.saving = append(l.saving, hosts...)
	return rows
}

// settleSaves ends what saves began.
func (l *Ledger) settleSaves(err error) {
	for _, id := range l.saving {
		if err != nil {
			h := l.Core.Hosts.At(id)
			h.Set(mercator.Unsaved | mercator.Stored) // as far as anybody knows
		}
		l.Unpin(id, l.up.Last())
	}
	l.saving = l.saving[:0]
}

// completion says where the record lies that is finished.
func (l *Ledger) completion(ref arena.Ref) storage.Completion {
	r := l.Core.Records.At(ref)
	x := storage.Completion{Seq: r.Seq()}
	if id := r.Part(); id != 0 {
		p := l.Core.Blocks.Part(id)
		x.Block, x.Pos = p.Block, p.First+uint16(r.Pos())
	}
	return x
}
