// This file orders the timed blocks that are not read yet, finds them by their
// numbers, and lists them some at a time.

package frontier

import "slices"

// unreadBlocks are timed blocks by when their first unread records are due.
//
// The zero value is empty. Not safe for concurrent use.
type unreadBlocks struct {
	items heapTable
	root  uint32
	index hostIndex    // by block
	lists []*timedList // that are being made
}

// blockHash spreads the numbers of blocks, most of which follow each other.
func blockHash(id uint32) uint64 { return uint64(id) * 0x9e3779b97f4a7c15 }

func (u *unreadBlocks) len() int    { return u.items.len() }
func (u *unreadBlocks) min() int64  { return u.items.min(u.root) }
func (u *unreadBlocks) size() int64 { return u.items.size() + u.index.size() }

func (u *unreadBlocks) push(it timeItem) {
	u.index.add(blockHash(it.id), u.items.push(&u.root, it))
	for _, l := range u.lists {
		l.came = append(l.came, it)
	}
}

func (u *unreadBlocks) pop() timeItem { return u.remove(u.root) }

// remove takes item n out.
func (u *unreadBlocks) remove(n uint32) timeItem {
	u.index.remove(blockHash(u.items.at(n).id), n)
	return u.items.remove(&u.root, n)
}

// find returns the number of the item of a block, or 0.
func (u *unreadBlocks) find(id uint32) uint32 {
	for n := range u.index.candidates(blockHash(id)) {
		if u.items.at(n).id == id {
			return n
		}
	}
	return 0
}

// listedAtOnce is how many timed blocks are listed under one lock.
const listedAtOnce = 4096

// timedList is a list of timed blocks that is being made.
type timedList struct {
	blocks []timeItem
	came   []timeItem // meanwhile, some of them again
	next   uint32     // number of the item to be listed next
}

// begin begins a list, which end must end.
func (u *unreadBlocks) begin() *timedList {
	l := &timedList{next: 1}
	u.lists = append(u.lists, l)
	return l
}

// list adds up to n items to a list, which has room for them, and reports whether
// there are more.
func (u *unreadBlocks) list(l *timedList, n int) bool {
	for ; n > 0 && l.next <= u.items.top; n, l.next = n-1, l.next+1 {
		if it := u.items.at(l.next).timeItem; it.id != 0 {
			l.blocks = append(l.blocks, it)
		}
	}
	return l.next <= u.items.top
}

func (u *unreadBlocks) end(l *timedList) {
	u.lists = slices.DeleteFunc(u.lists, func(x *timedList) bool { return x == l })
}

// all tells the blocks of a list that has ended: all that were unread at its end, and
// some that were not any more.
func (l *timedList) all() []timeItem {
	last := map[uint32]int{}
	for i, it := range l.came {
		last[it.id] = i
	}
	all := slices.DeleteFunc(l.blocks, func(it timeItem) bool { _, again := last[it.id]; return again })
	for i, it := range l.came {
		if last[it.id] == i {
			all = append(all, it)
		}
	}
	return all
}

// listTimed begins a list of the timed blocks that hold records which are on disk
// only. It takes the lock; endListLocked ends the list.
func (f *Frontier) listTimed() *timedList {
	u := &f.core.timed.unread
	f.mu.Lock()
	l := u.begin()
	for more := true; more; {
		f.mu.Unlock()
		l.blocks = slices.Grow(l.blocks, listedAtOnce)
		f.mu.Lock()
		more = u.list(l, listedAtOnce)
	}
	f.mu.Unlock()
	return l
}

// endListLocked ends a list: what it tells is as of now.
func (f *Frontier) endListLocked(l *timedList) {
	t := &f.core.timed
	if t.unread.end(l); t.reading.id != 0 {
		l.came = append(l.came, t.reading)
	}
}
