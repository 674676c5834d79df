// This file keeps many heaps, most of them small, in one table: the hosts of each group. An empty
// heap takes no memory.

package timeheap

import (
	"fmt"
	"iter"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/slab"
)

// Table holds leftist trees. A tree is identified by the number of its root, which its owner
// stores; 0 is the empty tree. An item keeps its number as long as it is in the table.
//
// Invariants, verified by check:
//   - no item is before its parent
//   - an item's spine, the number of items from it along right, is not longer on its right than on
//     its left, so that merging, and with it each operation, is O(log n)
//
// The zero value is empty. Not safe for concurrent use.
type Table struct{ slab.Slab[node] }

type node struct {
	Item
	up, Left, Right     uint32
	leftSpine, ownSpine uint8 // that of the left child, 0 if there is none; its own
}

// Push adds an item and returns its number.
func (t *Table) Push(root *uint32, it Item) uint32 {
	n := t.Alloc()
	*t.At(n) = node{Item: it, ownSpine: 1}
	*root = t.merge(*root, n)
	return n
}

// Remove removes item n and returns it.
func (t *Table) Remove(root *uint32, n uint32) Item {
	t.cut(root, n)
	it := t.At(n).Item
	t.Release(n)
	return it
}

// Fix changes item n.
func (t *Table) Fix(root *uint32, n uint32, it Item) {
	t.cut(root, n)
	t.At(n).Item = it
	*root = t.merge(*root, n)
}

// Min returns the earliest time; instant.Never if the heap is empty.
func (t *Table) Min(root uint32) int64 {
	if root == 0 {
		return instant.Never
	}
	return t.At(root).Item.At
}

// merge merges two heaps, at least one of which is not empty.
func (t *Table) merge(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return a | b
	}
	x, y := t.At(a), t.At(b)
	if y.Item.At < x.Item.At {
		a, b, x = b, a, y
	}
	right := t.merge(x.Right, b)
	t.At(right).up = a
	x.lean(right, t.At(right).ownSpine)
	return a
}

// lean puts what is now the right child of x on the correct side, and reports whether the spine of
// x changed.
func (x *node) lean(right uint32, spine uint8) bool {
	if x.Right = right; spine > x.leftSpine {
		x.Left, x.Right = x.Right, x.Left
		x.leftSpine, spine = spine, x.leftSpine
	}
	old := x.ownSpine
	x.ownSpine = 1 + spine
	return x.ownSpine != old
}

// cut removes item n from its heap and makes it a separate heap.
func (t *Table) cut(root *uint32, n uint32) {
	x := t.At(n)
	up, rest, spine := x.up, t.merge(x.Left, x.Right), uint8(0)
	*x = node{Item: x.Item, ownSpine: 1}
	if rest != 0 {
		t.At(rest).up = up
		spine = t.At(rest).ownSpine
	}
	if up == 0 {
		*root = rest
		return
	}
	for below := rest; up != 0; {
		p := t.At(up)
		if p.Left == n { // the right child may have to move to the left
			right, rightSpine := p.Right, p.ownSpine-1
			p.Left, p.leftSpine = below, spine
			below, spine = right, rightSpine
		}
		if !p.lean(below, spine) {
			return
		}
		n, below, spine, up = up, up, p.ownSpine, p.up
	}
}

// All yields the numbers of a heap's items, in no order that matters.
func (t *Table) All(root uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for n := root; n != 0; {
			if !yield(n) {
				return
			}
			if down := t.At(n).Left; down != 0 {
				n = down
				continue
			}
			for up := t.At(n).up; ; n, up = up, t.At(up).up { // to the next one on the right
				if up == 0 {
					return
				}
				if right := t.At(up).Right; right != 0 && right != n {
					n = right
					break
				}
			}
		}
	}
}

// Check verifies a heap.
func (t *Table) Check(root uint32) error {
	if root != 0 && t.At(root).up != 0 {
		return fmt.Errorf("the root is below item %d", t.At(root).up)
	}
	for n := range t.All(root) {
		x := t.At(n)
		left, right := uint8(0), uint8(0)
		if x.Left != 0 {
			left = t.At(x.Left).ownSpine
		}
		if x.Right != 0 {
			right = t.At(x.Right).ownSpine
		}
		if x.leftSpine != left || x.ownSpine != 1+right || left < right {
			return fmt.Errorf("item %d leans to the right", n)
		}
		for _, down := range [...]uint32{x.Left, x.Right} {
			if down != 0 && (t.At(down).up != n || t.Min(down) < t.Min(n)) {
				return fmt.Errorf("item %d is before its parent", down)
			}
		}
	}
	return nil
}
