// This file selects blocks to be read before they are due, or although they never are, to find the
// dead records in them.

package timed

import "github.com/seed-7440039f/frontier/internal/timeheap"

// purge is a walk through the unread blocks. What it misses is found when it is due.
//
// The zero value is none.
type purge struct {
	through uint32   // blocks up to this number are read; 0: none
	cursor  uint32   // items from this number on were looked at
	found   bool     // a block was found in this walk
	seen    []uint64 // a bit for each block
	failed  bool     // a block could not be read
	later   uint32   // blocks up to this number must still be read some time
	asked   int      // how often that was asked for
}

// purgeAtOnce is how many blocks BeginPurge looks at.
const purgeAtOnce = 4096

// purgeFor is for how many blocks that must be read a single host's deletion is worth it.
const purgeFor = 16

// PurgeLater is Purge once it has been asked for often enough that it is worth reading all blocks.
func (t *Blocks) PurgeLater(through uint32) {
	t.purged = false
	t.purge.later = max(t.purge.later, through)
	if t.purge.asked++; t.purge.asked*purgeFor >= t.unread.len() {
		t.PurgeNow()
	}
}

// Postponed reports whether PurgeLater has put a purge off.
func (t *Blocks) Postponed() bool { return t.purge.later > 0 }

// PurgeNow begins the purge that was put off.
func (t *Blocks) PurgeNow() { t.Purge(t.purge.later) }

// Purge makes BeginPurge return all unread blocks with numbers up to through.
func (t *Blocks) Purge(through uint32) {
	t.purged = false
	if t.unread.len() == 0 {
		t.purge.later, t.purge.asked = 0, 0 // nothing is left of what they were for
	} else if through > 0 {
		t.purge = purge{through: max(t.purge.through, t.purge.later, through), cursor: t.unread.items.Top + 1}
		t.purge.seen = make([]uint64, t.purge.through/64+1)
	}
}

// Purging reports whether BeginPurge must search for blocks.
func (t *Blocks) Purging() bool { return t.purge.through > 0 }

// Purged reports whether a purge has come to its end since the last call of Purge, and has missed no
// block.
func (t *Blocks) Purged() bool { return t.purged }

// PurgeFailed records that a block cannot be read.
func (t *Blocks) PurgeFailed() { t.purge.failed = true }

// BeginPurge is Begin for the next block of a purge. It returns the zero item if it found none in
// this step, or there is none.
func (t *Blocks) BeginPurge() timeheap.Item {
	p := &t.purge
	for n := 0; n < purgeAtOnce && p.cursor > 1; n++ {
		p.cursor--
		id := t.unread.items.At(p.cursor).ID
		if word, bit := id/64, uint64(1)<<(id%64); id != 0 && id <= p.through && p.seen[word]&bit == 0 {
			p.seen[word] |= bit
			p.found = true
			t.reading = t.unread.remove(p.cursor)
			return t.reading
		}
	}
	switch {
	case p.cursor > 1:
	case p.found: // some may have been added behind the cursor
		p.cursor, p.found = t.unread.items.Top+1, false
	default:
		t.purged = !p.failed && len(t.lost) == 0 && p.later == 0
		*p = purge{later: p.later, asked: p.asked}
	}
	return timeheap.Item{}
}
