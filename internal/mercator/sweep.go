// This file puts deletions in force, and has the sweeps that remove in steps what they have left dead.
//
// Dead records are at the head of their queue, since they came before all others. So a queue is clean when
// its head is alive, and a hand-out checks only the head. For parts on disk the number of the block is
// enough.

package mercator

import (
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
)

// sweptHost is how many steps of a sweep it takes to look at a host.
const sweptHost = 1

// Enact puts a deletion in force: it is durable with a batch, and all before it is visible.
func (s *Core) Enact(d *tombstone.Deletion, batch uint64) {
	s.Deletions.Enact(d, s.Blocks.Last(), batch, s.Cfg.Spill)
	s.OfferDeleted(&d.Tombstone)
	switch {
	case !s.Cfg.Spill:
	case d.OfHost():
		s.Timed.PurgeLater(d.Block)
	default:
		s.Timed.Purge(d.Block)
	}
}

// RestoreDeletion restores a deletion whose row was found. Higher numbers of blocks are given once more.
func (s *Core) RestoreDeletion(d row.Deletion, batch uint64) {
	s.Deletions.Enact(tombstone.NewDeletion(d), min(d.Block, s.Blocks.Last()), batch, true)
}

// Overtakes lets a deletion have a record that was on its way to its end when it came, and reports whether
// it has it.
func (s *Core) Overtakes(d *tombstone.Deletion, o *Outgoing) bool {
	q := s.Queues.At(o.Queue)
	if s.Records.At(o.Record).Seq() > d.Seq || !d.Contains(s.Name(s.Hosts.At(q.Host)), s.CrawlNumber(q)) {
		return false
	}
	if !o.Dead {
		o.Dead = true
		s.UnsettledDead++
		s.Uncount(o)
	}
	return true
}

// SettleDead notes that the end of a dead record is durable, or was undone.
func (s *Core) SettleDead(o *Outgoing) {
	o.Dead = false
	s.UnsettledDead--
}

// Revive puts deletions in force again: a record that they may concern came back. It returns those that
// must be swept.
func (s *Core) Revive() []*tombstone.Deletion {
	ds := s.Deletions.Revive()
	for _, d := range ds {
		s.OfferDeleted(&d.Tombstone)
	}
	return ds
}

// OutdatedDeletions lists the deletions that are of no use once the checkpoint that ends the log at through
// is complete.
func (s *Core) OutdatedDeletions(through uint64) []*tombstone.Deletion {
	if s.UnsettledDead > 0 { // a record that they concern would come back after a crash
		return nil
	}
	return s.Deletions.Outdated(through, s.Counts != nil, func(block uint32) bool {
		return s.Timed.Empty() || block < s.Timed.Oldest() || s.Timed.Purged()
	})
}

// SweepAt is how far a sweep has come. The zero value is its beginning.
type SweepAt struct {
	ring   Ring
	host   uint32 // the last that was looked at
	queues bool   // they are clean
	lease  uint32 // the last that was looked at
}

// Sweep looks for what d has left dead, for as many steps: it takes dead records out of the queues, and
// out of the heap of scheduled ones, and marks the leases of dead records. It reports whether it is done,
// or must wait until what is being read has arrived.
func (s *Core) Sweep(d *tombstone.Tombstone, at *SweepAt, steps int, now int64) (done, wait bool) {
	if at.queues {
		return s.sweepLeases(d, at, steps), false
	}
	at.queues, wait = s.sweepQueues(d, at, steps, now)
	return false, wait
}

func (s *Core) sweepQueues(d *tombstone.Tombstone, at *SweepAt, steps int, now int64) (done, wait bool) {
	if d.OfHost() {
		id := s.Lookup(s.HashOf(d.Scope.Name), d.Scope.Name)
		if id == 0 {
			return true, false
		}
		_, done, wait = s.PurgeHost(id, d, &at.ring, steps, now)
		return done, wait
	}
	for ; at.host < s.Hosts.Top && steps > 0; at.host++ { // the numbers of hosts with dead records do not change
		steps -= sweptHost
		h := s.Hosts.At(at.host + 1)
		if h.NameLen == 0 || h.Waiting == 0 && h.Scheduled == 0 && h.Place != Unpurged || !d.ContainsHost(s.Name(h)) {
			continue
		}
		if steps, done, wait = s.PurgeHost(at.host+1, d, &at.ring, steps, now); !done {
			return false, wait
		}
	}
	return at.host >= s.Hosts.Top, false
}

func (s *Core) sweepLeases(d *tombstone.Tombstone, at *SweepAt, steps int) (done bool) {
	if d.OfHost() {
		if id := s.Lookup(s.HashOf(d.Scope.Name), d.Scope.Name); id != 0 {
			for lease := range s.LeasesOf(id) {
				s.MarkDead(s.Leases.At(lease))
			}
		}
		return true
	}
	for ; at.lease < s.Leases.Top && steps > 0; at.lease++ {
		steps -= fifo.PurgedRecord
		if l := s.Leases.At(at.lease + 1); l.Token != 0 {
			s.MarkDead(l)
		}
	}
	return at.lease >= s.Leases.Top
}

// EndSweep ends the sweep of a deletion. It reports false if another one must follow.
func (s *Core) EndSweep(d *tombstone.Deletion) bool {
	if !s.Deletions.EndSweep(d) {
		return false
	}
	s.OfferDeleted(&d.Tombstone)
	return true
}

// FreeUnpurged puts hosts behind number at back, for as many steps, that were left to a sweep which had
// been there, because of a part that was finished later. It reports whether it is done.
func (s *Core) FreeUnpurged(at *uint32, steps int, now int64) (done bool) {
	for ; *at < s.Hosts.Top && s.Places[Unpurged] > 0 && steps > 0; steps-- {
		*at++
		if s.Hosts.At(*at).Place == Unpurged {
			s.Detach(*at)
			s.Settle(*at, now)
		}
	}
	return *at >= s.Hosts.Top || s.Places[Unpurged] == 0
}
