// This file brings back what blocks have when a store is opened, and shows the queues to a round of
// moving: see package move.

package mercator

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/offheap"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/storage"
)

// Restore is the blocks of a store that is being opened: first the parts of all, then what has ended of
// them since.
type Restore struct {
	Timed  timed.Restored
	c      *Core
	parts  []blockParts         // of each block
	sorted bool                 // parts are, by block
	queues offheap.List[uint32] // of each part
}

// blockParts are the parts of a block: their numbers are consecutive, since none has been released yet.
type blockParts struct{ block, first, n uint32 }

// Restore begins to bring blocks back.
func (s *Core) Restore() Restore { return Restore{Timed: s.Timed.Restore(), c: s} }

// Part adds a part of a block to a queue.
func (r *Restore) Part(qid uint32, p storage.Part) {
	c := r.c
	id := c.Blocks.RestorePart(p)
	for len(r.queues.Items) <= int(id) {
		r.queues.Append(0)
	}
	r.queues.Items[id] = qid
	if n := len(r.parts); n == 0 || r.parts[n-1].block != p.Block {
		r.parts = append(r.parts, blockParts{block: p.Block, first: id})
	}
	r.parts[len(r.parts)-1].n++
	x := c.Queues.At(qid)
	c.Counted(x, bits.OnesCount32(c.Blocks.Unread(id)))
	c.Fifo.Chain(&x.Queue, id)
}

// partOf returns the part that holds a position of a block, or 0.
func (r *Restore) partOf(block uint32, pos uint16) uint32 {
	if !r.sorted { // all were given; usually they came in order
		slices.SortStableFunc(r.parts, func(a, b blockParts) int { return cmp.Compare(a.block, b.block) })
		r.sorted = true
	}
	at, _ := slices.BinarySearchFunc(r.parts, block, func(b blockParts, id uint32) int { return cmp.Compare(b.block, id) })
	for ; at < len(r.parts) && r.parts[at].block == block; at++ {
		for id := r.parts[at].first; id < r.parts[at].first+r.parts[at].n; id++ {
			if p := r.c.Blocks.Part(id); p.Block == block && pos >= p.First && int(pos) < int(p.First)+int(p.Count) {
				return id
			}
		}
	}
	return 0
}

// Finish ends a record in a block.
func (r *Restore) Finish(x storage.Completion) {
	c := r.c
	id := r.partOf(x.Block, x.Pos)
	if id == 0 {
		r.Timed.Finish(x)
		return
	}
	if c.Blocks.IsDead(x.Block, int(x.Pos)) {
		return
	}
	pos := int(x.Pos - c.Blocks.Part(id).First)
	if c.Blocks.Unread(id)&(1<<pos) != 0 {
		c.Counted(c.Queues.At(r.queues.Items[id]), -1)
	}
	c.Blocks.Kill(id, pos)
}

// End drops what has ended as a whole.
func (r *Restore) End() {
	for _, x := range r.parts {
		r.c.Blocks.DropDead(x.block)
	}
	r.parts = nil
	r.queues.Free()
	r.c.Stats.Scheduled, r.c.Stats.Finished = r.Timed.End()
}

// Opened puts hosts, groups and crawls where they belong, once all of a store has been read. elsewhere says that
// another process had the hosts until then, by a clock of its own.
func (s *Core) Opened(elsewhere bool) {
	if s.Limits != nil {
		s.CountAllDomains()
		for _, x := range s.Crawls {
			if x != nil {
				s.JudgeCrawl(x, 0)
			}
		}
	}
	for id := uint32(1); id <= s.Groups.Top; id++ {
		if s.Groups.At(id).NameLen > 0 { // perhaps its settings were not known when it was met
			s.SetUpGroup(id)
		}
	}
	for i := range uint64(s.Hosts.Top) {
		id := uint32(i*2654435761%uint64(s.Hosts.Top)) + 1 // by a prime: the store had them by name
		if h := s.Hosts.At(id); h.NameLen > 0 {
			if s.ReopenedAt != NotReopened { // rules were not known when the host was met
				at := s.StartOfHost(hostkey.String(s.Name(h)))
				paced := elsewhere && !h.Has(Troubled) && (h.Why == WhyDelay || h.Why == WhyCrawlDelay || h.Why == WhyReopened)
				if paced { // it was not contacted later than at ReopenedAt, whatever the clock showed that wrote its row
					at = max(at, s.StartAfter(h.CrawlDelayNs()))
				}
				if paced || at > h.Due {
					h.Due, h.Why = at, WhyReopened
				}
			}
			s.Relevel(id, 0) // nor then
			s.Settle(id, 0)
		}
	}
}

// Source is the part of a move.Source that needs the hosts only.
type Source struct{ c *Core }

// Source returns the hosts as a round of moving sees them.
func (s *Core) Source() Source { return Source{s} }

// Top is the highest number of a queue.
func (s Source) Top() uint32 { return s.c.Queues.Top }

// Queue is a queue of URLs, or none.
func (s Source) Queue(id uint32) move.Queue {
	if q := s.c.Queues.At(id); q.Host != 0 {
		return move.Queue{Queue: &q.Queue, Priority: q.Priority, Listed: &q.Listed}
	}
	return move.Queue{}
}

// Name appends a queue's host to names, and describes the queue.
func (s Source) Name(id uint32, names []byte) (storage.Queue, []byte) {
	c := s.c
	q := c.Queues.At(id)
	at := len(names)
	names = append(names, c.Name(c.Hosts.At(q.Host))...)
	host := names[at:] // nothing is written to these bytes any more
	return storage.Queue{Host: hostkey.String(host), Crawl: c.CrawlOf(q).ID, Priority: q.Priority}, names
}

// Leased appends the records of a queue that are leased.
func (s Source) Leased(id uint32, to []move.Leased) []move.Leased {
	c := s.c
	for lease := range c.LeasesOf(c.Queues.At(id).Host) {
		if l := c.Leases.At(lease); l.Queue == id && l.Record != 0 {
			to = append(to, move.Leased{Ref: l.Record, Others: l.Prev != 0 || l.Next != 0})
		}
	}
	return to
}

// Finishing reports whether something of a queue's host is on its way to the disk.
func (s Source) Finishing(id uint32) bool {
	c := s.c
	return c.Hosts.At(c.Queues.At(id).Host).Pins > 0
}

// Dead is the number of the last deletion that concerns a queue.
func (s Source) Dead(id uint32) uint64 { return s.c.DeadStored(s.c.Queues.At(id)).Seq }

// DeadOf is Dead for a queue that may not be in memory.
func (s Source) DeadOf(q storage.Queue) uint64 {
	return s.c.Deletions.Stored.Of(hostkey.Bytes(q.Host), q.Crawl).Seq
}

// Trim drops from memory what a queue need not have there: see Core.Trim.
func (s Source) Trim(id uint32) (more bool) { return s.c.Trim(id) }
