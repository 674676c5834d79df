// Package arena stores many small byte blocks in a few large pieces of memory outside the Go heap,
// so that ten million of them cost the garbage collector nothing, and their memory returns to the
// system when they are freed.
package arena

import (
	"fmt"

	"github.com/seed-7440039f/frontier/internal/offheap"
)

// Ref names a block. The zero Ref names none.
type Ref uint32

const (
	grain     = 8       // bytes; a Ref counts grains, so an Arena holds 32 GiB
	chunkSize = 1 << 20 // bytes
	chunkRefs = chunkSize / grain
	maxChunks = 1 << 32 / chunkRefs
	// MaxSize is the largest block, in bytes.
	MaxSize = 256 << 10

	smallest = 8    // bytes of the first class
	linear   = 1024 // up to here classes are 8 bytes apart, beyond by an eighth
	classes  = 175
)

// sizes are the block sizes, ascending; the size of a block is rounded up to one of them.
var sizes = func() (s [classes]int) {
	c, n := 0, smallest
	for ; n <= linear; n += grain {
		s[c] = n
		c++
	}
	for n = linear; c < classes; c++ {
		n = min((n+n/8+grain-1)/grain*grain, MaxSize)
		s[c] = n
	}
	return s
}()

// Arena allocates blocks. Blocks of one size class share spans of 16 KiB or more. A freed block is
// reused for another of its class. A span without blocks is reused for any class, or its memory
// returns to the system.
//
// The zero value is empty. Not safe for concurrent use. Memory from an Arena is valid while the
// Arena is reachable.
type Arena struct {
	chunks []*[chunkSize]byte
	pieces offheap.Pieces[[chunkSize]byte]
	units  []unit
	vacant vacancies
	open   [classes]uint32 // for each class, the first of its spans with a free block
	loose  [looseClasses]loose
	used   int64 // bytes of blocks in use, rounded up to their classes
	carved int64 // bytes of spans that have ever been in blocks
	sortAt int64 // value of used at which all loose blocks are returned
}

func class(n int) int {
	if n <= linear {
		return (n - 1) / grain
	}
	lo, hi := linear/grain, len(sizes)-1
	for lo < hi {
		if mid := (lo + hi) / 2; sizes[mid] < n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Alloc returns a block of n bytes, 1 to MaxSize, with arbitrary content.
func (a *Arena) Alloc(n int) (Ref, []byte) {
	if n < 1 || n > MaxSize {
		panic(fmt.Sprintf("arena: block of %d bytes", n))
	}
	c := class(n)
	a.used += int64(sizes[c])
	if c < looseClasses && a.loose[c].n > 0 {
		l := &a.loose[c]
		r := l.first
		b := a.Bytes(r)
		l.first = link(b)
		l.n--
		return r, b[:n]
	}
	r := a.carve(c)
	return r, a.Bytes(r)[:n]
}

// Free frees block r, which was allocated with n bytes.
func (a *Arena) Free(r Ref, n int) {
	c := class(n)
	a.used -= int64(sizes[c])
	if c >= looseClasses {
		a.giveBack(r, c)
		return
	}
	l := &a.loose[c]
	if l.n == maxLoose {
		a.sort(c, maxLoose/2)
	}
	setLink(a.Bytes(r), l.first)
	l.first = r
	l.n++
	if a.used <= a.sortAt {
		a.sortAll()
	}
}

// Bytes returns the memory from the start of block r to the end of its chunk.
func (a *Arena) Bytes(r Ref) []byte {
	return a.chunks[r/chunkRefs][int(r%chunkRefs)*grain:]
}

// Prefetch begins to fetch the start of block r into the processor's cache. It does not wait for the
// memory, so call it well before the block is read; a read too early would wait as ever. It has no
// other effect, and none on processors for which it was not written.
func (a *Arena) Prefetch(r Ref) { prefetch(&a.Bytes(r)[0]) }

// Used returns the bytes of the blocks in use.
func (a *Arena) Used() int64 { return a.used }

// Size returns the memory, in bytes, that the arena holds: the used parts of spans, and vacant
// memory that was not returned to the system.
func (a *Arena) Size() int64 {
	return a.carved + int64(a.vacant.units[warm])*unitSize + int64(cap(a.units))*unitBytes
}

// Cost returns the bytes that a block of n bytes takes.
func Cost(n int) int64 { return int64(sizes[class(n)]) }

// Epoch returns a number that changes when the memory at r is used for something else. While it
// stays the same, a block of the same class, possibly freed, begins where one began before.
func (a *Arena) Epoch(r Ref) uint32 { return a.units[r/unitRefs].epoch }
