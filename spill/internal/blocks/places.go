// This file remembers where blocks lie, so that one can be read without asking the engine.

package blocks

import (
	"sync"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

const (
	pageBlocks = 256                 // adjacent numbers of blocks
	pageBytes  = 12*pageBlocks + 128 // memory of their places
)

// Places holds the places of blocks, 12 bytes each, in pages. When it is full, a page is forgotten
// for each new one. Set Most before use.
//
// Safe for concurrent use.
type Places struct {
	Most int64 // bytes

	mu    sync.Mutex
	pages map[uint32]*page // guarded by mu; by number of the block / pageBlocks
}

type page struct {
	known int
	at    [pageBlocks]kv.Place // zero: unknown
}

// Set remembers where a block lies.
func (s *Places) Set(block uint32, at kv.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pages[block/pageBlocks]
	if p == nil {
		if s.pages == nil {
			s.pages = map[uint32]*page{}
		}
		for id := range s.pages {
			if s.bytes() < s.Most {
				break
			}
			delete(s.pages, id) // any of them
		}
		p = &page{}
		s.pages[block/pageBlocks] = p
	}
	if p.at[block%pageBlocks] == (kv.Place{}) {
		p.known++
	}
	p.at[block%pageBlocks] = at
}

// Of returns where a block lies, if it is known.
func (s *Places) Of(block uint32) (at kv.Place, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pages[block/pageBlocks]; p != nil {
		at = p.at[block%pageBlocks]
	}
	return at, at != kv.Place{}
}

// Forget forgets a block.
func (s *Places) Forget(block uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pages[block/pageBlocks]
	if p == nil || p.at[block%pageBlocks] == (kv.Place{}) {
		return
	}
	p.at[block%pageBlocks] = kv.Place{}
	if p.known--; p.known == 0 {
		delete(s.pages, block/pageBlocks)
	}
}

// Clear forgets all blocks.
func (s *Places) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = nil
}

// Bytes returns the memory in bytes.
func (s *Places) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes()
}

func (s *Places) bytes() int64 { return int64(len(s.pages)) * pageBytes }
