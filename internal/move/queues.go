// This file walks through a queue for a round, once, a few records at a time under the lock, and
// packs what was collected.

package move

import (
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// copyBytes is how much is copied under one lock, and packed at once.
	copyBytes = 128 << 10
	// packQueues is how many runs are packed at once.
	packQueues = 256
	// looksAtOnce is how many records of a queue are looked at under one lock, and keptLooks
	// from how many on it is kept where the next round begins.
	looksAtOnce, keptLooks = 2048, 256
	// settleAtOnce is how many records get their homes under one lock, about.
	settleAtOnce = 512
)

// add copies a queue's records of this round, and packs what was collected.
func (r *Round) add(id uint32) error {
	m := r.m
	for begun, more := false, true; more; begun = true {
		r.src.Lock()
		if r.src.Closed() {
			r.src.Unlock()
			return storage.ErrClosed // everything is in the log; Close need not wait
		}
		if !begun {
			r.beginQueue(id)
		}
		looked := m.looked
		more = r.copyQueue(id)
		if more && m.looked == looked && len(r.runs) == 0 {
			r.src.Unlock()
			return ErrNoProgress // it would stop there again
		}
		left := r.trim(id)
		r.src.Unlock()
		for left {
			r.src.Lock()
			left = !r.src.Closed() && r.trim(id)
			r.src.Unlock()
		}
		copied := len(r.queue) > 0 && r.queue[len(r.queue)-1] == id // nothing may be copied twice
		if more && copied || len(r.copy) >= copyBytes || len(r.runs) >= packQueues {
			if err := r.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginQueue begins with a queue where the last round ended.
func (r *Round) beginQueue(id uint32) {
	m := r.m
	m.homing, m.broken = id, false
	r.at, r.begun, r.gap = m.homed[id], m.looked, false
}

// last returns the record of the queue after which to continue; 0: from its head. If the record has
// left the queue, so have all before it.
func (r *Round) last(q Queue) arena.Ref {
	if r.m.broken {
		r.m.broken, r.at = false, record.Location{}
	}
	if !r.m.fifo.In(q.Queue, r.at) {
		r.at, r.gap = record.Location{}, false
	}
	return r.at.Ref
}

// copyQueue starts runs with the queue's records that have no home in a block yet. Records of one
// run, which may share a part, are adjacent in the queue: nothing may come between them once they
// are read back. It reports whether it stopped early.
func (r *Round) copyQueue(id uint32) (more bool) {
	m := r.m
	q := r.src.Queue(id)
	if q.Queue == nil {
		return false
	}
	r.follows = false
	dead := r.src.Dead(id)
	gap := r.gap
	r.leased = r.src.Leased(id, r.leased[:0])
	for _, l := range r.leased {
		r.take(id, q, l.Ref, dead)
		if l.Others {
			r.follows = false // they may come back in any order
		}
	}
	r.gap = gap // ToHead records what comes back without a home
	if r.src.Finishing(id) {
		r.follows = false // a finishing record needs no home, but comes between if that fails
	}
	last, home := r.last(q), arena.Ref(0)
	looks := 0
	for ref, behind := range m.fifo.After(q.Queue, last) {
		if looks == looksAtOnce || len(r.copy) >= copyBytes {
			more = true
			break
		}
		if behind {
			r.follows = false // the chain is between
		}
		looks++
		m.looked++
		r.take(id, q, ref, dead)
		if last = ref; !r.gap {
			home = ref
		}
	}
	if last != 0 {
		r.at = m.records.Locate(last)
	}
	if kept := m.homed[id].Ref != 0; home != 0 && (kept || m.looked-r.begun >= keptLooks) {
		m.keepHomed(id, home)
	}
	return more
}

// take copies a record of a queue whose records up to number dead are deleted, if it needs a home.
func (r *Round) take(id uint32, q Queue, ref arena.Ref, dead uint64) {
	x := r.m.records.At(ref)
	if x.Seq() <= dead {
		r.gap, r.follows = true, false // it needs no home
		return
	}
	if !r.takes(x) {
		if x.Part() == 0 {
			r.gap = true
			if x.Seq() > r.maxSeq {
				r.m.List(id, q.Listed) // for the next round
			}
		}
		r.follows = false
		return
	}
	if !r.follows {
		var name storage.Queue
		name, r.names = r.src.Name(id, r.names)
		r.runs = append(r.runs, storage.Run{Queue: name})
		r.first, r.queue = append(r.first, len(r.records)), append(r.queue, id)
		r.follows = true
	}
	var copied storage.Record
	copied, r.copy = copyRecord(x, r.copy)
	r.records, r.where = append(r.records, copied), append(r.where, r.m.records.Locate(ref))
}

// keepHomed records that a queue's records up to ref have homes, or get them with the next flush.
func (m *Mover) keepHomed(id uint32, ref arena.Ref) {
	if m.homed == nil {
		m.homed = map[uint32]record.Location{}
	}
	m.homed[id] = m.records.Locate(ref)
}

// takes reports whether a record in memory belongs to the round and still needs a home in a block.
func (r *Round) takes(x record.Resident) bool {
	return x.Part() == 0 && x.Seq() != 0 && x.Seq() <= r.maxSeq
}

// copyRecord appends a record's body to bodies, and returns the copy's location there.
func copyRecord(x record.Resident, bodies []byte) (storage.Record, []byte) {
	at := len(bodies)
	bodies = append(bodies, x.Body()...)
	return storage.Record{Seq: x.Seq(), Body: bodies[at:len(bodies):len(bodies)]}, bodies
}

// flush packs the runs, gives the records their new homes, and drops from memory those
// that need not be there.
func (r *Round) flush() error {
	if len(r.runs) == 0 {
		return nil
	}
	r.first = append(r.first, len(r.records))
	for i := range r.runs {
		from, to := r.first[i], r.first[i+1]
		r.runs[i].Records = r.records[from:to:to]
	}
	parts, err := r.store.Pack(r.gen, r.runs)
	if err != nil {
		return err
	}
	r.moved = true
	r.src.Lock()
	r.parts = r.parts[:0]
	for i := range parts { // all parts of a block before any of them ends
		for _, p := range parts[i] {
			r.parts = append(r.parts, r.m.blocks.AddPart(p))
		}
	}
	ids := r.parts
	for i, settled := 0, 0; i < len(r.runs); i++ {
		if settled >= settleAtOnce {
			settled = 0
			r.src.Unlock()
			r.src.Lock()
		}
		settled += len(r.runs[i].Records)
		r.settle(i, parts[i], ids[:len(parts[i])])
		ids = ids[len(parts[i]):]
		r.trim(r.queue[i])
	}
	r.src.Freed()
	r.src.Unlock()
	clear(r.runs)
	clear(r.records)
	r.runs, r.records, r.where, r.first = r.runs[:0], r.records[:0], r.where[:0], r.first[:0]
	r.queue, r.copy = r.queue[:0], r.copy[:0]
	r.names = make([]byte, 0, len(r.names)) // a store may keep a name
	return nil
}

// settle gives the records of run i their homes.
func (r *Round) settle(i int, parts []storage.Part, ids []uint32) {
	m := r.m
	at := r.first[i]
	dead := uint64(0)
	if id := r.queue[i]; r.src.Queue(id).Queue != nil {
		dead = r.src.Dead(id)
	}
	for n, p := range parts {
		id := ids[n]
		for pos := range int(p.Count) {
			w := r.where[at]
			at++
			if w.Seq > dead && m.records.Holds(w) {
				m.fifo.SetHome(w.Ref, id, pos)
			} else {
				m.blocks.Kill(id, pos)
			}
		}
	}
}

// trim drops from memory the records of a queue that are safe in blocks. It reports
// whether there are more.
func (r *Round) trim(id uint32) (more bool) {
	before := r.m.records.Used()
	more = r.src.Queue(id).Queue != nil && r.src.Trim(id)
	r.moved = r.moved || r.m.records.Used() < before
	return more
}
