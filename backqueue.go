// This file holds the queues of URLs, each of one host, crawl and priority.
//
// A queue is a FIFO in three stretches: front, records in memory; chain, parts
// of blocks on disk; back, records in memory that came after. A record may be
// in memory and in a block at once: then the block's copy is marked taken, and
// dropping the one in memory (evict) only clears the mark. The queues of a bound
// host together are its back queue.

package frontier

import (
	"math/bits"

	"github.com/seed-7440039f/frontier/internal/arena"
)

// queue is the FIFO of one host, crawl and priority.
type queue struct {
	host       uint32
	sibling    uint32 // next queue of the host
	prev, next uint32 // in the front queue or ready list
	front      stretch
	back       stretch
	chain      uint32 // first part on disk
	chainLast  uint32
	waiting    int32
	crawl      uint32
	priority   uint8
	listed     bool // in core.fresh
}

// stretch is a singly linked FIFO of resident records.
type stretch struct{ first, last arena.Ref }

// part is a range of a block with records of one queue.
//
// Invariants: taken has a bit for each record that must not be read again,
// because it is in memory, leased or finished; done counts the finished ones; a
// part is chained while one of its records is not taken, and perhaps longer.
type part struct {
	block uint32
	next  uint32 // in the chain
	taken uint32
	first uint16
	state uint16 // see partDone
}

// A part's state is its count, times partCount; how many of its records are
// finished, times partDone; and partChained while it is chained.
const (
	partCount   = 1
	partDone    = 1 << 6
	partChained = 1 << 12
)

func (p *part) count() int    { return int(p.state / partCount % 64) }
func (p *part) done() int     { return int(p.state / partDone % 64) }
func (p *part) chained() bool { return p.state&partChained != 0 }

// all has a bit for each record.
func (p *part) all() uint32 { return uint32(uint64(1)<<p.count() - 1) }

// chain notes that the part is chained, and which comes after it.
func (p *part) chain(next uint32) {
	p.next = next
	p.state |= partChained
}

// queueOf returns the queue of a host, of a new record if there is none.
func (c *core) queueOf(hid uint32, crawl uint32, priority uint8) uint32 {
	h := c.hosts.at(hid)
	link := &h.queues
	for *link != 0 {
		q := c.queues.at(*link)
		if q.priority == priority && q.crawl == crawl {
			return *link
		}
		if q.priority < priority || q.priority == priority && q.crawl > crawl {
			break
		}
		link = &q.sibling
	}
	id := c.queues.alloc()
	q := c.queues.at(id)
	q.host, q.crawl, q.priority, q.sibling = hid, crawl, priority, *link
	*link = id
	return id
}

func (c *core) stretchPush(s *stretch, ref arena.Ref) {
	c.record(ref).setNext(0)
	if s.last != 0 {
		c.record(s.last).setNext(ref)
	} else {
		s.first = ref
	}
	s.last = ref
}

func (c *core) stretchPop(s *stretch) arena.Ref {
	ref := s.first
	s.first = c.record(ref).next()
	if s.first == 0 {
		s.last = 0
	}
	return ref
}

// counted notes that n URLs joined (or, negative, left) a queue.
func (c *core) counted(q *queue, n int) {
	q.waiting += int32(n)
	c.hosts.at(q.host).waiting += int32(n)
	c.stats.Waiting += int64(n)
	c.stats.WaitingBy[q.priority-1] += int64(n)
}

// pushTail appends a record to a queue and lets its host have it.
func (c *core) pushTail(qid uint32, ref arena.Ref, now int64) {
	q := c.queues.at(qid)
	c.stretchPush(&q.back, ref)
	if c.record(ref).part() == 0 {
		c.list(qid)
	}
	c.counted(q, 1)
	c.filled(qid, now)
}

// list notes that a queue has a record that needs a home in a block. It stays
// listed until a round has been there.
func (c *core) list(qid uint32) {
	if q := c.queues.at(qid); c.cfg.spill && !q.listed {
		q.listed = true
		c.fresh = append(c.fresh, qid)
	}
}

// returnHead puts a record back where pop took it from. Its host is in no
// structure, and must be settled.
func (c *core) returnHead(qid uint32, ref arena.Ref) {
	q := c.queues.at(qid)
	c.record(ref).setNext(q.front.first)
	q.front.first = ref
	if q.front.last == 0 {
		q.front.last = ref
	}
	c.counted(q, 1)
}

// filled puts a queue that got a URL, and its host, where they belong.
func (c *core) filled(qid uint32, now int64) {
	q := c.queues.at(qid)
	h := c.hosts.at(q.host)
	switch h.place {
	case nowhere, idling, departing:
		c.detach(q.host)
		c.settle(q.host, now)
	case unbound:
		if q.waiting == 1 {
			c.enlist(&c.tokens, qid)
		}
	case ready:
		if q.waiting == 1 {
			c.enlist(&c.readies, qid)
		}
	}
}

// pop takes the next record, which is in memory.
func (c *core) pop(q *queue) arena.Ref {
	if q.front.first == 0 {
		q.front, q.back = q.back, stretch{}
	}
	c.counted(q, -1)
	return c.stretchPop(&q.front)
}

// nextPart returns the first part of the chain that holds unread records, and
// which; 0 if there is none.
func (c *core) nextPart(q *queue) (uint32, uint32) {
	for q.chain != 0 {
		p := c.parts.at(q.chain)
		if want := p.all() &^ p.taken; want != 0 {
			return q.chain, want
		}
		c.unchain(q)
	}
	return 0, 0
}

// unchain removes the first part of the chain.
func (c *core) unchain(q *queue) {
	id := q.chain
	p := c.parts.at(id)
	q.chain = p.next
	if q.chain == 0 {
		q.chainLast = 0
	}
	p.next, p.state = 0, p.state&^partChained
	c.tidy(id)
}

// tidy releases a part that is of no use any more.
func (c *core) tidy(id uint32) {
	if p := c.parts.at(id); p.done() == p.count() && !p.chained() {
		c.parts.release(id)
	}
}

func (c *core) chainLast(q *queue, id uint32) {
	p := c.parts.at(id)
	p.chain(0)
	if q.chainLast != 0 {
		c.parts.at(q.chainLast).next = id
	} else {
		q.chain = id
	}
	q.chainLast = id
}

// install puts records that were read from the chain's first part into the
// front stretch, which is empty.
func (c *core) install(qid, pid uint32, records []loaded) {
	q, p := c.queues.at(qid), c.parts.at(pid)
	for _, r := range records {
		if p.taken&(1<<r.pos) != 0 {
			continue // taken by a Force meanwhile
		}
		ref := c.store(r.seq, r.body)
		c.setHome(ref, pid, r.pos)
		p.taken |= 1 << r.pos
		c.stretchPush(&q.front, ref)
	}
	if q.chain == pid && p.taken == p.all() {
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
	n := bits.OnesCount32(p.all() &^ p.taken)
	p.taken = p.all()
	c.counted(q, -n)
	c.stats.Unreadable += int64(n)
	c.nextPart(q)
}

// evict drops from memory what can be read from blocks again: the end of the
// front stretch and the beginning of the back stretch. It does so only when
// memory is wanted.
func (c *core) evict(qid uint32) {
	if c.cfg.spill && c.resident > c.cfg.evictOver {
		c.evictFront(qid)
		c.evictBack(qid, false)
	}
}

// trim evicts what an unbound host need not keep.
func (c *core) trim(qid uint32) {
	switch c.hosts.at(c.queues.at(qid).host).place {
	case unbound, parked:
		c.evict(qid)
	}
}

func (c *core) evictFront(qid uint32) {
	q := c.queues.at(qid)
	if q.front.last == 0 || c.record(q.front.last).part() == 0 {
		return // nothing, or the last must stay with all before it
	}
	var keep arena.Ref // last record that must stay, with all before it
	for ref := q.front.first; ref != 0; ref = c.record(ref).next() {
		if c.record(ref).part() == 0 {
			keep = ref
		}
	}
	gone := stretch{q.front.first, q.front.last}
	if keep != 0 {
		gone.first = c.record(keep).next()
		c.record(keep).setNext(0)
		q.front.last = keep
	} else {
		q.front = stretch{}
	}
	if gone.first == 0 {
		return
	}
	rest, restLast := q.chain, q.chainLast
	q.chain, q.chainLast = 0, 0
	for gone.first != 0 {
		c.release(q, c.stretchPop(&gone))
	}
	if rest != 0 {
		if q.chainLast != 0 {
			c.parts.at(q.chainLast).next = rest
		} else {
			q.chain = rest
		}
		q.chainLast = restLast
	}
}

// evictBack evicts the back stretch up to the first record that is not in a
// block. With bound set the front stretch gets the first part's records instead
// if it has none, so that the next hand-out needs no disk.
func (c *core) evictBack(qid uint32, bound bool) {
	q := c.queues.at(qid)
	if bound && q.front.first == 0 && q.chain == 0 {
		for n := 0; q.back.first != 0 && n < MaxPart; n++ {
			c.stretchPush(&q.front, c.stretchPop(&q.back))
		}
	}
	for q.back.first != 0 && c.record(q.back.first).part() != 0 {
		c.release(q, c.stretchPop(&q.back))
	}
}

// release frees the memory of a waiting record that lies in a block too, whose
// part joins the end of the chain unless it is in it.
func (c *core) release(q *queue, ref arena.Ref) {
	r := c.record(ref)
	id := r.part()
	p := c.parts.at(id)
	p.taken &^= 1 << r.pos()
	if !p.chained() {
		c.chainLast(q, id)
	}
	c.discard(ref)
}

// finished notes that a record is durably done with, and frees its memory.
func (c *core) finished(ref arena.Ref) {
	r := c.record(ref)
	if id := r.part(); id != 0 {
		c.kill(id, r.pos())
	}
	c.discard(ref)
}

// kill marks a record in a block as finished.
func (c *core) kill(pid uint32, pos int) {
	p := c.parts.at(pid)
	c.setDead(c.blocks.at(p.block), int(p.first)+pos)
	p.taken |= 1 << pos
	p.state += partDone
	c.died(p.block)
	c.tidy(pid)
}

// died notes that one more record of a block is marked as finished.
func (c *core) died(id uint32) {
	b := c.blocks.at(id)
	b.addLive(-1)
	switch {
	case b.live() == 0:
		c.forgetBlock(id)
		c.drops = append(c.drops, id)
	case !b.dirty():
		b.setDirty()
		c.dirty = append(c.dirty, id)
	}
}

// addPart records a part that Pack wrote or Recover found. It is not chained,
// and all of its records count as taken.
func (c *core) addPart(p Part) uint32 {
	c.blocks.add(p.Block).addLive(int(p.Count))
	return c.newPart(p)
}

// newPart is addPart for records that the block counts already.
func (c *core) newPart(p Part) uint32 {
	id := c.parts.alloc()
	x := c.parts.at(id)
	*x = part{block: p.Block, first: p.First, state: uint16(p.Count) * partCount}
	x.taken = x.all()
	return id
}
