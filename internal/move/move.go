// Package move moves records from the log into blocks sorted by host, in rounds, so that memory and
// the log stay bounded.
//
// A round covers all records up to one. Each unfinished record gets a home in a block, whether it
// is scheduled, waiting or leased. Then a checkpoint, made by the caller, ends the log there. Since
// a record may be handed out, finished or handed back at any moment, the round remembers each by
// its location in memory and its sequence number: if both still agree once the block is written,
// the record is alive and its new home is set; otherwise it is finished, and the round marks its
// position in the block as dead.
//
// The package owns what rounds remember of queues (Mover), and one round (Round). It identifies queues
// by number, and hosts by name. Callers of a Mover hold the frontier's lock; a Round takes that lock
// itself, through its Source, in steps of a bounded number of records, and writes blocks without it.
package move

import (
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/block"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// minLog is the minimum of MaxLog.
	minLog = 64 << 20
	// idleLog replaces MaxLog for a log in which little is left to be moved, because most of its
	// records are finished.
	idleLog = 8 << 20
	// homedSize is the approximate memory of an entry of Mover.homed.
	homedSize = 64
)

// MaxLog returns the size in bytes, for a memory budget, at which a round ends the log: what must
// be replayed at the next opening. The more a round moves, the more URLs of a host it groups
// together, and the fewer parts must be stored.
func MaxLog(budget int64) int64 { return max(minLog, budget/8) }

// Load is the data that decides whether a round is worth its cost.
type Load struct {
	Log      int64 // bytes of the log
	MaxLog   int64
	Used     int64 // bytes of records in memory
	Limit    int64 // their maximum memory
	Homeless int64 // part of these, in no block
	Full     bool  // a caller waits for room
}

// Wanted reports whether a round is worth its cost, or is the only way to make room.
func (l Load) Wanted() bool {
	return l.Log > l.MaxLog || l.Log > idleLog && l.Homeless < l.Log/8 || l.Full && l.Homeless > 0 ||
		l.Used > l.Limit/2 && l.Homeless > max(l.Limit/8, 1<<20)
}

// Mover records what is left for the next round, and what the last ones have seen.
//
// For a large queue it stores where the last walk ended: that record is in memory and has a home,
// as have all before it, so the next round begins after it. When the record leaves its queue, so
// have those before it, and the next walk starts at the head. After putting a record without a home
// at the head, call ToHead.
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
	looked uint64                     // number of queue records that rounds have examined
}

// New returns a Mover of records that wait in queues, or for their time.
func New(records *record.Arena, blocks *block.Table, queues *fifo.Store, scheduled *timed.Records, timed *timed.Blocks) Mover {
	return Mover{records: records, blocks: blocks, fifo: queues, scheduled: scheduled, timed: timed}
}

// List records that a queue has a record that needs a home in a block. listed belongs to the queue:
// it stays set until a round has visited it.
func (m *Mover) List(id uint32, listed *bool) {
	if !*listed {
		*listed = true
		m.fresh = append(m.fresh, id)
	}
}

// ToHead records that a record is put at the head of a queue, before others that may have a home.
func (m *Mover) ToHead(id uint32, ref arena.Ref) {
	if m.records.At(ref).Part() == 0 {
		delete(m.homed, id)
		m.broken = m.broken || m.homing == id
	}
}

// Ended records that a queue has ended.
func (m *Mover) Ended(id uint32) { delete(m.homed, id) }

// Looked returns the number of queue records that rounds have examined.
func (m *Mover) Looked() uint64 { return m.looked }

// Size returns the memory in bytes.
func (m *Mover) Size() int64 { return int64(len(m.homed)) * homedSize }

// Check verifies the data about a queue while no round is in progress, and reports violations.
// Records up to number dead need no home.
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

// markLog is what a mark without an admission counts as in the log, so that a
// round begins before there are more young marks than with admissions.
const markLog = 64

// LogBytes is what a batch takes in the log, about.
func LogBytes(b *storage.Batch) int64 {
	n := int64(32 + 16*len(b.Finish) + markLog*len(b.Marks))
	for i := range b.Admit {
		n += int64(len(b.Admit[i].Body) + len(b.Admit[i].Host) + 24)
	}
	return n
}
