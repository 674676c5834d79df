// This file counts the URLs of each host within a crawl, as batches change the numbers (Options.Count).

package ledger

import (
	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/mercator"
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
		l.SubmitAsync(&Op{After: func(error) {}}) // no call waits
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
