// This file holds the queues of URLs, each of one host, crawl and priority.
//
// How a queue lies in memory and on disk, package fifo knows. The queues of a bound host
// together are its back queue.

package frontier

import (
	"errors"
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

// queue is the FIFO of one host, crawl and priority.
type queue struct {
	fifo.Queue
	host       uint32
	sibling    uint32 // next queue of the host
	prev, next uint32 // in the front queue or ready list
	waiting    int32
	crawl      uint32    // slot
	scheduled  arena.Ref // the first of its records in scheduler.scheduled
	priority   uint8
	level      uint8 // of the lists that it is in
	listed     bool  // see list
}

// queueOf returns the queue of a host, of a new record if there is none.
func (s *scheduler) queueOf(hid uint32, crawl uint32, priority uint8) uint32 {
	h := s.hosts.At(hid)
	slot := s.slotOf(crawl)
	link := &h.queues
	for *link != 0 {
		q := s.queues.At(*link)
		if q.priority == priority && q.crawl == slot {
			return *link
		}
		if q.priority < priority || q.priority == priority && q.crawl > slot {
			break
		}
		link = &q.sibling
	}
	id := s.queues.Alloc()
	q := s.queues.At(id)
	q.host, q.crawl, q.priority, q.sibling = hid, slot, priority, *link
	q.level = s.levelOf(h, priority)
	s.crawls[slot].queues++
	*link = id
	return id
}

// releaseQueue ends a queue that holds nothing and is in no list.
func (s *scheduler) releaseQueue(id uint32) {
	slot := s.queues.At(id).crawl
	s.queues.Release(id)
	s.moves.Ended(id)
	s.crawls[slot].queues--
	s.restCrawl(slot)
}

// counted notes that n URLs joined (or, negative, left) a queue.
func (s *scheduler) counted(q *queue, n int) {
	q.waiting += int32(n)
	h := s.hosts.At(q.host)
	if h.waiting += int32(n); s.sizes.Asked() {
		s.sizes.Changed(q.host, h.waiting)
	}
	x := s.crawlOf(q)
	if h.place == withheld {
		s.countWithheld(x, h.pos, int64(n))
	}
	if !x.runs() {
		s.pausedURLs += int64(n)
		if x.stop == crawlLimited {
			s.limitedURLs += int64(n)
		}
	}
	if s.limits != nil && s.limits.CountsDomains() {
		s.limits.Waits(s.name(h), int64(n))
	}
	x.stats.Waiting += int64(n)
	if s.stats.Waiting += int64(n); q.level == s.immediate() {
		s.stats.Immediate += int64(n)
		x.stats.Immediate += int64(n)
	} else {
		s.stats.WaitingBy[q.level-1] += int64(n)
		x.stats.WaitingBy[q.level-1] += int64(n)
	}
}

// pushTail appends a record to a queue and lets its host have it.
func (s *scheduler) pushTail(qid uint32, ref arena.Ref, now int64) {
	q := s.queues.At(qid)
	s.fifo.Push(&q.Queue, ref)
	if s.records.At(ref).Part() == 0 {
		s.list(qid)
	}
	s.counted(q, 1)
	s.filled(qid, now)
}

// list notes that a queue has a record that needs a home in a block. It stays
// listed until a round has been there.
func (s *scheduler) list(qid uint32) {
	if s.cfg.spill {
		s.moves.List(qid, &s.queues.At(qid).listed)
	}
}

// returnHead puts a record back where pop took it from. Its host is in no
// structure or leased, or filled must follow.
func (s *scheduler) returnHead(qid uint32, ref arena.Ref) {
	q := s.queues.At(qid)
	s.moves.ToHead(qid, ref)
	s.fifo.PushFront(&q.Queue, ref)
	s.counted(q, 1)
}

// filled puts a queue that got a URL, and its host, where they belong.
func (s *scheduler) filled(qid uint32, now int64) {
	q := s.queues.At(qid)
	h := s.hosts.At(q.host)
	switch h.place {
	case nowhere, idling, departing:
		s.detach(q.host)
		s.settle(q.host, now)
	case unbound:
		if q.waiting == 1 {
			s.enlist(tokens, qid)
		}
	case queued:
		s.promote(q.host, now)
	case ready:
		if q.waiting == 1 {
			s.enlist(readies, qid)
		}
	}
}

// pop takes the next record, which is in memory.
func (s *scheduler) pop(q *queue) arena.Ref {
	s.counted(q, -1)
	return s.fifo.Pop(&q.Queue)
}

// evict drops from memory what can be read from blocks again, when memory is wanted. With
// keep set the next few stay. It reports whether there is more than was dropped at once:
// the next round of moving gets there.
func (t *tables) evict(qid uint32, keep bool) (more bool) {
	q := t.queues.At(qid)
	return t.cfg.spill && t.records.Used() > t.cfg.evictOver && !t.fifo.Walked(q.host) && t.fifo.Evict(&q.Queue, keep)
}

// trim evicts what need not be in memory of a queue that grew: all of an unbound
// host, of a bound one all but the next few. It reports whether there is more.
func (t *tables) trim(qid uint32) (more bool) {
	switch t.hosts.At(t.queues.At(qid).host).place {
	case unbound, parked, withheld, unpurged:
		return t.evict(qid, false)
	case pacing, queued, ready, leased, loading:
		return t.evict(qid, true)
	}
	return false
}

// Scheduled URLs, in and out of memory. Package timed knows when each is due; what
// follows adds their hosts, the disk and the lock.
//
// One goroutine reads timed blocks shortly before their records are due. It is woken when
// a time comes near, and by TryNext if something due was not read. Blocks are read in the
// order of their times, without the lock. When memory is short nothing is read ahead, and
// due records are read only if workers have nothing to do.

const (
	// timedAhead is how long before its time a record on disk may be in memory.
	// Blocks are read when a quarter of it is left.
	timedAhead = time.Minute
	// timedRetry is how long a block is left alone after a read that failed. No other is
	// read ahead of its time meanwhile.
	timedRetry = 5 * time.Second
)

// unschedule takes out item i of the heap of scheduled records.
func (s *scheduler) unschedule(i int) timeheap.Item {
	it := s.scheduled.Items[i]
	s.scheduled.Remove(i)
	*s.stats.dueAt(it.At)--
	id := s.queues.At(it.Aux).host
	s.hosts.At(id).scheduled--
	if it.At == instant.Never {
		if s.kept[id]--; s.kept[id] == 0 {
			delete(s.kept, id)
		}
	}
	return it
}

// dismiss drops a scheduled record from memory: from now on it is on disk only.
func (s *scheduler) dismiss(ref arena.Ref, now int64) {
	i, _ := s.scheduled.Find(ref)
	it := s.unschedule(i)
	id := s.queues.At(it.Aux).host
	*s.stats.dueAt(it.At)++ // as before
	s.records.Discard(ref)
	if h := s.hosts.At(id); h.scheduled == 0 && h.pins == 0 && h.place == nowhere {
		s.settle(id, now)
	}
}

// wakeReaderLocked starts the reader if there is something for it.
func (s *shard) wakeReaderLocked() {
	if s.sched.timed.Len() > 0 && (s.readWantedLocked(s.last, false) || s.sweepWantedLocked()) {
		select {
		case s.committer.read <- struct{}{}:
		default:
		}
	}
}

// readWantedLocked reports whether a timed block should be read now. idle says
// that a caller has nothing to do.
func (s *shard) readWantedLocked(now int64, idle bool) bool {
	c := s.sched
	date := c.date(now)
	if s.closed || s.draining || c.timed.MinUnread() > date+c.cfg.ahead/4 {
		return false
	}
	limit, used := s.residentLimitLocked(), c.records.Used()+s.committer.log.Bytes()
	switch {
	case c.timed.MinUnread() > date:
		return used <= limit/2 && c.timed.AheadFrom <= now
	case used <= limit*9/10:
		return true
	case limit < minResident/4: // hosts and marks alone use the budget up
		return c.stats.Waiting+c.stats.Leased == 0
	}
	return idle || s.awaited()
}

// readDueLocked reports whether TryNext should read a block, or wait for the one
// that is being read: it holds what is due, or decides whether the crawl is over.
func (s *shard) readDueLocked(now int64) bool {
	c := s.sched
	t := &c.timed
	if date := c.date(now); t.Reading().ID != 0 && t.Reading().At <= date || t.MinUnread() <= date && s.readWantedLocked(now, true) {
		return true
	}
	return c.stats.Waiting+c.stats.Leased == 0 && c.scheduled.Min() == instant.Never && s.sweepWantedLocked()
}

// readEventLocked is when the reader has something to do if nothing is due before.
func (s *shard) readEventLocked(now int64) int64 {
	at := s.sched.timed.MinUnread()
	if at == instant.Never {
		return instant.Never
	}
	if ahead := max(s.sched.moment(at-s.sched.cfg.ahead/4), s.sched.timed.AheadFrom); ahead > now {
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
		it = f.sched.timed.Begin()
	case f.sweepWantedLocked():
		it, sweep = f.beginSweepLocked(), true
	}
	f.mu.Unlock()
	if it.ID != 0 {
		f.readBlock(it, sweep)
	}
	if sweep {
		f.mu.Lock()
		f.notes.Swept(&f.sched.timed)
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
		f.sched.timed.PutBack(it.At)
	case err != nil:
		f.timedFailedLocked(err)
	case sweep:
		f.awaitForcesYieldingLocked(records)
		f.sched.finishTimedDead(records, f.timedDeadLocked)
		f.sched.installTimed(records, 0, f.nowLocked())
	default:
		f.arriveYieldingLocked(records)
	}
	f.commitFoundLocked()
	f.dispatchLocked()
}

// arriveYieldingLocked makes those records resident whose time is near. It releases the
// lock to read what was learned of their hosts.
func (f *Frontier) arriveYieldingLocked(records []timed.Loaded) {
	c := f.sched
	n := -1
	var hosts []absentee
	for {
		f.awaitForcesYieldingLocked(records)
		if f.closed {
			c.timed.PutBack(c.timed.Reading().At)
			return
		}
		c.finishTimedDead(records, f.timedDeadLocked)
		if n < 0 {
			date := c.date(f.nowLocked())
			n = c.timed.Soon(records, date, date+c.cfg.ahead, c.records.Used() > c.cfg.evictOver)
			hosts = newAbsentees(records[:n])
		}
		wanted := f.sched.absentees(hosts)
		if len(wanted) == 0 {
			break
		}
		f.mu.Unlock()
		err := f.readRows(wanted)
		f.mu.Lock()
		if err != nil {
			f.emitLocked(Event{Kind: EventStoreError, Reason: "reading hosts of scheduled URLs", Count: int64(n), Err: err})
			f.storeFailedLocked(err)
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
		f.sched.comeBack(&hosts[i], f.token, f.last)
	}
	c.installTimed(records, n, now)
}

// timedFailedLocked puts the block being read back, or gives it up.
func (f *Frontier) timedFailedLocked(err error) {
	c := f.sched
	n, at := timed.Live(c.timed.Reading()), c.timed.Reading().At
	f.notes.SweepFailed()
	c.timed.PurgeFailed()
	f.emitLocked(Event{Kind: EventStoreError, Reason: "reading scheduled URLs", Count: int64(n), Err: err})
	f.storeFailedLocked(err)
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		lost := int64(c.timed.Lose()) // they stay on disk
		*c.stats.dueAt(at) -= lost
		c.stats.Unreadable += lost
		f.faults = append(f.faults, err)
		return
	}
	c.retryTimed(f.nowLocked())
}

// unreadTimed reads the unread records of a block that are wanted.
func (s *shared) unreadTimed(it timeheap.Item, wanted func(*storage.TimedRecord) bool) (out []timed.Loaded, err error) {
	err = s.opts.Spill.LoadTimed(it.ID, timed.First(it), func(pos int, r storage.TimedRecord) bool {
		if wanted(&r) {
			r.Body = append([]byte(nil), r.Body...)
			out = append(out, timed.Loaded{TimedRecord: r, Pos: pos, At: s.storedDue(r.Due)})
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
		if err == nil && !s.isPriority(r.Priority) {
			err = &PriorityError{Got: int(r.Priority), Levels: s.opts.Priorities}
		}
		if err != nil {
			return nil, &CorruptError{Err: err}
		}
		r.Hash = s.hostHash(r.Host)
		if !s.opts.NoDedup {
			r.Mark = s.markOf(r.Host, r.Crawl, string(b.URL))
		}
	}
	return out, nil
}

// finishTimedDead finishes the records of the block being read that are dead.
func (s *scheduler) finishTimedDead(rs []timed.Loaded, dead func(*timed.Loaded) bool) {
	*s.stats.dueAt(s.timed.Reading().At) -= int64(s.timed.Bury(rs, dead))
}

// installTimed makes the first n records resident of the block that is being
// read. The others stay unread.
func (s *scheduler) installTimed(rs []timed.Loaded, n int, now int64) {
	waits := min(s.date(now), s.timed.MinUnread(), s.scheduled.Min()) // what is due until then is next in order
	s.timed.Arrive(rs, n, waits, func(part uint32, run []timed.Loaded, wait bool) {
		s.installRun(part, run, wait, now)
		s.stats.Scheduled -= int64(len(run))
	})
}

// retryTimed leaves the block being read, which cannot be, unread for a while.
func (s *scheduler) retryTimed(now int64) {
	s.timed.AheadFrom = now + int64(timedRetry)
	s.timed.PutBack(max(s.timed.Reading().At, s.date(s.timed.AheadFrom)))
}

// installRun makes records resident that share a part.
func (s *scheduler) installRun(part uint32, rs []timed.Loaded, wait bool, now int64) {
	r := &rs[0]
	qid := s.queueOf(s.ensure(r.Hash, r.Host), r.Crawl, r.Priority)
	for i := range rs {
		var ref arena.Ref
		if wait {
			ref = s.records.Store(rs[i].Seq, rs[i].Body)
		} else {
			ref = s.records.StoreForRing(rs[i].Seq, rs[i].Body)
		}
		s.fifo.SetHome(ref, part, i)
		if wait {
			s.waits.Began(rs[i].Seq, s.moment(rs[i].At))
			s.pushTail(qid, ref, now)
		} else {
			s.schedule(qid, ref, rs[i].At)
		}
	}
	if wait {
		s.trim(qid)
	}
}

// listTimed begins a list of the timed blocks that hold records which are on disk
// only. It takes the lock. EndList ends the list.
func (s *shard) listTimed() *timed.List {
	t := &s.sched.timed
	s.mu.Lock()
	l := t.BeginList()
	for more := true; more; {
		s.mu.Unlock()
		l.Grow()
		s.mu.Lock()
		more = t.List(l)
	}
	s.mu.Unlock()
	return l
}

// endScan ends a walk through the scheduled records in memory.
func (s *shard) endScan(scan *timed.Scan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sched.scheduled.EndScan(scan)
}

// ring is how far a sweep is with the scheduled records of a host in memory.
type ring struct {
	queue uint32 // of these; 0: it has not begun
	left  int    // to be looked at
}

// purgeScheduled takes dead records of a host out of the heap of scheduled ones, for as many steps. What it
// has looked at goes to the end of its ring, so that all are looked at once. It returns the steps that are
// left, and whether it is done.
func (s *scheduler) purgeScheduled(id uint32, d *tombstone.Tombstone, at *ring, steps int, now int64) (int, bool) {
	for s.hosts.At(id).nameLen > 0 && s.hosts.At(id).queues != 0 {
		if at.queue == 0 || s.queues.At(at.queue).host != id { // its queue is gone: nothing was left of it
			*at = ring{s.hosts.At(id).queues, int(s.hosts.At(id).scheduled)}
		}
		q := s.queues.At(at.queue)
		if at.left == 0 || q.scheduled == 0 || d.OfCrawl && s.crawlOf(q).id != d.Crawl {
			if *at = (ring{q.sibling, int(s.hosts.At(id).scheduled)}); at.queue == 0 {
				return steps, true
			}
			continue
		}
		if steps <= 0 {
			return steps, false
		}
		steps -= fifo.PurgedRecord
		at.left--
		ref := q.scheduled
		q.scheduled = s.records.At(ref).After()
		i, _ := s.scheduled.Find(ref)
		s.dropScheduled(i, now)
	}
	*at = ring{}
	return steps, true
}

// dropScheduled finishes item i of the heap of scheduled records if it is dead.
func (s *scheduler) dropScheduled(i int, now int64) bool {
	it := s.scheduled.Items[i]
	d := s.deadIn(s.queues.At(it.Aux))
	if d.Seq < s.records.At(arena.Ref(it.ID)).Seq() {
		return false
	}
	s.unschedule(i)
	s.dropped(it, &d, now)
	return true
}

// dropped finishes a dead record that is scheduled no more.
func (s *scheduler) dropped(it timeheap.Item, d *tombstone.Dead, now int64) {
	s.stats.Deleted++
	d.By.Removed++
	s.fifo.Finish(arena.Ref(it.ID))
	id := s.queues.At(it.Aux).host
	if h := s.hosts.At(id); h.scheduled == 0 && h.pins == 0 && h.place == nowhere {
		s.settle(id, now)
	}
}

// timedDeadLocked reports whether a record of a timed block is finished: a Force has
// replaced it, or it was deleted.
func (s *shard) timedDeadLocked(r *timed.Loaded) bool {
	if s.supersededLocked(r) {
		s.foundOutdatedLocked(r)
		return true
	}
	d := s.sched.storedTombstones.Of(hostkey.Bytes(r.Host), r.Crawl)
	if d.Seq < r.Seq {
		return false
	}
	s.sched.stats.Deleted++
	d.By.Removed++
	return true
}

// Timed takes in a timed block at an opening.
func (r *recovery) Timed(b storage.TimedBlock) error {
	if b.Priority > 0 && !r.f.isPriority(b.Priority) {
		return r.tooHigh(b.Priority)
	}
	return r.timed.Block(b, r.f.storedDue(b.Due))
}
