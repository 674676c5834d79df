// This file takes away scheduled records that a deletion has left dead: those in
// memory by walking through the heap, those on disk by reading their blocks.

package frontier

import (
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
)

// scan is a walk from the end of the heap of scheduled records to its beginning.
// Items that were ahead of it and are moved behind it are kept to be looked at.
type scan struct {
	cursor int // items from here on were looked at
	missed []arena.Ref
}

// scheduledMoved notes that a scheduled record is at another place of the heap.
func (c *core) scheduledMoved(id uint32, i int) {
	r := c.record(arena.Ref(id))
	for _, s := range c.scans {
		if i >= s.cursor && int(r.next()) < s.cursor {
			s.missed = append(s.missed, arena.Ref(id))
		}
	}
	r.setNext(arena.Ref(i))
}

// nextScanned returns the place of an item that s has not looked at; less than 0 if
// there is none in this step. At the end of the walk ok is false.
func (c *core) nextScanned(s *scan) (i int, ok bool) {
	switch {
	case s.cursor < 0: // it begins
		s.cursor = c.scheduled.len()
		c.scans = append(c.scans, s)
	case s.cursor > c.scheduled.len():
		s.cursor = c.scheduled.len()
	case s.cursor > 0:
		s.cursor--
		return s.cursor, true
	case len(s.missed) > 0:
		ref := s.missed[len(s.missed)-1]
		s.missed = s.missed[:len(s.missed)-1]
		if i, there := c.scheduledAt(ref); there {
			return i, true
		}
	default:
		return -1, false
	}
	return -1, true
}

func (f *Frontier) endScan(s *scan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.core.scans = slices.DeleteFunc(f.core.scans, func(x *scan) bool { return x == s })
}

// sweepScheduled takes dead records out of the heap of scheduled ones.
func (f *Frontier) sweepScheduled(d *deletion) bool {
	c := f.core
	s := &scan{cursor: -1}
	defer f.endScan(s)
	return f.sweepInSteps(func(steps int) (done, wait bool) {
		for ; steps > 0; steps -= sweptRecord {
			i, more := c.nextScanned(s)
			if !more {
				return true, false
			}
			for i >= 0 && i < c.scheduled.len() && c.dropScheduled(i, f.last) { // another one takes its place
				steps -= sweptRecord
			}
		}
		return false, false
	})
}

// dropScheduled finishes item i of the heap of scheduled records if it is dead.
func (c *core) dropScheduled(i int, now int64) bool {
	it := c.scheduled.Items[i]
	d := c.doomOf(c.queues.at(it.aux))
	if d.seq < c.record(arena.Ref(it.id)).seq() {
		return false
	}
	c.unschedule(i)
	c.dropped(it, &d, now)
	return true
}

// dropped finishes a dead record that is scheduled no more.
func (c *core) dropped(it timeItem, d *doom, now int64) {
	c.stats.Deleted++
	d.by.removed++
	c.finished(arena.Ref(it.id))
	id := c.queues.at(it.aux).host
	if h := c.hosts.at(id); h.scheduled == 0 && h.pins == 0 && h.place == nowhere {
		c.settle(id, now)
	}
}

// burial is the reading of timed blocks, ahead of their time, for the sake of the
// dead in them. What it misses is found when its time comes.
//
// The zero value is none.
type burial struct {
	through uint32   // blocks up to this number are read; 0: none
	cursor  uint32   // items from this number on were looked at
	found   bool     // a block, in this walk through them
	seen    []uint64 // a bit for each block
}

// burialAtOnce is how many timed blocks are looked at under one lock.
const burialAtOnce = 4096

// begin has all unread blocks read that have a number up to through.
func (b *burial) begin(through uint32, u *unreadBlocks) {
	if u.len() > 0 && through > 0 {
		*b = burial{through: max(b.through, through), cursor: u.items.top + 1}
		b.seen = make([]uint64, b.through/64+1)
	}
}

// nextBurialLocked takes out the next timed block to be read; none if there was
// no time to find one, or there is none.
func (f *Frontier) nextBurialLocked() timeItem {
	b, t := &f.burial, &f.core.timed
	for n := 0; n < burialAtOnce && b.cursor > 1; n++ {
		b.cursor--
		id := t.unread.items.at(b.cursor).id
		if word, bit := id/64, uint64(1)<<(id%64); id != 0 && id <= b.through && b.seen[word]&bit == 0 {
			b.seen[word] |= bit
			b.found = true
			return t.unread.remove(b.cursor)
		}
	}
	switch {
	case b.cursor > 1:
	case b.found: // some may have come back behind the cursor
		b.cursor, b.found = t.unread.items.top+1, false
	default:
		*b = burial{}
	}
	return timeItem{}
}

// toBuryLocked reports whether a record of a timed block is finished: a Force has
// replaced it, or it was deleted.
func (f *Frontier) toBuryLocked(r *timedLoaded) bool {
	if f.supersededLocked(r) {
		return true
	}
	d := f.core.stored.of(bytesOf(r.Host), r.Crawl)
	if d.seq < r.Seq {
		return false
	}
	f.core.stats.Deleted++
	d.by.removed++
	return true
}
