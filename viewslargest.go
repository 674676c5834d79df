// This file finds the hosts with the most URLs without looking at the others.
//
// Hosts with URLs are listed by size class: exactly up to 64 URLs, and beyond in
// steps of at most a 64th. As with the order by domain, the lists are made, in steps, when
// they are first asked for, and kept from then on; who never asks pays one
// comparison for each URL that comes or goes.

package frontier

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/seed-7440039f/frontier/internal/offheap"
)

const (
	sizeSteps       = 64                       // classes per doubling
	sizeClasses     = sizeSteps * (31 - 6 + 1) // of 31 bits, the first 6 in one go
	sizeHostsAtOnce = 2048                     // hosts that are listed under one lock
	sizePage        = 1024
)

// hostSizes are the lists, of the core's hosts up to a number that grows until all
// are in.
//
// The zero value has no lists: nobody has asked.
type hostSizes struct {
	upTo    uint32
	first   []uint32 // host by class
	filled  [(sizeClasses + 63) / 64]uint64
	pages   []*[sizePage]sizeLink // by host number
	regions offheap.Pieces[[sizePage]sizeLink]
}

// sizeLink is a host's place in the list of its class. Class 0 has no list.
type sizeLink struct{ prev, next, class uint32 }

// sizeClass is the class of n URLs: itself up to 64, and 0 for none.
func sizeClass(n int32) uint32 {
	if n < sizeSteps {
		return uint32(n)
	}
	e := bits.Len32(uint32(n)) - 7 // its 7 highest bits count
	return uint32(e)*sizeSteps + uint32(n)>>e
}

func (s *hostSizes) asked() bool { return s.first != nil }

// size is how many bytes the lists take.
func (s *hostSizes) size() int64 {
	return int64(len(s.pages))*(sizePage*12+8) + int64(cap(s.first))*4
}

func (s *hostSizes) at(id uint32) *sizeLink { return &s.pages[id/sizePage][id%sizePage] }

// changed notes that a host has now n URLs.
func (s *hostSizes) changed(id uint32, n int32) {
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

func (s *hostSizes) unlink(x *sizeLink) {
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
func (s *hostSizes) below(class int) int {
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

// sizeSome lists some more hosts, and reports whether all are.
func (c *core) sizeSome(n int) bool {
	s := &c.sizes
	if s.first == nil {
		s.first = make([]uint32, sizeClasses)
	}
	for ; n > 0 && s.upTo < c.hosts.top; n-- {
		s.upTo++
		s.changed(s.upTo, c.hosts.at(s.upTo).waiting)
	}
	if s.upTo >= c.hosts.top {
		s.upTo = math.MaxUint32
	}
	return s.upTo == math.MaxUint32
}

// largest returns up to n hosts with the most URLs, and how many these are in at.
func (c *core) largest(n int) []timeItem {
	s := &c.sizes
	var found []timeItem
	for class := s.below(sizeClasses); class > 0 && len(found) < n; class = s.below(class) {
		for id := s.first[class]; id != 0 && len(found) < 4*viewAtMost; id = s.at(id).next {
			if found = append(found, timeItem{at: int64(c.hosts.at(id).waiting), id: id}); class < sizeSteps && len(found) == n {
				break // all of the class are alike
			}
		}
	}
	slices.SortFunc(found, func(a, b timeItem) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.id, b.id)) })
	return found[:min(n, len(found))]
}

// Largest tells up to n hosts of which the most URLs wait, the largest first. If
// there are a thousand whose sizes differ by less than a 64th, any of them may stand
// for another. n is at most 256; more counts as 256. It costs O(n log n), but
// for the first call, which looks at all hosts in short steps; from then on each
// host costs 12 more bytes.
func (f *Frontier) Largest(n int) []HostInfo {
	n = min(n, viewAtMost)
	if n <= 0 {
		return nil
	}
	for done := false; !done; {
		f.mu.Lock()
		done = f.core.sizeSome(sizeHostsAtOnce)
		f.mu.Unlock()
	}
	f.lookLocked()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	c := f.core
	found := c.largest(n)
	names := make([]string, len(found))
	for i, it := range found {
		names[i] = string(c.name(c.hosts.at(it.id)))
	}
	f.mu.Unlock()
	infos := f.infosOf(names)
	slices.SortStableFunc(infos, func(a, b HostInfo) int { return cmp.Compare(b.Waiting, a.Waiting) })
	return infos
}
