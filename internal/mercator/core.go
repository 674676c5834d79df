// Package mercator owns the hosts of one shard of a frontier: their URLs in back queues, the
// front queues and ready lists, the heaps of times, groups, lanes, crawls and leases. It decides
// which host may be contacted when, and what is handed out next.
//
// The design is Mercator's: see package frontier. A host moves: nowhere -> unbound (a token in each
// front queue) -> pacing (in the heap) -> ready (in the ready lists) -> leased -> pacing, or back to
// unbound after its quantum, or parked when its time is far, or idling when it has no URLs left. Only
// due hosts are ready, and of a group only as many as it has slots. Every step is O(log n) in hosts
// and groups.
//
// Nothing here takes a lock, waits, reads a disk or a clock, or calls the user's code except
// Config.Choose; the other functions in Config and Core are the caller's, and do not wait. Time is
// an argument: moments are nanoseconds since the frontier was opened, dates are moments by the clock
// on the wall. A lock of the caller's guards it. [Checker] verifies the invariants F1 to F7 and F9 of
// package frontier.
package mercator

import (
	"crypto/rand"
	"encoding/binary"
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

// Core is the hosts of a shard with all that they own. The files that use a field describe it.
//
// Not safe for concurrent use.
type Core struct {
	tables
	laneTable
	troubleTable
	deletedTable
	countTable
	Reopened

	Pace      timeheap.Heap    // ungrouped hosts by due, and groups by their key
	Parks     timeheap.Heap    // parked hosts by due
	Idle      timeheap.Heap    // idling hosts by due
	Expiry    timeheap.Heap    // leases by deadline
	Calls     []uint32         // hosts in place called, oldest first
	Scheduled *timed.Records   // in memory, of queues
	Kept      map[uint32]int32 // of these, the finished ones, by host
	Timed     timed.Blocks
	Moves     move.Mover    // to blocks, of records and queues
	Dormant   dormant.Hosts // hosts in place departing, and those that left

	Withheld withheldHosts
	Limits   *limit.Book // nil: there never were any

	Clock *clock.Clock
	more  bool // a step stopped early: see the AtOnce constants
	Stats tally
	Quiet Quiet
	Waits measure.Waits
	avail [row.MaxPriorities]int // scratch for the selector
}

// Date is the date of a moment.
func (s *Core) Date(moment int64) int64 { return s.Clock.DateAt(moment) }

// Moment is the inverse of Date.
func (s *Core) Moment(date int64) int64 { return s.Clock.MomentOf(date) }

// ShiftPeriods moves the beginnings of periods by step, which is negative.
func (s *Core) ShiftPeriods(step int64) {
	if s.Limits != nil {
		s.Limits.Shift(step, func(id uint32) { s.Hosts.At(id).Set(Behind) })
	}
}

// tally is figures: see Stats of package frontier.
type tally struct {
	Waiting, Immediate, Scheduled, Finished, Leased int64
	WaitingBy                                       []int64
	BackedOff, Quarantined                          int64

	Added, Duplicates, Refused, HandedOut int64
	Done                                  [8]int64
	Retried, Risen                        int64
	GivenUp, Deleted, Expired             int64
	Unreadable                            int64
}

// DueAt is the figure in which a URL counts that is due at a date.
func (s *tally) DueAt(date int64) *int64 {
	if date == instant.Never {
		return &s.Finished
	}
	return &s.Scheduled
}

// Totals are the counters that Rates come from.
func (s *tally) Totals(at int64) measure.Totals {
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

	Cfg     Config
	Key     [2]uint64                // of all hashes and fingerprints
	Hash    func(name []byte) uint64 // of a host's key
	Records record.Arena
	names   arena.Arena // host keys and names of groups
	Hosts   slab.Slab[Host]
	index   hostindex.Index // of hosts
	order   hostorder.Order // of hosts, by domain
	Sizes   hostorder.Sizes // of hosts
	Queues  slab.Slab[Queue]
	Blocks  block.Table // on disk, and their parts
	Fifo    fifo.Store  // over records and blocks
	Leases  slab.Slab[Lease]
	bundles slab.Slab[bundle]
	Places  [Leased + 1]int // how many hosts are in each place
}

// crawlTable is the crawls, and whose turn it is.
type crawlTable struct {
	Crawls       []*Crawl          // by slot
	CrawlSlots   map[uint32]uint32 // by number; crawl 0 has slot 0
	freeCrawls   []uint32          // slots
	idleCrawls   []uint32          // slots of crawls without URLs that are remembered, oldest first
	PausedCrawls int
	SweptCrawls  int           // those that were deleted, while their URLs are taken out
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
	Groups        slab.Slab[Group]
	groupIndex    hostindex.Index             // by name
	grouped       timeheap.Table              // hosts of groups
	lonely        []uint32                    // groups without members; some have got one
	distances     map[uint32][]int64          // of groups with several slots that keep a distance: see slots.until
	distanceBytes int64                       // what it takes
	crowds        map[crowd]int32             // how many hosts wait for a slot of each
	GroupSettings func(name string) GroupWant // nil: none are set
}

// laneTable is the hosts that may have several leases.
type laneTable struct {
	laned     map[uint32]uint32 // hosts that may have several leases, and their lanes
	HostLanes slab.Slab[hostLanes]
}

// deletedTable is the deletions.
type deletedTable struct {
	Deletions     tombstone.Deletions
	UnsettledDead int // leases and completions of dead records that are not settled
}

// troubleTable is the hosts that fail.
type troubleTable struct {
	Troubles map[uint32]trouble.State // by number of the host
	Lost     []uint32                 // hosts whose URLs shall be given up
}

// Reopened is until when a store that was not closed is left alone after Open.
type Reopened struct {
	ReopenedAt    int64                 // when the store was opened after a crash, ns since Open; NotReopened if never
	StartsAt      int64                 // nothing is handed out before; set after a crash
	GroupStartsAt func(OwnPolicy) int64 // the same for groups with this delay; nil: no crash
}

// NotReopened says that no host counts as contacted when the store was opened.
const NotReopened int64 = math.MinInt64

// Config is the part of Options of package frontier that is needed here.
type Config struct {
	Levels     int
	Quantum    int
	ParkAfter  int64
	Choose     func(available []int) (priority int, panicked any) // one of those that are available
	Strict     bool                                               // the selector is Strict
	GroupMax   int64                                              // how long a group may be left alone after a contact unless it has a delay of its own
	Spill      bool
	EvictOver  int64 // bytes of resident records above which unbound hosts keep none
	MaxDelay   int64 // the most that the delay of all hosts may be
	Ahead      int64 // how long before its time a record on disk may be in memory, too
	Backoff    trouble.Backoff
	Quarantine trouble.Quarantine
	Rules      Rules // nil: none
	Lanes      int   // leases that a host may have at once unless a rule says otherwise; 0: 1

	Turned func(of limit.Subject, turn quota.Turn, what string, until int64) // a limit was reached, or lifted
}

// RandomKey returns a new value for Core.Key.
func RandomKey() (k [2]uint64) {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return [2]uint64{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

// New returns a Core without hosts.
func New(cfg Config) *Core {
	c := &Core{Clock: clock.New(nil)}
	c.ReopenedAt = NotReopened
	c.Cfg, c.distances, c.crowds, c.laned, c.Troubles = cfg, map[uint32][]int64{}, map[crowd]int32{}, map[uint32]uint32{}, map[uint32]trouble.State{}
	c.Hash = func(name []byte) uint64 { return siphash.Hash(c.Key[0], c.Key[1], name) }
	c.Deletions.Changed = c.OfferDeleted
	c.Fifo = fifo.New(&c.Records, &c.Blocks)
	c.Leases.InHeap, c.HostLanes.InHeap, c.bundles.InHeap = true, true, true
	c.order.Name, c.Withheld.set.Name = c.NameOf, c.NameOf
	c.Crawls, c.CrawlSlots = []*Crawl{NewCrawl(0, cfg.Levels)}, map[uint32]uint32{}
	c.offers.Moved = func(slot uint32, i int) { c.Crawls[slot].pos[0] = int32(i) }
	c.urgent.Moved = func(slot uint32, i int) { c.Crawls[slot].pos[1] = int32(i) }
	c.Stats.WaitingBy = make([]int64, cfg.Levels)
	c.Waits.By = make([]measure.Histogram, cfg.Levels)
	c.Scheduled, c.Timed = timed.NewRecords(&c.Records), timed.NewBlocks(&c.Blocks)
	c.Scheduled.Ring = func(queue uint32) *arena.Ref { return &c.Queues.At(queue).scheduled }
	c.Kept = map[uint32]int32{}
	c.Moves = move.New(&c.Records, &c.Blocks, &c.Fifo, c.Scheduled, &c.Timed)
	hostMoved := func(id uint32, i int) { c.Hosts.At(id).Pos = int32(i) }
	c.Parks.Moved, c.Idle.Moved = hostMoved, hostMoved
	c.Expiry.Moved = func(id uint32, i int) { c.Leases.At(id).Pos = int32(i) }
	c.Pace.Moved = func(id uint32, i int) {
		if id&groupBit != 0 {
			c.Groups.At(id &^ groupBit).pos = int32(i)
		} else {
			c.Hosts.At(id).Pos = int32(i)
		}
	}
	return c
}

// Memory is how many bytes the hosts and all that they own take.
func (s *Core) Memory() int64 {
	return s.Records.Size() + s.names.Size() + s.Hosts.Size() + s.Queues.Size() + s.Leases.Size() +
		s.HostLanes.Size() + int64(len(s.laned))*lanesBytes +
		s.Groups.Size() + s.groupIndex.Size() + s.grouped.Size() + int64(cap(s.lonely))*4 + s.distanceBytes + int64(len(s.crowds))*crowdBytes +
		s.Waits.Size() + s.index.Size() + s.order.Size() +
		s.Sizes.Size() + s.Withheld.set.Size() + s.Limits.Size() + s.Blocks.Size() +
		s.Pace.Size() + s.Parks.Size() + s.Idle.Size() + s.Expiry.Size() + s.Scheduled.Size() + int64(len(s.Kept))*16 + s.Counts.Size() +
		s.offers.Size() + s.urgent.Size() + s.Moves.Size() + int64(len(s.Crawls))*s.crawlBytes() +
		s.Dormant.Size() + s.Timed.Size() +
		int64(len(s.Troubles))*troubleBytes
}

// Quiet is the time since the latest end of a lease, or since the first of those that are
// out was handed out.
type Quiet struct {
	Since int64
	Told  bool // that calls wait in vain
}

// Rules are the operator's rules, as they are asked for here. A host's rule is looked up
// when the answer is needed.
type Rules interface {
	// Withholding reports whether any rule may keep a host from being served.
	Withholding() bool
	// Withholds returns the date until which the rules keep a host from being served, and
	// why: never if it is paused or held, instant.None if they do not.
	Withholds(host []byte, now int64) (until int64, why WithheldReason)
	// Priority returns the priority with which URLs of a host are served whose own is p.
	Priority(host []byte, p uint8) uint8
	// Concurrency returns how many leases the rules allow a host at once, or 0 if none says.
	Concurrency(host []byte) int
	// Delay returns the policy that rules give a host, or nil.
	Delay(host string) OwnPolicy
	// EndBlock ends the block of a scope, whose time has come.
	EndBlock(scope row.Scope, now int64)
}
