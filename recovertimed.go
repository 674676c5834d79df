// This file brings back the blocks of records that wait for their time. They are
// not read: see timed.go.

package frontier

import (
	"cmp"
	"fmt"
	"slices"
)

func (r *recovery) Timed(b TimedBlock) error {
	f := r.f
	c := f.core
	if b.Block == 0 || b.Count < 1 || b.Count > MaxTimed || b.Priority < 1 {
		return &CorruptError{Err: fmt.Errorf("timed block %d has %d records of priority up to %d", b.Block, b.Count, b.Priority)}
	}
	if !f.isPriority(b.Priority) {
		return r.tooHigh(b.Priority)
	}
	if n := len(r.timed); n > 0 && r.timed[n-1].id >= b.Block {
		return fmt.Errorf("timed block %d was given after block %d", b.Block, r.timed[n-1].id)
	}
	c.lastBlock = max(c.lastBlock, b.Block)
	live := b.Count
	if x := c.blocks.at(b.Block); x != nil {
		for i := range b.Count {
			if c.isDead(x, i) {
				live--
			}
		}
		if x.addLive(live); live == 0 {
			c.forgetBlock(b.Block)
			c.drops = append(c.drops, b.Block)
		}
	}
	r.timed = append(r.timed, timeItem{at: f.date(millisTime(b.Due)), id: b.Block, aux: uint32(live)})
	return nil
}

// completionTimed ends a record that lies in a timed block.
func (r *recovery) completionTimed(x Completion) {
	c := r.f.core
	i, ok := slices.BinarySearchFunc(r.timed, x.Block, func(it timeItem, id uint32) int { return cmp.Compare(it.id, id) })
	if !ok || r.timed[i].aux == 0 {
		return
	}
	it := &r.timed[i]
	if c.isBuried(it.id, int(x.Pos)) {
		return
	}
	c.bury(it.id, int(it.aux), int(x.Pos))
	it.aux--
}

// finishTimed files the timed blocks under their times.
func (r *recovery) finishTimed() {
	c := r.f.core
	for _, it := range r.timed {
		if live := int(it.aux); live > 0 {
			it.aux = timedAux(r.firstLive(it.id), live)
			c.timed.add(it)
			c.stats.Scheduled += int64(live)
		}
	}
	r.timed = nil
}

// firstLive returns the first position of a block that is not finished.
func (r *recovery) firstLive(id uint32) int {
	pos := 0
	for r.f.core.isBuried(id, pos) {
		pos++
	}
	return pos
}

// superseded reports whether a Force replaced a record of the log that waits for
// its time: it was in a timed block then that is not valid any more.
func (r *recovery) superseded(x logged, seq uint64) bool {
	f := r.f
	if len(f.notes.at) == 0 {
		return false
	}
	b, err := decodeBody(f.core.record(x.ref).body())
	if err != nil {
		return false // it was checked
	}
	n, ok := f.notes.at[f.markOf(f.core.crawlOf(f.core.queues.at(x.queue)).id, string(b.url))]
	return ok && seq < n.seq
}
