// Package hostindex finds hosts, or other numbered things, by the hashes of their keys.
//
// It stores only their numbers: the caller must check whether a key is really the same.
package hostindex

import "github.com/seed-7440039f/frontier/internal/offheap"

const (
	indexBits     = 8
	indexSegments = 1 << indexBits
)

// Index is a hash table of host numbers. The high bits of a hash select one of its segments, which
// grow and shrink separately: no step copies more than a 256th of the table.
//
// The zero value is empty. Not safe for concurrent use.
type Index struct {
	segments [indexSegments]indexSegment
	slots    int // of all segments
}

// indexSegment is an open-addressing table with linear probing. A host's slot follows from its tag, so
// a table of another size keeps their order, and no host is looked at when it is made.
type indexSegment struct {
	slots offheap.Array[indexSlot]
	n     int
}

type indexSlot struct {
	tag uint32 // the 32 bits of the hash after those that select the segment
	id  uint32 // 0: empty
}

func tagOf(hash uint64) uint32 { return uint32(hash << indexBits >> 32) }

func (x *Index) segment(hash uint64) *indexSegment {
	return &x.segments[hash>>(64-indexBits)]
}

// home is where the probing for a tag begins. The segment is not empty.
func (s *indexSegment) home(tag uint32) int {
	return int(uint64(tag) * uint64(len(s.slots.Items)) >> 32)
}

func (s *indexSegment) after(i int) int {
	if i++; i == len(s.slots.Items) {
		return 0
	}
	return i
}

// Candidates yields the numbers of hosts that probably have this hash.
func (x *Index) Candidates(hash uint64) func(yield func(id uint32) bool) {
	return func(yield func(uint32) bool) {
		s := x.segment(hash)
		if s.n == 0 {
			return
		}
		tag := tagOf(hash)
		for i := s.home(tag); s.slots.Items[i].id != 0; i = s.after(i) {
			if s.slots.Items[i].tag == tag && !yield(s.slots.Items[i].id) {
				return
			}
		}
	}
}

// Add adds a host, which must not be in the index.
func (x *Index) Add(hash uint64, id uint32) {
	s := x.segment(hash)
	if size := len(s.slots.Items); (s.n+1)*5 > size*4 {
		x.slots += s.resize(max(8, size+size/4))
	}
	s.put(indexSlot{tagOf(hash), id})
	s.n++
}

func (s *indexSegment) put(x indexSlot) {
	i := s.home(x.tag)
	for s.slots.Items[i].id != 0 {
		i = s.after(i)
	}
	s.slots.Items[i] = x
}

// Remove removes a host, which must be in the index.
func (x *Index) Remove(hash uint64, id uint32) {
	s := x.segment(hash)
	i := s.home(tagOf(hash))
	for s.slots.Items[i].id != id {
		i = s.after(i)
	}
	size := len(s.slots.Items)
	for j := s.after(i); s.slots.Items[j].id != 0; j = s.after(j) {
		// A slot after the hole may fill it unless its probing begins between them.
		if h := s.home(s.slots.Items[j].tag); (j-h+size)%size >= (j-i+size)%size {
			s.slots.Items[i] = s.slots.Items[j]
			i = j
		}
	}
	s.slots.Items[i] = indexSlot{}
	if s.n--; size > 64 && s.n < size/4 {
		x.slots += s.resize(size / 2)
	}
}

// resize moves the segment to a table of n slots and returns how many were gained.
func (s *indexSegment) resize(n int) int {
	old := s.slots
	s.slots = offheap.Make[indexSlot](n)
	for _, x := range old.Items {
		if x.id != 0 {
			s.put(x)
		}
	}
	gained := n - len(old.Items)
	old.Free()
	return gained
}

// Size returns the memory of the index in bytes.
func (x *Index) Size() int64 { return int64(x.slots) * 8 }
