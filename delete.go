// This file deletes: a deletion declares all URLs of a scope or crawl admitted so far dead.
//
// A deletion is a rule with a number: URLs with a sequence number up to it are dead. It is one row on
// disk, whatever the number of URLs, and in force when the row is written: each hand-out checks it, and
// a sweep removes the dead in the background. All deletions that contain a host apply, not only the
// most specific one. The row stays on disk until nothing older is left there.

package frontier

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

// Delete removes all waiting and scheduled URLs of a scope. When it has returned without an error the
// deletion is durable, and none of them is handed out any more. Clocks of hosts do not change, and the
// URLs remain known: Add refuses them as duplicates unless they are forced (DeleteWith can forget
// them). A leased URL keeps its slot until its lease ends, and does not come again, whatever the
// outcome. URLs that are added while Delete is under way may be removed or not.
//
// Delete waits until memory has been searched, some URLs at a time, and returns how many URLs it
// removed; if ctx ends that wait, it returns how many so far, and no error. Scheduled URLs on disk are
// removed later. Until they are found, Stats count dead URLs as waiting or scheduled, and Next waits
// for the search instead of returning ErrExhausted. The scope need not have any hosts.
func (f *Frontier) Delete(ctx context.Context, s Scope) (int64, error) {
	return f.DeleteWith(ctx, DeleteOptions{Scope: s})
}

// DeleteOptions say what DeleteWith deletes. The zero value means all URLs.
type DeleteOptions struct {
	Scope  Scope    // of hosts, or a crawl; zero is All()
	Crawls []uint32 // of the scope's hosts only the URLs of these crawls; nil means all, and an empty list is an error

	// Forget makes unknown what is deleted, and all other URLs that these hosts have had in these
	// crawls: Add admits them again, as new. It takes effect when DeleteWith begins, unless that fails.
	// Clocks of hosts stay. The old marks stay, too: they take their room, and Stats.Known counts them.
	// Each scope or crawl that was ever forgotten takes a small row in the store.
	Forget bool
}

// DeleteWith is Delete for the URLs that the hosts of a scope have in certain crawls. Each
// crawl is deleted in a commit; after an error, some of them may be.
func (f *Frontier) DeleteWith(ctx context.Context, o DeleteOptions) (n int64, err error) {
	s := o.Scope
	if s.ofCrawl {
		if o.Crawls != nil {
			return 0, fmt.Errorf("frontier: delete: the scope is %v, and there are Crawls; want one of them", s)
		}
		s, o.Crawls = All(), []uint32{s.crawl}
	}
	if s, err = f.spelled(s); err != nil {
		return 0, fmt.Errorf("frontier: delete: %w", err)
	}
	if o.Crawls == nil {
		return f.delete(ctx, newDeletion(row.Deletion{Scope: s.stored()}), o.Forget)
	}
	if len(o.Crawls) == 0 {
		return 0, fmt.Errorf("frontier: delete: %w", errNoCrawls)
	}
	for _, crawl := range o.Crawls {
		removed, err := f.delete(ctx, newDeletion(row.Deletion{Scope: s.stored(), OfCrawl: true, Crawl: crawl}), o.Forget)
		n += removed
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (f *Frontier) delete(ctx context.Context, d *deletion, forget bool) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	tried := make(chan struct{})
	d.tried = tried
	o := newOp()
	defer o.free()
	o.deletion, o.ctx = d, ctx
	lock := f.lockOpen
	if forget {
		lock = f.lockSteadyOpen
	}
	if err := lock(); err != nil {
		return 0, err
	}
	if forget {
		f.forgetLocked(o, d)
	}
	if err := f.submitAndUnlock(o); err != nil {
		return 0, err
	}
	select {
	case <-tried:
	case <-ctx.Done():
	case <-f.abandoned.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return d.Removed, nil
}

// numberedLocked gives a deletion its sequence number, between those of the ops submitted
// before and after it.
func (s *shard) numberedLocked(d *deletion) {
	if d.Seq == 0 {
		s.seq++
		d.Seq, d.Block = s.seq, s.core.Blocks.Last()
		d.written = d.Block
	}
}

// enactLocked puts a deletion in force: it is durable, and all before it is visible.
func (f *Frontier) enactLocked(d *deletion) {
	c := f.core
	d.Block = c.Blocks.Last()
	d.batch = f.committer.batchID
	c.Tombstones.Add(&d.Tombstone)
	c.OfferDeleted(&d.Tombstone)
	if f.opts.Spill != nil {
		c.StoredTombstones.Add(&d.Tombstone)
		f.deletions = append(f.deletions, d)
		if d.OfHost() {
			c.Timed.PurgeLater(d.Block)
		} else {
			c.Timed.Purge(d.Block)
		}
	}
	for o := range f.committer.log.Waiting() {
		f.overtakenLocked(o, d)
	}
	f.startSweepLocked(d)
}

// overtakenLocked lets a deletion have the completion of a record that was under
// way when it came: the record's successor is not admitted.
func (s *shard) overtakenLocked(o *op, d *deletion) {
	c := s.core
	if len(o.replaced) > 0 {
		n := len(o.entries)
		o.entries = slices.DeleteFunc(o.entries, func(e newEntry) bool { return e.forcedAt < d.Seq && d.Contains(hostkey.Bytes(e.host), e.crawl) })
		c.Stats.Deleted += int64(n - len(o.entries))
	}
	if !o.ends {
		return
	}
	q := c.Queues.At(o.Queue)
	if c.Records.At(o.Record).Seq() > d.Seq || !d.Contains(c.Name(c.Hosts.At(q.Host)), c.CrawlNumber(q)) {
		return
	}
	if !o.Dead {
		o.Dead = true
		c.UnsettledDead++
		c.Uncount(&o.Outgoing)
	}
	o.entries = s.withoutSuccessorLocked(o.entries, d.Seq)
}

// withoutSuccessorLocked cuts the URL's own next record off the entries of its
// completion, unless it was forced after a deletion.
func (s *shard) withoutSuccessorLocked(entries []newEntry, seq uint64) []newEntry {
	if n := len(entries) - 1; n >= 0 && entries[n].index < 0 && entries[n].forcedAt < seq {
		s.core.Stats.Deleted++
		return entries[:n]
	}
	return entries
}

// endDeadLocked plans the end of a dead record: nothing replaces it but what was forced since.
func (s *shard) endDeadLocked(o *op, l *mercator.Lease, p plan) {
	again := s.againLocked(l.Record)
	s.endsLocked(o, l.Queue, l.Record)
	o.Dead = true
	s.core.Uncount(&o.Outgoing) // the deletion took it out already
	switch {
	case again != nil && again.forcedAt >= l.Dead:
		s.admitAgainLocked(o, again)
	case p.givenUp: // its tries ended, and not the deletion
		o.tally = &s.core.Stats.GivenUp
		s.giveUpLocked(o, s.core.Hosts.At(l.Host), l, &p)
	case p.stays || p.outcome.Result == Requeue:
		s.core.Stats.Deleted++
	}
}

// settledLocked notes that the completion of a dead record is durable.
func (s *shard) settledLocked(o *op) {
	o.Dead = false
	s.core.UnsettledDead--
}

// returnedLocked notes that a completion was undone: its record waits again, and
// if a deletion has it that must be looked for.
func (f *Frontier) returnedLocked(o *op) {
	if o.Dead {
		f.settledLocked(o)
		f.reviveLocked()
	}
}

// deletion is a tombstone that is being committed, or has a row, and what is known of its sweep.
type deletion struct {
	tombstone.Tombstone        // its number is 0 until it is being committed
	written             uint32 // block, as its row has it
	batch               uint64 // that it was committed with, or a later one

	swept   bool          // nothing dead is in memory but what leases and completions hold
	counted bool          // no count is dead
	again   bool          // since the sweep began a dead record came back
	tried   chan struct{} // closed when that is so for the first time, or the frontier closed; nil if nothing waits
}

func newDeletion(d row.Deletion) *deletion {
	return &deletion{Tombstone: tombstone.Tombstone{Deletion: d}, written: d.Block}
}

// deletion restores a deletion whose row was found.
func (r *recovery) deletion(key string, value []byte) error {
	parsed, err := row.ParseDeletion(key, value)
	if err != nil {
		return err
	}
	f, d := r.f, newDeletion(parsed)
	d.Block = min(d.Block, f.core.Blocks.Last()) // higher numbers are given once more
	d.batch = f.committer.batchID
	f.seq = max(f.seq, d.Seq)
	f.deletions = append(f.deletions, d)
	f.core.Tombstones.Add(&d.Tombstone)
	f.core.StoredTombstones.Add(&d.Tombstone)
	return nil
}

// outdatedLocked lists the deletions that are of no use once the checkpoint that
// ends the log at through is complete.
func (s *shard) outdatedLocked(through uint64) (out []*deletion) {
	c := s.core
	if c.UnsettledDead > 0 { // a record that they concern would come back after a crash
		return nil
	}
	for _, d := range s.deletions {
		if d.swept && (d.counted || c.Counts == nil) && d.batch <= through && (c.Timed.Empty() || d.Block < c.Timed.Oldest() || c.Timed.Purged()) {
			out = append(out, d)
		}
	}
	return out
}

// deletionRowsLocked returns the rows that must say more, now that blocks become
// valid that were made when a deletion came.
func (s *shard) deletionRowsLocked() (rows []storage.Row) {
	for _, d := range s.deletions {
		if d.written != d.Block {
			rows = append(rows, d.Row())
		}
	}
	return rows
}

// forgetDeletions deletes the rows of deletions, between two commits.
// If that fails the next round tries again.
func (f *Frontier) forgetDeletions(ds []*deletion) {
	if len(ds) == 0 {
		return
	}
	f.mu.Lock()
	b := &storage.Batch{ID: f.committer.batchID + 1, Time: instant.Millis(f.wall(f.nowLocked())), Local: true}
	f.mu.Unlock()
	for _, d := range ds {
		b.Rows = append(b.Rows, storage.Row{Key: d.Key()})
	}
	if err := f.opts.Spill.Commit(b); err != nil {
		f.opts.Logger.Warn("dropping deletions", "error", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.committer.batchID, f.applied.batch = b.ID, b.ID
	gone := map[*deletion]bool{}
	for _, d := range ds {
		gone[d] = true
		f.core.StoredTombstones.Remove(&d.Tombstone)
	}
	kept := f.deletions[:0]
	for _, d := range f.deletions {
		if !gone[d] {
			kept = append(kept, d)
		}
	}
	clear(f.deletions[len(kept):])
	f.deletions = kept
}

// Sweeps remove what deletions have left dead in memory, some at a time.
//
// Dead records are at the head of their queue, since they came before all others. So a
// queue is clean when its head is alive, and a hand-out checks only the head. For parts
// on disk the number of the block is enough.

// Steps of a sweep, and what they cost. A step takes some 20 ns, and 200 if its record is in no cache.
const (
	sweepSteps = 1024 // under one lock
	sweepHosts = 1024 // that are looked at under one lock when the sweep is over
	sweptHost  = 1    // looking at a host
)

// sweepTime is when to ask again for a URL if a sweep may find some, in nanoseconds.
const sweepTime = int64(time.Millisecond)

// sweep looks through all that is in memory for what d has left dead.
func (f *Frontier) sweep(d *deletion) {
	for {
		complete := f.sweepQueues(d) && f.sweepLeases(d)
		f.sweepCounts(d)
		f.lock()
		if complete && d.again {
			d.again = false
			f.mu.Unlock()
			continue
		}
		if complete {
			d.swept = true
			f.core.Tombstones.Remove(&d.Tombstone)
			f.core.OfferDeleted(&d.Tombstone)
			f.freeUnpurgedYieldingLocked()
			f.dispatchLocked() // the crawl may be over
		}
		if d.tried != nil {
			close(d.tried)
			d.tried = nil
		}
		f.mu.Unlock()
		return
	}
}

// freeUnpurgedYieldingLocked puts hosts back that were left to a sweep which had been there,
// because of a part that was finished later. It releases the lock between steps.
func (f *Frontier) freeUnpurgedYieldingLocked() {
	c := f.core
	for id := uint32(1); id <= c.Hosts.Top && c.Places[mercator.Unpurged] > 0 && !f.closed; id++ {
		if c.Hosts.At(id).Place == mercator.Unpurged {
			c.Detach(id)
			c.Settle(id, f.last)
		}
		if id%sweepHosts == 0 {
			f.dispatchLocked()
			f.mu.Unlock()
			f.lock()
		}
	}
}

// startSweepLocked sweeps for deletions, one after the other, in the background.
func (f *Frontier) startSweepLocked(ds ...*deletion) {
	if len(ds) == 0 {
		return
	}
	f.sweepers.Add(1)
	f.sweeping++
	go func() {
		defer f.sweepers.Done()
		for _, d := range ds {
			f.sweep(d)
		}
		f.mu.Lock()
		f.sweeping--
		f.mu.Unlock()
	}()
}

// reviveLocked puts deletions in force again: a record that they may concern came
// back because a commit failed.
func (f *Frontier) reviveLocked() {
	var ds []*deletion
	for _, d := range f.deletions {
		if d.again = !d.swept; d.swept {
			d.swept = false
			f.core.Tombstones.Add(&d.Tombstone)
			f.core.OfferDeleted(&d.Tombstone)
			ds = append(ds, d)
		}
	}
	f.startSweepLocked(ds...)
}

// sweepInSteps calls step under the lock, with as many steps as it may take, until it is
// done. step reports whether it is done, and whether it must wait for a read to end.
// sweepInSteps reports whether the sweep was completed.
func (f *Frontier) sweepInSteps(step func(steps int) (done, wait bool)) bool {
	for {
		if f.lockOpen() != nil {
			return false
		}
		done, wait := step(sweepSteps)
		var ended chan struct{}
		if wait {
			if f.readEnded == nil {
				f.readEnded = make(chan struct{})
			}
			ended = f.readEnded
		}
		f.dispatchLocked()
		f.mu.Unlock()
		if done {
			return true
		}
		if ended != nil {
			<-ended
		}
		runtime.Gosched()
	}
}

// readEndedLocked lets sweeps go on that wait for the end of a read.
func (s *shard) readEndedLocked() {
	if s.readEnded != nil {
		close(s.readEnded)
		s.readEnded = nil
	}
}

// sweepQueues takes dead records out of the queues, and out of the heap of scheduled ones.
func (f *Frontier) sweepQueues(d *deletion) bool {
	c := f.core
	var at mercator.Ring
	if d.OfHost() {
		return f.sweepInSteps(func(steps int) (done, wait bool) {
			id := c.Lookup(f.core.HashOf(d.Scope.Name), d.Scope.Name)
			if id == 0 {
				return true, false
			}
			_, done, wait = c.PurgeHost(id, &d.Tombstone, &at, steps, f.last)
			return done, wait
		})
	}
	id := uint32(1) // the numbers of hosts with dead records do not change
	return f.sweepInSteps(func(steps int) (done, wait bool) {
		for ; id <= c.Hosts.Top && steps > 0; id++ {
			steps -= sweptHost
			h := c.Hosts.At(id)
			if h.NameLen == 0 || h.Waiting == 0 && h.Scheduled == 0 && h.Place != mercator.Unpurged || !d.ContainsHost(c.Name(h)) {
				continue
			}
			if steps, done, wait = c.PurgeHost(id, &d.Tombstone, &at, steps, f.last); !done {
				return false, wait
			}
		}
		return id > c.Hosts.Top, false
	})
}
