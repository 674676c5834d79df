// This file is an operator's hands: what may be said about hosts, domains and all
// hosts while the frontier runs.
//
// Each call is durable when it returns, and holds for the very next hand-out.
// What is said becomes a rule: see rules.go.

package frontier

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Scope names a host, a domain, or all hosts. The zero Scope is that of All.
type Scope struct {
	name   string
	domain bool
	named  bool // of a host or domain; its name may be missing by mistake
}

// All is the scope of all hosts.
func All() Scope { return Scope{} }

// Host is the scope of one host key, spelled as Options.HostKey spells it. Unless
// there is a HostKey, any spelling of the host's name finds it, as in URLs, and
// controls refuse names that no host can have.
func Host(key string) Scope { return Scope{name: key, named: true} }

// Domain is the scope of all hosts at or under a name: Domain("example.org") has
// example.org and www.example.org, not myexample.org. It is spelled like a host.
func Domain(name string) Scope { return Scope{name: name, domain: true, named: true} }

// String returns the host key, the domain's name behind "*.", or "*".
func (s Scope) String() string {
	switch {
	case !s.named:
		return "*"
	case s.domain:
		return "*." + s.name
	}
	return s.name
}

// key is the scope's place among hosts. A domain's ends with a dot, so it is the
// prefix of the keys of what lies under it.
func (s Scope) key() string {
	k := reversed(s.name)
	if s.domain {
		return k + "."
	}
	return k
}

func (s Scope) check() error {
	if s.named && (len(s.name) < 1 || len(s.name) > 255) {
		return fmt.Errorf("scope name has %d bytes; want 1 to 255", len(s.name))
	}
	return nil
}

const (
	maxConcurrency = 1024
	maxBlock       = 100 * 366 * 24 * time.Hour
)

// check says what is wrong with a rule that shall hold from now on.
func (r *Rule) check(now time.Time) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Delay != nil {
		if wrong := checkDelay("Delay", r.Delay); len(wrong) > 0 {
			errs = append(errs, wrong...)
		} else if encodeDelay(r.Delay) == nil {
			bad("Delay is a %T, which cannot be stored; want FixedDelay or FactorDelay", r.Delay)
		}
	}
	if r.Concurrency < 0 || r.Concurrency > maxConcurrency {
		bad("Concurrency is %d; want 1 to %d, or 0 to leave it to wider scopes", r.Concurrency, maxConcurrency)
	}
	if r.Paused > Off {
		bad("Paused is %d; want Unset, On or Off", r.Paused)
	}
	if t := r.BlockedUntil; !t.IsZero() && (!t.After(now) || t.Sub(now) > maxBlock) {
		bad("BlockedUntil is %v; want a time within 100 years from %v", t, now)
	}
	errs = append(errs, r.Limits.check("Limits"), r.HostLimits.check("HostLimits"))
	return errors.Join(errs...)
}

// Rule returns what was set for exactly this scope, and whether anything was.
func (f *Frontier) Rule(s Scope) (Rule, bool) {
	if r, ok := f.controls.rule(f.scopeSeen(s).ruleKey()); ok {
		out := r.at(f.date(f.opts.Clock.Now()))
		return out, !out.empty()
	}
	return Rule{}, false
}

// RuleOf returns what the rules say of a host: each setting of the most specific
// scope that sets it. Zero fields are set by none: then Options say.
func (f *Frontier) RuleOf(host string) Rule {
	return f.controls.effective(f.hostSeen(host), f.date(f.opts.Clock.Now()))
}

// Rules returns all rules as they are when the loop begins: that of All, then
// those of domains and hosts in domain order.
func (f *Frontier) Rules() iter.Seq2[Scope, Rule] {
	return func(yield func(Scope, Rule) bool) {
		t := f.controls.table.Load()
		if t == nil {
			return
		}
		now := f.date(f.opts.Clock.Now())
		t.tree.Ascend(func(r *scopeRule) bool {
			rule := r.at(now)
			return rule.empty() || yield(r.scope, rule)
		})
	}
}

// SetRule sets everything that can be set for a scope, in place of what was: zero
// fields are taken back.
func (f *Frontier) SetRule(s Scope, r Rule) error {
	return f.changeRule("set rule", s, func(old *Rule) { *old = r })
}

// Clear takes back all that was set for exactly this scope. Wider and narrower
// scopes keep theirs.
func (f *Frontier) Clear(s Scope) error { return f.SetRule(s, Rule{}) }

// Pause keeps the hosts of a scope from getting leases until Resume. Leases that
// are out go on.
func (f *Frontier) Pause(s Scope) error {
	return f.changeRule("pause", s, func(r *Rule) { r.Paused = On })
}

// Resume takes Pause and BlockUntil back that were called for exactly this scope.
// If a wider scope is paused or blocked now, this one is set to run all the same.
// Narrower scopes that were paused or blocked themselves stay so.
func (f *Frontier) Resume(s Scope) error {
	s = f.scopeSeen(s)
	return f.changeRule("resume", s, func(r *Rule) {
		r.Paused, r.BlockedUntil = Unset, time.Time{}
		if f.widerHoldsLocked(s) {
			r.Paused = Off
		}
	})
}

// BlockUntil keeps the hosts of a scope from getting leases before t, which is in
// the future. Leases that are out go on. A block that has passed is forgotten: if
// that of a wider scope lasts longer, that one counts from then on.
func (f *Frontier) BlockUntil(s Scope, t time.Time) error {
	if t.IsZero() {
		return fmt.Errorf("frontier: block of %v: no time is given", s)
	}
	return f.changeRule("block", s, func(r *Rule) { r.BlockedUntil = t })
}

// widerHoldsLocked reports whether scopes around s keep its hosts from being
// served now.
func (f *Frontier) widerHoldsLocked(s Scope) bool {
	for s.named {
		s = s.wider()
		r := f.latestRuleLocked(s.ruleKey())
		if r.Paused == On || !r.BlockedUntil.IsZero() {
			return true
		}
		if r.Paused == Off {
			return false
		}
	}
	return false
}

// wider is the next scope around a host or domain.
func (s Scope) wider() Scope {
	if !s.domain {
		return Domain(s.name)
	}
	key := reversed(s.name)
	if dot := strings.LastIndexByte(key, '.'); dot > 0 {
		return Domain(reversed(key[:dot]))
	}
	return All()
}

// SetDelay makes d the delay policy of the hosts of a scope, instead of
// Options.Delay; nil takes that back. It is durable when SetDelay returns, and
// holds for contacts that end later. Only the policies FixedDelay and FactorDelay
// can be stored.
func (f *Frontier) SetDelay(s Scope, d DelayPolicy) error {
	return f.changeRule("set delay", s, func(r *Rule) { r.Delay = d })
}

// DelayOf returns the delay policy that a host has.
func (f *Frontier) DelayOf(host string) DelayPolicy {
	if d := f.controls.delay(f.hostSeen(host)); d != nil {
		return d
	}
	return f.opts.Delay
}

// longestDelay is the Max of a host's delay policy. It may be called with the lock
// held: of a policy of the user's it was asked at Open, those of rules are ours.
func (f *Frontier) longestDelay(host string) int64 {
	if d := f.controls.delay(f.hostSeen(host)); d != nil {
		return int64(d.Max())
	}
	return f.maxDelay
}

// SetConcurrency says how many leases each host of a scope may have at once, 1 to
// 1024; 0 takes that back. With fewer than are out, none is added until enough of
// them have ended.
func (f *Frontier) SetConcurrency(s Scope, n int) error {
	return f.changeRule("set concurrency", s, func(r *Rule) { r.Concurrency = n })
}

// changeRule changes the rule of a scope and puts it in force when it is durable.
// Changes of one rule that meet each other all count.
func (f *Frontier) changeRule(what string, s Scope, change func(*Rule)) error {
	s, err := f.spelled(s)
	if err != nil {
		return fmt.Errorf("frontier: %s: %w", what, err)
	}
	if err := f.lockOpen(); err != nil {
		return err
	}
	r := &scopeRule{key: s.ruleKey(), scope: s}
	was := f.latestLocked(r.key)
	if was != nil {
		r.Rule = was.at(f.core.date(f.last))
	}
	old := r.Rule
	change(&r.Rule)
	if err := errors.Join(r.check(f.wall(f.last)), r.checkPriorities(f.opts.Priorities)); err != nil {
		f.mu.Unlock()
		return fmt.Errorf("frontier: %s of %v: %w", what, s, err)
	}
	if !r.BlockedUntil.IsZero() {
		r.until = f.date(r.BlockedUntil)
	}
	o := newOp()
	defer o.free()
	o.rows = append(o.rows, ruleRow(r.key, f.storedRuleOf(r, was)))
	if r.Limits == (Limits{}) && old.Limits != (Limits{}) {
		o.rows = append(o.rows, Row{Key: rowUse + "r" + r.key})
	}
	if was, ok := f.controls.rule(r.key); ok {
		f.core.endPeriod(was.use, &was.Limits, f.token, f.core.date(f.last)) // with the rule that may change it
	}
	f.ruling.begin(r)
	o.rule = func() {
		f.ruling.end(r.key)
		f.announceLocked(f.enforceLocked(r), r)
	}
	o.unrule = func() { f.ruling.end(r.key) }
	err = f.submitLocked(o) // unlocks
	if err == nil && r.Concurrency != old.Concurrency {
		f.reviseLanes()
	}
	if err == nil && (r.Priority != old.Priority || r.Priorities != old.Priorities) {
		err = f.sweepHosts(s, func(id uint32, now int64) bool {
			f.core.relevel(id, now)
			return true
		})
	}
	if err == nil && s.domain && r.Limits.Waiting > 0 {
		err = f.countDomain(s)
	}
	return err
}

// enforceLocked puts a durable rule in force, and returns what it replaces.
func (f *Frontier) enforceLocked(r *scopeRule) (old *scopeRule) {
	if r.Rule = r.at(f.core.date(f.last)); r.BlockedUntil.IsZero() {
		r.until = 0 // it passed on the way
	}
	was, _ := f.controls.rule(r.key)
	f.core.setUse(r, was, f.token, f.last)
	old = f.controls.put(r)
	f.core.ruled(old, r, f.last)
	return old
}

// announceLocked tells of a scope that a rule holds and old, which may be nil, did
// not.
func (f *Frontier) announceLocked(old, r *scopeRule) {
	if old == nil {
		old = &scopeRule{}
	}
	e := Event{Kind: EventHostBlocked, Scope: r.scope}
	if r.scope.named && !r.scope.domain {
		e.Host = r.scope.name
	}
	if r.Paused == On && old.Paused != On {
		e.Reason = "paused"
		f.emitLocked(e)
	}
	if r.until != 0 && r.until != old.until {
		e.Reason, e.Until = "blocked", r.BlockedUntil
		f.emitLocked(e)
	}
}

// latestRuleLocked is the rule of a scope as of the last change that was
// submitted: the next one starts from there.
func (f *Frontier) latestRuleLocked(key string) Rule {
	if r := f.latestLocked(key); r != nil {
		return r.at(f.core.date(f.last))
	}
	return Rule{}
}

// latestLocked is latestRuleLocked where it lies, or nil.
func (f *Frontier) latestLocked(key string) *scopeRule {
	if p := f.ruling[key]; p != nil {
		return p.latest
	}
	r, _ := f.controls.rule(key)
	return r
}

// ruling holds, by key, the rules of which changes are on their way to the
// store. If one fails, so do those that were submitted after it.
type ruling map[string]*pendingRule

type pendingRule struct {
	latest  *scopeRule
	changes int
}

func (p ruling) begin(r *scopeRule) {
	if p[r.key] == nil {
		p[r.key] = &pendingRule{}
	}
	p[r.key].latest = r
	p[r.key].changes++
}

func (p ruling) end(key string) {
	if p[key].changes--; p[key].changes == 0 {
		delete(p, key)
	}
}
