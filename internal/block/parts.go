// This file records where on disk the records of a queue are that are not in memory.
//
// There are many times more parts than queues, and for most only the location is stored: further
// data about the others is in a separate table.

package block

import (
	"iter"
	"math/bits"

	"github.com/seed-7440039f/frontier/storage"
)

// part is a range of a block with records of one queue. It is untouched while all of its records
// may be read.
//
// Invariants: taken has a bit for each record that must not be read again, because it is in memory,
// leased or finished; done counts the finished ones; a part is chained while one of its records is
// not taken, and possibly longer.
type part struct {
	block uint32
	next  uint32 // in the chain; the last part links to the first
	state uint32
}

// touchedPart is a part with a taken record.
type touchedPart struct {
	taken uint32
	first uint16 // position in the block
	count uint8
	done  uint8
}

// A part's state includes partChained while it is chained. For a touched part it includes
// partTouched and the index in Table.touched; otherwise its first position and, times partCount,
// its count minus one.
const (
	partTouched = 1 << 31
	partChained = 1 << 30
	partNumber  = partChained - 1
	partCount   = 1 << 16
)

func (p *part) touched() bool { return p.state&partTouched != 0 }
func (p *part) chained() bool { return p.state&partChained != 0 }

// AddPart adds a part that was written or found on opening, and returns its number. It is not
// chained, and none of its records is taken.
func (t *Table) AddPart(p storage.Part) uint32 {
	t.blocks.add(p.Block).addLive(int(p.Count))
	t.Made(p.Block)
	return t.NewPart(p)
}

// NewPart is AddPart for records that the block counts already.
func (t *Table) NewPart(p storage.Part) uint32 {
	id := t.parts.Alloc()
	*t.parts.At(id) = part{block: p.Block, state: uint32(p.Count-1)*partCount | uint32(p.First)}
	return id
}

// RestorePart is AddPart for a part found on opening: its block may have finished records, which
// were passed to RestoreDead.
func (t *Table) RestorePart(p storage.Part) uint32 {
	id := t.AddPart(p)
	x, b := t.parts.At(id), t.blocks.at(p.Block)
	for i := range int(p.Count) {
		if t.isDead(b, int(p.First)+i) {
			d := t.touchPart(x)
			d.taken |= 1 << i
			d.done++
			b.addLive(-1)
		}
	}
	return id
}

// Part returns the location of a part, which may have ended.
func (t *Table) Part(id uint32) storage.Part {
	p := t.parts.At(id)
	d := t.detail(p)
	return storage.Part{Block: p.block, First: d.first, Count: d.count}
}

// Unread returns a bit for each record of a part that may be read.
func (t *Table) Unread(id uint32) uint32 { return t.unread(t.parts.At(id)) }

func (t *Table) unread(p *part) uint32 {
	d := t.detail(p)
	return d.all() &^ d.taken
}

// Take notes that records of a part must not be read.
func (t *Table) Take(id uint32, which uint32) {
	if which != 0 {
		t.touchPart(t.parts.At(id)).taken |= which
	}
}

// Untake makes a taken record of a part readable again.
func (t *Table) Untake(id uint32, pos int) {
	p := t.parts.At(id)
	d := t.touchPart(p)
	if d.taken &^= 1 << pos; d.taken == 0 {
		t.leave(p)
	}
}

// Kill marks a record of a part as finished.
func (t *Table) Kill(id uint32, pos int) {
	p := t.parts.At(id)
	d := t.touchPart(p)
	t.setDead(t.blocks.at(p.block), int(d.first)+pos)
	d.taken |= 1 << pos
	d.done++
	t.died(p.block, 1)
	t.tidy(id)
}

// KillUnread marks all readable records of a part as finished, and returns their number. The part
// is chained.
func (t *Table) KillUnread(id uint32) int {
	p := t.parts.At(id)
	left := t.unread(p)
	n := bits.OnesCount32(left)
	if n == 0 {
		return 0
	}
	d, b := t.touchPart(p), t.blocks.at(p.block)
	if b.live() > n { // else the block ends
		for m := left; m != 0; m &= m - 1 {
			t.setDead(b, int(d.first)+bits.TrailingZeros32(m))
		}
	}
	d.taken |= left
	d.done += uint8(n)
	t.died(p.block, n)
	return n
}

// detail returns the data of a part, touched or not.
func (t *Table) detail(p *part) touchedPart {
	if p.touched() {
		return *t.touched.At(p.state & partNumber)
	}
	return touchedPart{first: uint16(p.state), count: uint8(p.state&partNumber/partCount) + 1}
}

// all returns a bit for each record.
func (t *touchedPart) all() uint32 { return uint32(uint64(1)<<t.count - 1) }

// touchPart returns the data of a part for modification. If the part has no taken record
// afterwards, call leave.
func (t *Table) touchPart(p *part) *touchedPart {
	if !p.touched() {
		id := t.touched.Alloc()
		*t.touched.At(id) = t.detail(p)
		p.state = p.state&partChained | partTouched | id
	}
	return t.touched.At(p.state & partNumber)
}

// leave reverts touchPart for a part without taken records.
func (t *Table) leave(p *part) {
	id := p.state & partNumber
	d := *t.touched.At(id)
	t.touched.Release(id)
	p.state = p.state&partChained | uint32(d.count-1)*partCount | uint32(d.first)
}

// tidy frees a part that is no longer needed.
func (t *Table) tidy(id uint32) {
	p := t.parts.At(id)
	if d := t.detail(p); d.done == d.count && !p.chained() {
		t.touched.Release(p.state & partNumber)
		t.parts.Release(id)
	}
}

// Chain is a list of parts in the order in which they are read. Its value is the number of the last
// part, which links to the first; 0 is the empty chain.
type Chain uint32

// First returns the first part of a chain that is not empty.
func (t *Table) First(c Chain) uint32 { return t.parts.At(uint32(c)).next }

// Next returns the part after one of a chain; after the last it returns the first.
func (t *Table) Next(id uint32) uint32 { return t.parts.At(id).next }

// Chained reports whether a part, which may have ended, is in a chain.
func (t *Table) Chained(id uint32) bool { return t.parts.At(id).chained() }

// Append appends a part to a chain.
func (t *Table) Append(c *Chain, id uint32) {
	p := t.parts.At(id)
	p.next, p.state = id, p.state|partChained
	t.Join(c, Chain(id))
}

// Join appends another chain, which is not empty, to a chain.
func (t *Table) Join(c *Chain, other Chain) {
	if *c != 0 {
		a, b := t.parts.At(uint32(*c)), t.parts.At(uint32(other))
		a.next, b.next = b.next, a.next
	}
	*c = other
}

// Unchain removes the first part from a chain.
func (t *Table) Unchain(c *Chain) {
	last := t.parts.At(uint32(*c))
	id := last.next
	p := t.parts.At(id)
	if last.next = p.next; id == uint32(*c) {
		*c = 0
	}
	p.next, p.state = 0, p.state&^partChained
	t.tidy(id)
}

// NextUnread returns the first part of a chain with unread records, and which records these are; 0
// if there is none. It removes the parts before it from the chain.
func (t *Table) NextUnread(c *Chain) (id, which uint32) {
	for *c != 0 {
		id := t.First(*c)
		if which := t.Unread(id); which != 0 {
			return id, which
		}
		t.Unchain(c)
	}
	return 0, 0
}

// All yields the parts of a chain, the first first.
func (t *Table) All(c Chain) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if c == 0 {
			return
		}
		for id := t.First(c); yield(id) && id != uint32(c); {
			id = t.Next(id)
		}
	}
}

// Parts returns an upper bound of part numbers, including parts that have ended.
func (t *Table) Parts() int { return int(t.parts.Top) }
