// Package hostorder orders hosts, identified by numbers: by domain, for iterating over the hosts of
// a scope, and by the number of their waiting URLs, for finding the largest. It owns these orders.
// Maintaining an order costs memory and time for each new host; so it is built when it is first
// needed, in steps, and maintained from then on. It has no lock: callers hold the frontier's.
package hostorder

import (
	"bytes"
	"math"
	"unsafe"

	"github.com/google/btree"
	"github.com/seed-7440039f/frontier/internal/hostkey"
)

// Set is a set of hosts in domain order: by their keys with the labels reversed, so that the hosts
// of a domain are adjacent.
//
// The zero value with Name set is empty.
type Set struct {
	Name  func(id uint32) []byte // the key of a host that is in the set, or shall be
	tree  *btree.BTreeG[uint32]  // nil as long as there was none
	pivot []byte                 // reversed name that number 0 stands for
}

// Add adds a host.
func (s *Set) Add(id uint32) {
	if s.tree == nil {
		s.tree = btree.NewG(64, s.before)
	}
	s.tree.ReplaceOrInsert(id)
}

// Remove removes a host. Its name must still be known.
func (s *Set) Remove(id uint32) {
	if s.tree != nil {
		s.tree.Delete(id)
	}
}

// Len is how many hosts are in.
func (s *Set) Len() int {
	if s.tree == nil {
		return 0
	}
	return s.tree.Len()
}

// Size returns the approximate memory of the set in bytes: its nodes are three quarters full.
func (s *Set) Size() int64 { return int64(s.Len()) * 6 }

// Key appends the reversed name of a host.
func (s *Set) Key(dst []byte, id uint32) []byte {
	if id == 0 {
		return append(dst, s.pivot...)
	}
	return hostkey.AppendReversed(dst, s.Name(id))
}

func (s *Set) before(a, b uint32) bool {
	var x, y [256]byte
	return bytes.Compare(s.Key(x[:0], a), s.Key(y[:0], b)) < 0
}

// After appends up to n hosts whose reversed keys begin with prefix and come after key.
func (s *Set) After(dst []uint32, key, prefix string, n int) []uint32 {
	if s.tree == nil || n <= 0 {
		return dst
	}
	from := max(key, prefix)
	s.pivot = append(s.pivot[:0], from...)
	s.tree.AscendGreaterOrEqual(0, func(id uint32) bool {
		var buf [256]byte
		switch k := s.Key(buf[:0], id); {
		case n == 0 || !bytes.HasPrefix(k, unsafe.Slice(unsafe.StringData(prefix), len(prefix))):
			return false
		case string(k) > key:
			dst = append(dst, id)
			n--
		}
		return true
	})
	return dst
}

// Check calls bad with each host that is wrongly in the set, or out of order.
func (s *Set) Check(bad func(string, ...any), in func(id uint32) bool) {
	if s.tree == nil {
		return
	}
	n, last := 0, ""
	s.tree.Ascend(func(id uint32) bool {
		key := string(s.Key(nil, id))
		if !in(id) || n > 0 && key <= last {
			bad("F2: host %d, %q, is out of order behind %q", id, key, last)
		}
		last = key
		n++
		return true
	})
}

// Order is the set of all hosts in memory, built on first use. It contains the hosts up to a number
// that grows until it contains all.
type Order struct {
	Set
	begun bool
	upTo  uint32 // hosts up to this number are in
}

// Grow adds some more of the hosts up to number top, and reports whether all are in.
func (o *Order) Grow(n int, top uint32, present func(id uint32) bool) (complete bool) {
	o.begun = true
	for ; n > 0 && o.upTo < top; n-- {
		o.upTo++
		if present(o.upTo) {
			o.Add(o.upTo)
		}
	}
	if o.upTo >= top {
		o.upTo = math.MaxUint32
	}
	return o.upTo == math.MaxUint32
}

// Came notes that a host came into memory.
func (o *Order) Came(id uint32) {
	if o.begun && id <= o.upTo {
		o.Add(id)
	}
}

// Leaves notes that a host leaves. Its name must still be known.
func (o *Order) Leaves(id uint32) {
	if o.begun && id <= o.upTo {
		o.Remove(id)
	}
}

// Check is as for Set, and also checks that no host up to number top is missing.
func (o *Order) Check(bad func(string, ...any), top uint32, present func(id uint32) bool) {
	if !o.begun {
		return
	}
	o.Set.Check(bad, present)
	n := 0
	for id := uint32(1); id <= min(top, o.upTo); id++ {
		if present(id) {
			n++
		}
	}
	if o.Len() != n {
		bad("%d hosts are in order, want %d", o.Len(), n)
	}
}
