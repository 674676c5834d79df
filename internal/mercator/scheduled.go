// This file has the scheduled URLs, in and out of memory. Package timed knows when each is due.

package mercator

import (
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/tombstone"
)

const (
	// TimedAhead is how long before its time a record on disk may be in memory.
	// Blocks are read when a quarter of it is left.
	TimedAhead = time.Minute
	// timedRetry is how long a block is left alone after a read that failed. No other is
	// read ahead of its time meanwhile.
	timedRetry = 5 * time.Second
)

// Unschedule takes out item i of the heap of scheduled records.
func (s *Core) Unschedule(i int) timeheap.Item {
	it := s.Scheduled.Items[i]
	s.Scheduled.Remove(i)
	*s.Stats.DueAt(it.At)--
	id := s.Queues.At(it.Aux).Host
	s.Hosts.At(id).Scheduled--
	if it.At == instant.Never {
		if s.Kept[id]--; s.Kept[id] == 0 {
			delete(s.Kept, id)
		}
	}
	return it
}

// Dismiss drops a scheduled record from memory: from now on it is on disk only.
func (s *Core) Dismiss(ref arena.Ref, now int64) {
	i, _ := s.Scheduled.Find(ref)
	it := s.Unschedule(i)
	id := s.Queues.At(it.Aux).Host
	*s.Stats.DueAt(it.At)++ // as before
	s.Records.Discard(ref)
	if h := s.Hosts.At(id); h.Scheduled == 0 && h.Pins == 0 && h.Place == Nowhere {
		s.Settle(id, now)
	}
}

// FinishTimedDead finishes the records of the block being read that are dead.
func (s *Core) FinishTimedDead(rs []timed.Loaded, dead func(*timed.Loaded) bool) {
	*s.Stats.DueAt(s.Timed.Reading().At) -= int64(s.Timed.Bury(rs, dead))
}

// InstallTimed makes the first n records resident of the block that is being
// read. The others stay unread.
func (s *Core) InstallTimed(rs []timed.Loaded, n int, now int64) {
	waits := min(s.Date(now), s.Timed.MinUnread(), s.Scheduled.Min()) // what is due until then is next in order
	s.Timed.Arrive(rs, n, waits, func(part uint32, run []timed.Loaded, wait bool) {
		s.installRun(part, run, wait, now)
		s.Stats.Scheduled -= int64(len(run))
	})
}

// RetryTimed leaves the block being read, which cannot be, unread for a while.
func (s *Core) RetryTimed(now int64) {
	s.Timed.AheadFrom = now + int64(timedRetry)
	s.Timed.PutBack(max(s.Timed.Reading().At, s.Date(s.Timed.AheadFrom)))
}

// installRun makes records resident that share a part.
func (s *Core) installRun(part uint32, rs []timed.Loaded, wait bool, now int64) {
	r := &rs[0]
	qid := s.QueueOf(s.Ensure(r.Hash, r.Host), r.Crawl, r.Priority)
	for i := range rs {
		var ref arena.Ref
		if wait {
			ref = s.Records.Store(rs[i].Seq, rs[i].Body)
		} else {
			ref = s.Records.StoreForRing(rs[i].Seq, rs[i].Body)
		}
		s.Fifo.SetHome(ref, part, i)
		if wait {
			s.Waits.Began(rs[i].Seq, s.Moment(rs[i].At))
			s.PushTail(qid, ref, now)
		} else {
			s.Schedule(qid, ref, rs[i].At)
		}
	}
	if wait {
		s.Trim(qid)
	}
}

// Ring is how far a sweep is with the scheduled records of a host in memory.
type Ring struct {
	queue uint32 // of these; 0: it has not begun
	left  int    // to be looked at
}

// purgeScheduled takes dead records of a host out of the heap of scheduled ones, in up to that many steps. What it
// has looked at goes to the end of its ring, so that all are looked at once. It returns the steps that are
// left, and whether it is done.
func (s *Core) purgeScheduled(id uint32, d *tombstone.Tombstone, at *Ring, steps int, now int64) (int, bool) {
	for s.Hosts.At(id).NameLen > 0 && s.Hosts.At(id).Queues != 0 {
		if at.queue == 0 || s.Queues.At(at.queue).Host != id { // its queue is gone: nothing was left of it
			*at = Ring{s.Hosts.At(id).Queues, int(s.Hosts.At(id).Scheduled)}
		}
		q := s.Queues.At(at.queue)
		if at.left == 0 || q.scheduled == 0 || d.OfCrawl && s.CrawlOf(q).ID != d.Crawl {
			if *at = (Ring{q.Sibling, int(s.Hosts.At(id).Scheduled)}); at.queue == 0 {
				return steps, true
			}
			continue
		}
		if steps <= 0 {
			return steps, false
		}
		steps -= fifo.PurgedRecord
		at.left--
		ref := q.scheduled
		q.scheduled = s.Records.At(ref).After()
		i, _ := s.Scheduled.Find(ref)
		s.dropScheduled(i, now)
	}
	*at = Ring{}
	return steps, true
}

// dropScheduled finishes item i of the heap of scheduled records if it is dead.
func (s *Core) dropScheduled(i int, now int64) bool {
	it := s.Scheduled.Items[i]
	d := s.DeadIn(s.Queues.At(it.Aux))
	if d.Seq < s.Records.At(arena.Ref(it.ID)).Seq() {
		return false
	}
	s.Unschedule(i)
	s.dropped(it, &d, now)
	return true
}

// dropped finishes a dead record that is scheduled no more.
func (s *Core) dropped(it timeheap.Item, d *tombstone.Dead, now int64) {
	s.Stats.Deleted++
	d.By.Removed++
	s.Fifo.Finish(arena.Ref(it.ID))
	id := s.Queues.At(it.Aux).Host
	if h := s.Hosts.At(id); h.Scheduled == 0 && h.Pins == 0 && h.Place == Nowhere {
		s.Settle(id, now)
	}
}

// Schedule files a record under a future date, or one that never comes if it is finished.
func (s *Core) Schedule(qid uint32, ref arena.Ref, due int64) {
	h := s.Hosts.At(s.Queues.At(qid).Host)
	if h.Place == Departing {
		s.Put(h, Nowhere) // it stays
	}
	h.Scheduled++
	if due == instant.Never {
		s.Kept[s.Queues.At(qid).Host]++
	}
	*s.Stats.DueAt(due)++
	it := timeheap.Item{At: due, ID: uint32(ref), Aux: qid}
	s.Scheduled.Push(it)
	if s.Cfg.Spill && s.Records.At(ref).Part() == 0 {
		s.Scheduled.NeedHome(it)
	}
}
