// This file moves records from the log into blocks, in rounds. Package move does a round; this file
// decides when one is worth its cost, gives it the queues, and writes the checkpoint that ends the log.
//
// It also reads the timed blocks shortly before their scheduled URLs are due: one goroutine does, or a
// call that wants one at once. Package timed knows when each block is due.

package frontier

import (
	"errors"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/seen"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
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
			c.room.NotNeeded(f.core.Records.Used()-f.core.Records.Homeless(), limit, c.log.Busy())
		}
		f.mu.Unlock()
		if !wanted {
			continue
		}
		moved, err := f.moveRound()
		f.mu.Lock()
		c.room.Ended(err != nil, moved, f.core.Records.Used()-f.core.Records.Homeless(), limit, c.log.Busy())
		f.mu.Unlock()
		switch {
		case err == nil:
			rest = 0
			continue
		case errors.Is(err, ErrClosed):
			continue
		case !errors.Is(err, errSpoiled): // which the commit reported
			f.emit(event.Event{Kind: event.StoreError, Reason: "moving URLs to blocks", Err: err})
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
	if err := f.lockOpen(); err != nil {
		return false, err
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

// checkpoint ends the log. It writes the marks first, while commits go on. What decides runs between
// two commits, after all that were submitted before it: what was finishing when the round passed its
// queue, and got no home there, is finished by now, or a commit failed and the round is spoiled.
func (f *Frontier) checkpoint(x *logEnd) error {
	f.mu.Lock()
	head := f.known.Head(x.marks)
	f.mu.Unlock()
	x.popular = head.All()
	if err := f.opts.Spill.PackMarks(x.gen, x.popular); err != nil {
		return err
	}
	f.mu.Lock()
	outdated, seen := f.notes.Over(&f.core.Timed, f.yield)
	f.mu.Unlock()
	return f.between(func() error {
		f.mu.Lock()
		if f.committer.failures != x.failures {
			f.mu.Unlock()
			return errSpoiled
		}
		b := &storage.Batch{Rows: []storage.Row{f.metaRowLocked(x.gen, false)}, Drop: f.core.Blocks.TakeDrops(), Local: true}
		stale, rows := f.notes.TakeStale()
		b.Rows = append(b.Rows, rows...)
		b.Rows = append(b.Rows, f.core.Deletions.Rows()...)
		f.mu.Unlock()
		err := f.lockCommitted(b)
		if err != nil {
			f.core.Blocks.PutDrops(b.Drop)
			f.notes.PutStale(stale)
		}
		f.mu.Unlock()
		if err == nil {
			err = f.commitFound()
		}
		if err != nil {
			return err
		}
		cp := &storage.Checkpoint{Gen: x.gen, Through: x.through}
		f.core.Deletions.Written()
		over := f.core.OutdatedDeletions(x.through)
		cp.Dead = x.round.TakeDead()
		f.mu.Unlock()
		err = f.opts.Spill.Checkpoint(cp)
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

func (s moveSource) Millis(date int64) int64 { return s.f.clock.DueMillis(date) }

func (s moveSource) Dismiss(ref arena.Ref) { s.f.core.Dismiss(ref, s.f.last) }

// wakeReaderLocked starts the reader if there is something for it.
func (s *shard) wakeReaderLocked() {
	if s.core.Timed.Len() > 0 && (s.readWantedLocked(s.last, false) || s.sweepWantedLocked()) {
		select {
		case s.committer.read <- struct{}{}:
		default:
		}
	}
}

// readWantedLocked reports whether a timed block should be read now. idle says
// that a caller has nothing to do.
func (s *shard) readWantedLocked(now int64, idle bool) bool {
	c := s.core
	date := c.Date(now)
	if s.closed || s.draining || c.Timed.MinUnread() > date+c.Cfg.Ahead/4 {
		return false
	}
	limit, used := s.residentLimitLocked(), c.Records.Used()+s.committer.log.Bytes()
	switch {
	case c.Timed.MinUnread() > date:
		return used <= limit/2 && c.Timed.AheadFrom <= now
	case used <= limit*9/10:
		return true
	case limit < minResident/4: // hosts and marks alone use the budget up
		return c.Stats.Waiting+c.Stats.Leased == 0
	}
	return idle || s.awaited()
}

// readDueLocked reports whether TryNext should read a block, or wait for the one
// that is being read: it holds what is due, or decides whether the crawl is over.
func (s *shard) readDueLocked(now int64) bool {
	c := s.core
	t := &c.Timed
	if date := c.Date(now); t.Reading().ID != 0 && t.Reading().At <= date || t.MinUnread() <= date && s.readWantedLocked(now, true) {
		return true
	}
	return c.Stats.Waiting+c.Stats.Leased == 0 && c.Scheduled.Min() == instant.Never && s.sweepWantedLocked()
}

// readEventLocked is when the reader has something to do if nothing is due before.
func (s *shard) readEventLocked(now int64) int64 {
	at := s.core.Timed.MinUnread()
	if at == instant.Never {
		return instant.Never
	}
	if ahead := max(s.core.Moment(at-s.core.Cfg.Ahead/4), s.core.Timed.AheadFrom); ahead > now {
		return ahead
	}
	return instant.Never // the reader knows, or memory is short until then
}

func (f *Frontier) readLoop() {
	for {
		select {
		case <-f.committer.stop:
			return
		case <-f.committer.read:
		}
		for f.readTimed(false) {
		}
	}
}

// readTimed reads one timed block as far as needed, if one is wanted. idle says
// that the caller has nothing to do.
func (f *Frontier) readTimed(idle bool) bool {
	f.reader <- struct{}{}
	defer func() { <-f.reader }()
	f.mu.Lock()
	it, sweep := timeheap.Item{}, false
	switch {
	case f.readWantedLocked(f.nowLocked(), idle):
		it = f.core.Timed.Begin()
	case f.sweepWantedLocked():
		it, sweep = f.beginSweepLocked(), true
	}
	f.mu.Unlock()
	if it.ID != 0 {
		f.readBlock(it, sweep)
	}
	if sweep {
		f.mu.Lock()
		f.notes.Swept(&f.core.Timed)
		f.mu.Unlock()
	}
	return it.ID != 0 || sweep
}

// readBlock reads the timed block that is being read, and takes in what is wanted of
// it: all that is finished if it is read for its own sake, what is due soon else.
func (f *Frontier) readBlock(it timeheap.Item, sweep bool) {
	records, err := f.loadTimed(it)
	if err == nil {
		f.hintTimed(records)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		f.core.Timed.PutBack(it.At)
	case err != nil:
		f.timedFailedLocked(err)
	case sweep:
		f.awaitForcesYieldingLocked(records)
		f.core.FinishTimedDead(records, f.timedDeadLocked)
		f.core.InstallTimed(records, 0, f.nowLocked())
	default:
		f.arriveYieldingLocked(records)
	}
	f.commitFoundLocked()
	f.dispatchLocked()
}

// arriveYieldingLocked makes those records resident whose time is near. It releases the
// lock to read what was learned of their hosts.
func (f *Frontier) arriveYieldingLocked(records []timed.Loaded) {
	c := f.core
	n := -1
	var hosts []mercator.Absentee
	for {
		f.awaitForcesYieldingLocked(records)
		if f.closed {
			c.Timed.PutBack(c.Timed.Reading().At)
			return
		}
		c.FinishTimedDead(records, f.timedDeadLocked)
		if n < 0 {
			date := c.Date(f.nowLocked())
			n = c.Timed.Soon(records, date, date+c.Cfg.Ahead, c.Records.Used() > c.Cfg.EvictOver)
			hosts = newAbsentees(records[:n])
		}
		wanted := f.core.Absentees(hosts)
		if len(wanted) == 0 {
			break
		}
		f.mu.Unlock()
		err := f.readRows(wanted)
		f.mu.Lock()
		if err != nil {
			f.emitLocked(event.Event{Kind: event.StoreError, Reason: "reading hosts of scheduled URLs", Count: int64(n), Err: err})
			f.storeFailedLocked(err)
			if isCorrupt(err) && len(f.faults) == 0 {
				f.faults = append(f.faults, err)
			}
			c.RetryTimed(f.nowLocked())
			return
		}
	}
	now := f.nowLocked()
	c.Advance(now)
	for i := range hosts {
		f.core.ComeBack(&hosts[i], f.token, f.last)
	}
	c.InstallTimed(records, n, now)
}

// timedFailedLocked puts the block being read back, or gives it up.
func (f *Frontier) timedFailedLocked(err error) {
	c := f.core
	n, at := timed.Live(c.Timed.Reading()), c.Timed.Reading().At
	f.notes.SweepFailed()
	c.Timed.PurgeFailed()
	f.emitLocked(event.Event{Kind: event.StoreError, Reason: "reading scheduled URLs", Count: int64(n), Err: err})
	f.storeFailedLocked(err)
	if isCorrupt(err) {
		lost := int64(c.Timed.Lose()) // they stay on disk
		*c.Stats.DueAt(at) -= lost
		c.Stats.Unreadable += lost
		f.faults = append(f.faults, err)
		return
	}
	c.RetryTimed(f.nowLocked())
}

// unreadTimed reads the unread records of a block that are wanted.
func (s *shared) unreadTimed(it timeheap.Item, wanted func(*storage.TimedRecord) bool) (out []timed.Loaded, err error) {
	err = s.opts.Spill.LoadTimed(it.ID, timed.First(it), func(pos int, r storage.TimedRecord) bool {
		if wanted(&r) {
			r.Body = append([]byte(nil), r.Body...)
			out = append(out, timed.Loaded{TimedRecord: r, Pos: pos, At: s.clock.StoredDue(r.Due)})
		}
		return true
	})
	return out, err
}

// loadTimed reads the unread records of a block, and what must be known of them.
func (s *shard) loadTimed(it timeheap.Item) ([]timed.Loaded, error) {
	out, err := s.unreadTimed(it, func(*storage.TimedRecord) bool { return true })
	if err != nil {
		return nil, err
	}
	for i := range out {
		r := &out[i]
		b, err := record.Decode(r.Body)
		if err == nil {
			err = hostkey.Check(r.Host)
		}
		if err == nil && !s.core.IsPriority(r.Priority) {
			err = &PriorityError{Got: int(r.Priority), Levels: s.opts.Priorities}
		}
		if err != nil {
			return nil, &CorruptError{Err: err}
		}
		r.Hash = s.core.HashOf(r.Host)
		if !s.opts.NoDedup {
			r.Mark = s.markOf(r.Host, r.Crawl, string(b.URL))
		}
	}
	return out, nil
}

// listTimed begins a list of the timed blocks that hold records which are on disk
// only. It takes the lock. EndList ends the list.
func (s *shard) listTimed() *timed.List {
	t := &s.core.Timed
	s.mu.Lock()
	l := t.BeginList()
	for more := !t.Empty(); more; {
		s.mu.Unlock()
		l.Grow()
		s.mu.Lock()
		more = t.List(l)
	}
	s.mu.Unlock()
	return l
}

// timedDeadLocked reports whether a record of a timed block is finished: a Force has
// replaced it, or it was deleted.
func (s *shard) timedDeadLocked(r *timed.Loaded) bool {
	if s.supersededLocked(r) {
		s.core.FoundOutdated(storage.Completion{Seq: r.Seq, Block: s.core.Timed.Reading().ID, Pos: uint16(r.Pos)}, r.Host, r.Crawl, r.At)
		return true
	}
	d := s.core.Deletions.Stored.Of(hostkey.Bytes(r.Host), r.Crawl)
	if d.Seq < r.Seq {
		return false
	}
	s.core.Stats.Deleted++
	d.By.Removed++
	return true
}
