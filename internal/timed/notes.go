// This file keeps notes that records on disk are outdated: a URL that waits for its time
// there was replaced, without a look at where.

package timed

import (
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
	young int            // notes since the last sweep began

	last    uint64 // the highest number of a note
	through uint64 // the same when the sweep began that is in progress; 0: it has missed a block
	seen    uint64 // no block holds an outdated record of a note up to this one
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
	n.last = max(n.last, seq)
	n.swept = false
	n.young++
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

// Seen says which blocks hold no outdated record: those below a number, and for notes up to a number
// all.
type Seen struct {
	below uint32
	notes uint64
}

// Seen returns what has been read or swept by now.
func (n *Notes) Seen(t *Blocks) Seen { return Seen{t.Oldest(), n.seen} }

// over reports whether no block holds an outdated record of a URL with a note.
func (n *Notes) over(m storage.Mark, s Seen) bool {
	x, ok := n.at[m]
	return ok && (x.block < s.below || x.seq <= s.notes)
}

// Over lists notes that say nothing of an unread block. Once a checkpoint has made durable which records are
// finished they may go. It calls yield between some; notes may be added and removed meanwhile.
func (n *Notes) Over(t *Blocks, yield func()) (ms []storage.Mark, seen Seen) {
	seen = n.Seen(t)
	looked := 0
	for m := range n.at {
		if looked++; looked%1024 == 0 {
			yield()
		}
		if n.over(m, seen) {
			if ms = append(ms, m); len(ms) == StaleAtOnce {
				break
			}
		}
	}
	return ms, seen
}

// Drop forgets the given notes if they are over.
func (n *Notes) Drop(ms []storage.Mark, s Seen) {
	for _, m := range ms {
		if n.over(m, s) {
			delete(n.at, m)
			n.stale = append(n.stale, m)
		}
	}
}

// TakeStale returns some dropped notes whose rows must be deleted, skipping URLs that have a new note.
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

// Young is how many notes were added since the last sweep began.
func (n *Notes) Young() int { return n.young }

// SweepFailed records that a block cannot be read.
func (n *Notes) SweepFailed() { n.through = 0 }

// Unswept reports whether there are notes, and some are younger than the last sweep.
func (n *Notes) Unswept() bool { return !n.swept && len(n.at) > 0 }

// BeginSweep begins to read the next block to be searched for outdated records. It returns the zero
// item if the block was read meanwhile.
func (n *Notes) BeginSweep(t *Blocks) timeheap.Item {
	if len(n.sweep) == 0 {
		n.swept, n.sweep, n.young, n.through = true, nil, 0, n.last
		u := &t.unread
		for i := range u.items.All(u.root) {
			n.sweep = append(n.sweep, u.items.At(i).ID)
		}
	}
	id := n.sweep[len(n.sweep)-1]
	n.sweep = n.sweep[:len(n.sweep)-1]
	return t.BeginBlock(id)
}

// Swept ends a sweep if it has seen all blocks. No block is being read.
func (n *Notes) Swept(t *Blocks) {
	if len(n.sweep) == 0 && len(t.lost) == 0 {
		n.seen = max(n.seen, n.through)
	}
}

// Size returns the memory in bytes.
func (n *Notes) Size() int64 { return int64(len(n.at))*noteBytes + int64(cap(n.stale))*12 }
