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
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
)

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
	var job *op
	var lost, undone error
	if len(o.Add) == 0 {
		job = newOp()
		job.ctx = ctx
	} else if job, lost, undone, err = f.prepareLinks(ctx, l, o, nil); err != nil {
		return nil, err
	}
	refused, err = f.doneWith(ctx, job, l, o, errors.Join(undone, lost))
	if len(job.found) > 0 {
		f.rises.tell(job)
	}
	job.free()
	return refused, err
}

// doneWith is done with an op, which it may leave to the committer, and with what is bad already.
func (f *Frontier) doneWith(ctx context.Context, job *op, l *Lease, o *Outcome, bad error) (refused []*EntryError, err error) {
	p := plan{outcome: *o}
	at := f.endsNow(&p, l)
	bad = errors.Join(bad, f.plan(&p, l, at))
	if len(job.entries) == 0 {
		f.lockAt(at)
	} else {
		if err := f.awaitRoom(job); err != nil {
			return nil, err
		}
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
	if s.forgotten.version.Load() == 0 || l.Record == 0 {
		return
	}
	crawl := s.core.CrawlOf(s.core.Queues.At(l.Queue)).ID
	if s.forgottenLocked("", crawl) <= s.core.Records.At(l.Record).Seq() {
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
		f.noteLocked(o, id, due, why, now) // first, for it pins the host
	}
	f.core.Later(id, due, why, f.nowLocked())
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
	f.planAll(ctx, ends, all)
	i := 0
	settle := func() {
		for i < len(all) {
			i++
			done[i-1] = f.endedOf(ctx, &ends[i-1].Lease, &all[i-1])
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
	f.endAll(ctx, ends, all)
	settle()
	return done
}

// ending is an End on its way.
type ending struct {
	plan     plan
	job      *op
	verdicts []Verdict
	refused  []*EntryError
	bad      error // of a lease that has ended
	err      error // why it has not
	ended    bool  // in memory
	waits    bool  // the committer has its job
	forces   bool  // it is counted in adding
}

// planAll checks all, and asks the user's policies.
func (f *Frontier) planAll(ctx context.Context, ends []End, all []ending) {
	if f.opts.Scheduler != nil { // it sees each visit once
		seen := make(map[uint64]bool, len(ends))
		f.lock()
		for i := range all {
			l := &ends[i].Lease
			_, err := f.leaseOutLocked(l)
			all[i].plan.late = err != nil || seen[l.token]
			seen[l.token] = true
		}
		f.mu.Unlock()
	}
	for i := range all {
		x := &all[i]
		x.plan.outcome = ends[i].Outcome
		if x.err = ctx.Err(); x.err == nil {
			x.err = checkOutcome(&x.plan.outcome)
		}
		if x.err != nil {
			continue
		}
		x.verdicts = make([]Verdict, len(x.plan.outcome.Add))
		var lost, undone error
		if x.job, lost, undone, x.err = f.prepareLinks(ctx, &ends[i].Lease, &x.plan.outcome, x.verdicts); x.err != nil {
			continue
		}
		if undone != nil {
			x.verdicts = nil
		}
		x.bad = errors.Join(undone, lost, f.plan(&x.plan, &ends[i].Lease, f.moment()))
	}
}

// endAll ends all in memory, and submits what must be committed.
func (f *Frontier) endAll(ctx context.Context, ends []End, all []ending) {
	held, under := false, 0 // whether the lock is held, and the cost of the work done under it
	free := func() {
		if held {
			held, under = false, 0
			f.dispatchLocked()
			f.mu.Unlock()
		}
	}
	defer free()
	for i := range all {
		x := &all[i]
		if x.err != nil {
			continue
		}
		links := len(x.job.entries)
		if under >= applyAtOnce || links > 0 {
			free()
		}
		if !held {
			if x.err = f.awaitRoom(x.job); x.err != nil {
				continue
			}
			var unknown error
			if unknown, x.err = f.lockKnowing(x.job); x.err != nil {
				continue
			}
			held, x.bad = true, errors.Join(x.bad, unknown)
		}
		l := &ends[i].Lease
		if _, err := f.leaseOutLocked(l); err != nil || x.plan.late {
			free()
			x.err = errors.Join(cmp.Or(err, ErrNotLeased), f.late(ctx, *l, x.plan)) // its host's clock moves now
			continue
		}
		f.endYieldingLocked(l, x)
		under += opPrice + links
	}
}

// endYieldingLocked ends a lease in memory, and submits what must be committed.
func (f *Frontier) endYieldingLocked(l *Lease, x *ending) {
	x.ended = true
	x.bad = errors.Join(x.bad, f.endLocked(x.job, l, &x.plan))
	var lost error
	x.refused, lost = lostByCode(x.job.refused)
	x.bad = errors.Join(x.bad, lost)
	if f.needsNoCommitLocked(x.job, &x.plan) {
		return
	}
	if x.forces = len(x.job.forced) > 0; x.forces {
		f.adding.Add(1) // the crawl is not over before they are admitted
	}
	f.finishing++
	if x.waits = f.opts.Spill != nil; x.waits {
		f.enqueueLocked(x.job)
		return
	}
	f.applyYieldingLocked(x.job)
	f.finishing--
}

// endedOf waits for the commit of an End, and does what follows it.
func (f *Frontier) endedOf(ctx context.Context, l *Lease, x *ending) Ended {
	if x.job == nil {
		return Ended{Err: x.err}
	}
	defer x.job.free()
	if !x.ended { // or not by this call
		return Ended{Err: x.err}
	}
	if x.forces {
		defer f.addedAll()
	}
	if x.waits {
		x.err = f.awaitOp(x.job)
	}
	if x.job.left {
		go f.doneLate(x.job, *l, x.plan)
	} else {
		x.bad = errors.Join(x.bad, f.doneRest(ctx, x.job, x.err, l, &x.plan))
	}
	if len(x.job.found) > 0 {
		f.rises.tell(x.job)
	}
	if x.err != nil {
		return Ended{Refused: x.refused, Err: errors.Join(x.err, x.bad)}
	}
	return Ended{Verdicts: x.verdicts, Refused: x.refused, Err: x.bad}
}
