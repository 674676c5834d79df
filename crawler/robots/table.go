// This file finds the deciding rule among many: a table of the rules' literal prefixes, in which
// one search finds all prefixes of a path.

package robots

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"
	"unsafe"
)

const nodeSize = int(unsafe.Sizeof(node{}))

// node is the literal prefix of one or more rules: what precedes the first wildcard. The nodes are
// sorted by it.
//
// The nodes that are prefixes of a path are the last node that is not after the path, or its ancestors:
// everything that sorts between a text and a longer text with this prefix has the prefix, too.
type node struct {
	rule, size int32 // the text is the first size bytes of this rule's pattern
	parent     int32 // the longest other node that begins this one, or -1
	best       int32 // first rule that is only a prefix, of this node and its ancestors
	wild       int32 // end in Rules.wild of this node's rules
}

// noRule sorts after all rules.
const noRule = math.MaxInt32

// arrange sorts the rules and builds the table. All patterns move to one string.
func (r *Rules) arrange() {
	slices.SortStableFunc(r.rules, rule.compare)
	size := 0
	for i := range r.rules {
		size += len(r.rules[i].pattern)
	}
	var all strings.Builder
	all.Grow(size)
	for i := range r.rules {
		all.WriteString(r.rules[i].pattern)
	}
	rest := all.String()
	order := make([]int32, len(r.rules))
	for i := range r.rules {
		p := &r.rules[i].pattern
		*p, rest = rest[:len(*p)], rest[len(*p):]
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		if c := cmp.Compare(r.rules[a].literal(), r.rules[b].literal()); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	nodes := 0
	for i, n := range order {
		if i == 0 || r.rules[n].literal() != r.rules[order[i-1]].literal() {
			nodes++
		}
	}
	r.nodes = make([]node, 0, nodes)
	r.wild = order[:0] // written behind where it is read
	for _, i := range order {
		text := r.rules[i].literal()
		last := int32(len(r.nodes) - 1)
		if last < 0 || r.text(last) != text {
			for last >= 0 && !strings.HasPrefix(text, r.text(last)) {
				last = r.nodes[last].parent
			}
			best := int32(noRule)
			if last >= 0 {
				best = r.nodes[last].best
			}
			r.nodes = append(r.nodes, node{rule: i, size: int32(len(text)), parent: last, best: best, wild: int32(len(r.wild))})
		}
		n := &r.nodes[len(r.nodes)-1]
		switch {
		case i > n.best: // wherever this one matches, that one does
		case r.rules[i].plain():
			n.best = i
		default:
			r.wild = append(r.wild, i)
			n.wild++
		}
	}
}

func (r *Rules) text(n int32) string {
	return r.rules[r.nodes[n].rule].pattern[:r.nodes[n].size]
}

// beginning returns the longest node that begins a path, or -1.
func (r *Rules) beginning(path string) int32 {
	n := int32(sort.Search(len(r.nodes), func(i int) bool { return r.text(int32(i)) > path })) - 1
	if n < 0 {
		return n
	}
	text, same := r.text(n), 0
	for same < min(len(text), len(path)) && text[same] == path[same] {
		same++
	}
	for n >= 0 && int(r.nodes[n].size) > same {
		n = r.nodes[n].parent
	}
	return n
}

// patience is the number of rules with wildcards that are compared with a path before a suffix
// automaton of it is built, which costs about as much as these comparisons.
const patience = 256

// decide returns the first rule that matches a normalized path, or noRule.
func (r *Rules) decide(path string, patience int) int32 {
	n := r.beginning(path)
	if n < 0 {
		return noRule
	}
	best := r.nodes[n].best
	var x *index
	for ; n >= 0; n = r.nodes[n].parent {
		from := int32(0)
		if n > 0 {
			from = r.nodes[n-1].wild
		}
		for _, i := range r.wild[from:r.nodes[n].wild] {
			if i > best {
				break
			}
			if x == nil && r.rules[i].stars() {
				if patience--; patience < 0 {
					x = newIndex(path)
				}
			}
			if r.rules[i].match(path, x) {
				best = i
				break
			}
		}
	}
	return best
}
