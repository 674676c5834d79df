// This file reads records back from blocks.

package spill

import (
	"errors"
	"fmt"
	"sync"

	"github.com/seed-7440039f/frontier"
)

// buffers holds memory for decompressed blocks.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

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
	if kind(key[headLen-1]) == kindTimed {
		return s.loadTimed(key, p, want, fn)
	}
	found, err := s.get(key, func(value []byte) error { return loadPart(key, value, p, want, fn) })
	if err == nil && !found {
		err = corrupt(key, errNoBlock)
	}
	return err
}

var errNoBlock = errors.New("block is missing")

func loadPart(key, value []byte, p frontier.Part, want uint32, fn func(int, frontier.Record)) error {
	dir, body, err := splitBlock(key, value)
	if err != nil {
		return corrupt(key, err)
	}
	var e partEntry
	match := func(first uint16, count uint8) bool { return first == p.First && count == p.Count }
	switch err := readDirectory(dir, match, func(found partEntry) error { e = found; return errFound }); err {
	case errFound:
	case nil:
		return corrupt(key, errNoPart)
	default:
		return corrupt(key, err)
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	raw, err := inflate(*buf, body, blockRawLimit)
	if err != nil {
		return corrupt(key, err)
	}
	if cap(raw) <= 16*blockTarget {
		*buf = raw[:0]
	}
	err = readRecords(raw, e, want, func(i int, r frontier.Record) error {
		fn(i, r)
		return nil
	})
	if err != nil {
		return corrupt(key, err)
	}
	return nil
}
