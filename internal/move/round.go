// This file begins and ends a round, and chooses the queues that it visits.

package move

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// orderAtOnce is how many queues are looked at under one lock while their order is found out.
	orderAtOnce = 512
	// deadAtOnce is how many blocks' finished positions are copied under one lock.
	deadAtOnce = 1024
)

// ErrNoProgress ends a round that would never end.
var ErrNoProgress = errors.New("frontier: a round of moving makes no progress")

// Source provides the records of a round. Lock and Unlock are the frontier's lock, which all other
// methods need.
type Source interface {
	sync.Locker
	Closed() bool

	// Top returns the highest number of a queue, Queue the queue with a number, or the zero Queue
	// if it has ended.
	Top() uint32
	Queue(id uint32) Queue
	// Name names a queue. The host's name is appended to names, and lies there.
	Name(id uint32, names []byte) (storage.Queue, []byte)
	// Leased appends the leased records of a queue.
	Leased(id uint32, to []Leased) []Leased
	// Finishing reports whether a completion of a queue's host is on its way to disk.
	Finishing(id uint32) bool
	// Dead returns the number up to which the records of a queue are deleted. DeadOf is the same
	// for a queue that may have ended.
	Dead(id uint32) uint64
	DeadOf(q storage.Queue) uint64
	// Trim drops the records of a queue from memory that are safe in blocks, except the next few of
	// a bound host. It reports whether there are more.
	Trim(id uint32) (more bool)

	// Soon is a date: records that are scheduled up to it stay in memory.
	Soon() int64
	// Millis is the Unix time of a date.
	Millis(date int64) int64
	// Dismiss drops a scheduled record from memory; it remains on disk.
	Dismiss(ref arena.Ref)

	// Freed lets callers look again that wait for room.
	Freed()
}

// Leased is a leased record.
type Leased struct {
	Ref    arena.Ref
	Others bool // its host has other leases
}

// Queue is what a round needs to know about a queue.
type Queue struct {
	*fifo.Queue
	Priority uint8
	Listed   *bool // see Mover.List
}

// Store writes blocks, as a storage.Spill does.
type Store interface {
	Pack(gen uint32, runs []storage.Run) ([][]storage.Part, error)
	PackTimed(gen uint32, records []storage.TimedRecord) ([]storage.TimedBlock, error)
}

// Round is one round.
type Round struct {
	m      *Mover
	src    Source
	store  Store
	gen    uint32
	maxSeq uint64 // last record of the round
	keep   int64  // memory, in bytes, for records that are also in blocks

	scheduled []timeheap.Item // records in no block, to be moved
	keys      []queueKey      // of queues, to be visited
	runs      []storage.Run
	records   []storage.Record  // of runs, one run behind the other
	where     []record.Location // for each record, where it was
	first     []int             // for each run, its first record
	queue     []uint32          // for each run
	copy      []byte            // bodies of runs
	names     []byte            // of their hosts
	parts     []uint32          // numbers of the parts that they become
	leased    []Leased          // of the current queue
	moved     bool

	at    record.Location // last examined record of the current queue
	begun uint64          // Mover.looked when it began with the queue
	gap   bool            // one of them has no home, and gets none in this round

	follows bool // the record of the current queue before this one was taken, so this one may join it

	dirty []uint32 // blocks whose finished positions TakeDead returned
}

// Begin begins a round of generation gen for all records up to number maxSeq. If the records in
// blocks take more memory than keep, it visits all queues.
func (m *Mover) Begin(src Source, store Store, gen uint32, maxSeq uint64, keep int64) *Round {
	return &Round{m: m, src: src, store: store, gen: gen, maxSeq: maxSeq, keep: keep, scheduled: m.scheduled.TakeHomeless()}
}

// Run moves the records. It takes the lock. Afterwards the caller ends the log, or calls Undo.
func (r *Round) Run() error {
	if err := r.moveScheduled(); err != nil {
		return err
	}
	r.order()
	for _, k := range r.keys {
		if err := r.add(k.id); err != nil {
			return err
		}
	}
	return r.flush()
}

// Moved reports whether something got a home, or left memory.
func (r *Round) Moved() bool { return r.moved }

// Undo ends a round after its failure or that of its checkpoint: the next round visits the same
// queues. It takes the lock.
func (r *Round) Undo() {
	for len(r.keys) > 0 {
		n := min(len(r.keys), orderAtOnce)
		r.src.Lock()
		for _, k := range r.keys[:n] {
			if q := r.src.Queue(k.id); q.Queue != nil {
				r.m.List(k.id, q.Listed)
			}
			delete(r.m.homed, k.id) // what was copied may have no home
		}
		r.src.Unlock()
		r.keys = r.keys[n:]
	}
}

// TakeDead returns the finished positions of blocks that changed since the last checkpoint. The
// caller holds the lock, which is released between steps: records that finish meanwhile are in the
// log, and may be in the result, too.
func (r *Round) TakeDead() (dead []storage.DeadBits) {
	r.dirty = r.m.blocks.TakeDirty()
	r.eachDirty(func(id uint32) {
		if d, ok := r.m.blocks.Clean(id); ok {
			dead = append(dead, d)
		}
	})
	return dead
}

// PutDead undoes TakeDead. It releases the lock as TakeDead does.
func (r *Round) PutDead() { r.eachDirty(r.m.blocks.Soil) }

func (r *Round) eachDirty(fn func(id uint32)) {
	for i, id := range r.dirty {
		if i%deadAtOnce == deadAtOnce-1 {
			r.src.Unlock()
			r.src.Lock()
		}
		fn(id)
	}
}

// queueKey is a queue with its place in the order of a round.
type queueKey struct {
	id       uint32
	priority uint8
}

// order finds the queues to visit, by priority and age: their hosts get their turns in about this
// order, and records that are read together should be stored together. It selects queues with records
// that need a home, and all queues with records in memory if many of these could be evicted.
func (r *Round) order() {
	m := r.m
	r.src.Lock()
	fresh := m.fresh
	m.fresh = nil
	all := m.records.Used()-m.records.Homeless() > r.keep
	r.src.Unlock()
	r.keys = make([]queueKey, 0, len(fresh))
	for len(fresh) > 0 {
		n := min(len(fresh), orderAtOnce)
		r.src.Lock()
		for _, id := range fresh[:n] {
			if q := r.src.Queue(id); q.Queue != nil && *q.Listed {
				*q.Listed = false
				r.keys = append(r.keys, queueKey{id, q.Priority})
			}
		}
		r.src.Unlock()
		fresh = fresh[n:]
	}
	if all {
		r.visitResident()
	}
	slices.SortFunc(r.keys, func(a, b queueKey) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.id, b.id))
	})
	r.keys = slices.CompactFunc(r.keys, func(a, b queueKey) bool { return a.id == b.id })
}

// visitResident adds all queues with records in memory.
func (r *Round) visitResident() {
	for id, done := uint32(1), false; !done; {
		r.src.Lock()
		end := min(r.src.Top(), id+orderAtOnce-1)
		for ; id <= end; id++ {
			if q := r.src.Queue(id); q.Queue != nil && q.Resident() {
				r.keys = append(r.keys, queueKey{id, q.Priority})
			}
		}
		done = id > r.src.Top()
		r.src.Unlock()
	}
}
