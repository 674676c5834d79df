// This file has the operator's controls of hosts, domains and all hosts while the frontier runs.
//
// Each call is durable when it returns, and applies to the very next hand-out. It changes
// a rule: see rules.go.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/control"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/scope"
)

const (
	maxConcurrency = row.MaxConcurrency
	maxBlock       = row.MaxPeriod
)

// Rule returns the settings of exactly this scope, and whether there are any.
func (f *Frontier) Rule(s scope.Scope) (Rule, bool) {
	if id, ok := s.Crawl(); ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		r := ruleOfCrawl(f.controls.Crawl(id))
		return r, r != Rule{}
	}
	r, ok := f.controls.Exactly(f.scopeSeen(s).Hosts(), f.clock.Date(f.opts.Clock.Now()))
	return ruleIn(r), ok
}

// RuleOf returns the rule in effect for a host: each setting comes from the most specific
// scope that sets it. Fields that no scope sets are zero: Options apply.
func (f *Frontier) RuleOf(host string) Rule {
	return ruleIn(f.controls.Effective(f.hostSeen(host), f.clock.Date(f.opts.Clock.Now())))
}

// Rules returns all rules of hosts as they are when the loop begins: that of scope.All, then
// those of domains and hosts in domain order. A crawl has its own: see Rule.
func (f *Frontier) Rules() iter.Seq2[scope.Scope, Rule] {
	return func(yield func(scope.Scope, Rule) bool) {
		for r := range f.controls.All(f.clock.Date(f.opts.Clock.Now())) {
			if !yield(scope.Of(r.Scope), ruleIn(r)) {
				return
			}
		}
	}
}

// UpdateRule changes the rule of a scope. It calls change with the settings of exactly
// this scope, the zero Rule if there are none, and stores what change leaves there. The
// new rule is durable and in force when UpdateRule returns: it applies to the very next
// hand-out, a Delay to contacts that end later. Leases that are out are not affected.
//
// Concurrent changes of one rule are never lost: change, which runs without a lock, is called again if
// another came between. Entry.Force, CrawlNow and transfer.Import are exempt from Limits. If a host has more
// leases out than a lower Concurrency allows, it gets no other until enough have ended. A Priority
// reaches the hosts of a large scope one after the other.
func (f *Frontier) UpdateRule(s scope.Scope, change func(*Rule)) error {
	for {
		if err := f.lockOpen(); err != nil {
			return err
		}
		seen := f.latestOfLocked(f.scopeSeen(s))
		f.mu.Unlock()
		rule := seen
		change(&rule)
		err := f.changeRule("update rule", s, func(r *Rule) error {
			if *r != seen {
				return errOvertaken
			}
			*r = rule
			return nil
		})
		if err != errOvertaken {
			return err
		}
	}
}

// errOvertaken says that a rule changed since it was looked at.
var errOvertaken = errors.New("rule changed")

// Clear removes all settings of exactly this scope. Wider and narrower scopes keep theirs.
func (f *Frontier) Clear(s scope.Scope) error {
	return f.changeRule("clear", s, func(r *Rule) error { *r = Rule{}; return nil })
}

// Pause keeps the hosts of a scope from getting leases until Resume. Leases that are out
// are not affected.
func (f *Frontier) Pause(s scope.Scope) error {
	return f.changeRule("pause", s, func(r *Rule) error { r.Paused = scope.On; return nil })
}

// Resume undoes Pause and BlockUntil of exactly this scope. If a wider scope is paused or blocked, this
// one is set to run nevertheless. Narrower scopes that are paused or blocked stay so.
func (f *Frontier) Resume(s scope.Scope) error {
	s = f.scopeSeen(s)
	return f.changeRule("resume", s, func(r *Rule) error {
		r.Paused, r.BlockedUntil = scope.Unset, time.Time{}
		if !isCrawl(s) && f.controls.WiderStops(s.Hosts(), f.core.Date(f.last)) {
			r.Paused = scope.Off
		}
		return nil
	})
}

// BlockUntil keeps the hosts of a scope from getting leases before t, which must be in
// the future. Leases that are out are not affected. A block that has passed is forgotten:
// if a wider scope is blocked for longer, its block applies from then on.
func (f *Frontier) BlockUntil(s scope.Scope, t time.Time) error {
	if t.IsZero() {
		return fmt.Errorf("frontier: block of %v: no time is given", s)
	}
	return f.changeRule("block", s, func(r *Rule) error { r.BlockedUntil = t; return nil })
}

// latestOfLocked is the rule of a scope as of the last change that was submitted.
func (s *shard) latestOfLocked(of scope.Scope) Rule {
	if id, ok := of.Crawl(); ok {
		return ruleOfCrawl(s.controls.LatestCrawl(id))
	}
	return ruleIn(s.controls.Latest(of.Hosts(), s.core.Date(s.last)))
}

// DelayOf returns the delay policy in effect for a host.
func (f *Frontier) DelayOf(host string) DelayPolicy { return f.delayOf(f.hostSeen(host)) }

// checkRule returns an error for a rule that must not take effect.
func (s *shared) checkRule(of scope.Scope, r *Rule, now time.Time) error {
	if isCrawl(of) {
		return r.CheckCrawl()
	}
	return r.check(now, s.opts.Priorities)
}

// changeRule changes the rule of a scope, unless change, which runs with the lock, returns an error,
// and puts it in force when it is durable. Concurrent changes of one rule all count.
func (f *Frontier) changeRule(what string, s scope.Scope, change func(*Rule) error) (err error) {
	if !isCrawl(s) {
		if s, err = f.spelled(s); err != nil {
			return fmt.Errorf("frontier: %s: %w", what, err)
		}
	}
	if err := f.lockOpen(); err != nil {
		return err
	}
	old := f.latestOfLocked(s)
	r := old
	if err := change(&r); err != nil {
		f.mu.Unlock()
		return err
	}
	if err := f.checkRule(s, &r, f.clock.Wall(f.last)); err != nil {
		f.mu.Unlock()
		return fmt.Errorf("frontier: %s of %v: %w", what, s, err)
	}
	o := newOp()
	defer o.free()
	f.beginRuleLocked(o, s, &r)
	err = f.ledger.SubmitAndUnlock(&o.Op)
	if err == nil && r.Concurrency != old.Concurrency {
		f.reviseLanes()
	}
	if err == nil && (r.Priority != old.Priority || r.Priorities != old.Priorities) {
		err = f.sweepHosts(s, func(id uint32, now int64) bool {
			f.core.Relevel(id, now)
			return true
		})
	}
	if err == nil && s.Hosts().Domain && r.Limits.Waiting > 0 {
		err = f.countDomain(s)
	}
	return err
}

// beginRuleLocked makes o set the rule of a scope, which was checked.
func (f *Frontier) beginRuleLocked(o *op, s scope.Scope, r *Rule) {
	if id, ok := s.Crawl(); ok {
		x := &row.Crawl{ID: id, CrawlSettings: row.CrawlSettings{Weight: max(1, r.Weight), Paused: r.Paused == scope.On, Limits: quota.Limits(r.Limits)}}
		o.Rows = append(o.Rows, f.controls.BeginCrawl(x, f.token, f.last)...)
		o.Rule = func() { f.controls.EnforceCrawl(x, f.token, f.last) }
		o.Unrule = func() { f.controls.DropCrawl(x) }
		return
	}
	x := &control.Rule{Scope: s.Hosts(), Rule: r.stored(), Block: r.BlockedUntil}
	o.Rows = append(o.Rows, f.controls.Begin(x, f.token, f.last)...)
	o.Rule = func() { f.announceLocked(f.controls.Enforce(x, f.token, f.last), x) }
	o.Unrule = func() { f.controls.Drop(x) }
}

// announceLocked emits an event for a scope that a rule blocks and the one before did not.
func (s *shard) announceLocked(was control.Rule, is *control.Rule) {
	e := event.Event{Kind: event.HostBlocked, Scope: is.Scope.String(), Host: is.Scope.Host()}
	say := func(is bool, reason string, until time.Time) {
		if is {
			e.Reason, e.Until = reason, until
			s.emitLocked(e)
		}
	}
	old, r := ruleIn(was), ruleIn(*is)
	say(r.Paused == scope.On && old.Paused != scope.On, "paused", time.Time{})
	say(r.Held && !old.Held, "held", time.Time{})
	say(!r.BlockedUntil.IsZero() && !r.BlockedUntil.Equal(old.BlockedUntil), "blocked", r.BlockedUntil)
}

// hostKey returns the key of the host that a name spells. Which keys there may be is
// known only where HostName makes them.
func (s *shared) hostKey(name string) (string, error) {
	if s.ownKeys {
		return name, hostkey.Check(name)
	}
	return hostkey.Spelled(name)
}

// CheckScope returns an error for a scope that can contain no host. Controls and Inspector.Scan refuse
// such a scope, and views of hosts find nothing.
func (f *Frontier) CheckScope(s scope.Scope) error {
	if isCrawl(s) {
		return nil
	}
	if _, err := f.spelled(s); err != nil {
		return fmt.Errorf("frontier: scope: %w", err)
	}
	return nil
}

// spelled returns a scope that a control is given as rules name it, or says what is wrong with it.
func (s *shared) spelled(of scope.Scope) (scope.Scope, error) {
	if isCrawl(of) {
		return of, errors.New("a crawl is no scope of hosts")
	}
	x := of.Hosts()
	if err := x.Check(); err != nil || !x.Named {
		return of, err
	}
	if x.Domain && !s.ownKeys {
		if bare := strings.TrimPrefix(strings.TrimPrefix(x.Name, "*"), "."); bare == "" {
			return of, fmt.Errorf("domain %q; want a name without *, or All for all hosts", x.Name)
		} else if bare != x.Name {
			return of, fmt.Errorf("domain %q; want %q", x.Name, bare)
		}
	}
	key, err := s.hostKey(x.Name)
	if err == nil {
		x.Name = key
	}
	return scope.Of(x), err
}

func isCrawl(s scope.Scope) bool {
	_, ok := s.Crawl()
	return ok
}

// scopeSeen is spelled for views: with a name that no host can have they find nothing.
func (s *shared) scopeSeen(of scope.Scope) scope.Scope {
	of, _ = s.spelled(of)
	return of
}

// hostSeen is hostKey for views.
func (s *shared) hostSeen(name string) string {
	if key, err := s.hostKey(name); err == nil {
		return key
	}
	return name
}

// reviseAtOnce is how many leases or hosts are looked at under one lock.
const reviseAtOnce = 128

// reviseLanes applies a changed rule about concurrency to the hosts that have a lease, or
// lanes that keep their distance. Others see it when they get a lease.
func (f *Frontier) reviseLanes() {
	for _, lanes := range []bool{false, true} {
		for id := uint32(1); id != 0; {
			f.lock()
			id = f.core.ReviseSome(lanes, id, reviseAtOnce, f.last)
			f.dispatchLocked()
			f.mu.Unlock()
		}
	}
}

// Forget discards what was learned about a host: its Crawl-delay, its back-off or
// quarantine with the failures behind it, its standing, and its group, even one set by Assign. Its
// URLs, the rules, and the counts of limits stay.
//
// So does its clock: the host is contacted no earlier than its last contact, the Crawl-delay at that
// time, and Retry-After require. Only what back-off or quarantine added is dropped. Leases that are out
// are not affected, and their outcomes count from zero. Forgetting an unknown host is no error.
//
// Forget is durable when it returns; if the Spill fails the change is in force, and the
// next Done of the host stores it.
func (f *Frontier) Forget(host string) error {
	return f.changeHost("forget", host, false, func(id uint32) {
		h := f.core.Hosts.At(id)
		f.core.Unlearn(id, f.last, max(f.core.StartOfHost(string(f.core.Name(h))), f.core.StartAfter(h.CrawlDelayNs())))
	})
}

// changeHost changes what is known of a host, and makes that durable. A host about which nothing is
// known is made if create is set.
func (f *Frontier) changeHost(what, host string, create bool, change func(id uint32)) error {
	host, err := f.hostKey(host)
	if err != nil {
		return fmt.Errorf("frontier: %s: %w", what, err)
	}
	if err := f.lockWithHost(context.Background(), host); err != nil {
		return err
	}
	c := f.core
	id := c.Lookup(c.HashOf(host), host)
	if id == 0 && !create {
		f.mu.Unlock()
		return nil
	}
	if id == 0 {
		id = c.Ensure(c.HashOf(host), host)
	}
	h := c.Hosts.At(id)
	if h.Place == mercator.Departing {
		c.Put(h, mercator.Nowhere) // it stays until this is durable
	}
	o := newOp()
	defer o.free()
	f.ledger.Pin(&o.Op, id)
	change(id)
	if f.opts.Spill != nil {
		h.Set(mercator.Unsaved)
		f.ledger.Note(&o.Op, id, h.Due, h.Why, f.last)
	}
	return f.ledger.SubmitAndUnlock(&o.Op)
}

const (
	orderHostsAtOnce = 64 // hosts that are put in order under one lock
	sweepAtOnce      = 32 // hosts that a sweep visits under one lock
)

// orderHosts makes the order of all hosts if there is none.
func (s *shard) orderHosts() {
	for done := false; !done; {
		s.mu.Lock()
		done = s.closed || s.core.OrderSome(orderHostsAtOnce)
		s.mu.Unlock()
	}
}

// sweepHosts calls fn with the hosts in memory of a scope, in domain order, a few under
// one lock. Hosts that come or go meanwhile may be missed. fn may change the host, but
// not end it; it returns false to see the same host again under another lock.
func (f *Frontier) sweepHosts(s scope.Scope, fn func(id uint32, now int64) (done bool)) error {
	f.orderHosts()
	var ids []uint32
	for key, more := "", true; more; {
		if err := f.lockOpen(); err != nil {
			return err
		}
		c := f.core
		ids = c.HostsIn(ids[:0], s.Hosts(), key, sweepAtOnce)
		more = len(ids) == sweepAtOnce
		for _, id := range ids {
			at := string(c.OrderKey(nil, id)) // fn may let it go
			if !fn(id, f.last) {
				more = true
				break
			}
			key = at
		}
		f.dispatchLocked()
		f.mu.Unlock()
	}
	return nil
}
