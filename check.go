// This file verifies the invariants F1 to F9 that doc.go states.

package frontier

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/seed-7440039f/frontier/internal/arena"
)

// Check verifies the frontier's invariants and returns every violation found,
// joined. It walks all that is in memory under the lock: it is for tests.
func (f *Frontier) Check() error {
	quiet := f.rounds.TryLock()
	if quiet {
		defer f.rounds.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	k := &checker{c: f.core, swept: f.sweeping == 0 && !f.closed, quiet: quiet, now: f.nowLocked(), used: map[arena.Ref]string{}, chained: map[uint32]bool{}}
	k.lists()
	k.heaps()
	k.crawls = make([]crawlCount, len(f.core.crawls))
	k.hosts()
	k.heldHosts()
	k.crawlTable()
	k.order()
	k.sizes()
	k.rules()
	k.departures()
	k.troubles()
	k.limits(f)
	k.groups()
	k.parts()
	k.deletions(f)
	k.hints(f)
	k.totals(f)
	k.c.waits.check(k.bad)
	return errors.Join(k.errs...)
}

type checker struct {
	c       *core
	swept   bool // no sweep is under way, or was when all ended
	quiet   bool // no round is under way
	now     int64
	errs    []error
	used    map[arena.Ref]string // records found, and where
	chained map[uint32]bool

	inList    map[uint32]int // by queue: in how many front queues and ready lists
	bytes     int64          // of records
	named     int64          // bytes of names and bitmaps
	homeless  int64
	inGroups  int // hosts in heaps of groups
	waiting   int64
	byLevel   [maxPriorities + 2]int64
	crawls    []crawlCount // by slot
	leased    int64
	scheduled int64
	places    [leased + 1]int
	held      heldHosts         // hosts and urls only
	resident  map[uint32]uint32 // by part: positions of records in memory
}

func (k *checker) bad(format string, args ...any) {
	if len(k.errs) < 20 {
		k.errs = append(k.errs, fmt.Errorf("frontier: invariant: "+format, args...))
	}
}

// order checks that the hosts which are in order are those in memory.
func (k *checker) order() {
	o, n, last := &k.c.order, 0, ""
	if o.tree == nil {
		return
	}
	for id := uint32(1); id <= min(k.c.hosts.top, o.upTo); id++ {
		if k.c.hosts.at(id).nameLen > 0 {
			n++
		}
	}
	o.tree.Ascend(func(id uint32) bool {
		key := string(k.c.orderKey(nil, id))
		if key <= last || k.c.lookup(k.c.hash(k.c.name(k.c.hosts.at(id))), string(k.c.name(k.c.hosts.at(id)))) != id {
			k.bad("host %d, %q, is out of order behind %q", id, key, last)
		}
		last = key
		return true
	})
	if o.tree.Len() != n {
		k.bad("%d hosts are in order, want %d", o.tree.Len(), n)
	}
}

// lists checks the links of front queues and ready lists, and their masks (F2).
func (k *checker) lists() {
	k.inList = map[uint32]int{}
	c := k.c
	walk := func(x *crawl, what string, l *list, mask uint64, p int, want place) {
		n, prev := 0, uint32(0)
		for id := l.first; id != 0; id = c.queues.at(id).next {
			q := c.queues.at(id)
			if q.prev != prev || int(q.level) != p || c.crawlOf(q) != x {
				k.bad("F3: %s %d: queue %d is linked wrongly", what, p, id)
			}
			if got := c.hosts.at(q.host).place; got != want {
				k.bad("F2: %s %d: host %d is in place %d, not %d", what, p, q.host, got, want)
			}
			if q.waiting == 0 {
				k.bad("F2: %s %d: queue %d has no URLs", what, p, id)
			}
			k.inList[id]++
			prev = id
			if n++; n > l.n {
				k.bad("F3: %s %d: more than its %d queues", what, p, l.n)
				return
			}
		}
		if n != l.n || l.last != prev {
			k.bad("F3: %s %d: %d queues, counted %d", what, p, n, l.n)
		}
		if p <= c.cfg.levels && (mask>>(p-1)&1 == 1) != (n > 0) {
			k.bad("F3: %s %d: mask disagrees with its %d queues", what, p, n)
		}
	}
	for _, x := range c.crawls {
		for p := 1; x != nil && p <= c.cfg.levels+1; p++ {
			walk(x, "front queue", &x.lists[tokens].at[p], x.lists[tokens].mask, p, unbound)
			walk(x, "ready list", &x.lists[readies].at[p], x.lists[readies].mask, p, ready)
		}
	}
}

// heaps checks order and positions (F3).
func (k *checker) heaps() {
	c := k.c
	for name, h := range map[string]*timeHeap{"offers": &c.offers, "urgent": &c.urgent, "pace": &c.pace, "parks": &c.parks, "idle": &c.idle, "expiry": &c.expiry, "scheduled": &c.scheduled} {
		if err := h.check(); err != nil {
			k.bad("F3: heap %s: %v", name, err)
		}
	}
	at := func(h *timeHeap, want place, key func(uint32) int64, name string) {
		for i, it := range h.Items {
			if it.id&groupBit != 0 {
				continue
			}
			x := c.hosts.at(it.id)
			if x.place != want || int(x.pos) != i || it.at != key(it.id) {
				k.bad("F3: heap %s: host %d has place %d, position %d, time %d; the heap %d at %d", name, it.id, x.place, x.pos, key(it.id), i, it.at)
			}
		}
	}
	due := func(id uint32) int64 { return c.hosts.at(id).due }
	at(&c.pace, pacing, due, "pace")
	at(&c.parks, parked, due, "parks")
	for i, it := range c.idle.Items {
		if h := c.hosts.at(it.id); h.place != idling || int(h.pos) != i || it.at != c.idlesUntil(it.id) {
			k.bad("F3: heap idle: host %d in place %d is at %d, not %d, for %d", it.id, h.place, i, h.pos, it.at)
		}
	}
	for i, it := range c.expiry.Items {
		l := c.leases.at(it.id)
		if int(l.pos) != i || l.deadline != it.at || l.token == 0 || l.ending {
			k.bad("F3: heap expiry: lease %d of host %d is at %d for %d, not at %d for %d", it.id, l.host, l.pos, l.deadline, i, it.at)
		}
	}
	for id := uint32(1); id <= c.groups.top; id++ {
		k.grouped(id)
	}
	if k.inGroups != c.grouped.len() {
		k.bad("F3: %d hosts in the heaps of groups, counted %d", k.inGroups, c.grouped.len())
	}
	for i, it := range c.scheduled.Items {
		k.record(arena.Ref(it.id), it.aux, "scheduled")
		if at, ok := c.scheduledAt(arena.Ref(it.id)); !ok || at != i {
			k.bad("F3: scheduled record %d says it is at %d of its heap, not %d", it.id, at, i)
		}
	}
	k.scheduled = int64(c.scheduled.len())
	if err := c.timed.unread.items.check(c.timed.unread.root); err != nil {
		k.bad("F3: heap of timed blocks: %v", err)
	}
}

// record notes a record found in memory; no record is in two places (F5).
func (k *checker) record(ref arena.Ref, qid uint32, where string) {
	if old, ok := k.used[ref]; ok {
		k.bad("F5: record %d is %s and %s", ref, old, where)
	}
	k.used[ref] = where
	r := k.c.record(ref)
	k.bytes += arena.Cost(recordSize(r.length()))
	if r.seq() == 0 {
		k.bad("F5: record %d, %s, was freed", ref, where)
	}
	if r.part() == 0 {
		k.homeless += arena.Cost(recordSize(r.length()))
	}
	if id := r.part(); id != 0 {
		if k.resident == nil {
			k.resident = map[uint32]uint32{}
		}
		bit := uint32(1) << r.pos()
		if k.resident[id]&bit != 0 {
			k.bad("F5: position %d of part %d is in memory twice", r.pos(), id)
		}
		k.resident[id] |= bit
		if k.c.unread(k.c.parts.at(id))&bit != 0 {
			k.bad("F5: position %d of part %d is in memory and may be read again", r.pos(), id)
		}
	}
}

// hosts checks each host's place against its lists, heaps and leases (F1, F2).
func (k *checker) hosts() {
	c := k.c
	called := map[uint32]bool{}
	for _, id := range c.calls {
		called[id] = true
	}
	for id := uint32(1); id <= c.hosts.top; id++ {
		h := c.hosts.at(id)
		if h.nameLen == 0 {
			continue
		}
		k.named += arena.Cost(int(h.nameLen))
		k.places[h.place]++
		if got := c.lookup(c.hash(c.name(h)), string(c.name(h))); got != id {
			k.bad("F3: host %d is found as %d", id, got)
		}
		k.host(id, h, called[id])
	}
	if k.places != c.places {
		k.bad("F6: places are %v, counted %v", k.places, c.places)
	}
}

func (k *checker) host(id uint32, h *host, isCalled bool) {
	c := k.c
	waiting := int32(0)
	for qid := h.queues; qid != 0; qid = c.queues.at(qid).sibling {
		q := c.queues.at(qid)
		waiting += q.waiting
		k.byLevel[q.level] += int64(q.waiting)
		k.crawls[q.crawl].add(q, h)
		if h.place == held && c.crawlOf(q).runs() {
			k.held.urls[h.pos] += int64(q.waiting)
		}
		k.queue(qid, q)
		listed := h.place == unbound || h.place == ready
		if want := btoi(listed && q.waiting > 0); k.inList[qid] != want {
			k.bad("F2: queue %d of host %d in place %d with %d URLs is in %d lists", qid, id, h.place, q.waiting, k.inList[qid])
		}
	}
	k.waiting += int64(waiting)
	if waiting != h.waiting {
		k.bad("F6: host %d has %d URLs waiting, counted %d", id, waiting, h.waiting)
	}
	k.lanes(id, h)
	for lease := range c.leasesOf(id) {
		k.leased++
		l := c.leases.at(lease)
		if l.host != id || l.token == 0 {
			k.bad("F1: lease %d is of host %d, not %d", lease, l.host, id)
		}
		if !l.ending && c.expiry.Items[l.pos].id != lease {
			k.bad("F3: lease %d is not at its place %d in the heap", lease, l.pos)
		}
		if l.record != 0 {
			k.crawls[c.queues.at(l.queue).crawl].leased++
			k.record(l.record, l.queue, "leased")
		}
	}
	if isCalled != (h.place == called) {
		k.bad("F2: host %d in place %d is among the called: %v", id, h.place, isCalled)
	}
	switch h.place {
	case nowhere, idling, departing:
		if waiting > 0 || h.wanted {
			k.bad("F2: host %d rests with %d URLs; a Contact waits for it: %v", id, waiting, h.wanted)
		}
	case held:
		k.held.hosts[h.pos]++
		if waiting == 0 && !h.wanted || h.holdsSlot {
			k.bad("F2: host %d is held without URLs, or has a slot of its group: %v", id, h.holdsSlot)
		}
	case dying:
		if c.dooms.n == 0 && k.swept || h.holdsSlot || h.wanted {
			k.bad("F2: host %d waits for a sweep that will not come, or has a slot of its group (%v), or a Contact waits for it: %v", id, h.holdsSlot, h.wanted)
		}
	case unbound, parked:
		if waiting == 0 || h.wanted {
			k.bad("F2: host %d in place %d has %d URLs; a Contact waits for it: %v", id, h.place, waiting, h.wanted)
		}
	case ready, called:
		if h.due > k.now {
			k.bad("F4: host %d is ready %d ns before its time", id, h.due-k.now)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// queue checks the three stretches of a queue (F5, F6).
func (k *checker) queue(id uint32, q *queue) {
	c := k.c
	n := 0
	dead := c.condemned(q).seq
	homed := c.homed[id]
	if !k.quiet || !c.inQueue(q, homed) {
		homed = location{}
	}
	for _, s := range [...]stretch{q.front, q.back} {
		last := arena.Ref(0)
		for ref := s.first; ref != 0; ref = c.record(ref).next() {
			k.record(ref, id, "waiting")
			if k.quiet && c.cfg.spill && !q.listed && c.record(ref).part() == 0 && c.record(ref).seq() > dead {
				k.bad("F5: queue %d has a record without a home and is not listed", id)
			}
			if homed.ref != 0 && c.record(ref).part() == 0 {
				k.bad("F5: queue %d has a record without a home before one up to which all have homes", id)
			}
			if homed.ref == ref {
				homed.ref = 0
			}
			last = ref
			n++
		}
		if last != s.last {
			k.bad("F3: queue %d: a stretch ends at %d, not %d", id, last, s.last)
		}
	}
	if homed.ref != 0 {
		k.bad("F5: queue %d: the record up to which all have homes is not in it", id)
	}
	for pid := range c.chain(q) {
		p := c.parts.at(pid)
		if !p.chained() || k.chained[pid] {
			k.bad("F5: queue %d: part %d is chained wrongly", id, pid)
			break
		}
		k.chained[pid] = true
		n += bits.OnesCount32(c.unread(p))
	}
	if n != int(q.waiting) {
		k.bad("F6: queue %d has %d URLs, counted %d", id, n, q.waiting)
	}
}

// totals compares Stats with the walk (F6).
func (k *checker) totals(f *Frontier) {
	s := f.core.stats
	if s.Waiting != k.waiting || s.Leased != k.leased || s.Scheduled != k.scheduled {
		k.bad("F6: waiting %d, leased %d, scheduled %d; Stats say %d, %d, %d",
			k.waiting, k.leased, k.scheduled, s.Waiting, s.Leased, s.Scheduled)
	}
	for p := 1; p <= f.opts.Priorities; p++ {
		if s.WaitingBy[p-1] != k.byLevel[p] {
			k.bad("F6: %d waiting of priority %d; Stats say %d", k.byLevel[p], p, s.WaitingBy[p-1])
		}
	}
	if n := k.byLevel[f.core.immediate()]; s.Immediate != n {
		k.bad("F6: %d waiting are immediate; Stats say %d", n, s.Immediate)
	}
	pending := false
	for id := uint32(1); id <= f.core.hosts.top; id++ {
		pending = pending || f.core.hosts.at(id).pins > 0
	}
	if pending && f.finishing == 0 && f.adding.Load() == 0 && len(f.committer.saving) == 0 && f.steps == 0 {
		k.bad("F9: hosts wait for a commit, and none is on its way")
	}
	if !pending && f.core.homeless != k.homeless {
		k.bad("F6: %d bytes of records are in no block, counted %d", k.homeless, f.core.homeless)
	}
	if !pending && k.bytes != f.core.mem.Used() {
		k.bad("F5: %d bytes of records; the arena has %d in use", k.bytes, f.core.mem.Used())
	}
	if k.named != f.core.names.Used() {
		k.bad("F5: %d bytes of names and bitmaps; the arena has %d in use", k.named, f.core.names.Used())
	}
}
