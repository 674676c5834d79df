// This file has the queues of waiting URLs, each of one host, crawl and priority. The queues of a
// bound host together are its back queue.
//
// How a queue lies in memory and on disk, package fifo knows.

package mercator

import (
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/fifo"
)

// Queue is the FIFO of one host, crawl and priority.
type Queue struct {
	fifo.Queue
	Host       uint32
	Sibling    uint32 // next queue of the host
	prev, next uint32 // in the front queue or ready list
	Waiting    int32
	crawl      uint32    // slot
	scheduled  arena.Ref // the first of its records in Core.Scheduled
	Priority   uint8
	level      uint8 // of the lists that it is in
	Listed     bool  // see list
}

// QueueOf returns the queue of a host, of a new record if there is none.
func (s *Core) QueueOf(hid uint32, crawl uint32, priority uint8) uint32 {
	h := s.Hosts.At(hid)
	slot := s.slotOf(crawl)
	link := &h.Queues
	for *link != 0 {
		q := s.Queues.At(*link)
		if q.Priority == priority && q.crawl == slot {
			return *link
		}
		if q.Priority < priority || q.Priority == priority && q.crawl > slot {
			break
		}
		link = &q.Sibling
	}
	id := s.Queues.Alloc()
	q := s.Queues.At(id)
	q.Host, q.crawl, q.Priority, q.Sibling = hid, slot, priority, *link
	q.level = s.levelOf(h, priority)
	s.Crawls[slot].Queues++
	*link = id
	return id
}

// releaseQueue ends a queue that holds nothing and is in no list.
func (s *Core) releaseQueue(id uint32) {
	slot := s.Queues.At(id).crawl
	s.Queues.Release(id)
	s.Moves.Ended(id)
	s.Crawls[slot].Queues--
	s.restCrawl(slot)
}

// Counted notes that n URLs joined (or, negative, left) a queue.
func (s *Core) Counted(q *Queue, n int) {
	q.Waiting += int32(n)
	h := s.Hosts.At(q.Host)
	if h.Waiting += int32(n); s.Sizes.Asked() {
		s.Sizes.Changed(q.Host, h.Waiting)
	}
	x := s.CrawlOf(q)
	if h.Place == Withheld {
		s.countWithheld(x, h.Pos, int64(n))
	}
	if !x.Runs() {
		s.pausedURLs += int64(n)
		if x.Stop == CrawlLimited {
			s.limitedURLs += int64(n)
		}
	}
	if s.Limits != nil && s.Limits.CountsDomains() {
		s.Limits.Waits(s.Name(h), int64(n))
	}
	x.Stats.Waiting += int64(n)
	if s.Stats.Waiting += int64(n); q.level == s.immediate() {
		s.Stats.Immediate += int64(n)
		x.Stats.Immediate += int64(n)
	} else {
		s.Stats.WaitingBy[q.level-1] += int64(n)
		x.Stats.WaitingBy[q.level-1] += int64(n)
	}
}

// PushTail appends a record to a queue and lets its host have it.
func (s *Core) PushTail(qid uint32, ref arena.Ref, now int64) {
	q := s.Queues.At(qid)
	s.Fifo.Push(&q.Queue, ref)
	if s.Records.At(ref).Part() == 0 {
		s.List(qid)
	}
	s.Counted(q, 1)
	s.Filled(qid, now)
}

// List notes that a queue has a record that needs a home in a block. It stays
// listed until a round has been there.
func (s *Core) List(qid uint32) {
	if s.Cfg.Spill {
		s.Moves.List(qid, &s.Queues.At(qid).Listed)
	}
}

// ReturnHead puts a record back where Pop took it from. Its host is in no
// structure or leased, or Filled must follow.
func (s *Core) ReturnHead(qid uint32, ref arena.Ref) {
	q := s.Queues.At(qid)
	s.Moves.ToHead(qid, ref)
	s.Fifo.PushFront(&q.Queue, ref)
	s.Counted(q, 1)
}

// Filled puts a queue that got a URL, and its host, where they belong.
func (s *Core) Filled(qid uint32, now int64) {
	q := s.Queues.At(qid)
	h := s.Hosts.At(q.Host)
	switch h.Place {
	case Nowhere, Idling, Departing:
		s.Detach(q.Host)
		s.Settle(q.Host, now)
	case Unbound:
		if q.Waiting == 1 {
			s.enlist(tokens, qid)
		}
	case Queued:
		s.promote(q.Host, now)
	case Ready:
		if q.Waiting == 1 {
			s.enlist(Readies, qid)
		}
	}
}

// Pop takes the next record, which is in memory.
func (s *Core) Pop(q *Queue) arena.Ref {
	s.Counted(q, -1)
	return s.Fifo.Pop(&q.Queue)
}

// evict drops from memory what can be read from blocks again, when memory is wanted. With
// keep set the next few stay. It reports whether there is more than was dropped at once:
// the next round of moving gets there.
func (t *tables) evict(qid uint32, keep bool) (more bool) {
	q := t.Queues.At(qid)
	return t.Cfg.Spill && t.Records.Used() > t.Cfg.EvictOver && !t.Fifo.Walked(q.Host) && t.Fifo.Evict(&q.Queue, keep)
}

// Trim evicts what need not be in memory of a queue that grew: all of an unbound
// host, of a bound one all but the next few. It reports whether there is more.
func (t *tables) Trim(qid uint32) (more bool) {
	switch t.Hosts.At(t.Queues.At(qid).Host).Place {
	case Unbound, Parked, Withheld, Unpurged:
		return t.evict(qid, false)
	case Pacing, Queued, Ready, Leased, Loading:
		return t.evict(qid, true)
	}
	return false
}
