// This file is the scheduler: everything that decides who may be contacted when, and what
// is handed out, without locks, clocks, disks and waiting.

package frontier

import (
	"github.com/dchest/siphash"
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/block"
	"github.com/seed-7440039f/frontier/internal/clock"
	"github.com/seed-7440039f/frontier/internal/dormant"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/hostindex"
	"github.com/seed-7440039f/frontier/internal/hostorder"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/measure"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/slab"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/internal/trouble"
)

// scheduler decides who may be contacted when, and what is handed out. Its methods take
// the time as an argument. Files that use a field say more about it.
//
// Not safe for concurrent use: the lock of its shard guards it.
type scheduler struct {
	tables
	laneTable
	troubleTable
	deletedTable
	reopened

	pace      timeheap.Heap  // ungrouped hosts by due, and groups by their key
	parks     timeheap.Heap  // parked hosts by due
	idle      timeheap.Heap  // idling hosts by due
	expiry    timeheap.Heap  // leases by deadline
	calls     []uint32       // hosts in place called, oldest first
	scheduled *timed.Records // in memory, of queues
	timed     timed.Blocks
	moves     move.Mover    // to blocks, of records and queues
	dormant   dormant.Hosts // hosts in place departing, and those that left

	controls *controls
	withheld withheldHosts
	limits   *limit.Book // nil: there never were any

	tell  func(Event)
	clock *clock.Clock
	more  bool // next stopped early, so as not to hold the lock too long
	stats Stats
	waits measure.Waits
	avail [maxPriorities]int // scratch for the selector
}

// tables is what there is: the records of hosts, queues, groups, crawls and leases, and of
// URLs in memory, how they are linked, and how they are found. It knows no time.
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
	groupIndex    hostindex.Index                 // by name
	grouped       timeheap.Table                  // hosts of groups
	lonely        []uint32                        // groups without members; some have got one
	distances     map[uint32][]int64              // of groups of which several slots keep a distance: see slots.until
	distanceBytes int64                           // what it takes
	groupSettings func(name string) GroupSettings // nil: none are set
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
	startsAt      int64                   // nothing is handed out before; set after a crash
	hostStartsAt  func(host string) int64 // the same for a host with a longer delay; nil: no crash
	groupStartsAt func(DelayPolicy) int64 // the same for groups with this delay; nil: no crash
}

// schedulerConfig is the part of Options that the scheduler needs.
type schedulerConfig struct {
	levels     int
	quantum    int
	parkAfter  int64
	selector   Selector
	strict     bool  // the selector is Strict
	groupMax   int64 // how long a group may be left alone after a contact unless it has a delay of its own
	spill      bool
	evictOver  int64 // bytes of resident records above which unbound hosts keep none
	ahead      int64 // how long before its time a record on disk may be in memory, too
	backoff    trouble.Backoff
	quarantine trouble.Quarantine
}

func newScheduler(cfg schedulerConfig) *scheduler {
	c := &scheduler{controls: &controls{}, tell: func(Event) {}, clock: clock.New(nil)}
	c.cfg, c.distances, c.laned, c.troubles = cfg, map[uint32][]int64{}, map[uint32]uint32{}, map[uint32]trouble.State{}
	c.hash = func(name []byte) uint64 { return siphash.Hash(c.key[0], c.key[1], name) }
	c.fifo = fifo.New(&c.records, &c.blocks)
	c.leases.InHeap, c.hostLanes.InHeap = true, true
	c.order.Name, c.withheld.set.Name = c.nameOf, c.nameOf
	c.crawls, c.crawlSlots = []*crawl{newCrawl(0, cfg.levels)}, map[uint32]uint32{}
	c.offers.Moved = func(slot uint32, i int) { c.crawls[slot].pos[0] = int32(i) }
	c.urgent.Moved = func(slot uint32, i int) { c.crawls[slot].pos[1] = int32(i) }
	c.stats.WaitingBy = make([]int64, cfg.levels)
	c.waits.By = make([]measure.Histogram, cfg.levels)
	c.scheduled, c.timed = timed.NewRecords(&c.records), timed.NewBlocks(&c.blocks)
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
