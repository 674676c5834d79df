// This file keeps notes that records on disk are outdated: a URL that waits for its time
// there was replaced, without a look at where.

package timed

import (
	"iter"

	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
)

// note means that only records of a URL from seq on count. Timed blocks up to a number may hold an
// older one.
type note struct {
	seq   uint64
	block uint32
}

// Notes are notes by the marks of the URLs.
//
// The zero value is empty. Not safe for concurrent use.
type Notes struct {
	at    map[storage.Mark]note
	stale []storage.Mark // dropped, but their rows are still on disk
	swept bool           // no note is younger than the last sweep
	sweep []uint32       // blocks that it has not seen yet
}

// noteBytes is the memory of a note.
const noteBytes = 64

// StaleAtOnce is how many rows of dropped notes are deleted in one commit.
const StaleAtOnce = 10_000

// Set records that only records of a URL from seq on count. A timed block up to a number may hold
// an older one.
func (n *Notes) Set(m storage.Mark, seq uint64, block uint32) {
	if n.at == nil {
		n.at = map[storage.Mark]note{}
	}
	n.at[m] = note{seq, block}
	n.swept = false
}

// Outdated reports whether a record of a URL is outdated.
func (n *Notes) Outdated(m storage.Mark, seq uint64) bool {
	if len(n.at) == 0 {
		return false
	}
	x, ok := n.at[m]
	return ok && seq < x.seq
}

// Len is how many notes there are.
func (n *Notes) Len() int { return len(n.at) }

// All yields the notes, each with the highest number of a block that may hold an outdated record.
// Notes may be added and removed meanwhile.
func (n *Notes) All() iter.Seq2[storage.Mark, uint32] {
	return func(yield func(storage.Mark, uint32) bool) {
		for m, x := range n.at {
			if !yield(m, x.block) {
				return
			}
		}
	}
}

// Drop forgets the given notes that concern only blocks below a number.
func (n *Notes) Drop(ms []storage.Mark, oldest uint32) {
	for _, m := range ms {
		if x, ok := n.at[m]; ok && x.block < oldest {
			delete(n.at, m)
			n.stale = append(n.stale, m)
		}
	}
}

// TakeStale returns some dropped notes whose rows must be deleted, skipping URLs that have a new
// note.
func (n *Notes) TakeStale() (ms []storage.Mark, rows []storage.Row) {
	ms = n.stale[:min(len(n.stale), StaleAtOnce)]
	for _, m := range ms {
		if _, ok := n.at[m]; !ok {
			rows = append(rows, storage.Row{Key: row.MarkKey(row.OutdatedKey, m)})
		}
	}
	n.stale = append([]storage.Mark(nil), n.stale[len(ms):]...)
	return ms, rows
}

// PutStale undoes TakeStale.
func (n *Notes) PutStale(ms []storage.Mark) { n.stale = append(ms, n.stale...) }

// Sweeping reports whether a sweep is in progress, which BeginSweep continues.
func (n *Notes) Sweeping() bool { return len(n.sweep) > 0 }

// Unswept reports whether there are notes, and some are younger than the last sweep.
func (n *Notes) Unswept() bool { return !n.swept && len(n.at) > 0 }

// BeginSweep begins to read the next block to be searched for outdated records. It returns the zero
// item if the block was read meanwhile.
func (n *Notes) BeginSweep(t *Blocks) timeheap.Item {
	if !n.swept {
		n.swept, n.sweep = true, nil
		u := &t.unread
		for i := range u.items.All(u.root) {
			n.sweep = append(n.sweep, u.items.At(i).ID)
		}
	}
	id := n.sweep[len(n.sweep)-1]
	n.sweep = n.sweep[:len(n.sweep)-1]
	return t.BeginBlock(id)
}

// Size returns the memory in bytes.
func (n *Notes) Size() int64 { return int64(len(n.at))*noteBytes + int64(cap(n.stale))*12 }
