// This file keeps one record for each host of which anything must be known, and
// finds it by the host's key.
//
// A host without URLs, leases and learned delay whose time has passed has no
// record: what is not remembered is at its default. With a learned delay it has
// none either once its row is saved: see dormant.go.

package frontier

import (
	"time"
	"unsafe"

	"github.com/dchest/siphash"
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/bloom"
)

// place says in which structure a host is. It is in exactly one.
type place uint8

const (
	nowhere   place = iota // nothing waits, and its time has passed or is not known
	idling                 // nothing waits; core.idle holds its time
	departing              // nothing waits, and its time has passed; it leaves memory when its row is saved
	unbound                // has a token in each front queue that it has URLs for
	parked                 // core.parked holds its time; no resident URLs
	held                   // a rule keeps it from being served; core.held has it; no resident URLs
	dying                  // a deletion has its next URL; its sweep, which is yet to come, puts the host where it belongs
	pacing                 // bound: in the heap, by itself or within its group
	queued                 // bound: due, and waits for a slot of its group
	ready                  // bound: in each ready list that it has URLs for
	called                 // bound: a Contact waits for it and may have it now
	loading                // bound: a caller reads its next URLs from disk
	leased                 // bound: it has as many leases out as it may
)

// host is what is known of one host. Its memory holds no pointers.
type host struct {
	due        int64     // it may be contacted from here on, ns since Open
	name       arena.Ref // its key, with nameLen bytes
	queues     uint32    // first of its queues, by descending priority
	group      uint32    // that it belongs to; 0: none
	waiting    int32     // URLs in its queues
	scheduled  int32     // URLs with a future time
	pins       int32     // completions and rows of it on their way to disk
	crawlDelay int32     // milliseconds
	pos        int32     // in what place implies: the heap, core.departures, core.leases; or a holdReason
	served     uint16    // hand-outs since it was bound
	nameLen    uint8
	place      place
	wanted     bool // Contact calls wait for it
	holdsSlot  bool // while not leased: it occupies a slot of its group
	flags      hostFlags
	why        why // it may not be contacted before due
}

// hostFlags are facts about a host.
type hostFlags uint8

const (
	stored   hostFlags = 1 << iota // a row of it is on disk, or on its way
	unsaved                        // what the row tells changed since
	behind                         // the same, and only a host that leaves memory needs a new row
	troubled                       // it has an entry in core.troubles
	assigned                       // it belongs to its group until somebody says otherwise
	counted                        // it has an entry in limitBook.hosts
)

// has reports whether one of the flags is set.
func (h *host) has(f hostFlags) bool { return h.flags&f != 0 }
func (h *host) set(f hostFlags)      { h.flags |= f }
func (h *host) clear(f hostFlags)    { h.flags &^= f }

// core is the frontier without locks, clocks, disks and waiting: everything that
// decides who may be contacted when, and what is handed out. Its methods take
// the time as an argument. Fields are described where they are used.
//
// Not safe for concurrent use.
type core struct {
	key   [2]uint64                // of all hashes and fingerprints
	hash  func(name []byte) uint64 // of a host's key
	mem   arena.Arena              // resident records
	names arena.Arena              // host keys, names of groups, and bitmaps of blocks

	resident int64 // bytes of records in mem
	homeless int64 // of them, of records that are in no block

	hosts        slab[host]
	index        hostIndex // of hosts
	order        hostOrder // of hosts
	sizes        hostSizes // of hosts
	walks        []*urlWalk
	queues       slab[queue]
	parts        slab[part]
	touchedParts slab[touchedPart]
	blocks       blockTable
	leases       slab[leaseRecord]

	crawls       []*crawl          // by slot
	crawlSlots   map[uint32]uint32 // by number; crawl 0 has slot 0
	freeCrawls   []uint32          // slots
	idleCrawls   []uint32          // slots of crawls without URLs that are remembered, oldest first
	pausedCrawls int
	sweptCrawls  int      // of which all was deleted and is being taken out
	pausedURLs   int64    // that wait in them
	limitedURLs  int64    // of these: until a period ends
	offers       timeHeap // crawls that have something to offer, by pass
	urgent       timeHeap // crawls that have something Immediate to offer, by turns
	pass         int64    // of the crawl that was served last, before it was
	turns        int64

	calls []uint32 // hosts in place called, oldest first

	pace      timeHeap   // ungrouped hosts by due, and groups by their key
	parks     timeHeap   // parked hosts by due
	idle      timeHeap   // idling hosts by due
	expiry    timeHeap   // leases by deadline
	scheduled timeHeap   // records in memory by due; aux is their queue
	unplaced  []timeItem // of scheduled, in no block when they came; some are not there any more
	timed     timedBlocks

	concurrency func(host []byte) int // how many leases it may have at once; nil: one
	laned       map[uint32]uint32     // hosts that may have several leases, and their lanes
	hostLanes   slab[hostLanes]

	groups     slab[group]
	groupIndex hostIndex // by name
	grouped    heapTable // hosts of groups
	lonely     []uint32  // groups without members; some have got one

	distances     map[uint32][]int64 // of groups of which several slots keep a distance: see slots.until
	distanceBytes int64              // what it takes

	groupSettings func(name string) GroupSettings // nil: none are set

	controls  *controls
	held      heldHosts
	limits    *limitBook // nil: there never were any
	tell      func(Event)
	wall      func(ns int64) time.Time
	lead      int64   // how far dates are ahead of moments, see clock.go
	leastLead int64   // the least that lead was
	more      bool    // next stopped early, so as not to hold the lock too long
	dooms     dooms   // deletions in force: of those dead records are in memory
	stored    dooms   // deletions that have a row
	doomed    int     // leases and completions of dead records that are not settled
	scans     []*scan // under way
	lastBlock uint32  // highest number of a block so far

	cfg    coreConfig
	places [leased + 1]int // how many hosts are in each place

	hold      int64                   // nothing is handed out before; set after a crash
	holdOf    func(host string) int64 // the same for a host with a longer delay; nil: no crash
	groupHold func(DelayPolicy) int64 // the same for groups with this delay; nil: no crash
	stats     Stats
	waits     waits
	avail     [maxPriorities]int // scratch for the selector

	troubles map[uint32]trouble // what is known of the failures of hosts, by their numbers
	lost     []uint32           // hosts whose URLs shall be given up

	rows       bloom.Filter            // hashes of all hosts that have a row
	departures departures              // hosts in place departing, oldest first
	unwritten  []uint32                // of them, those whose rows must be written before
	submitted  uint64                  // ops so far
	left       [departureShards]uint32 // how many hosts with a row left memory, by hash

	homed        map[uint32]location // by large queue: a record that waits there; it has a home, as all before it
	homing       uint32              // queue that a round is in
	looked       uint64              // records of queues that rounds have looked at
	homingBroken bool                // a record without a home came to its head

	fresh []uint32 // queues with records that need a home in a block; some may be gone
	dirty []uint32 // blocks whose finished positions changed since the last checkpoint
	drops []uint32 // blocks without a live record, to be told to the Spill
}

// coreConfig is the part of Options that core needs.
type coreConfig struct {
	levels     int
	quantum    int
	parkAfter  int64
	selector   Selector
	strict     bool  // the selector is Strict
	groupMax   int64 // how long a group may be left alone after a contact unless it has a delay of its own
	spill      bool
	evictOver  int64 // bytes of resident records above which unbound hosts keep none
	ahead      int64 // how long before its time a record on disk may be in memory, too
	backoff    Backoff
	quarantine Quarantine
}

func newCore(cfg coreConfig) *core {
	c := &core{
		cfg: cfg, distances: map[uint32][]int64{}, controls: &controls{}, laned: map[uint32]uint32{},
		troubles: map[uint32]trouble{}, tell: func(Event) {}, wall: func(ns int64) time.Time { return time.Unix(0, ns) },
	}
	c.hash = func(name []byte) uint64 { return siphash.Hash(c.key[0], c.key[1], name) }
	c.leases.inHeap, c.hostLanes.inHeap = true, true
	c.crawls, c.crawlSlots = []*crawl{newCrawl(0, cfg.levels)}, map[uint32]uint32{}
	c.offers.moved = func(slot uint32, i int) { c.crawls[slot].pos[0] = int32(i) }
	c.urgent.moved = func(slot uint32, i int) { c.crawls[slot].pos[1] = int32(i) }
	c.stats.WaitingBy = make([]int64, cfg.levels)
	c.waits.by = make([]Histogram, cfg.levels)
	c.timed.buckets = map[uint32]int32{}
	c.scheduled.moved = c.scheduledMoved
	hostMoved := func(id uint32, i int) { c.hosts.at(id).pos = int32(i) }
	c.parks.moved, c.idle.moved = hostMoved, hostMoved
	c.expiry.moved = func(id uint32, i int) { c.leases.at(id).pos = int32(i) }
	c.pace.moved = func(id uint32, i int) {
		if id&groupBit != 0 {
			c.groups.at(id &^ groupBit).pos = int32(i)
		} else {
			c.hosts.at(id).pos = int32(i)
		}
	}
	return c
}

// put notes that a host is in another place.
func (c *core) put(h *host, p place) {
	c.places[h.place]--
	h.place = p
	c.places[p]++
}

func (c *core) name(h *host) []byte {
	return c.names.Bytes(h.name)[:h.nameLen]
}

// lookup returns the host's number, or 0.
func (c *core) lookup(hash uint64, name string) uint32 {
	for id := range c.index.candidates(hash) {
		if string(c.name(c.hosts.at(id))) == name {
			return id
		}
	}
	return 0
}

// ensure returns the host's number, of a new record if there is none. A new host
// may be contacted at once, or after a crash when the hold ends.
func (c *core) ensure(hash uint64, name string) uint32 {
	if id := c.lookup(hash, name); id != 0 {
		return id
	}
	id := c.hosts.alloc()
	c.places[nowhere]++
	h := c.hosts.at(id)
	var mem []byte
	h.name, mem = c.names.Alloc(len(name))
	copy(mem, name)
	h.nameLen, h.due = uint8(len(name)), c.hold
	if c.holdOf != nil {
		h.due = max(h.due, c.holdOf(name))
	}
	if h.due > 0 {
		h.why = whyReopened
	}
	c.index.add(hash, id)
	c.ordered(id)
	return id
}

// forget removes the record of a host that is nowhere.
func (c *core) forget(id uint32) {
	h := c.hosts.at(id)
	for q := h.queues; q != 0; {
		x := c.queues.at(q)
		for x.chain != 0 {
			c.unchain(x) // all of its records were taken, and are finished
		}
		next := x.sibling
		c.releaseQueue(q)
		q = next
	}
	c.leaveGroup(h)
	if h.has(troubled) {
		c.setTrouble(id, trouble{})
	}
	if h.has(counted) {
		c.dropUsage(id)
	}
	c.unordered(id)
	c.hostEnds(id)
	c.index.remove(c.hash(c.name(h)), id)
	c.places[nowhere]--
	c.names.Free(h.name, int(h.nameLen))
	c.hosts.release(id)
}

// hostBytes is what a host with one queue costs in memory.
const hostBytes = int64(unsafe.Sizeof(host{})+unsafe.Sizeof(queue{})) + 24 + 12
