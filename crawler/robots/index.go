// This file searches a path quickly for many texts: a suffix automaton of the path (Blumer et al.
// 1985), and a wavelet matrix (Claude and Navarro 2012) for the first occurrence of a text from a
// given position on.

package robots

import (
	"math/bits"
	"strings"
)

// index takes time and memory proportional to the length of the path, times its logarithm for the
// matrix.
//
// A state stands for texts that end at the same positions of the path. A state's link leads to the
// longest suffix of its texts that ends at more positions. The links form a tree. The positions of a
// state are the positions of its subtree, and adjacent in the matrix.
type index struct {
	path   string
	states []suffixState
	edges  []suffixEdge
	root   [256]int32 // the edges of state 0; 0 if there is none
	rows   [][]int32  // for each bit, the highest first: how many of the first n positions have it clear
}

type suffixState struct {
	link   int32
	size   int32 // of its longest text
	first  int32 // the first place
	edges  int32 // head of a list, or -1
	lo, hi int32 // its places in the matrix
	clone  bool  // of another state, having no place that is not in its subtree
}

type suffixEdge struct {
	to, next int32
	char     byte
}

func newIndex(path string) *index {
	x := &index{path: path, states: make([]suffixState, 1, 2*len(path)+1), edges: make([]suffixEdge, 0, 3*len(path))}
	x.states[0] = suffixState{link: -1, edges: -1}
	last := int32(0)
	for i := range len(path) {
		last = x.extend(last, path[i])
	}
	x.arrange()
	return x
}

// edge returns the target of an edge, or nil.
func (x *index) edge(s int32, c byte) *int32 {
	if s == 0 {
		if x.root[c] == 0 {
			return nil
		}
		return &x.root[c]
	}
	for e := x.states[s].edges; e >= 0; e = x.edges[e].next {
		if x.edges[e].char == c {
			return &x.edges[e].to
		}
	}
	return nil
}

func (x *index) addEdge(s int32, c byte, to int32) {
	if s == 0 {
		x.root[c] = to
		return
	}
	x.edges = append(x.edges, suffixEdge{to: to, next: x.states[s].edges, char: c})
	x.states[s].edges = int32(len(x.edges) - 1)
}

// extend adds a character at the end of the path, whose state was last.
func (x *index) extend(last int32, c byte) int32 {
	size := x.states[last].size + 1
	s := int32(len(x.states))
	x.states = append(x.states, suffixState{size: size, first: size, edges: -1})
	p := last
	for ; p >= 0 && x.edge(p, c) == nil; p = x.states[p].link {
		x.addEdge(p, c, s)
	}
	if p < 0 {
		return s
	}
	q := *x.edge(p, c)
	if x.states[q].size == x.states[p].size+1 {
		x.states[s].link = q
		return s
	}
	clone := int32(len(x.states))
	x.states = append(x.states, suffixState{
		link: x.states[q].link, size: x.states[p].size + 1, first: x.states[q].first, edges: -1, clone: true,
	})
	for e := x.states[q].edges; e >= 0; e = x.edges[e].next {
		x.addEdge(clone, x.edges[e].char, x.edges[e].to)
	}
	for ; p >= 0; p = x.states[p].link {
		to := x.edge(p, c)
		if to == nil || *to != q {
			break
		}
		*to = clone
	}
	x.states[q].link, x.states[s].link = clone, clone
	return s
}

// arrange lays out the places of all states and builds the matrix.
func (x *index) arrange() {
	n := len(x.path)
	starts := make([]int32, n+2) // by size
	for i := range x.states {
		starts[x.states[i].size+1]++
	}
	for i := range n + 1 {
		starts[i+1] += starts[i]
	}
	order := make([]int32, len(x.states)) // shorter ones first, so parents before children
	for i := range x.states {
		size := x.states[i].size
		order[starts[size]] = int32(i)
		starts[size]++
	}
	count := make([]int32, len(x.states)) // of places
	for i := len(order) - 1; i > 0; i-- {
		s := &x.states[order[i]]
		if !s.clone {
			count[order[i]]++
		}
		count[s.link] += count[order[i]]
	}
	places := make([]int32, n)
	for _, i := range order[1:] {
		s := &x.states[i]
		up := &x.states[s.link] // until all are laid out, hi is where the next child goes
		s.lo = up.hi
		up.hi += count[i]
		s.hi = s.lo
		if !s.clone {
			places[s.lo] = s.first
			s.hi++
		}
	}
	other := make([]int32, n)
	levels := bits.Len(uint(n))
	x.rows = make([][]int32, levels)
	for l := range x.rows {
		row := make([]int32, n+1)
		bit := int32(1) << (levels - 1 - l)
		for i, p := range places {
			row[i+1] = row[i]
			if p&bit == 0 {
				row[i+1]++
			}
		}
		zero, one := int32(0), row[n]
		for _, p := range places {
			if p&bit == 0 {
				other[zero] = p
				zero++
			} else {
				other[one] = p
				one++
			}
		}
		places, other = other, places
		x.rows[l] = row
	}
}

// after returns the end of the first occurrence of text in the path that begins at from or later,
// or -1.
func (x *index) after(from int, text string) int {
	if strings.HasPrefix(x.path[from:], text) {
		return from + len(text)
	}
	s := int32(0)
	for i := range len(text) {
		to := x.edge(s, text[i])
		if to == nil {
			return -1
		}
		s = *to
	}
	least := int32(from + len(text))
	if first := x.states[s].first; first >= least {
		return int(first)
	}
	return x.place(x.states[s].lo, x.states[s].hi, least)
}

// place returns the least place of some that is not before least, or -1.
func (x *index) place(lo, hi, least int32) int {
	if int(least) > len(x.path) {
		return -1
	}
	n := len(x.path)
	nth, all := int32(0), hi-lo // how many places are before least
	a, b := lo, hi
	for l, row := range x.rows {
		if a0, b0 := row[a], row[b]; least>>(len(x.rows)-1-l)&1 == 0 {
			a, b = a0, b0
		} else {
			nth += b0 - a0
			a, b = row[n]+a-a0, row[n]+b-b0
		}
	}
	if nth == all {
		return -1
	}
	place := 0
	for _, row := range x.rows {
		lo0, hi0 := row[lo], row[hi]
		place <<= 1
		if nth < hi0-lo0 {
			lo, hi = lo0, hi0
		} else {
			nth -= hi0 - lo0
			place |= 1
			lo, hi = row[n]+lo-lo0, row[n]+hi-hi0
		}
	}
	return place
}
