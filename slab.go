// This file keeps records of one kind in large pieces, named by small numbers.

package frontier

import "unsafe"

const slabChunk = 1024

// slab is a growing table of T that never moves them. Numbers of released
// records are used again; 0 is never given out.
//
// The zero value is empty. Not safe for concurrent use.
type slab[T any] struct {
	chunks []*[slabChunk]T
	free   []uint32
	top    uint32 // numbers 1 to top were given out
}

// alloc returns the number of a zero T.
func (s *slab[T]) alloc() uint32 {
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		return id
	}
	s.top++
	if int(s.top/slabChunk) >= len(s.chunks) {
		s.chunks = append(s.chunks, new([slabChunk]T))
	}
	return s.top
}

// at returns record id, for as long as it is not released.
func (s *slab[T]) at(id uint32) *T { return &s.chunks[id/slabChunk][id%slabChunk] }

// release zeroes record id and gives its number back.
func (s *slab[T]) release(id uint32) {
	var zero T
	*s.at(id) = zero
	s.free = append(s.free, id)
}

// len returns how many records are in use.
func (s *slab[T]) len() int { return int(s.top) - len(s.free) }

// size returns how many bytes the slab takes.
func (s *slab[T]) size() int64 {
	var t T
	return int64(len(s.chunks))*slabChunk*int64(unsafe.Sizeof(t)) + int64(cap(s.free))*4
}
