// This file applies the failures of hosts: to events, to the URLs of failed probes, and to those of
// hosts that did not come back. It forgets them when a caller asks for that or when an outcome was
// not committed. Package mercator keeps them.
//
// When a host has failed as many probes as Quarantine.Probes allows, it is listed there. A goroutine,
// or TryNext, takes its URLs off its queues and commits their ends, some at a time. The rest of the
// frontier is not involved: until they are gone its URLs wait for the next probe, like those of any
// host in quarantine.

package frontier

import (
	"fmt"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/trouble"
)

// contactLocked counts the end of a contact, under the lease with this token, that failed or is of
// a host in trouble.
func (s *shard) contactLocked(id uint32, token uint64, p *plan) {
	h := s.core.Hosts.At(id)
	failed := p.outcome.Result == Failed
	if p.hostGap < 0 || p.expired || p.outcome.Result == Requeue {
		return
	}
	k := p.contact()
	var old, now trouble.State
	if lease := s.core.LeaseNumber(token); failed {
		kind := p.outcome.Failure
		old, now = s.core.Failed(id, k, trouble.Failure{
			Kind: uint8(kind), Slows: kind.Slows(), Paced: kind == FailureTooMany || k.RetryAfter > 0, Lease: lease, Last: s.token,
		})
	} else {
		old, now = s.core.Succeeded(id, k, lease, p.outcome.Duration)
	}
	s.tellTroubleLocked(h, &old, &now, p.spared || p.retry && p.due == 0)
}

// tellTroubleLocked reports a change for the worse, or its end. own says that a URL
// waits again that is not in a queue yet.
func (s *shard) tellTroubleLocked(h *mercator.Host, old, t *trouble.State, own bool) {
	e := event.Event{Host: string(s.core.Name(h))}
	switch {
	case t.Lost(&s.core.Cfg.Quarantine) && !old.Lost(&s.core.Cfg.Quarantine):
		e.Kind, e.Count = event.HostGivenUp, int64(h.Waiting)+int64(btoi(own))
		e.Reason = fmt.Sprintf("%d probes failed", t.Probes-1)
		e.Until = s.clock.Wall(s.last + int64(s.core.Cfg.Quarantine.Interval(t.Probes)))
	case t.Probes > 0 && old.Probes == 0:
		e.Kind, e.Count = event.HostQuarantined, int64(t.Fails)
		e.Until = s.clock.Wall(s.last + int64(s.core.Cfg.Quarantine.Interval(t.Probes)))
	case t.Step > old.Step:
		e.Kind, e.Count = event.HostBackedOff, int64(t.Step)
	case t.Probes == 0 && old.Probes > 0, t.Step == 0 && old.Step > 0:
		e.Kind = event.HostReturned
	default:
		return
	}
	s.emitLocked(e)
}

// Slows reports whether the frontier backs off after such a failure. A name that is not resolved
// says nothing about the host's server, and a 5xx may be due to the page.
func (k Failure) Slows() bool {
	return k == FailureConnect || k == FailureTimeout || k == FailureUnavailable || k == FailureTooMany
}

// spareLocked keeps the URL of a failed probe, and its tries, unless they count.
func (s *shard) spareLocked(lease uint32, p *plan) {
	c := s.core
	id := c.Leases.At(lease).Host
	if c.Cfg.Quarantine.CountTries || !c.Hosts.At(id).Has(mercator.Troubled) || c.Troubles[id].Probes == 0 {
		return
	}
	p.due = p.next
	if p.expired {
		p.due = 0
	}
	p.stays, p.retry, p.spared, p.givenUp = true, true, true, false
}

// mayUnlearnLocked makes o restore a host's pace if an outcome that made it faster is not
// committed. What made it slower stays.
func (f *Frontier) mayUnlearnLocked(o *op, id uint32, was mercator.Learnt, p *plan) {
	if !was.Troubled && f.core.Hosts.At(id).CrawlDelay >= was.CrawlDelay {
		return
	}
	now := f.core.Learnt(id)
	shorter := now.CrawlDelay < was.CrawlDelay
	better := was.Troubled && p.outcome.Result != Failed && now.Trouble != was.Trouble
	if !shorter && !better {
		return
	}
	f.ledger.Pin(&o.Op, id)
	outcome := *p
	o.Unlearn = func() {
		h := f.core.Hosts.At(id)
		if shorter && h.CrawlDelay == now.CrawlDelay {
			h.CrawlDelay = was.CrawlDelay
			h.Set(mercator.Unsaved)
		}
		if better && f.core.Learnt(id).Trouble == now.Trouble {
			f.core.SetTrouble(id, was.Trouble)
			h.Set(mercator.Unsaved)
		}
		x := f.core.ClocksAfter(id, outcome.contact())
		if due, why := x.Due(); due > h.Due {
			f.core.Later(id, due, why, f.nowLocked())
		}
	}
}

// lostURL is a URL that is being given up.
type lostURL struct {
	op    *op
	entry Entry
}

// startGivingUpLocked starts the goroutine that gives up what is listed.
func (f *Frontier) startGivingUpLocked() {
	if f.givingUp || f.closed {
		return
	}
	f.givingUp = true
	f.sweepers.Go(func() {
		for f.giveUpSome(true) {
		}
	})
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
		id, queue = f.core.NextLost(f.last)
	}
	if id == 0 {
		more = len(f.core.Lost) > 0 && !f.closed
		f.givingUp = f.givingUp && (more || !last)
		f.dispatchLocked()
		f.mu.Unlock()
		return more
	}
	step := make(chan struct{})
	f.givingStep = step
	f.adding.Add(1) // the crawl is not over before OnGiveUp returns: it may add URLs
	host := string(f.core.NameOf(id))
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
		f.core.KeepURLs(id)
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
	c := f.core
	if ch := c.Prepare(queue); ch.Load != 0 && !f.readLostYieldingLocked(ch) {
		c.Unload(id, f.last)
		return nil, o
	}
	q := c.Queues.At(queue)
	switch {
	case q.Waiting == 0 || !c.Hopeless(id, f.last): // it changed while it was read
		c.Unload(id, f.last)
		return nil, o
	case c.Deletions.InForce.Len() > 0 && !c.HeadAlive(queue, f.last):
		return nil, o
	}
	t := c.Troubles[id]
	o = Outcome{Result: Failed, Failure: Failure(t.Kind)}
	for len(urls) < mercator.GiveUpAtOnce && q.Waiting > 0 && c.CrawlOf(q).Runs() && c.Prepare(queue).Load == 0 {
		ref := c.Pop(q)
		c.Fifo.Took(id, ref)
		e, attempt := f.entryLocked(ref, c.Hosts.At(id))
		e.Crawl = c.CrawlNumber(q)
		x := lostURL{newOp(), e}
		f.ledger.End(&x.op.Op, queue, ref)
		f.keepLostLocked(x.op, id, q, ref, o)
		if f.events.wanted() {
			x.op.Event = &event.Event{Kind: event.URLGivenUp, Host: string(c.Name(c.Hosts.At(id))), URL: e.URL, Crawl: e.Crawl, Attempt: attempt, Failure: Failure(t.Kind).String(), Reason: "host given up"}
		}
		x.op.Tally = &c.Stats.GivenUp
		urls = append(urls, x)
	}
	c.Unload(id, f.last)
	for _, x := range urls {
		f.ledger.SubmitYielding(&x.op.Op)
	}
	return urls, o
}

// keepLostLocked makes o keep a URL that is given up, if such URLs are kept.
func (s *shard) keepLostLocked(o *op, id uint32, q *mercator.Queue, ref arena.Ref, last Outcome) {
	if !s.opts.Keep {
		return
	}
	c := s.core
	b := record.Must(c.Records.At(ref).Body())
	h := historyOf(&b.History).after(last)
	b.Fails, b.History = 0, h.kept()
	name := c.NameOf(id)
	o.Entries = append(o.Entries, ledger.Entry{
		Index: -1, Hash: c.Hash(name), Host: string(name), Crawl: c.CrawlNumber(q), Priority: q.Priority,
		Due: instant.Never, Body: o.Encode(&b, ""),
	})
}

// readLostYieldingLocked reads a queue's next URLs, without the lock. It reports whether
// they are in memory now; else they wait for the host's next probe.
func (f *Frontier) readLostYieldingLocked(ch mercator.Choice) bool {
	job := f.jobLocked(ch)
	f.mu.Unlock()
	records, err := f.read(job.part, job.Want)
	f.lock()
	f.readEndedLocked()
	if err != nil && f.closed {
		return false
	}
	if err != nil {
		f.emitLocked(event.Event{Kind: event.StoreError, Reason: "reading URLs", Count: int64(len(records)), Err: err})
		f.core.KeepURLs(ch.Host) // who takes the next probe gets the error
		return false
	}
	f.core.Fifo.Install(&f.core.Queues.At(ch.Queue).Queue, ch.Load, records)
	return true
}

// awaitLost waits until the ends of URLs are durable.
func (s *shared) awaitLost(urls []lostURL) (err error) {
	for _, x := range urls {
		if s.opts.Spill != nil {
			if e := x.op.Result(); e != nil {
				err = e
			}
		}
		x.op.free()
	}
	return err
}
