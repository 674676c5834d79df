// Package bitset holds sets of small numbers and finds the lowest member.
package bitset

import "math/bits"

// Set is a bitmap of numbers from 0 on.
//
// The zero value is empty. Not safe for concurrent use.
type Set struct {
	words []uint64
	from  int // words before it are 0
	n     int
}

// Add adds k, which is not a member.
func (s *Set) Add(k int) {
	for k/64 >= len(s.words) {
		s.words = append(s.words, 0)
	}
	s.words[k/64] |= 1 << (k % 64)
	s.from = min(s.from, k/64)
	s.n++
}

// Remove removes k, which is a member.
func (s *Set) Remove(k int) {
	s.words[k/64] &^= 1 << (k % 64)
	s.n--
}

// Has reports whether k is a member.
func (s *Set) Has(k int) bool {
	return k/64 < len(s.words) && s.words[k/64]>>(k%64)&1 != 0
}

// First returns the lowest member, or -1.
func (s *Set) First() int {
	for ; s.from < len(s.words); s.from++ {
		if w := s.words[s.from]; w != 0 {
			return s.from*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// Len returns the number of members.
func (s *Set) Len() int { return s.n }
