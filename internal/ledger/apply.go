// This file applies operations that are committed, and undoes those that could not be.

package ledger

import (
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

// Number gives an operation's entries their sequence numbers, once. Without a Spill
// these are the first of them, which are visible before anything else is numbered.
func (l *Ledger) Number(o *Op) uint64 {
	if d := o.Deletion; d != nil && d.Seq == 0 {
		l.seq++
		d.Number(l.seq, l.Core.Blocks.Last())
	}
	if o.firstSeq == 0 {
		n := len(o.Entries)
		if l.Spill == nil {
			n = min(n, AtOnce)
		}
		o.firstSeq = l.seq + 1
		l.seq += uint64(n)
	}
	return o.firstSeq
}

// applyYielding makes a committed operation visible. After each AtOnce entries it
// releases the lock for a moment, so that no call waits long for it.
func (l *Ledger) applyYielding(o *Op) {
	now := l.up.Last()
	if len(o.Entries) > 0 {
		now = l.up.Now()
	}
	seq := l.Number(o)
	steps := l.Spill == nil && len(o.Entries) > AtOnce
	if steps {
		l.stepping++
	}
	for i := range o.Entries {
		if i > 0 && i%AtOnce == 0 {
			l.up.Dispatch()
			l.yield()
			now = l.up.Now()
			if l.Spill == nil { // others may have added to the same queues meanwhile
				seq = l.seq + 1 - uint64(i)
				l.seq += uint64(min(len(o.Entries)-i, AtOnce))
			}
		}
		if i < len(o.Reserved) {
			l.unreserve(o, i)
		}
		l.admit(&o.Entries[i], seq+uint64(i), now)
		e := &o.Entries[i]
		l.Core.CountAdmitted(e.Host, e.Crawl, e.Due, seq+uint64(i))
		if o.Entries[i].Marked && l.Spill != nil {
			l.Known.Log(o.Entries[i].Mark)
		}
	}
	if steps {
		l.EndSteps()
	}
	if len(o.Marks) > 0 && l.Spill != nil {
		for _, m := range o.Marks {
			l.Known.Log(m)
		}
	}
	if o.NoteBlock != 0 {
		l.Notes.Set(o.Entries[0].Mark, seq, o.NoteBlock)
	}
	if o.Tally != nil {
		*o.Tally++
	}
	if o.Ends {
		l.Core.CountEnded(&o.Outgoing, l.seq)
		if len(l.again) > 0 { // else its record need not be looked at
			delete(l.again, l.Core.Records.At(o.Record).Seq())
		}
		l.Core.Fifo.Finish(o.Record)
		if o.Dead {
			l.Core.SettleDead(&o.Outgoing)
		}
		l.Core.Uncount(&o.Outgoing)
		l.Unpin(o.Host, now)
	}
	for _, x := range o.Replaced { // of the block being read
		l.Core.Timed.BuryAt(int(x.Pos))
		l.Core.Stats.Scheduled-- // hints are of those only
	}
	if o.Pinned != 0 {
		l.Unpin(o.Pinned, now)
	}
	if o.Rule != nil {
		o.Rule()
	}
	if o.Deletion != nil {
		l.enact(o.Deletion)
	}
	if o.Event != nil {
		l.up.Emit(*o.Event)
	}
}

// admit puts an entry into its queue, or under its time. The sequence
// number was given to it at commit.
func (l *Ledger) admit(e *Entry, seq uint64, now int64) {
	c := l.Core
	hid := c.Ensure(e.Hash, e.Host)
	qid := c.QueueOf(hid, e.Crawl, e.Priority)
	if e.Index >= 0 {
		c.Stats.Added++
		c.CrawlOf(c.Queues.At(qid)).Stats.Added++
	}
	if e.Due != 0 && e.Due > c.Date(now) {
		c.Schedule(qid, c.Records.StoreForRing(seq, e.Body), e.Due)
		return
	}
	ref := c.Records.Store(seq, e.Body)
	c.Records.At(ref).SetPrint(e.Mark[7])
	c.Waits.Began(seq, now)
	c.PushTail(qid, ref, now)
}

// Undo forgets an operation that could not be committed: its URLs are unknown
// again, and what it would have finished waits again.
func (l *Ledger) Undo(o *Op) {
	for i := range o.Entries {
		if i < len(o.Reserved) {
			l.unreserve(o, i)
		}
		if o.Entries[i].Marked {
			l.Known.Remove(o.Entries[i].Mark)
		}
	}
	now := l.up.Now()
	if o.Unrule != nil {
		o.Unrule()
	}
	for _, m := range o.Marks {
		l.Known.Remove(m)
	}
	if o.Unlearn != nil {
		o.Unlearn()
	}
	if o.Pinned != 0 {
		h := l.Core.Hosts.At(o.Pinned)
		if len(o.Rows) > 0 {
			h.Set(mercator.Unsaved) // the next commit of it tries again
		}
		l.Unpin(o.Pinned, now)
	}
	if !o.Ends {
		return
	}
	defer l.returned(o)
	l.Core.Uncount(&o.Outgoing)
	h := l.Core.Hosts.At(o.Host)
	if o.Due != 0 {
		l.Core.Schedule(o.Queue, o.Record, o.Due)
		l.Unpin(o.Host, now)
		return
	}
	h.Pins--
	switch h.Place {
	case mercator.Leased, mercator.Loading:
		l.Core.ReturnHead(o.Queue, o.Record)
	default: // its place depends on which of its queues have URLs
		l.Core.Detach(o.Host)
		l.Core.ReturnHead(o.Queue, o.Record)
		l.Core.Settle(o.Host, now)
	}
}

// Unpin ends the wait of a host for a completion.
func (l *Ledger) Unpin(id uint32, now int64) {
	h := l.Core.Hosts.At(id)
	if h.Pins--; h.Pins == 0 && h.Place == mercator.Nowhere {
		l.Core.Settle(id, now)
	}
}

// unreserve ends the reservation of entry i of o: it waits now, or is not admitted.
func (l *Ledger) unreserve(o *Op, i int) {
	l.Core.Limits.Unreserve(o.Reserved[i], o.Entries[i].Host)
	o.Reserved[i] = nil
}

// enact puts a deletion in force: it is durable, and all before it is visible.
func (l *Ledger) enact(d *tombstone.Deletion) {
	l.Core.Enact(d, l.batchID)
	for o := range l.queue.Waiting() {
		l.overtaken(o, d)
	}
	l.up.Sweep(d)
}

// overtaken lets a deletion have the completion of a record that was under
// way when it came: the record's successor is not admitted.
func (l *Ledger) overtaken(o *Op, d *tombstone.Deletion) {
	if len(o.Replaced) > 0 {
		n := len(o.Entries)
		o.Entries = slices.DeleteFunc(o.Entries, func(e Entry) bool { return e.ForcedAt < d.Seq && d.Contains(hostkey.Bytes(e.Host), e.Crawl) })
		l.Core.Stats.Deleted += int64(n - len(o.Entries))
	}
	if o.Ends && l.Core.Overtakes(d, &o.Outgoing) {
		o.Entries = l.withoutSuccessor(o.Entries, d.Seq)
	}
}

// withoutSuccessor cuts the URL's own next record off the entries of its
// completion, unless it was forced after a deletion.
func (l *Ledger) withoutSuccessor(entries []Entry, seq uint64) []Entry {
	if n := len(entries) - 1; n >= 0 && entries[n].Index < 0 && entries[n].ForcedAt < seq {
		l.Core.Stats.Deleted++
		return entries[:n]
	}
	return entries
}

// returned notes that a completion was undone: its record waits again, and
// if a deletion has it that must be looked for.
func (l *Ledger) returned(o *Op) {
	if o.Dead {
		l.Core.SettleDead(&o.Outgoing)
		l.up.Sweep(l.Core.Deletions.Revive()...)
	}
}

// End makes o the end of a record.
func (l *Ledger) End(o *Op, qid uint32, ref arena.Ref) {
	o.Ends, o.Record, o.Queue, o.Host = true, ref, qid, l.Core.Queues.At(qid).Host
	l.Core.Hosts.At(o.Host).Pins++
	if len(l.again) > 0 && l.Spill != nil && l.Again(ref) != nil {
		o.Rows = append(o.Rows, storage.Row{Key: row.AgainRow(l.Core.Records.At(ref).Seq())})
	}
	if l.Core.Counts != nil {
		o.Crawl = l.Core.CrawlNumber(l.Core.Queues.At(qid))
		l.Core.CountEnding(&o.Outgoing)
	}
}

// Unschedule makes o the end of a scheduled record in memory.
func (l *Ledger) Unschedule(o *Op, i int) {
	it := l.Core.Unschedule(i)
	o.Due = it.At
	l.End(o, it.Aux, arena.Ref(it.ID))
}

// Withdraw makes o the end of a waiting record, which remove takes out of its queue.
func (l *Ledger) Withdraw(o *Op, qid uint32, ref arena.Ref, remove func()) {
	c := l.Core
	c.Fifo.Took(c.Queues.At(qid).Host, ref)
	l.End(o, qid, ref)
	c.Withdraw(qid, remove, l.up.Now())
}

// Note adds the host's row to o if it is wanted: see Core.Note. Then the host is pinned until o is
// settled.
func (l *Ledger) Note(o *Op, id uint32, due int64, why mercator.Why, now int64) {
	if saved, ok := l.Core.Note(id, due, why, now); ok {
		l.Pin(o, id)
		o.Rows = append(o.Rows, saved)
	}
}

// Pin keeps a host in memory until o is settled. An operation pins one host.
func (l *Ledger) Pin(o *Op, id uint32) {
	if o.Pinned == 0 {
		l.Core.Hosts.At(id).Pins++
		o.Pinned = id
	}
}

// AdmitAgain makes o admit what a record comes again as.
func (o *Op) AdmitAgain(as *Entry) {
	again := *as
	again.Body = o.Keep(again.Body)
	o.Entries = append(o.Entries, again)
}
