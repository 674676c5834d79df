// This file orders things by time: hosts by the moment they may next be
// contacted, leases by their deadline, scheduled URLs by when they are due.
//
// It knows nothing of what it orders but a number. schedule.go decides what is
// in which heap.

package frontier

import "github.com/seed-7440039f/frontier/internal/offheap"

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
//   - items[i].at is not after that of items[4i+1] to items[4i+4]
//   - moved, if set, was last told i for items[i].id, so fix and remove are O(log n)
//
// The zero value is an empty heap without positions. Not safe for concurrent use.
type timeHeap struct {
	items []timeItem
	mem   offheap.Array[timeItem] // that items are the beginning of
	moved func(id uint32, i int)  // told each item's position whenever it changes
}

// min returns the earliest time; never if the heap is empty.
func (h *timeHeap) min() int64 {
	if len(h.items) == 0 {
		return never
	}
	return h.items[0].at
}

func (h *timeHeap) len() int { return len(h.items) }

func (h *timeHeap) push(it timeItem) {
	n := len(h.items)
	if n == len(h.mem.Items) {
		h.resize(max(16, n+n/4, min(2*n, 1024)))
	}
	h.items = h.mem.Items[:n+1]
	h.up(n, it)
}

// pop removes and returns the earliest item.
func (h *timeHeap) pop() timeItem {
	it := h.items[0]
	h.remove(0)
	return it
}

// remove takes out items[i].
func (h *timeHeap) remove(i int) {
	last := len(h.items) - 1
	it := h.items[last]
	h.items = h.items[:last]
	if i < last {
		h.settle(i, it)
	}
	if room := len(h.mem.Items); room > 1024 && last < room/2 {
		h.resize(room * 5 / 8)
	}
}

// resize makes room for so many items.
func (h *timeHeap) resize(room int) {
	h.mem.Resize(room)
	h.items = h.mem.Items[:len(h.items)]
}

// fix moves items[i] to where time at belongs.
func (h *timeHeap) fix(i int, at int64) {
	it := h.items[i]
	it.at = at
	h.settle(i, it)
}

// settle puts it into the hole at i and restores the order.
func (h *timeHeap) settle(i int, it timeItem) {
	if i > 0 && it.at < h.items[(i-1)/4].at {
		h.up(i, it)
	} else {
		h.down(i, it)
	}
}

func (h *timeHeap) set(i int, it timeItem) {
	h.items[i] = it
	if h.moved != nil {
		h.moved(it.id, i)
	}
}

func (h *timeHeap) up(i int, it timeItem) {
	for i > 0 {
		p := (i - 1) / 4
		if h.items[p].at <= it.at {
			break
		}
		h.set(i, h.items[p])
		i = p
	}
	h.set(i, it)
}

func (h *timeHeap) down(i int, it timeItem) {
	for {
		first := 4*i + 1
		if first >= len(h.items) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(h.items)); c++ {
			if h.items[c].at < h.items[least].at {
				least = c
			}
		}
		if h.items[least].at >= it.at {
			break
		}
		h.set(i, h.items[least])
		i = least
	}
	h.set(i, it)
}

// size returns how many bytes the heap takes.
func (h *timeHeap) size() int64 { return h.mem.Size() }
