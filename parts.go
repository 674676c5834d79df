// This file knows where on disk the records of a queue lie that are not in memory.
//
// There are many times more parts than queues, and of most nothing must be known
// but where they are: what differs for the others is kept apart.

package frontier

import (
	"iter"
	"math/bits"
)

// part is a range of a block with records of one queue. It is untouched while all
// of its records may be read.
//
// Invariants: taken has a bit for each record that must not be read again,
// because it is in memory, leased or finished; done counts the finished ones; a
// part is chained while one of its records is not taken, and perhaps longer.
type part struct {
	block uint32
	next  uint32 // in the chain; after the last comes the first
	state uint32
}

// touchedPart is a part of which a record is taken.
type touchedPart struct {
	taken uint32
	first uint16 // position in the block
	count uint8
	done  uint8
}

// A part's state has partChained while it is chained. Of a part that is touched
// it has partTouched and the number in core.touchedParts; of one that is not, its
// first position and, times partCount, one less than its count.
const (
	partTouched = 1 << 31
	partChained = 1 << 30
	partNumber  = partChained - 1
	partCount   = 1 << 16
)

func (p *part) touched() bool { return p.state&partTouched != 0 }
func (p *part) chained() bool { return p.state&partChained != 0 }

// detail is what is known of a part, whether it is touched or not.
func (c *core) detail(p *part) touchedPart {
	if p.touched() {
		return *c.touchedParts.at(p.state & partNumber)
	}
	return touchedPart{first: uint16(p.state), count: uint8(p.state&partNumber/partCount) + 1}
}

// all has a bit for each record.
func (t *touchedPart) all() uint32 { return uint32(uint64(1)<<t.count - 1) }

// unread has a bit for each record that may be read.
func (c *core) unread(p *part) uint32 {
	t := c.detail(p)
	return t.all() &^ t.taken
}

// touch returns what is known of a part, to be changed. One that has no record
// taken afterwards must be left.
func (c *core) touch(p *part) *touchedPart {
	if !p.touched() {
		id := c.touchedParts.alloc()
		*c.touchedParts.at(id) = c.detail(p)
		p.state = p.state&partChained | partTouched | id
	}
	return c.touchedParts.at(p.state & partNumber)
}

// leave ends touch for a part without taken records.
func (c *core) leave(p *part) {
	id := p.state & partNumber
	t := *c.touchedParts.at(id)
	c.touchedParts.release(id)
	p.state = p.state&partChained | uint32(t.count-1)*partCount | uint32(t.first)
}

// take notes that records of a part must not be read.
func (c *core) take(p *part, which uint32) {
	if which != 0 {
		c.touch(p).taken |= which
	}
}

// untake notes that a record of a part may be read again.
func (c *core) untake(p *part, pos int) {
	t := c.touch(p)
	if t.taken &^= 1 << pos; t.taken == 0 {
		c.leave(p)
	}
}

// addPart records a part that Pack wrote or Recover found. It is not chained,
// and none of its records is taken.
func (c *core) addPart(p Part) uint32 {
	c.blocks.add(p.Block).addLive(int(p.Count))
	c.lastBlock = max(c.lastBlock, p.Block)
	return c.newPart(p)
}

// newPart is addPart for records that the block counts already.
func (c *core) newPart(p Part) uint32 {
	id := c.parts.alloc()
	*c.parts.at(id) = part{block: p.Block, state: uint32(p.Count-1)*partCount | uint32(p.First)}
	return id
}

// tidy releases a part that is of no use any more.
func (c *core) tidy(id uint32) {
	p := c.parts.at(id)
	if t := c.detail(p); t.done == t.count && !p.chained() {
		c.touchedParts.release(p.state & partNumber)
		c.parts.release(id)
	}
}

// kill marks a record in a block as finished.
func (c *core) kill(pid uint32, pos int) {
	p := c.parts.at(pid)
	t := c.touch(p)
	c.setDead(c.blocks.at(p.block), int(t.first)+pos)
	t.taken |= 1 << pos
	t.done++
	c.died(p.block)
	c.tidy(pid)
}

// died notes that one more record of a block is marked as finished.
func (c *core) died(id uint32) { c.diedMany(id, 1) }

func (c *core) diedMany(id uint32, n int) {
	b := c.blocks.at(id)
	if b.live() == n {
		c.forgetBlock(id)
		c.drops = append(c.drops, id)
		return
	}
	if b.addLive(-n); !b.dirty() {
		b.setDirty()
		c.dirty = append(c.dirty, id)
	}
}

// nextPart returns the first part of the chain that holds unread records, and
// which; 0 if there is none.
func (c *core) nextPart(q *queue) (uint32, uint32) {
	for q.chain != 0 {
		id := c.parts.at(q.chain).next
		if want := c.unread(c.parts.at(id)); want != 0 {
			return id, want
		}
		c.unchain(q)
	}
	return 0, 0
}

// unchain removes the first part of the chain.
func (c *core) unchain(q *queue) {
	last := c.parts.at(q.chain)
	id := last.next
	p := c.parts.at(id)
	if last.next = p.next; id == q.chain {
		q.chain = 0
	}
	p.next, p.state = 0, p.state&^partChained
	c.tidy(id)
}

// chainPart appends a part to the chain.
func (c *core) chainPart(q *queue, id uint32) {
	p := c.parts.at(id)
	p.next, p.state = id, p.state|partChained
	c.chainAll(q, id)
}

// chainAll appends another chain, which ends with part last.
func (c *core) chainAll(q *queue, last uint32) {
	if q.chain != 0 {
		a, b := c.parts.at(q.chain), c.parts.at(last)
		a.next, b.next = b.next, a.next
	}
	q.chain = last
}

// chain yields the parts of a queue's chain, the first first.
func (c *core) chain(q *queue) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if q.chain == 0 {
			return
		}
		for id := c.parts.at(q.chain).next; yield(id) && id != q.chain; {
			id = c.parts.at(id).next
		}
	}
}

// install puts records that were read from the chain's first part into the
// front stretch, which is empty.
func (c *core) install(qid, pid uint32, records []loaded) {
	q, p := c.queues.at(qid), c.parts.at(pid)
	for _, r := range records {
		if c.detail(p).taken&(1<<r.pos) != 0 {
			continue // taken by a Force meanwhile
		}
		ref := c.store(r.seq, r.body)
		c.setHome(ref, pid, r.pos)
		c.stretchPush(&q.front, ref)
	}
	if q.chain != 0 && c.parts.at(q.chain).next == pid && c.unread(p) == 0 {
		c.unchain(q)
	}
}

// loaded is a record read from a block.
type loaded struct {
	pos  int
	seq  uint64
	body []byte
}

// abandon gives up the chain's first part, which cannot be read. Its records
// stay on disk; they are not waiting any more.
func (c *core) abandon(qid, pid uint32) {
	q, p := c.queues.at(qid), c.parts.at(pid)
	left := c.unread(p)
	n := bits.OnesCount32(left)
	c.take(p, left)
	c.counted(q, -n)
	c.stats.Unreadable += int64(n)
	c.nextPart(q)
}
