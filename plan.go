// This file turns an outcome into a plan, outside the lock, and carries the plan out under it.
//
// The user's policies are asked for the plan: what the delay is, whether and when the URL is tried
// again or visited again. Under the lock the plan is plain numbers.

package frontier

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/clock"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/unit"
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

func checkOutcome(o *Outcome) error {
	o.Uncontacted = o.Uncontacted || o.Result == PutOff
	switch {
	case o.Result > PutOff:
		return fmt.Errorf("%w: Result is %d; want 0 to %d", ErrOutcome, o.Result, PutOff)
	case o.Result == PutOff && o.Next.IsZero():
		return fmt.Errorf("%w: put off without a Next", ErrOutcome)
	case o.Result == Requeue && !o.Next.IsZero():
		return fmt.Errorf("%w: requeue with Next, but the URL comes at once; want put off", ErrOutcome)
	case o.Result != PutOff && o.Move:
		return fmt.Errorf("%w: %v with Move; want put off", ErrOutcome, o.Result)
	case o.Crawl != 0 && !o.Move:
		return fmt.Errorf("%w: Crawl is %d without Move", ErrOutcome, o.Crawl)
	case int(o.Failure) >= failures:
		return fmt.Errorf("%w: Failure is %d; want 0 to %d", ErrOutcome, o.Failure, failures-1)
	case o.Failure != 0 && o.Result != Failed:
		return fmt.Errorf("%w: %v with Failure %v; want failed", ErrOutcome, o.Result, o.Failure)
	case o.Uncontacted && o.Result != Denied && o.Result < Requeue:
		return fmt.Errorf("%w: %v with Uncontacted; want denied or requeue", ErrOutcome, o.Result)
	case unit.Missing(o.RetryAfter, unit.Measured) && !o.Uncontacted:
		return fmt.Errorf("%w: %w", ErrOutcome, unit.Check("RetryAfter", o.RetryAfter, unit.Measured))
	case o.CrawlDelay != NoCrawlDelay && (o.CrawlDelay < 0 || unit.Missing(o.CrawlDelay, unit.Least)):
		return fmt.Errorf("%w: %w", ErrOutcome, unit.Check("CrawlDelay", o.CrawlDelay, unit.Least))
	case len(o.Meta) > MaxMeta:
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
	at := s.clock.Moment(ended)
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
	o.Ended = f.clock.Wall(p.end)
	if !o.Next.IsZero() {
		p.next = f.clock.Due(o.Next)
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
			p.due = f.clock.Due(o.Ended.Add(min(max(0, wait), maxDelay)))
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
		p.stays, p.due = true, s.clock.Due(due)
	}
}

// contact is the contact that a plan ends.
func (p *plan) contact() mercator.Contact {
	return mercator.Contact{End: p.end, Gap: p.hostGap, RetryAfter: p.outcome.RetryAfter}
}

// groupDue is until when a slot of a group is left alone; 0: it was not contacted.
func (p *plan) groupDue(c *mercator.Core, g *mercator.Group) int64 {
	if p.hostGap < 0 {
		return 0
	}
	if d, ok := c.DelayOf(g).(DelayPolicy); ok {
		return p.end + delayBy(d, c.GroupName(g), p.outcome)
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

// finishLocked ends a lease in memory and fills o with what must be committed. It returns
// ErrFull if the outlinks had to be refused.
func (f *Frontier) finishLocked(o *op, lease uint32, p *plan) error {
	c := f.core
	now := f.last
	l := c.EndLease(lease)
	c.Quiet = mercator.Quiet{Since: now}
	h := c.Hosts.At(l.Host)
	out := &p.outcome
	c.Stats.Done[out.Result]++
	if l.Record != 0 {
		c.CrawlOf(c.Queues.At(l.Queue)).Stats.Done[out.Result]++
	}
	was := f.core.Learnt(l.Host)
	h.LearnCrawlDelay(out.CrawlDelay)
	if p.outcome.Result == Failed || h.Has(mercator.Troubled) {
		f.contactLocked(l.Host, l.Token, p)
	}
	if c.Limits != nil {
		f.countDoneLocked(o, &l, out)
	}
	x := f.core.ClocksAfter(l.Host, p.contact())
	due, why := x.Due()
	if out.RetryAfter >= longRetryAfter {
		f.emitLocked(event.Event{Kind: event.HostBlocked, Host: string(c.Name(h)), Until: f.clock.Wall(due), Reason: "Retry-After"})
	}
	switch {
	case l.Record == 0:
	case f.core.LeaseDead(&l) != 0:
		f.endDeadLocked(o, &l, *p)
	case out.Result == Requeue && f.ledger.Again(l.Record) == nil:
		c.ReturnHead(l.Queue, l.Record)
		c.Filled(l.Queue, now)
	default:
		f.endRecordLocked(o, h, &l, p)
	}
	if f.opts.Spill != nil {
		f.ledger.Note(&o.Op, l.Host, due, why, now)
	}
	var err error
	if len(o.Entries) > 0 {
		err = f.outlinksLocked(o)
	}
	if f.opts.Spill != nil && !o.empty() { // else nothing can fail
		f.mayUnlearnLocked(o, l.Host, was, p)
	}
	if len(o.Entries) > 0 {
		f.ledger.Pin(&o.Op, l.Host) // perhaps they are its own: then it has something to do still
	}
	c.EndGroups(&l, now, func(g *mercator.Group) int64 { return p.groupDue(c, g) })
	c.SettleLease(&l, now, x)
	return err
}

// endRecordLocked plans the end of a record, and what replaces it.
func (s *shard) endRecordLocked(o *op, h *mercator.Host, l *mercator.Lease, p *plan) {
	c := s.core
	again := s.ledger.Again(l.Record)
	s.ledger.End(&o.Op, l.Queue, l.Record)
	q := c.Queues.At(l.Queue)
	if p.retry {
		o.Tally = &c.Stats.Retried
	}
	if p.givenUp {
		o.Tally = &c.Stats.GivenUp
		s.giveUpLocked(o, h, l, p)
	}
	if again != nil { // it comes again as it was forced, instead
		o.AdmitAgain(again)
		return
	}
	if !p.stays && !s.opts.Keep {
		return
	}
	b := record.Must(c.Records.At(l.Record).Body())
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
	prio, crawl := cmp.Or(p.priority, q.Priority), c.CrawlNumber(q)
	if p.outcome.Move {
		crawl = p.outcome.Crawl
	}
	due := p.due
	if !p.stays {
		due = instant.Never
	}
	o.Entries = append(o.Entries, ledger.Entry{
		Index: -1, Hash: c.Hash(c.Name(h)), Host: string(c.Name(h)), Crawl: crawl, Priority: prio,
		Due: due, Body: o.Encode(&b, ""),
	})
}

// longRetryAfter is the least Retry-After that is reported to the operator.
const longRetryAfter = time.Hour

// giveUpLocked makes o report a URL whose tries are used up.
func (s *shard) giveUpLocked(o *op, h *mercator.Host, l *mercator.Lease, p *plan) {
	if s.events.wanted() {
		e, attempt := s.entryLocked(l.Record, h)
		o.Event = &event.Event{Kind: event.URLGivenUp, Host: string(s.core.Name(h)), URL: e.URL, Crawl: s.core.CrawlNumber(s.core.Queues.At(l.Queue)), Attempt: attempt, Failure: p.outcome.Failure.String()}
	}
}
