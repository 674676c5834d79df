// This file reads the timed blocks shortly before their scheduled URLs are due: one goroutine does, or a
// call that wants one at once. Package timed knows when each block is due.

package frontier

import (
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
)

// wakeReaderLocked starts the reader if there is something for it.
func (s *shard) wakeReaderLocked() {
	if s.core.Timed.Len() > 0 && (s.readWantedLocked(s.last, false) || s.sweepWantedLocked()) {
		select {
		case s.reads <- struct{}{}:
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
	limit, used := s.residentLimitLocked(), c.Records.Used()+s.ledger.Bytes()
	switch {
	case c.Timed.MinUnread() > date:
		return used <= limit/2 && c.Timed.AheadFrom <= now
	case used <= limit*9/10:
		return true
	case limit < ledger.LeastLimit: // hosts and marks alone use the budget up
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
		case <-f.ledger.Stopping():
			return
		case <-f.reads:
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
	f.ledger.CommitFound()
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
