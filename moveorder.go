// This file chooses the queues that a round visits.

package frontier

import (
	"cmp"
	"slices"
)

// orderAtOnce is how many queues are looked at under one lock while their order
// is found out.
const orderAtOnce = 1024

// queueKey is a queue and what decides where it comes in a round.
type queueKey struct {
	id       uint32
	priority uint8
}

// order finds the queues to be visited, by priority and as old as they are: their
// hosts have their turns in about this order, and records that are read together
// lie together. They are those with records that need a home, and all with
// records in memory if much of it could be evicted.
func (m *mover) order() {
	f := m.f
	f.mu.Lock()
	fresh := f.core.fresh
	f.core.fresh = nil
	all := f.core.resident-f.core.homeless > f.core.cfg.evictOver
	f.mu.Unlock()
	for len(fresh) > 0 {
		n := min(len(fresh), orderAtOnce)
		f.mu.Lock()
		for _, id := range fresh[:n] {
			if q := f.core.queues.at(id); q.listed {
				q.listed = false
				m.visitLocked(id)
			}
		}
		f.mu.Unlock()
		fresh = fresh[n:]
	}
	if all {
		m.visitResident()
	}
	slices.SortFunc(m.keys, func(a, b queueKey) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.id, b.id))
	})
	m.keys = slices.CompactFunc(m.keys, func(a, b queueKey) bool { return a.id == b.id })
}

func (m *mover) visitLocked(id uint32) {
	c := m.f.core
	q := c.queues.at(id)
	m.keys = append(m.keys, queueKey{id, q.priority})
}

// visitResident adds all queues with records in memory.
func (m *mover) visitResident() {
	c := m.f.core
	for id, done := uint32(1), false; !done; {
		m.f.mu.Lock()
		end := min(c.queues.top, id+orderAtOnce-1)
		for ; id <= end; id++ {
			if q := c.queues.at(id); q.host != 0 && (q.front.first != 0 || q.back.first != 0) {
				m.visitLocked(id)
			}
		}
		done = id > c.queues.top
		m.f.mu.Unlock()
	}
}

// relist undoes order after a round that failed: the next one visits the same
// queues.
func (m *mover) relist() {
	c := m.f.core
	for len(m.keys) > 0 {
		n := min(len(m.keys), orderAtOnce)
		m.f.mu.Lock()
		for _, k := range m.keys[:n] {
			if c.queues.at(k.id).host != 0 {
				c.list(k.id)
			}
			delete(c.homed, k.id) // what was copied may have no home
		}
		m.f.mu.Unlock()
		m.keys = m.keys[n:]
	}
}
