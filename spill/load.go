// This file reads records back from blocks.

package spill

import (
	"errors"

	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/storage"
)

// Load reads records of part p. It may be called from any number of goroutines.
func (s *Store) Load(p storage.Part, want uint32, fn func(i int, r storage.Record)) error {
	return s.during("load", func() error {
		if want == 0 {
			return nil
		}
		key, ok := s.keyOf(p.Block)
		if !ok {
			return keys.Corrupt(key, errNoBlock)
		}
		return s.load(key, p, want, fn)
	})
}

// Peek is for the frontier: see storage.Peeker. It asks the page cache, and not the engine, which may
// wait for the disk at any time. Damage is left for Load to report.
func (s *Store) Peek(p storage.Part, want uint32, fn func(i int, r storage.Record)) bool {
	if !s.life.TryRLock() { // Close waits, for another call perhaps
		return false
	}
	defer s.life.RUnlock()
	s.mu.Lock()
	idle := !s.inUse
	s.mu.Unlock()
	if s.closed || idle || want == 0 {
		return false
	}
	fill := func(b *blocks.Block) error {
		at, ok := s.places.Of(p.Block)
		if !ok {
			return errNotCached
		}
		key, ok := s.keyOf(p.Block)
		if !ok || !s.db.Peek(at, func(value []byte) error { return b.Fill(key, value, false) }) {
			return errNotCached
		}
		return nil
	}
	return s.blocks.Use(p.Block, fill, func(b *blocks.Block) error { return b.Records(p, want, fn) }) == nil
}

// located remembers where a block lies that is not timed: others are read in order, once.
func (s *Store) located(block uint32, key []byte) {
	if keys.Kind(key[keys.HeadLen-1]) != keys.KindBlock {
		return
	}
	if at, ok := s.db.Locate(key); ok {
		s.places.Set(block, at)
	}
}

func (s *Store) load(key []byte, p storage.Part, want uint32, fn func(int, storage.Record)) error {
	timed := keys.Kind(key[keys.HeadLen-1]) == keys.KindTimed
	fill := func(b *blocks.Block) error {
		err := must(s.db, key, errNoBlock, func(value []byte) error { return b.Fill(key, value, timed) })
		if err == nil {
			s.located(p.Block, key)
		}
		return err
	}
	return s.blocks.Use(p.Block, fill, func(b *blocks.Block) error {
		return keys.Corrupt(key, b.Records(p, want, fn))
	})
}

var (
	errNoBlock   = errors.New("block is missing")
	errNotCached = errors.New("block is not in memory")
)
