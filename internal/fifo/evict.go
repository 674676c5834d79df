// This file removes records from the memory of queues: they stay only on disk, or are deleted.

package fifo

import (
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/storage"
)

// evictAtOnce is how many records of a back stretch leave memory at once.
const evictAtOnce = 1024

// Evict drops records from memory that can be read from blocks again: the end of the front stretch
// and the beginning of the back stretch. With keep set the front stretch stays and, if it is empty,
// gets the records of the first part, so that the next Pop needs no disk access. It reports whether
// there is more to drop.
func (s *Store) Evict(q *Queue, keep bool) (more bool) {
	if !keep {
		s.evictFront(q)
	} else if q.front.first == 0 && q.chain == 0 {
		for n := 0; q.back.first != 0 && n < storage.MaxPart; n++ {
			s.push(&q.front, s.pop(&q.back))
		}
	}
	for n := 0; q.back.first != 0 && s.records.At(q.back.first).Part() != 0; n++ {
		if n == evictAtOnce {
			return true
		}
		s.release(q, s.pop(&q.back))
	}
	return false
}

func (s *Store) evictFront(q *Queue) {
	if q.front.last == 0 || s.records.At(q.front.last).Part() == 0 {
		return // nothing, or the last must stay with all before it
	}
	if q.chain == 0 { // the front can be evicted like the back, some at a time
		if q.back.first != 0 {
			s.records.At(q.front.last).SetNext(q.back.first)
			q.front.last = q.back.last
		}
		q.front, q.back = stretch{}, q.front
		return
	}
	var keep arena.Ref // last record that must stay, with all before it
	for ref := q.front.first; ref != 0; ref = s.records.At(ref).Next() {
		if s.records.At(ref).Part() == 0 {
			keep = ref
		}
	}
	gone := q.front
	if keep != 0 {
		gone.first = s.records.At(keep).Next()
		s.records.At(keep).SetNext(0)
		q.front.last = keep
	} else {
		q.front = stretch{}
	}
	if gone.first == 0 {
		return
	}
	rest := q.chain
	q.chain = 0
	for gone.first != 0 {
		s.release(q, s.pop(&gone))
	}
	if rest != 0 {
		s.blocks.Join(&q.chain, rest)
	}
}

// release frees the memory of a waiting record that is also in a block, and appends its part to the
// chain unless it is chained.
func (s *Store) release(q *Queue, ref arena.Ref) {
	r := s.records.At(ref)
	id := r.Part()
	s.blocks.Untake(id, r.Pos())
	if !s.blocks.Chained(id) {
		s.blocks.Append(&q.chain, id)
	}
	s.records.Discard(ref)
}

// Dead identifies deleted records: those up to a sequence number, which include all records of the
// blocks up to a block number.
type Dead struct {
	Seq   uint64
	Block uint32
}

// HeadDead reports whether the first record of a queue is dead. The queue must not be empty.
func (s *Store) HeadDead(q *Queue, d Dead) bool {
	switch {
	case d == Dead{}:
		return false
	case q.front.first != 0:
		return s.records.At(q.front.first).Seq() <= d.Seq
	case q.chain != 0:
		return s.deadPart(q, d) != 0
	}
	return s.records.At(q.back.first).Seq() <= d.Seq
}

// deadPart returns the first part of a queue's chain if it is dead, or if it has no unread record
// and dead records may follow it; otherwise 0.
func (s *Store) deadPart(q *Queue, d Dead) uint32 {
	id := s.blocks.First(q.chain)
	if s.blocks.Part(id).Block <= d.Block || s.blocks.Unread(id) == 0 {
		return id
	}
	return 0
}

// The cost of each action of Purge in steps.
const (
	PurgedRecord = 8
	PurgedPart   = 16
)

// Purge finishes dead records at the head of a queue, within the given number of steps. It returns the
// remaining steps, how many records it finished, and whether the head is now alive or the queue empty.
func (s *Store) Purge(q *Queue, d Dead, steps int) (left, removed int, clean bool) {
	for steps > 0 && !clean {
		switch {
		case q.front.first != 0:
			if clean = !s.purgeFirst(&q.front, d); !clean {
				removed++
			}
			steps -= PurgedRecord
		case q.chain != 0:
			id := s.deadPart(q, d)
			if clean = id == 0; !clean {
				removed += s.blocks.KillUnread(id)
				s.blocks.Unchain(&q.chain)
			}
			steps -= PurgedPart
		default:
			if clean = q.back.first == 0 || !s.purgeFirst(&q.back, d); !clean {
				removed++
			}
			steps -= PurgedRecord
		}
	}
	return steps, removed, clean
}

// purgeFirst removes the first record of a stretch if it is dead.
func (s *Store) purgeFirst(x *stretch, d Dead) bool {
	if s.records.At(x.first).Seq() > d.Seq {
		return false
	}
	s.Finish(s.pop(x))
	return true
}
