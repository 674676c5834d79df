// This file makes a generation part of the state.
//
// A checkpoint writes everything under its own generation, or in new files, and all of it is
// ignored until one small write at the end adopts it. What that write makes obsolete is deleted
// afterwards, by tidy.go or the next Recover.

package spill

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/storage"
)

// Checkpoint adopts the blocks and marks of generation c.Gen and ends the log at c.Through. After
// an error it may be called again or given up; in that case the blocks of the generation never
// become part of the state.
func (s *Store) Checkpoint(c *storage.Checkpoint) error {
	return s.during("checkpoint", func() error {
		s.turn.Lock()
		defer s.turn.Unlock()
		return s.checkpointLocked(c)
	})
}

func (s *Store) checkpointLocked(c *storage.Checkpoint) error {
	through, err := s.throughOf(c.Through)
	if err != nil {
		return err
	}
	gen := s.generation(c.Gen)
	if gen <= s.state.adopted {
		return fmt.Errorf("generation %d is part of the state already", c.Gen)
	}
	// While a failed write might still take effect, nothing may be deleted and no block adopted.
	if err := s.settle(true); err != nil {
		return err
	}
	if err := s.dropOrphans(); err != nil {
		return err
	}
	s.dropOrphanRuns()
	for g := s.state.adopted + 1; g <= gen; g++ {
		kinds := []keys.Kind{keys.KindDead} // left by a failed attempt
		if g < gen {
			kinds = append(kinds, keys.KindBlock, keys.KindHead, keys.KindTimed) // left by a round that was given up
		}
		if err := s.deleteGeneration(g, kinds...); err != nil {
			return err
		}
	}
	deadGen, old, err := s.writeDead(gen, c.Dead)
	if err != nil {
		return err
	}
	if err := s.adopt(gen, through, s.marks.ReadyFor(gen)); err != nil {
		return err
	}
	s.deadGen = deadGen
	s.dropped = nil
	s.mu.Lock()
	maps.DeleteFunc(s.gens, func(before, _ uint32) bool { return before < c.Gen }) // they are over
	s.mu.Unlock()
	s.marks.Foresee()
	s.mergeLater()
	s.tidy(tidyJob{through: through, upTo: gen + 1, old: old})
	return nil
}

// throughOf returns the store's ID of the frontier's batch id.
func (s *Store) throughOf(id uint64) (uint64, error) {
	if !s.aligned {
		return s.last, nil // nothing was replayed or committed: there is no log
	}
	through := id + s.offset
	if int64(through-s.state.through) < 0 {
		through = s.state.through // the log ended there before the frontier was opened
	}
	if through > s.last {
		return 0, fmt.Errorf("through batch %d, which was not committed", id)
	}
	return through, nil
}

// adopt makes the write that completes the checkpoint.
func (s *Store) adopt(gen uint32, through uint64, marks *marks.Run) error {
	next := s.current()
	next.adopted, next.through = gen, through
	if marks != nil {
		next.runs = append(slices.Clip(next.runs), marks.Ref)
	}
	if err := s.putState(next); err != nil {
		return err
	}
	if marks != nil {
		s.marks.Adopt(marks)
	}
	return nil
}

// putState makes next the state, or leaves it as it was.
func (s *Store) putState(next state) error {
	b := kv.Batch{Spare: true} // it makes more obsolete than it adds
	key := keys.Prefix(keys.Fixed, keys.KindState)
	b.Set(key, next.value(key))
	if err := s.put(&b, s.opts.Sync); err != nil {
		s.undo.state = true
		s.takeBack()
		return err
	}
	s.state, s.undo.state = next, false
	return nil
}

// current returns the state including what changes between checkpoints.
func (s *Store) current() state {
	t := s.state
	s.mu.Lock()
	defer s.mu.Unlock()
	t.floor, t.next = s.floor, s.next
	return t
}

// writeDead writes the segments that change. It returns the new location of each segment and the
// keys of those that it replaces.
func (s *Store) writeDead(gen uint32, dead []storage.DeadBits) (map[uint32]uint32, [][]byte, error) {
	dirty := map[uint32][]storage.DeadBits{}
	for _, d := range dead {
		n := blocks.SegmentOf(d.Block)
		dirty[n] = append(dirty[n], d)
	}
	gone := map[uint32][]uint32{}
	for _, d := range s.dropped {
		n := blocks.SegmentOf(d)
		if _, ok := s.deadGen[n]; ok || dirty[n] != nil {
			gone[n] = append(gone[n], d)
			if dirty[n] == nil {
				dirty[n] = []storage.DeadBits{}
			}
		}
	}
	deadGen := maps.Clone(s.deadGen)
	var old [][]byte
	b := kv.Batch{Spare: true}
	for _, n := range slices.Sorted(maps.Keys(dirty)) {
		g, err := loadSegment(s.db, s.deadGen, n)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range dirty[n] {
			if len(d.Bits) > blocks.Positions/8 {
				return nil, nil, fmt.Errorf("block %d has %d bytes of dead bits; want at most %d", d.Block, len(d.Bits), blocks.Positions/8)
			}
			g.Set(d.Block, d.Bits)
		}
		for _, d := range gone[n] {
			delete(g, d)
		}
		if before, ok := deadGen[n]; ok {
			old = append(old, keys.Dead(before, n))
		}
		key := keys.Dead(gen, n)
		// An empty segment is written too: until it is deleted it hides the old one.
		b.Set(key, g.Value(key))
		if deadGen[n] = gen; len(g) == 0 {
			old = append(old, key)
			delete(deadGen, n)
		}
		if b.Bytes >= chunkBytes {
			if err := s.putFitting(&b, false); err != nil {
				return nil, nil, err
			}
			b = kv.Batch{Spare: true}
		}
	}
	return deadGen, old, s.putFitting(&b, false)
}

// loadSegment reads the valid value of a segment; gens holds the generation of each.
func loadSegment(db kv.Reader, gens map[uint32]uint32, n uint32) (blocks.Segment, error) {
	g := blocks.Segment{}
	gen, ok := gens[n]
	if !ok {
		return g, nil
	}
	key := keys.Dead(gen, n)
	err := must(db, key, errNoSegment, func(v []byte) (err error) {
		g, err = blocks.ReadSegment(n, key, v)
		return err
	})
	return g, err
}

// deleteGeneration deletes everything of the given kinds in generation gen, in steps.
func (s *Store) deleteGeneration(gen uint32, kinds ...keys.Kind) error {
	for _, k := range kinds {
		var b kv.Batch
		err := s.db.Iterate(keys.Prefix(gen, k), keys.After(gen, k), func(key []byte, _ func() ([]byte, error)) error {
			b.Delete(append([]byte(nil), key...))
			return nil
		})
		if err != nil {
			return err
		}
		if err := s.putChunks(&b, false); err != nil {
			return err
		}
	}
	return nil
}
