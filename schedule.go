// This file is the scheduler: it decides who may be contacted when, and what is handed
// out, without locks, clocks, disks and waiting.
//
// A host moves: nowhere -> unbound (a token in each front queue) -> pacing (in
// the heap) -> ready (in the ready lists) -> leased -> pacing, or back to unbound
// after its quantum, or parked when its time is far, or idling when it has no
// URLs left. Only due hosts are ready, and of a group only as many as it has
// slots. Every step is O(log n) in hosts and groups.

package frontier

import (
	"fmt"
	"math"

	"github.com/dchest/siphash"
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/block"
	"github.com/seed-7440039f/frontier/internal/clock"
	"github.com/seed-7440039f/frontier/internal/dormant"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/hostindex"
	"github.com/seed-7440039f/frontier/internal/hostorder"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/measure"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/slab"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/internal/trouble"
)

// scheduler decides who may be contacted when, and what is handed out. Its methods take
// the time as an argument. The files that use a field describe it.
//
// Not safe for concurrent use: the lock of its shard guards it.
type scheduler struct {
	tables
	laneTable
	troubleTable
	deletedTable
	countTable
	reopened

	pace      timeheap.Heap    // ungrouped hosts by due, and groups by their key
	parks     timeheap.Heap    // parked hosts by due
	idle      timeheap.Heap    // idling hosts by due
	expiry    timeheap.Heap    // leases by deadline
	calls     []uint32         // hosts in place called, oldest first
	scheduled *timed.Records   // in memory, of queues
	kept      map[uint32]int32 // of these, the finished ones, by host
	timed     timed.Blocks
	moves     move.Mover    // to blocks, of records and queues
	dormant   dormant.Hosts // hosts in place departing, and those that left

	withheld withheldHosts
	limits   *limit.Book // nil: there never were any

	clock *clock.Clock
	more  bool // next stopped early, so as not to hold the lock too long
	stats tally
	quiet quiet
	waits measure.Waits
	avail [row.MaxPriorities]int // scratch for the selector
}

// tally is the figures of Stats that the scheduler keeps.
type tally struct {
	Waiting, Immediate, Scheduled, Finished, Leased int64
	WaitingBy                                       []int64
	BackedOff, Quarantined                          int64

	Added, Duplicates, Refused, HandedOut int64
	Done                                  [8]int64
	Retried, GivenUp, Deleted, Expired    int64
	Unreadable                            int64
}

// dueAt is the figure in which a URL counts that is due at a date.
func (s *tally) dueAt(date int64) *int64 {
	if date == instant.Never {
		return &s.Finished
	}
	return &s.Scheduled
}

// totals are the counters that Rates come from.
func (s *tally) totals(at int64) measure.Totals {
	x := measure.Totals{At: at, Added: s.Added, HandedOut: s.HandedOut}
	for _, n := range s.Done {
		x.Done += n
	}
	return x
}

// tables are the records of hosts, queues, groups, crawls and leases, and of URLs in
// memory, with their links and indexes. They know no time.
type tables struct {
	crawlTable
	groupTable

	cfg     schedulerConfig
	key     [2]uint64                // of all hashes and fingerprints
	hash    func(name []byte) uint64 // of a host's key
	records record.Arena
	names   arena.Arena // host keys and names of groups
	hosts   slab.Slab[host]
	index   hostindex.Index // of hosts
	order   hostorder.Order // of hosts, by domain
	sizes   hostorder.Sizes // of hosts
	queues  slab.Slab[queue]
	blocks  block.Table // on disk, and their parts
	fifo    fifo.Store  // over records and blocks
	leases  slab.Slab[leaseRecord]
	bundles slab.Slab[bundle]
	places  [leased + 1]int // how many hosts are in each place
}

// crawlTable is the crawls, and whose turn it is.
type crawlTable struct {
	crawls       []*crawl          // by slot
	crawlSlots   map[uint32]uint32 // by number; crawl 0 has slot 0
	freeCrawls   []uint32          // slots
	idleCrawls   []uint32          // slots of crawls without URLs that are remembered, oldest first
	pausedCrawls int
	sweptCrawls  int           // those that were deleted, while their URLs are taken out
	pausedURLs   int64         // that wait in them
	limitedURLs  int64         // of these, that wait until a period ends
	offers       timeheap.Heap // crawls that have something to offer, by pass
	urgent       timeheap.Heap // crawls that have something Immediate to offer, by turns
	pass         int64         // of the crawl that was served last, before it was
	turns        int64
	stopped      []stoppedCrawl
}

// groupTable is the groups and the hosts of each by time.
type groupTable struct {
	groups        slab.Slab[group]
	groupIndex    hostindex.Index             // by name
	grouped       timeheap.Table              // hosts of groups
	lonely        []uint32                    // groups without members; some have got one
	distances     map[uint32][]int64          // of groups of which several slots keep a distance: see slots.until
	distanceBytes int64                       // what it takes
	crowds        map[crowd]int32             // how many hosts wait for a slot of each
	groupSettings func(name string) groupWant // nil: none are set
}

// laneTable is the hosts that may have several leases.
type laneTable struct {
	concurrency func(host []byte) int // how many leases it may have at once; nil: one
	laned       map[uint32]uint32     // hosts that may have several leases, and their lanes
	hostLanes   slab.Slab[hostLanes]
}

// deletedTable is the deletions in force.
type deletedTable struct {
	tombstones       tombstone.Set // their dead records are in memory
	storedTombstones tombstone.Set // those that have a row
	unsettledDead    int           // leases and completions of dead records that are not settled
}

// troubleTable is the hosts that fail.
type troubleTable struct {
	troubles map[uint32]trouble.State // by number of the host
	lost     []uint32                 // hosts whose URLs shall be given up
}

// reopened is until when a store that was not closed is left alone after Open.
type reopened struct {
	reopenedAt    int64                   // when the store was opened after a crash, ns since Open; notReopened if never
	startsAt      int64                   // nothing is handed out before; set after a crash
	hostStartsAt  func(host string) int64 // the same for a host with a longer delay; nil: no crash
	groupStartsAt func(ownPolicy) int64   // the same for groups with this delay; nil: no crash
}

// notReopened says that no host counts as contacted when the store was opened.
const notReopened int64 = math.MinInt64

// schedulerConfig is the part of Options that the scheduler needs.
type schedulerConfig struct {
	levels     int
	quantum    int
	parkAfter  int64
	choose     func(available []int) (priority int, panicked any) // one of those that are available
	strict     bool                                               // the selector is Strict
	groupMax   int64                                              // how long a group may be left alone after a contact unless it has a delay of its own
	spill      bool
	evictOver  int64 // bytes of resident records above which unbound hosts keep none
	maxDelay   int64 // the most that the delay of all hosts may be
	ahead      int64 // how long before its time a record on disk may be in memory, too
	backoff    trouble.Backoff
	quarantine trouble.Quarantine
	rules      hostRules // nil: none

	turned func(of limit.Subject, turn quota.Turn, what string, until int64) // a limit was reached, or lifted
}

func newScheduler(cfg schedulerConfig) *scheduler {
	c := &scheduler{clock: clock.New(nil)}
	c.reopenedAt = notReopened
	c.cfg, c.distances, c.crowds, c.laned, c.troubles = cfg, map[uint32][]int64{}, map[crowd]int32{}, map[uint32]uint32{}, map[uint32]trouble.State{}
	c.hash = func(name []byte) uint64 { return siphash.Hash(c.key[0], c.key[1], name) }
	c.fifo = fifo.New(&c.records, &c.blocks)
	c.leases.InHeap, c.hostLanes.InHeap, c.bundles.InHeap = true, true, true
	c.order.Name, c.withheld.set.Name = c.nameOf, c.nameOf
	c.crawls, c.crawlSlots = []*crawl{newCrawl(0, cfg.levels)}, map[uint32]uint32{}
	c.offers.Moved = func(slot uint32, i int) { c.crawls[slot].pos[0] = int32(i) }
	c.urgent.Moved = func(slot uint32, i int) { c.crawls[slot].pos[1] = int32(i) }
	c.stats.WaitingBy = make([]int64, cfg.levels)
	c.waits.By = make([]measure.Histogram, cfg.levels)
	c.scheduled, c.timed = timed.NewRecords(&c.records), timed.NewBlocks(&c.blocks)
	c.scheduled.Ring = func(queue uint32) *arena.Ref { return &c.queues.At(queue).scheduled }
	c.kept = map[uint32]int32{}
	c.moves = move.New(&c.records, &c.blocks, &c.fifo, c.scheduled, &c.timed)
	hostMoved := func(id uint32, i int) { c.hosts.At(id).pos = int32(i) }
	c.parks.Moved, c.idle.Moved = hostMoved, hostMoved
	c.expiry.Moved = func(id uint32, i int) { c.leases.At(id).pos = int32(i) }
	c.pace.Moved = func(id uint32, i int) {
		if id&groupBit != 0 {
			c.groups.At(id &^ groupBit).pos = int32(i)
		} else {
			c.hosts.At(id).pos = int32(i)
		}
	}
	return c
}

// promoteAtOnce is how many scheduled URLs become waiting under one lock.
const promoteAtOnce = 1024

const (
	bindAtOnce  = 128 // hosts that are bound, or get tokens, in vain under one lock
	readyAtOnce = 512 // hosts and groups that become due under one lock
)

// advance lets time pass: scheduled URLs become waiting, parked hosts get their tokens
// back, due hosts become ready. It does a bounded amount at once; nextEvent reports that
// there is more.
func (s *scheduler) advance(now int64) {
	s.more = false
	// What is due before on disk comes first.
	for n := 0; s.scheduled.Min() <= min(s.date(now), s.timed.Min()) && n < promoteAtOnce; n++ {
		if s.tombstones.Len() > 0 && s.dropScheduled(0, now) {
			continue
		}
		it := s.unschedule(0)
		s.waits.Began(s.records.At(arena.Ref(it.ID)).Seq(), s.moment(it.At))
		s.pushTail(it.Aux, arena.Ref(it.ID), now)
		s.trim(it.Aux)
	}
	for n := 0; s.idle.Min() <= now && n < restAtOnce; n++ {
		id := s.idle.Pop().ID
		s.put(s.hosts.At(id), nowhere)
		s.settle(id, now)
	}
	s.expireWithheld(now)
	if now < s.startsAt {
		return
	}
	for n := 0; s.parks.Min() <= now && n < bindAtOnce; n++ {
		id := s.parks.Pop().ID
		s.unbind(id, s.hosts.At(id))
	}
	for n := 0; s.pace.Min() <= now && n < readyAtOnce; n++ {
		id := s.pace.Items[0].ID
		if id&groupBit == 0 {
			s.pace.Pop()
			s.makeReady(id, now)
			continue
		}
		s.giveSlot(id&^groupBit, now)
	}
}

// nextEvent is when advance or expired has something to do, or what is on disk
// becomes due; never if time alone changes nothing.
func (s *scheduler) nextEvent(now int64) int64 {
	t := min(s.parks.Min(), s.pace.Min())
	if t != instant.Never {
		t = max(t, s.startsAt)
	}
	if s.places[unbound] > 0 && now < s.startsAt {
		t = min(t, s.startsAt) // tokens wait for nothing else
	}
	t = min(t, s.expiry.Min(), s.expireAt())
	if s.unfinished() {
		t = now
	}
	switch on := s.timed.Min(); {
	case s.scheduled.Min() <= on:
		t = min(t, s.moment(s.scheduled.Min()))
	case on > s.date(now): // else its reader settles it
		t = min(t, s.moment(on))
	}
	return t
}

// awaitsDate reports whether a date may bring anything.
func (s *scheduler) awaitsDate() bool {
	return min(s.scheduled.Min(), s.timed.Min(), s.expireAt()) != instant.Never
}

// makeReady puts a host that may be contacted now into the ready lists, or calls
// the Contact that waits for it.
func (s *scheduler) makeReady(id uint32, now int64) {
	h := s.hosts.At(id)
	if h.wanted {
		s.put(h, called)
		s.calls = append(s.calls, id)
		return
	}
	// Of a group no more are ready than it has slots.
	if h.group == 0 && s.oversupplied(h) || !s.offering(h) {
		s.put(h, nowhere)
		s.dropSlot(h, now)
		s.unbind(id, h)
		return
	}
	s.put(h, ready)
	if h.group != 0 {
		g := s.groups.At(h.group)
		h.pos = int32(s.grouped.Push(&g.offered, s.ranked(id, g)))
	}
	for q := h.queues; q != 0; q = s.queues.At(q).sibling {
		if s.queues.At(q).waiting > 0 {
			s.enlist(readies, q)
		}
	}
}

// oversupplied reports whether enough hosts are ready for everything that a host has to offer.
// Otherwise hosts bound for an urgent URL would pile up with their other URLs.
func (s *scheduler) oversupplied(h *host) bool {
	enough := 8 + int(s.stats.Leased)/4
	for q := h.queues; q != 0; q = s.queues.At(q).sibling {
		x := s.queues.At(q)
		if x.waiting > 0 && (x.priority == immediatePriority || s.crawlOf(x).lists[readies].at[x.level].n < enough) {
			return false
		}
	}
	return true
}

// detach takes a host out of the structure it is in, except leased and loading.
func (s *scheduler) detach(id uint32) {
	h := s.hosts.At(id)
	switch h.place {
	case idling:
		s.idle.Remove(int(h.pos))
	case parked:
		s.parks.Remove(int(h.pos))
	case withheld:
		s.unfile(id, h)
	case unbound:
		s.bind(h)
	case pacing:
		if h.group != 0 {
			s.grouped.Remove(&s.groups.At(h.group).hosts, uint32(h.pos))
			s.requeueGroup(h.group)
		} else {
			s.pace.Remove(int(h.pos))
		}
	case queued:
		s.unawait(s.groups.At(h.group), h)
		s.requeueGroup(h.group)
	case ready:
		if h.group != 0 {
			s.grouped.Remove(&s.groups.At(h.group).offered, uint32(h.pos))
		}
		for q := h.queues; q != 0; q = s.queues.At(q).sibling {
			if s.queues.At(q).waiting > 0 {
				s.delist(readies, q)
			}
		}
	case called:
		for i, x := range s.calls {
			if x == id {
				s.calls = append(s.calls[:i], s.calls[i+1:]...)
				break
			}
		}
	}
	s.put(h, nowhere)
}

// dropSlot gives back the group slot of a host that will not be leased after all.
func (s *scheduler) dropSlot(h *host, now int64) {
	if h.hasSlot {
		h.hasSlot = false
		s.freeSlot(h.group, 0, now)
	}
}

// settle puts a host that is in no structure where it belongs.
func (s *scheduler) settle(id uint32, now int64) {
	h := s.hosts.At(id)
	s.dropSlot(h, now)
	if h.has(troubled) {
		s.despair(id, now)
	}
	if s.full(id) {
		s.put(h, leased)
		return
	}
	switch {
	case h.wanted:
		s.setPacing(id, h, now)
	case h.waiting == 0:
		s.rest(id, h, now)
	case h.due-now > s.cfg.parkAfter && h.due > s.startsAt:
		s.put(h, parked)
		s.parks.Push(timeheap.Item{At: h.due, ID: id})
		for q := h.queues; q != 0; q = s.queues.At(q).sibling {
			s.evict(q, false)
		}
	case h.place == nowhere && h.served == 0, int(h.served) >= s.cfg.quantum && s.places[unbound] > 0:
		s.unbind(id, h)
	default:
		s.setPacing(id, h, now)
	}
}

func (s *scheduler) setPacing(id uint32, h *host, now int64) {
	if h.group != 0 && h.due <= now && now >= s.startsAt {
		s.queueUp(id, now)
		return
	}
	s.put(h, pacing)
	if h.group == 0 {
		s.pace.Push(timeheap.Item{At: h.due, ID: id})
		return
	}
	h.pos = int32(s.grouped.Push(&s.groups.At(h.group).hosts, timeheap.Item{At: h.due, ID: id}))
	s.requeueGroup(h.group)
}

// rest keeps a host without URLs for as long as something must be known about it.
func (s *scheduler) rest(id uint32, h *host, now int64) {
	h.served = 0
	s.dropLanes(id, now)
	s.outlived(id, now)
	s.unused(id, now)
	x := s.lanesOf(id)
	switch until := s.idlesUntil(id); {
	case x != nil && x.used > 0:
		s.put(h, nowhere)
	case x != nil || until > now:
		s.put(h, idling)
		s.idle.Push(timeheap.Item{At: until, ID: id})
	case h.scheduled > 0 || h.pins > 0 || h.learned() && !s.cfg.spill:
		s.put(h, nowhere)
	case h.learned() || h.has(stored):
		s.depart(id)
	default:
		s.forget(id)
	}
}

// restsUntil is when an idling host's last contacts may be forgotten.
func (s *scheduler) restsUntil(id uint32) int64 {
	due := s.hosts.At(id).due
	if x := s.lanesOf(id); x != nil {
		return max(due, x.last())
	}
	return due
}

// choice is what next found: a record to hand out, or one to be read first.
type choice struct {
	host, queue uint32
	load        uint32 // part to read before; 0: none
	want        uint32 // its records to read
}

// badChoice is a choice of a priority that has nothing available, or a panic in place of one.
type badChoice struct {
	Got       int
	Available []int
	Panicked  any
}

func (e *badChoice) Error() string { return fmt.Sprintf("chose %d of %v", e.Got, e.Available) }

// next chooses the crawl, host and queue of the next hand-out. It asks the selector once,
// for what the crawl has to offer, and again if everything it chose turns out not to be
// due, until the lock should be released because too many hosts were found in vain: then
// s.more is set. Afterwards the host is in place loading, with its group's slot. If there
// are crawls, only they have a turn.
func (s *scheduler) next(now int64, crawls []uint32) (choice, bool, error) {
	s.advance(now)
	if now < s.startsAt {
		return choice{}, false, nil
	}
	for inVain := 0; ; {
		x, immediate := s.nextCrawl(crawls)
		if x == nil {
			s.withholdNext(now)
			return choice{}, false, nil
		}
		p := int(s.immediate())
		if !immediate {
			mask := x.lists[readies].mask | x.lists[tokens].mask
			available := s.available(mask)
			var panicked any
			if p, panicked = s.cfg.choose(available); panicked != nil {
				return choice{}, false, &badChoice{Available: append([]int(nil), available...), Panicked: panicked}
			}
			if p < 1 || p > s.cfg.levels || mask&(1<<(p-1)) == 0 {
				return choice{}, false, &badChoice{Got: p, Available: append([]int(nil), available...)}
			}
		}
		if qid := s.nextOf(x, p, now, &inVain); qid != 0 {
			if s.tombstones.Len() == 0 || s.headAlive(qid, now) {
				s.served(x, uint8(p))
				return s.prepare(qid), true, nil
			}
			inVain++
		}
		if inVain >= bindAtOnce {
			s.more = true
			return choice{}, false, nil
		}
	}
}

// available lists the priorities in mask.
func (s *scheduler) available(mask uint64) []int {
	n := 0
	for p := 1; mask != 0; mask, p = mask>>1, p+1 {
		if mask&1 != 0 {
			s.avail[n] = p
			n++
		}
	}
	return s.avail[:n]
}

// nextOf takes the crawl's first ready host of level p, or else binds hosts from
// its front queue p until one is due. It returns the host's queue, or 0, and
// counts those that were not.
func (s *scheduler) nextOf(x *crawl, p int, now int64, inVain *int) uint32 {
	for ; x.lists[readies].at[p].first != 0 && *inVain < bindAtOnce; *inVain++ {
		qid := x.lists[readies].at[p].first
		id := s.queues.At(qid).host
		s.detach(id)
		if s.stillDue(id, now) {
			s.put(s.hosts.At(id), loading)
			return qid
		}
	}
	for ; x.lists[tokens].at[p].first != 0 && *inVain < bindAtOnce; *inVain++ {
		qid := x.lists[tokens].at[p].first
		id := s.queues.At(qid).host
		h := s.hosts.At(id)
		s.bind(h)
		if s.full(id) {
			s.settle(id, now)
			continue
		}
		if s.withhold(id, now) {
			continue
		}
		if h.due <= now && s.takeSlot(h.group, now) {
			s.put(h, loading)
			h.hasSlot = h.group != 0
			return qid
		}
		s.setPacing(id, h, now)
	}
	return 0
}

// stillDue reports whether a host that was ready, and is in no structure now, may
// still be contacted. A rule may say otherwise meanwhile. Its group may have been
// left by a host that was contacted since; then it goes back to the heap.
func (s *scheduler) stillDue(id uint32, now int64) bool {
	h := s.hosts.At(id)
	if s.full(id) { // a rule allows it fewer lanes
		s.settle(id, now)
		return false
	}
	if s.withhold(id, now) {
		return false
	}
	if h.group == 0 {
		return true
	}
	sl := s.slotsOf(h.group)
	kept := sl.kept(s.groups.At(h.group).limit, now)
	if s.keepSlots(h.group, sl); kept {
		return true
	}
	s.dropSlot(h, now)
	s.setPacing(id, h, now)
	return false
}

// schedule files a record under a future date, or one that never comes if it is finished.
func (s *scheduler) schedule(qid uint32, ref arena.Ref, due int64) {
	h := s.hosts.At(s.queues.At(qid).host)
	if h.place == departing {
		s.put(h, nowhere) // it stays
	}
	h.scheduled++
	if due == instant.Never {
		s.kept[s.queues.At(qid).host]++
	}
	*s.stats.dueAt(due)++
	it := timeheap.Item{At: due, ID: uint32(ref), Aux: qid}
	s.scheduled.Push(it)
	if s.cfg.spill && s.records.At(ref).Part() == 0 {
		s.scheduled.NeedHome(it)
	}
}

// over reports whether nothing in the frontier can become available by time.
func (s *scheduler) over() bool {
	return s.stats.Waiting == s.withheldForGood() && !s.unfinished() && s.stats.Scheduled == 0 && s.stats.Leased == 0
}
