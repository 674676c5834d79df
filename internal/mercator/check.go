// This file verifies the invariants of lists, heaps, hosts, queues and their sums.

package mercator

import (
	"fmt"
	"math/bits"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

// Outside is what the checker cannot see: how things stand around the hosts.
type Outside struct {
	Quiet   bool // no round of moving is under way
	Settled bool // no completion is on its way to the disk
	Swept   bool // no sweep is under way, or was when all ended
	Now     int64
	Last    uint64 // number of the last admission
}

// NewChecker returns a checker of the hosts, which know no more than v says of what is around them.
func NewChecker(c *Core, v Outside) *Checker {
	return &Checker{c: c, Outside: v, used: map[arena.Ref]string{}, chained: map[uint32]bool{}, crawls: make([]crawlCount, len(c.Crawls))}
}

// Check checks all there is. It reports whether hosts wait for a commit.
func (k *Checker) Check() (pending bool) {
	k.lists()
	k.heaps()
	k.hosts()
	k.withheldHosts()
	k.crawlTable()
	k.c.order.Check(k.Bad, k.c.Hosts.Top, k.c.inMemory)
	k.c.Sizes.Check(k.Bad, k.c.Hosts.Top, k.c.WaitingOf)
	k.departures()
	k.troubles()
	k.limits()
	k.groups()
	k.blocks()
	k.deleted()
	k.c.Waits.Check(k.Bad)
	return k.totals()
}

// Checker verifies the invariants of a Core.
type Checker struct {
	c *Core
	Outside
	Errs    []error
	used    map[arena.Ref]string // records found, and where
	chained map[uint32]bool

	inList   map[uint32]int // by queue: in how many front queues and ready lists
	bytes    int64          // of records
	named    int64          // bytes of names
	homeless int64
	inGroups int // hosts in heaps of groups
	bundles  int
	waiting  int64
	byLevel  [row.MaxPriorities + 2]int64
	crawls   []crawlCount // by slot
	leased   int64
	due      tally // Scheduled and Finished only
	places   [Leased + 1]int
	withheld withheldHosts     // hosts and urls only
	resident map[uint32]uint32 // by part: positions of records in memory
}

// Bad notes a violation.
func (k *Checker) Bad(format string, args ...any) {
	if len(k.Errs) < 20 {
		k.Errs = append(k.Errs, fmt.Errorf("frontier: invariant: "+format, args...))
	}
}

// lists checks the links of front queues and ready lists, and their masks (F2).
func (k *Checker) lists() {
	k.inList = map[uint32]int{}
	c := k.c
	walk := func(x *Crawl, what string, l *list, mask uint64, p int, want place) {
		n, prev := 0, uint32(0)
		for id := l.first; id != 0; id = c.Queues.At(id).next {
			q := c.Queues.At(id)
			if q.prev != prev || int(q.level) != p || c.CrawlOf(q) != x {
				k.Bad("F3: %s %d: queue %d is linked wrongly", what, p, id)
			}
			if got := c.Hosts.At(q.Host).Place; got != want {
				k.Bad("F2: %s %d: host %d is in place %d, not %d", what, p, q.Host, got, want)
			}
			if q.Waiting == 0 {
				k.Bad("F2: %s %d: queue %d has no URLs", what, p, id)
			}
			k.inList[id]++
			prev = id
			if n++; n > l.N {
				k.Bad("F3: %s %d: more than its %d queues", what, p, l.N)
				return
			}
		}
		if n != l.N || l.last != prev {
			k.Bad("F3: %s %d: %d queues, counted %d", what, p, n, l.N)
		}
		if p <= c.Cfg.Levels && (mask>>(p-1)&1 == 1) != (n > 0) {
			k.Bad("F3: %s %d: mask disagrees with its %d queues", what, p, n)
		}
	}
	for _, x := range c.Crawls {
		for p := 1; x != nil && p <= c.Cfg.Levels+1; p++ {
			walk(x, "front queue", &x.Lists[tokens].At[p], x.Lists[tokens].mask, p, Unbound)
			walk(x, "ready list", &x.Lists[Readies].At[p], x.Lists[Readies].mask, p, Ready)
		}
	}
}

// heaps checks order and positions (F3).
func (k *Checker) heaps() {
	c := k.c
	for name, h := range map[string]*timeheap.Heap{"offers": &c.offers, "urgent": &c.urgent, "pace": &c.Pace, "parks": &c.Parks, "idle": &c.Idle, "expiry": &c.Expiry, "scheduled": &c.Scheduled.Heap} {
		if err := h.Check(); err != nil {
			k.Bad("F3: heap %s: %v", name, err)
		}
	}
	at := func(h *timeheap.Heap, want place, key func(uint32) int64, name string) {
		for i, it := range h.Items {
			if it.ID&groupBit != 0 {
				continue
			}
			x := c.Hosts.At(it.ID)
			if x.Place != want || int(x.Pos) != i || it.At != key(it.ID) {
				k.Bad("F3: heap %s: host %d has place %d, position %d, time %d; the heap %d at %d", name, it.ID, x.Place, x.Pos, key(it.ID), i, it.At)
			}
		}
	}
	due := func(id uint32) int64 { return c.Hosts.At(id).Due }
	at(&c.Pace, Pacing, due, "pace")
	at(&c.Parks, Parked, due, "parks")
	for i, it := range c.Idle.Items {
		if h := c.Hosts.At(it.ID); h.Place != Idling || int(h.Pos) != i || it.At != c.idlesUntil(it.ID) {
			k.Bad("F3: heap idle: host %d in place %d is at %d, not %d, for %d", it.ID, h.Place, i, h.Pos, it.At)
		}
	}
	for i, it := range c.Expiry.Items {
		l := c.Leases.At(it.ID)
		if int(l.Pos) != i || l.Deadline != it.At || l.Token == 0 || l.Ending {
			k.Bad("F3: heap expiry: lease %d of host %d is at %d for %d, not at %d for %d", it.ID, l.Host, l.Pos, l.Deadline, i, it.At)
		}
	}
	for id := uint32(1); id <= c.Groups.Top; id++ {
		k.grouped(id)
	}
	if k.inGroups != c.grouped.Len() {
		k.Bad("F3: %d hosts in the heaps of groups, counted %d", k.inGroups, c.grouped.Len())
	}
	rings := map[uint32]int{}
	for i, it := range c.Scheduled.Items {
		*k.due.DueAt(it.At)++
		rings[it.Aux]++
		k.record(arena.Ref(it.ID), it.Aux, "scheduled")
		if at, ok := c.Scheduled.Find(arena.Ref(it.ID)); !ok || at != i {
			k.Bad("F3: scheduled record %d says it is at %d of its heap, not %d", it.ID, at, i)
		}
	}
	for qid, n := range rings {
		for range c.Scheduled.Of(qid) {
			n--
		}
		if n != 0 {
			k.Bad("F5: queue %d has other scheduled records than its ring", qid)
		}
	}
}

// record notes a record found in memory; no record is in two places (F5).
func (k *Checker) record(ref arena.Ref, qid uint32, where string) {
	if old, ok := k.used[ref]; ok {
		k.Bad("F5: record %d is %s and %s", ref, old, where)
	}
	k.used[ref] = where
	r := k.c.Records.At(ref)
	k.bytes += r.Cost()
	if r.Seq() == 0 {
		k.Bad("F5: record %d, %s, was freed", ref, where)
	}
	if r.Part() == 0 {
		k.homeless += r.Cost()
	}
	if id := r.Part(); id != 0 {
		if k.resident == nil {
			k.resident = map[uint32]uint32{}
		}
		bit := uint32(1) << r.Pos()
		if k.resident[id]&bit != 0 {
			k.Bad("F5: position %d of part %d is in memory twice", r.Pos(), id)
		}
		k.resident[id] |= bit
		if k.c.Blocks.Unread(id)&bit != 0 {
			k.Bad("F5: position %d of part %d is in memory and may be read again", r.Pos(), id)
		}
	}
}

// hosts checks each host's place against its lists, heaps and leases (F1, F2).
func (k *Checker) hosts() {
	c := k.c
	called := map[uint32]bool{}
	for _, id := range c.Calls {
		called[id] = true
	}
	for id := uint32(1); id <= c.Hosts.Top; id++ {
		h := c.Hosts.At(id)
		if h.NameLen == 0 {
			continue
		}
		k.named += arena.Cost(int(h.NameLen))
		k.places[h.Place]++
		if got := c.Lookup(c.Hash(c.Name(h)), string(c.Name(h))); got != id {
			k.Bad("F3: host %d is found as %d", id, got)
		}
		k.host(id, h, called[id])
	}
	if k.places != c.Places {
		k.Bad("F6: places are %v, counted %v", k.places, c.Places)
	}
}

func (k *Checker) host(id uint32, h *Host, isCalled bool) {
	c := k.c
	waiting := int32(0)
	for qid := h.Queues; qid != 0; qid = c.Queues.At(qid).Sibling {
		q := c.Queues.At(qid)
		waiting += q.Waiting
		k.byLevel[q.level] += int64(q.Waiting)
		k.crawls[q.crawl].add(q, h)
		if h.Place == Withheld && c.CrawlOf(q).Runs() {
			k.withheld.urls[h.Pos] += int64(q.Waiting)
		}
		k.queue(qid, q)
		listed := h.Place == Unbound || h.Place == Ready
		if want := btoi(listed && q.Waiting > 0); k.inList[qid] != want {
			k.Bad("F2: queue %d of host %d in place %d with %d URLs is in %d lists", qid, id, h.Place, q.Waiting, k.inList[qid])
		}
	}
	k.waiting += int64(waiting)
	if waiting != h.Waiting {
		k.Bad("F6: host %d has %d URLs waiting, counted %d", id, waiting, h.Waiting)
	}
	k.lanes(id, h)
	for lease := range c.LeasesOf(id) {
		k.leased++
		l := c.Leases.At(lease)
		if l.Host != id || l.Token == 0 {
			k.Bad("F1: lease %d is of host %d, not %d", lease, l.Host, id)
		}
		if !l.Ending && c.Expiry.Items[l.Pos].ID != lease {
			k.Bad("F3: lease %d is not at its place %d in the heap", lease, l.Pos)
		}
		if l.Record != 0 {
			k.crawls[c.Queues.At(l.Queue).crawl].leased++
			k.record(l.Record, l.Queue, "leased")
		}
	}
	if isCalled != (h.Place == Called) {
		k.Bad("F2: host %d in place %d is among the called: %v", id, h.Place, isCalled)
	}
	switch h.Place {
	case Nowhere, Idling, Departing:
		if waiting > 0 || h.Wanted {
			k.Bad("F2: host %d rests with %d URLs; a Contact waits for it: %v", id, waiting, h.Wanted)
		}
	case Withheld:
		k.withheld.hosts[h.Pos]++
		if waiting == 0 && !h.Wanted || h.Has(HasSlot) {
			k.Bad("F2: host %d is withheld without URLs, or has a slot of its group: %v", id, h.Has(HasSlot))
		}
	case Unpurged:
		if c.Deletions.InForce.Len() == 0 && k.Swept || h.Has(HasSlot) || h.Wanted {
			k.Bad("F2: host %d waits for a sweep that will not come, or has a slot of its group (%v), or a Contact waits for it: %v", id, h.Has(HasSlot), h.Wanted)
		}
	case Unbound, Parked:
		if waiting == 0 || h.Wanted {
			k.Bad("F2: host %d in place %d has %d URLs; a Contact waits for it: %v", id, h.Place, waiting, h.Wanted)
		}
	case Pacing, Queued:
		if waiting == 0 && !h.Wanted {
			k.Bad("F2: host %d in place %d has no URLs, and no Contact waits for it", id, h.Place)
		}
	case Ready, Called:
		if h.Due > k.Now {
			k.Bad("F4: host %d is ready %d ns before its time", id, h.Due-k.Now)
		}
	}
}

// queue checks the three stretches of a queue (F5, F6).
func (k *Checker) queue(id uint32, q *Queue) {
	c := k.c
	n := 0
	c.Fifo.Check(&q.Queue, func(format string, args ...any) {
		k.Bad("%s (queue %d)", fmt.Sprintf(format, args...), id)
	})
	if k.Quiet && c.Cfg.Spill {
		c.Moves.Check(id, move.Queue{Queue: &q.Queue, Listed: &q.Listed}, c.DeadStored(q).Seq, k.Bad)
	}
	for ref := range c.Fifo.After(&q.Queue, 0) {
		k.record(ref, id, "waiting")
		n++
	}
	for pid := range c.Fifo.Parts(&q.Queue) {
		if !c.Blocks.Chained(pid) || k.chained[pid] {
			k.Bad("F5: queue %d: part %d is chained wrongly", id, pid)
			break
		}
		k.chained[pid] = true
		n += bits.OnesCount32(c.Blocks.Unread(pid))
	}
	if n != int(q.Waiting) {
		k.Bad("F6: queue %d has %d URLs, counted %d", id, n, q.Waiting)
	}
}

// totals compares what was counted with the walk (F6). It reports whether hosts wait for a commit.
func (k *Checker) totals() (pending bool) {
	c := k.c
	s := &c.Stats
	if s.Waiting != k.waiting || s.Leased != k.leased || s.Scheduled != k.due.Scheduled || s.Finished != k.due.Finished {
		k.Bad("F6: waiting %d, leased %d, scheduled %d, finished %d; Stats say %d, %d, %d, %d",
			k.waiting, k.leased, k.due.Scheduled, k.due.Finished, s.Waiting, s.Leased, s.Scheduled, s.Finished)
	}
	for p := 1; p <= c.Cfg.Levels; p++ {
		if s.WaitingBy[p-1] != k.byLevel[p] {
			k.Bad("F6: %d waiting of priority %d; Stats say %d", k.byLevel[p], p, s.WaitingBy[p-1])
		}
	}
	if n := k.byLevel[c.immediate()]; s.Immediate != n {
		k.Bad("F6: %d waiting are immediate; Stats say %d", n, s.Immediate)
	}
	for id := uint32(1); id <= c.Hosts.Top; id++ {
		pending = pending || c.Hosts.At(id).Pins > 0
	}
	if !pending && c.Records.Homeless() != k.homeless {
		k.Bad("F6: %d bytes of records are in no block, counted %d", k.homeless, c.Records.Homeless())
	}
	if !pending && k.bytes != c.Records.Used() {
		k.Bad("F5: %d bytes of records; the arena has %d in use", k.bytes, c.Records.Used())
	}
	if k.named != c.names.Used() {
		k.Bad("F5: %d bytes of names; the arena has %d in use", k.named, c.names.Used())
	}
	return pending
}

// blocks checks blocks and their parts, those that are not read yet first: what these
// have is in no part.
func (k *Checker) blocks() {
	live := map[uint32]int{}
	due, never := k.c.Timed.Check(live, k.Bad)
	k.due.Scheduled += due
	k.due.Finished += never
	k.c.Blocks.Check(k.chained, live, k.Quiet, k.Bad)
}

// crawlCount is what a walk found of a crawl.
type crawlCount struct {
	queues   int
	waiting  int64
	byLevel  [row.MaxPriorities + 2]int64
	leased   int64
	withheld [withheldReasons]int64
}

func (n *crawlCount) add(q *Queue, h *Host) {
	if h.Place == Withheld {
		n.withheld[h.Pos] += int64(q.Waiting)
	}
	n.queues++
	n.waiting += int64(q.Waiting)
	n.byLevel[q.level] += int64(q.Waiting)
}
