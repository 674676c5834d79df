// Package slab keeps records of one kind in large pieces, named by small numbers.
package slab

import (
	"math/bits"
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/bitset"
	"github.com/seed-7440039f/frontier/internal/offheap"
)

const (
	perChunk = 1024
	words    = perChunk / 64
)

// Slab is a growing table of T whose records never move. Numbers of released records are reused,
// the lowest first, so that chunks at the end become empty; their memory returns to the system.
// Number 0 is never used. A released record is zero until it is reused.
//
// The zero value is empty. Not safe for concurrent use.
type Slab[T any] struct {
	InHeap bool // T holds pointers

	chunks []*[perChunk]T
	blank  *[perChunk]T // what At reads in a chunk that was in the heap and is gone; nil if none ever was
	inUse  []use        // of each chunk
	pieces offheap.Pieces[[perChunk]T]
	open   bitset.Set // chunks with memory and a free record
	gone   bitset.Set // chunks without memory
	idle   int        // chunks with memory and without used records
	n      int        // records in use
	Top    uint32     // all numbers in use are at most Top
}

// use records which records of a chunk are in use.
type use struct {
	n    int32
	full int32 // number of leading words without a free record
	bits [words]uint64
}

// Alloc returns the number of a zero T.
func (s *Slab[T]) Alloc() uint32 {
	k := s.open.First()
	if k < 0 {
		k = s.addChunk()
	}
	u := &s.inUse[k]
	if u.n == 0 {
		s.idle--
	}
	for u.bits[u.full] == ^uint64(0) {
		u.full++
	}
	w := int(u.full)
	bit := bits.TrailingZeros64(^u.bits[w])
	u.bits[w] |= 1 << bit
	if u.n++; u.n == perChunk {
		s.open.Remove(k)
	}
	s.n++
	id := uint32(k*perChunk + w*64 + bit)
	s.Top = max(s.Top, id)
	return id
}

// addChunk makes room: it allocates memory for a chunk without, or adds a chunk.
func (s *Slab[T]) addChunk() int {
	s.idle++
	k := s.gone.First()
	if k >= 0 {
		s.gone.Remove(k)
		s.open.Add(k)
		if s.InHeap {
			s.chunks[k] = new([perChunk]T)
		}
		return k
	}
	k = len(s.chunks)
	if s.InHeap {
		s.chunks = append(s.chunks, new([perChunk]T))
	} else {
		s.chunks = append(s.chunks, s.pieces.Next())
	}
	s.inUse = append(s.inUse, use{})
	if k == 0 { // number 0 is never used
		s.inUse[0] = use{n: 1, bits: [words]uint64{1}}
		s.idle--
	}
	s.open.Add(k)
	return k
}

// At returns record id, for as long as it is not released.
func (s *Slab[T]) At(id uint32) *T { return &s.chunks[id/perChunk][id%perChunk] }

// Release zeroes record id and frees its number.
func (s *Slab[T]) Release(id uint32) {
	var zero T
	*s.At(id) = zero
	k := int(id / perChunk)
	u := &s.inUse[k]
	w := id % perChunk / 64
	u.bits[w] &^= 1 << (id % 64)
	u.full = min(u.full, int32(w))
	if u.n == perChunk {
		s.open.Add(k)
	}
	u.n--
	s.n--
	if u.n > 0 {
		return
	}
	// Some idle chunks stay, so that memory is not freed and allocated with every record.
	if s.idle++; s.idle > 1+s.held()/16 {
		if s.InHeap {
			if s.blank == nil {
				s.blank = new([perChunk]T)
			}
			s.chunks[k] = s.blank
		} else {
			offheap.Discard(s.chunks[k][:])
		}
		s.idle--
		s.open.Remove(k)
		s.gone.Add(k)
	}
}

// held returns the number of chunks with memory.
func (s *Slab[T]) held() int { return len(s.chunks) - s.gone.Len() }

// Len returns how many records are in use.
func (s *Slab[T]) Len() int { return s.n }

// Size returns the memory of the slab in bytes.
func (s *Slab[T]) Size() int64 {
	chunks := int64(s.held())
	if s.blank != nil {
		chunks++
	}
	return chunks*int64(unsafe.Sizeof([perChunk]T{})) + int64(cap(s.inUse))*int64(unsafe.Sizeof(use{}))
}
