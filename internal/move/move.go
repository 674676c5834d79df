// Package move moves records from the log into blocks sorted by host, in rounds, so that
// memory and the log stay bounded.
//
// A round covers all records up to one. Each that is not finished gets a home in a block,
// wherever it is: scheduled, waiting or leased. Then a checkpoint, which is the caller's,
// ends the log there. Since a record may be handed out, finished or handed back at any
// moment, the round remembers each by its place in memory and its sequence number: if
// both still agree once the block is written, the record is alive and learns its new
// home; otherwise it is finished, and the round marks its position in the block as dead.
//
// The package owns what rounds have seen of queues (Mover), and one round (Round). It
// knows queues by their numbers, and hosts only as names. Callers of a Mover hold the
// frontier's lock; a Round takes that lock itself, through its Source, for steps of a
// bounded number of records, and writes blocks without it.
package move

import (
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/block"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timed"
)

const (
	// minLog is the least that MaxLog may be.
	minLog = 64 << 20
	// idleLog is the same as MaxLog for a log of which little is left to be moved: most of
	// what it admitted is finished.
	idleLog = 8 << 20
	// homedSize is what an entry of Mover.homed takes in memory, about.
	homedSize = 64
)

// MaxLog is how many bytes the log may have before a round ends it, with so much memory:
// what must be replayed at the next opening. The more a round moves, the more URLs of a
// host it brings together, and the fewer parts must be known.
func MaxLog(budget int64) int64 { return max(minLog, budget/8) }

// Load is what decides whether a round is worth its price.
type Load struct {
	Log      int64 // bytes of the log
	MaxLog   int64
	Used     int64 // bytes of records in memory
	Limit    int64 // that they may have
	Homeless int64 // of them, in no block
	Full     bool  // a caller waits for room
}

// Wanted reports whether a round is worth its price, or the only way to make room.
func (l Load) Wanted() bool {
	return l.Log > l.MaxLog || l.Log > idleLog && l.Homeless < l.Log/8 || l.Full && l.Homeless > 0 ||
		l.Used > l.Limit/2 && l.Homeless > max(l.Limit/8, 1<<20)
}

// Mover knows what is left for the next round, and what the last ones have seen.
//
// Of a large queue it keeps where the last walk ended: that record is in memory and has a
// home, as all before it, so the next round begins behind it. When the record leaves its
// queue, what was before it has left, too, and a walk from the head is as good. Whoever
// puts a record without a home at the head says so with ToHead.
//
// Not safe for concurrent use.
type Mover struct {
	records   *record.Arena
	blocks    *block.Table
	fifo      *fifo.Store
	scheduled *timed.Records
	timed     *timed.Blocks

	fresh  []uint32                   // queues with records that need a home; some may have ended
	homed  map[uint32]record.Location // by large queue: where the last walk ended
	homing uint32                     // queue that a round is in
	broken bool                       // a record without a home came to its head
	looked uint64                     // records of queues that rounds have looked at
}

// New returns a Mover of records that wait in queues, or for their time.
func New(records *record.Arena, blocks *block.Table, queues *fifo.Store, scheduled *timed.Records, timed *timed.Blocks) Mover {
	return Mover{records: records, blocks: blocks, fifo: queues, scheduled: scheduled, timed: timed}
}

// List notes that a queue has a record that needs a home in a block. listed is the
// queue's: it stays set until a round has been there.
func (m *Mover) List(id uint32, listed *bool) {
	if !*listed {
		*listed = true
		m.fresh = append(m.fresh, id)
	}
}

// ToHead notes that a record comes to the head of a queue, before others that may have a
// home.
func (m *Mover) ToHead(id uint32, ref arena.Ref) {
	if m.records.At(ref).Part() == 0 {
		delete(m.homed, id)
		m.broken = m.broken || m.homing == id
	}
}

// Ended notes that a queue has ended.
func (m *Mover) Ended(id uint32) { delete(m.homed, id) }

// Looked is how many records of queues rounds have looked at.
func (m *Mover) Looked() uint64 { return m.looked }

// Size is how many bytes this takes.
func (m *Mover) Size() int64 { return int64(len(m.homed)) * homedSize }

// Check verifies what is known of a queue while no round is under way, and reports what
// is wrong. Records up to number dead need no home.
func (m *Mover) Check(id uint32, q Queue, dead uint64, bad func(format string, args ...any)) {
	homed := m.homed[id]
	if !m.fifo.In(q.Queue, homed) {
		homed = record.Location{}
	}
	for ref := range m.fifo.After(q.Queue, 0) {
		if r := m.records.At(ref); r.Part() == 0 {
			if !*q.Listed && r.Seq() > dead {
				bad("F5: queue %d has a record without a home and is not listed", id)
			}
			if homed.Ref != 0 {
				bad("F5: queue %d has a record without a home before one up to which all have homes", id)
			}
		}
		if homed.Ref == ref {
			homed.Ref = 0
		}
	}
	if homed.Ref != 0 {
		bad("F5: queue %d: the record up to which all have homes is not in it", id)
	}
}
