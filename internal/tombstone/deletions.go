// This file has the deletions that are kept, and how far the sweep of each has come.

package tombstone

import (
	"slices"

	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

// Deletion is a tombstone that is being committed, or has a row, and what is known of its sweep.
type Deletion struct {
	Tombstone        // its number is 0 until it is being committed
	Tried     func() // called after each sweep, and when the frontier is closed
	Counted   bool   // no count is dead
	written   uint32 // block, as its row has it
	batch     uint64 // that it was committed with, or a later one

	swept bool // nothing dead is in memory but what leases and completions hold
	again bool // since the sweep began a dead record came back
}

// NewDeletion returns a deletion that is not in force yet.
func NewDeletion(d row.Deletion) *Deletion {
	return &Deletion{Tombstone: Tombstone{Deletion: d}, Tried: func() {}, written: d.Block}
}

// Number gives a deletion its sequence number, and the number of the last block.
func (d *Deletion) Number(seq uint64, block uint32) { d.Seq, d.Block, d.written = seq, block, block }

// Deletions is the deletions in force, and those that have a row: a row stays until nothing older is left
// on disk. The zero value is empty; Changed must be set before anything is in force.
type Deletions struct {
	InForce Set              // their dead records are in memory
	Stored  Set              // those that have a row
	Changed func(*Tombstone) // called when Revive or EndSweep has changed InForce

	list []*Deletion // these, oldest first
}

// Enact puts a deletion in force, up to a block, that was committed with a batch. stored says that it has
// a row.
func (l *Deletions) Enact(d *Deletion, block uint32, batch uint64, stored bool) {
	d.Block, d.batch = block, batch
	l.InForce.Add(&d.Tombstone)
	if stored {
		l.Stored.Add(&d.Tombstone)
		l.list = append(l.list, d)
	}
}

// All copies the list of those that have a row.
func (l *Deletions) All() []*Deletion { return slices.Clone(l.list) }

// EndSweep ends the sweep of a deletion: it is in force no more. If a dead record came back meanwhile it stays
// in force, EndSweep reports false, and another sweep must follow.
func (l *Deletions) EndSweep(d *Deletion) bool {
	if d.swept, d.again = !d.again, false; d.swept {
		l.InForce.Remove(&d.Tombstone)
		l.Changed(&d.Tombstone)
	}
	return d.swept
}

// Revive puts deletions in force again, since a record came back that they may concern. It returns those
// that must be swept; the others are being swept.
func (l *Deletions) Revive() (ds []*Deletion) {
	for _, d := range l.list {
		if d.again = !d.swept; d.swept {
			d.swept = false
			l.InForce.Add(&d.Tombstone)
			l.Changed(&d.Tombstone)
			ds = append(ds, d)
		}
	}
	return ds
}

// Outdated lists the deletions that are of no use once the checkpoint that ends the log at through is
// complete. over reports whether nothing is left of timed blocks up to one; counts says that URLs are
// counted.
func (l *Deletions) Outdated(through uint64, counts bool, over func(block uint32) bool) (out []*Deletion) {
	for _, d := range l.list {
		if d.swept && (d.Counted || !counts) && d.batch <= through && over(d.Block) {
			out = append(out, d)
		}
	}
	return out
}

// Rows returns the rows that must say more, now that blocks become valid that were made when a deletion
// came.
func (l *Deletions) Rows() (rows []storage.Row) {
	for _, d := range l.list {
		if d.written != d.Block {
			rows = append(rows, d.Row())
		}
	}
	return rows
}

// Written notes that these are on disk.
func (l *Deletions) Written() {
	for _, d := range l.list {
		d.written = d.Block
	}
}

// Drop drops deletions whose rows were deleted, in the order of Outdated.
func (l *Deletions) Drop(ds []*Deletion) {
	l.list = slices.DeleteFunc(l.list, func(d *Deletion) bool {
		gone := len(ds) > 0 && ds[0] == d
		if gone {
			l.Stored.Remove(&d.Tombstone)
			ds = ds[1:]
		}
		return gone
	})
}

// Check calls bad with each violation: seq and block are the last numbers. It returns the deletions that
// were swept.
func (l *Deletions) Check(seq uint64, block uint32, bad func(format string, args ...any)) (swept Set) {
	for _, d := range l.list {
		if d.Seq == 0 || d.Seq > seq || d.Block > block {
			bad("F7: deletion %d of %d is of blocks up to %d of %d", d.Seq, seq, d.Block, block)
		}
		if d.swept {
			swept.Add(&d.Tombstone)
		}
	}
	if l.Stored.Len() != len(l.list) {
		bad("F6: %d deletions have rows, counted %d", len(l.list), l.Stored.Len())
	}
	return swept
}
