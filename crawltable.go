// This file keeps what must be known of each crawl, and chooses the crawl of the
// next hand-out.
//
// A crawl has front queues and ready lists of its own, so that a hand-out finds
// its hosts without looking at those of others; hosts, and with them politeness,
// are shared. Crawls take turns by weight: each has a time of its own that
// advances by 1/weight with each hand-out, and of those with something to offer
// the one that is least advanced comes next (start-time fair queueing; Goyal, Vin
// and Cheng, 1996). A crawl that comes back has not saved up turns.

package frontier

import (
	"iter"
	"unsafe"
)

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

// crawl is one crawl. Crawls are named in core by their place in core.crawls,
// their slot; slot 0 is crawl 0.
//
// Invariants: unless crawl 0 is the only one so far, it is in core.offers, under
// its pass, while it runs and one of its lists of priorities is not empty; and in
// core.urgent while it runs and one of its lists of Immediate is not.
type crawl struct {
	id       uint32
	settings CrawlSettings
	lists    [2]lanes // tokens and readies
	stats    CrawlStats
	queues   int                // that belong to it
	held     [holdReasons]int64 // of its waiting URLs: those of hosts in place held
	use      *usage             // nil: there are no limits
	hold     crawlHold
	ends     bool // in limitBook.crawlEnds
	endPos   int
	pass     int64
	pos      [2]int32 // in core.offers and core.urgent
	offered  bool
	urgent   bool
	idle     bool // in core.idleCrawls
	swept    bool // all of it was deleted, and what is dead of it is being taken out
}

// runs reports whether the crawl's URLs may be handed out.
func (x *crawl) runs() bool { return x.hold == crawlRuns }

// mayOffer reports whether hand-outs may look for URLs of the crawl. While it is
// swept they would find dead ones before all others.
func (x *crawl) mayOffer() bool { return x.runs() && !x.swept }

func newCrawl(id uint32, levels int) *crawl {
	x := &crawl{id: id, settings: CrawlSettings{Weight: 1}}
	for i := range x.lists {
		x.lists[i].at = make([]list, levels+2)
	}
	x.stats.WaitingBy = make([]int64, levels)
	return x
}

// crawlBytes is about what a crawl costs in memory.
func (c *core) crawlBytes() int64 {
	levels := int64(c.cfg.levels + 2)
	return int64(unsafe.Sizeof(crawl{})) + levels*int64(2*unsafe.Sizeof(list{})+8) + 48
}

// immediate is the level of Immediate.
func (c *core) immediate() uint8 { return uint8(c.cfg.levels + 1) }

// slotOf returns the slot of a crawl, of a new one if there is none.
func (c *core) slotOf(id uint32) uint32 {
	if id == 0 {
		return 0
	}
	if s, ok := c.crawlSlots[id]; ok {
		return s
	}
	x := newCrawl(id, c.cfg.levels)
	s := uint32(len(c.crawls))
	if n := len(c.freeCrawls); n > 0 {
		s, c.freeCrawls = c.freeCrawls[n-1], c.freeCrawls[:n-1]
		c.crawls[s] = x
	} else {
		c.crawls = append(c.crawls, x)
	}
	c.crawlSlots[id] = s
	c.offer(0, c.crawls[0]) // perhaps it is not the only one any more
	return s
}

// single reports whether there has been no crawl but number 0. Then nobody needs
// to choose.
func (c *core) single() bool { return len(c.crawls) == 1 }

// findCrawl returns a crawl by its number, or nil.
func (c *core) findCrawl(id uint32) *crawl {
	if s, ok := c.crawlSlots[id]; ok || id == 0 {
		return c.crawls[s]
	}
	return nil
}

// crawlOf returns the crawl of a queue.
func (c *core) crawlOf(q *queue) *crawl { return c.crawls[q.crawl] }

// restCrawl lets a crawl that has nothing and is as by default be forgotten, in
// its turn.
func (c *core) restCrawl(s uint32) {
	x := c.crawls[s]
	if s == 0 || x.idle || !x.nothing() {
		return
	}
	x.idle = true
	c.idleCrawls = append(c.idleCrawls, s)
	for len(c.idleCrawls) > crawlsKept {
		s := c.idleCrawls[0]
		c.idleCrawls = c.idleCrawls[1:]
		if x := c.crawls[s]; x.nothing() {
			delete(c.crawlSlots, x.id)
			c.crawls[s] = nil
			c.freeCrawls = append(c.freeCrawls, s)
		} else {
			x.idle = false
		}
	}
}

// nothing reports whether a crawl needs no slot.
func (x *crawl) nothing() bool {
	return x.queues == 0 && !x.swept && x.settings == CrawlSettings{Weight: 1}
}

// offer notes that the crawl's lists, or whether it runs, have changed.
func (c *core) offer(s uint32, x *crawl) {
	if c.single() {
		return
	}
	some := x.mayOffer() && x.lists[tokens].mask|x.lists[readies].mask != 0
	switch {
	case some && !x.offered:
		x.offered, x.pass = true, max(x.pass, c.pass)
		c.offers.push(timeItem{at: x.pass, id: s})
	case !some && x.offered:
		x.offered = false
		c.offers.remove(int(x.pos[0]))
	}
	top := c.immediate()
	some = x.mayOffer() && x.lists[tokens].at[top].n+x.lists[readies].at[top].n > 0
	switch {
	case some && !x.urgent:
		x.urgent = true
		c.turns++
		c.urgent.push(timeItem{at: c.turns, id: s})
	case !some && x.urgent:
		x.urgent = false
		c.urgent.remove(int(x.pos[1]))
	}
}

// served notes that a crawl had a hand-out. One of Immediate costs it nothing:
// with these crawls take turns, whatever their weights.
func (c *core) served(x *crawl, level uint8) {
	if c.single() {
		return
	}
	if level == c.immediate() {
		if c.turns++; x.urgent {
			c.urgent.fix(int(x.pos[1]), c.turns)
		}
		return
	}
	if c.pass = x.pass; c.pass > mostPass {
		c.rebasePasses()
	}
	x.pass += turn / int64(x.settings.Weight)
	if x.offered {
		c.offers.fix(int(x.pos[0]), x.pass)
	}
}

// rebasePasses counts passes from the least of those in core.offers, c.pass.
func (c *core) rebasePasses() {
	for _, x := range c.crawls {
		if x != nil {
			x.pass = max(0, x.pass-c.pass)
		}
	}
	for i := range c.offers.Items {
		c.offers.Items[i].at -= c.pass
	}
	c.pass = 0
}

// nextCrawl returns the crawl of the next hand-out, and whether it is for one of
// its URLs of Immediate; nil if nobody has anything to offer.
func (c *core) nextCrawl() (x *crawl, now bool) {
	if c.single() {
		switch x, top := c.crawls[0], c.immediate(); {
		case !x.mayOffer():
		case x.lists[tokens].at[top].n+x.lists[readies].at[top].n > 0:
			return x, true
		case x.lists[tokens].mask|x.lists[readies].mask != 0:
			return x, false
		}
		return nil, false
	}
	switch {
	case c.urgent.len() > 0:
		return c.crawls[c.urgent.Items[0].id], true
	case c.offers.len() > 0:
		return c.crawls[c.offers.Items[0].id], false
	}
	return nil, false
}

// unlease notes that a lease's URL is not leased any more.
func (c *core) unlease(l *leaseRecord) {
	if l.record != 0 {
		c.crawlOf(c.queues.at(l.queue)).stats.Leased--
	}
}

// crawlsWith yields the crawls that may have something to offer of a level.
func (c *core) crawlsWith(level uint8) iter.Seq[*crawl] {
	return func(yield func(*crawl) bool) {
		if c.single() {
			if x := c.crawls[0]; x.mayOffer() {
				yield(x)
			}
			return
		}
		h := &c.offers
		if level == c.immediate() {
			h = &c.urgent
		}
		for _, it := range h.Items {
			if !yield(c.crawls[it.id]) {
				return
			}
		}
	}
}

// offering reports whether a host has a URL of a crawl that may offer it.
func (c *core) offering(h *host) bool {
	return c.pausedCrawls+c.sweptCrawls == 0 || c.has(h, (*crawl).mayOffer)
}

// has reports whether a host has a URL of a crawl of this kind.
func (c *core) has(h *host, kind func(*crawl) bool) bool {
	for q := h.queues; q != 0; q = c.queues.at(q).sibling {
		if x := c.queues.at(q); x.waiting > 0 && kind(c.crawlOf(x)) {
			return true
		}
	}
	return false
}

// setCrawl gives a crawl its settings. youngest is the number of the last lease.
func (c *core) setCrawl(id uint32, s CrawlSettings, youngest uint64, now int64) {
	slot := c.slotOf(id)
	x := c.crawls[slot]
	c.endPeriod(x.use, &x.settings.Limits, youngest, c.date(now))
	x.settings = s
	switch {
	case s.Limits == (Limits{}):
		if x.use != nil {
			x.use.key, x.use = "", nil
		}
	case x.use == nil:
		c.book(youngest)
		x.use = &usage{key: crawlUseKey(id), first: youngest}
	}
	c.judgeCrawl(x, now)
	c.offer(slot, x)
	c.restCrawl(slot)
}

// offerDeleted sees to it that a crawl of which all was deleted has nothing to offer
// as long as it is swept.
func (c *core) offerDeleted(d *deletion) {
	x := c.findCrawl(d.crawl)
	if !d.ofCrawl || x == nil {
		return
	}
	if swept := c.dooms.crawls[d.crawl] != nil; swept != x.swept {
		x.swept = swept
		c.sweptCrawls += 2*btoi(swept) - 1
		c.offer(c.crawlSlots[d.crawl], x)
		c.restCrawl(c.crawlSlots[d.crawl])
	}
}

// regroup looks again at up to n hosts of a ready list of a crawl that was paused:
// those with nothing else to offer give up their groups' slots.
func (c *core) regroup(l *list, n int, now int64) {
	for ; n > 0 && l.first != 0; n-- {
		id := c.queues.at(l.first).host
		c.detach(id)
		c.makeReady(id, now)
	}
}
