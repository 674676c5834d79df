// Package arena keeps many small byte blocks in a few large pieces of memory
// without pointers, so that ten million of them cost the garbage collector
// nothing.
package arena

import (
	"encoding/binary"
	"fmt"
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
)

// sizes are the block sizes, ascending; a block is rounded up to one of them.
var sizes = func() []int {
	var s []int
	for n := smallest; n <= linear; n += grain {
		s = append(s, n)
	}
	for n := linear; n < MaxSize; {
		n = min((n+n/8+grain-1)/grain*grain, MaxSize)
		s = append(s, n)
	}
	return s
}()

// Arena hands out blocks. A freed block is reused for one of the same size
// class; memory returns to the system only when the last block is freed.
//
// The zero value is empty. Not safe for concurrent use.
type Arena struct {
	chunks [][]byte
	next   int   // first free byte of the last chunk
	free   []Ref // per class, the first of a list linked through the blocks
	used   int64 // bytes of blocks in use, rounded up to their classes
	epoch  uint64
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
	if a.free == nil {
		a.free = make([]Ref, len(sizes))
	}
	a.used += int64(sizes[c])
	if r := a.free[c]; r != 0 {
		b := a.Bytes(r)
		a.free[c] = Ref(binary.LittleEndian.Uint32(b))
		return r, b[:n]
	}
	if len(a.chunks) == 0 || a.next+sizes[c] > chunkSize {
		if len(a.chunks) > 0 {
			a.donate()
		}
		if len(a.chunks) == maxChunks {
			panic("arena: full") // its user bounds it well below
		}
		a.chunks = append(a.chunks, make([]byte, chunkSize))
		a.next = 0
		if len(a.chunks) == 1 {
			a.next = grain // Ref 0 names none
		}
	}
	r := Ref((len(a.chunks)-1)*chunkRefs + a.next/grain)
	a.next += sizes[c]
	return r, a.Bytes(r)[:n]
}

// donate gives the unused end of the last chunk to the free lists.
func (a *Arena) donate() {
	for rest := chunkSize - a.next; rest >= smallest; rest = chunkSize - a.next {
		c := class(min(rest, linear))
		r := Ref((len(a.chunks)-1)*chunkRefs + a.next/grain)
		binary.LittleEndian.PutUint32(a.Bytes(r), uint32(a.free[c]))
		a.free[c] = r
		a.next += sizes[c]
	}
}

// Bytes returns the memory from the start of block r to the end of its chunk.
func (a *Arena) Bytes(r Ref) []byte {
	return a.chunks[r/chunkRefs][int(r%chunkRefs)*grain:]
}

// Free takes back block r, which was allocated with n bytes.
func (a *Arena) Free(r Ref, n int) {
	c := class(n)
	a.used -= int64(sizes[c])
	if a.used == 0 {
		*a = Arena{epoch: a.epoch + 1}
		return
	}
	binary.LittleEndian.PutUint32(a.Bytes(r), uint32(a.free[c]))
	a.free[c] = r
}

// Used returns the bytes of the blocks in use.
func (a *Arena) Used() int64 { return a.used }

// Size returns the bytes that the arena holds of the system's memory.
func (a *Arena) Size() int64 { return int64(len(a.chunks)) * chunkSize }

// Cost returns the bytes that a block of n bytes takes.
func Cost(n int) int64 { return int64(sizes[class(n)]) }

// Epoch returns a number that changes when memory has returned to the system:
// within one epoch the start of a block stays the start of a block of its class.
func (a *Arena) Epoch() uint64 { return a.epoch }

// Holds reports whether r lies within the arena's memory.
func (a *Arena) Holds(r Ref) bool { return int(r/chunkRefs) < len(a.chunks) }
