// Package ledger makes operations durable, and only then visible. It owns the log: operations from their submission
// until they are settled, their numbers and those of batches, and the rounds that move URLs from the log to blocks
// and end it with a checkpoint.
//
// Without a Spill there is nothing to wait for. With one, a single goroutine takes all waiting operations, writes them
// as one batch, and applies them to package mercator: callers share the cost of a write. If a write fails, its
// operations and all that queued behind it are undone and get the error, since an Add behind it may have taken URLs
// of the failed batch for known.
//
// If the disk is full, only operations that need room fail, and those that free memory
// and disk are committed: callers share the cost of a write, not its failure.
//
// A Ledger has the frontier's lock. Methods need it held, and hold it throughout, unless they say otherwise; those
// whose names end with Yielding give it up in between.
package ledger

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/commit"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/known"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/recovery"
	"github.com/seed-7440039f/frontier/internal/room"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/internal/watchlock"
	"github.com/seed-7440039f/frontier/storage"
)

// ErrUnsettled is why a call returns before its operation is settled.
var ErrUnsettled = errors.New("frontier: not known whether it is committed")

// Present is what all ask that share the frontier's lock.
type Present interface {
	Now() int64   // the present; it never decreases
	Last() int64  // when Now was called last
	Closed() bool // no goroutine commits any more
	Limit() int64 // bytes of URLs that may be in memory with a Spill
	Dispatch()    // gives calls that wait what they may have now
	Emit(e event.Event)
	Lost(err error) // the Spill may have to be opened again
}

// Frontier is what a ledger asks of the frontier.
type Frontier interface {
	Present
	Share()                          // gives marks of popular URLs what the others leave of the memory
	Sweep(ds ...*tombstone.Deletion) // looks for what deletions have left dead
	Failed(err error)                // a commit failed
	Works()                          // a commit succeeded

	Report(what string, err error) // an event; called without the lock
}

// Config is what a Ledger works with.
type Config struct {
	Mu        *watchlock.Mutex // the frontier's
	Core      *mercator.Core
	Known     *known.URLs
	Notes     *timed.Notes
	Spill     storage.Spill // nil: there is nothing to wait for
	MaxLog    int64         // bytes of the log from which on it is ended
	HostNames uint64        // fingerprint of the function that names hosts
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	Logger    *slog.Logger
}

// Ledger is the log of a frontier.
type Ledger struct {
	Config
	up Frontier

	queue    commit.Log[*Op]
	replies  commit.Replies
	unwaited bool           // no call waits for the Spill any more
	work     sync.WaitGroup // goroutines
	stop     chan struct{}  // closed by Stop; nil before Start

	pending  int               // operations that were submitted and are not settled
	seq      uint64            // of the last admission
	again    map[uint64]*Entry // by number of a record: what a Force that met its lease makes of it
	stepping int               // operations without a Spill that are being applied in steps
	stepped  chan struct{}     // closed when there are none; nil if nothing waits

	batchID  uint64   // of the last one
	saving   []uint32 // hosts whose rows the batch under way has so that they may leave
	failures int      // commits that failed
	epoch    uint64   // how often the store was opened

	// Rounds are held for a round of moving. The lock is taken after it.
	Rounds    sync.Mutex
	room      room.Room
	move      chan struct{} // has a token when records should move to blocks
	footprint int64         // bytes that the Spill takes, or will take: what a checkpoint foresaw, or less since
	logBytes  int64         // committed since the last checkpoint
	gen       uint32        // generation of the last checkpoint
	applied   struct {      // what of the log is in memory as a whole
		batch, seq uint64
		marks      int // of the list in Known
	}
}

// New returns an empty ledger.
func New(c Config, up Frontier) *Ledger {
	l := &Ledger{Config: c, up: up, again: map[uint64]*Entry{}}
	if c.Spill != nil {
		l.footprint = c.Spill.Footprint()
	}
	return l
}

// Open takes over what was found in the Spill, and commits that it is in use again. counts says whether the numbers
// of URLs are wanted. No other goroutine has the frontier yet; the lock is not held.
func (l *Ledger) Open(r *recovery.Recovery, counts bool) error {
	l.seq, l.gen, l.logBytes = r.Seq, r.Gen, r.LogBytes
	l.epoch = r.Epoch + 1
	l.applied.seq, l.applied.marks = l.seq, l.Known.Logged()
	b := &storage.Batch{
		ID:   r.Last + 1,
		Time: instant.Millis(l.Core.Clock.Start()),
		Rows: []storage.Row{l.MetaRow(false)},
		Drop: l.Core.Blocks.TakeDrops(),
	}
	if !counts && r.Counted {
		b.Rows = append(b.Rows, row.Counted(false))
	}
	l.count(nil, b) // what was found dead
	err := l.commitCounted(b, l.seq)
	if l.Core.EndCounting(err == nil); err != nil {
		return fmt.Errorf("frontier: open: %w", err)
	}
	l.batchID, l.applied.batch = b.ID, b.ID
	for rows := range r.Stale() {
		if err := l.CommitOpening(rows); err != nil {
			return err
		}
	}
	return nil
}

// CommitOpening commits rows at an opening.
func (l *Ledger) CommitOpening(rows []storage.Row) error {
	b := &storage.Batch{Time: instant.Millis(l.Core.Clock.Start()), Rows: rows}
	if err := l.CommitAlone(b); err != nil {
		return fmt.Errorf("frontier: open: %w", err)
	}
	l.applied.batch = l.batchID
	return nil
}

// CommitAlone commits b, if it has any rows, before Start or after Stop. It is called without the lock.
func (l *Ledger) CommitAlone(b *storage.Batch) error {
	if len(b.Rows) == 0 {
		return nil
	}
	b.ID = l.batchID + 1
	if err := l.Spill.Commit(b); err != nil {
		return err
	}
	l.batchID = b.ID
	return nil
}

// Start starts the goroutines that write to the Spill.
func (l *Ledger) Start() {
	l.queue = commit.New(func(o *Op) int { return o.Bytes }, func(o *Op) bool { return o.run != nil })
	l.move, l.stop = make(chan struct{}, 1), make(chan struct{})
	l.work.Go(func() { l.queue.Run(l.stop, l.commitGroup) })
	l.work.Go(l.moveLoop)
}

// Stop returns when all that was submitted is settled. It is called once, without the lock, after the frontier
// says that it is closed.
func (l *Ledger) Stop() {
	close(l.stop)
	l.work.Wait()
}

// Stopping is closed by Stop.
func (l *Ledger) Stopping() <-chan struct{} { return l.stop }

// ReleaseAll lets all calls that wait for a commit return, now and from now on.
func (l *Ledger) ReleaseAll() {
	l.unwaited = true
	for o := range l.queue.Unsettled() {
		o.release()
	}
}

// Pending is how many operations were submitted and are not settled.
func (l *Ledger) Pending() int { return l.pending }

// Busy reports whether something is on its way to the disk.
func (l *Ledger) Busy() bool { return l.queue.Busy() }

// Bytes is the memory of what is on its way to the disk.
func (l *Ledger) Bytes() int64 { return l.queue.Bytes() }

// Seq is the sequence number of the last admission.
func (l *Ledger) Seq() uint64 { return l.seq }

// Epoch is how often the store was opened.
func (l *Ledger) Epoch() uint64 { return l.epoch }

// Saving reports whether rows of hosts are being written so that these may leave.
func (l *Ledger) Saving() bool { return len(l.saving) > 0 }

// MetaRow returns the row about the frontier itself: key of the fingerprints, how often it was opened, whether it
// was closed, last sequence number, generation, when it was last opened after a crash or in another's place, and
// how hosts are named.
func (l *Ledger) MetaRow(clean bool) storage.Row { return l.metaRow(l.gen, clean) }

func (l *Ledger) metaRow(gen uint32, clean bool) storage.Row {
	c := l.Core
	m := row.Meta{Key: c.Key, Epoch: l.epoch, Clean: clean, Seq: l.seq, Gen: gen, Hosts: l.HostNames}
	if c.ReopenedAt != mercator.NotReopened {
		m.Held = uint64(instant.Millis(c.Clock.Wall(c.ReopenedAt)))
	}
	return m.Row()
}

// yield gives the lock up for a moment.
func (l *Ledger) yield() {
	l.Mu.Unlock()
	l.Mu.Lock()
}

// now is the present as batches have it.
func (l *Ledger) now() int64 { return instant.Millis(l.Core.Clock.Wall(l.up.Now())) }

// BeginSteps notes that entries are judged or applied in steps between which others have the lock.
func (l *Ledger) BeginSteps() { l.stepping++ }

// EndSteps ends what BeginSteps began.
func (l *Ledger) EndSteps() {
	if l.stepping--; l.stepping == 0 && l.stepped != nil {
		close(l.stepped)
		l.stepped = nil
	}
}

// Stepped returns nil if there are no such steps under way, and otherwise a channel that is closed when they are over.
func (l *Ledger) Stepped() <-chan struct{} {
	if l.stepping == 0 {
		return nil
	}
	if l.stepped == nil {
		l.stepped = make(chan struct{})
	}
	return l.stepped
}

// Again returns what a record comes again as when it has ended, because a Force met a lease of it; nil if none did.
// Commits end the record and what this says together.
func (l *Ledger) Again(ref arena.Ref) *Entry {
	if len(l.again) == 0 || ref == 0 {
		return nil
	}
	return l.again[l.Core.Records.At(ref).Seq()]
}

// ComesAgain sets what a record comes again as, and returns what undoes that.
func (l *Ledger) ComesAgain(seq uint64, as *Entry) (undo func()) {
	before := l.again[seq]
	l.again[seq] = as
	return func() {
		if before == nil {
			delete(l.again, seq)
			return
		}
		l.again[seq] = before
	}
}
