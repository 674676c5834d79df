// This file moves records from the log into blocks, in rounds. Package move does a round;
// this file decides when one is worth its cost, gives it the queues, and writes the
// checkpoint that ends the log.

package frontier

import (
	"errors"
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/seen"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// leastRest is the pause after a round that failed. It doubles up to mostRest.
	leastRest, mostRest = time.Second, time.Minute
	// keepAtOnce is how many marks outlive a round under one lock.
	keepAtOnce = 1024
)

// wakeMoverLocked starts a round if memory or log want it.
func (s *shard) wakeMoverLocked() {
	if s.moveWantedLocked() {
		s.signalMoverLocked()
	}
}

// moveWantedLocked reports whether a round is worth its cost, or the only way to make
// room for callers that wait.
func (s *shard) moveWantedLocked() bool {
	c := s.core
	l := move.Load{
		Log: s.logBytes, MaxLog: move.MaxLog(s.opts.MemoryBudget),
		Used: c.Records.Used(), Limit: s.residentLimitLocked(), Homeless: c.Records.Homeless(),
		Full: s.committer.room.Waited(),
	}
	l.Full = l.Full || l.Limit < minResident/4 // Add refuses: hosts of finished URLs leave with these
	return l.Wanted()
}

func (s *shard) signalMoverLocked() {
	select {
	case s.committer.move <- struct{}{}:
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
		f.core.Cfg.EvictOver = limit / 4
		if wanted {
			c.room.Begins()
		} else {
			c.room.NotNeeded(f.core.Records.Used(), limit, c.log.Busy())
		}
		f.mu.Unlock()
		if !wanted {
			continue
		}
		moved, err := f.moveRound()
		f.mu.Lock()
		c.room.Ended(err != nil, moved, f.core.Records.Used(), limit, c.log.Busy())
		f.mu.Unlock()
		switch {
		case err == nil:
			rest = 0
			continue
		case errors.Is(err, ErrClosed):
			continue
		case !errors.Is(err, errSpoiled): // which the commit reported
			f.emit(Event{Kind: EventStoreError, Reason: "moving URLs to blocks", Err: err})
			f.mu.Lock()
			f.storeFailedLocked(err)
			f.dispatchLocked()
			f.mu.Unlock()
		}
		rest = min(max(leastRest, 2*rest), mostRest)
		f.restMover(rest)
	}
}

// restMover waits after a round that failed. Meanwhile Add does not wait for room.
func (s *shard) restMover(d time.Duration) {
	c := &s.committer
	over := make(chan struct{})
	timer := s.opts.Clock.AfterFunc(d, func() { close(over) })
	defer timer.Stop()
	select {
	case <-c.stop:
	case <-over:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.room.Rested()
	s.signalMoverLocked() // there may be no commit to do so
}

// errSpoiled ends a round during which a commit failed: a record that was
// finishing when the round passed its queue may wait again, without a home.
var errSpoiled = errors.New("frontier: a commit failed during the move")

// moveRound does one round. It reports whether that moved anything.
func (f *Frontier) moveRound() (moved bool, err error) {
	f.rounds.Lock()
	defer f.rounds.Unlock()
	fresh := &seen.Set{}
	f.mu.Lock()
	n := f.known.RecentLen()
	f.mu.Unlock()
	fresh.Reserve(n) // it will hold about as many before the next round
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return false, ErrClosed
	}
	f.known.BeginRound(fresh)
	x := &logEnd{gen: f.gen + 1, through: f.applied.batch, marks: f.applied.marks, bytes: f.logBytes, failures: f.committer.failures}
	x.round = f.core.Moves.Begin(moveSource{f.core.Source(), f}, f.opts.Spill, x.gen, f.applied.seq, f.core.Cfg.EvictOver)
	young := f.known.Logged() // those behind x.marks are of a batch that is being applied
	for i := x.marks; i < young; i++ {
		if f.known.Keep(i); i%keepAtOnce == 0 {
			f.yield()
		}
	}
	f.mu.Unlock()

	if err = x.round.Run(); err == nil {
		err = f.checkpoint(x)
	}
	if err != nil {
		x.round.Undo()
		f.mu.Lock()
		unused := f.known.FailRound()
		f.mu.Unlock()
		unused.Free()
		return x.round.Moved(), err
	}
	x.covered.Free()
	footprint := f.opts.Spill.Footprint()
	f.mu.Lock()
	f.footprint = footprint
	f.mu.Unlock()
	f.offer(x.popular)
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

// checkpoint ends the log. It writes the marks first, while commits go on. What decides
// runs between two commits, after all that were submitted before it: what was finishing
// when the round passed its queue, and got no home there, is finished by now, or a commit
// failed and the round is spoiled.
func (f *Frontier) checkpoint(x *logEnd) error {
	f.mu.Lock()
	head := f.known.Head(x.marks)
	f.mu.Unlock()
	x.popular = head.All()
	if err := f.opts.Spill.PackMarks(x.gen, x.popular); err != nil {
		return err
	}
	outdated, seen := f.outdated()
	return f.between(func() error {
		f.mu.Lock()
		if f.committer.failures != x.failures {
			f.mu.Unlock()
			return errSpoiled
		}
		b := &storage.Batch{
			ID:   f.committer.batchID + 1,
			Time: instant.Millis(f.wall(f.nowLocked())),
			Rows: []storage.Row{f.metaRowLocked(x.gen, false)},
			Drop: f.core.Blocks.TakeDrops(),
		}
		stale, rows := f.notes.TakeStale()
		b.Rows = append(b.Rows, rows...)
		b.Rows = append(b.Rows, f.deletionRowsLocked()...)
		f.mu.Unlock()
		if err := f.opts.Spill.Commit(b); err != nil {
			f.mu.Lock()
			f.core.Blocks.PutDrops(b.Drop)
			f.notes.PutStale(stale)
			f.mu.Unlock()
			return err
		}
		f.mu.Lock()
		f.committer.batchID, f.applied.batch = b.ID, b.ID
		f.mu.Unlock()
		if err := f.commitFound(); err != nil {
			return err
		}
		cp := &storage.Checkpoint{Gen: x.gen, Through: x.through}
		f.deletionsWrittenLocked()
		over := f.outdatedLocked(x.through)
		cp.Dead = x.round.TakeDead()
		f.mu.Unlock()
		err := f.opts.Spill.Checkpoint(cp)
		f.mu.Lock()
		if err != nil {
			x.round.PutDead()
			f.mu.Unlock()
			return err
		}
		f.gen = x.gen
		x.covered = f.known.EndRound(x.marks)
		f.notes.Drop(outdated, seen)
		f.logBytes -= x.bytes
		f.applied.marks = f.known.Logged()
		f.mu.Unlock()
		f.forgetDeletions(over)
		return nil
	})
}

// moveSource is the frontier as rounds see it.
type moveSource struct {
	mercator.Source
	f *Frontier
}

func (s moveSource) Lock()        { s.f.mu.Lock() }
func (s moveSource) Unlock()      { s.f.mu.Unlock() }
func (s moveSource) Closed() bool { return s.f.closed }
func (s moveSource) Freed()       { s.f.committer.room.Freed() }

func (s moveSource) Soon() int64 { return s.f.core.Date(s.f.nowLocked()) + s.f.core.Cfg.Ahead }

func (s moveSource) Millis(date int64) int64 { return s.f.dueMillis(date) }

func (s moveSource) Dismiss(ref arena.Ref) { s.f.core.Dismiss(ref, s.f.last) }

// markLog is what a mark without an admission counts as in the log, so that a
// round begins before there are more young marks than with admissions.
const markLog = 64

func batchBytes(b *storage.Batch) int64 {
	n := int64(32 + 16*len(b.Finish) + markLog*len(b.Marks))
	for i := range b.Admit {
		n += int64(len(b.Admit[i].Body) + len(b.Admit[i].Host) + 24)
	}
	return n
}
