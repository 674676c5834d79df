// This file knows which records deletions have left dead, and takes out those of a host.

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

// PurgeHost takes a host's dead records out, for as many steps. It returns the steps that are
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

// purge takes dead records from the head of a queue, for as many steps, and its
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
