// This file verifies the invariants F1 to F9 that doc.go states.

package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/bits"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

// Check verifies the frontier's invariants and returns every violation found,
// joined. It walks all that is in memory under the lock: it is for tests.
func (f *Frontier) Check() error {
	quiet := f.rounds.TryLock()
	if quiet {
		defer f.rounds.Unlock()
	}
	counts, version := f.countRows()
	f.mu.Lock()
	defer f.mu.Unlock()
	k := newChecker(f.sched, outside{
		quiet: quiet, settled: f.finishing == 0, swept: f.sweeping == 0 && !f.closed, now: f.nowLocked(),
		last: f.seq, deletions: len(f.deletions),
	})
	var swept tombstone.Set
	for _, d := range f.deletions {
		if d.Seq == 0 || d.Seq > f.seq || d.Block > f.sched.blocks.Last() {
			k.bad("F7: deletion %d of %d is of blocks up to %d of %d", d.Seq, f.seq, d.Block, f.sched.blocks.Last())
		}
		if d.swept {
			swept.Add(&d.Tombstone)
		}
	}
	pending := k.check(&swept)
	if pending && f.finishing == 0 && f.adding.Load() == 0 && len(f.committer.saving) == 0 && f.steps.pending == 0 {
		k.bad("F9: hosts wait for a commit, and none is on its way")
	}
	f.checkRulesLocked(k.bad)
	f.hints.Check(func(m storage.Mark) bool { return f.known.Checkpoints() > 0 || f.known.Young(m) }, k.bad)
	if f.sched.settledCounts(version) && f.finishing == 0 {
		k.counts(counts)
	}
	return errors.Join(k.errs...)
}

// outside is what the checker cannot see: how things stand around the scheduler.
type outside struct {
	quiet     bool // no round of moving is under way
	settled   bool // no completion is on its way to the disk
	swept     bool // no sweep is under way, or was when all ended
	now       int64
	last      uint64 // number of the last admission
	deletions int    // that have a row
}

func newChecker(c *scheduler, v outside) *checker {
	return &checker{c: c, outside: v, used: map[arena.Ref]string{}, chained: map[uint32]bool{}, crawls: make([]crawlCount, len(c.crawls))}
}

// check checks all there is. Of the deletions in swept nothing dead may be left. It reports whether
// hosts wait for a commit.
func (k *checker) check(swept *tombstone.Set) (pending bool) {
	k.lists()
	k.heaps()
	k.hosts()
	k.withheldHosts()
	k.crawlTable()
	k.c.order.Check(k.bad, k.c.hosts.Top, k.c.inMemory)
	k.c.sizes.Check(k.bad, k.c.hosts.Top, k.c.waitingOf)
	k.departures()
	k.troubles()
	k.limits()
	k.groups()
	k.blocks()
	k.deleted(swept)
	k.c.waits.Check(k.bad)
	return k.totals()
}

type checker struct {
	c *scheduler
	outside
	errs    []error
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
	places   [leased + 1]int
	withheld withheldHosts     // hosts and urls only
	resident map[uint32]uint32 // by part: positions of records in memory
}

func (k *checker) bad(format string, args ...any) {
	if len(k.errs) < 20 {
		k.errs = append(k.errs, fmt.Errorf("frontier: invariant: "+format, args...))
	}
}

// lists checks the links of front queues and ready lists, and their masks (F2).
func (k *checker) lists() {
	k.inList = map[uint32]int{}
	c := k.c
	walk := func(x *crawl, what string, l *list, mask uint64, p int, want place) {
		n, prev := 0, uint32(0)
		for id := l.first; id != 0; id = c.queues.At(id).next {
			q := c.queues.At(id)
			if q.prev != prev || int(q.level) != p || c.crawlOf(q) != x {
				k.bad("F3: %s %d: queue %d is linked wrongly", what, p, id)
			}
			if got := c.hosts.At(q.host).place; got != want {
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
	for name, h := range map[string]*timeheap.Heap{"offers": &c.offers, "urgent": &c.urgent, "pace": &c.pace, "parks": &c.parks, "idle": &c.idle, "expiry": &c.expiry, "scheduled": &c.scheduled.Heap} {
		if err := h.Check(); err != nil {
			k.bad("F3: heap %s: %v", name, err)
		}
	}
	at := func(h *timeheap.Heap, want place, key func(uint32) int64, name string) {
		for i, it := range h.Items {
			if it.ID&groupBit != 0 {
				continue
			}
			x := c.hosts.At(it.ID)
			if x.place != want || int(x.pos) != i || it.At != key(it.ID) {
				k.bad("F3: heap %s: host %d has place %d, position %d, time %d; the heap %d at %d", name, it.ID, x.place, x.pos, key(it.ID), i, it.At)
			}
		}
	}
	due := func(id uint32) int64 { return c.hosts.At(id).due }
	at(&c.pace, pacing, due, "pace")
	at(&c.parks, parked, due, "parks")
	for i, it := range c.idle.Items {
		if h := c.hosts.At(it.ID); h.place != idling || int(h.pos) != i || it.At != c.idlesUntil(it.ID) {
			k.bad("F3: heap idle: host %d in place %d is at %d, not %d, for %d", it.ID, h.place, i, h.pos, it.At)
		}
	}
	for i, it := range c.expiry.Items {
		l := c.leases.At(it.ID)
		if int(l.pos) != i || l.deadline != it.At || l.token == 0 || l.ending {
			k.bad("F3: heap expiry: lease %d of host %d is at %d for %d, not at %d for %d", it.ID, l.host, l.pos, l.deadline, i, it.At)
		}
	}
	for id := uint32(1); id <= c.groups.Top; id++ {
		k.grouped(id)
	}
	if k.inGroups != c.grouped.Len() {
		k.bad("F3: %d hosts in the heaps of groups, counted %d", k.inGroups, c.grouped.Len())
	}
	rings := map[uint32]int{}
	for i, it := range c.scheduled.Items {
		*k.due.dueAt(it.At)++
		rings[it.Aux]++
		k.record(arena.Ref(it.ID), it.Aux, "scheduled")
		if at, ok := c.scheduled.Find(arena.Ref(it.ID)); !ok || at != i {
			k.bad("F3: scheduled record %d says it is at %d of its heap, not %d", it.ID, at, i)
		}
	}
	for qid, n := range rings {
		for range c.scheduled.Of(qid) {
			n--
		}
		if n != 0 {
			k.bad("F5: queue %d has other scheduled records than its ring", qid)
		}
	}
}

// record notes a record found in memory; no record is in two places (F5).
func (k *checker) record(ref arena.Ref, qid uint32, where string) {
	if old, ok := k.used[ref]; ok {
		k.bad("F5: record %d is %s and %s", ref, old, where)
	}
	k.used[ref] = where
	r := k.c.records.At(ref)
	k.bytes += r.Cost()
	if r.Seq() == 0 {
		k.bad("F5: record %d, %s, was freed", ref, where)
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
			k.bad("F5: position %d of part %d is in memory twice", r.Pos(), id)
		}
		k.resident[id] |= bit
		if k.c.blocks.Unread(id)&bit != 0 {
			k.bad("F5: position %d of part %d is in memory and may be read again", r.Pos(), id)
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
	for id := uint32(1); id <= c.hosts.Top; id++ {
		h := c.hosts.At(id)
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
	for qid := h.queues; qid != 0; qid = c.queues.At(qid).sibling {
		q := c.queues.At(qid)
		waiting += q.waiting
		k.byLevel[q.level] += int64(q.waiting)
		k.crawls[q.crawl].add(q, h)
		if h.place == withheld && c.crawlOf(q).runs() {
			k.withheld.urls[h.pos] += int64(q.waiting)
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
		l := c.leases.At(lease)
		if l.host != id || l.token == 0 {
			k.bad("F1: lease %d is of host %d, not %d", lease, l.host, id)
		}
		if !l.ending && c.expiry.Items[l.pos].ID != lease {
			k.bad("F3: lease %d is not at its place %d in the heap", lease, l.pos)
		}
		if l.record != 0 {
			k.crawls[c.queues.At(l.queue).crawl].leased++
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
	case withheld:
		k.withheld.hosts[h.pos]++
		if waiting == 0 && !h.wanted || h.hasSlot {
			k.bad("F2: host %d is withheld without URLs, or has a slot of its group: %v", id, h.hasSlot)
		}
	case unpurged:
		if c.tombstones.Len() == 0 && k.swept || h.hasSlot || h.wanted {
			k.bad("F2: host %d waits for a sweep that will not come, or has a slot of its group (%v), or a Contact waits for it: %v", id, h.hasSlot, h.wanted)
		}
	case unbound, parked:
		if waiting == 0 || h.wanted {
			k.bad("F2: host %d in place %d has %d URLs; a Contact waits for it: %v", id, h.place, waiting, h.wanted)
		}
	case pacing, queued:
		if waiting == 0 && !h.wanted {
			k.bad("F2: host %d in place %d has no URLs, and no Contact waits for it", id, h.place)
		}
	case ready, called:
		if h.due > k.now {
			k.bad("F4: host %d is ready %d ns before its time", id, h.due-k.now)
		}
	}
}

// queue checks the three stretches of a queue (F5, F6).
func (k *checker) queue(id uint32, q *queue) {
	c := k.c
	n := 0
	c.fifo.Check(&q.Queue, func(format string, args ...any) {
		k.bad("%s (queue %d)", fmt.Sprintf(format, args...), id)
	})
	if k.quiet && c.cfg.spill {
		c.moves.Check(id, move.Queue{Queue: &q.Queue, Listed: &q.listed}, c.deadStored(q).Seq, k.bad)
	}
	for ref := range c.fifo.After(&q.Queue, 0) {
		k.record(ref, id, "waiting")
		n++
	}
	for pid := range c.fifo.Parts(&q.Queue) {
		if !c.blocks.Chained(pid) || k.chained[pid] {
			k.bad("F5: queue %d: part %d is chained wrongly", id, pid)
			break
		}
		k.chained[pid] = true
		n += bits.OnesCount32(c.blocks.Unread(pid))
	}
	if n != int(q.waiting) {
		k.bad("F6: queue %d has %d URLs, counted %d", id, n, q.waiting)
	}
}

// totals compares what was counted with the walk (F6). It reports whether hosts wait for a commit.
func (k *checker) totals() (pending bool) {
	c := k.c
	s := &c.stats
	if s.Waiting != k.waiting || s.Leased != k.leased || s.Scheduled != k.due.Scheduled || s.Finished != k.due.Finished {
		k.bad("F6: waiting %d, leased %d, scheduled %d, finished %d; Stats say %d, %d, %d, %d",
			k.waiting, k.leased, k.due.Scheduled, k.due.Finished, s.Waiting, s.Leased, s.Scheduled, s.Finished)
	}
	for p := 1; p <= c.cfg.levels; p++ {
		if s.WaitingBy[p-1] != k.byLevel[p] {
			k.bad("F6: %d waiting of priority %d; Stats say %d", k.byLevel[p], p, s.WaitingBy[p-1])
		}
	}
	if n := k.byLevel[c.immediate()]; s.Immediate != n {
		k.bad("F6: %d waiting are immediate; Stats say %d", n, s.Immediate)
	}
	for id := uint32(1); id <= c.hosts.Top; id++ {
		pending = pending || c.hosts.At(id).pins > 0
	}
	if !pending && c.records.Homeless() != k.homeless {
		k.bad("F6: %d bytes of records are in no block, counted %d", k.homeless, c.records.Homeless())
	}
	if !pending && k.bytes != c.records.Used() {
		k.bad("F5: %d bytes of records; the arena has %d in use", k.bytes, c.records.Used())
	}
	if k.named != c.names.Used() {
		k.bad("F5: %d bytes of names; the arena has %d in use", k.named, c.names.Used())
	}
	return pending
}

// blocks checks blocks and their parts, those that are not read yet first: what these
// have is in no part.
func (k *checker) blocks() {
	live := map[uint32]int{}
	due, never := k.c.timed.Check(live, k.bad)
	k.due.Scheduled += due
	k.due.Finished += never
	k.c.blocks.Check(k.chained, live, k.bad)
}

// departures checks that each host that may leave will do so, and that no row is
// overlooked (F9).
func (k *checker) departures() {
	c := k.c
	queued := map[uint32]bool{}
	c.dormant.Places(func(id uint32, place int32) {
		if h := c.hosts.At(id); h.place == departing && h.pos == place {
			queued[id] = true
		}
	})
	for id := uint32(1); id <= c.hosts.Top; id++ {
		h := c.hosts.At(id)
		if h.nameLen == 0 {
			continue
		}
		if h.place == departing && (!queued[id] || h.pins > 0 || h.scheduled > 0) {
			k.bad("F9: host %d will not leave: queued %v, %d pins, %d scheduled", id, queued[id], h.pins, h.scheduled)
		}
		if h.has(stored) && !c.dormant.MayHaveRow(c.hash(c.name(h))) {
			k.bad("F9: the row of host %d will not be found", id)
		}
		if h.learned() && c.cfg.spill && !h.has(stored) && !h.has(unsaved|behind) {
			k.bad("F9: what host %d learned will be forgotten", id)
		}
	}
}

// troubles checks that hosts and what is known of their failures agree (F6).
func (k *checker) troubles() {
	c := k.c
	var backedOff, quarantined int64
	n := 0
	lost := map[uint32]bool{}
	for _, id := range c.lost {
		lost[id] = true
	}
	for id := uint32(1); id <= c.hosts.Top; id++ {
		h := c.hosts.At(id)
		if h.nameLen == 0 {
			continue
		}
		t, ok := c.troubles[id]
		if ok != h.has(troubled) {
			k.bad("F6: host %d is in trouble: %v, counted %v", id, ok, h.has(troubled))
		}
		if !ok {
			continue
		}
		n++
		if t.Listed && !lost[id] {
			k.bad("F6: host %d is to be given up, and is not listed", id)
		}
		backedOff += int64(btoi(t.Step > 0))
		quarantined += int64(btoi(t.Probes > 0))
		if t.Over() {
			k.bad("F6: the trouble of host %d is over: %+v", id, t)
		}
	}
	if n != len(c.troubles) {
		k.bad("F6: %d hosts are in trouble, counted %d", n, len(c.troubles))
	}
	if s := c.stats; s.BackedOff != backedOff || s.Quarantined != quarantined {
		k.bad("F6: %d hosts are backed off and %d in quarantine; Stats say %d and %d", backedOff, quarantined, s.BackedOff, s.Quarantined)
	}
}

// deleted checks that nothing dead is left of deletions that were swept, and
// that of the others it is at the heads of queues (F7).
func (k *checker) deleted(swept *tombstone.Set) {
	c := k.c
	if c.storedTombstones.Len() != k.deletions {
		k.bad("F6: %d deletions have rows, counted %d", k.deletions, c.storedTombstones.Len())
	}
	for id := uint32(1); id <= c.queues.Top; id++ {
		if q := c.queues.At(id); q.host != 0 {
			k.sweptQueue(id, q, swept.Of(c.name(c.hosts.At(q.host)), c.crawlOf(q).id))
		}
	}
	for _, it := range c.scheduled.Items {
		q := c.queues.At(it.Aux)
		if d := swept.Of(c.name(c.hosts.At(q.host)), c.crawlOf(q).id); c.records.At(arena.Ref(it.ID)).Seq() <= d.Seq {
			k.bad("F7: record %d is scheduled, and was deleted", it.ID)
		}
	}
	dead := 0
	for id := uint32(1); id <= c.leases.Top; id++ {
		if c.leases.At(id).dead != 0 {
			dead++
		}
	}
	if dead > c.unsettledDead || k.settled && dead != c.unsettledDead {
		k.bad("F6: %d leases have dead records, counted %d", dead, c.unsettledDead)
	}
}

func (k *checker) sweptQueue(id uint32, q *queue, swept tombstone.Dead) {
	c := k.c
	now := c.deadIn(q)
	alive := false
	see := func(deleted, dead bool) {
		switch {
		case deleted:
			k.bad("F7: queue %d has a URL that was deleted", id)
		case dead && alive:
			k.bad("F7: queue %d has a dead URL behind one that is alive", id)
		}
		alive = alive || !dead
	}
	seeAll := func(refs iter.Seq[arena.Ref]) {
		for ref := range refs {
			seq := c.records.At(ref).Seq()
			see(seq <= swept.Seq, seq <= now.Seq)
		}
	}
	seeAll(c.fifo.Front(&q.Queue))
	for pid := range c.fifo.Parts(&q.Queue) {
		if p := c.blocks.Part(pid); c.blocks.Unread(pid) != 0 {
			see(p.Block <= swept.Block, p.Block <= now.Block)
		}
	}
	seeAll(c.fifo.Back(&q.Queue))
}

// crawlCount is what a walk found of a crawl.
type crawlCount struct {
	queues   int
	waiting  int64
	byLevel  [row.MaxPriorities + 2]int64
	leased   int64
	withheld [withheldReasons]int64
}

func (n *crawlCount) add(q *queue, h *host) {
	if h.place == withheld {
		n.withheld[h.pos] += int64(q.waiting)
	}
	n.queues++
	n.waiting += int64(q.waiting)
	n.byLevel[q.level] += int64(q.waiting)
}

// crawlTable checks each crawl's counters (F6) and whether hand-outs see it (F3).
func (k *checker) crawlTable() {
	c := k.c
	urls, limited, paused := int64(0), int64(0), 0
	for slot, x := range c.crawls {
		if x == nil {
			continue
		}
		if got, ok := c.crawlSlots[x.id]; slot > 0 && (!ok || int(got) != slot) {
			k.bad("F3: crawl %d is in slot %d and found in %d", x.id, slot, got)
		}
		n := &k.crawls[slot]
		if x.queues != n.queues || x.stats.Waiting != n.waiting || x.stats.Leased != n.leased || x.stats.Immediate != n.byLevel[c.immediate()] {
			k.bad("F6: crawl %d has %d queues, %d waiting, %d of them immediate, %d leased; counted %d, %d, %d, %d",
				x.id, n.queues, n.waiting, n.byLevel[c.immediate()], n.leased, x.queues, x.stats.Waiting, x.stats.Immediate, x.stats.Leased)
		}
		if x.withheld != n.withheld {
			k.bad("F6: crawl %d has %v URLs of withheld hosts, counted %v", x.id, n.withheld, x.withheld)
		}
		for p, got := range x.stats.WaitingBy {
			if got != n.byLevel[p+1] {
				k.bad("F6: crawl %d has %d waiting of priority %d, counted %d", x.id, n.byLevel[p+1], p+1, got)
			}
		}
		if !x.runs() {
			urls += n.waiting
			paused++
			if x.stop == crawlLimited {
				limited += n.waiting
			}
		}
		k.crawlOffers(slot, x)
	}
	if urls != c.pausedURLs || paused != c.pausedCrawls || limited != c.limitedURLs {
		k.bad("F6: %d URLs of %d paused crawls, counted %d of %d", urls, paused, c.pausedURLs, c.pausedCrawls)
	}
}

// counts compares the counts with their sums, and with Stats unless one of them has what is dead, or
// cannot be read (F6).
func (k *checker) counts(rows map[string]row.Count) {
	c := k.c
	sums := map[uint32]row.CountSum{}
	var all count.Numbers
	for key, n := range rows {
		crawl := binary.BigEndian.Uint32([]byte(key[len(row.CountKey):]))
		s := sums[crawl]
		sums[crawl] = row.CountSum{
			Total: s.Total + n.Total, Finished: s.Finished + n.Finished, Hosts: s.Hosts + 1, Active: s.Active + int64(btoi(n.Total > n.Finished)),
		}
		if all.Add(count.Numbers{Total: n.Total, Finished: n.Finished}, 1); n.Total <= 0 || n.Finished < 0 || n.Finished > n.Total {
			k.bad("F6: %q counts %+v", key, n)
		}
	}
	for _, crawl := range c.counts.Crawls() {
		if s := c.counts.Sum(crawl); s != sums[crawl] {
			k.bad("F6: crawl %d has %+v, its hosts have %+v", crawl, s, sums[crawl])
		}
		delete(sums, crawl)
	}
	if len(sums) > 0 {
		k.bad("F6: no sums of %v", sums)
	}
	if c.tombstones.Len()+c.storedTombstones.Len() > 0 || c.stats.Unreadable > 0 {
		return
	}
	total := c.stats.Waiting + c.stats.Scheduled + c.stats.Finished
	for id := uint32(1); id <= c.leases.Top; id++ {
		if l := c.leases.At(id); l.token != 0 && l.record != 0 && l.dead == 0 {
			total++
		}
	}
	if all.Total != total || all.Finished != c.stats.Finished {
		k.bad("F6: counted %+v; Stats say %d, %d of them finished", all, total, c.stats.Finished)
	}
}
