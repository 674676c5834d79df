// This file brings back what blocks have when a store is opened.

package mercator

import (
	"cmp"
	"math/bits"
	"slices"

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

// blockParts are the parts of a block: their numbers are consecutive, since none has been
// released yet.
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

// Opened puts hosts, groups and crawls where they belong, once all of a store has been read.
func (s *Core) Opened() {
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
	for id := uint32(1); id <= s.Hosts.Top; id++ {
		if h := s.Hosts.At(id); h.NameLen > 0 {
			if s.HostStartsAt != nil { // rules were not known when the host was met
				if at := s.HostStartsAt(string(s.Name(h))); at > h.Due {
					h.Due, h.Why = at, WhyReopened
				}
			}
			s.Relevel(id, 0) // nor then
			s.Settle(id, 0)
		}
	}
}
