// This file ends leases by Done.
//
// The user's code (delay policy, retry policy, prioritizer, scheduler) runs before the lock is taken, on the
// values of the lease. Then one step under the lock moves the host's clock, frees its slots and submits the completion.

package frontier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/clock"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/unit"
	"github.com/seed-7440039f/frontier/storage"
)

// plan is what was decided about an ending lease before the lock was taken.
type plan struct {
	outcome  Outcome
	end      int64 // ns since Open
	hostGap  int64 // ns that the host is left alone from end; -1: its clock is unchanged
	groupGap int64
	stays    bool  // the URL remains in the frontier, as a new record
	due      int64 // the date when it comes again; 0: at once
	next     int64 // the date of outcome.Next; 0: at once, or none
	priority uint8 // 0: as before
	retry    bool
	state    State // what the scheduler keeps of it, if it was asked
	asked    bool
	givenUp  bool
	expired  bool
	spared   bool // its host was being probed: the try does not count
	late     bool // its lease has ended before: only the host's clock counts
}

// Done ends a lease. When it has returned without an error the URL will not be handed out
// again except as the outcome says, and the outlinks in o.Add are admitted, both in one
// commit. Of more than 8,192 outlinks, or 1 MiB of them, all but the last part are admitted
// before, so that a page of any size takes little memory. Known outlinks with Force follow
// in separate commits.
//
// A bad outlink of the web is no error: one such as mailto:, or that is malformed, too long
// or over a limit is refused, counted in Stats.Refused and reported by EventLinksRefused, and
// the others are admitted. So a program may end its crawl at any error of Done. An error
// means that something was lost or must be looked at, and what it leaves behind depends on
// its kind:
//
//   - ErrFull, or joined *EntryErrors: the completion is recorded, but outlinks are lost,
//     because memory is full, the Spill failed, or the program made a mistake: a link is
//     relative (resolve links against the URL of their page), an Entry is faulty, or a function in
//     Options, such as a Prioritizer that counts from 0, returned what it must not. *PriorityError:
//     the completion is recorded, and the URL keeps its former priority. A program that
//     accepts that goes on.
//   - ErrNotLeased: the lease ended before, and the frontier has dealt with its URL. Only
//     the host may have become slower: its clock and that of its group move to a later time, a longer Crawl-delay
//     applies, and a failure counts. A worker that was too slow goes on.
//   - ErrOutcome: the outcome is faulty. Nothing has changed, and the lease is out.
//   - Any other error: nothing but the host's clock has changed, to a later time, and the
//     URL waits again.
//
// Done waits for the disk for as long as that takes, or until the context of CloseContext
// ends: it must work while everything else is shutting down. DoneContext takes a context.
func (f *Frontier) Done(l Lease, o Outcome) error {
	refused, err := f.done(context.Background(), &l, &o)
	if len(refused) > 0 {
		err = errors.Join(err, mistakes(refused))
	}
	return err
}

// DoneContext is Done, but returns which outlinks were refused, relative ones and faulty
// Entries among them, which are no error here, and waits no longer than ctx lasts. If ctx
// ends before the completion is submitted, the error is ctx's and the lease remains out.
// Otherwise it wraps ErrUnsettled as well: the lease has ended, and its URL is finished or
// comes again, once the disk answers or when the store is opened next.
func (f *Frontier) DoneContext(ctx context.Context, l Lease, o Outcome) (refused []*EntryError, err error) {
	return f.done(ctx, &l, &o)
}

// done is DoneContext. Both values are large, so they are not handed around. They are the
// caller's: nothing keeps a pointer to them.
func (f *Frontier) done(ctx context.Context, l *Lease, o *Outcome) (refused []*EntryError, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkOutcome(o); err != nil {
		return nil, err
	}
	job, lost, undone, err := f.prepareLinks(ctx, l, o, nil)
	if err != nil {
		return nil, err
	}
	refused, err = f.doneWith(ctx, job, l, o, errors.Join(undone, lost))
	job.free()
	return refused, err
}

// doneWith is done with an op, which it may leave to the committer, and with what is bad already.
func (f *Frontier) doneWith(ctx context.Context, job *op, l *Lease, o *Outcome, bad error) (refused []*EntryError, err error) {
	p := plan{outcome: *o}
	at := f.endsNow(&p, l)
	bad = errors.Join(bad, f.plan(&p, l, at))
	if err := f.awaitRoom(job); err != nil {
		return nil, err
	}
	if len(job.entries) == 0 {
		f.lockAt(at)
	} else {
		unknown, err := f.lockKnowing(job)
		if err != nil {
			return nil, err
		}
		bad = errors.Join(bad, unknown)
	}
	if _, err := f.leaseOutLocked(l); err != nil || p.late {
		f.mu.Unlock()
		return nil, errors.Join(cmp.Or(err, ErrNotLeased), f.late(ctx, *l, p))
	}
	bad = errors.Join(bad, f.endLocked(job, l, &p))
	if refused = job.refused; len(refused) > 0 {
		var lost error
		refused, lost = lostByCode(refused)
		bad = errors.Join(bad, lost)
	}
	if f.needsNoCommitLocked(job, &p) {
		f.dispatchLocked()
		f.mu.Unlock()
		return refused, bad
	}
	if len(job.forced) > 0 {
		f.adding.Add(1) // the crawl is not over before they are admitted
		defer f.addedAll()
	}
	err = f.submitAndUnlock(job)
	if job.left {
		go f.doneLate(job, *l, p)
		return refused, errors.Join(err, bad)
	}
	return refused, errors.Join(err, bad, f.doneRest(ctx, job, err, l, &p))
}

// endLocked ends a lease that is out in memory, and fills job with what must be committed.
func (f *Frontier) endLocked(job *op, l *Lease, p *plan) error {
	f.spareLocked(l.record, p)
	f.orphansLocked(job, l.record, p.outcome.Add)
	bad := f.finishLocked(job, l.record, p)
	if len(job.refused) > 0 {
		f.linksRefusedLocked(l, job.refused)
	}
	return bad
}

// errOrphan is why links are refused whose crawl was forgotten while their page was fetched.
var errOrphan = errors.New("the crawl was deleted and forgotten while the page was fetched")

// orphansLocked refuses links of a page into its own crawl if that was forgotten meanwhile: they would
// make it anew.
func (s *shard) orphansLocked(o *op, lease uint32, links []Entry) {
	l := s.sched.leases.At(lease)
	if s.forgotten.version.Load() == 0 || l.record == 0 {
		return
	}
	crawl := s.sched.crawlOf(s.sched.queues.At(l.queue)).id
	if s.forgottenLocked("", crawl) <= s.sched.records.At(l.record).Seq() {
		return
	}
	o.entries = slices.DeleteFunc(o.entries, func(e newEntry) bool {
		orphan := e.crawl == crawl
		if orphan {
			o.refuse(e.index, EntryRefused, &EntryError{Index: e.index, URL: shortened(links[e.index].URL), Err: errOrphan})
		}
		return orphan
	})
}

// orphans is orphansLocked for a part of the links, before the rest.
func (f *Frontier) orphans(o *op, l *Lease, links []Entry) {
	f.lock()
	defer f.mu.Unlock()
	if _, err := f.leaseOutLocked(l); err == nil {
		f.orphansLocked(o, l.record, links)
	}
}

// needsNoCommitLocked reports whether a completion that has ended in memory changes nothing on
// disk, and depends on nothing that is on its way there: an outlink may be known by a commit
// that fails yet.
func (f *Frontier) needsNoCommitLocked(job *op, p *plan) bool {
	return job.empty() && (len(p.outcome.Add) == 0 || !f.committer.log.Busy())
}

// doneLate finishes a completion whose caller no longer waits. It takes copies: Done's values stay off the heap.
func (f *Frontier) doneLate(job *op, l Lease, p plan) {
	f.guard("the code that a completion calls", l.Host, func() {
		_ = f.doneRest(context.Background(), job, job.done.Result(), &l, &p)
	})
}

// doneRest does what follows the commit of a completion, whose result is err. It returns
// errors for the outlinks that could not be forced.
func (f *Frontier) doneRest(ctx context.Context, job *op, err error, l *Lease, p *plan) (lost error) {
	if err != nil {
		return nil
	}
	if len(job.forced) > 0 {
		_, bad := f.forceAll(ctx, job.forced)
		job.verdictsOfForced(job.forced, bad)
		lost = joined(bad, nil)
	}
	if p.givenUp && f.opts.OnGiveUp != nil {
		f.opts.OnGiveUp(l.Entry, p.outcome)
	}
	return lost
}

func checkOutcome(o *Outcome) error {
	if o.Result > PutOff {
		return fmt.Errorf("%w: Result is %d; want 0 to %d", ErrOutcome, o.Result, PutOff)
	}
	if o.Result == PutOff {
		if o.Next.IsZero() {
			return fmt.Errorf("%w: put off without a Next", ErrOutcome)
		}
		o.Uncontacted = true
	} else if o.Move {
		return fmt.Errorf("%w: %v with Move; want put off", ErrOutcome, o.Result)
	}
	if o.Crawl != 0 && !o.Move {
		return fmt.Errorf("%w: Crawl is %d without Move", ErrOutcome, o.Crawl)
	}
	if int(o.Failure) >= failures {
		return fmt.Errorf("%w: Failure is %d; want 0 to %d", ErrOutcome, o.Failure, failures-1)
	}
	if o.Failure != 0 && o.Result != Failed {
		return fmt.Errorf("%w: %v with Failure %v; want failed", ErrOutcome, o.Result, o.Failure)
	}
	if o.Uncontacted && o.Result != Denied && o.Result < Requeue {
		return fmt.Errorf("%w: %v with Uncontacted; want denied or requeue", ErrOutcome, o.Result)
	}
	if unit.Missing(o.RetryAfter, unit.Measured) && !o.Uncontacted {
		return fmt.Errorf("%w: %w", ErrOutcome, unit.Check("RetryAfter", o.RetryAfter, unit.Measured))
	}
	if unit.Missing(o.CrawlDelay, unit.Least) {
		return fmt.Errorf("%w: %w", ErrOutcome, unit.Check("CrawlDelay", o.CrawlDelay, unit.Least))
	}
	if len(o.Meta) > MaxMeta {
		return fmt.Errorf("%w: Meta has %d bytes; want at most %d", ErrOutcome, len(o.Meta), MaxMeta)
	}
	return nil
}

// endOf is the moment at which a lease's contact ended, as far as its outcome says, and
// now at the latest. A time from a clock that was set since is ignored.
func (s *shared) endOf(l *Lease, ended time.Time, now int64) int64 {
	if ended.IsZero() || s.clock.MovedSince(l.moment) && ended == ended.Round(0) {
		return now
	}
	at := s.owed(ended)
	if at < l.moment-10*clock.LeastStep {
		return now // by another clock than ours: when in doubt, wait
	}
	return min(max(at, l.moment), now)
}

// plan asks the user's policies about an ending lease. p has the outcome, and whether the
// lease expired.
func (f *Frontier) plan(p *plan, l *Lease, now int64) error {
	o := &p.outcome
	p.end, p.hostGap = f.endOf(l, o.Ended, now), -1
	o.Ended = f.wall(p.end)
	if !o.Next.IsZero() {
		p.next = f.dueDate(o.Next)
	}
	if o.Duration <= 0 {
		o.Duration = time.Duration(p.end - l.moment)
	}
	if !o.Uncontacted {
		p.hostGap = delayBy(f.delayOf(l.Host), l.Host, *o)
		p.groupGap = delayBy(f.opts.GroupDelay, l.Group, *o)
	}
	switch {
	case l.Entry.URL == "" || o.Result == Requeue || p.late:
		return nil // no URL was visited
	case o.Result == PutOff:
		p.stays, p.due = true, p.next
		p.state, p.asked = l.History.State, f.rechecker != nil
		return nil
	}
	if o.Result != Failed && o.Next.IsZero() && f.opts.Scheduler == nil {
		return nil // no policy is asked about the URL
	}
	e, h := l.Entry, l.History.after(*o)
	if o.Meta != nil {
		e.Meta = o.Meta
	}
	if o.Result == Failed {
		var wait time.Duration
		wait, p.retry = f.opts.Retry.Retry(e, l.Attempt, *o)
		p.stays = p.retry
		p.state, p.asked = l.History.State, f.rechecker != nil
		switch {
		case !p.retry || p.expired:
		case !o.Next.IsZero():
			p.due = p.next
		default:
			p.due = f.dueDate(o.Ended.Add(min(max(0, wait), maxDelay)))
		}
	} else if !o.Next.IsZero() {
		p.stays, p.due = true, p.next
	}
	if !p.stays && f.opts.Scheduler != nil {
		f.schedule(p, Visit{Entry: e, Host: l.Host, Before: l.History, History: h, Outcome: *o})
		h.State = p.state
	}
	p.givenUp = o.Result == Failed && !p.stays
	if !p.stays {
		return nil
	}
	prio, err := f.priority(e, h)
	if err == nil { // else it keeps its priority
		p.priority = prio
	}
	return err
}

// schedule asks the scheduler about an ending lease.
func (s *shared) schedule(p *plan, v Visit) {
	due, state := s.opts.Scheduler.Next(v)
	p.state, p.asked = state, true
	if !due.IsZero() {
		p.stays, p.due = true, s.dueDate(due)
	}
}

// contact is the contact that a plan ends.
func (p *plan) contact() contact {
	return contact{end: p.end, gap: p.hostGap, retryAfter: p.outcome.RetryAfter}
}

// groupDue is until when a slot of a group is left alone; 0: it was not contacted.
func (p *plan) groupDue(c *scheduler, g *group) int64 {
	if p.hostGap < 0 {
		return 0
	}
	if d, ok := c.delayOf(g).(DelayPolicy); ok {
		return p.end + delayBy(d, c.groupName(g), p.outcome)
	}
	return p.end + p.groupGap
}

// delayBy is how long a policy leaves a host or group alone. A negative answer is a mistake of the
// policy's, perhaps an overflow: then it is the longest that the policy has.
func delayBy(p DelayPolicy, name string, o Outcome) int64 {
	d := p.Delay(name, o)
	if d < 0 {
		d = p.Max()
	}
	return int64(min(max(0, d), maxDelay))
}

// endsNow returns the moment at which a lease ends. If there is a Scheduler, which sees each
// visit once, p gets whether the lease has ended before.
func (f *Frontier) endsNow(p *plan, l *Lease) int64 {
	if f.opts.Scheduler == nil {
		return f.moment()
	}
	f.lock()
	defer f.mu.Unlock()
	_, err := f.leaseOutLocked(l)
	p.late = err != nil
	return f.last
}

// isOut reports whether a lease is out.
func (f *Frontier) isOut(l *Lease) bool {
	f.lock()
	defer f.mu.Unlock()
	_, err := f.leaseOutLocked(l)
	return err == nil
}

// leaseOutLocked returns the lease record of a lease that is out.
func (s *shard) leaseOutLocked(l *Lease) (*leaseRecord, error) {
	if s.closed {
		return nil, ErrClosed
	}
	if l.token == 0 || l.record == 0 || l.record > s.sched.leases.Top {
		return nil, ErrNotLeased
	}
	if r := s.sched.leases.At(l.record); r.token == l.token && !r.ending {
		return r, nil
	}
	return nil, ErrNotLeased
}

// late lets a Done that came too late make its host slower.
func (f *Frontier) late(ctx context.Context, l Lease, p plan) error {
	if p.hostGap < 0 && p.outcome.RetryAfter <= 0 && p.outcome.CrawlDelay <= 0 || l.token == 0 || hostkey.Check(l.Host) != nil {
		return nil
	}
	switch err := f.lockWithHost(ctx, l.Host); {
	case errors.Is(err, ErrClosed):
		return nil
	case err != nil:
		return err
	}
	defer f.mu.Unlock()
	f.lateLocked(l, p)
	return nil
}

func (f *Frontier) lateLocked(l Lease, p plan) {
	id := f.sched.ensure(f.hostHash(l.Host), l.Host)
	now := f.nowLocked()
	h := f.sched.hosts.At(id)
	if d := p.outcome.CrawlDelay; int64(d) > h.crawlDelayNs() {
		f.learnLocked(h, d)
	}
	f.contactLocked(id, l.token, &p)
	f.lateGroupLocked(l.Group, &p, now)
	if g := h.group; g != 0 && f.sched.groupName(f.sched.groups.At(g)) != l.Group {
		f.sched.stampGroup(g, p.groupDue(f.sched, f.sched.groups.At(g)), now)
	}
	x := f.sched.clocksAfter(id, p.contact())
	due, why := x.due()
	if due <= h.due {
		if !h.has(unsaved) {
			if h.place == idling { // how long it is remembered may have changed
				f.sched.detach(id)
				f.sched.settle(id, now)
			}
			return
		}
		due, why = h.due, h.why
	}
	o := newOp()
	if f.opts.Spill != nil {
		f.noteLocked(o, id, due, why, now) // first, for it pins the host
	}
	f.sched.later(id, due, why, f.nowLocked())
	if o.empty() {
		o.free()
		return
	}
	o.after = func(error) {} // nobody waits
	f.submitAsyncLocked(o)
}

// lateGroupLocked moves the clock of the group that a lease belonged to, which may be unknown
// since the store was opened again.
func (f *Frontier) lateGroupLocked(name string, p *plan, now int64) {
	if p.hostGap < 0 || row.CheckGroup(name) != nil {
		return
	}
	f.sched.sweepGroups(now)
	g := f.sched.groupOf(name)
	f.sched.stampGroup(g, p.groupDue(f.sched, f.sched.groups.At(g)), now)
}

// finishLocked ends a lease in memory and fills o with what must be committed. It returns
// ErrFull if the outlinks had to be refused.
func (f *Frontier) finishLocked(o *op, lease uint32, p *plan) error {
	c := f.sched
	now := f.last
	l := c.endLease(lease)
	c.quiet = quiet{since: now}
	h := c.hosts.At(l.host)
	out := &p.outcome
	c.stats.Done[out.Result]++
	if l.record != 0 {
		c.crawlOf(c.queues.At(l.queue)).stats.Done[out.Result]++
	}
	was := f.sched.learnt(l.host)
	f.learnLocked(h, out.CrawlDelay)
	f.contactLocked(l.host, l.token, p)
	if c.limits != nil {
		f.countDoneLocked(o, &l, out)
	}
	x := f.sched.clocksAfter(l.host, p.contact())
	due, why := x.due()
	if out.RetryAfter >= longRetryAfter {
		f.emitLocked(Event{Kind: EventHostBlocked, Host: string(c.name(h)), Until: f.wall(due), Reason: "Retry-After"})
	}
	switch {
	case l.record == 0:
	case f.sched.leaseDead(&l) != 0:
		f.endDeadLocked(o, &l, *p)
	case out.Result == Requeue && f.againLocked(l.record) == nil:
		c.returnHead(l.queue, l.record)
		c.filled(l.queue, now)
	default:
		f.endRecordLocked(o, h, &l, p)
	}
	if f.opts.Spill != nil {
		f.noteLocked(o, l.host, due, why, now)
	}
	err := f.outlinksLocked(o)
	if !o.empty() { // else nothing can fail
		f.mayUnlearnLocked(o, l.host, was, p)
	}
	if len(o.entries) > 0 {
		f.pinLocked(o, l.host) // perhaps they are its own: then it has something to do still
	}
	c.endGroups(&l, now, func(g *group) int64 { return p.groupDue(c, g) })
	c.settleLease(&l, now, x)
	return err
}

// endRecordLocked plans the end of a record, and what replaces it.
func (s *shard) endRecordLocked(o *op, h *host, l *leaseRecord, p *plan) {
	c := s.sched
	again := s.againLocked(l.record)
	s.endsLocked(o, l.queue, l.record)
	q := c.queues.At(l.queue)
	if p.retry {
		o.tally = &c.stats.Retried
	}
	if p.givenUp {
		o.tally = &c.stats.GivenUp
		s.giveUpLocked(o, h, l, p)
	}
	if again != nil { // it comes again as it was forced, instead
		s.admitAgainLocked(o, again)
		return
	}
	if !p.stays && !s.opts.Keep {
		return
	}
	b, err := record.Decode(c.records.At(l.record).Body())
	if err != nil {
		panic("frontier: a record in memory is malformed")
	}
	switch {
	case p.spared || p.outcome.Result == PutOff:
	case p.retry:
		b.Fails++
	default:
		b.Fails = 0
	}
	history := historyOf(&b.History).after(p.outcome)
	if p.asked {
		history.State = p.state
	}
	b.History = history.kept()
	if p.outcome.Meta != nil {
		b.Meta = p.outcome.Meta
	}
	prio, crawl := p.priority, c.crawlOf(q).id
	if prio == 0 {
		prio = q.priority
	}
	if p.outcome.Move {
		crawl = p.outcome.Crawl
	}
	due := p.due
	if !p.stays {
		due = instant.Never
	}
	o.entries = append(o.entries, newEntry{
		index: -1, hash: c.hash(c.name(h)), host: string(c.name(h)), crawl: crawl, priority: prio,
		due: due, body: o.encode(&b, ""),
	})
}

// endsLocked makes o the end of a record.
func (s *shard) endsLocked(o *op, qid uint32, ref arena.Ref) {
	o.ends, o.record, o.queue, o.host = true, ref, qid, s.sched.queues.At(qid).host
	s.sched.hosts.At(o.host).pins++
	if s.againLocked(ref) != nil && s.opts.Spill != nil {
		o.rows = append(o.rows, storage.Row{Key: row.AgainRow(s.sched.records.At(ref).Seq())})
	}
	if s.sched.counts != nil {
		o.crawl = s.sched.crawlNumber(s.sched.queues.At(qid))
		s.sched.countEnding(&o.outgoing)
	}
}

// longRetryAfter is the least Retry-After that is reported to the operator.
const longRetryAfter = time.Hour

// giveUpLocked makes o report a URL whose tries are used up.
func (s *shard) giveUpLocked(o *op, h *host, l *leaseRecord, p *plan) {
	if s.events.wanted() {
		e, attempt := s.entryLocked(l.record, h)
		o.event = &Event{Kind: EventURLGivenUp, Host: string(s.sched.name(h)), URL: e.URL, Crawl: s.sched.crawlOf(s.sched.queues.At(l.queue)).id, Attempt: attempt, Failure: p.outcome.Failure}
	}
}

// learnLocked takes a host's crawl delay from an outcome.
func (f *Frontier) learnLocked(h *host, d time.Duration) {
	ms := h.crawlDelay
	switch {
	case d > 0:
		ms = int32((min(d, maxCrawlDelay) + time.Millisecond - 1) / time.Millisecond)
	case d < 0:
		ms = 0
	}
	if ms != h.crawlDelay {
		h.crawlDelay = ms
		h.set(unsaved)
	}
}

// maxCrawlDelay is what a longer Crawl-delay counts as.
const maxCrawlDelay = row.MaxCrawlDelay

// completionLocked says where the record lies that is finished.
func (s *shard) completionLocked(ref arena.Ref) storage.Completion {
	r := s.sched.records.At(ref)
	x := storage.Completion{Seq: r.Seq()}
	if id := r.Part(); id != 0 {
		p := s.sched.blocks.Part(id)
		x.Block, x.Pos = p.Block, p.First+uint16(r.Pos())
	}
	return x
}
