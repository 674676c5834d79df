// This file knows the records that wait for their time on disk.
//
// They lie in timed blocks, sorted by due time. Of a block that is not read yet
// memory holds only when its first unread record is due, so a URL scheduled weeks
// ahead costs nothing. Shortly before that time ahead.go reads the block as far as
// needed: those records become resident, with their home in that block, and the
// rest stays unread.

package frontier

import "github.com/seed-7440039f/frontier/internal/arena"

const (
	// timedBucket is how many block numbers are counted together.
	timedBucket = 1 << 10
	// timedLeast is how many records are taken at least when a block is read, so
	// that a sparse one is not read for each.
	timedLeast = 16
)

// timedBlocks are the timed blocks with unread records.
//
// Invariants: an item of unread has in at the time of the block's first unread
// record, or later after a read that failed; in id the block; in aux the position
// of that record and how many from there on are live.
type timedBlocks struct {
	unread  unreadBlocks
	reading timeItem         // taken out of unread while it is read; id 0: none
	last    uint32           // highest number of a timed block so far
	buckets map[uint32]int32 // unread and lost blocks by number / timedBucket
	lost    map[uint32]int   // live records of blocks that cannot be read

	aheadFrom int64 // moment until which no block is read before it is due: a read failed
}

func timedAux(first, live int) uint32 { return uint32(first)<<16 | uint32(live) }

func timedFirst(it timeItem) int { return int(it.aux >> 16) }

func timedLive(it timeItem) int { return int(it.aux & (1<<16 - 1)) }

// min is when the first record that is not in memory is due.
func (t *timedBlocks) min() int64 {
	if t.reading.id != 0 {
		return min(t.reading.at, t.unread.min())
	}
	return t.unread.min()
}

// add takes a block in whose records are not all in memory.
func (t *timedBlocks) add(it timeItem) {
	t.unread.push(it)
	t.last = max(t.last, it.id)
	t.buckets[it.id/timedBucket]++
}

// empty reports whether no record is on disk only.
func (t *timedBlocks) empty() bool { return len(t.buckets) == 0 }

// oldest is a number not above that of any unread or lost block.
func (t *timedBlocks) oldest() uint32 {
	n := uint32(1<<32 - 1)
	for b := range t.buckets {
		n = min(n, b*timedBucket)
	}
	return n
}

// ended notes that a block has no unread record any more.
func (t *timedBlocks) ended(id uint32) {
	n := id / timedBucket
	if t.buckets[n]--; t.buckets[n] == 0 {
		delete(t.buckets, n)
	}
}

func (t *timedBlocks) size() int64 { return t.unread.size() + int64(len(t.buckets))*16 }

// scheduledAt returns the position in the heap of a record that waits there for
// its time, and whether it does. Such a record's link holds its position; ref may
// be the place of a record that is gone.
func (c *core) scheduledAt(ref arena.Ref) (int, bool) {
	i := int(c.record(ref).next())
	return i, i < c.scheduled.len() && c.scheduled.Items[i].id == uint32(ref)
}

// unschedule takes out item i of the heap of scheduled records.
func (c *core) unschedule(i int) timeItem {
	it := c.scheduled.Items[i]
	c.scheduled.remove(i)
	c.stats.Scheduled--
	c.hosts.at(c.queues.at(it.aux).host).scheduled--
	return it
}

// dismiss drops a scheduled record from memory: from now on it is on disk only.
func (c *core) dismiss(ref arena.Ref, now int64) {
	i, _ := c.scheduledAt(ref)
	id := c.queues.at(c.unschedule(i).aux).host
	c.stats.Scheduled++ // as before
	c.discard(ref)
	if h := c.hosts.at(id); h.scheduled == 0 && h.pins == 0 && h.place == nowhere {
		c.settle(id, now)
	}
}

// touched returns the record of a timed block of which more must be known than
// its unread records. live is how many of its records are not finished.
func (c *core) touched(id uint32, live int) *block {
	b := c.blocks.at(id)
	if b == nil {
		b = c.blocks.add(id)
		b.addLive(live)
	}
	return b
}

// bury marks a record as finished that is in a timed block and not in memory.
func (c *core) bury(id uint32, live, pos int) {
	c.setDead(c.touched(id, live), pos)
	c.died(id)
}

// isBuried reports whether a record of a timed block is finished, if the block has
// any that is not.
func (c *core) isBuried(id uint32, pos int) bool {
	b := c.blocks.at(id)
	return b != nil && c.isDead(b, pos)
}

// timedLoaded is a record of a timed block on its way into memory.
type timedLoaded struct {
	TimedRecord
	pos  int
	at   int64  // the date when it is due
	hash uint64 // of its host
	mark Mark
}

// buryTimed finishes the records of the block being read that are superseded.
func (c *core) buryTimed(rs []timedLoaded, superseded func(*timedLoaded) bool) {
	it := &c.timed.reading
	for i := range rs {
		r := &rs[i]
		if timedLive(*it) == 0 || c.isBuried(it.id, r.pos) || !superseded(r) {
			continue
		}
		c.bury(it.id, timedLive(*it), r.pos)
		c.stats.Scheduled--
		it.aux--
	}
}

// dueSoon counts the first of the records of the block being read that should be
// resident: those due soon, and at least some. When memory is short it is those
// due before another block is read.
func (c *core) dueSoon(rs []timedLoaded, now int64) int {
	now = c.date(now)
	until, least := now+c.cfg.ahead, timedLeast
	if c.resident > c.cfg.evictOver {
		until, least = max(now, min(until, c.timed.unread.min())), 1
	}
	live := 0
	for i := range rs {
		if live >= least && rs[i].at > until {
			return i
		}
		if !c.isBuried(c.timed.reading.id, rs[i].pos) {
			live++
		}
	}
	return len(rs)
}

// installTimed makes the first n records resident of the block that is being
// read. The others stay unread.
func (c *core) installTimed(rs []timedLoaded, n int, now int64) {
	it := c.timed.reading
	c.timed.reading = timeItem{}
	live := timedLive(it)
	waits := min(c.date(now), c.timed.unread.min(), c.scheduled.min()) // what is due until then is next in order
	for i := 0; live > 0; {
		r := &rs[i]
		switch {
		case c.isBuried(it.id, r.pos):
			i++
		case i >= n:
			c.timed.unread.push(timeItem{at: r.at, id: it.id, aux: timedAux(r.pos, live)})
			return
		default:
			_ = c.touched(it.id, live)
			run := c.alike(it.id, rs[i:n], waits)
			c.installRun(it.id, rs[i:i+run], r.at <= waits, now)
			c.stats.Scheduled -= int64(run)
			live, i = live-run, i+run
		}
	}
	c.timed.ended(it.id)
}

// putBackTimed leaves the block being read unread, until at.
func (c *core) putBackTimed(at int64) {
	it := c.timed.reading
	c.timed.reading = timeItem{}
	first, live := timedFirst(it), timedLive(it)
	if live == 0 {
		c.timed.ended(it.id)
		return
	}
	for c.isBuried(it.id, first) {
		first++
	}
	c.timed.unread.push(timeItem{at: at, id: it.id, aux: timedAux(first, live)})
}

// retryTimed leaves the block being read, which cannot be, unread for a while.
func (c *core) retryTimed(now int64) {
	c.timed.aheadFrom = now + int64(timedRetry)
	c.putBackTimed(c.date(c.timed.aheadFrom))
}

// alike counts the first of rs that can share a part: neighbours of one queue
// that begin to wait together.
func (c *core) alike(id uint32, rs []timedLoaded, waits int64) int {
	n := 1
	for n < min(len(rs), MaxPart) {
		r := &rs[n]
		if r.at > waits || r.Queue != rs[0].Queue || r.pos != rs[n-1].pos+1 || c.isBuried(id, r.pos) {
			break
		}
		n++
	}
	return n
}

// installRun makes records resident that share a part.
func (c *core) installRun(id uint32, rs []timedLoaded, waits bool, now int64) {
	r := &rs[0]
	qid := c.queueOf(c.ensure(r.hash, r.Host), r.Crawl, r.Priority)
	pid := c.newPart(Part{Block: id, First: uint16(r.pos), Count: uint8(len(rs))})
	for i := range rs {
		ref := c.store(rs[i].Seq, rs[i].Body)
		c.setHome(ref, pid, i)
		if waits {
			c.waits.began(rs[i].Seq, c.moment(rs[i].at))
			c.pushTail(qid, ref, now)
		} else {
			c.schedule(qid, ref, rs[i].at)
		}
	}
	if waits {
		c.trim(qid)
	}
}

// loseTimed gives up the block being read, which cannot be. Its records stay on
// disk.
func (c *core) loseTimed() {
	it := c.timed.reading
	c.timed.reading = timeItem{}
	n := timedLive(it)
	if c.timed.lost == nil {
		c.timed.lost = map[uint32]int{}
	}
	c.timed.lost[it.id] = n // still counted: it may be readable after reopening
	c.stats.Scheduled -= int64(n)
	c.stats.Unreadable += int64(n)
}
