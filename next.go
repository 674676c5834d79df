// This file hands out leases: the calls that ask for one, those that wait, the timer that
// serves them all, and reading the next URLs of a host from disk.
//
// Waiting calls of Next form one queue, those of Contact one for each host. What becomes
// available goes to the first of them: no other wakes, and none polls. URLs on disk are
// read outside the lock, in the goroutine that waits for them.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/waitqueue"
	"github.com/seed-7440039f/frontier/storage"
)

// Next returns the lease of the next URL that may be fetched, and waits for one if
// necessary. Waiting calls are served in the order of their arrival. It returns ctx's
// error, ErrClosed, ErrExhausted when the crawl is over, a *SelectorError, or the Spill's
// error for URLs that could not be read.
func (f *Frontier) Next(ctx context.Context) (Lease, error) {
	var g grant
	for f.await(ctx, &g, nil) { // any number may be put off after a pause
		g = grant{}
	}
	return g.lease, g.err
}

// await fills g, which must be zero, with what a call of Next gets, or one of Take at first.
// It reports whether there is neither a lease nor an error, so that the caller must ask
// again.
func (f *Frontier) await(ctx context.Context, g *grant, t *taking) (again bool) {
	if g.err = ctx.Err(); g.err != nil {
		return false // a cancelled worker must not take a host
	}
	f.lock()
	if g.err = f.refusalLocked(); g.err != nil {
		f.mu.Unlock()
		return false
	}
	for t.filtered() || f.waiters.Empty() { // no call came before
		if f.chooseLocked(g, t, f.last) {
			f.mu.Unlock()
			return f.accept(ctx, g)
		}
		if !f.moreLocked(f.last) {
			break
		}
		f.mu.Unlock()
		f.lock()
		if g.err = f.refusalLocked(); g.err != nil {
			f.mu.Unlock()
			return false
		}
	}
	calls := f.queueFor(t)
	w := calls.Push()
	f.dispatchLocked() // may give w the end of the crawl
	f.mu.Unlock()
	select {
	case *g = <-w.Granted:
		return f.accept(ctx, g)
	case <-ctx.Done():
	}
	f.mu.Lock()
	if w.Waits() {
		calls.Remove(w)
		f.leftLocked(t)
		f.mu.Unlock()
		g.err = ctx.Err()
		return false
	}
	f.mu.Unlock() // a grant is on its way: take it, and give it back
	*g = <-w.Granted
	if g.load != nil {
		*g = f.loadFor(ctx, g.load)
	}
	f.giveBack(g, ctx.Err())
	return false
}

// nextLocked finds what a caller of Next may have now: a lease, a host to read
// for, or an error. It reports whether there is anything. g is large, so it is not
// handed around, and must be zero. If crawls are named, only their URLs will do.
func (s *shard) nextLocked(g *grant, now int64, crawls []uint32) bool {
	if len(s.faults) > 0 {
		g.err = s.faults[0]
		s.faults = s.faults[1:]
		return true
	}
	s.callLocked(now)
	ch, ok, err := s.sched.next(now, crawls)
	switch {
	case err != nil:
		g.err = (*SelectorError)(err.(*badChoice))
		return true
	case !ok:
		return false
	}
	s.grantLocked(g, ch)
	return true
}

// grantLocked leases what was chosen, or makes it a read that comes before.
func (s *shard) grantLocked(g *grant, ch choice) {
	if ch.load != 0 {
		g.load = s.jobLocked(ch)
		return
	}
	s.leaseLocked(&g.lease, ch.queue)
}

// TryNext is Next without waiting for a host or for an Add; it may read from disk. If no
// URL may be fetched now it returns ErrNotDue and the earliest time at which one may
// become available. Treat it as a lower bound: another rule or group may still withhold
// the host then. A zero time means that only another call can change anything.
func (f *Frontier) TryNext() (Lease, time.Time, error) {
	for {
		l, at, again, err := f.tryNext(context.Background(), nil)
		if again || f.rechecker != nil && err == nil && f.putOff(&l) {
			continue
		}
		return l, at, err
	}
}

func (f *Frontier) tryNext(ctx context.Context, t *taking) (l Lease, at time.Time, again bool, err error) {
	f.lock()
	defer f.mu.Unlock()
	if err := f.refusalLocked(); err != nil {
		return l, at, false, err
	}
	if t.filtered() || f.waiters.Empty() {
		var g grant
		ok := f.chooseLocked(&g, t, f.last)
		if ok && g.load != nil {
			f.mu.Unlock()
			g = f.loadFor(ctx, g.load)
			f.mu.Lock()
		}
		if ok {
			return g.lease, at, g.again, g.err
		}
		if f.moreLocked(f.last) {
			return l, at, true, nil
		}
		if f.readDueLocked(f.last) {
			f.mu.Unlock()
			_, err := patience.Ask(ctx, f.abandoned, func() (bool, error) { return f.readTimed(true), nil })
			f.mu.Lock()
			return l, at, err == nil, err
		}
		if len(f.sched.lost) > 0 || f.givingStep != nil {
			f.mu.Unlock()
			_, err := patience.Ask(ctx, f.abandoned, func() (bool, error) { return f.giveUpSome(false), nil })
			f.mu.Lock()
			return l, at, err == nil, err
		}
		if f.overLocked() {
			return l, at, false, f.exhaustedLocked()
		}
	}
	next := f.nextEventFor(t, f.last)
	if f.sched.places[unpurged]+f.sched.sweptCrawls > 0 {
		next = min(next, f.last+sweepTime)
	}
	if next != instant.Never {
		at = f.wall(next)
	}
	return l, at, false, ErrNotDue
}

// Contact waits until a host may be contacted and returns a lease without a URL, for
// robots.txt and the like. host is a host key. One lease is one contact: call Done with
// it, which moves the host's clock. Calls for one host are served in order, and before
// its URLs. While a lease of the host is out, Contact waits for its end. Errors are those
// of Next, except ErrExhausted, and the Spill's if the host's row cannot be read.
func (f *Frontier) Contact(ctx context.Context, host string) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return Lease{}, err
	}
	host, err := f.hostKey(host)
	if err != nil {
		return Lease{}, fmt.Errorf("frontier: contact: %w", err)
	}
	if err := f.lockWithHost(ctx, host); err != nil {
		return Lease{}, err
	}
	if err := f.refusalLocked(); err != nil {
		f.mu.Unlock()
		return Lease{}, err
	}
	id := f.sched.ensure(f.hostHash(host), host)
	f.sched.wantContact(id, f.last)
	q := f.contacts[id]
	if q == nil {
		q = &waitqueue.Queue[grant]{}
		f.contacts[id] = q
	}
	w := q.Push()
	f.dispatchLocked()
	f.mu.Unlock()
	select {
	case g := <-w.Granted:
		f.accept(ctx, &g) // of nothing that could be put off
		return g.lease, g.err
	case <-ctx.Done():
	}
	f.mu.Lock()
	if !w.Waits() {
		f.mu.Unlock()
		g := <-w.Granted
		f.giveBack(&g, ctx.Err())
		return Lease{}, g.err
	}
	q.Remove(w)
	if q.Empty() {
		f.dropContactsLocked(id, f.nowLocked())
	}
	f.dispatchLocked() // its URLs may be had again, or the crawl is over
	f.mu.Unlock()
	return Lease{}, ctx.Err()
}

// dropContactsLocked forgets the Contact calls of a host: none waits any more.
func (s *shard) dropContactsLocked(id uint32, now int64) {
	delete(s.contacts, id)
	h := s.sched.hosts.At(id)
	h.wanted = false
	switch h.place {
	case leased, loading:
	default:
		s.sched.detach(id)
		s.sched.settle(id, now)
	}
}

// wantContact notes that a Contact waits for a host, which needs a back queue
// then even if it has no URLs.
func (s *scheduler) wantContact(id uint32, now int64) {
	h := s.hosts.At(id)
	h.wanted = true
	switch h.place {
	case leased, loading, pacing, called, withheld:
	case queued:
		s.promote(id, now)
	case ready:
		s.detach(id) // it keeps its group's slot
		s.put(h, called)
		s.calls = append(s.calls, id)
	default:
		s.detach(id)
		s.setPacing(id, h, now)
	}
}

// grant is what a waiter waited for: a lease, a host whose next record it must
// read itself, an error, or nothing: it must wait again.
type grant struct {
	lease Lease
	load  *loadJob
	err   error
	again bool
}

// dispatchLocked gives waiters what may be had now, and sets the timer for the
// rest. It must be called after any change that a waiter could wait for.
func (f *Frontier) dispatchLocked() {
	if err := f.refusalLocked(); err != nil {
		f.refuseLocked(err)
		return
	}
	f.wakeReaderLocked()
	f.startGivingUpLocked()
	f.startHintsLocked()
	if !f.awaited() && len(f.contacts) == 0 {
		return
	}
	now := f.nowLocked()
	for !f.waiters.Empty() {
		var g grant
		if !f.nextLocked(&g, now, nil) {
			break
		}
		f.waiters.Give(&g)
	}
	if f.waiters.Empty() { // else nextLocked did, and took all that came of it
		f.sched.advance(now)
	}
	f.callLocked(now)
	if len(f.takers) > 0 {
		f.giveTakersLocked(now)
	}
	if f.moreLocked(now) {
		f.goOnLocked()
		return
	}
	if f.awaited() && f.overLocked() {
		err := f.exhaustedLocked()
		f.waiters.GiveAll(&grant{err: err})
		f.endTakersLocked(err)
	}
	f.armLocked(now)
}

// moreLocked reports whether time has more to bring now than was looked at under
// one lock.
func (s *shard) moreLocked(now int64) bool { return s.sched.nextEvent(now) <= now }

// goOnLocked dispatches again as soon as others have had the lock.
func (f *Frontier) goOnLocked() {
	if f.goingOn || f.closed {
		return
	}
	f.goingOn = true
	f.background.Add(1)
	go func() {
		defer f.background.Done()
		f.lock()
		defer f.mu.Unlock()
		f.goingOn = false
		if !f.closed {
			f.dispatchLocked()
		}
	}()
}

// callLocked gives hosts to the Contact calls that wait for them.
func (s *shard) callLocked(now int64) {
	for len(s.sched.calls) > 0 {
		id := s.sched.calls[0]
		s.sched.detach(id)
		if !s.sched.stillDue(id, now) {
			continue
		}
		q := s.contacts[id]
		var g grant
		due := s.sched.hosts.At(id).due
		s.newLeaseLocked(&g.lease, s.sched.leaseHost(leaseRecord{
			token: s.nextTokenLocked(), leasedAt: now, deadline: now + int64(s.opts.LeaseTime), host: id,
		}, now))
		s.setDue(&g.lease, due)
		q.Give(&g)
		if q.Empty() {
			s.dropContactsLocked(id, now) // with more lanes it has a place for a Contact that waits
			continue
		}
		s.sched.advance(now) // it may have another lane
	}
}

// refuseLocked gives an error to all waiters, and lets Drain return once the last lease
// has ended.
func (f *Frontier) refuseLocked(err error) {
	f.waiters.GiveAll(&grant{err: err})
	f.endTakersLocked(err)
	for id, q := range f.contacts {
		q.GiveAll(&grant{err: err})
		f.dropContactsLocked(id, f.nowLocked())
	}
	if f.drained != nil && f.sched.stats.Leased == 0 && f.finishing == 0 {
		close(f.drained)
		f.drained = nil
	}
	if f.drained != nil {
		f.armLocked(f.nowLocked())
	}
}

// armLocked makes sure that the timer fires at the next event.
func (f *Frontier) armLocked(now int64) {
	if !f.awaited() && len(f.contacts) == 0 && f.drained == nil || f.closed {
		return
	}
	at := f.sched.expiry.Min()
	if !f.draining {
		at = min(f.sched.nextEvent(now), f.readEventLocked(now), f.hintsDueLocked(), f.tellWaitLocked(now))
	}
	if at == instant.Never || f.timer != nil && f.timerAt <= at && f.timerAt > now {
		return
	}
	if f.sched.awaitsDate() {
		at = min(at, now+int64(lookAgain))
	}
	f.timerAt = at
	wait := time.Duration(max(0, at-now))
	if f.timer == nil {
		f.timer = f.opts.Clock.AfterFunc(wait, f.tick)
		return
	}
	f.timer.Reset(wait)
}

// tick is called by the timer.
func (f *Frontier) tick() {
	f.lock()
	f.timerAt = 0
	if !f.closed {
		f.dispatchLocked()
	}
	f.mu.Unlock()
}

// accept makes of a grant what its caller gets: a lease or an error, or neither
// but to be given back if its context ended meanwhile. It reports whether the caller
// must ask again.
func (f *Frontier) accept(ctx context.Context, g *grant) (again bool) {
	if g.load != nil {
		*g = f.loadFor(ctx, g.load)
	}
	if err := ctx.Err(); err != nil && g.err == nil {
		f.giveBack(g, err)
		return false
	}
	return g.again || f.rechecker != nil && g.err == nil && f.putOff(&g.lease)
}

// giveBack returns the lease of a grant that came too late, uncontacted. What is left
// of the grant is the error.
func (f *Frontier) giveBack(g *grant, err error) {
	switch {
	case g.err != nil:
		return
	case !g.again:
		err = errors.Join(err, f.Done(g.lease, Outcome{Result: Requeue, Uncontacted: true}))
	}
	*g = grant{err: err}
}

// claim reports whether a host in place loading may still be leased. If it has
// come to another group meanwhile it takes a slot of that.
func (s *scheduler) claim(id uint32, now int64) bool {
	h := s.hosts.At(id)
	if h.due > now || s.full(id) || !s.mayServe(id, now) || !h.hasSlot && !s.takeSlot(h.group, now) {
		return false
	}
	h.hasSlot = h.group != 0
	return true
}

// prepare says whether the queue's next record must be read from disk.
func (t *tables) prepare(qid uint32) choice {
	q := t.queues.At(qid)
	ch := choice{host: q.host, queue: qid}
	ch.load, ch.want = t.fifo.Next(&q.Queue)
	return ch
}

// unload puts a host back whose next record was not read after all.
func (s *scheduler) unload(id uint32, now int64) {
	h := s.hosts.At(id)
	s.dropSlot(h, now)
	s.put(h, nowhere)
	h.served = max(h.served, 1) // still bound
	s.settle(id, now)
}

// loadJob is a read that its owner must do: the host is in place loading.
type loadJob struct {
	choice
	part storage.Part
}

func (s *shard) jobLocked(ch choice) *loadJob {
	return &loadJob{ch, s.sched.blocks.Part(ch.load)}
}

// load reads the records of a job and leases the first. It waits for the disk.
func (f *Frontier) load(job *loadJob) (g grant) {
	for job != nil {
		records, err := f.read(job.part, job.want)
		if err != nil && err != ErrClosed {
			f.emit(Event{Kind: EventStoreError, Reason: "reading URLs", Count: int64(bits.OnesCount32(job.want)), Err: err})
		}
		job = f.loaded(&g, job, records, err)
	}
	return g
}

// loaded ends a job whose records were read, or could not be, and fills g, which is zero, or
// returns a job that comes before. If they cannot be read the caller gets the error; records
// that are damaged are given up in memory, and left on disk.
func (f *Frontier) loaded(g *grant, job *loadJob, records []fifo.Loaded, err error) (before *loadJob) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.nowLocked()
	f.readEndedLocked()
	if err != nil {
		var corrupt *CorruptError
		if errors.As(err, &corrupt) {
			f.sched.abandon(job.queue, job.load)
		}
		f.storeFailedLocked(err)
		f.sched.unload(job.host, now)
		f.dispatchLocked()
		g.err = err
		return nil
	}
	q := f.sched.queues.At(job.queue)
	f.sched.fifo.Install(&q.Queue, job.load, records)
	if q.waiting == 0 || f.refusalLocked() != nil || !f.sched.crawlOf(q).runs() || !f.sched.claim(job.host, now) {
		f.sched.unload(job.host, now) // its last URL was moved by a Force, a late Done asked for time, or a rule or its crawl says so
		g.err = f.refusalLocked()
		g.again = g.err == nil
		f.dispatchLocked()
		return nil
	}
	if f.sched.tombstones.Len() > 0 && !f.sched.headAlive(job.queue, now) {
		g.again = true
		f.dispatchLocked()
		return nil
	}
	if ch := f.sched.prepare(job.queue); ch.load != 0 { // all that was read had been taken
		return f.jobLocked(ch)
	}
	f.leaseLocked(&g.lease, job.queue)
	f.dispatchLocked() // others may wait for its deadline, or have another lane of the host
	return nil
}

// readFor is read for a caller that waits until ctx ends.
func (s *shard) readFor(ctx context.Context, p storage.Part, want uint32) ([]fifo.Loaded, error) {
	return patience.Ask(ctx, s.abandoned, func() ([]fifo.Loaded, error) { return s.read(p, want) })
}

// peek copies the wanted records of a part out of the Spill if it need not wait for the disk;
// otherwise it returns nil.
func (s *shared) peek(p storage.Part, want uint32) *fifo.Copy {
	if s.peeker == nil {
		return nil
	}
	c := fifo.NewCopy()
	if s.peeker.Peek(p, want, c.Add) && c.Check() == nil {
		return c
	}
	c.Free()
	return nil
}

// read copies the wanted records of a part out of the Spill.
func (s *shard) read(p storage.Part, want uint32) ([]fifo.Loaded, error) {
	c := fifo.NewCopy() // the caller keeps it
	if err := s.opts.Spill.Load(p, want, c.Add); err != nil {
		if s.isClosed() {
			return nil, ErrClosed
		}
		return nil, err
	}
	return c.Records, c.Check()
}

// within returns the host key as a piece of its URL if it is one, which spares
// an allocation for each lease.
func within(url string, name []byte) string {
	if at := strings.IndexByte(url, ':') + len("://"); len(url) >= at+len(name) && url[at:at+len(name)] == string(name) {
		return url[at : at+len(name)]
	}
	return string(name)
}

// abandon gives up the chain's first part, which cannot be read. Its records
// stay on disk; they are not waiting any more.
func (s *scheduler) abandon(qid, pid uint32) {
	q := s.queues.At(qid)
	n := s.fifo.Abandon(&q.Queue, pid)
	s.counted(q, -n)
	s.stats.Unreadable += int64(n)
}

// loadFor is load for a caller that waits until ctx ends. A lease that comes later is
// given back. What need not wait for the disk is read at once, the rest by another goroutine.
func (f *Frontier) loadFor(ctx context.Context, job *loadJob) (g grant) {
	for job != nil {
		c := f.peek(job.part, job.want)
		if c == nil {
			return f.loadElsewhere(ctx, job)
		}
		job = f.loaded(&g, job, c.Records, nil)
		c.Free()
	}
	return g
}

// loadElsewhere is load in another goroutine.
func (f *Frontier) loadElsewhere(ctx context.Context, job *loadJob) grant {
	var g grant
	if err := f.hands.Do(ctx, f.abandoned, func() { g = f.load(job) }, func() { f.giveBack(&g, nil) }); err != nil {
		return grant{err: err}
	}
	return g
}
