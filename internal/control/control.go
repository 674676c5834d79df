// Package control keeps what operators say of hosts, domains, all hosts, groups and crawls. It owns the
// rules in force, one for each scope with any number of settings, the settings of groups, and the changes
// that are on their way to the store. What is durable it puts in force in package mercator.
//
// For each setting the most specific rule of a host applies: its own, then that of its closest domain, and
// so on up to that of all hosts. No loop over hosts puts a rule in force: a rule is looked up when its
// answer is needed, and so are the settings of a group.
//
// A look-up takes no lock and no memory: policies of delays, which its caller makes from rows, are kept
// ready. Callers hold the frontier's lock for changes, for what is the latest of them, and for Check.
package control

import (
	"cmp"
	"iter"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/rule"
)

// Policy is a delay policy that can be stored.
type Policy = mercator.OwnPolicy

// Controls are the rules in force, the settings of groups, and the changes under way. Make them with New.
type Controls struct {
	core   *mercator.Core
	policy func(row.Delay) Policy

	rules   rule.Table[Rule]
	groups  rule.Table[Group]
	changes pending[string, *Rule] // by key of the scope
	crawls  pending[uint32, row.CrawlSettings]
}

// New returns empty controls of a core. policy makes a policy of its stored form, nil of none.
func New(core *mercator.Core, policy func(row.Delay) Policy) *Controls {
	c := &Controls{core: core, policy: policy, changes: pending[string, *Rule]{}, crawls: pending[uint32, row.CrawlSettings]{}}
	core.GroupSettings = c.want
	return c
}

// ruleBytes is what a rule takes in memory, about.
const ruleBytes = 448

// Size is the memory of the rules in bytes, about.
func (c *Controls) Size() int64 { return int64(c.rules.Load().Len()) * ruleBytes }

// Exactly returns the rule of exactly this scope at a date, and whether it sets anything.
func (c *Controls) Exactly(s row.Scope, now int64) (Rule, bool) {
	r := c.rules.Get(s.Key()).at(now)
	return r, r.fields() != 0
}

// All yields the rules that set something at a date: that of all hosts, then those of domains and hosts in
// domain order.
func (c *Controls) All(now int64) iter.Seq[Rule] {
	return func(yield func(Rule) bool) {
		for _, r := range c.rules.Load().All() {
			if out := r.at(now); out.fields() != 0 && !yield(out) {
				return
			}
		}
	}
}

// Effective returns the settings that apply to a host at a date.
func (c *Controls) Effective(host string, now int64) Rule {
	out := Rule{until: instant.None}
	c.rules.Load().Visit(hostkey.Bytes(host), func(r *Rule) bool {
		out.Delay = cmp.Or(out.Delay, r.Delay)
		out.Concurrency = cmp.Or(out.Concurrency, r.Concurrency)
		if out.Paused != off { // else the host runs, whatever wider scopes say
			out.Held = out.Held || r.Held
			if out.until == instant.None && r.until > now {
				out.Block, out.BlockedUntil, out.until = r.Block, r.BlockedUntil, r.until
			}
		}
		out.Paused = cmp.Or(out.Paused, r.Paused)
		if out.Priority == 0 { // else that of the narrower scope counts for all
			for i, p := range r.Priorities {
				out.Priorities[i] = cmp.Or(out.Priorities[i], p)
			}
		}
		out.Priority = cmp.Or(out.Priority, r.Priority)
		out.Limits = cmp.Or(out.Limits, r.Limits)
		out.HostLimits = cmp.Or(out.HostLimits, r.HostLimits)
		return true
	})
	return out
}

// Delay returns the most specific rule's policy for a host, or nil.
func (c *Controls) Delay(host string) Policy {
	if r := c.rules.Load().First(hostkey.Bytes(host), delayField); r != nil {
		return r.policy
	}
	return nil
}

// Concurrency returns how many leases the rules allow a host, or 0 if none says.
func (c *Controls) Concurrency(host []byte) int {
	if r := c.rules.Load().First(host, concurrencyField); r != nil {
		return r.Concurrency
	}
	return 0
}

// Priority returns the priority with which URLs of a host are served whose own is p.
func (c *Controls) Priority(host []byte, p uint8) uint8 {
	t := c.rules.Load()
	if !t.Set(levelField) {
		return p
	}
	as := p
	t.Visit(host, func(r *Rule) bool {
		switch {
		case r.Priorities[p] != 0:
			as = r.Priorities[p]
		case r.Priority != 0:
			as = uint8(r.Priority)
		default:
			return true
		}
		return false
	})
	return as
}

// Withholding reports whether any rule may keep a host from being served.
func (c *Controls) Withholding() bool { return c.rules.Load().Set(withholdField) }

// Withholds returns the date until which the rules keep a host from being served, and why: never if it is
// paused or held, instant.None if they do not. A pause comes first, and a block last.
func (c *Controls) Withholds(host []byte, now int64) (until int64, why mercator.WithheldReason) {
	until = instant.None
	c.rules.Load().Visit(host, func(r *Rule) bool {
		if r.until > max(now, until) {
			until, why = r.until, mercator.WithheldBlocked
		}
		if r.Paused == on {
			until, why = instant.Never, mercator.WithheldPaused
		} else if r.Held && until != instant.Never {
			until, why = instant.Never, mercator.WithheldSpent
		}
		return r.Paused == 0
	})
	return until, why
}

// Check verifies that the rules are counted right, that blocks are in order of their ends (F3), and that
// package limit knows the limits (F6).
func (c *Controls) Check(bad func(format string, args ...any)) {
	t := c.rules.Load()
	t.Check(bad, (*Rule).fields)
	ends, blocks := c.core.Withheld.Blocks, 0
	for key, r := range t.All() {
		if r.Scope.Key() != key {
			bad("F3: the rule of %v lies under %q: %v", r.Scope, key, r.Rule)
		}
		if r.Block.IsZero() != (r.until == instant.None) {
			bad("F3: the rule of %v blocks until %v and %d", r.Scope, r.Block, r.until)
		}
		if r.until != instant.None {
			blocks++
			if ends == nil || !ends.Has(mercator.BlockEnd{Until: r.until, Scope: r.Scope}) {
				bad("F3: the block of %v has no end", r.Scope)
			}
		}
		if b := c.core.Limits; b != nil {
			if _, ok := b.Row(limit.OfScope(r.Scope)); ok != (r.Limits != quota.Limits{}) || b.Exactly(r.Scope).Limits != r.HostLimits {
				bad("F6: the rule of %v has limits %+v and %+v, and usage: %v", r.Scope, r.Limits, r.HostLimits, ok)
			}
		}
	}
	if ends != nil && ends.Len() != blocks {
		bad("F3: %d blocks, %d have an end", blocks, ends.Len())
	}
}
