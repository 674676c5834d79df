// Package timed keeps the URLs that wait for their time: records in memory, and blocks on disk.
//
// Timed blocks are sorted by due time. For an unread block, memory holds only when its first unread
// record is due, so a URL scheduled weeks ahead costs nothing. One block at a time is read as far as
// needed: its first records become resident, with their home in that block, and the rest stays unread.
//
// The package owns the order of what is due, in memory (Records) and on disk (Blocks), lists and
// walks of both, and the notes that records on disk are outdated (Notes). It does not read the
// disk, depend on hosts or count URLs. It has no lock: callers hold the frontier's.
package timed

import (
	"maps"

	"github.com/seed-7440039f/frontier/internal/block"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// bucketSize is how many block numbers are counted together.
	bucketSize = 1 << 10
	// least is how many records are taken at least when a block is read, so that a
	// sparse one is not read for each.
	least = 16
)

// Blocks are the timed blocks with unread records.
//
// Invariants: for an item of unread, At is the time of the block's first unread record, or later
// after a failed read; ID is the block; Aux is the position of that record and the number of live
// records from there on. A block whose records are never due, at instant.Never, has no others.
//
// Not safe for concurrent use.
type Blocks struct {
	AheadFrom int64 // until this moment no block is read before it is due, because a read failed

	table   *block.Table
	unread  unread
	reading timeheap.Item    // taken out of unread while it is read; ID 0: none
	last    uint32           // highest number of a timed block so far
	buckets map[uint32]int32 // unread and lost blocks by number / bucketSize
	lost    map[uint32]int   // live records of blocks that cannot be read
	purge   purge
	purged  bool // see Purged
}

// NewBlocks returns an empty Blocks over a table of finished records.
func NewBlocks(table *block.Table) Blocks {
	return Blocks{table: table, buckets: map[uint32]int32{}}
}

// Item describes a block: at is when its first unread record is due, first is that record's
// position, and live the number of unfinished records from there on.
func Item(id uint32, at int64, first, live int) timeheap.Item {
	return timeheap.Item{At: at, ID: id, Aux: uint32(first)<<16 | uint32(live)}
}

// First is the position of a block's first unread record.
func First(it timeheap.Item) int { return int(it.Aux >> 16) }

// Live is how many unread records of a block are not finished.
func Live(it timeheap.Item) int { return int(it.Aux & (1<<16 - 1)) }

// Add adds a block with records that are not in memory.
func (t *Blocks) Add(it timeheap.Item) {
	t.unread.push(it)
	t.last = max(t.last, it.ID)
	t.buckets[it.ID/bucketSize]++
}

// Min is when the first record that is not in memory is due.
func (t *Blocks) Min() int64 {
	if t.reading.ID != 0 {
		return min(t.reading.At, t.unread.min())
	}
	return t.unread.min()
}

// MinUnread is Min without the block that is being read.
func (t *Blocks) MinUnread() int64 { return t.unread.min() }

// Len is how many blocks are unread.
func (t *Blocks) Len() int { return t.unread.len() }

// Due is how many of the unread blocks are due some day.
func (t *Blocks) Due() int { return t.unread.len() - t.unread.never }

// Empty reports whether no record is on disk only.
func (t *Blocks) Empty() bool { return len(t.buckets) == 0 }

// Has reports whether a block is unread, or being read.
func (t *Blocks) Has(id uint32) bool { return t.reading.ID == id || t.unread.find(id) != 0 }

// Last is the highest number of a block so far.
func (t *Blocks) Last() uint32 { return t.last }

// Oldest returns a lower bound of the numbers of unread or lost blocks.
func (t *Blocks) Oldest() uint32 {
	n := uint32(1<<32 - 1)
	for b := range t.buckets {
		n = min(n, b*bucketSize)
	}
	return n
}

// Begin removes the block that is due first: it is now being read, until Arrive, PutBack or Lose.
func (t *Blocks) Begin() timeheap.Item {
	t.reading = t.unread.pop()
	return t.reading
}

// BeginBlock is Begin for a given block. It returns the zero item if the block is not unread.
func (t *Blocks) BeginBlock(id uint32) timeheap.Item {
	if n := t.unread.find(id); n != 0 {
		t.reading = t.unread.remove(n)
		return t.reading
	}
	return timeheap.Item{}
}

// Reading is the block that is being read; the zero item if none is.
func (t *Blocks) Reading() timeheap.Item { return t.reading }

// Loaded is a record of a timed block on its way into memory.
type Loaded struct {
	storage.TimedRecord
	Pos  int
	At   int64  // the date when it is due
	Hash uint64 // of its host
	Mark storage.Mark
}

// Bury finishes the dead records of the block being read, and returns their number.
func (t *Blocks) Bury(rs []Loaded, dead func(*Loaded) bool) (n int) {
	for i := range rs {
		r := &rs[i]
		if Live(t.reading) > 0 && !t.IsBuried(r.Pos) && dead(r) {
			t.BuryAt(r.Pos)
			n++
		}
	}
	return n
}

// BuryAt finishes a record of the block being read.
func (t *Blocks) BuryAt(pos int) {
	t.table.Bury(t.reading.ID, Live(t.reading), pos)
	t.reading.Aux--
}

// IsBuried reports whether a record of the block being read is finished.
func (t *Blocks) IsBuried(pos int) bool { return t.table.IsBuried(t.reading.ID, pos) }

// Soon counts the first records of the block being read that should become resident: those due
// until the given time, and at least a minimum. When memory is short, at most those due before the
// next block is read, or now.
func (t *Blocks) Soon(rs []Loaded, now, until int64, short bool) int {
	least := least
	if short {
		until, least = max(now, min(until, t.unread.min())), 1
	}
	live := 0
	for i := range rs {
		if live >= least && rs[i].At > until || rs[i].At == instant.Never {
			return i
		}
		if !t.IsBuried(rs[i].Pos) {
			live++
		}
	}
	return len(rs)
}

// Arrive ends the reading: the first n records become resident, the others stay unread. install takes
// records that share a part; with wait set, as for records due until waits, they begin to wait.
func (t *Blocks) Arrive(rs []Loaded, n int, waits int64, install func(part uint32, rs []Loaded, wait bool)) {
	it := t.reading
	t.reading = timeheap.Item{}
	live := Live(it)
	for i := 0; live > 0; {
		r := &rs[i]
		switch {
		case t.table.IsBuried(it.ID, r.Pos):
			i++
		case i >= n:
			t.unread.push(Item(it.ID, r.At, r.Pos, live))
			return
		default:
			t.table.Touch(it.ID, live)
			run := t.alike(it.ID, rs[i:n], waits)
			part := t.table.NewPart(storage.Part{Block: it.ID, First: uint16(r.Pos), Count: uint8(run)})
			install(part, rs[i:i+run], r.At <= waits)
			live, i = live-run, i+run
		}
	}
	t.ended(it.ID)
}

// alike counts the first of rs that can share a part: neighbours of one queue
// that begin to wait together.
func (t *Blocks) alike(id uint32, rs []Loaded, waits int64) int {
	n := 1
	for n < min(len(rs), storage.MaxPart) {
		r := &rs[n]
		if r.At > waits || r.Queue != rs[0].Queue || r.Pos != rs[n-1].Pos+1 || t.table.IsBuried(id, r.Pos) {
			break
		}
		n++
	}
	return n
}

// PutBack ends the reading and leaves the block unread, until at.
func (t *Blocks) PutBack(at int64) {
	it := t.reading
	t.reading = timeheap.Item{}
	first, live := First(it), Live(it)
	if live == 0 {
		t.ended(it.ID)
		return
	}
	for t.table.IsBuried(it.ID, first) {
		first++
	}
	t.unread.push(Item(it.ID, at, first, live))
}

// Lose gives up the block being read, which is unreadable, and returns how many records it
// contains. They stay on disk and are still counted: the block may be readable after reopening.
func (t *Blocks) Lose() int {
	it := t.reading
	t.reading = timeheap.Item{}
	if t.lost == nil {
		t.lost = map[uint32]int{}
	}
	t.lost[it.ID] = Live(it)
	return Live(it)
}

// ended records that a block has no unread record any more.
func (t *Blocks) ended(id uint32) {
	n := id / bucketSize
	if t.buckets[n]--; t.buckets[n] == 0 {
		delete(t.buckets, n)
	}
}

// Size returns the memory in bytes.
func (t *Blocks) Size() int64 { return t.unread.size() + int64(len(t.buckets))*16 }

// Check verifies the data about the blocks, and reports violations. It returns the numbers of their
// readable live records, as End does, and adds the number of each block in the table to live.
func (t *Blocks) Check(live map[uint32]int, bad func(format string, args ...any)) (due, never int64) {
	if err := t.unread.items.Check(t.unread.root); err != nil {
		bad("F3: heap of timed blocks: %v", err)
	}
	buckets := map[uint32]int32{}
	for id, n := range t.lost {
		if t.table.Has(id) {
			live[id] += n
		}
		buckets[id/bucketSize]++
	}
	u := &t.unread
	var items []timeheap.Item
	for n := range u.items.All(u.root) {
		if items = append(items, u.items.At(n).Item); u.find(u.items.At(n).ID) != n {
			bad("F5: timed block %d is not found by its number", u.items.At(n).ID)
		}
	}
	if len(items) != u.len() {
		bad("F5: %d timed blocks in order, counted %d", len(items), u.len())
	}
	if t.reading.ID != 0 {
		items = append(items, t.reading)
	}
	for _, it := range items {
		n := Live(it)
		if n == 0 || it.ID > t.last {
			bad("F5: timed block %d of %d has %d unread records", it.ID, t.last, n)
		}
		if t.table.IsBuried(it.ID, First(it)) {
			bad("F5: timed block %d: its first unread record is finished", it.ID)
		}
		if t.table.Has(it.ID) {
			live[it.ID] += n
		}
		buckets[it.ID/bucketSize]++
		if it.At == instant.Never {
			never += int64(n)
		} else {
			due += int64(n)
		}
	}
	if !maps.Equal(buckets, t.buckets) {
		bad("F6: timed blocks by number: %v, counted %v", buckets, t.buckets)
	}
	return due, never
}
