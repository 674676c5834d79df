// This file keeps records of one kind in large pieces, named by small numbers.

package frontier

import (
	"math/bits"
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/lowset"
	"github.com/seed-7440039f/frontier/internal/offheap"
)

const (
	slabChunk = 1024
	slabWords = slabChunk / 64
)

// slab is a growing table of T that never moves them. Numbers of released
// records are used again, the lowest first, so that chunks at the end become
// empty; their memory returns to the system. 0 is never given out. A record that
// was released, and not given out again, is zero.
//
// The zero value is empty. Not safe for concurrent use.
type slab[T any] struct {
	inHeap bool // T holds pointers

	chunks []*[slabChunk]T
	inUse  []slabUse // of each chunk
	pieces offheap.Pieces[[slabChunk]T]
	open   lowset.Set // chunks with memory and a free record
	gone   lowset.Set // chunks without memory
	idle   int        // chunks with memory of which no record is in use
	n      int        // records in use
	top    uint32     // numbers up to top were given out
}

// slabUse tells which records of a chunk are in use.
type slabUse struct {
	n    int32
	full int32 // so many words, from the first, have no free record
	bits [slabWords]uint64
}

// alloc returns the number of a zero T.
func (s *slab[T]) alloc() uint32 {
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
	if u.n++; u.n == slabChunk {
		s.open.Remove(k)
	}
	s.n++
	id := uint32(k*slabChunk + w*64 + bit)
	s.top = max(s.top, id)
	return id
}

// addChunk makes room: a chunk that has no memory gets some, or there is a new one.
func (s *slab[T]) addChunk() int {
	s.idle++
	k := s.gone.First()
	if k >= 0 {
		s.gone.Remove(k)
		s.open.Add(k)
		return k
	}
	k = len(s.chunks)
	if s.inHeap {
		s.chunks = append(s.chunks, new([slabChunk]T))
	} else {
		s.chunks = append(s.chunks, s.pieces.Next())
	}
	s.inUse = append(s.inUse, slabUse{})
	if k == 0 { // number 0 is never given out
		s.inUse[0] = slabUse{n: 1, bits: [slabWords]uint64{1}}
		s.idle--
	}
	s.open.Add(k)
	return k
}

// at returns record id, for as long as it is not released.
func (s *slab[T]) at(id uint32) *T { return &s.chunks[id/slabChunk][id%slabChunk] }

// release zeroes record id and gives its number back.
func (s *slab[T]) release(id uint32) {
	var zero T
	*s.at(id) = zero
	k := int(id / slabChunk)
	u := &s.inUse[k]
	w := id % slabChunk / 64
	u.bits[w] &^= 1 << (id % 64)
	u.full = min(u.full, int32(w))
	if u.n == slabChunk {
		s.open.Add(k)
	}
	u.n--
	s.n--
	if u.n > 0 {
		return
	}
	// Some idle chunks stay, so that none comes and goes with every record.
	if s.idle++; s.idle > 1+s.held()/16 && !s.inHeap {
		offheap.Discard(s.chunks[k][:])
		s.idle--
		s.open.Remove(k)
		s.gone.Add(k)
	}
}

// held is how many chunks have memory.
func (s *slab[T]) held() int { return len(s.chunks) - s.gone.Len() }

// len returns how many records are in use.
func (s *slab[T]) len() int { return s.n }

// size returns how many bytes the slab takes.
func (s *slab[T]) size() int64 {
	return int64(s.held())*int64(unsafe.Sizeof([slabChunk]T{})) + int64(cap(s.inUse))*int64(unsafe.Sizeof(slabUse{}))
}
