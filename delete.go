// This file deletes: it says that all URLs of a scope or of a crawl that were
// admitted so far are dead.
//
// A deletion is a rule with a number: what has a sequence number up to it is
// dead. That is one row on disk, however many URLs it concerns, and in force
// when it is there: who is about to hand a URL out looks, and sweep.go takes the
// dead away in the background. All deletions that contain a host count, not only
// the most specific one. The rule stays on disk until nothing older is left there.

package frontier

import (
	"context"
	"fmt"
	"slices"
)

// doomOf is what the deletions in force say of a queue.
func (c *core) doomOf(q *queue) doom {
	if c.dooms.n == 0 {
		return doom{}
	}
	return c.dooms.of(c.name(c.hosts.at(q.host)), c.crawlOf(q).id)
}

// condemned is the same for those, too, of which only the row is still there.
func (c *core) condemned(q *queue) doom {
	if c.stored.n == 0 {
		return c.doomOf(q)
	}
	return c.stored.of(c.name(c.hosts.at(q.host)), c.crawlOf(q).id)
}

// Delete removes all URLs of a scope that wait or are scheduled. When it has
// returned without an error that is durable, and none of them is handed out any
// more. Clocks of hosts stay as they are, and the URLs known: Add refuses them as
// duplicates unless they are forced. A URL that is leased keeps its slot until its
// lease ends, and does not come again whatever the outcome. URLs that are added
// while Delete is under way may be removed or not.
//
// Delete waits until what is in memory is looked through, some URLs at a time,
// and returns how many it removed; if ctx ends that wait, how many so far, and no
// error. Scheduled URLs that are on disk are looked for later. Until they are
// found, Stats count dead URLs as waiting or scheduled, and Next waits for the
// search instead of returning ErrExhausted. The scope need not have any hosts.
func (f *Frontier) Delete(ctx context.Context, s Scope) (int64, error) {
	s, err := f.spelled(s)
	if err != nil {
		return 0, fmt.Errorf("frontier: delete: %w", err)
	}
	return f.delete(ctx, &deletion{scope: s})
}

// DeleteCrawl is Delete for all URLs of a crawl.
func (f *Frontier) DeleteCrawl(ctx context.Context, id uint32) (int64, error) {
	return f.delete(ctx, &deletion{ofCrawl: true, crawl: id})
}

func (f *Frontier) delete(ctx context.Context, d *deletion) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	tried := make(chan struct{})
	d.tried = tried
	o := newOp()
	defer o.free()
	o.deletion, o.ctx = d, ctx
	if err := f.lockOpen(); err != nil {
		return 0, err
	}
	if err := f.submitLocked(o); err != nil { // unlocks
		return 0, err
	}
	select {
	case <-tried:
	case <-ctx.Done():
	case <-f.abandoned:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return d.removed, nil
}

// numberedLocked gives a deletion its sequence number, between those of what was
// submitted before and after it.
func (f *Frontier) numberedLocked(d *deletion) {
	if d.seq == 0 {
		f.seq++
		d.seq, d.block = f.seq, f.core.lastBlock
		d.written = d.block
	}
}

// enactLocked puts a deletion in force: it is durable, and all before it is
// visible.
func (f *Frontier) enactLocked(d *deletion) {
	c := f.core
	d.block = c.lastBlock
	d.batch = f.committer.batchID
	c.dooms.add(d)
	c.offerDeleted(d)
	if f.opts.Spill != nil {
		c.stored.add(d)
		f.deletions = append(f.deletions, d)
		if c.timed.unread.len() > 0 {
			f.burial.begin(d.block, &c.timed.unread)
		}
	}
	for _, o := range f.committer.queue {
		f.overtakenLocked(o, d)
	}
	f.startSweepLocked(d)
}

// overtakenLocked lets a deletion have the completion of a record that was under
// way when it came: the record's successor is not admitted.
func (f *Frontier) overtakenLocked(o *op, d *deletion) {
	c := f.core
	if len(o.replaced) > 0 {
		n := len(o.entries)
		o.entries = slices.DeleteFunc(o.entries, func(e newEntry) bool { return e.forcedAt < d.seq && d.contains(e.host, e.crawl) })
		c.stats.Deleted += int64(n - len(o.entries))
	}
	if !o.ends {
		return
	}
	q := c.queues.at(o.queue)
	if c.record(o.record).seq() > d.seq || !d.contains(string(c.name(c.hosts.at(q.host))), c.crawlOf(q).id) {
		return
	}
	if !o.dead {
		o.dead = true
		c.doomed++
	}
	o.entries = f.withoutSuccessor(o.entries, d.seq)
}

// withoutSuccessor cuts the URL's own next record off the entries of its
// completion, unless it was forced after a deletion.
func (f *Frontier) withoutSuccessor(entries []newEntry, seq uint64) []newEntry {
	if n := len(entries) - 1; n >= 0 && entries[n].index < 0 && entries[n].forcedAt < seq {
		f.core.stats.Deleted++
		return entries[:n]
	}
	return entries
}

// endDeadLocked plans the end of a dead record: nothing replaces it but what was
// forced since.
func (f *Frontier) endDeadLocked(o *op, l *leaseRecord, p plan) {
	f.endsLocked(o, l.queue, l.record)
	o.dead = true
	switch {
	case l.again != nil && l.again.forcedAt >= l.dead:
		again := *l.again
		again.body = o.hold(again.body)
		o.entries = append(o.entries, again)
	case p.givenUp: // its tries ended, and not the deletion
		o.tally = &f.core.stats.GivenUp
		f.giveUpLocked(o, f.core.hosts.at(l.host), l, &p)
	case p.stays || p.outcome.Result == Requeue:
		f.core.stats.Deleted++
	}
}

// settledLocked notes that a completion is durable.
func (f *Frontier) settledLocked(o *op) {
	if o.dead {
		o.dead = false
		f.core.doomed--
	}
}

// returnedLocked notes that a completion was undone: its record waits again, and
// if a deletion has it that must be looked for.
func (f *Frontier) returnedLocked(o *op) {
	if o.dead {
		f.settledLocked(o)
		f.reviveLocked()
	}
}

// deadLeaseLocked returns the number of the last deletion that a lease's record fell
// to, or 0.
func (f *Frontier) deadLeaseLocked(l *leaseRecord) uint64 {
	c := f.core
	if l.record == 0 || c.dooms.n == 0 {
		return l.dead
	}
	if d := c.doomOf(c.queues.at(l.queue)); d.seq > max(l.dead, c.record(l.record).seq()) {
		if l.dead == 0 {
			c.doomed++
		}
		l.dead = d.seq // the youngest: a Force may have met the lease after the one before
	}
	return l.dead
}
