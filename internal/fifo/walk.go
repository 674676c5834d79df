// This file walks through the queues of one owner, in steps, while records are added to and removed
// from them.
//
// A walk visits the parts on disk first and then the records in memory, so that records read from disk
// during the walk are seen at least once; records of the owner may not be evicted meanwhile. In memory
// the walk is positioned before a record; if that record leaves, the walk moves on. A record that waits
// during the whole walk is seen once or twice; one that arrives or leaves meanwhile may be missed.

package fifo

import (
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/storage"
)

// Walk is a walk through the queues of one owner, from Begin to End.
type Walk struct {
	Owner  uint32 // 0 once its queues have ended
	Queues []Numbered
	Part   func(queue, part uint32)
	Record func(queue uint32, ref arena.Ref) (more bool)

	URL   []byte // that is looked for; nil: none
	Taken bool   // it left its queue by Took since Begin

	stage int             // chains of all queues, then back and front of each
	begun bool            // the stage
	last  record.Location // in memory: the record to visit next; ref 0: none
	chain struct {        // part visited last
		id   uint32
		part storage.Part
	}
	steps int // of the stage
}

// Numbered is a queue and its owner's number for it.
type Numbered struct {
	ID uint32
	*Queue
}

// Begin begins a walk, whose Owner and Queues are set.
func (s *Store) Begin(w *Walk) { s.walks = append(s.walks, w) }

// EndWalk ends a walk.
func (s *Store) EndWalk(w *Walk) {
	if s.walks = slices.DeleteFunc(s.walks, func(x *Walk) bool { return x == w }); len(s.walks) == 0 {
		s.walks = nil
	}
}

// Walked reports whether an owner is walked.
func (s *Store) Walked(owner uint32) bool {
	return slices.ContainsFunc(s.walks, func(w *Walk) bool { return w.Owner == owner })
}

// Gone ends the walks of an owner whose queues end.
func (s *Store) Gone(owner uint32) {
	for _, w := range s.walks {
		if w.Owner == owner {
			w.Owner = 0
		}
	}
}

// Took informs walks that search for its URL that a record leaves its queue for good, not for
// another position in it.
func (s *Store) Took(owner uint32, ref arena.Ref) {
	if s.walks != nil {
		s.took(owner, ref)
	}
}

func (s *Store) took(owner uint32, ref arena.Ref) {
	for _, w := range s.walks {
		if w.Owner == owner && w.URL != nil && s.records.HasURL(ref, w.URL) {
			w.Taken = true
		}
	}
}

// leaves moves walks on that are positioned before a record which leaves its stretch.
func (s *Store) leaves(ref, next arena.Ref) {
	for _, w := range s.walks {
		if w.begun && w.last.Ref == ref {
			w.stand(s, next)
		}
	}
}

func (w *Walk) stand(s *Store, ref arena.Ref) {
	w.last = record.Location{}
	if ref != 0 {
		w.last = s.records.Locate(ref)
	}
}

// Step performs the given number of steps, and reports whether there are more.
func (s *Store) Step(w *Walk, left int) (more bool) {
	for w.Owner != 0 && w.stage < 3*len(w.Queues) {
		i, on := w.stage, false
		if i < len(w.Queues) {
			on = w.walkChain(s, w.Queues[i], &left)
		} else {
			i -= len(w.Queues)
			q := w.Queues[i/2]
			x := &q.back
			if i%2 == 1 {
				x = &q.front
			}
			on = w.walkStretch(s, q.ID, x, &left)
		}
		if on {
			return w.Owner != 0
		}
		w.stage, w.begun, w.steps = w.stage+1, false, 0
	}
	return false
}

// walkChain visits parts, and reports whether there are more.
func (w *Walk) walkChain(s *Store, q Numbered, left *int) bool {
	if q.chain == 0 {
		return false
	}
	id := s.blocks.First(q.chain)
	if w.begun { // if the part visited last has left, so have all before it
		if s.blocks.Chained(w.chain.id) && s.blocks.Part(w.chain.id) == w.chain.part {
			if w.chain.id == uint32(q.chain) {
				return false
			}
			id = s.blocks.Next(w.chain.id)
		}
	}
	for w.begun = true; ; id = s.blocks.Next(id) {
		w.chain.id, w.chain.part = id, s.blocks.Part(id)
		w.Part(q.ID, id)
		*left--
		if w.steps++; id == uint32(q.chain) || w.steps > s.blocks.Parts() {
			return false
		}
		if *left <= 0 {
			return true
		}
	}
}

// walkStretch visits records in memory, and reports whether there are more.
func (w *Walk) walkStretch(s *Store, queue uint32, x *stretch, left *int) bool {
	if !w.begun || w.last.Ref != 0 && !s.records.Holds(w.last) {
		w.stand(s, x.first)
		w.begun = true
	}
	for w.last.Ref != 0 {
		if *left <= 0 {
			return true
		}
		*left--
		ref := w.last.Ref
		w.stand(s, s.records.At(ref).Next())
		if !w.Record(queue, ref) {
			w.stage = 3 * len(w.Queues)
			return false
		}
	}
	return false
}
