package hostorder

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/seed-7440039f/frontier/internal/offheap"
)

const (
	sizeSteps   = 64                       // classes per doubling
	sizeClasses = sizeSteps * (31 - 6 + 1) // of 31 bits, the first 6 in one go
	sizePage    = 1024
)

// Sizes lists the hosts with URLs by size class: exact up to 64 URLs, and beyond in steps of at
// most a 64th. It contains the hosts up to a number that grows until it contains all. Before the
// first Grow, a caller that checks Asked pays only for that.
//
// The zero value has no lists.
type Sizes struct {
	upTo    uint32
	first   []uint32 // host by class
	filled  [(sizeClasses + 63) / 64]uint64
	pages   []*[sizePage]sizeLink // by host number
	regions offheap.Pieces[[sizePage]sizeLink]
}

// sizeLink is a host's position in the list of its class. Class 0 has no list.
type sizeLink struct{ prev, next, class uint32 }

// sizeClass is the class of n URLs: itself up to 64, and 0 for none.
func sizeClass(n int32) uint32 {
	if n < sizeSteps {
		return uint32(n)
	}
	e := bits.Len32(uint32(n)) - 7 // its 7 highest bits count
	return uint32(e)*sizeSteps + uint32(n)>>e
}

// Asked reports whether there are lists.
func (s *Sizes) Asked() bool { return s.first != nil }

// Size returns the memory of the lists in bytes.
func (s *Sizes) Size() int64 {
	return int64(len(s.pages))*(sizePage*12+8) + int64(cap(s.first))*4
}

func (s *Sizes) at(id uint32) *sizeLink { return &s.pages[id/sizePage][id%sizePage] }

// Changed records that a host now has n URLs.
func (s *Sizes) Changed(id uint32, n int32) {
	if id > s.upTo {
		return
	}
	for int(id/sizePage) >= len(s.pages) {
		s.pages = append(s.pages, s.regions.Next())
	}
	x, class := s.at(id), sizeClass(n)
	if x.class == class {
		return
	}
	s.unlink(x)
	*x = sizeLink{class: class}
	if class == 0 {
		return
	}
	if x.next = s.first[class]; x.next != 0 {
		s.at(x.next).prev = id
	}
	s.first[class] = id
	s.filled[class/64] |= 1 << (class % 64)
}

func (s *Sizes) unlink(x *sizeLink) {
	if x.class == 0 {
		return
	}
	if x.next != 0 {
		s.at(x.next).prev = x.prev
	}
	if x.prev != 0 {
		s.at(x.prev).next = x.next
		return
	}
	if s.first[x.class] = x.next; x.next == 0 {
		s.filled[x.class/64] &^= 1 << (x.class % 64)
	}
}

// below returns the largest class with hosts that is less than class, or 0.
func (s *Sizes) below(class int) int {
	for w := (class - 1) / 64; w >= 0; w-- {
		have := s.filled[w]
		if w == (class-1)/64 {
			have &= math.MaxUint64 >> (63 - (class-1)%64)
		}
		if have != 0 {
			return w*64 + bits.Len64(have) - 1
		}
	}
	return 0
}

// Grow adds some more of the hosts up to number top, and reports whether all are in.
func (s *Sizes) Grow(n int, top uint32, waiting func(id uint32) int32) (complete bool) {
	if s.first == nil {
		s.first = make([]uint32, sizeClasses)
	}
	for ; n > 0 && s.upTo < top; n-- {
		s.upTo++
		s.Changed(s.upTo, waiting(s.upTo))
	}
	if s.upTo >= top {
		s.upTo = math.MaxUint32
	}
	return s.upTo == math.MaxUint32
}

// Sized is a host and how many URLs wait for it.
type Sized struct {
	ID      uint32
	Waiting int32
}

// Largest returns up to n hosts with the most URLs, the largest first. It examines only the classes
// with the largest, and at most looks hosts.
func (s *Sizes) Largest(n, looks int, waiting func(id uint32) int32) []Sized {
	var found []Sized
	for class := s.below(sizeClasses); class > 0 && len(found) < n; class = s.below(class) {
		for id := s.first[class]; id != 0 && len(found) < looks; id = s.at(id).next {
			if found = append(found, Sized{id, waiting(id)}); class < sizeSteps && len(found) == n {
				break // all of the class are alike
			}
		}
	}
	slices.SortFunc(found, func(a, b Sized) int { return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.ID, b.ID)) })
	return found[:min(n, len(found))]
}

// Check calls bad unless each host up to number top is in the list of its size class, and in no other.
func (s *Sizes) Check(bad func(string, ...any), top uint32, waiting func(id uint32) int32) {
	if !s.Asked() {
		return
	}
	listed := 0
	for class := range uint32(sizeClasses) {
		prev := uint32(0)
		for id := s.first[class]; id != 0; id = s.at(id).next {
			x, urls := s.at(id), waiting(id)
			if x.class != class || x.prev != prev || sizeClass(urls) != class || urls == 0 {
				bad("host %d with %d URLs is in size class %d, behind %d", id, urls, class, prev)
				return
			}
			prev, listed = id, listed+1
		}
		if (s.filled[class/64]>>(class%64)&1 == 1) != (s.first[class] != 0) {
			bad("size class %d is filled: %v", class, s.first[class] == 0)
		}
	}
	n := 0
	for id := uint32(1); id <= min(top, s.upTo); id++ {
		if waiting(id) > 0 {
			n++
		}
	}
	if n != listed {
		bad("%d hosts are listed by size, want %d", listed, n)
	}
}
