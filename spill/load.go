// This file reads records back from blocks.

package spill

import (
	"errors"
	"fmt"

	"github.com/seed-7440039f/frontier"
)

var errFound = errors.New("found") // ends a walk through a directory

// Load reads records of part p. It may be called by any number of goroutines.
func (s *Store) Load(p frontier.Part, want uint32, fn func(i int, r frontier.Record)) error {
	if err := s.enter(); err != nil {
		return fmt.Errorf("spill: load: %w", err)
	}
	defer s.leave()
	if want == 0 {
		return nil
	}
	key, ok := s.keyOf(p.Block)
	if !ok {
		return fmt.Errorf("spill: load: %w", corrupt(key, errNoBlock))
	}
	if err := s.load(key, p, want, fn); err != nil {
		return fmt.Errorf("spill: load: %w", err)
	}
	return nil
}

func (s *Store) load(key []byte, p frontier.Part, want uint32, fn func(int, frontier.Record)) error {
	timed := kind(key[headLen-1]) == kindTimed
	fill := func(b *openBlock) error {
		found, err := s.get(key, func(value []byte) error { return b.fill(key, value, timed) })
		if err == nil && !found {
			err = corrupt(key, errNoBlock)
		}
		return err
	}
	return s.blocks.use(p.Block, fill, func(b *openBlock) error {
		if timed {
			return b.timedRecords(key, p, want, fn)
		}
		return b.records(key, p, want, fn)
	})
}

var errNoBlock = errors.New("block is missing")

// fill verifies and decompresses a block, into the memory of b if it fits.
func (b *openBlock) fill(key, value []byte, timed bool) (err error) {
	var dir, body []byte
	if timed {
		b.raw, err = openTimed(b.raw, key, value)
	} else if dir, body, err = splitBlock(key, value); err == nil {
		b.raw, err = inflate(b.raw, body, blockRawLimit)
	}
	if err != nil {
		return corrupt(key, err)
	}
	b.dir = append(b.dir[:0], dir...)
	return nil
}

// records calls fn with the wanted records of a part.
func (b *openBlock) records(key []byte, p frontier.Part, want uint32, fn func(int, frontier.Record)) error {
	var e partEntry
	match := func(first uint16, count uint8) bool { return first == p.First && count == p.Count }
	switch err := readDirectory(b.dir, match, func(found partEntry) error { e = found; return errFound }); err {
	case errFound:
	case nil:
		return corrupt(key, errNoPart)
	default:
		return corrupt(key, err)
	}
	err := readRecords(b.raw, e, want, func(i int, r frontier.Record) error {
		fn(i, r)
		return nil
	})
	if err != nil {
		return corrupt(key, err)
	}
	return nil
}
