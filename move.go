// This file moves records from the log into blocks sorted by host, in rounds, so
// that memory and the log stay bounded.
//
// A round covers all batches up to one. Every record that they admitted and that
// is not finished gets a home in a block, wherever it is: scheduled (movetimed.go),
// waiting or leased. Then a checkpoint ends the log there. Since a record may be handed
// out, finished or handed back at any moment, the round remembers each record
// by its place in memory and its sequence number: if both still agree once the
// block is written, the record is alive and learns its new home, otherwise it is
// finished and its position in the block is marked dead.

package frontier

import (
	"errors"
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/seen"
)

const (
	// minMaxLog is the least that maxLog may be.
	minMaxLog = 64 << 20
	// idleLog is the same as maxLog for a log of which little is left to be moved: most of
	// what it admitted is finished.
	idleLog = 8 << 20
	// moveBytes is how much is copied under one lock, and packed at once.
	moveBytes = 128 << 10
	// moveQueues is how many queues are looked at under one lock.
	moveQueues = 256
	// moveLooks is how many records of a queue are looked at under one lock, and from how many
	// on it is kept where the next round begins.
	moveLooks, keptLooks = 2048, 256
	// settleAtOnce is how many records get their homes under one lock, about.
	settleAtOnce = 512
	// leastRest is the pause after a round that failed. It doubles up to mostRest.
	leastRest, mostRest = time.Second, time.Minute
)

// maxLog is how many bytes the log may have before a round ends it: what must be
// replayed at the next opening. The more a round moves, the more URLs of a host
// it brings together, and the fewer parts must be known.
func (f *Frontier) maxLog() int64 { return max(minMaxLog, f.opts.MemoryBudget/8) }

// wakeMoverLocked starts a round if memory or log want it.
func (f *Frontier) wakeMoverLocked() {
	if f.moveWantedLocked() {
		f.signalMoverLocked()
	}
}

// moveWantedLocked reports whether a round is worth its price, or the only way
// to make room for those who wait.
func (f *Frontier) moveWantedLocked() bool {
	limit := f.residentLimitLocked()
	return f.logBytes > f.maxLog() || f.logBytes > idleLog && f.core.homeless < f.logBytes/8 || f.committer.space != nil && f.core.homeless > 0 ||
		f.core.resident > limit/2 && f.core.homeless > max(limit/8, 1<<20)
}

func (f *Frontier) signalMoverLocked() {
	select {
	case f.committer.move <- struct{}{}:
	default:
	}
}

func (f *Frontier) moveLoop() {
	c := &f.committer
	rest := time.Duration(0) // after the last round, if that failed
	for {
		select {
		case <-c.stop:
			return
		case <-c.move:
		}
		f.mu.Lock()
		limit := f.residentLimitLocked()
		wanted := f.moveWantedLocked()
		f.core.cfg.evictOver = limit / 4
		c.moving = wanted
		if !wanted && !c.busy() { // else the end of the commit lets the waiting look again
			c.stuck = c.space != nil || f.core.resident > limit*8/10 // nothing is left to be moved
			f.freedLocked()
		}
		f.mu.Unlock()
		if !wanted {
			continue
		}
		moved, err := f.moveRound()
		f.mu.Lock()
		c.moving, c.resting = false, err != nil
		idle := !moved && !c.busy() // another round would move as little
		c.stuck = err != nil || f.core.resident > limit*8/10 || idle && c.space != nil
		if moved || c.stuck { // else the same
			f.freedLocked()
		}
		f.mu.Unlock()
		switch {
		case err == nil:
			rest = 0
			continue
		case errors.Is(err, ErrClosed):
			continue
		case !errors.Is(err, errSpoiled): // which was told of
			f.emit(Event{Kind: EventStoreError, Reason: "moving URLs to blocks", Err: err})
		}
		rest = min(max(leastRest, 2*rest), mostRest)
		f.restMover(rest)
	}
}

// restMover waits after a round that failed. Meanwhile Add does not wait for room.
func (f *Frontier) restMover(d time.Duration) {
	c := &f.committer
	over := make(chan struct{})
	timer := f.opts.Clock.AfterFunc(d, func() { close(over) })
	defer timer.Stop()
	select {
	case <-c.stop:
	case <-over:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c.resting = false
	f.signalMoverLocked() // there may be no commit to do so
}

// errSpoiled ends a round during which a commit failed: a record that was
// finishing when the round passed its queue may wait again, without a home.
var errSpoiled = errors.New("frontier: a commit failed during the move")

// errNoProgress ends a round that would go on for ever.
var errNoProgress = errors.New("frontier: a round of moving makes no progress")

// mover is one round.
type mover struct {
	f        *Frontier
	gen      uint32
	through  uint64 // last batch of the round
	maxSeq   uint64 // last record of the round
	failures int    // commits that had failed when the round began

	marks   []Mark    // that the checkpoint covered
	covered *seen.Set // them, and no longer needed

	keys  []queueKey // to be visited
	runs  []Run
	where [][]location // for each record of runs, where it was
	queue []uint32     // for each run
	copy  []byte       // bodies of runs
	moved bool         // something got a home, or left memory

	at    location // the record of the queue under way that was looked at last
	begun uint64   // core.looked when it began with the queue
	gap   bool     // one of them has no home, and gets none in this round
}

// location is where a record was in memory. If the memory was put to another use
// since, its epoch has changed.
type location struct {
	ref   arena.Ref
	epoch uint32
	seq   uint64
}

func (c *core) locate(ref arena.Ref) location {
	return location{ref, c.mem.Epoch(ref), c.record(ref).seq()}
}

// holds reports whether the record that was there still is.
func (c *core) holds(l location) bool {
	return c.mem.Epoch(l.ref) == l.epoch && c.record(l.ref).seq() == l.seq
}

// moveRound does one round. It reports whether that moved anything.
func (f *Frontier) moveRound() (moved bool, err error) {
	f.rounds.Lock()
	defer f.rounds.Unlock()
	fresh := &seen.Set{}
	f.mu.Lock()
	n := f.known.recent.Len()
	f.mu.Unlock()
	fresh.Reserve(n) // it will hold about as many before the next round
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return false, ErrClosed
	}
	f.known.beginRound(fresh)
	m := &mover{f: f, gen: f.gen + 1, through: f.applied.batch, maxSeq: f.applied.seq, failures: f.committer.failures}
	marks := f.applied.marks
	young := f.logMarks.n // those behind marks are of a batch that is being applied
	bytes := f.logBytes
	scheduled := f.core.unplaced
	f.core.unplaced = nil
	for i := marks; i < young; i++ {
		if f.known.keep(f.logMarks.at(i)); i%keepAtOnce == 0 {
			f.mu.Unlock()
			f.mu.Lock()
		}
	}
	f.mu.Unlock()

	err = m.round(scheduled, marks, bytes)
	if err != nil {
		m.relist()
		f.mu.Lock()
		unused := f.known.endRound(false)
		f.mu.Unlock()
		unused.Free()
		return m.moved, err
	}
	m.covered.Free()
	footprint := f.opts.Spill.Footprint()
	f.mu.Lock()
	f.footprint = footprint
	f.mu.Unlock()
	f.offer(m.marks)
	return m.moved, nil
}

// round moves what is there, the first marks of logMarks and bytes of the log.
func (m *mover) round(scheduled []timeItem, marks int, bytes int64) error {
	if err := m.moveScheduled(scheduled); err != nil {
		return err
	}
	m.order()
	for _, k := range m.keys {
		if err := m.add(k.id); err != nil {
			return err
		}
	}
	if err := m.flush(); err != nil {
		return err
	}
	return m.f.checkpoint(m, marks, bytes)
}

// takes reports whether a record in memory belongs to the round and still needs
// a home in a block.
func (m *mover) takes(ref arena.Ref) bool {
	r := m.f.core.record(ref)
	return r.part() == 0 && r.seq() != 0 && r.seq() <= m.maxSeq
}

// copyRecord appends a record's body to bodies, where the copy has it.
func (c *core) copyRecord(ref arena.Ref, bodies []byte) (Record, []byte) {
	r := c.record(ref)
	at := len(bodies)
	bodies = append(bodies, r.body()...)
	return Record{Seq: r.seq(), Body: bodies[at:len(bodies):len(bodies)]}, bodies
}

// flush packs the runs, tells the records their new homes, and drops from
// memory those that need not be there.
func (m *mover) flush() error {
	if len(m.runs) == 0 {
		return nil
	}
	parts, err := m.f.opts.Spill.Pack(m.gen, m.runs)
	if err != nil {
		return err
	}
	m.moved = true
	f := m.f
	f.mu.Lock()
	ids := make([][]uint32, len(m.runs))
	for i := range m.runs { // all parts of a block before any of them ends
		for _, p := range parts[i] {
			ids[i] = append(ids[i], f.core.addPart(p))
		}
	}
	for i, settled := 0, 0; i < len(m.runs); i++ {
		if settled >= settleAtOnce {
			settled = 0
			f.mu.Unlock()
			f.mu.Lock()
		}
		settled += len(m.runs[i].Records)
		m.settleLocked(i, parts[i], ids[i])
		m.evictLocked(m.queue[i])
	}
	f.freedLocked()
	f.mu.Unlock()
	clear(m.runs)
	m.runs, m.where, m.queue, m.copy = m.runs[:0], m.where[:0], m.queue[:0], m.copy[:0]
	return nil
}

// settleLocked tells the records of run i where they are now.
func (m *mover) settleLocked(i int, parts []Part, ids []uint32) {
	c := m.f.core
	at := 0
	dead := uint64(0)
	if q := c.queues.at(m.queue[i]); q.host != 0 {
		dead = c.condemned(q).seq
	}
	for n, p := range parts {
		id := ids[n]
		for pos := range int(p.Count) {
			w := m.where[i][at]
			at++
			if w.seq > dead && c.holds(w) {
				c.setHome(w.ref, id, pos)
			} else {
				c.kill(id, pos)
			}
		}
	}
}

// evictLocked drops from memory the URLs of a queue that are safe in blocks. The
// next few of a bound host stay. It reports whether there are more.
func (m *mover) evictLocked(id uint32) (more bool) {
	c := m.f.core
	before := c.resident
	more = c.queues.at(id).host != 0 && c.trim(id)
	m.moved = m.moved || c.resident < before
	return more
}
