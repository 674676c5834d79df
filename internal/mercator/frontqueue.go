// This file has the front queues, which implement priority.
//
// Front queue f is a FIFO of host tokens: each unbound host with waiting URLs of priority f has
// exactly one in it. The URLs themselves wait in the host's own queues, so that a host with a million
// of them weighs no more here than one with two. Ready lists have the same shape: in list f waits
// each bound host that may be contacted now and has URLs of priority f. A host's queue is in at most
// one list at a time, so both are linked through the queue itself. Each crawl has its own.

package mercator

// list is a doubly linked FIFO of queues. The zero value is empty.
type list struct {
	first, last uint32
	N           int
}

func (t *tables) listPush(l *list, id uint32) {
	q := t.Queues.At(id)
	q.prev, q.next = l.last, 0
	if l.last != 0 {
		t.Queues.At(l.last).next = id
	} else {
		l.first = id
	}
	l.last = id
	l.N++
}

func (t *tables) listRemove(l *list, id uint32) {
	q := t.Queues.At(id)
	if q.prev != 0 {
		t.Queues.At(q.prev).next = q.next
	} else {
		l.first = q.next
	}
	if q.next != 0 {
		t.Queues.At(q.next).prev = q.prev
	} else {
		l.last = q.prev
	}
	q.prev, q.next = 0, 0
	l.N--
}

// lanes are a crawl's lists of all levels, and which of them are not empty.
type lanes struct {
	At   []list // by level: 1 to F, and that of Immediate; the first is not used
	mask uint64 // bit p-1: at[p] is not empty, for 1 to F
}

// tokens and readies are the two kinds of lists in crawl.lists.
const (
	tokens  = iota // front queues
	Readies        // ready lists
)

// enlist appends a queue to the list of its crawl and level.
func (t *tables) enlist(kind int, id uint32) {
	q := t.Queues.At(id)
	x, p := t.CrawlOf(q), q.level
	l := &x.Lists[kind]
	t.listPush(&l.At[p], id)
	if l.At[p].N == 1 {
		if int(p) <= t.Cfg.Levels {
			l.mask |= 1 << (p - 1)
		}
		t.offer(q.crawl, x)
	}
}

// delist removes a queue from the list of its crawl and level.
func (t *tables) delist(kind int, id uint32) {
	q := t.Queues.At(id)
	x, p := t.CrawlOf(q), q.level
	l := &x.Lists[kind]
	t.listRemove(&l.At[p], id)
	if l.At[p].N == 0 {
		if int(p) <= t.Cfg.Levels {
			l.mask &^= 1 << (p - 1)
		}
		t.offer(q.crawl, x)
	}
}

// unbind gives a host a token at the tail of each front queue it has URLs for.
// The host is in no structure when it is called.
func (t *tables) unbind(id uint32, h *Host) {
	t.Put(h, Unbound)
	for q := h.Queues; q != 0; q = t.Queues.At(q).Sibling {
		if t.Queues.At(q).Waiting > 0 {
			t.enlist(tokens, q)
		}
		t.evict(q, false)
	}
}

// bind takes the tokens of an unbound host away: it gets a back queue.
func (t *tables) bind(h *Host) {
	for q := h.Queues; q != 0; q = t.Queues.At(q).Sibling {
		if t.Queues.At(q).Waiting > 0 {
			t.delist(tokens, q)
		}
	}
	h.Served = 0
}
