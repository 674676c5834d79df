// This file allocates equal pieces that do not move, for tables that grow without being copied.

package offheap

import (
	"reflect"
	"unsafe"
)

// maxRegion is how many bytes of address space are taken at once at most: few
// enough to be wasted, and enough that 32 GB are a few hundred mappings.
const maxRegion = 64 << 20

// Pieces allocates zero values of T, which must not contain pointers, from regions that double in
// size. They are freed together with the Pieces.
//
// The zero value is empty. Not safe for concurrent use.
type Pieces[T any] struct {
	regions []*memory
	rest    []byte // of the last region
	total   int
}

// Next returns another piece.
func (p *Pieces[T]) Next() *T {
	size := sizeOf[T]()
	if len(p.rest) < size {
		checkType(reflect.TypeFor[T]())
		n := max(size, min(p.total, maxRegion)/size*size)
		m := newMemory(n)
		if m == nil {
			return new(T)
		}
		p.regions = append(p.regions, m)
		p.rest = m.bytes
		p.total += n
	}
	t := (*T)(unsafe.Pointer(unsafe.SliceData(p.rest)))
	p.rest = p.rest[size:]
	return t
}

// Free returns the memory of all pieces. Nothing may point there any more.
func (p *Pieces[T]) Free() {
	for _, m := range p.regions {
		m.free()
	}
	*p = Pieces[T]{}
}

// Discard zeroes items of a piece and returns the whole pages among them to the system, until they
// are written to again.
func Discard[T any](items []T) {
	sysDiscard(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(items))), len(items)*sizeOf[T]()))
}
