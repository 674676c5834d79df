// This file keeps many heaps, most of them small, in one table: the hosts of each
// group. A heap without items takes no memory.

package frontier

import (
	"fmt"
	"iter"
)

// heapTable holds leftist trees. One is named by its root's number, 0 if it is empty,
// which its owner keeps. Each item keeps its number for as long as it is in.
//
// Invariants, verified by check:
//   - no item is before the one above it
//   - an item's spine, the number of items from it along right, is not longer on its
//     right than on its left, so that merging, and with it each step, is O(log n)
//
// The zero value is empty. Not safe for concurrent use.
type heapTable struct{ slab[heapNode] }

type heapNode struct {
	timeItem
	up, left, right     uint32
	leftSpine, ownSpine uint8 // that of the item to the left, 0 if there is none; its own
}

// push adds an item and returns its number.
func (t *heapTable) push(root *uint32, it timeItem) uint32 {
	n := t.alloc()
	*t.at(n) = heapNode{timeItem: it, ownSpine: 1}
	*root = t.merge(*root, n)
	return n
}

// remove takes item n out and returns it.
func (t *heapTable) remove(root *uint32, n uint32) timeItem {
	t.cut(root, n)
	it := t.at(n).timeItem
	t.release(n)
	return it
}

// fix changes item n.
func (t *heapTable) fix(root *uint32, n uint32, it timeItem) {
	t.cut(root, n)
	t.at(n).timeItem = it
	*root = t.merge(*root, n)
}

// min returns the earliest time; never if the heap is empty.
func (t *heapTable) min(root uint32) int64 {
	if root == 0 {
		return never
	}
	return t.at(root).timeItem.at
}

// merge makes one heap of two, at least one of which is not empty.
func (t *heapTable) merge(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return a | b
	}
	x, y := t.at(a), t.at(b)
	if y.timeItem.at < x.timeItem.at {
		a, b, x = b, a, y
	}
	right := t.merge(x.right, b)
	t.at(right).up = a
	x.lean(right, t.at(right).ownSpine)
	return a
}

// lean puts what is now on the right of x where it belongs, and reports whether the
// spine of x changed.
func (x *heapNode) lean(right uint32, spine uint8) bool {
	if x.right = right; spine > x.leftSpine {
		x.left, x.right = x.right, x.left
		x.leftSpine, spine = spine, x.leftSpine
	}
	old := x.ownSpine
	x.ownSpine = 1 + spine
	return x.ownSpine != old
}

// cut takes item n out of its heap and makes it one of its own.
func (t *heapTable) cut(root *uint32, n uint32) {
	x := t.at(n)
	up, rest, spine := x.up, t.merge(x.left, x.right), uint8(0)
	*x = heapNode{timeItem: x.timeItem, ownSpine: 1}
	if rest != 0 {
		t.at(rest).up = up
		spine = t.at(rest).ownSpine
	}
	if up == 0 {
		*root = rest
		return
	}
	for below := rest; up != 0; {
		p := t.at(up)
		if p.left == n { // what is on the right may belong there
			right, rightSpine := p.right, p.ownSpine-1
			p.left, p.leftSpine = below, spine
			below, spine = right, rightSpine
		}
		if !p.lean(below, spine) {
			return
		}
		n, below, spine, up = up, up, p.ownSpine, p.up
	}
}

// all yields the numbers of a heap's items, in no order that matters.
func (t *heapTable) all(root uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for n := root; n != 0; {
			if !yield(n) {
				return
			}
			if down := t.at(n).left; down != 0 {
				n = down
				continue
			}
			for up := t.at(n).up; ; n, up = up, t.at(up).up { // to the next one on the right
				if up == 0 {
					return
				}
				if right := t.at(up).right; right != 0 && right != n {
					n = right
					break
				}
			}
		}
	}
}

// check verifies a heap.
func (t *heapTable) check(root uint32) error {
	if root != 0 && t.at(root).up != 0 {
		return fmt.Errorf("the root is below item %d", t.at(root).up)
	}
	for n := range t.all(root) {
		x := t.at(n)
		left, right := uint8(0), uint8(0)
		if x.left != 0 {
			left = t.at(x.left).ownSpine
		}
		if x.right != 0 {
			right = t.at(x.right).ownSpine
		}
		if x.leftSpine != left || x.ownSpine != 1+right || left < right {
			return fmt.Errorf("item %d leans to the right", n)
		}
		for _, down := range [...]uint32{x.left, x.right} {
			if down != 0 && (t.at(down).up != n || t.min(down) < t.min(n)) {
				return fmt.Errorf("item %d is before its parent", down)
			}
		}
	}
	return nil
}
