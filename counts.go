// This file counts the URLs of each host within a crawl (Options.Count).
//
// Package count has how many there are in all, and how many of them are finished. With a Spill these
// are rows, which change with the batch that admits or ends a URL: what is not in memory takes none.
// Waiting and leased URLs are counted where they are; the rest is scheduled. A record that a deletion
// has declared dead counts no more, although it may not have been found yet.

package frontier

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

// readCounted reads counts and looks at what is in memory, as of one moment: load reads, without the lock;
// look is called with the lock held, and for what was read asks what is visible of it.
func (f *Frontier) readCounted(load func() error, look func()) error {
	t := f.core.Counts
	for range 3 {
		if err := f.lockAdvancedOpen(); err != nil {
			return err
		}
		if !t.Stored() {
			err := load()
			look()
			f.mu.Unlock()
			return err
		}
		version := t.Version()
		f.mu.Unlock()
		if err := load(); err != nil {
			return err
		}
		f.lockAdvanced()
		if t.Version() == version {
			look()
			f.mu.Unlock()
			return nil
		}
		f.mu.Unlock()
	}
	return f.ledger.Between(func() error { // else nothing would change
		err := load()
		f.mu.Lock()
		look()
		f.mu.Unlock()
		return err
	})
}

// sweepCounts drops the counts that d has left dead, some at a time.
func (f *Frontier) sweepCounts(d *tombstone.Deletion) {
	if f.core.Counts == nil {
		return
	}
	crawls := []uint32{d.Crawl}
	if !d.OfCrawl {
		f.mu.Lock()
		crawls = f.core.Counts.Crawls()
		f.mu.Unlock()
	}
	for from := ""; len(crawls) > 0; {
		step := func() (err error) { crawls, from, err = f.dropCounts(d, crawls, from); return err }
		if err := f.ledger.Between(step); err != nil { // the deletion stays until an opening has dropped them
			if !errors.Is(err, ErrClosed) {
				f.emit(event.Event{Kind: event.StoreError, Reason: "deleting numbers of URLs", Err: err})
			}
			return
		}
	}
	f.mu.Lock()
	d.Counted = true
	f.mu.Unlock()
}

// dropCounts drops some of the counts of crawls that d has left dead, from a key on, and returns where to
// go on. It is called between two commits; without a Spill, with the lock held.
func (f *Frontier) dropCounts(d *tombstone.Deletion, crawls []uint32, from string) ([]uint32, string, error) {
	t := f.core.Counts
	dead, crawls, from, err := t.FindDead(&d.Tombstone, crawls, from, f.core.CountsAtOnce())
	switch {
	case err != nil || len(dead) == 0:
	case f.opts.Spill == nil:
		err = t.Drop(dead, func([]storage.Row) error { return nil })
	default:
		err = t.Drop(dead, func(rows []storage.Row) error { return f.ledger.LockCommitted(&storage.Batch{Rows: rows}) })
		f.mu.Unlock()
	}
	return crawls, from, err
}

// countAnew counts all URLs, at an opening: the store has no counts, or wrong ones. It reads all blocks of
// scheduled and finished URLs. Those in damaged blocks are left out.
func (f *Frontier) countAnew(ctx context.Context) error {
	c := f.core
	for _, d := range c.Deletions.All() {
		sweep := c.Sweep(&d.Tombstone)
		for done := false; !done; {
			done, _ = sweep(sweepSteps, 0)
		}
	}
	x := &count.Changes{Dead: c.DeadCount}
	write := func(least int) error {
		if x.Len() < least {
			return nil
		}
		c.Counts.Begin(x)
		rows, err := c.Counts.Write(f.ledger.Seq())
		if err == nil {
			err = f.ledger.CommitOpening(rows)
		}
		c.Counts.End(err == nil)
		*x = count.Changes{Dead: c.DeadCount}
		return cmp.Or(err, ctx.Err())
	}
	for _, prefix := range []string{row.CountKey, row.SumKey} {
		if err := f.dropRows(ctx, prefix); err != nil {
			return err
		}
	}
	full := func() error { return write(clocksAtOnce) }
	if err := c.CountMemory(x, full); err != nil {
		return err
	}
	l := f.listTimed()
	c.Timed.EndList(l)
	for _, it := range l.All() {
		err := f.opts.Spill.LoadTimed(it.ID, timed.First(it), func(pos int, r storage.TimedRecord) bool {
			if !c.Blocks.IsBuried(it.ID, pos) {
				x.AddAlive(r.Seq, r.Host, r.Crawl, mercator.NumbersOf(it.At), 1)
			}
			return true
		})
		if err != nil && !isCorrupt(err) {
			return err
		}
		if err := full(); err != nil {
			return err
		}
	}
	if err := write(1); err != nil {
		return err
	}
	return f.ledger.CommitOpening([]storage.Row{row.Counted(true)})
}

// dropRows deletes all rows whose keys begin with prefix.
func (f *Frontier) dropRows(ctx context.Context, prefix string) error {
	for {
		var rows []storage.Row
		err := f.opts.Spill.Rows(prefix, "", func(key string, _ []byte) bool {
			rows = append(rows, storage.Row{Key: key})
			return len(rows) < clocksAtOnce
		})
		if err == nil {
			err = ctx.Err()
		}
		if len(rows) == 0 || err != nil {
			return err
		}
		if err := f.ledger.CommitOpening(rows); err != nil {
			return err
		}
	}
}

// countRows returns all counts by key, and their version, or nothing if they cannot be read. It is for
// tests.
func (f *Frontier) countRows() (rows map[string]row.Count, version uint64) {
	if f.core.Counts == nil {
		return nil, 0
	}
	f.mu.Lock()
	version = f.core.Counts.Version()
	if f.opts.Spill == nil {
		defer f.mu.Unlock()
	} else {
		f.mu.Unlock()
	}
	rows = map[string]row.Count{}
	err := f.core.Counts.Each(row.CountKey, "", func(key, _ string, _ uint32, n row.Count) bool {
		rows[key] = n
		return true
	})
	if err != nil {
		return nil, math.MaxUint64 // a version of no table
	}
	return rows, version
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// readOutdated searches the disk for records that a Force has replaced, while that is cheap.
func (f *Frontier) readOutdated() {
	for range 2 * sweepAtMost {
		f.mu.Lock()
		t := &f.core.Timed
		cheap := f.opts.Spill != nil && !f.closed && (f.notes.Unswept() || f.notes.Sweeping()) && t.Len() > 0 && t.Len() <= sweepAtMost
		f.mu.Unlock()
		if !cheap || !f.readTimed(true) {
			break
		}
	}
	f.mu.Lock() // another reader may have found them
	wait := len(f.core.Found)+len(f.core.Finding) > 0
	f.mu.Unlock()
	if wait {
		_ = f.ledger.Between(func() error { return nil }) // a failure is the commit's to report
	}
}
