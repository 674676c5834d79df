// Package seen stores 96-bit fingerprints, in little more than 12 bytes each: a Set stores all of
// them, a Cache the popular ones.
package seen

import (
	"cmp"
	"encoding/binary"
	"iter"

	"github.com/seed-7440039f/frontier/internal/offheap"
)

const (
	shardBits = 8
	shards    = 1 << shardBits
	firstSize = 8 // slots of a shard's first table
)

// Set is a set of fingerprints. It is divided into shards, which grow by a quarter one at a time,
// so that no Insert must wait for the whole set to be copied.
//
// The zero value is an empty set. Not safe for concurrent use.
type Set struct {
	shards [shards]shard
	n      int
	slots  int
}

// shard is an open-addressing table with linear probing. The slot of a
// fingerprint follows from its high bits, so a larger table keeps their order
// and growing walks memory straight. An empty slot is all zero.
type shard struct {
	hi      []uint64
	lo      []uint32
	n       int
	hiTable offheap.Array[uint64] // of hi
	loTable offheap.Array[uint32] // of lo
}

func split(m [12]byte) (uint64, uint32) {
	hi, lo := binary.LittleEndian.Uint64(m[:8]), binary.LittleEndian.Uint32(m[8:])
	hi = cmp.Or(hi, 1) // an empty slot is 0; two fingerprints in 2^96 become one
	return hi, lo
}

func (s *Set) shard(hi uint64) *shard { return &s.shards[hi>>(64-shardBits)] }

// home is where the probing for hi begins, in a table of n slots.
func home(hi uint64, n int) int {
	return int(((hi << shardBits) >> 32) * uint64(n) >> 32)
}

// find returns the slot of the fingerprint, or the empty one where it belongs.
func (t *shard) find(hi uint64, lo uint32) (int, bool) {
	i := home(hi, len(t.hi))
	for t.hi[i] != 0 {
		if t.hi[i] == hi && t.lo[i] == lo {
			return i, true
		}
		if i++; i == len(t.hi) {
			i = 0
		}
	}
	return i, false
}

// Has reports whether m is in the set.
func (s *Set) Has(m [12]byte) bool {
	hi, lo := split(m)
	t := s.shard(hi)
	if t.n == 0 {
		return false
	}
	_, ok := t.find(hi, lo)
	return ok
}

// Insert adds m and reports whether it was new.
func (s *Set) Insert(m [12]byte) bool {
	hi, lo := split(m)
	t := s.shard(hi)
	if (t.n+1)*5 > len(t.hi)*4 {
		s.slots += t.grow(max(firstSize, len(t.hi)+len(t.hi)/4))
	}
	i, ok := t.find(hi, lo)
	if ok {
		return false
	}
	t.hi[i], t.lo[i] = hi, lo
	t.n++
	s.n++
	return true
}

// Remove removes m from the set, if it is there.
func (s *Set) Remove(m [12]byte) {
	hi, lo := split(m)
	t := s.shard(hi)
	if t.n == 0 {
		return
	}
	i, ok := t.find(hi, lo)
	if !ok {
		return
	}
	t.n--
	s.n--
	// Move later members of the probe sequence back, so that none is cut off.
	size := len(t.hi)
	for j := i; ; {
		if j++; j == size {
			j = 0
		}
		if t.hi[j] == 0 {
			break
		}
		h := home(t.hi[j], size)
		if (j-h+size)%size >= (j-i+size)%size {
			t.hi[i], t.lo[i] = t.hi[j], t.lo[j]
			i = j
		}
	}
	t.hi[i], t.lo[i] = 0, 0
}

// grow moves the shard to a table of n slots and returns how many were gained.
func (t *shard) grow(n int) int {
	old := *t
	t.hiTable, t.loTable = offheap.Make[uint64](n), offheap.Make[uint32](n)
	t.hi, t.lo = t.hiTable.Items, t.loTable.Items
	for i, hi := range old.hi {
		if hi != 0 {
			j, _ := t.find(hi, old.lo[i])
			t.hi[j], t.lo[j] = hi, old.lo[i]
		}
	}
	old.free()
	return n - len(old.hi)
}

func (t *shard) free() {
	t.hiTable.Free()
	t.loTable.Free()
}

// Free empties the set and returns its memory.
func (s *Set) Free() {
	for i := range s.shards {
		s.shards[i].free()
	}
	*s = Set{}
}

// Reserve makes room for n more fingerprints at once.
func (s *Set) Reserve(n int) {
	for i := range s.shards {
		t := &s.shards[i]
		if want := (t.n + n/shards + n/shards/8 + 1) * 5 / 4; want > len(t.hi) && want >= firstSize {
			s.slots += t.grow(want)
		}
	}
}

// All yields the fingerprints of the set, in no particular order. The set must not change meanwhile.
func (s *Set) All() iter.Seq[[12]byte] {
	return func(yield func([12]byte) bool) {
		for i := range s.shards {
			t := &s.shards[i]
			for j, hi := range t.hi {
				if hi == 0 {
					continue
				}
				var m [12]byte
				binary.LittleEndian.PutUint64(m[:8], hi)
				binary.LittleEndian.PutUint32(m[8:], t.lo[j])
				if !yield(m) {
					return
				}
			}
		}
	}
}

// Len returns how many fingerprints are in the set.
func (s *Set) Len() int { return s.n }

// Size returns the memory of the set's tables in bytes.
func (s *Set) Size() int64 { return int64(s.slots) * 12 }
