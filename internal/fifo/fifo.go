// Package fifo implements the queues of waiting URLs: a queue is a FIFO of records in memory and in
// blocks on disk.
//
// A Queue has three stretches: front, records in memory; chain, parts of blocks on disk; back, records
// in memory that came later. A record may be both in memory and in a block: then the block's copy is
// marked as taken, and dropping the one in memory (Evict) only clears the mark: see package block. The
// package owns the links between the records of queues, and the walks through them. It does not count
// URLs, and does not depend on hosts. It has no lock: callers hold the frontier's.
package fifo

import (
	"iter"
	"math/bits"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/block"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/storage"
)

// Store operates on queues whose records are in one arena and one table of blocks.
//
// Not safe for concurrent use.
type Store struct {
	records *record.Arena
	blocks  *block.Table
	walks   []*Walk
}

// New returns a Store over records and blocks.
func New(records *record.Arena, blocks *block.Table) Store {
	return Store{records: records, blocks: blocks}
}

// Queue is a FIFO of records.
//
// The zero value is empty.
type Queue struct {
	front stretch
	back  stretch
	chain block.Chain
}

// stretch is a singly linked FIFO of resident records.
type stretch struct{ first, last arena.Ref }

// Resident reports whether a record of the queue is in memory.
func (q *Queue) Resident() bool { return q.front.first != 0 || q.back.first != 0 }

// HeadOnDisk reports whether the next record must be read, if there is one.
func (q *Queue) HeadOnDisk() bool { return q.front.first == 0 && q.chain != 0 }

func (s *Store) push(x *stretch, ref arena.Ref) {
	s.records.At(ref).SetNext(0)
	if x.last != 0 {
		s.records.At(x.last).SetNext(ref)
	} else {
		x.first = ref
	}
	x.last = ref
}

// pop removes the first record. Its link is cleared: see In.
func (s *Store) pop(x *stretch) arena.Ref {
	ref := x.first
	r := s.records.At(ref)
	if x.first = r.Next(); x.first == 0 {
		x.last = 0
	} else {
		s.records.Prefetch(x.first) // its host's next turn comes soon
	}
	r.SetNext(0)
	if s.walks != nil {
		s.leaves(ref, x.first)
	}
	return ref
}

// Push appends a record.
func (s *Store) Push(q *Queue, ref arena.Ref) { s.push(&q.back, ref) }

// PushFront puts a record back where Pop took it from.
func (s *Store) PushFront(q *Queue, ref arena.Ref) {
	s.records.At(ref).SetNext(q.front.first)
	q.front.first = ref
	if q.front.last == 0 {
		q.front.last = ref
	}
}

// Pop removes the next record, which must be in memory: see Next.
func (s *Store) Pop(q *Queue) arena.Ref {
	if q.front.first == 0 {
		q.front, q.back = q.back, stretch{}
	}
	return s.pop(&q.front)
}

// Next returns the part that holds the next record, and which of its records to read for Install; 0
// if the record is in memory, or there is none.
func (s *Store) Next(q *Queue) (part, which uint32) {
	if q.front.first != 0 {
		return 0, 0
	}
	return s.blocks.NextUnread(&q.chain)
}

// Loaded is a record read from a part, at position Pos of it.
type Loaded struct {
	Pos  int
	Seq  uint64
	Body []byte
}

// Install adds the records that were read from the part returned by Next.
func (s *Store) Install(q *Queue, part uint32, records []Loaded) {
	for i := range records {
		r := &records[i]
		if s.blocks.Unread(part)&(1<<r.Pos) == 0 {
			continue // taken by a Force meanwhile
		}
		ref := s.records.Store(r.Seq, r.Body)
		s.SetHome(ref, part, r.Pos)
		s.push(&q.front, ref)
	}
	if q.chain != 0 && s.blocks.First(q.chain) == part && s.blocks.Unread(part) == 0 {
		s.blocks.Unchain(&q.chain)
	}
}

// Fetch stores a record that was read from a part, to be taken out of its queue. ok is false if the
// part has ended, or its record is not unread any more.
func (s *Store) Fetch(id uint32, p storage.Part, r *Loaded) (ref arena.Ref, ok bool) {
	if !s.blocks.Has(p.Block) || s.blocks.Part(id) != p || s.blocks.Unread(id)&(1<<r.Pos) == 0 {
		return 0, false
	}
	ref = s.records.Store(r.Seq, r.Body)
	s.SetHome(ref, id, r.Pos)
	return ref, true
}

// Abandon gives up the part returned by Next, which cannot be read, and returns how many records
// the queue loses. They stay on disk.
func (s *Store) Abandon(q *Queue, part uint32) int {
	left := s.blocks.Unread(part)
	s.blocks.Take(part, left)
	s.blocks.NextUnread(&q.chain)
	return bits.OnesCount32(left)
}

// Chain appends a part whose records come after all others in the queue. The back stretch must be
// empty.
func (s *Store) Chain(q *Queue, part uint32) { s.blocks.Append(&q.chain, part) }

// SetHome records that a record in memory is also in a block, where it must not be read.
func (s *Store) SetHome(ref arena.Ref, part uint32, pos int) {
	s.records.SetHome(ref, part, pos)
	s.blocks.Take(part, 1<<pos)
}

// Finish records that a record, which is in no queue, is durably finished, and frees its memory.
func (s *Store) Finish(ref arena.Ref) {
	r := s.records.At(ref)
	if id := r.Part(); id != 0 {
		s.blocks.Kill(id, r.Pos())
	}
	s.records.Discard(ref)
}

// End ends a queue, which must be empty.
func (s *Store) End(q *Queue) {
	for q.chain != 0 {
		s.blocks.Unchain(&q.chain) // all of its records were taken, and are finished
	}
}

// Place is the position of an in-memory record in its queue. It is valid until the queue changes.
type Place struct {
	Ref     arena.Ref
	prev    arena.Ref // 0: it is the first
	stretch *stretch
}

// Find looks for a URL among the records in memory whose sequence numbers are above after.
func (s *Store) Find(q *Queue, url []byte, after uint64) (p Place, ok bool) {
	for _, x := range [...]*stretch{&q.front, &q.back} {
		var prev arena.Ref
		for ref := x.first; ref != 0; prev, ref = ref, s.records.At(ref).Next() {
			if s.records.HasURL(ref, url) && s.records.At(ref).Seq() > after {
				return Place{ref, prev, x}, true
			}
		}
	}
	return p, false
}

// PlaceOf returns the position of a record that a walk met in the queue behind the record prev; ok is
// false if it is not behind that any more, and not the first either.
func (s *Store) PlaceOf(q *Queue, at, prev record.Location) (p Place, ok bool) {
	if !s.records.Holds(at) {
		return p, false
	}
	for _, x := range [...]*stretch{&q.front, &q.back} {
		if x.first == at.Ref {
			return Place{at.Ref, 0, x}, true
		}
	}
	if prev.Ref == 0 || !s.records.Holds(prev) || s.records.At(prev.Ref).Next() != at.Ref {
		return p, false
	}
	x := &q.front
	if q.back.last == at.Ref { // only the last of a stretch needs to know which it is
		x = &q.back
	}
	return Place{at.Ref, prev.Ref, x}, true
}

// Remove removes a record that Find or PlaceOf found.
func (s *Store) Remove(p Place) {
	next := s.records.At(p.Ref).Next()
	s.leaves(p.Ref, next)
	if p.prev == 0 {
		p.stretch.first = next
	} else {
		s.records.At(p.prev).SetNext(next)
	}
	if next == 0 {
		p.stretch.last = p.prev
	}
	s.records.At(p.Ref).SetNext(0)
}

// In reports whether the record that was there still waits in the queue.
func (s *Store) In(q *Queue, l record.Location) bool {
	return l.Ref != 0 && s.records.Holds(l) && (s.records.At(l.Ref).Next() != 0 || l.Ref == q.front.last || l.Ref == q.back.last)
}

// After yields the records in memory after ref, or all if ref is 0, each with whether records on
// disk may precede it.
func (s *Store) After(q *Queue, ref arena.Ref) iter.Seq2[arena.Ref, bool] {
	return func(yield func(arena.Ref, bool) bool) {
		inBack := ref != 0 && ref == q.back.last
		first := q.front.first
		if ref != 0 {
			first = s.records.At(ref).Next()
		}
		for x := first; x != 0; x = s.records.At(x).Next() {
			inBack = inBack || x == q.back.last
			if !yield(x, false) {
				return
			}
		}
		if inBack {
			return // ref was there, and so was the rest
		}
		for x := q.back.first; x != 0; x = s.records.At(x).Next() {
			if !yield(x, x == q.back.first) {
				return
			}
		}
	}
}

// Front yields the records in memory before the parts on disk, Back those after them.
func (s *Store) Front(q *Queue) iter.Seq[arena.Ref] { return s.all(q.front) }

// Back yields the records in memory behind the parts on disk.
func (s *Store) Back(q *Queue) iter.Seq[arena.Ref] { return s.all(q.back) }

func (s *Store) all(x stretch) iter.Seq[arena.Ref] {
	return func(yield func(arena.Ref) bool) {
		for ref := x.first; ref != 0 && yield(ref); ref = s.records.At(ref).Next() {
		}
	}
}

// Parts yields the parts on disk.
func (s *Store) Parts(q *Queue) iter.Seq[uint32] { return s.blocks.All(q.chain) }

// Check verifies that the stretches end where their links do.
func (s *Store) Check(q *Queue, bad func(format string, args ...any)) {
	for _, x := range [...]stretch{q.front, q.back} {
		last := arena.Ref(0)
		for ref := range s.all(x) {
			last = ref
		}
		if last != x.last {
			bad("F3: a stretch ends at %d, not %d", last, x.last)
		}
	}
}
