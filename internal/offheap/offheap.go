// Package offheap stores large tables of pointer-free values outside the Go heap. It owns their memory.
//
// In the Go heap, the collector lets a process with a table of 1 GB grow to 2 GB, and a table that
// is replaced by a larger one stays until the next collection. Here memory counts once, and is
// returned when its owner frees it, at the latest when the owner is collected. Memory that was
// never written to is not allocated.
//
// The memory belongs to its Array or Pieces: code that holds a pointer or slice into it must keep
// that object reachable, too. Under the race detector, which watches only the Go heap, and on
// systems without support, all memory is in the Go heap.
package offheap

import (
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"
	"unsafe"
)

const (
	smallest = 16 << 10 // bytes from which an array gets separate pages
	maxPage  = 64 << 10 // bytes of a page on any system
)

// memory is a piece of address space that returns to the system when it is
// freed or collected, whichever is first.
type memory struct {
	bytes   []byte
	cleanup runtime.Cleanup
}

// mapped is the address space, in bytes, of all arrays and pieces of the process outside the Go heap.
var mapped atomic.Int64

// newMemory returns n zeroed bytes, or nil if the system has none.
func newMemory(n int) *memory {
	b := sysMap(n)
	if b == nil {
		return nil
	}
	mapped.Add(int64(n))
	return own(b)
}

func own(b []byte) *memory {
	m := &memory{bytes: b}
	m.cleanup = runtime.AddCleanup(m, unmap, b)
	return m
}

func unmap(b []byte) {
	mapped.Add(-int64(len(b)))
	sysUnmap(b)
}

func (m *memory) free() {
	m.cleanup.Stop()
	unmap(m.bytes)
	m.bytes = nil
}

// resize returns memory with the same content at another place, or nil if the
// system cannot do it without copying; then m is unchanged.
func (m *memory) resize(n int) *memory {
	b := sysResize(m.bytes, n)
	if b == nil {
		return nil
	}
	m.cleanup.Stop()
	mapped.Add(int64(n - len(m.bytes)))
	m.bytes = nil
	return own(b)
}

// Array is a table of T, which must not contain pointers.
//
// The zero value is empty. Not safe for concurrent use.
type Array[T any] struct {
	Items []T // valid until the next Resize or Free
	mem   *memory
}

// Make returns an array of n zero items.
func Make[T any](n int) Array[T] {
	checkType(reflect.TypeFor[T]())
	size := n * sizeOf[T]()
	if size >= smallest {
		if m := newMemory(size); m != nil {
			return Array[T]{view[T](m.bytes, n), m}
		}
	}
	return Array[T]{Items: make([]T, n)}
}

// Resize changes the length of the array to n items. New items are zero. The others keep their
// values and, where the system supports it, are not copied.
func (a *Array[T]) Resize(n int) {
	size := n * sizeOf[T]()
	if a.mem != nil && size >= smallest {
		if n < len(a.Items) { // the rest of the last page stays
			clear(a.Items[n:min(len(a.Items), n+maxPage/sizeOf[T]()+1)])
		}
		if m := a.mem.resize(size); m != nil {
			a.Items, a.mem = view[T](m.bytes, n), m
			return
		}
	}
	b := Make[T](n)
	copy(b.Items, a.Items)
	a.Free()
	*a = b
}

// Free returns the array's memory. Nothing may point into it any more.
func (a *Array[T]) Free() {
	if a.mem != nil {
		a.mem.free()
	}
	*a = Array[T]{}
}

// Size returns the memory of the array in bytes, assuming that all of it was written to.
func (a *Array[T]) Size() int64 { return int64(len(a.Items) * sizeOf[T]()) }

// List is a table of T, without pointers, that grows and shrinks at its end.
//
// The zero value is empty. Not safe for concurrent use.
type List[T any] struct {
	Items []T // valid until the next Append, Truncate or Free
	room  Array[T]
}

// Append adds x at the end.
func (l *List[T]) Append(x T) {
	n := len(l.Items)
	if n == len(l.room.Items) {
		l.room.Resize(max(16, n+n/4, min(2*n, 1024)))
	}
	l.Items = l.room.Items[:n+1]
	l.Items[n] = x
}

// Truncate leaves the first n items.
func (l *List[T]) Truncate(n int) {
	l.Items = l.Items[:n]
	if room := len(l.room.Items); room > 1024 && n < room/2 {
		l.room.Resize(room * 5 / 8)
		l.Items = l.room.Items[:n]
	}
}

// Free empties the list and returns its memory. Nothing may point into it.
func (l *List[T]) Free() {
	l.room.Free()
	l.Items = nil
}

// Size returns the maximum memory of the list in bytes.
func (l *List[T]) Size() int64 { return l.room.Size() }

func sizeOf[T any]() int {
	var t *T
	return int(unsafe.Sizeof(*t)) // of the type: nothing is read, and no T is made
}

func view[T any](b []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// checkType panics if values of type t contain pointers: the collector would not see them.
func checkType(t reflect.Type) {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
	case reflect.Array:
		checkType(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			checkType(t.Field(i).Type)
		}
	default:
		panic(fmt.Sprintf("offheap: %v may hold pointers", t))
	}
}
