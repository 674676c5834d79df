// This file takes away what deletions have left dead in memory, some at a time.
//
// What is dead in a queue is at its head: it was there before everything that came
// since. So a queue is clean when its head is alive, and who is about to hand out
// of one looks there. Of parts on disk only the number of the block must be known.

package frontier

import (
	"math/bits"
	"runtime"
	"slices"
	"time"
)

// Steps of a sweep, and what they cost. A step takes some 20 ns.
const (
	sweepSteps  = 4096 // under one lock
	sweepHosts  = 1024 // that are looked at under one lock when the sweep is over
	sweptHost   = 1    // looking at a host
	sweptRecord = 8    // taking a record out
	sweptPart   = 16   // taking a part out
)

// sweepTime is when to ask again for a URL if a sweep may find some, in nanoseconds.
const sweepTime = int64(time.Millisecond)

// sweep looks through all that is in memory for what d has left dead.
func (f *Frontier) sweep(d *deletion) {
	for {
		complete := f.sweepQueues(d) && (!d.scheduled || f.sweepScheduled(d)) && f.sweepLeases(d)
		f.lock()
		if complete && d.again {
			d.again = false
			f.mu.Unlock()
			continue
		}
		if complete {
			d.swept = true
			f.core.dooms.remove(d)
			f.core.offerDeleted(d)
			f.freeDyingLocked()
			f.dispatchLocked() // the crawl may be over
		}
		if d.tried != nil {
			close(d.tried)
			d.tried = nil
		}
		f.mu.Unlock()
		return
	}
}

// freeDyingLocked puts hosts back that were left to a sweep which had been there,
// because of a part that was finished later. It releases the lock between steps.
func (f *Frontier) freeDyingLocked() {
	c := f.core
	for id := uint32(1); id <= c.hosts.top && c.places[dying] > 0 && !f.closed; id++ {
		if c.hosts.at(id).place == dying {
			c.detach(id)
			c.settle(id, f.last)
		}
		if id%sweepHosts == 0 {
			f.dispatchLocked()
			f.mu.Unlock()
			f.lock()
		}
	}
}

// startSweepLocked sweeps for deletions, one after the other, in the background.
func (f *Frontier) startSweepLocked(ds ...*deletion) {
	if len(ds) == 0 {
		return
	}
	f.sweepers.Add(1)
	f.sweeping++
	go func() {
		defer f.sweepers.Done()
		for _, d := range ds {
			f.sweep(d)
		}
		f.mu.Lock()
		f.sweeping--
		f.mu.Unlock()
	}()
}

// resumeSweepsLocked sweeps for the deletions that the store has.
func (f *Frontier) resumeSweepsLocked() {
	for _, d := range f.deletions {
		f.burial.begin(d.block, &f.core.timed.unread)
	}
	f.startSweepLocked(slices.Clone(f.deletions)...)
}

// reviveLocked puts deletions in force again: a record that they may concern came
// back because a commit failed.
func (f *Frontier) reviveLocked() {
	var ds []*deletion
	for _, d := range f.deletions {
		if d.again = !d.swept; d.swept {
			d.swept = false
			f.core.dooms.add(d)
			f.core.offerDeleted(d)
			ds = append(ds, d)
		}
	}
	f.startSweepLocked(ds...)
}

// sweepInSteps calls step under the lock, with as many steps as it may take, until
// it is done. If it must wait for a read to end it tells so. It reports whether
// it came to the end.
func (f *Frontier) sweepInSteps(step func(steps int) (done, wait bool)) bool {
	for {
		f.lock()
		if f.closed {
			f.mu.Unlock()
			return false
		}
		done, wait := step(sweepSteps)
		var ended chan struct{}
		if wait {
			if f.readEnded == nil {
				f.readEnded = make(chan struct{})
			}
			ended = f.readEnded
		}
		f.dispatchLocked()
		f.mu.Unlock()
		if done {
			return true
		}
		if ended != nil {
			<-ended
		}
		runtime.Gosched()
	}
}

// readEndedLocked lets sweeps go on that wait for the end of a read.
func (f *Frontier) readEndedLocked() {
	if f.readEnded != nil {
		close(f.readEnded)
		f.readEnded = nil
	}
}

// sweepQueues takes dead records out of the queues.
func (f *Frontier) sweepQueues(d *deletion) bool {
	c := f.core
	if d.ofHost() {
		return f.sweepInSteps(func(steps int) (done, wait bool) {
			id := c.lookup(f.hostHash(d.scope.name), d.scope.name)
			if id == 0 {
				return true, false
			}
			_, done, wait = c.purgeHost(id, d, steps, f.last)
			return done, wait
		})
	}
	id := uint32(1) // the numbers of hosts with dead records do not change
	return f.sweepInSteps(func(steps int) (done, wait bool) {
		for ; id <= c.hosts.top && steps > 0; id++ {
			steps -= sweptHost
			h := c.hosts.at(id)
			if h.nameLen == 0 || h.waiting == 0 && h.scheduled == 0 && h.place != dying || !d.containsHost(c.name(h)) {
				continue
			}
			if steps, done, wait = c.purgeHost(id, d, steps, f.last); !done {
				return false, wait
			}
		}
		return id > c.hosts.top, false
	})
}

// purgeHost takes dead records out of a host's queues, for as many steps. It
// returns the steps that are left, and whether it is done, or must wait until
// what is being read has arrived.
func (c *core) purgeHost(id uint32, d *deletion, steps int, now int64) (left int, done, wait bool) {
	h := c.hosts.at(id)
	d.scheduled = d.scheduled || h.scheduled > 0
	x := doom{seq: d.seq, block: d.block, by: d}
	done = true
	out := false // of its structure; what is in that may depend on which of its queues have URLs
	served := h.served
	for qid := h.queues; qid != 0 && done; qid = c.queues.at(qid).sibling {
		q := c.queues.at(qid)
		if d.ofCrawl && c.crawlOf(q).id != d.crawl || !c.deadHead(q, &x) {
			continue
		}
		if h.place == loading && q.front.first == 0 && q.chain != 0 {
			wait, done = true, false
			continue
		}
		switch h.place {
		case parked, pacing, queued, ready, held:
			c.detach(id)
			out = true
		}
		steps, done = c.purge(qid, &x, steps)
	}
	if done && h.place == dying {
		c.detach(id)
		out = true
	}
	switch {
	case out:
		h.served = served
		c.settle(id, now)
	case h.place == unbound && h.waiting == 0:
		c.detach(id)
		c.settle(id, now)
	}
	return steps, done, wait
}

// deadHead reports whether the first URL of a queue is dead.
func (c *core) deadHead(q *queue, d *doom) bool {
	switch {
	case q.waiting == 0:
		return false
	case q.front.first != 0:
		return c.record(q.front.first).seq() <= d.seq
	case q.chain != 0:
		return c.deadPart(q, d) != 0
	}
	return c.record(q.back.first).seq() <= d.seq
}

// deadPart returns the first part of a queue's chain if it is dead, or has nothing
// left to hide what is dead behind it, or 0.
func (c *core) deadPart(q *queue, d *doom) uint32 {
	if q.chain == 0 {
		return 0
	}
	id := c.parts.at(q.chain).next
	if p := c.parts.at(id); p.block <= d.block || c.unread(p) == 0 {
		return id
	}
	return 0
}

// purge takes dead records from the head of a queue, for as many steps, and its
// token away if none is left. It returns the steps that are left, and whether the
// head is alive now or the queue empty. Its host is in no structure, or unbound.
func (c *core) purge(qid uint32, d *doom, steps int) (int, bool) {
	q := c.queues.at(qid)
	before := q.waiting
	clean := false
	for steps > 0 && !clean {
		switch {
		case q.front.first != 0:
			clean = !c.purgeFirst(q, &q.front, d)
			steps -= sweptRecord
		case q.chain != 0:
			id := c.deadPart(q, d)
			if clean = id == 0; !clean {
				c.removed(q, d, c.killUnread(id))
				c.unchain(q)
			}
			steps -= sweptPart
		default:
			clean = q.back.first == 0 || !c.purgeFirst(q, &q.back, d)
			steps -= sweptRecord
		}
	}
	if before > 0 && q.waiting == 0 && c.hosts.at(q.host).place == unbound {
		c.delist(tokens, qid)
	}
	return steps, clean
}

// purgeFirst takes out the first record of a stretch if it is dead.
func (c *core) purgeFirst(q *queue, s *stretch, d *doom) bool {
	if c.record(s.first).seq() > d.seq {
		return false
	}
	c.removed(q, d, 1)
	c.finished(c.stretchPop(s))
	return true
}

// removed counts dead records that left a queue.
func (c *core) removed(q *queue, d *doom, n int) {
	c.counted(q, -n)
	c.stats.Deleted += int64(n)
	d.by.removed += int64(n)
}

// killUnread marks all records of a part as finished that may be read, and returns
// how many. The part is chained.
func (c *core) killUnread(id uint32) int {
	p := c.parts.at(id)
	left := c.unread(p)
	n := bits.OnesCount32(left)
	if n == 0 {
		return 0
	}
	t, b := c.touch(p), c.blocks.at(p.block)
	if b.live() > n { // else nobody needs to know
		for m := left; m != 0; m &= m - 1 {
			c.setDead(b, int(t.first)+bits.TrailingZeros32(m))
		}
	}
	t.taken |= left
	t.done += uint8(n)
	c.diedMany(p.block, n)
	return n
}

// spared reports whether the queue that was chosen for a hand-out begins with a URL
// that is alive. If not, its host, which is in place loading, waits for the sweep:
// to take its dead out now would keep the hosts behind it waiting.
func (c *core) spared(qid uint32, now int64) bool {
	q := c.queues.at(qid)
	if d := c.doomOf(q); !c.deadHead(q, &d) {
		return true
	}
	h := c.hosts.at(q.host)
	c.dropSlot(h, now)
	c.put(h, dying)
	h.served = 0
	return false
}

// sweepLeases marks the leases whose records are dead.
func (f *Frontier) sweepLeases(d *deletion) bool {
	c := f.core
	id := uint32(1)
	return f.sweepInSteps(func(steps int) (done, wait bool) {
		for ; id <= c.leases.top && steps > 0; id++ {
			steps -= sweptRecord
			if l := c.leases.at(id); l.token != 0 {
				f.deadLeaseLocked(l)
			}
		}
		return id > c.leases.top, false
	})
}
