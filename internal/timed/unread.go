// This file orders the unread timed blocks, finds them by number, and lists them some at a time.

package timed

import (
	"slices"

	"github.com/seed-7440039f/frontier/internal/hostindex"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

// unread orders timed blocks by when their first unread records are due.
//
// The zero value is empty. Not safe for concurrent use.
type unread struct {
	items timeheap.Table
	root  uint32
	index hostindex.Index // by block
	lists []*List         // that are being made
	never int             // items that are never due
}

// blockHash spreads the numbers of blocks, most of which are consecutive.
func blockHash(id uint32) uint64 { return uint64(id) * 0x9e3779b97f4a7c15 }

func (u *unread) len() int    { return u.items.Len() }
func (u *unread) min() int64  { return u.items.Min(u.root) }
func (u *unread) size() int64 { return u.items.Size() + u.index.Size() }

func (u *unread) push(it timeheap.Item) {
	if it.At == instant.Never {
		u.never++
	}
	u.index.Add(blockHash(it.ID), u.items.Push(&u.root, it))
	for _, l := range u.lists {
		l.came = append(l.came, it)
	}
}

func (u *unread) pop() timeheap.Item { return u.remove(u.root) }

// remove removes item n.
func (u *unread) remove(n uint32) timeheap.Item {
	u.index.Remove(blockHash(u.items.At(n).ID), n)
	it := u.items.Remove(&u.root, n)
	if it.At == instant.Never {
		u.never--
	}
	return it
}

// find returns the number of the item of a block, or 0.
func (u *unread) find(id uint32) uint32 {
	for n := range u.index.Candidates(blockHash(id)) {
		if u.items.At(n).ID == id {
			return n
		}
	}
	return 0
}

// listedAtOnce is how many timed blocks are listed under one lock.
const listedAtOnce = 4096

// List is a list, in the making, of the blocks with records that are only on disk.
type List struct {
	blocks []timeheap.Item
	came   []timeheap.Item // added meanwhile, possibly repeatedly
	next   uint32          // number of the item to be listed next
}

// begin begins a list. Call end afterwards.
func (u *unread) begin() *List {
	l := &List{next: 1}
	u.lists = append(u.lists, l)
	return l
}

// list appends up to n items to a list, which has room for them, and reports whether there are more.
func (u *unread) list(l *List, n int) bool {
	for ; n > 0 && l.next <= u.items.Top; n, l.next = n-1, l.next+1 {
		if it := u.items.At(l.next).Item; it.ID != 0 {
			l.blocks = append(l.blocks, it)
		}
	}
	return l.next <= u.items.Top
}

func (u *unread) end(l *List) {
	u.lists = slices.DeleteFunc(u.lists, func(x *List) bool { return x == l })
}

// All returns the blocks of a completed list: all that were unread at its end, in their state at
// that time, and some that no longer were.
func (l *List) All() []timeheap.Item {
	last := map[uint32]int{}
	for i, it := range l.came {
		last[it.ID] = i
	}
	all := slices.DeleteFunc(l.blocks, func(it timeheap.Item) bool { _, again := last[it.ID]; return again })
	for i, it := range l.came {
		if last[it.ID] == i {
			all = append(all, it)
		}
	}
	return all
}

// BeginList begins a list. Call EndList afterwards.
func (t *Blocks) BeginList() *List { return t.unread.begin() }

// Grow allocates room for the next call of List. It needs no lock.
func (l *List) Grow() { l.blocks = slices.Grow(l.blocks, listedAtOnce) }

// List adds some blocks to a list, and reports whether there are more.
func (t *Blocks) List(l *List) (more bool) { return t.unread.list(l, listedAtOnce) }

// EndList completes a list: its content is as of now.
func (t *Blocks) EndList(l *List) {
	if t.unread.end(l); t.reading.ID != 0 {
		l.came = append(l.came, t.reading)
	}
}
