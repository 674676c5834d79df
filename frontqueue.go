// This file holds the front queues, which implement priority.
//
// Front queue f is a FIFO of host tokens: each unbound host with waiting URLs of
// priority f has exactly one in it. The URLs themselves wait in the host's own
// queues, so that a host with a million of them weighs no more here than one
// with two. Ready lists have the same shape: in list f waits each bound host
// that may be contacted now and has URLs of priority f. A host's queue is in at
// most one list at a time, so both are linked through the queue itself. Each
// crawl has its own: see below.

package frontier

import (
	"iter"
	"slices"
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/tombstone"
)

// list is a doubly linked FIFO of queues. The zero value is empty.
type list struct {
	first, last uint32
	n           int
}

func (t *tables) listPush(l *list, id uint32) {
	q := t.queues.At(id)
	q.prev, q.next = l.last, 0
	if l.last != 0 {
		t.queues.At(l.last).next = id
	} else {
		l.first = id
	}
	l.last = id
	l.n++
}

func (t *tables) listRemove(l *list, id uint32) {
	q := t.queues.At(id)
	if q.prev != 0 {
		t.queues.At(q.prev).next = q.next
	} else {
		l.first = q.next
	}
	if q.next != 0 {
		t.queues.At(q.next).prev = q.prev
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
func (t *tables) enlist(kind int, id uint32) {
	q := t.queues.At(id)
	x, p := t.crawlOf(q), q.level
	l := &x.lists[kind]
	t.listPush(&l.at[p], id)
	if l.at[p].n == 1 {
		if int(p) <= t.cfg.levels {
			l.mask |= 1 << (p - 1)
		}
		t.offer(q.crawl, x)
	}
}

// delist removes a queue from the list of its crawl and level.
func (t *tables) delist(kind int, id uint32) {
	q := t.queues.At(id)
	x, p := t.crawlOf(q), q.level
	l := &x.lists[kind]
	t.listRemove(&l.at[p], id)
	if l.at[p].n == 0 {
		if int(p) <= t.cfg.levels {
			l.mask &^= 1 << (p - 1)
		}
		t.offer(q.crawl, x)
	}
}

// unbind gives a host a token at the tail of each front queue it has URLs for.
// The host is in no structure when it is called.
func (t *tables) unbind(id uint32, h *host) {
	t.put(h, unbound)
	for q := h.queues; q != 0; q = t.queues.At(q).sibling {
		if t.queues.At(q).waiting > 0 {
			t.enlist(tokens, q)
		}
		t.evict(q, false)
	}
}

// bind takes the tokens of an unbound host away: it gets a back queue.
func (t *tables) bind(h *host) {
	for q := h.queues; q != 0; q = t.queues.At(q).sibling {
		if t.queues.At(q).waiting > 0 {
			t.delist(tokens, q)
		}
	}
	h.served = 0
}

// Crawls: one record for each, and the choice of the crawl for the next hand-out.
//
// Each crawl has its own front queues and ready lists, so that a hand-out finds its hosts
// without looking at those of others; hosts, and with them politeness, are shared. Crawls
// take turns by weight: each has a time of its own that advances by 1/weight with each
// hand-out, and of those with something to offer the one that is least advanced comes
// next (start-time fair queueing; Goyal, Vin and Cheng, 1996). A crawl that comes back
// has not saved up turns.

// immediatePriority is above all others: see Immediate.
const immediatePriority = row.MaxPriorities + 1

// Immediate is the priority of URLs that CrawlNow admitted: above all others,
// whatever Options.Priorities is.
const Immediate = maxPriorities + 1

// turn is how far a crawl of weight 1 advances with a hand-out.
const turn = 1 << 24

// mostPass is what a crawl's pass may come to before all of them begin anew, long
// before one overflows.
const mostPass = 1 << 62

// crawlsKept is how many crawls without URLs and settings are remembered for
// their counters.
const crawlsKept = 256

// crawl is one crawl. Crawls are named in core by their place in scheduler.crawls,
// their slot; slot 0 is crawl 0.
//
// Invariants: unless crawl 0 is the only one so far, it is in scheduler.offers, under
// its pass, while it runs and one of its lists of priorities is not empty; and in
// scheduler.urgent while it runs and one of its lists of Immediate is not.
type crawl struct {
	id         uint32
	settings   crawlSettings
	lists      [2]lanes // tokens and readies
	stats      crawlTally
	queues     int                    // that belong to it
	deadLeases int64                  // of URLs that were deleted
	withheld   [withheldReasons]int64 // of its waiting URLs: those of hosts in place withheld
	stop       crawlStop
	pass       int64
	pos        [2]int32 // in core.offers and scheduler.urgent
	offered    bool
	urgent     bool
	idle       bool // in scheduler.idleCrawls
	swept      bool // all of it was deleted, and what is dead of it is being taken out
}

// crawlTally is the figures of CrawlStats that a crawl's record has.
type crawlTally struct {
	Waiting, Immediate, Leased int64
	WaitingBy                  []int64
	Added, HandedOut           int64
	Done                       [8]int64
}

// crawlStop says why a crawl's URLs may not be handed out.
type crawlStop uint8

const (
	crawlRuns    crawlStop = iota
	crawlPaused            // until it is resumed
	crawlSpent             // a limit without a period is reached
	crawlLimited           // one with a period is
)

// stoppedCrawl is a stopped crawl whose ready hosts must be looked at: they may occupy
// slots of groups.
type stoppedCrawl struct {
	slot  uint32
	level int
	left  int // hosts of the level; less than 0: not counted yet
}

// runs reports whether the crawl's URLs may be handed out.
func (x *crawl) runs() bool { return x.stop == crawlRuns }

// mayOffer reports whether hand-outs may look for URLs of the crawl. While it is
// swept they would find dead ones before all others.
func (x *crawl) mayOffer() bool { return x.runs() && !x.swept }

func newCrawl(id uint32, levels int) *crawl {
	x := &crawl{id: id, settings: defaultCrawl}
	for i := range x.lists {
		x.lists[i].at = make([]list, levels+2)
	}
	x.stats.WaitingBy = make([]int64, levels)
	return x
}

// crawlBytes is about what a crawl costs in memory.
func (t *tables) crawlBytes() int64 {
	levels := int64(t.cfg.levels + 2)
	return int64(unsafe.Sizeof(crawl{})) + levels*int64(2*unsafe.Sizeof(list{})+8) + 48
}

// immediate is the level of Immediate.
func (t *tables) immediate() uint8 { return uint8(t.cfg.levels + 1) }

// slotOf returns the slot of a crawl, of a new one if there is none.
func (t *tables) slotOf(id uint32) uint32 {
	if id == 0 {
		return 0
	}
	if s, ok := t.crawlSlots[id]; ok {
		return s
	}
	x := newCrawl(id, t.cfg.levels)
	s := uint32(len(t.crawls))
	if n := len(t.freeCrawls); n > 0 {
		s, t.freeCrawls = t.freeCrawls[n-1], t.freeCrawls[:n-1]
		t.crawls[s] = x
	} else {
		t.crawls = append(t.crawls, x)
	}
	t.crawlSlots[id] = s
	t.offer(0, t.crawls[0]) // perhaps it is not the only one any more
	return s
}

// single reports whether crawl 0 is the only one there has been. Then there is nothing to
// choose.
func (t *crawlTable) single() bool { return len(t.crawls) == 1 }

// findCrawl returns a crawl by its number, or nil.
func (t *crawlTable) findCrawl(id uint32) *crawl {
	if s, ok := t.crawlSlots[id]; ok || id == 0 {
		return t.crawls[s]
	}
	return nil
}

// crawlOf returns the crawl of a queue.
func (t *crawlTable) crawlOf(q *queue) *crawl { return t.crawls[q.crawl] }

// restCrawl lets a crawl that has nothing and is as by default be forgotten, in
// its turn.
func (t *crawlTable) restCrawl(s uint32) {
	x := t.crawls[s]
	if s == 0 || x.idle || !x.nothing() {
		return
	}
	x.idle = true
	t.idleCrawls = append(t.idleCrawls, s)
	for len(t.idleCrawls) > crawlsKept {
		s := t.idleCrawls[0]
		t.idleCrawls = t.idleCrawls[1:]
		if x := t.crawls[s]; x.nothing() {
			delete(t.crawlSlots, x.id)
			t.crawls[s] = nil
			t.freeCrawls = append(t.freeCrawls, s)
		} else {
			x.idle = false
		}
	}
}

// nothing reports whether a crawl needs no slot.
func (x *crawl) nothing() bool {
	return x.queues == 0 && !x.swept && x.settings == defaultCrawl
}

// offer notes that the crawl's lists, or whether it runs, have changed.
func (t *tables) offer(s uint32, x *crawl) {
	if t.single() {
		return
	}
	some := x.mayOffer() && x.lists[tokens].mask|x.lists[readies].mask != 0
	switch {
	case some && !x.offered:
		x.offered, x.pass = true, max(x.pass, t.pass)
		t.offers.Push(timeheap.Item{At: x.pass, ID: s})
	case !some && x.offered:
		x.offered = false
		t.offers.Remove(int(x.pos[0]))
	}
	top := t.immediate()
	some = x.mayOffer() && x.lists[tokens].at[top].n+x.lists[readies].at[top].n > 0
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
func (t *tables) served(x *crawl, level uint8) {
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
	x.pass += turn / int64(x.settings.weight)
	if x.offered {
		t.offers.Fix(int(x.pos[0]), x.pass)
	}
}

// rebasePasses counts passes from the least of those in scheduler.offers, c.pass.
func (t *crawlTable) rebasePasses() {
	for _, x := range t.crawls {
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
func (t *tables) nextCrawl(named []uint32) (x *crawl, now bool) {
	if named != nil {
		return t.nextOfCrawls(named)
	}
	if t.single() {
		switch x, top := t.crawls[0], t.immediate(); {
		case !x.mayOffer():
		case x.lists[tokens].at[top].n+x.lists[readies].at[top].n > 0:
			return x, true
		case x.lists[tokens].mask|x.lists[readies].mask != 0:
			return x, false
		}
		return nil, false
	}
	switch {
	case t.urgent.Len() > 0:
		return t.crawls[t.urgent.Items[0].ID], true
	case t.offers.Len() > 0:
		return t.crawls[t.offers.Items[0].ID], false
	}
	return nil, false
}

// nextOfCrawls is nextCrawl for a choice of crawls.
func (t *tables) nextOfCrawls(named []uint32) (next *crawl, now bool) {
	top, least := t.immediate(), int64(0)
	for _, id := range named {
		x := t.findCrawl(id)
		if x == nil || !x.mayOffer() {
			continue
		}
		urgent := x.lists[tokens].at[top].n+x.lists[readies].at[top].n > 0
		if !urgent && (now || x.lists[tokens].mask|x.lists[readies].mask == 0) {
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

// unlease notes that a lease's URL is not leased any more.
func (t *tables) unlease(l *leaseRecord) {
	if l.record != 0 {
		x := t.crawlOf(t.queues.At(l.queue))
		x.stats.Leased--
		if l.dead != 0 {
			x.deadLeases--
		}
	}
}

// crawlsWith yields the crawls that may have something to offer of a level.
func (t *tables) crawlsWith(level uint8) iter.Seq[*crawl] {
	return func(yield func(*crawl) bool) {
		if t.single() {
			if x := t.crawls[0]; x.mayOffer() {
				yield(x)
			}
			return
		}
		h := &t.offers
		if level == t.immediate() {
			h = &t.urgent
		}
		for _, it := range h.Items {
			if !yield(t.crawls[it.ID]) {
				return
			}
		}
	}
}

// haveWaiting reports whether URLs wait of one of the crawls, or of any if these are nil, that may
// be handed out.
func (t *crawlTable) haveWaiting(crawls []uint32) bool {
	if crawls == nil {
		return slices.ContainsFunc(t.crawls, func(x *crawl) bool { return x != nil && x.mayOffer() && x.stats.Waiting > 0 })
	}
	return slices.ContainsFunc(crawls, func(id uint32) bool {
		x := t.findCrawl(id)
		return x != nil && x.mayOffer() && x.stats.Waiting > 0
	})
}

// offering reports whether a host has a URL of a crawl that may offer it.
func (t *tables) offering(h *host) bool {
	return t.pausedCrawls+t.sweptCrawls == 0 || t.has(h, (*crawl).mayOffer)
}

// has reports whether a host has a URL of a crawl of this kind.
func (t *tables) has(h *host, kind func(*crawl) bool) bool {
	for q := h.queues; q != 0; q = t.queues.At(q).sibling {
		if x := t.queues.At(q); x.waiting > 0 && kind(t.crawlOf(x)) {
			return true
		}
	}
	return false
}

// setCrawl gives a crawl its settings. youngest is the number of the last lease.
func (s *scheduler) setCrawl(id uint32, set crawlSettings, youngest uint64, now int64) {
	slot := s.slotOf(id)
	x := s.crawls[slot]
	x.settings = set
	if s.limits != nil || set.limits != (quota.Limits{}) {
		s.book(youngest).SetCrawl(id, set.limits, youngest, s.date(now))
	}
	s.judgeCrawl(x, now)
	s.offer(slot, x)
	s.restCrawl(slot)
}

// judgeCrawl stops a crawl, or lets it go on, as its settings and what it has used
// say.
func (s *scheduler) judgeCrawl(x *crawl, now int64) {
	stop, until := crawlRuns, instant.None
	if s.limits != nil {
		until = s.limits.CrawlSpent(x.id, s.date(now))
	}
	switch {
	case x.settings.paused:
		stop = crawlPaused
	case until == instant.Never:
		stop = crawlSpent
	case until != instant.None:
		stop = crawlLimited
	}
	s.stopCrawl(x, stop)
	switch {
	case stop == crawlLimited:
		s.limits.CrawlEnds.Set(x.id, until)
	case s.limits != nil:
		s.limits.CrawlEnds.Remove(x.id)
	}
}

// stopCrawl changes why a crawl's URLs may not be handed out.
func (s *scheduler) stopCrawl(x *crawl, stop crawlStop) {
	if x.stop == stop {
		return
	}
	ran := x.runs()
	s.countStopped(x, -1)
	x.stop = stop
	s.countStopped(x, 1)
	slot := s.slotOf(x.id)
	if ran && s.limits != nil && stop != crawlPaused {
		s.stopped = append(s.stopped, stoppedCrawl{slot: slot, level: 1, left: -1})
	}
	s.offer(slot, x)
}

// countStopped counts a crawl among those that do not run, if it does not.
func (s *scheduler) countStopped(x *crawl, sign int64) {
	if x.runs() {
		return
	}
	s.pausedCrawls += int(sign)
	s.pausedURLs += sign * x.stats.Waiting
	if x.stop == crawlLimited {
		s.limitedURLs += sign * x.stats.Waiting
	}
	for why, n := range x.withheld {
		s.withheld.urls[why] -= sign * n
	}
}

// offerDeleted keeps a deleted crawl from offering anything while it is swept.
func (s *scheduler) offerDeleted(d *tombstone.Tombstone) {
	x := s.findCrawl(d.Crawl)
	if !d.OfCrawl || d.Scope.Named || x == nil {
		return
	}
	if swept := s.tombstones.HasCrawl(d.Crawl); swept != x.swept {
		x.swept = swept
		s.sweptCrawls += 2*btoi(swept) - 1
		s.offer(s.crawlSlots[d.Crawl], x)
		s.restCrawl(s.crawlSlots[d.Crawl])
	}
}

// regroup looks again at up to n hosts of a ready list of a crawl that was paused:
// those with nothing else to offer give up their groups' slots.
func (s *scheduler) regroup(l *list, n int, now int64) {
	for ; n > 0 && l.first != 0; n-- {
		id := s.queues.At(l.first).host
		s.detach(id)
		s.makeReady(id, now)
	}
}
