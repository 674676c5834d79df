// This file holds the queues of URLs, each of one host, crawl and priority.
//
// A queue is a FIFO in three stretches: front, records in memory; chain, parts
// of blocks on disk; back, records in memory that came after. A record may be
// in memory and in a block at once: then the block's copy is marked taken, and
// dropping the one in memory (evict) only clears the mark: see parts.go. The
// queues of a bound host together are its back queue.

package frontier

import "github.com/seed-7440039f/frontier/internal/arena"

// queue is the FIFO of one host, crawl and priority.
type queue struct {
	host       uint32
	sibling    uint32 // next queue of the host
	prev, next uint32 // in the front queue or ready list
	front      stretch
	back       stretch
	chain      uint32 // last part on disk, and so the way to the first; 0: none
	waiting    int32
	crawl      uint32 // slot
	priority   uint8
	level      uint8 // of the lists that it is in
	listed     bool  // in core.fresh
}

// stretch is a singly linked FIFO of resident records.
type stretch struct{ first, last arena.Ref }

// queueOf returns the queue of a host, of a new record if there is none.
func (c *core) queueOf(hid uint32, crawl uint32, priority uint8) uint32 {
	h := c.hosts.at(hid)
	slot := c.slotOf(crawl)
	link := &h.queues
	for *link != 0 {
		q := c.queues.at(*link)
		if q.priority == priority && q.crawl == slot {
			return *link
		}
		if q.priority < priority || q.priority == priority && q.crawl > slot {
			break
		}
		link = &q.sibling
	}
	id := c.queues.alloc()
	q := c.queues.at(id)
	q.host, q.crawl, q.priority, q.sibling = hid, slot, priority, *link
	q.level = c.levelOf(h, priority)
	c.crawls[slot].queues++
	*link = id
	return id
}

// releaseQueue ends a queue that holds nothing and is in no list.
func (c *core) releaseQueue(id uint32) {
	slot := c.queues.at(id).crawl
	c.queues.release(id)
	delete(c.homed, id)
	c.crawls[slot].queues--
	c.restCrawl(slot)
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

// stretchPop takes the first record out. Its link names none: see inQueue.
func (c *core) stretchPop(s *stretch) arena.Ref {
	ref := s.first
	r := c.record(ref)
	if s.first = r.next(); s.first == 0 {
		s.last = 0
	}
	r.setNext(0)
	if c.walks != nil {
		c.leaves(ref, s.first)
	}
	return ref
}

// counted notes that n URLs joined (or, negative, left) a queue.
func (c *core) counted(q *queue, n int) {
	q.waiting += int32(n)
	h := c.hosts.at(q.host)
	if h.waiting += int32(n); c.sizes.asked() {
		c.sizes.changed(q.host, h.waiting)
	}
	x := c.crawlOf(q)
	if h.place == held {
		c.countHeld(x, h.pos, int64(n))
	}
	if !x.runs() {
		c.pausedURLs += int64(n)
		if x.hold == crawlLimited {
			c.limitedURLs += int64(n)
		}
	}
	if c.limits != nil && c.limits.domains > 0 {
		c.countDomains(q.host, int64(n))
	}
	x.stats.Waiting += int64(n)
	if c.stats.Waiting += int64(n); q.level == c.immediate() {
		c.stats.Immediate += int64(n)
		x.stats.Immediate += int64(n)
	} else {
		c.stats.WaitingBy[q.level-1] += int64(n)
		x.stats.WaitingBy[q.level-1] += int64(n)
	}
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
// structure or leased, or filled must follow.
func (c *core) returnHead(qid uint32, ref arena.Ref) {
	q := c.queues.at(qid)
	r := c.record(ref)
	if r.part() == 0 { // before others that have a home
		delete(c.homed, qid)
		c.homingBroken = c.homingBroken || c.homing == qid
	}
	r.setNext(q.front.first)
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
			c.enlist(tokens, qid)
		}
	case queued:
		c.hurry(q.host, now)
	case ready:
		if q.waiting == 1 {
			c.enlist(readies, qid)
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

// evictAtOnce is how many records of a back stretch leave memory under one lock.
const evictAtOnce = 1024

// evict drops from memory what can be read from blocks again: the end of the
// front stretch and the beginning of the back stretch. It does so only when
// memory is wanted. It reports whether there is more than was dropped at once: the
// next round of moving gets there.
func (c *core) evict(qid uint32) (more bool) {
	if c.cfg.spill && c.resident > c.cfg.evictOver && !c.walked(c.queues.at(qid).host) {
		c.evictFront(qid)
		return c.evictBack(qid, false)
	}
	return false
}

// trim evicts what need not be in memory of a queue that grew: all of an unbound
// host, of a bound one all but the next few. It does so only when memory is
// wanted, and reports whether there is more.
func (c *core) trim(qid uint32) (more bool) {
	switch c.hosts.at(c.queues.at(qid).host).place {
	case unbound, parked, held, dying:
		return c.evict(qid)
	case pacing, queued, ready, leased, loading:
		if c.cfg.spill && c.resident > c.cfg.evictOver && !c.walked(c.queues.at(qid).host) {
			return c.evictBack(qid, true)
		}
	}
	return false
}

func (c *core) evictFront(qid uint32) {
	q := c.queues.at(qid)
	if q.front.last == 0 || c.record(q.front.last).part() == 0 {
		return // nothing, or the last must stay with all before it
	}
	if q.chain == 0 { // the front can be evicted like the back, some at a time
		if q.back.first != 0 {
			c.record(q.front.last).setNext(q.back.first)
			q.front.last = q.back.last
		}
		q.front, q.back = stretch{}, q.front
		return
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
	rest := q.chain
	q.chain = 0
	for gone.first != 0 {
		c.release(q, c.stretchPop(&gone))
	}
	if rest != 0 {
		c.chainAll(q, rest)
	}
}

// evictBack evicts the back stretch up to the first record that is not in a
// block, some of it at once, and reports whether there is more. With bound set the front stretch gets the first part's records instead
// if it has none, so that the next hand-out needs no disk.
func (c *core) evictBack(qid uint32, bound bool) (more bool) {
	q := c.queues.at(qid)
	if bound && q.front.first == 0 && q.chain == 0 {
		for n := 0; q.back.first != 0 && n < MaxPart; n++ {
			c.stretchPush(&q.front, c.stretchPop(&q.back))
		}
	}
	for n := 0; q.back.first != 0 && c.record(q.back.first).part() != 0; n++ {
		if n == evictAtOnce {
			return true
		}
		c.release(q, c.stretchPop(&q.back))
	}
	return false
}

// release frees the memory of a waiting record that lies in a block too, whose
// part joins the end of the chain unless it is in it.
func (c *core) release(q *queue, ref arena.Ref) {
	r := c.record(ref)
	id := r.part()
	p := c.parts.at(id)
	c.untake(p, r.pos())
	if !p.chained() {
		c.chainPart(q, id)
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
