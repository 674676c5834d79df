// This file brings blocks back at an opening. They are not read.

package timed

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
)

// Restored are blocks found on opening, until all their finished records are known.
type Restored struct {
	t      *Blocks
	blocks []timeheap.Item // by number; in Aux how many records are live
}

// Restore begins to bring blocks back.
func (t *Blocks) Restore() Restored { return Restored{t: t} }

// Block adds a block whose first record is due at a date. Blocks come in the order of their numbers.
func (r *Restored) Block(b storage.TimedBlock, at int64) error {
	if b.Block == 0 || b.Count < 1 || b.Count > storage.MaxTimed || b.Priority < 1 {
		return &storage.CorruptError{Err: fmt.Errorf("timed block %d has %d records of priority up to %d", b.Block, b.Count, b.Priority)}
	}
	if n := len(r.blocks); n > 0 && r.blocks[n-1].ID >= b.Block {
		return fmt.Errorf("timed block %d was given after block %d", b.Block, r.blocks[n-1].ID)
	}
	live := r.t.table.RestoreWhole(b.Block, b.Count)
	r.blocks = append(r.blocks, timeheap.Item{At: at, ID: b.Block, Aux: uint32(live)})
	return nil
}

// Finish finishes a record if it is in one of the blocks.
func (r *Restored) Finish(x storage.Completion) {
	i, ok := slices.BinarySearchFunc(r.blocks, x.Block, func(it timeheap.Item, id uint32) int { return cmp.Compare(it.ID, id) })
	if !ok || r.blocks[i].Aux == 0 {
		return
	}
	it := &r.blocks[i]
	if r.t.table.IsBuried(it.ID, int(x.Pos)) {
		return
	}
	r.t.table.Bury(it.ID, int(it.Aux), int(x.Pos))
	it.Aux--
}

// End adds the blocks to the order of due times, and returns the numbers of their live records:
// those that are due some day, and those that never are.
func (r *Restored) End() (due, never int64) {
	for _, it := range r.blocks {
		live, first := int(it.Aux), 0
		if live == 0 {
			continue
		}
		for r.t.table.IsBuried(it.ID, first) {
			first++
		}
		r.t.Add(Item(it.ID, it.At, first, live))
		if it.At == instant.Never {
			never += int64(live)
		} else {
			due += int64(live)
		}
	}
	r.blocks = nil
	return due, never
}
