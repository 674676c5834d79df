// This file moves records from the log into blocks, in rounds. Package move does a round; this file
// decides when one is worth its cost, gives it the queues, and writes the checkpoint that ends the log.

package ledger

import (
	"errors"
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/room"
	"github.com/seed-7440039f/frontier/internal/seen"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// leastRest is the pause after a round that failed. It doubles up to MostRest.
	leastRest, MostRest = time.Second, time.Minute
	// keepAtOnce is how many marks outlive a round under one lock.
	keepAtOnce = 1024
	// LeastLimit is a limit of memory below which hosts and marks alone use the budget up.
	LeastLimit = 2 << 20
	// offerAtOnce is how many marks become popular under one lock.
	offerAtOnce = 128
)

// WakeMover starts a round if memory or log want it.
func (l *Ledger) WakeMover() {
	if l.moveWanted() {
		l.SignalMover()
	}
}

// moveWanted reports whether a round is worth its cost, or the only way to make
// room for callers that wait.
func (l *Ledger) moveWanted() bool {
	c := l.Core
	x := move.Load{
		Log: l.logBytes, MaxLog: l.MaxLog,
		Used: c.Records.Used(), Limit: l.up.Limit(), Homeless: c.Records.Homeless(),
		Full: l.room.Waited(),
	}
	x.Full = x.Full || x.Limit < LeastLimit // Add refuses: hosts of finished URLs leave with these
	return x.Wanted()
}

// SignalMover starts a round if one is wanted.
func (l *Ledger) SignalMover() {
	select {
	case l.move <- struct{}{}:
	default:
	}
}

func (l *Ledger) moveLoop() {
	rest := time.Duration(0) // after the last round, if that failed
	for {
		select {
		case <-l.stop:
			return
		case <-l.move:
		}
		l.Mu.Lock()
		limit := l.up.Limit()
		wanted := l.moveWanted()
		l.Core.Cfg.EvictOver = limit / 4
		if wanted {
			l.room.Begins()
		} else {
			l.room.NotNeeded(l.Core.Records.Used()-l.Core.Records.Homeless(), limit, l.queue.Busy())
		}
		l.Mu.Unlock()
		if !wanted {
			continue
		}
		moved, err := l.Round()
		l.Mu.Lock()
		l.room.Ended(err != nil, moved, l.Core.Records.Used()-l.Core.Records.Homeless(), limit, l.queue.Busy())
		l.Mu.Unlock()
		switch {
		case err == nil:
			rest = 0
			continue
		case errors.Is(err, storage.ErrClosed):
			continue
		case !errors.Is(err, errSpoiled): // which the commit reported
			l.up.Report("moving URLs to blocks", err)
			l.Mu.Lock()
			l.up.Lost(err)
			l.up.Dispatch()
			l.Mu.Unlock()
		}
		rest = min(max(leastRest, 2*rest), MostRest)
		l.restMover(rest)
	}
}

// restMover waits after a round that failed. Meanwhile Add does not wait for room.
func (l *Ledger) restMover(d time.Duration) {
	over := make(chan struct{})
	stop := l.AfterFunc(d, func() { close(over) })
	defer stop()
	select {
	case <-l.stop:
	case <-over:
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.room.Rested()
	l.SignalMover() // there may be no commit to do so
}

// errSpoiled ends a round during which a commit failed: a record that was
// finishing when the round passed its queue may wait again, without a home.
var errSpoiled = errors.New("frontier: a commit failed during the move")

// Round does one round, and reports whether that moved anything. The lock is not held.
func (l *Ledger) Round() (moved bool, err error) {
	l.Rounds.Lock()
	defer l.Rounds.Unlock()
	fresh := &seen.Set{}
	l.Mu.Lock()
	n := l.Known.RecentLen()
	l.Mu.Unlock()
	fresh.Reserve(n) // it will hold about as many before the next round
	l.Mu.Lock()
	if l.up.Closed() {
		l.Mu.Unlock()
		return false, storage.ErrClosed
	}
	l.Known.BeginRound(fresh)
	x := &logEnd{gen: l.gen + 1, through: l.applied.batch, marks: l.applied.marks, bytes: l.logBytes, failures: l.failures}
	x.round = l.Core.Moves.Begin(moveSource{l.Core.Source(), l}, l.Spill, x.gen, l.applied.seq, l.Core.Cfg.EvictOver)
	young := l.Known.Logged() // those behind x.marks are of a batch that is being applied
	for i := x.marks; i < young; i++ {
		if l.Known.Keep(i); i%keepAtOnce == 0 {
			l.yield()
		}
	}
	l.Mu.Unlock()

	if err = x.round.Run(); err == nil {
		err = l.checkpoint(x)
	}
	if err != nil {
		x.round.Undo()
		l.Mu.Lock()
		unused := l.Known.FailRound()
		l.Mu.Unlock()
		unused.Free()
		return x.round.Moved(), err
	}
	x.covered.Free()
	footprint := l.Spill.Footprint()
	l.Mu.Lock()
	l.footprint = footprint
	l.Mu.Unlock()
	l.Offer(x.popular)
	return x.round.Moved(), nil
}

// logEnd is where the checkpoint of a round ends the log.
type logEnd struct {
	round    *move.Round
	gen      uint32
	through  uint64 // last batch of the round
	bytes    int64  // of the log up to there
	failures int    // commits that had failed when the round began

	marks   int            // of the known URLs' list that the checkpoint covers
	popular []storage.Mark // these
	covered *seen.Set      // they, and no longer needed
}

// checkpoint ends the log. It writes the marks first, while commits go on. What decides runs between
// two commits, after all that were submitted before it: what was finishing when the round passed its
// queue, and got no home there, is finished by now, or a commit failed and the round is spoiled.
func (l *Ledger) checkpoint(x *logEnd) error {
	l.Mu.Lock()
	head := l.Known.Head(x.marks)
	l.Mu.Unlock()
	x.popular = head.All()
	if err := l.Spill.PackMarks(x.gen, x.popular); err != nil {
		return err
	}
	l.Mu.Lock()
	outdated, seen := l.Notes.Over(&l.Core.Timed, l.yield)
	l.Mu.Unlock()
	return l.Between(func() error {
		l.Mu.Lock()
		if l.failures != x.failures {
			l.Mu.Unlock()
			return errSpoiled
		}
		b := &storage.Batch{Rows: []storage.Row{l.metaRow(x.gen, false)}, Drop: l.Core.Blocks.TakeDrops(), Local: true}
		stale, rows := l.Notes.TakeStale()
		b.Rows = append(b.Rows, rows...)
		b.Rows = append(b.Rows, l.Core.Deletions.Rows()...)
		l.Mu.Unlock()
		err := l.LockCommitted(b)
		if err != nil {
			l.Core.Blocks.PutDrops(b.Drop)
			l.Notes.PutStale(stale)
		}
		l.Mu.Unlock()
		if err == nil {
			err = l.commitFound()
		}
		if err != nil {
			return err
		}
		cp := &storage.Checkpoint{Gen: x.gen, Through: x.through}
		l.Core.Deletions.Written()
		over := l.Core.OutdatedDeletions(x.through)
		cp.Dead = x.round.TakeDead()
		l.Mu.Unlock()
		err = l.Spill.Checkpoint(cp)
		l.Mu.Lock()
		if err != nil {
			x.round.PutDead()
			l.Mu.Unlock()
			return err
		}
		l.gen = x.gen
		x.covered = l.Known.EndRound(x.marks)
		l.Notes.Drop(outdated, seen)
		l.logBytes -= x.bytes
		l.applied.marks = l.Known.Logged()
		l.Mu.Unlock()
		l.forgetDeletions(over)
		return nil
	})
}

// forgetDeletions deletes the rows of deletions, between two commits.
// If that fails the next round tries again.
func (l *Ledger) forgetDeletions(ds []*tombstone.Deletion) {
	if len(ds) == 0 {
		return
	}
	b := &storage.Batch{Local: true}
	for _, d := range ds {
		b.Rows = append(b.Rows, storage.Row{Key: d.Key()})
	}
	err := l.LockCommitted(b)
	if err == nil {
		l.Core.Deletions.Drop(ds)
	}
	l.Mu.Unlock()
	if err != nil {
		l.Logger.Warn("dropping deletions", "error", err)
	}
}

// Offer fills the room for popular marks with those that a checkpoint covered. The lock is not held.
func (l *Ledger) Offer(ms []storage.Mark) {
	popular := &l.Known.Popular
	for len(ms) > 0 {
		l.Mu.Lock()
		size := popular.Size()
		for n := min(len(ms), offerAtOnce); n > 0 && popular.Size() == size; n-- { // until a part of them needs a larger table
			popular.Offer(ms[0])
			ms = ms[1:]
		}
		l.Mu.Unlock()
	}
}

// LockMeasured takes the lock, after it has asked the Spill whether it takes less than the last checkpoint
// foresaw. If a round ends meanwhile, what this one foresees counts, and LockMeasured asks again.
func (l *Ledger) LockMeasured() {
	l.Mu.Lock()
	for gen := l.gen - 1; gen != l.gen && !l.up.Closed(); {
		gen = l.gen
		l.Mu.Unlock()
		footprint := l.Spill.Footprint()
		l.Mu.Lock()
		if gen == l.gen {
			l.footprint = min(l.footprint, footprint)
		}
	}
}

// Footprint is how many bytes the Spill takes.
func (l *Ledger) Footprint() int64 { return l.footprint }

// AskRoom asks for the memory of entries: see room.Room. A wait means that a round has been signalled.
func (l *Ledger) AskRoom(need, limit int64, last *room.Space) (wait *room.Space, refused bool) {
	wait, refused = l.room.Ask(l.Core.Records.Used()+l.queue.Bytes(), need, limit, last)
	if wait != nil {
		l.SignalMover()
	}
	return wait, refused
}

// FreeRoom lets calls that wait for memory ask again.
func (l *Ledger) FreeRoom() { l.room.Freed() }

// moveSource is the frontier as rounds see it.
type moveSource struct {
	mercator.Source
	l *Ledger
}

func (s moveSource) Lock()        { s.l.Mu.Lock() }
func (s moveSource) Unlock()      { s.l.Mu.Unlock() }
func (s moveSource) Closed() bool { return s.l.up.Closed() }
func (s moveSource) Freed()       { s.l.room.Freed() }

func (s moveSource) Soon() int64 { return s.l.Core.Date(s.l.up.Now()) + s.l.Core.Cfg.Ahead }

func (s moveSource) Millis(date int64) int64 { return s.l.Core.Clock.DueMillis(date) }

func (s moveSource) Dismiss(ref arena.Ref) { s.l.Core.Dismiss(ref, s.l.up.Last()) }
