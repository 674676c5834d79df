// This file ends leases by Done.
//
// The user's code (delay policy, retry policy, prioritizer, scheduler) runs before the lock is taken, on the
// values of the lease. Then one step under the lock moves the host's clock, frees its slots and submits the completion.

package frontier

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
)

// Done ends a lease. When it has returned without an error the URL will not be handed out again except
// as the outcome says, and the outlinks in o.Add are admitted, both in one commit. Of more than 8,192
// outlinks, or 1 MiB of them, all but the last part are admitted before, so that a page of any size
// takes little memory. Known outlinks with Force follow in separate commits.
//
// A bad outlink of the web is no error: one such as mailto:, or that is malformed, too long or over a
// limit is refused, counted in Stats.Refused and reported by event.LinksRefused, and the others are
// admitted. So a program may end its crawl at any error of Done. An error means that something was lost
// or must be looked at, and what it leaves behind depends on its kind:
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
	var x ending
	x.plan.outcome = *o
	x.plan.late = f.opts.Scheduler != nil && !f.isOut(l)
	f.planEnd(ctx, l, &x)
	t := turn{f: f}
	t.end(ctx, l, &x)
	t.leave()
	f.settle(ctx, l, &x)
	if x.bad == nil || !x.ended {
		return x.refused, x.err
	}
	return x.refused, errors.Join(x.err, x.bad)
}

// endLocked ends a lease that is out in memory, and fills job with what must be committed.
func (f *Frontier) endLocked(job *op, l *Lease, p *plan) error {
	if p.outcome.Result == Failed {
		f.spareLocked(l.record, p)
	}
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
	l := s.core.Leases.At(lease)
	if s.forgotten.Version() == 0 || l.Record == 0 {
		return
	}
	crawl := s.core.CrawlNumber(s.core.Queues.At(l.Queue))
	if s.forgotten.Until("", crawl) <= s.core.Records.At(l.Record).Seq() {
		return
	}
	o.Entries = slices.DeleteFunc(o.Entries, func(e ledger.Entry) bool {
		orphan := e.Crawl == crawl
		if orphan {
			o.refuse(e.Index, EntryRefused, &EntryError{Index: e.Index, URL: shortened(links[e.Index].URL), Err: errOrphan})
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

// doneLate finishes a completion whose caller no longer waits. It takes copies: Done's values stay off the heap.
func (f *Frontier) doneLate(job *op, l Lease, p plan) {
	f.guard("the code that a completion calls", l.Host, func() {
		_ = f.doneRest(context.Background(), job, job.Result(), &l, &p)
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

// isOut reports whether a lease is out.
func (f *Frontier) isOut(l *Lease) bool {
	f.lock()
	defer f.mu.Unlock()
	_, err := f.leaseOutLocked(l)
	return err == nil
}

// leaseOutLocked returns the lease record of a lease that is out.
func (s *shard) leaseOutLocked(l *Lease) (*mercator.Lease, error) {
	if s.closed {
		return nil, ErrClosed
	}
	if l.token == 0 || l.record == 0 || l.record > s.core.Leases.Top {
		return nil, ErrNotLeased
	}
	if r := s.core.Leases.At(l.record); r.Token == l.token && !r.Ending {
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
	id := f.core.Ensure(f.core.HashOf(l.Host), l.Host)
	now := f.nowLocked()
	h := f.core.Hosts.At(id)
	if d := p.outcome.CrawlDelay; int64(d) > h.CrawlDelayNs() {
		h.LearnCrawlDelay(d)
	}
	if p.outcome.Result == Failed || f.core.Hosts.At(id).Has(mercator.Troubled) {
		f.contactLocked(id, l.token, &p)
	}
	f.lateGroupLocked(l.Group, &p, now)
	if g := h.Group; g != 0 && f.core.GroupName(f.core.Groups.At(g)) != l.Group {
		f.core.StampGroup(g, p.groupDue(f.core, f.core.Groups.At(g)), now)
	}
	x := f.core.ClocksAfter(id, p.contact())
	due, why := x.Due()
	if due <= h.Due {
		if !h.Has(mercator.Unsaved) {
			if h.Place == mercator.Idling { // how long it is remembered may have changed
				f.core.Detach(id)
				f.core.Settle(id, now)
			}
			return
		}
		due, why = h.Due, h.Why
	}
	o := newOp()
	if f.opts.Spill != nil {
		f.ledger.Note(&o.Op, id, due, why, now) // first, for it pins the host
	}
	f.core.Later(id, due, why, f.nowLocked())
	if o.empty() {
		o.free()
		return
	}
	f.submitAsyncLocked(o, nil)
}

// lateGroupLocked moves the clock of the group that a lease belonged to, which may be unknown
// since the store was opened again.
func (f *Frontier) lateGroupLocked(name string, p *plan, now int64) {
	if p.hostGap < 0 || row.CheckGroup(name) != nil {
		return
	}
	f.core.SweepGroups(now)
	g := f.core.GroupOf(name)
	f.core.StampGroup(g, p.groupDue(f.core, f.core.Groups.At(g)), now)
}

// End is a lease, and how it ended.
type End struct {
	Lease   Lease
	Outcome Outcome
}

// Ended is what DoneAll did with an End.
type Ended struct {
	// Verdicts say what became of Outcome.Add, in its order. They are nil if the completion is
	// not recorded, and not nil if it is.
	Verdicts []Verdict
	// Refused are the outlinks that DoneContext returns.
	Refused []*EntryError
	// Err is the error of DoneContext.
	Err error
}

// DoneAll ends leases as DoneContext does, in their order, and returns an Ended for each End.
// Each is on its own: the errors of one do not concern the others, and each is one commit
// with its outlinks. Many of them share one taking of the lock and one write to the disk:
// DoneAll of many leases costs much less than a Done of each.
func (f *Frontier) DoneAll(ctx context.Context, ends []End) []Ended {
	all, done := make([]ending, len(ends)), make([]Ended, len(ends))
	for i := range ends {
		all[i].plan.outcome = ends[i].Outcome
		all[i].verdicts = make([]Verdict, len(ends[i].Outcome.Add))
	}
	if f.opts.Scheduler != nil {
		f.lateAll(ends, all)
	}
	for i := range all {
		f.planEnd(ctx, &ends[i].Lease, &all[i])
	}
	i := 0
	settle := func() {
		for i < len(all) {
			x := &all[i]
			i++
			f.settle(ctx, &ends[i-1].Lease, x)
			done[i-1].Refused, done[i-1].Err = x.refused, x.err
			if x.ended && x.err == nil {
				done[i-1].Verdicts = x.verdicts
			}
			if x.ended {
				done[i-1].Err = errors.Join(x.err, x.bad)
			}
		}
	}
	defer func() { // code of the user's has panicked: the others are settled all the same
		for i < len(all) {
			func() {
				defer func() { _ = recover() }() // the first panic goes on
				settle()
			}()
		}
	}()
	t := turn{f: f}
	defer t.leave()
	for i := range all {
		t.end(ctx, &ends[i].Lease, &all[i])
	}
	t.leave()
	settle()
	return done
}

// ending is a lease on its way to its end.
type ending struct {
	plan     plan
	at       int64 // when it was planned
	job      *op
	verdicts []Verdict // of its links; nil: not wanted
	refused  []*EntryError
	bad      error // of a lease that has ended
	err      error // why it has not
	ended    bool  // in memory
	waits    bool  // the committer has its job
	forces   bool  // it is counted in adding
}

// lateAll notes which leases have ended before: a Scheduler sees each visit once.
func (f *Frontier) lateAll(ends []End, all []ending) {
	seen := make(map[uint64]bool, len(all))
	f.lock()
	defer f.mu.Unlock()
	for i := range all {
		l := &ends[i].Lease
		_, err := f.leaseOutLocked(l)
		all[i].plan.late = err != nil || seen[l.token]
		seen[l.token] = true
	}
}

// planEnd checks an outcome, and asks the user's policies.
func (f *Frontier) planEnd(ctx context.Context, l *Lease, x *ending) {
	if x.err = ctx.Err(); x.err == nil {
		x.err = checkOutcome(&x.plan.outcome)
	}
	if x.err != nil {
		return
	}
	var lost, undone error
	if len(x.plan.outcome.Add) == 0 {
		x.job = newOp()
		x.job.Context = ctx
	} else if x.job, lost, undone, x.err = f.prepareLinks(ctx, l, &x.plan.outcome, x.verdicts); x.err != nil {
		return
	}
	if undone != nil {
		x.verdicts = nil
	}
	x.at = f.moment()
	x.bad = errors.Join(undone, lost, f.plan(&x.plan, l, x.at))
}

// turn is one taking of the lock in which leases end.
type turn struct {
	f     *Frontier
	held  bool
	cost  int  // of what was done
	freed bool // calls that wait may have something now
}

// leave ends a turn.
func (t *turn) leave() {
	if !t.held {
		return
	}
	if t.freed {
		t.f.dispatchLocked()
	}
	*t = turn{f: t.f}
	t.f.mu.Unlock()
}

// end ends a lease in memory, and submits what must be committed. The turn goes on if it may.
func (t *turn) end(ctx context.Context, l *Lease, x *ending) {
	if x.err != nil {
		return
	}
	f, links := t.f, len(x.job.Entries)
	if t.cost >= ledger.AtOnce || links > 0 {
		t.leave()
	}
	switch {
	case t.held:
	case links == 0:
		f.lockAt(x.at)
	default:
		if x.err = f.awaitRoom(x.job); x.err != nil {
			return
		}
		var unknown error
		if unknown, x.err = f.lockKnowing(x.job); x.err != nil {
			return
		}
		x.bad = errors.Join(x.bad, unknown)
	}
	t.held = true
	if _, err := f.leaseOutLocked(l); err != nil || x.plan.late {
		t.leave()
		x.err = errors.Join(cmp.Or(err, ErrNotLeased), f.late(ctx, *l, x.plan)) // its host's clock moves now
		return
	}
	f.endYieldingLocked(l, x)
	t.cost += ledger.Price + links
	t.freed = t.freed || !x.waits // else the commit looks
}

// endYieldingLocked ends a lease in memory, and submits what must be committed.
func (f *Frontier) endYieldingLocked(l *Lease, x *ending) {
	x.ended = true
	x.bad = errors.Join(x.bad, f.endLocked(x.job, l, &x.plan))
	if len(x.job.refused) > 0 {
		var lost error
		x.refused, lost = lostByCode(x.job.refused)
		x.bad = errors.Join(x.bad, lost)
	}
	if x.job.empty() && (len(x.plan.outcome.Add) == 0 || !f.ledger.Busy()) { // an outlink may be known by a commit that fails yet
		return
	}
	if x.forces = len(x.job.forced) > 0; x.forces {
		f.adding.Add(1) // the crawl is not over before they are admitted
	}
	x.waits = f.ledger.SubmitYielding(&x.job.Op)
}

// settle waits for the commit of an end, and does what follows it.
func (f *Frontier) settle(ctx context.Context, l *Lease, x *ending) {
	if x.job == nil {
		return
	}
	defer x.job.free()
	if !x.ended { // or not by this call
		return
	}
	if x.forces {
		defer f.addedAll()
	}
	if x.waits {
		x.err = f.ledger.Await(&x.job.Op)
	}
	if x.job.Left {
		go f.doneLate(x.job, *l, x.plan)
		return
	}
	if rest := f.doneRest(ctx, x.job, x.err, l, &x.plan); rest != nil {
		x.bad = errors.Join(x.bad, rest)
	}
	if len(x.job.found) > 0 {
		f.tell(x.job)
	}
}
