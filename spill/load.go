// This file reads records back from blocks.

package spill

import (
	"errors"
	"fmt"

	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/storage"
)

// Load reads records of part p. It may be called from any number of goroutines.
func (s *Store) Load(p storage.Part, want uint32, fn func(i int, r storage.Record)) error {
	if err := s.enter(); err != nil {
		return fmt.Errorf("spill: load: %w", err)
	}
	defer s.leave()
	if want == 0 {
		return nil
	}
	key, ok := s.keyOf(p.Block)
	if !ok {
		return fmt.Errorf("spill: load: %w", keys.Corrupt(key, errNoBlock))
	}
	if err := s.load(key, p, want, fn); err != nil {
		return fmt.Errorf("spill: load: %w", err)
	}
	return nil
}

func (s *Store) load(key []byte, p storage.Part, want uint32, fn func(int, storage.Record)) error {
	timed := keys.Kind(key[keys.HeadLen-1]) == keys.KindTimed
	fill := func(b *blocks.Block) error {
		found, err := s.get(key, func(value []byte) error {
			if err := b.Fill(key, value, timed); err != nil {
				return keys.Corrupt(key, err)
			}
			return nil
		})
		if err == nil && !found {
			err = keys.Corrupt(key, errNoBlock)
		}
		return err
	}
	return s.blocks.Use(p.Block, fill, func(b *blocks.Block) error {
		if err := b.Records(p, want, fn); err != nil {
			return keys.Corrupt(key, err)
		}
		return nil
	})
}

var errNoBlock = errors.New("block is missing")
