// This file counts the URLs of each host within a crawl (Options.Count).
//
// Package count has how many there are in all, and how many of them are finished. With a Spill these
// are rows, which change with the batch that admits or ends a URL: what is not in memory takes none.
// Waiting and leased URLs are counted where they are; the rest is scheduled. A record that a deletion
// has declared dead counts no more, although it may not have been found yet.

package ledger

import (
	"cmp"
	"context"
	"errors"

	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

// count begins to count what the operations of a batch change, and what was found. The
// operations have their numbers.
func (l *Ledger) count(group []*Op, b *storage.Batch) {
	c := l.Core
	if c.Counts == nil {
		return
	}
	x := &count.Changes{Dead: c.DeadCount}
	for _, o := range group {
		if o.Deletion != nil {
			x.Delete(&o.Deletion.Tombstone)
		}
		for i := range o.Entries {
			e := &o.Entries[i]
			x.Add(e.Host, e.Crawl, mercator.NumbersOf(e.Due), 1)
		}
		if o.Ends && c.Lives(&o.Outgoing) {
			x.Add(string(c.NameOf(o.Host)), o.Crawl, mercator.NumbersOf(o.Due), -1)
		}
		for i, r := range o.Replaced {
			x.AddAlive(r.Seq, o.ReplacedIn[i].Host, o.ReplacedIn[i].Crawl, count.Numbers{Total: 1}, -1)
		}
	}
	c.BeginCounting(x, b)
}

// commitCounted commits a batch together with the counts that it changes.
func (l *Ledger) commitCounted(b *storage.Batch, seq uint64) error {
	if l.Core.Counts == nil {
		return l.commit(b)
	}
	rows, err := l.Core.Counts.Write(seq)
	if err != nil {
		return err
	}
	l.Mu.Lock()
	l.Core.Counts.Written()
	l.Mu.Unlock()
	own := len(b.Rows)
	b.Rows = append(b.Rows, rows...)
	err = l.commit(b)
	b.Rows = b.Rows[:own]
	return err
}

// CommitFound has what was found committed soon.
func (l *Ledger) CommitFound() {
	if len(l.Core.Found) > 0 && !l.up.Closed() {
		l.SubmitAsync(&Op{}) // no call waits
	}
}

// commitFound commits what was found, between two commits: a checkpoint makes it durable that it ended.
// It returns with the lock held, and nothing found, unless there is an error.
func (l *Ledger) commitFound() error {
	for {
		l.Mu.Lock()
		if len(l.Core.Found) == 0 {
			return nil
		}
		b := &storage.Batch{ID: l.batchID + 1, Time: l.now()}
		l.count(nil, b)
		seq := l.seq
		l.Mu.Unlock()
		err := l.commitCounted(b, seq)
		l.Mu.Lock()
		l.Core.EndCounting(err == nil)
		if err == nil {
			l.batchID, l.applied.batch = b.ID, b.ID
		}
		l.Mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// LockCommitted commits a batch between two commits. It takes the lock, also if that fails.
func (l *Ledger) LockCommitted(b *storage.Batch) error {
	l.Mu.Lock()
	b.ID, b.Time = l.batchID+1, l.now()
	l.Mu.Unlock()
	err := l.Spill.Commit(b)
	l.Mu.Lock()
	if err == nil {
		l.batchID, l.applied.batch = b.ID, b.ID
	}
	return err
}

// rowsAtOnce is how many rows one batch of an opening has.
const rowsAtOnce = 4096

// SweepCounts drops the counts that d has left dead, some at a time.
func (l *Ledger) SweepCounts(d *tombstone.Deletion) {
	if l.Core.Counts == nil {
		return
	}
	crawls := []uint32{d.Crawl}
	if !d.OfCrawl {
		l.Mu.Lock()
		crawls = l.Core.Counts.Crawls()
		l.Mu.Unlock()
	}
	for from := ""; len(crawls) > 0; {
		step := func() (err error) { crawls, from, err = l.DropCounts(d, crawls, from); return err }
		if err := l.Between(step); err != nil { // the deletion stays until an opening has dropped them
			if !errors.Is(err, storage.ErrClosed) {
				l.up.Report("deleting numbers of URLs", err)
			}
			return
		}
	}
	l.Mu.Lock()
	d.Counted = true
	l.Mu.Unlock()
}

// DropCounts drops some of the counts of crawls that d has left dead, from a key on, and returns where to
// go on. It is called between two commits; without a Spill, with the lock held.
func (l *Ledger) DropCounts(d *tombstone.Deletion, crawls []uint32, from string) ([]uint32, string, error) {
	t := l.Core.Counts
	dead, crawls, from, err := t.FindDead(&d.Tombstone, crawls, from, l.Core.CountsAtOnce())
	switch {
	case err != nil || len(dead) == 0:
	case l.Spill == nil:
		err = t.Drop(dead, func([]storage.Row) error { return nil })
	default:
		err = t.Drop(dead, func(rows []storage.Row) error { return l.LockCommitted(&storage.Batch{Rows: rows}) })
		l.Mu.Unlock()
	}
	return crawls, from, err
}

// CountAnew counts all URLs, at an opening: the store has no counts, or wrong ones. It reads all blocks of
// scheduled and finished URLs. Those in damaged blocks are left out.
func (l *Ledger) CountAnew(ctx context.Context) error {
	c := l.Core
	for _, d := range c.Deletions.All() {
		sweep := c.Sweep(&d.Tombstone)
		for done := false; !done; {
			done, _ = sweep(AtOnce, 0)
		}
	}
	x := &count.Changes{Dead: c.DeadCount}
	write := func(least int) error {
		if x.Len() < least {
			return nil
		}
		c.Counts.Begin(x)
		rows, err := c.Counts.Write(l.Seq())
		if err == nil {
			err = l.CommitOpening(rows)
		}
		c.Counts.End(err == nil)
		*x = count.Changes{Dead: c.DeadCount}
		return cmp.Or(err, ctx.Err())
	}
	for _, prefix := range []string{row.CountKey, row.SumKey} {
		if err := l.dropRows(ctx, prefix); err != nil {
			return err
		}
	}
	full := func() error { return write(rowsAtOnce) }
	if err := c.CountMemory(x, full); err != nil {
		return err
	}
	list := c.Timed.BeginList()
	for more := !c.Timed.Empty(); more; {
		list.Grow()
		more = c.Timed.List(list)
	}
	c.Timed.EndList(list)
	for _, it := range list.All() {
		err := l.Spill.LoadTimed(it.ID, timed.First(it), func(pos int, r storage.TimedRecord) bool {
			if !c.Blocks.IsBuried(it.ID, pos) {
				x.AddAlive(r.Seq, r.Host, r.Crawl, mercator.NumbersOf(it.At), 1)
			}
			return true
		})
		if err != nil && !errors.As(err, new(*storage.CorruptError)) {
			return err
		}
		if err := full(); err != nil {
			return err
		}
	}
	if err := write(1); err != nil {
		return err
	}
	return l.CommitOpening([]storage.Row{row.Counted(true)})
}

// dropRows deletes all rows whose keys begin with prefix.
func (l *Ledger) dropRows(ctx context.Context, prefix string) error {
	for {
		var rows []storage.Row
		err := l.Spill.Rows(prefix, "", func(key string, _ []byte) bool {
			rows = append(rows, storage.Row{Key: key})
			return len(rows) < rowsAtOnce
		})
		if err == nil {
			err = ctx.Err()
		}
		if len(rows) == 0 || err != nil {
			return err
		}
		if err := l.CommitOpening(rows); err != nil {
			return err
		}
	}
}
