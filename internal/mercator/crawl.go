// This file has one record for each crawl: its settings, its figures, its lists, and why its URLs
// may not be handed out.
//
// A crawl is named by its place in Core.Crawls, its slot; slot 0 is crawl 0. Each crawl has its own
// front queues and ready lists, so that a hand-out finds its hosts without looking at those of
// others; hosts, and with them politeness, are shared.

package mercator

import (
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
)

// regroupAtOnce is how many hosts of stopped crawls are looked at under one lock.
const regroupAtOnce = 64

// endLimits releases crawls and hosts that waited for the end of a limit's period. It
// reports whether it came to the end.
func (s *Core) endLimits(now int64) bool {
	for range expireAtOnce {
		id, ok := s.Limits.CrawlEnds.Over(s.Date(now))
		if !ok {
			return s.endHostLimits(now)
		}
		s.JudgeCrawl(s.FindCrawl(id), now)
	}
	return false
}

// endHostLimits does that for hosts.
func (s *Core) endHostLimits(now int64) bool {
	for range recheckAtOnce {
		id, ok := s.Limits.HostEnds.Over(s.Date(now))
		if !ok {
			return true
		}
		s.recheckHost(id, now)
	}
	return false
}

// freeStopped takes hosts that have nothing to offer any more out of the ready lists
// of crawls that were stopped.
func (s *Core) freeStopped(now int64) bool {
	for n := regroupAtOnce; len(s.stopped) > 0; {
		if n <= 0 {
			return false
		}
		stop := &s.stopped[0]
		x := s.Crawls[stop.slot]
		if x == nil || x.Runs() || stop.level > s.Cfg.Levels+1 {
			if s.stopped = s.stopped[1:]; len(s.stopped) == 0 {
				s.stopped = nil
			}
			continue
		}
		l := &x.Lists[Readies].At[stop.level]
		if stop.left < 0 {
			stop.left = l.N // later ones are looked at when they come
		}
		k := min(n, stop.left)
		s.regroup(l, k, now)
		n -= k + 1
		if stop.left -= k; stop.left == 0 {
			stop.level, stop.left = stop.level+1, -1
		}
	}
	return true
}

// levelOf is the level of a host's URLs of a priority.
func (s *Core) levelOf(h *Host, priority uint8) uint8 {
	if priority == immediatePriority {
		return s.immediate()
	}
	priority = uint8(min(max(1, int(priority)+int(h.Standing)), s.Cfg.Levels))
	if s.Cfg.Rules != nil {
		priority = s.Cfg.Rules.Priority(s.Name(h), priority)
	}
	return min(priority, uint8(s.Cfg.Levels))
}

// Relevel gives the queues of a host the levels that the rules say.
func (s *Core) Relevel(id uint32, now int64) {
	h := s.Hosts.At(id)
	changed := false
	for qid := h.Queues; qid != 0; qid = s.Queues.At(qid).Sibling {
		q := s.Queues.At(qid)
		if level := s.levelOf(h, q.Priority); level != q.level {
			s.setLevel(h, qid, level)
			changed = true
		}
	}
	if changed && h.Place == Queued { // its place among those of its group depends on it
		s.Detach(id)
		s.Settle(id, now)
	}
}

func (s *Core) setLevel(h *Host, qid uint32, level uint8) {
	q := s.Queues.At(qid)
	kind := tokens
	if h.Place == Ready {
		kind = Readies
	}
	listed := q.Waiting > 0 && (h.Place == Ready || h.Place == Unbound)
	if listed {
		s.delist(kind, qid)
	}
	x, n := s.CrawlOf(q), int64(q.Waiting)
	for _, by := range [...][]int64{s.Stats.WaitingBy, x.Stats.WaitingBy} {
		by[q.level-1] -= n
		by[level-1] += n
	}
	q.level = level
	if listed {
		s.enlist(kind, qid)
	}
}

// immediatePriority is above all others: see Immediate.
const immediatePriority = row.MaxPriorities + 1

// IsPriority reports whether the URLs of a store may have this priority.
func (s *Core) IsPriority(p uint8) bool {
	return p >= 1 && int(p) <= s.Cfg.Levels || p == immediatePriority
}

// crawlsKept is how many crawls without URLs and settings are remembered for their counters.
const crawlsKept = 256

// Crawl is one crawl. It is named by their place in Core.Crawls, their slot; slot 0 is crawl 0.
//
// Invariants: unless crawl 0 is the only one so far, it is in Core.offers, under
// its pass, while it runs and one of its lists of priorities is not empty; and in
// Core.urgent while it runs and one of its lists of Immediate is not.
type Crawl struct {
	ID         uint32
	Settings   row.CrawlSettings
	Lists      [2]lists // tokens and readies
	Stats      crawlTally
	Queues     int                    // that belong to it
	DeadLeases int64                  // of URLs that were deleted
	withheld   [withheldReasons]int64 // of its waiting URLs: those of hosts in place withheld
	Stop       crawlStop
	pass       int64
	pos        [2]int32 // in Core.offers and Core.urgent
	offered    bool
	urgent     bool
	idle       bool // in Core.idleCrawls
	swept      bool // all of it was deleted, and what is dead of it is being taken out
}

// crawlTally is the figures of inspect.Crawl that a crawl's record has.
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
	CrawlSpent             // a limit without a period is reached
	CrawlLimited           // one with a period is
)

// stoppedCrawl is a stopped crawl whose ready hosts must be looked at: they may occupy slots of groups.
type stoppedCrawl struct {
	slot  uint32
	level int
	left  int // hosts of the level; less than 0: not counted yet
}

// Runs reports whether the crawl's URLs may be handed out.
func (x *Crawl) Runs() bool { return x.Stop == crawlRuns }

// mayOffer reports whether hand-outs may look for URLs of the crawl. While it is
// swept they would find dead ones before all others.
func (x *Crawl) mayOffer() bool { return x.Runs() && !x.swept }

// NewCrawl returns the record of a crawl that has nothing.
func NewCrawl(id uint32, levels int) *Crawl {
	x := &Crawl{ID: id, Settings: row.DefaultCrawl}
	for i := range x.Lists {
		x.Lists[i].At = make([]list, levels+2)
	}
	x.Stats.WaitingBy = make([]int64, levels)
	return x
}

// crawlBytes is about what a crawl costs in memory.
func (t *tables) crawlBytes() int64 {
	levels := int64(t.Cfg.Levels + 2)
	return int64(unsafe.Sizeof(Crawl{})) + levels*int64(2*unsafe.Sizeof(list{})+8) + 48
}

// immediate is the level of Immediate.
func (t *tables) immediate() uint8 { return uint8(t.Cfg.Levels + 1) }

// slotOf returns the slot of a crawl, of a new one if there is none.
func (t *tables) slotOf(id uint32) uint32 {
	if id == 0 {
		return 0
	}
	if s, ok := t.CrawlSlots[id]; ok {
		return s
	}
	x := NewCrawl(id, t.Cfg.Levels)
	s := uint32(len(t.Crawls))
	if n := len(t.freeCrawls); n > 0 {
		s, t.freeCrawls = t.freeCrawls[n-1], t.freeCrawls[:n-1]
		t.Crawls[s] = x
	} else {
		t.Crawls = append(t.Crawls, x)
	}
	t.CrawlSlots[id] = s
	t.offer(0, t.Crawls[0]) // perhaps it is not the only one any more
	return s
}

// single reports whether crawl 0 is the only one there has been. Then there is nothing to choose.
func (t *crawlTable) single() bool { return len(t.Crawls) == 1 }

// FindCrawl returns a crawl by its number, or nil.
func (t *crawlTable) FindCrawl(id uint32) *Crawl {
	if s, ok := t.CrawlSlots[id]; ok || id == 0 {
		return t.Crawls[s]
	}
	return nil
}

// CrawlOf returns the crawl of a queue.
func (t *crawlTable) CrawlOf(q *Queue) *Crawl { return t.Crawls[q.crawl] }

// restCrawl lets a crawl that has nothing and is as by default be forgotten, in its turn.
func (t *crawlTable) restCrawl(s uint32) {
	x := t.Crawls[s]
	if s == 0 || x.idle || !x.Nothing() {
		return
	}
	x.idle = true
	t.idleCrawls = append(t.idleCrawls, s)
	for len(t.idleCrawls) > crawlsKept {
		s := t.idleCrawls[0]
		t.idleCrawls = t.idleCrawls[1:]
		if x := t.Crawls[s]; x.Nothing() {
			delete(t.CrawlSlots, x.ID)
			t.Crawls[s] = nil
			t.freeCrawls = append(t.freeCrawls, s)
		} else {
			x.idle = false
		}
	}
}

// Nothing reports whether a crawl needs no slot.
func (x *Crawl) Nothing() bool {
	return x.Queues == 0 && !x.swept && x.Settings == row.DefaultCrawl
}

// Unlease notes that a lease's URL is not leased any more.
func (t *tables) Unlease(l *Lease) {
	if l.Record != 0 {
		x := t.CrawlOf(t.Queues.At(l.Queue))
		x.Stats.Leased--
		if l.Dead != 0 {
			x.DeadLeases--
		}
	}
}

// SetCrawl gives a crawl its settings. youngest is the number of the last lease.
func (s *Core) SetCrawl(id uint32, set row.CrawlSettings, youngest uint64, now int64) {
	slot := s.slotOf(id)
	x := s.Crawls[slot]
	x.Settings = set
	if s.Limits != nil || set.Limits != (quota.Limits{}) {
		s.Book(youngest).SetCrawl(id, set.Limits, youngest, s.Date(now))
	}
	s.JudgeCrawl(x, now)
	s.offer(slot, x)
	s.restCrawl(slot)
}

// JudgeCrawl stops a crawl, or lets it go on, as its settings and what it has used say.
func (s *Core) JudgeCrawl(x *Crawl, now int64) {
	stop, until := crawlRuns, instant.None
	if s.Limits != nil {
		until = s.Limits.CrawlSpent(x.ID, s.Date(now))
	}
	switch {
	case x.Settings.Paused:
		stop = crawlPaused
	case until == instant.Never:
		stop = CrawlSpent
	case until != instant.None:
		stop = CrawlLimited
	}
	s.stopCrawl(x, stop)
	switch {
	case stop == CrawlLimited:
		s.Limits.CrawlEnds.Set(x.ID, until)
	case s.Limits != nil:
		s.Limits.CrawlEnds.Remove(x.ID)
	}
}

// stopCrawl changes why a crawl's URLs may not be handed out.
func (s *Core) stopCrawl(x *Crawl, stop crawlStop) {
	if x.Stop == stop {
		return
	}
	ran := x.Runs()
	s.countStopped(x, -1)
	x.Stop = stop
	s.countStopped(x, 1)
	slot := s.slotOf(x.ID)
	if ran {
		s.stopped = append(s.stopped, stoppedCrawl{slot: slot, level: 1, left: -1})
	}
	s.offer(slot, x)
}

// countStopped counts a crawl among those that do not run, if it does not.
func (s *Core) countStopped(x *Crawl, sign int64) {
	if x.Runs() {
		return
	}
	s.PausedCrawls += int(sign)
	s.pausedURLs += sign * x.Stats.Waiting
	if x.Stop == CrawlLimited {
		s.limitedURLs += sign * x.Stats.Waiting
	}
	for why, n := range x.withheld {
		s.Withheld.urls[why] -= sign * n
	}
}

// OfferDeleted keeps a deleted crawl from offering anything while it is swept.
func (s *Core) OfferDeleted(d *tombstone.Tombstone) {
	x := s.FindCrawl(d.Crawl)
	if !d.OfCrawl || d.Scope.Named || x == nil {
		return
	}
	if swept := s.Deletions.InForce.HasCrawl(d.Crawl); swept != x.swept {
		x.swept = swept
		s.SweptCrawls += 2*btoi(swept) - 1
		s.offer(s.CrawlSlots[d.Crawl], x)
		s.restCrawl(s.CrawlSlots[d.Crawl])
	}
}

// regroup looks again at up to n hosts of a ready list of a crawl that was stopped:
// those with nothing else to offer give up their groups' slots.
func (s *Core) regroup(l *list, n int, now int64) {
	for ; n > 0 && l.first != 0; n-- {
		id := s.Queues.At(l.first).Host
		s.Detach(id)
		s.makeReady(id, now)
	}
}

// CrawlNumber and PriorityOf return the crawl of a queue, and the priority with which its
// URLs are served.
func (t *crawlTable) CrawlNumber(q *Queue) uint32 { return t.CrawlOf(q).ID }
func (t *tables) PriorityOf(q *Queue) int {
	if q.level == t.immediate() {
		return immediatePriority
	}
	return int(q.level)
}
