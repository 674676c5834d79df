// This file keeps the failures of hosts and applies them: to the host's clock, to the
// URLs of failed probes, and to those of hosts that did not come back. It forgets them
// when a caller asks for that or when an outcome was not committed.
//
// Hosts in trouble are few: the state from package trouble is in a table beside the
// hosts, and goes to disk with the host's row.
//
// When a host has failed as many probes as Quarantine.Probes allows, settle puts it on a
// list (despair). A goroutine, or TryNext, takes its URLs off its queues and commits
// their ends, some at a time. The rest of the frontier is not involved: until they are
// gone its URLs wait for the next probe, like those of any host in quarantine.

package frontier

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/trouble"
)

// troubleBytes is what an entry of scheduler.troubles takes, about.
const troubleBytes = 96

// setTrouble replaces what is known about a host's failures by t.
func (s *scheduler) setTrouble(id uint32, t trouble.State) {
	h := s.hosts.At(id)
	old := s.troubles[id]
	s.stats.BackedOff += int64(btoi(t.Step > 0) - btoi(old.Step > 0))
	s.stats.Quarantined += int64(btoi(t.Probes > 0) - btoi(old.Probes > 0))
	if t.Over() {
		h.clear(troubled)
		delete(s.troubles, id)
		return
	}
	h.set(troubled)
	s.troubles[id] = t
}

// outlived forgets the failures of a host without URLs after a time.
func (s *scheduler) outlived(id uint32, now int64) {
	if h := s.hosts.At(id); h.has(troubled) {
		if t := s.troubles[id]; t.Until() <= now {
			s.setTrouble(id, trouble.State{})
			h.set(behind)
		}
	}
}

// idlesUntil is when something about a host without URLs may be forgotten.
func (s *scheduler) idlesUntil(id uint32) int64 {
	until, h := s.restsUntil(id), s.hosts.At(id)
	if h.has(troubled) && h.crawlDelay == 0 && !s.cfg.spill {
		t := s.troubles[id]
		until = max(until, t.Until())
	}
	if h.has(counted) && !s.cfg.spill {
		until = max(until, s.limits.Rests(id))
	}
	return until
}

// contactLocked counts the end of a contact under the lease with this token.
func (s *shard) contactLocked(id uint32, token uint64, p *plan) {
	h := s.sched.hosts.At(id)
	failed := p.outcome.Result == Failed
	if p.hostGap < 0 || p.expired || p.outcome.Result == Requeue || !failed && !h.has(troubled) {
		return
	}
	k := p.contact()
	var old, now trouble.State
	if lease := s.sched.leaseNumber(token); failed {
		kind := p.outcome.Failure
		old, now = s.sched.failed(id, k, trouble.Failure{
			Kind: uint8(kind), Slows: slowing(kind), Paced: kind == FailureTooMany || k.retryAfter > 0, Lease: lease, Last: s.token,
		})
	} else {
		old, now = s.sched.succeeded(id, k, lease, p.outcome.Duration)
	}
	s.tellTroubleLocked(h, &old, &now, p.spared || p.retry && p.due == 0)
}

// failed counts a contact that failed, and returns what is known of the host's failures before and
// after.
func (s *scheduler) failed(id uint32, k contact, x trouble.Failure) (old, t trouble.State) {
	h := s.hosts.At(id)
	old = s.troubles[id]
	if t = old; !h.has(troubled) {
		t.Free = h.due
	}
	x.End, x.Lanes = k.end, s.allowed(id)
	x.Slowed = t.Step > 0 && int64(s.cfg.backoff.Gap(t.Step)) > max(k.gap, h.crawlDelayNs())
	t.Failed(x, &s.cfg.backoff, &s.cfg.quarantine)
	if int32(t.Lanes) >= s.concurrencyOf(id) {
		t.Lanes = 0
	}
	s.changeTrouble(id, &old, &t)
	return old, t
}

// succeeded is failed for a contact that succeeded, of a host in trouble.
func (s *scheduler) succeeded(id uint32, k contact, lease uint64, took time.Duration) (old, t trouble.State) {
	h := s.hosts.At(id)
	old = s.troubles[id]
	t = old
	gap := int64(0)
	if t.Step > 0 {
		gap = int64(s.cfg.backoff.Gap(t.Step))
	}
	t.Succeeded(lease, k.end, int64(took)+max(k.gap, h.crawlDelayNs(), gap), s.concurrencyOf(id), &s.cfg.backoff)
	s.changeTrouble(id, &old, &t)
	return old, t
}

// changeTrouble notes what is known of a host's failures, and whether its row says so.
func (s *scheduler) changeTrouble(id uint32, old, t *trouble.State) {
	s.setTrouble(id, *t)
	h := s.hosts.At(id)
	if t.Step != old.Step || t.Probes != old.Probes || t.Lanes != old.Lanes {
		h.set(unsaved)
	} else if t.Over() != old.Over() || t.Fails != old.Fails || t.Quiet != old.Quiet || t.Usual != old.Usual {
		h.set(behind)
	}
}

// tellTroubleLocked reports a change for the worse, or its end. own says that a URL
// waits again that is not in a queue yet.
func (s *shard) tellTroubleLocked(h *host, old, t *trouble.State, own bool) {
	e := Event{Host: string(s.sched.name(h))}
	switch {
	case t.Lost(&s.sched.cfg.quarantine) && !old.Lost(&s.sched.cfg.quarantine):
		e.Kind, e.Count = EventHostGivenUp, int64(h.waiting)+int64(btoi(own))
		e.Reason = fmt.Sprintf("%d probes failed", t.Probes-1)
		e.Until = s.wall(s.last + int64(s.sched.cfg.quarantine.Interval(t.Probes)))
	case t.Probes > 0 && old.Probes == 0:
		e.Kind, e.Count = EventHostQuarantined, int64(t.Fails)
		e.Until = s.wall(s.last + int64(s.sched.cfg.quarantine.Interval(t.Probes)))
	case t.Step > old.Step:
		e.Kind, e.Count = EventHostBackedOff, int64(t.Step)
	case t.Probes == 0 && old.Probes > 0, t.Step == 0 && old.Step > 0:
		e.Kind = EventHostReturned
	default:
		return
	}
	s.emitLocked(e)
}

// leaseNumber is the number of the lease with this token: later ones have higher
// numbers.
func (t *tables) leaseNumber(token uint64) uint64 { return token ^ t.hash(hostkey.Bytes("token")) }

// slowing reports whether such a failure slows its host down. A name that is not resolved
// says nothing about the host's server, and a 5xx may be due to the page.
func slowing(k Failure) bool {
	return k == FailureConnect || k == FailureTimeout || k == FailureUnavailable || k == FailureTooMany
}

// BackoffState is a host's back-off and quarantine. The zero value is that of a host
// without failures.
type BackoffState struct {
	Step     int           // of its back-off; 0: it is not slowed down
	Gap      time.Duration // least time between its contacts, for its failures alone
	Lanes    int           // leases it may have at once; 0: as many as are set
	Failures int           // failed contacts in a row
	Relapses int           // how often a step was undone too early
	Probes   int           // number of the quarantine's interval, from 1; 0: it is in none
}

func stateOf(cfg *schedulerConfig, t *trouble.State) BackoffState {
	gap, _ := cfg.gapOf(t)
	return BackoffState{int(t.Step), gap, int(t.Lanes), int(t.Fails), int(t.Relapses), int(t.Probes)}
}

// gapOf is how long a host is left alone after a contact because of what failed
// before, without jitter, and which clock says so.
func (cfg *schedulerConfig) gapOf(t *trouble.State) (time.Duration, why) {
	switch {
	case t.Probes > 0:
		return cfg.quarantine.Interval(t.Probes), whyQuarantine
	case t.Step > 0:
		return cfg.backoff.Gap(t.Step), whyBackoff
	}
	return 0, whyNone
}

// troubleGap is the gap of a host.
func (s *scheduler) troubleGap(id uint32) (time.Duration, why) {
	if !s.hosts.At(id).has(troubled) {
		return 0, whyNone
	}
	t := s.troubles[id]
	return s.cfg.gapOf(&t)
}

// learnedGap is how long a host is left alone after a contact, as far as that was
// learned of it, at most.
func (s *scheduler) learnedGap(id uint32) int64 {
	gap, _ := s.troubleGap(id)
	return max(s.hosts.At(id).crawlDelayNs(), int64(s.cfg.backoff.Longest(gap)))
}

// spareLocked keeps the URL of a failed probe, and its tries, unless they count.
func (s *shard) spareLocked(lease uint32, p *plan) {
	c := s.sched
	id := c.leases.At(lease).host
	if c.cfg.quarantine.CountTries || p.outcome.Result != Failed || !c.hosts.At(id).has(troubled) || c.troubles[id].Probes == 0 {
		return
	}
	p.due = p.next
	if p.expired {
		p.due = 0
	}
	p.stays, p.retry, p.spared, p.givenUp = true, true, true, false
}

// troubleKept reports whether a row has what must be known about a host's failures.
func (s *scheduler) troubleKept(saved *row.Host, youngest uint64, now int64) bool {
	t := s.troubleOfRow(saved, youngest, now)
	return !t.Over() && t.Until() > 0
}

// Forget discards what was learned about a host: its Crawl-delay, its back-off or
// quarantine with the failures behind it, and its group, even one set by Assign. Its
// URLs, the rules, and the counts of limits stay.
//
// So does its clock: the host is contacted no earlier than its last contact, the
// Crawl-delay at that time, and Retry-After require. Only what back-off or quarantine
// added is dropped. Leases that are out are not affected, and their outcomes count from
// zero. Forgetting an unknown host is no error.
//
// Forget is durable when it returns; if the Spill fails the change is in force, and the
// next Done of the host stores it.
func (f *Frontier) Forget(host string) error {
	host, err := f.hostKey(host)
	if err != nil {
		return fmt.Errorf("frontier: forget: %w", err)
	}
	if err := f.lockWithHost(context.Background(), host); err != nil {
		return err
	}
	c := f.sched
	id := c.lookup(f.hostHash(host), host)
	if id == 0 {
		f.mu.Unlock()
		return nil
	}
	h := c.hosts.At(id)
	if h.place == departing {
		c.put(h, nowhere) // it stays until this is durable
	}
	o := newOp()
	defer o.free()
	f.pinLocked(o, id)
	f.sched.unlearn(id, f.last, max(c.startsAt, f.startOfHost(host), f.sched.startAfter(h.crawlDelayNs())))
	if f.opts.Spill != nil {
		h.set(unsaved)
		f.noteLocked(o, id, h.due, h.why, f.last)
	}
	return f.submitAndUnlock(o)
}

// unlearn forgets what was learned about a host in any place. After a crash it is not
// contacted before reopened.
func (s *scheduler) unlearn(id uint32, now, reopened int64) {
	h := s.hosts.At(id)
	h.crawlDelay = 0
	s.assign(id, "", now)
	if !h.has(troubled) {
		return
	}
	free := max(s.troubles[id].Free, reopened)
	s.setTrouble(id, trouble.State{})
	if h.why.forgettable() {
		s.advanceDue(id, free, now)
	}
	s.revise(id, now) // it may have more lanes now
	if h.place == idling {
		s.detach(id) // it waited for its trouble to be outlived
		s.settle(id, now)
	}
}

// forgettable reports whether a host in trouble would be due earlier without it.
func (w why) forgettable() bool { return w == whyBackoff || w == whyQuarantine || w == whyReopened }

// advanceDue lets a host be contacted earlier, from at on.
func (s *scheduler) advanceDue(id uint32, at, now int64) {
	h := s.hosts.At(id)
	x := s.lanesOf(id)
	if x != nil {
		x.opens = min(x.opens, at)
	}
	if at >= h.due {
		return
	}
	switch h.place {
	case leased, loading, unbound, withheld, unpurged:
		h.due, h.why = at, whyDelay
	default:
		s.detach(id)
		h.due, h.why = at, whyDelay
		s.settle(id, now)
	}
}

// freeFrom notes that a host in trouble may not be contacted before at, even without its
// trouble.
func (t *troubleTable) freeFrom(id uint32, at int64) {
	if state := t.troubles[id]; at > state.Free {
		state.Free = at
		t.troubles[id] = state // no row is out of date: who leaves memory is due, and so is this
	}
}

// leasedTroubleLocked is freeFrom for a host whose lease counts as a contact that
// ends now.
func (s *shard) leasedTroubleLocked(id uint32, now int64) {
	if h := s.sched.hosts.At(id); h.has(troubled) {
		s.sched.freeFrom(id, now+max(s.longestDelay(string(s.sched.name(h))), h.crawlDelayNs()))
	}
}

// learnt is what outcomes have taught about a host's pace.
type learnt struct {
	crawlDelay int32
	troubled   bool
	trouble    trouble.State // the zero value if it is not troubled
}

func (s *scheduler) learnt(id uint32) learnt {
	h := s.hosts.At(id)
	x := learnt{crawlDelay: h.crawlDelay, troubled: h.has(troubled)}
	if x.troubled {
		x.trouble = s.troubles[id]
	}
	return x
}

// mayUnlearnLocked makes o restore a host's pace if an outcome that made it faster is not
// committed. What made it slower stays.
func (f *Frontier) mayUnlearnLocked(o *op, id uint32, was learnt, p *plan) {
	if f.opts.Spill == nil || !was.troubled && f.sched.hosts.At(id).crawlDelay >= was.crawlDelay {
		return
	}
	now := f.sched.learnt(id)
	shorter := now.crawlDelay < was.crawlDelay
	better := was.troubled && p.outcome.Result != Failed && now.trouble != was.trouble
	if !shorter && !better {
		return
	}
	f.pinLocked(o, id)
	outcome := *p
	o.unlearn = func() {
		h := f.sched.hosts.At(id)
		if shorter && h.crawlDelay == now.crawlDelay {
			h.crawlDelay = was.crawlDelay
			h.set(unsaved)
		}
		if better && f.sched.learnt(id).trouble == now.trouble {
			f.sched.setTrouble(id, was.trouble)
			h.set(unsaved)
		}
		x := f.sched.clocksAfter(id, outcome.contact())
		if due, why := x.due(); due > h.due {
			f.sched.later(id, due, why, f.nowLocked())
		}
	}
}

// later leaves a host alone until due, wherever it is.
func (s *scheduler) later(id uint32, due int64, why why, now int64) {
	switch s.hosts.At(id).place {
	case leased, loading:
		s.postpone(id, due, why)
	case unbound, withheld, unpurged:
		s.postpone(id, due, why) // found out when a token of it is taken
	default:
		s.detach(id)
		s.postpone(id, due, why)
		s.settle(id, now)
	}
}

const giveUpAtOnce = 64 // URLs that are given up under one lock

// hopeless reports whether a host's failures are reason to give up its URLs. When its
// next probe is due they are kept.
func (s *scheduler) hopeless(id uint32, now int64) bool {
	h := s.hosts.At(id)
	if !h.has(troubled) || h.waiting == 0 || h.due <= now || h.wanted {
		return false
	}
	t := s.troubles[id]
	return t.Lost(&s.cfg.quarantine) && !t.Kept
}

// despair lists a host whose URLs shall be given up.
func (s *scheduler) despair(id uint32, now int64) {
	if !s.hosts.At(id).has(troubled) || !s.hopeless(id, now) {
		return
	}
	if t := s.troubles[id]; !t.Listed {
		t.Listed = true
		s.troubles[id] = t
		s.lost = append(s.lost, id)
	}
}

// nextLost returns the first listed host whose URLs shall be given up now, and its
// queue; the host is in place loading. Hosts that are not lost after all, or that
// a rule keeps from being served, are taken off the list.
func (s *scheduler) nextLost(now int64) (id, queue uint32) {
	for n := 0; n < giveUpAtOnce && len(s.lost) > 0; n++ {
		id := s.lost[0]
		if h := s.hosts.At(id); s.hopeless(id, now) && s.offering(h) {
			switch h.place {
			case unbound, parked, pacing, queued, ready:
				served := h.served
				s.detach(id)
				if !s.withhold(id, now) {
					h.served = served
					s.put(h, loading)
					return id, s.offeredQueue(h)
				}
			}
		}
		s.unlist(id)
	}
	return 0, 0
}

// unlist takes the first host off the list. It is listed again where it is
// settled, if need be.
func (t *troubleTable) unlist(id uint32) {
	if t.lost = t.lost[1:]; len(t.lost) == 0 {
		t.lost = nil
	}
	if state, ok := t.troubles[id]; ok && state.Listed {
		state.Listed = false
		t.troubles[id] = state
	}
}

// offeredQueue is the host's first queue with URLs that may be handed out.
func (t *tables) offeredQueue(h *host) uint32 {
	for id := h.queues; id != 0; id = t.queues.At(id).sibling {
		if q := t.queues.At(id); q.waiting > 0 && t.crawlOf(q).runs() {
			return id
		}
	}
	return 0
}

// keepURLs lets a host's URLs wait for its next probe: they cannot be given up.
func (t *troubleTable) keepURLs(id uint32) {
	if state, ok := t.troubles[id]; ok {
		state.Kept = true
		t.troubles[id] = state
	}
}

// lostURL is a URL that is being given up.
type lostURL struct {
	op    *op
	entry Entry
}

// startGivingUpLocked starts the goroutine that gives up what is listed.
func (f *Frontier) startGivingUpLocked() {
	if len(f.sched.lost) == 0 || f.givingUp || f.closed {
		return
	}
	f.givingUp = true
	f.sweepers.Add(1)
	go func() {
		defer f.sweepers.Done()
		for f.giveUpSome(true) {
		}
	}()
}

// giveUpSome gives up some URLs of a host that is lost, and reports them when that
// is durable. It reports whether there may be more. last says that the caller is
// the goroutine that startGivingUpLocked has started, which ends otherwise.
func (f *Frontier) giveUpSome(last bool) (more bool) {
	f.lock()
	for f.givingStep != nil { // another goroutine is at it
		step := f.givingStep
		f.mu.Unlock()
		<-step
		f.lock()
	}
	id, queue := uint32(0), uint32(0)
	if !f.closed {
		id, queue = f.sched.nextLost(f.last)
	}
	if id == 0 {
		more = len(f.sched.lost) > 0 && !f.closed
		f.givingUp = f.givingUp && (more || !last)
		f.dispatchLocked()
		f.mu.Unlock()
		return more
	}
	step := make(chan struct{})
	f.givingStep = step
	f.adding.Add(1) // the crawl is not over before OnGiveUp returns: it may add URLs
	host := string(f.sched.nameOf(id))
	urls, o := f.takeLostYieldingLocked(id, queue)
	f.dispatchLocked()
	f.mu.Unlock()
	err := f.awaitLost(urls)
	if err == nil {
		for _, x := range urls {
			f.gaveUp(x.entry, host, o)
		}
	}
	f.mu.Lock()
	if err != nil {
		f.sched.keepURLs(id)
	}
	f.adding.Add(-1)
	f.givingStep = nil
	close(step)
	f.dispatchLocked()
	f.mu.Unlock()
	return true
}

// takeLostYieldingLocked takes URLs off a queue of a host in place loading and submits
// their ends. If they are on disk it reads them, without the lock.
func (f *Frontier) takeLostYieldingLocked(id, queue uint32) (urls []lostURL, o Outcome) {
	c := f.sched
	if ch := c.prepare(queue); ch.load != 0 && !f.readLostYieldingLocked(ch) {
		c.unload(id, f.last)
		return nil, o
	}
	q := c.queues.At(queue)
	switch {
	case q.waiting == 0 || !c.hopeless(id, f.last): // it changed while it was read
		c.unload(id, f.last)
		return nil, o
	case c.tombstones.Len() > 0 && !c.headAlive(queue, f.last):
		return nil, o
	}
	t := c.troubles[id]
	o = Outcome{Result: Failed, Failure: Failure(t.Kind)}
	for len(urls) < giveUpAtOnce && q.waiting > 0 && c.crawlOf(q).runs() && c.prepare(queue).load == 0 {
		ref := c.pop(q)
		c.fifo.Took(id, ref)
		e, attempt := f.entryLocked(ref, c.hosts.At(id))
		e.Crawl = c.crawlOf(q).id
		x := lostURL{newOp(), e}
		f.endsLocked(x.op, queue, ref)
		f.keepLostLocked(x.op, id, q, ref, o)
		if f.events.wanted() {
			x.op.event = &Event{Kind: EventURLGivenUp, Host: string(c.name(c.hosts.At(id))), URL: e.URL, Crawl: e.Crawl, Attempt: attempt, Failure: Failure(t.Kind), Reason: "host given up"}
		}
		x.op.tally = &c.stats.GivenUp
		urls = append(urls, x)
	}
	c.unload(id, f.last)
	for _, x := range urls {
		f.finishing++
		if f.opts.Spill != nil {
			f.enqueueLocked(x.op)
			continue
		}
		f.applyYieldingLocked(x.op)
		f.finishing--
	}
	return urls, o
}

// keepLostLocked makes o keep a URL that is given up, if such URLs are kept.
func (s *shard) keepLostLocked(o *op, id uint32, q *queue, ref arena.Ref, last Outcome) {
	if !s.opts.Keep {
		return
	}
	c := s.sched
	b, err := record.Decode(c.records.At(ref).Body())
	if err != nil {
		panic("frontier: a record in memory is malformed")
	}
	h := historyOf(&b.History).after(last)
	b.Fails, b.History = 0, h.kept()
	name := c.nameOf(id)
	o.entries = append(o.entries, newEntry{
		index: -1, hash: c.hash(name), host: string(name), crawl: c.crawlOf(q).id, priority: q.priority,
		due: instant.Never, body: o.encode(&b, ""),
	})
}

// readLostYieldingLocked reads a queue's next URLs, without the lock. It reports whether
// they are in memory now; else they wait for the host's next probe.
func (f *Frontier) readLostYieldingLocked(ch choice) bool {
	job := f.jobLocked(ch)
	f.mu.Unlock()
	records, err := f.read(job.part, job.want)
	f.lock()
	f.readEndedLocked()
	if err != nil && f.closed {
		return false
	}
	if err != nil {
		f.emitLocked(Event{Kind: EventStoreError, Reason: "reading URLs", Count: int64(len(records)), Err: err})
		f.sched.keepURLs(ch.host) // who takes the next probe gets the error
		return false
	}
	f.sched.fifo.Install(&f.sched.queues.At(ch.queue).Queue, ch.load, records)
	return true
}

// awaitLost waits until the ends of URLs are durable.
func (s *shared) awaitLost(urls []lostURL) (err error) {
	for _, x := range urls {
		if s.opts.Spill != nil {
			if e := x.op.done.Result(); e != nil {
				err = e
			}
		}
		x.op.free()
	}
	return err
}
