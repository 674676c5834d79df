// This file groups the blocks of a class into spans, and decides which memory returns to the system.

package arena

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/bitset"
	"github.com/seed-7440039f/frontier/internal/offheap"
)

const (
	unitSize   = 16 << 10 // bytes; a span has 1 to 32 units of the same chunk
	unitRefs   = unitSize / grain
	chunkUnits = chunkSize / unitSize // 64: a chunk's units fit a word
	maxSpan    = 32
	unitBytes  = int64(unsafe.Sizeof(unit{}))

	noBlock = 1<<16 - 1 // no block begins there, in grains from a span's start
)

// spans are the numbers of units in a span of each class: a power of two, chosen so that at most a
// 16th at its end is wasted, if possible.
var spans = func() (s [classes]int) {
	for c, size := range sizes {
		best := 1.0
		for k := 1; k <= maxSpan && best > 1.0/16; k *= 2 {
			if wasted := float64(k*unitSize%size) / float64(k*unitSize); k*unitSize >= size && wasted < best {
				s[c], best = k, wasted
			}
		}
	}
	return s
}()

// unit is the state of 16 KiB. In a span, only the first unit is used.
type unit struct {
	next, prev uint32 // in the list of open spans of its class; unit 0 belongs to no span
	epoch      uint32 // how often it became vacant
	carved     uint32 // bytes from the span's start that have been in blocks
	blocks     uint16 // in use
	free       uint16 // position of the first free block, which holds the position of the next one; or noBlock
}

// full reports whether a span of class c has no free block.
func (s *unit) full(c int) bool {
	return s.free == noBlock && int(s.carved)+sizes[c] > spans[c]*unitSize
}

// loose are freed blocks of a class that their spans still count as used: most are soon reused, and
// freeing them one by one would cost more.
type loose struct {
	first Ref // freed last
	n     int32
}

const (
	maxLoose     = 16
	looseClasses = linear / grain // larger blocks are never loose
)

// sort returns the loose blocks of class c to their spans, except the ones freed last.
func (a *Arena) sort(c int, keep int32) {
	l := &a.loose[c]
	if l.n <= keep {
		return
	}
	rest := l.first
	if keep == 0 {
		l.first = 0
	} else {
		last := a.Bytes(rest)
		for range keep - 1 {
			last = a.Bytes(link(last))
		}
		rest = link(last)
		setLink(last, 0)
	}
	l.n = keep
	for rest != 0 {
		r := rest
		rest = link(a.Bytes(r))
		a.giveBack(r, c)
	}
}

// link is the block after a loose one.
func link(b []byte) Ref       { return Ref(binary.LittleEndian.Uint32(b)) }
func setLink(b []byte, r Ref) { binary.LittleEndian.PutUint32(b, uint32(r)) }

// sortAll leaves no block loose, so that none keeps a span.
func (a *Arena) sortAll() {
	for c := range a.loose {
		if a.loose[c].n > 0 {
			a.sort(c, 0)
		}
	}
	a.sortAt = a.sortBelow()
}

// sortBelow returns the value of used at which all loose blocks are returned.
func (a *Arena) sortBelow() int64 { return a.used - a.used/16 - 4096 }

// carve allocates a block of class c in a span.
func (a *Arena) carve(c int) Ref {
	a.sortAt = max(a.sortAt, a.sortBelow())
	u := a.open[c]
	if u == 0 {
		u = a.addSpan(c)
	}
	s := &a.units[u]
	r := Ref(u * unitRefs)
	if s.free != noBlock {
		r += Ref(s.free)
		s.free = binary.LittleEndian.Uint16(a.Bytes(r))
	} else {
		r += Ref(s.carved / grain)
		s.carved += uint32(sizes[c])
		a.carved += int64(sizes[c])
	}
	s.blocks++
	if s.full(c) {
		a.shut(u, c)
	}
	return r
}

// giveBack returns block r of class c to its span.
func (a *Arena) giveBack(r Ref, c int) {
	u := uint32(r) / unitRefs &^ uint32(spans[c]-1)
	s := &a.units[u]
	wasFull := s.full(c)
	if s.blocks--; s.blocks == 0 {
		if !wasFull {
			a.shut(u, c)
		}
		a.removeSpan(u, c)
		return
	}
	binary.LittleEndian.PutUint16(a.Bytes(r), s.free)
	s.free = uint16(uint32(r) - u*unitRefs)
	if wasFull {
		a.reopen(u, c)
	}
}

// addSpan makes an open span of class c.
func (a *Arena) addSpan(c int) uint32 {
	u := a.vacant.take(spans[c])
	if u == 0 {
		a.addChunk()
		u = a.vacant.take(spans[c])
	}
	s := &a.units[u]
	s.carved, s.blocks, s.free = 0, 0, noBlock
	a.reopen(u, c)
	return u
}

func (a *Arena) addChunk() {
	n := len(a.chunks)
	if n == maxChunks {
		panic("arena: full") // its user bounds it well below
	}
	a.chunks = append(a.chunks, a.pieces.Next())
	a.units = append(a.units, make([]unit, chunkUnits)...)
	a.vacant.addChunk(n)
}

// removeSpan makes the units of a span vacant. Its memory returns to the system,
// unless the next spans will want it.
func (a *Arena) removeSpan(u uint32, c int) {
	k := spans[c]
	a.carved -= int64(a.units[u].carved)
	for i := range k {
		a.units[int(u)+i].epoch++
	}
	if a.vacant.units[warm]+k <= 8+(len(a.units)-a.vacant.units[cold])/32 {
		a.vacant.put(u, k, warm)
		return
	}
	at := int(u) % chunkUnits * unitSize
	offheap.Discard(a.chunks[u/chunkUnits][at : at+k*unitSize])
	a.vacant.put(u, k, cold)
}

// reopen makes a span the first that blocks of class c are taken from.
func (a *Arena) reopen(u uint32, c int) {
	s := &a.units[u]
	s.prev, s.next = 0, a.open[c]
	if s.next != 0 {
		a.units[s.next].prev = u
	}
	a.open[c] = u
}

// shut removes a span from the list of its class.
func (a *Arena) shut(u uint32, c int) {
	s := &a.units[u]
	if s.prev != 0 {
		a.units[s.prev].next = s.next
	} else {
		a.open[c] = s.next
	}
	if s.next != 0 {
		a.units[s.next].prev = s.prev
	}
}

// A vacant unit is warm while it has memory, and cold otherwise.
const (
	warm = iota
	cold
)

// vacancies are the units that are in no span.
type vacancies struct {
	masks  [2][]uint64   // warm and cold: for each chunk, the set of its units
	chunks [2]bitset.Set // chunks whose masks are not 0
	units  [2]int        // how many there are
}

// addChunk adds the units of a new chunk. The very first unit is never used, since Ref 0 names no
// block.
func (v *vacancies) addChunk(n int) {
	v.masks[warm], v.masks[cold] = append(v.masks[warm], 0), append(v.masks[cold], 0)
	v.put(uint32(n*chunkUnits), chunkUnits, cold)
	if n == 0 {
		v.drop(0, 1, cold)
		v.units[cold]++ // it has no memory
	}
}

// take chooses k units for a span, and returns the first. It prefers units with memory, and low
// ones. It returns 0 if no chunk has enough.
func (v *vacancies) take(k int) uint32 {
	if k == 1 {
		for _, heat := range [...]int{warm, cold} {
			if n := v.chunks[heat].First(); n >= 0 {
				i := bits.TrailingZeros64(v.masks[heat][n])
				v.drop(n, 1<<i, heat)
				return uint32(n*chunkUnits + i)
			}
		}
		return 0
	}
	for n := range v.masks[warm] {
		both := v.masks[warm][n] | v.masks[cold][n]
		if i := run(both, k); both != 0 && i >= 0 {
			mask := (uint64(1)<<k - 1) << i
			v.drop(n, mask&v.masks[warm][n], warm)
			v.drop(n, mask&v.masks[cold][n], cold)
			return uint32(n*chunkUnits + i)
		}
	}
	return 0
}

// run returns where k bits of a mask are set, at a multiple of k, or -1.
func run(mask uint64, k int) int {
	for s := 1; s < k; s *= 2 {
		mask &= mask >> s
	}
	for i := 0; i < chunkUnits; i += k {
		if mask>>i&1 != 0 {
			return i
		}
	}
	return -1
}

// put adds k units from u on.
func (v *vacancies) put(u uint32, k int, heat int) {
	n := int(u / chunkUnits)
	if v.masks[heat][n] == 0 {
		v.chunks[heat].Add(n)
	}
	v.masks[heat][n] |= (uint64(1)<<k - 1) << (u % chunkUnits)
	v.units[heat] += k
}

// drop removes units of a chunk.
func (v *vacancies) drop(n int, mask uint64, heat int) {
	if mask == 0 {
		return
	}
	if v.masks[heat][n] &^= mask; v.masks[heat][n] == 0 {
		v.chunks[heat].Remove(n)
	}
	v.units[heat] -= bits.OnesCount64(mask)
}
