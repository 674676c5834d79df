// This file puts deletions in force, knows which records they have left dead, and takes those out.
//
// Dead records are at the head of their queue, since they came before all others. So a queue is clean when
// its head is alive, and a hand-out checks only the head. For parts on disk the number of the block is
// enough.

package mercator

import (
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/tombstone"
)

// DeadIn is what the tombstones in force say about a queue.
func (s *Core) DeadIn(q *Queue) tombstone.Dead {
	if s.Deletions.InForce.Len() == 0 {
		return tombstone.Dead{}
	}
	return s.Deletions.InForce.Of(s.Name(s.Hosts.At(q.Host)), s.CrawlOf(q).ID)
}

// DeadStored says it with those, too, whose rows alone are left.
func (s *Core) DeadStored(q *Queue) tombstone.Dead {
	if s.Deletions.Stored.Len() == 0 {
		return s.DeadIn(q)
	}
	return s.Deletions.Stored.Of(s.Name(s.Hosts.At(q.Host)), s.CrawlOf(q).ID)
}

// LeaseDead returns the number of the last deletion that a lease's record fell to, or 0.
func (s *Core) LeaseDead(l *Lease) uint64 {
	if l.Record == 0 || s.Deletions.InForce.Len() == 0 {
		return l.Dead
	}
	if d := s.DeadIn(s.Queues.At(l.Queue)); d.Seq > max(l.Dead, s.Records.At(l.Record).Seq()) {
		if l.Dead == 0 {
			s.UnsettledDead++
		}
		l.Dead = d.Seq // the youngest: a Force may have met the lease after the one before
	}
	return l.Dead
}

// MarkDead is LeaseDead for a lease that is out.
func (s *Core) MarkDead(l *Lease) uint64 {
	was := l.Dead
	if now := s.LeaseDead(l); was == 0 && now != 0 {
		s.CrawlOf(s.Queues.At(l.Queue)).DeadLeases++
	}
	return l.Dead
}

// PurgeHost takes a host's dead records out, in up to that many steps. It returns the steps that are
// left, and whether it is done, or must wait until what is being read has arrived.
func (s *Core) PurgeHost(id uint32, d *tombstone.Tombstone, at *Ring, steps int, now int64) (left int, done, wait bool) {
	if steps, done, wait = s.purgeWaiting(id, d, steps, now); done {
		steps, done = s.purgeScheduled(id, d, at, steps, now)
	}
	return steps, done, wait
}

// purgeWaiting takes dead records out of a host's queues.
func (s *Core) purgeWaiting(id uint32, d *tombstone.Tombstone, steps int, now int64) (left int, done, wait bool) {
	h := s.Hosts.At(id)
	x := tombstone.Dead{Seq: d.Seq, Block: d.Block, By: d}
	done = true
	out := false // of its structure; what is in that may depend on which of its queues have URLs
	served := h.Served
	for qid := h.Queues; qid != 0 && done; qid = s.Queues.At(qid).Sibling {
		q := s.Queues.At(qid)
		if d.OfCrawl && s.CrawlOf(q).ID != d.Crawl || !s.deadHead(q, &x) {
			continue
		}
		if h.Place == Loading && q.HeadOnDisk() {
			wait, done = true, false
			continue
		}
		switch h.Place {
		case Parked, Pacing, Queued, Ready, Withheld:
			s.Detach(id)
			out = true
		}
		steps, done = s.purge(qid, &x, steps)
	}
	if done && h.Place == Unpurged {
		s.Detach(id)
		out = true
	}
	switch {
	case out:
		h.Served = served
		s.Settle(id, now)
	case h.Place == Unbound && h.Waiting == 0:
		s.Detach(id)
		s.Settle(id, now)
	}
	return steps, done, wait
}

// deadHead reports whether the first URL of a queue is dead.
func (t *tables) deadHead(q *Queue, d *tombstone.Dead) bool {
	return q.Waiting > 0 && t.Fifo.HeadDead(&q.Queue, fifo.Dead{Seq: d.Seq, Block: d.Block})
}

// purge takes dead records from the head of a queue, in up to that many steps, and its
// token away if none is left. It returns the steps that are left, and whether the
// head is alive now or the queue empty. Its host is in no structure, or unbound.
func (s *Core) purge(qid uint32, d *tombstone.Dead, steps int) (int, bool) {
	q := s.Queues.At(qid)
	before := q.Waiting
	steps, n, clean := s.Fifo.Purge(&q.Queue, fifo.Dead{Seq: d.Seq, Block: d.Block}, steps)
	s.removed(q, d, n)
	if before > 0 && q.Waiting == 0 && s.Hosts.At(q.Host).Place == Unbound {
		s.delist(tokens, qid)
	}
	return steps, clean
}

// removed counts dead records that left a queue.
func (s *Core) removed(q *Queue, d *tombstone.Dead, n int) {
	s.Counted(q, -n)
	s.Stats.Deleted += int64(n)
	d.By.Removed += int64(n)
}

// deadLease reports whether a deletion concerns the record of a lease.
func (s *Core) deadLease(l *Lease) bool {
	return l.Dead != 0 || s.Records.At(l.Record).Seq() <= s.DeadStored(s.Queues.At(l.Queue)).Seq
}

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

// sweepAt is how far a sweep has come. The zero value is its beginning.
type sweepAt struct {
	ring   Ring
	host   uint32 // the last that was looked at
	lease  uint32 // the same
	queues bool   // those of the only host are clean
}

// Sweep begins to look for what d has left dead: dead records are taken out of the queues, and out of the
// heap of scheduled ones, and the leases of dead records are marked. Each call of the function takes as many
// steps. It reports whether it is done, or must wait until what is being read has arrived.
func (s *Core) Sweep(d *tombstone.Tombstone) func(steps int, now int64) (done, wait bool) {
	at := &sweepAt{}
	return func(steps int, now int64) (done, wait bool) { return s.sweep(d, at, steps, now) }
}

func (s *Core) sweep(d *tombstone.Tombstone, at *sweepAt, steps int, now int64) (done, wait bool) {
	if d.OfHost() {
		id := s.Lookup(s.HashOf(d.Scope.Name), d.Scope.Name)
		switch {
		case id == 0:
			return true, false
		case !at.queues:
			_, at.queues, wait = s.PurgeHost(id, d, &at.ring, steps, now)
			return false, wait
		}
		for lease := range s.LeasesOf(id) {
			s.MarkDead(s.Leases.At(lease))
		}
		return true, false
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
	for ; at.lease < s.Leases.Top && steps > 0; at.lease++ {
		steps -= fifo.PurgedRecord
		if l := s.Leases.At(at.lease + 1); l.Token != 0 {
			s.MarkDead(l)
		}
	}
	return at.host >= s.Hosts.Top && at.lease >= s.Leases.Top, false
}

// FreeUnpurged puts hosts behind number at back, in up to that many steps, that were left to a sweep which had
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
