// This file reads timed blocks, a little before what is in them is due.
//
// One goroutine does it, woken by whoever finds that a time comes near, and
// TryNext if something is due that was not read. No block is read before another
// that is due earlier, and the lock is not held meanwhile. When memory is short
// nothing is read ahead, and what is due only if workers have nothing to do.

package frontier

import (
	"errors"
	"time"
)

const (
	// timedAhead is how long before its time a record on disk may be in memory.
	// Blocks are read when a quarter of it is left.
	timedAhead = time.Minute
	// timedRetry is how long a block is left alone after a read that failed. No other is
	// read ahead of its time meanwhile.
	timedRetry = 5 * time.Second
)

// wakeReaderLocked starts the reader if there is something for it.
func (f *Frontier) wakeReaderLocked() {
	if f.core.timed.unread.len() > 0 && (f.readWantedLocked(f.last, false) || f.sweepWantedLocked()) {
		select {
		case f.committer.read <- struct{}{}:
		default:
		}
	}
}

// readWantedLocked reports whether a timed block should be read now. idle says
// that a caller has nothing to do.
func (f *Frontier) readWantedLocked(now int64, idle bool) bool {
	c := f.core
	date := c.date(now)
	if f.closed || f.draining || c.timed.unread.min() > date+c.cfg.ahead/4 {
		return false
	}
	limit, used := f.residentLimitLocked(), c.resident+f.committer.bytes
	switch {
	case c.timed.unread.min() > date:
		return used <= limit/2 && c.timed.aheadFrom <= now
	case used <= limit*9/10:
		return true
	case limit < minResident/4: // hosts and marks alone use the budget up
		return c.stats.Waiting+c.stats.Leased == 0
	}
	return idle || f.waiters.first != nil
}

// readDueLocked reports whether TryNext should read a block, or wait for the one
// that is being read: it holds what is due, or decides whether the crawl is over.
func (f *Frontier) readDueLocked(now int64) bool {
	c := f.core
	t := &c.timed
	if date := c.date(now); t.reading.id != 0 && t.reading.at <= date || t.unread.min() <= date && f.readWantedLocked(now, true) {
		return true
	}
	return c.stats.Waiting+c.stats.Leased == 0 && c.scheduled.len() == 0 && f.sweepWantedLocked()
}

// readEventLocked is when the reader has something to do if nothing is due before.
func (f *Frontier) readEventLocked(now int64) int64 {
	at := f.core.timed.unread.min()
	if at == never {
		return never
	}
	if ahead := max(f.core.moment(at-f.core.cfg.ahead/4), f.core.timed.aheadFrom); ahead > now {
		return ahead
	}
	return never // the reader knows, or memory is short until then
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
	it, sweep := timeItem{}, false
	switch t := &f.core.timed; {
	case f.readWantedLocked(f.nowLocked(), idle):
		it = t.unread.pop()
	case f.sweepWantedLocked():
		it, sweep = f.nextSweepLocked(), true
	}
	f.core.timed.reading = it
	f.mu.Unlock()
	if it.id == 0 {
		return sweep
	}
	f.readBlock(it, sweep)
	return true
}

// readBlock reads the timed block that is being read, and takes in what is wanted of
// it: all that is finished if it is read for its own sake, what is due soon else.
func (f *Frontier) readBlock(it timeItem, sweep bool) {
	records, err := f.loadTimed(it)
	if err == nil {
		f.hintTimed(records)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		f.core.putBackTimed(it.at)
	case err != nil:
		f.timedFailedLocked(err)
	case sweep:
		f.awaitForcesLocked(records)
		f.core.buryTimed(records, f.toBuryLocked)
		f.core.installTimed(records, 0, f.nowLocked())
	default:
		f.arriveLocked(records)
	}
	f.dispatchLocked()
}

// arriveLocked makes those records resident whose time is near. It releases the
// lock to read what was learned of their hosts.
func (f *Frontier) arriveLocked(records []timedLoaded) {
	c := f.core
	n := -1
	var hosts []absentee
	for {
		f.awaitForcesLocked(records)
		if f.closed {
			c.putBackTimed(c.timed.reading.at)
			return
		}
		c.buryTimed(records, f.toBuryLocked)
		if n < 0 {
			n = c.dueSoon(records, f.nowLocked())
			hosts = newAbsentees(records[:n])
		}
		wanted := f.absenteesLocked(hosts)
		if len(wanted) == 0 {
			break
		}
		f.mu.Unlock()
		err := f.readRows(wanted)
		f.mu.Lock()
		if err != nil {
			f.emitLocked(Event{Kind: EventStoreError, Reason: "reading hosts of scheduled URLs", Count: int64(n), Err: err})
			var corrupt *CorruptError
			if errors.As(err, &corrupt) && len(f.faults) == 0 {
				f.faults = append(f.faults, err)
			}
			c.retryTimed(f.nowLocked())
			return
		}
	}
	now := f.nowLocked()
	c.advance(now)
	for i := range hosts {
		f.returnLocked(&hosts[i])
	}
	c.installTimed(records, n, now)
}

// timedFailedLocked puts the block being read back, or gives it up.
func (f *Frontier) timedFailedLocked(err error) {
	c := f.core
	n := timedLive(c.timed.reading)
	f.emitLocked(Event{Kind: EventStoreError, Reason: "reading scheduled URLs", Count: int64(n), Err: err})
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		c.loseTimed()
		f.faults = append(f.faults, err)
		return
	}
	c.retryTimed(f.nowLocked())
}

// loadTimed reads the unread records of a block, and what must be known of them.
func (f *Frontier) loadTimed(it timeItem) ([]timedLoaded, error) {
	var out []timedLoaded
	err := f.opts.Spill.LoadTimed(it.id, timedFirst(it), func(pos int, r TimedRecord) bool {
		r.Body = append([]byte(nil), r.Body...)
		out = append(out, timedLoaded{TimedRecord: r, pos: pos, at: f.date(millisTime(r.Due)), hash: f.hostHash(r.Host)})
		return true
	})
	if err != nil {
		return nil, err
	}
	for i := range out {
		r := &out[i]
		b, err := decodeBody(r.Body)
		if err == nil {
			err = checkHost(r.Host)
		}
		if err == nil && !f.isPriority(r.Priority) {
			err = &PriorityError{Got: int(r.Priority), Levels: f.opts.Priorities}
		}
		if err != nil {
			return nil, &CorruptError{Err: err}
		}
		if !f.opts.NoDedup {
			r.mark = f.markOf(r.Crawl, string(b.url))
		}
	}
	return out, nil
}
