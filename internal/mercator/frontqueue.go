// This file has the front queues, which implement priority.
//
// Front queue f is a FIFO of host tokens: each unbound host with waiting URLs of priority f has
// exactly one in it. The URLs themselves wait in the host's own queues, so that a host with a million
// of them weighs no more here than one with two. Ready lists have the same shape: in list f waits
// each bound host that may be contacted now and has URLs of priority f. A host's queue is in at most
// one list at a time, so both are linked through the queue itself. Each crawl has its own.
//
// Crawls take turns by weight: each has a time of its own that advances by 1/weight with each hand-out,
// and of those with something to offer the one that is least advanced comes next (start-time fair
// queueing; Goyal, Vin and Cheng, 1996). A crawl that comes back has not saved up turns.

package mercator

import (
	"iter"
	"slices"

	"github.com/seed-7440039f/frontier/internal/timeheap"
)

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

// lists are a crawl's lists of all levels, and which of them are not empty.
type lists struct {
	At   []list // by level: 1 to F, and that of Immediate; the first is not used
	mask uint64 // bit p-1: at[p] is not empty, for 1 to F
}

// tokens and readies are the two kinds of lists in Crawl.Lists.
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

// turn is how far a crawl of weight 1 advances with a hand-out.
const turn = 1 << 24

// mostPass is what a crawl's pass may come to before all of them begin anew, long before one overflows.
const mostPass = 1 << 62

// offer notes that the crawl's lists, or whether it runs, have changed.
func (t *tables) offer(s uint32, x *Crawl) {
	if t.single() {
		return
	}
	some := x.mayOffer() && x.Lists[tokens].mask|x.Lists[Readies].mask != 0
	switch {
	case some && !x.offered:
		x.offered, x.pass = true, max(x.pass, t.pass)
		t.offers.Push(timeheap.Item{At: x.pass, ID: s})
	case !some && x.offered:
		x.offered = false
		t.offers.Remove(int(x.pos[0]))
	}
	top := t.immediate()
	some = x.mayOffer() && x.Lists[tokens].At[top].N+x.Lists[Readies].At[top].N > 0
	switch {
	case some && !x.urgent:
		x.urgent = true
		t.turns++
		t.urgent.Push(timeheap.Item{At: t.turns, ID: s})
	case !some && x.urgent:
		x.urgent = false
		t.urgent.Remove(int(x.pos[1]))
	}
}

// served notes that a crawl had a hand-out. One of Immediate costs it nothing:
// with these crawls take turns, whatever their weights.
func (t *tables) served(x *Crawl, level uint8) {
	if t.single() {
		return
	}
	if level == t.immediate() {
		if t.turns++; x.urgent {
			t.urgent.Fix(int(x.pos[1]), t.turns)
		}
		return
	}
	if t.pass = min(x.pass, t.offers.Min()); t.pass > mostPass { // a call may have chosen among some
		t.rebasePasses()
	}
	x.pass += turn / int64(x.Settings.Weight)
	if x.offered {
		t.offers.Fix(int(x.pos[0]), x.pass)
	}
}

// rebasePasses counts passes from the least of those in Core.offers, t.pass.
func (t *crawlTable) rebasePasses() {
	for _, x := range t.Crawls {
		if x != nil {
			x.pass = max(0, x.pass-t.pass)
		}
	}
	for i := range t.offers.Items {
		t.offers.Items[i].At -= t.pass
	}
	t.pass = 0
}

// nextCrawl returns the crawl of the next hand-out, and whether it is for one of its URLs
// of Immediate; nil if none has anything to offer. If crawls are named, it is one of them.
func (t *tables) nextCrawl(named []uint32) (x *Crawl, now bool) {
	if named != nil {
		return t.nextOfCrawls(named)
	}
	if t.single() {
		switch x, top := t.Crawls[0], t.immediate(); {
		case !x.mayOffer():
		case x.Lists[tokens].At[top].N+x.Lists[Readies].At[top].N > 0:
			return x, true
		case x.Lists[tokens].mask|x.Lists[Readies].mask != 0:
			return x, false
		}
		return nil, false
	}
	switch {
	case t.urgent.Len() > 0:
		return t.Crawls[t.urgent.Items[0].ID], true
	case t.offers.Len() > 0:
		return t.Crawls[t.offers.Items[0].ID], false
	}
	return nil, false
}

// nextOfCrawls is nextCrawl for a choice of crawls.
func (t *tables) nextOfCrawls(named []uint32) (next *Crawl, now bool) {
	top, least := t.immediate(), int64(0)
	for _, id := range named {
		x := t.FindCrawl(id)
		if x == nil || !x.mayOffer() {
			continue
		}
		urgent := x.Lists[tokens].At[top].N+x.Lists[Readies].At[top].N > 0
		if !urgent && (now || x.Lists[tokens].mask|x.Lists[Readies].mask == 0) {
			continue
		}
		turn := x.pass
		if urgent && x.urgent {
			turn = t.urgent.Items[x.pos[1]].At
		}
		if next == nil || urgent && !now || turn < least {
			next, now, least = x, urgent, turn
		}
	}
	return next, now
}

// crawlsWith yields the crawls that may have something to offer of a level.
func (t *tables) crawlsWith(level uint8) iter.Seq[*Crawl] {
	return func(yield func(*Crawl) bool) {
		if t.single() {
			if x := t.Crawls[0]; x.mayOffer() {
				yield(x)
			}
			return
		}
		h := &t.offers
		if level == t.immediate() {
			h = &t.urgent
		}
		for _, it := range h.Items {
			if !yield(t.Crawls[it.ID]) {
				return
			}
		}
	}
}

// haveWaiting reports whether URLs wait of one of the crawls, or of any if these are nil, that may
// be handed out.
func (t *crawlTable) haveWaiting(crawls []uint32) bool {
	if crawls == nil {
		return slices.ContainsFunc(t.Crawls, func(x *Crawl) bool { return x != nil && x.mayOffer() && x.Stats.Waiting > 0 })
	}
	return slices.ContainsFunc(crawls, func(id uint32) bool {
		x := t.FindCrawl(id)
		return x != nil && x.mayOffer() && x.Stats.Waiting > 0
	})
}

// offering reports whether a host has a URL of a crawl that may offer it.
func (t *tables) offering(h *Host) bool {
	return t.PausedCrawls+t.SweptCrawls == 0 || t.Has(h, (*Crawl).mayOffer)
}

// Has reports whether a host has a URL of a crawl of this kind.
func (t *tables) Has(h *Host, kind func(*Crawl) bool) bool {
	for q := h.Queues; q != 0; q = t.Queues.At(q).Sibling {
		if x := t.Queues.At(q); x.Waiting > 0 && kind(t.CrawlOf(x)) {
			return true
		}
	}
	return false
}
