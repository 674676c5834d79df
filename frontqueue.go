// This file holds the front queues, which implement priority.
//
// Front queue f is a FIFO of host tokens: each unbound host with waiting URLs of
// priority f has exactly one in it. The URLs themselves wait in the host's own
// queues, so that a host with a million of them weighs no more here than one
// with two. Ready lists have the same shape: in list f waits each bound host
// that may be contacted now and has URLs of priority f. A host's queue is in at
// most one list at a time, so both are linked through the queue itself. Each
// crawl has its own: see crawltable.go.

package frontier

// list is a doubly linked FIFO of queues. The zero value is empty.
type list struct {
	first, last uint32
	n           int
}

func (c *core) listPush(l *list, id uint32) {
	q := c.queues.at(id)
	q.prev, q.next = l.last, 0
	if l.last != 0 {
		c.queues.at(l.last).next = id
	} else {
		l.first = id
	}
	l.last = id
	l.n++
}

func (c *core) listRemove(l *list, id uint32) {
	q := c.queues.at(id)
	if q.prev != 0 {
		c.queues.at(q.prev).next = q.next
	} else {
		l.first = q.next
	}
	if q.next != 0 {
		c.queues.at(q.next).prev = q.prev
	} else {
		l.last = q.prev
	}
	q.prev, q.next = 0, 0
	l.n--
}

// lanes are a crawl's lists of all levels, and which of them are not empty.
type lanes struct {
	at   []list // by level: 1 to F, and that of Immediate; the first is not used
	mask uint64 // bit p-1: at[p] is not empty, for 1 to F
}

// tokens and readies are the two kinds of lists in crawl.lists.
const (
	tokens  = iota // front queues
	readies        // ready lists
)

// enlist appends a queue to the list of its crawl and level.
func (c *core) enlist(kind int, id uint32) {
	q := c.queues.at(id)
	x, p := c.crawlOf(q), q.level
	l := &x.lists[kind]
	c.listPush(&l.at[p], id)
	if l.at[p].n == 1 {
		if int(p) <= c.cfg.levels {
			l.mask |= 1 << (p - 1)
		}
		c.offer(q.crawl, x)
	}
}

// delist removes a queue from the list of its crawl and level.
func (c *core) delist(kind int, id uint32) {
	q := c.queues.at(id)
	x, p := c.crawlOf(q), q.level
	l := &x.lists[kind]
	c.listRemove(&l.at[p], id)
	if l.at[p].n == 0 {
		if int(p) <= c.cfg.levels {
			l.mask &^= 1 << (p - 1)
		}
		c.offer(q.crawl, x)
	}
}

// unbind gives a host a token at the tail of each front queue it has URLs for.
// The host is in no structure when it is called.
func (c *core) unbind(id uint32, h *host) {
	c.put(h, unbound)
	for q := h.queues; q != 0; q = c.queues.at(q).sibling {
		if c.queues.at(q).waiting > 0 {
			c.enlist(tokens, q)
		}
		c.evict(q)
	}
}

// bind takes the tokens of an unbound host away: it gets a back queue.
func (c *core) bind(h *host) {
	for q := h.queues; q != 0; q = c.queues.at(q).sibling {
		if c.queues.at(q).waiting > 0 {
			c.delist(tokens, q)
		}
	}
	h.served = 0
}
