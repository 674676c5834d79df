// This file walks through a queue for a round, once, some records under one lock.
//
// Of a large queue it is kept where the walk ended: the record is in memory and has
// a home, as all before it, so the next round begins behind it. When that record
// leaves its queue, what was before it has left, too, and a walk from the head
// is as good. Whoever puts a record without a home at the head says so.

package frontier

import "github.com/seed-7440039f/frontier/internal/arena"

// homedSize is what an entry of core.homed takes in memory, about.
const homedSize = 64

// keepHomed notes that a queue's records up to ref have homes, or get them with the
// next flush.
func (c *core) keepHomed(id uint32, ref arena.Ref) {
	if c.homed == nil {
		c.homed = map[uint32]location{}
	}
	c.homed[id] = c.locate(ref)
}

// inQueue reports whether the record that was there still waits in the queue.
func (c *core) inQueue(q *queue, l location) bool {
	return l.ref != 0 && c.holds(l) && (c.record(l.ref).next() != 0 || l.ref == q.front.last || l.ref == q.back.last)
}

// add copies a queue's records of this round, and packs what has come together.
func (m *mover) add(id uint32) error {
	f, c := m.f, m.f.core
	for begun, more := false, true; more; begun = true {
		f.mu.Lock()
		if f.closed {
			f.mu.Unlock()
			return ErrClosed // the log has it all; Close need not wait
		}
		if !begun {
			m.beginLocked(id)
		}
		looked := c.looked
		more = m.copyQueueLocked(id)
		if more && c.looked == looked && len(m.runs) == 0 {
			f.mu.Unlock()
			return errNoProgress // it would stop there again
		}
		left := m.evictLocked(id)
		f.mu.Unlock()
		for left {
			f.mu.Lock()
			left = !f.closed && m.evictLocked(id)
			f.mu.Unlock()
		}
		copied := len(m.queue) > 0 && m.queue[len(m.queue)-1] == id // nothing may be copied twice
		if more && copied || len(m.copy) >= moveBytes || len(m.runs) >= moveQueues {
			if err := m.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginLocked begins with a queue where the last round ended.
func (m *mover) beginLocked(id uint32) {
	c := m.f.core
	c.homing, c.homingBroken = id, false
	m.at, m.begun, m.gap = c.homed[id], c.looked, false
}

// lastLocked returns the record of the queue behind which to go on; 0: from its head.
// If the record has left the queue, all before it have.
func (m *mover) lastLocked(q *queue) arena.Ref {
	c := m.f.core
	if c.homingBroken {
		c.homingBroken, m.at = false, location{}
	}
	if !c.inQueue(q, m.at) {
		m.at, m.gap = location{}, false
	}
	return m.at.ref
}

// copyQueueLocked starts runs with the queue's records that have no home in a
// block yet. Records of one run, which may share a part, follow each other in the
// queue: nothing may come between them once they are read back. It reports
// whether it stopped early.
func (m *mover) copyQueueLocked(id uint32) (more bool) {
	c := m.f.core
	q := c.queues.at(id)
	if q.host == 0 {
		return false
	}
	h := c.hosts.at(q.host)
	follows := false // the last record that was taken
	dead := c.condemned(q).seq
	cut := func() { follows = false }
	take := func(ref arena.Ref) {
		r := c.record(ref)
		if r.seq() <= dead {
			m.gap = true
			cut() // it needs no home
			return
		}
		if !m.takes(ref) {
			if r.part() == 0 {
				m.gap = true
				if r.seq() > m.maxSeq {
					c.list(id) // for the next round
				}
			}
			cut()
			return
		}
		if !follows {
			m.runs = append(m.runs, Run{Queue: Queue{Host: string(c.name(h)), Crawl: c.crawlOf(q).id, Priority: q.priority}})
			m.where, m.queue = append(m.where, nil), append(m.queue, id)
			follows = true
		}
		last := len(m.runs) - 1
		var copied Record
		copied, m.copy = c.copyRecord(ref, m.copy)
		m.runs[last].Records = append(m.runs[last].Records, copied)
		m.where[last] = append(m.where[last], c.locate(ref))
	}
	gap := m.gap
	for lease := range c.leasesOf(q.host) {
		if l := c.leases.at(lease); l.queue == id && l.record != 0 {
			take(l.record)
			if l.prev != 0 || l.next != 0 {
				cut() // in which order they come back nobody knows
			}
		}
	}
	m.gap = gap // whoever comes back without a home is told of: returnHead
	if h.pins > 0 {
		cut() // what is finishing needs no home, but comes between if that fails: checkpoint
	}
	last, home := m.lastLocked(q), arena.Ref(0)
	looks := 0
	walk := func(ref arena.Ref) (ended bool) {
		for ; ref != 0; ref = c.record(ref).next() {
			if looks == moveLooks || len(m.copy) >= moveBytes {
				return false
			}
			looks++
			c.looked++
			take(ref)
			if last = ref; !m.gap {
				home = ref
			}
		}
		cut() // the chain is between
		return true
	}
	first := q.front.first
	if last != 0 {
		first = c.record(last).next()
	}
	if more = !walk(first); !more && (last == 0 || last != q.back.last) {
		more = !walk(q.back.first)
	}
	if last != 0 {
		m.at = c.locate(last)
	}
	if kept := c.homed[id].ref != 0; home != 0 && (kept || c.looked-m.begun >= keptLooks) {
		c.keepHomed(id, home)
	}
	return more
}
