// This file keeps what an operator says about hosts, domains and all hosts: one
// rule for each scope, with any number of settings. Package mercator asks them through Rules, and
// keeps the hosts aside that they withhold.
//
// For each setting the most specific rule of a host applies: its own, then that of its
// closest domain, and so on up to that of All. No loop over hosts puts a rule in force: a
// rule is looked up when its answer is needed.
//
// Groups of hosts have settings, too: how long they are left alone, and how many contacts they may have
// at once. They are looked up when a group is met. A change is applied to the group at once; no call
// loops over groups or their hosts.

package frontier

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/rule"
)

// Switch is a setting that is on, off, or left to wider scopes.
type Switch uint8

// The values of a Switch.
const (
	Unset Switch = iota
	On
	Off
)

// Rule is what is set for one scope. Zero fields are not set: the next wider
// scope that sets them counts.
type Rule struct {
	// Delay determines how long hosts are left alone, in place of Options.Delay: a
	// FixedDelay or FactorDelay. Nil: not set.
	Delay DelayPolicy
	// Concurrency is the number of leases that a host may have at once, 1 to 1024. Zero: not set.
	Concurrency int
	// Paused hosts get no leases while it is On. Off lets the scope run although
	// a wider scope is paused, held or blocked.
	Paused Switch
	// Held hosts get no leases either. It is for programs, beside the operator's Paused: Pause and
	// Resume leave it as it is. False: not set.
	Held bool
	// BlockedUntil keeps hosts from getting leases before that time. A time that has
	// passed counts as not set. Zero: not set.
	BlockedUntil time.Time
	// Priority is the priority with which the scope's URLs, waiting and later ones, are
	// served, in place of their own: 1 to Options.Priorities. Zero: not set.
	Priority int
	// Priorities does the same depending on a URL's own priority, and precedes Priority.
	Priorities PriorityMap
	// Limits bound what the hosts of the scope do together: the limits of all scopes around a host
	// apply, not only those that RuleOf returns. HostLimits bound what each host does alone.
	Limits     Limits
	HostLimits Limits
	// Weight is the share of a crawl, and may be set for the scope of a Crawl only: while
	// several crawls have URLs that may be fetched now, each gets hand-outs in proportion
	// to its Weight, whatever the priorities. 1 to 1000. Zero means 1.
	Weight int
}

// ruleField is one setting of a Rule. A new setting needs a line in ruleFields and in
// row.Rule, and is checked in Rule.check.
type ruleField struct {
	set  func(r *Rule) bool
	copy func(dst, src *Rule) // gives dst the setting of src
}

// Indexes of ruleFields.
const (
	fieldDelay = iota
	fieldConcurrency
	fieldPaused
	fieldHeld
	fieldBlocked
	fieldPriority
	fieldPriorities
	fieldLimits
	fieldHostLimits
	fieldCount
)

var ruleFields = [fieldCount]ruleField{
	fieldDelay: {
		set:  func(r *Rule) bool { return r.Delay != nil },
		copy: func(dst, src *Rule) { dst.Delay = src.Delay },
	},
	fieldConcurrency: {
		set:  func(r *Rule) bool { return r.Concurrency != 0 },
		copy: func(dst, src *Rule) { dst.Concurrency = src.Concurrency },
	},
	fieldPaused: {
		set:  func(r *Rule) bool { return r.Paused != Unset },
		copy: func(dst, src *Rule) { dst.Paused = src.Paused },
	},
	fieldHeld: {
		set:  func(r *Rule) bool { return r.Held },
		copy: func(dst, src *Rule) { dst.Held = src.Held },
	},
	fieldBlocked: {
		set:  func(r *Rule) bool { return !r.BlockedUntil.IsZero() },
		copy: func(dst, src *Rule) { dst.BlockedUntil = src.BlockedUntil },
	},
	fieldPriority: {
		set:  func(r *Rule) bool { return r.Priority != 0 },
		copy: func(dst, src *Rule) { dst.Priority = src.Priority },
	},
	fieldPriorities: {
		set:  func(r *Rule) bool { return r.Priorities != PriorityMap{} },
		copy: func(dst, src *Rule) { dst.Priorities = src.Priorities },
	},
	fieldLimits: {
		set:  func(r *Rule) bool { return r.Limits != Limits{} },
		copy: func(dst, src *Rule) { dst.Limits = src.Limits },
	},
	fieldHostLimits: {
		set:  func(r *Rule) bool { return r.HostLimits != Limits{} },
		copy: func(dst, src *Rule) { dst.HostLimits = src.HostLimits },
	},
}

// check returns an error for a rule that must not take effect.
func (r *Rule) check(now time.Time) error {
	wrong := checkStored(r.Delay)
	wrong.If(r.Concurrency < 0 || r.Concurrency > maxConcurrency, "Concurrency is %d; want 1 to %d, or 0 to leave it to wider scopes", r.Concurrency, maxConcurrency)
	wrong.If(r.Paused > Off, "Paused is %d; want Unset, On or Off", r.Paused)
	t := r.BlockedUntil
	wrong.If(!t.IsZero() && (!t.After(now) || t.Sub(now) > maxBlock), "BlockedUntil is %s; want a time within 100 years from %s", t.Format(time.RFC3339), now.Format(time.RFC3339))
	wrong.If(r.Weight != 0, "Weight is %d; only a crawl has one", r.Weight)
	wrong.Add(r.Limits.check("Limits"), r.HostLimits.check("HostLimits"))
	return errors.Join(wrong...)
}

// fields are the settings of a rule, one bit each by its place in ruleFields.
func (r *Rule) fields() (f rule.Fields) {
	for i := range ruleFields {
		if ruleFields[i].set(r) {
			f |= 1 << i
		}
	}
	return f
}

// empty reports whether nothing is set.
func (r *Rule) empty() bool { return r.fields() == 0 }

// scopeRule is a rule where it lies in the tree.
type scopeRule struct {
	key   string // Scope.ruleKey
	scope Scope
	Rule
	until int64      // date of BlockedUntil, which has not passed; instant.None: not set
	each  limit.Each // HostLimits as of when the row was made; in force, package limit has it
}

// controls are the rules in force. Readers take no lock; writers hold shard.mu.
type controls struct{ rule.Table[scopeRule] }

// ruleBytes is what a rule takes in memory, about.
const ruleBytes = 256

// put puts a rule in force in place of the one with its key, which it returns. An
// empty rule only ends that one.
func (c *controls) put(r *scopeRule) (old *scopeRule) { return c.Put(r.key, r, r.fields()) }

// The settings that are asked for together.
const (
	withholdFields = 1<<fieldPaused | 1<<fieldHeld | 1<<fieldBlocked
	levelFields    = 1<<fieldPriority | 1<<fieldPriorities
)

// delay returns the most specific rule's policy for a host, or nil.
func (c *controls) delay(host string) DelayPolicy {
	if r := c.Load().First(hostkey.Bytes(host), 1<<fieldDelay); r != nil {
		return r.Delay
	}
	return nil
}

// Concurrency returns how many leases the rules allow a host, or 0 if none says.
func (c *controls) Concurrency(host []byte) int {
	if r := c.Load().First(host, 1<<fieldConcurrency); r != nil {
		return r.Concurrency
	}
	return 0
}

// effective returns the settings that apply to a host.
func (c *controls) effective(host string, now int64) (out Rule) {
	c.Load().Visit(hostkey.Bytes(host), func(s *scopeRule) bool {
		r := s.at(now)
		if out.Priority == 0 { // else that of the narrower scope counts for all
			out.Priorities.complete(&r.Priorities)
		}
		r.Priorities = PriorityMap{}
		runs := out.Paused == Off // whatever wider scopes say
		for i := range ruleFields {
			f := &ruleFields[i]
			if runs && (i == fieldBlocked || i == fieldHeld) {
				continue
			}
			if !f.set(&out) && f.set(&r) {
				f.copy(&out, &r)
			}
		}
		return true
	})
	return out
}

// at is the rule as it is at a date: without a block that has passed.
func (r *scopeRule) at(now int64) Rule {
	out := r.Rule
	if r.until <= now {
		out.BlockedUntil = time.Time{}
	}
	return out
}

// EndBlock ends the block of a scope, whose time has come.
func (c *controls) EndBlock(s row.Scope, now int64) {
	ended := *c.Get(s.Key())
	ended.Rule, ended.until = ended.at(now), instant.None
	c.put(&ended)
}

// stops reports whether the rule keeps hosts from being served.
func (r *scopeRule) stops() bool { return r.Paused == On || r.Held || r.until != instant.None }

// block returns the end of the rule's block; r may be nil.
func (r *scopeRule) block() int64 {
	if r == nil {
		return instant.None
	}
	return r.until
}

// ruleKey is the scope's place in the tree of rules, and in the store.
func (s Scope) ruleKey() string { return s.stored().Key() }

// Withholding reports whether any rule may keep a host from being served.
func (c *controls) Withholding() bool { return c.Load().Set(withholdFields) }

// Withholds returns the date until which the rules keep a host from being served, and
// why: never if it is paused or held, instant.None if they do not. A pause comes first, and a block last.
func (c *controls) Withholds(host []byte, now int64) (until int64, why mercator.WithheldReason) {
	until = instant.None
	c.Load().Visit(host, func(r *scopeRule) bool {
		if r.until > max(now, until) {
			until, why = r.until, mercator.WithheldBlocked
		}
		if r.Paused == On {
			until, why = instant.Never, mercator.WithheldPaused
		} else if r.Held && until != instant.Never {
			until, why = instant.Never, mercator.WithheldSpent
		}
		return r.Paused == Unset
	})
	return until, why
}

// checkRulesLocked checks that the table of rules counts right, that blocks are in order
// of their ends (F3), and that package limit knows the limits (F6).
func (f *Frontier) checkRulesLocked(bad func(format string, args ...any)) {
	c := f.core
	t := f.controls.Load()
	t.Check(bad, func(r *scopeRule) rule.Fields { return r.fields() })
	blocks := 0
	for key, r := range t.All() {
		if r.scope.ruleKey() != r.key || r.key != key {
			bad("F3: the rule of %v lies under %q: %v", r.scope, r.key, r.Rule)
		}
		if r.BlockedUntil.IsZero() != (r.until == instant.None) {
			bad("F3: the rule of %v blocks until %v and %d", r.scope, r.BlockedUntil, r.until)
		}
		if r.until != instant.None {
			blocks++
			if c.Withheld.Blocks == nil || !c.Withheld.Blocks.Has(mercator.BlockEnd{Until: r.until, Scope: r.scope.stored()}) {
				bad("F3: the block of %v has no end", r.scope)
			}
		}
	}
	if c.Withheld.Blocks != nil && c.Withheld.Blocks.Len() != blocks {
		bad("F3: %d blocks, %d have an end", blocks, c.Withheld.Blocks.Len())
	}
	if b := c.Limits; b != nil {
		for _, r := range t.All() {
			if _, ok := b.Row(r.scope.subject()); ok != (r.Limits != Limits{}) || b.Exactly(r.scope.stored()).Limits != r.HostLimits.quota() {
				bad("F6: the rule of %v has limits %+v and %+v, and usage: %v", r.scope, r.Limits, r.HostLimits, ok)
			}
		}
	}
}

// GroupSettings are the politeness settings of a group of hosts. The zero value has the defaults.
type GroupSettings struct {
	// Delay determines how long a slot of the group is left alone after a contact: a
	// FixedDelay or FactorDelay. Nil means Options.GroupDelay.
	Delay DelayPolicy
	// Concurrency is how many of the group's hosts may be contacted at once, 1 to
	// 1024. Each slot keeps its own distance. Zero means 1.
	Concurrency int
}

// GroupInfo describes a group.
type GroupInfo struct {
	Settings GroupSettings // as they were set; zero fields are at their defaults
	Hosts    int           // in memory that belong to it
	Leased   int           // slots in use: leases, and hosts that are about to be served
	Queued   int           // hosts that only the group keeps from being contacted
	Due      time.Time     // when it may be contacted next, if a slot is not in use; zero: its clock is not running
}

// groupRules are the settings of groups, by name. Readers take no lock; writers hold shard.mu.
type groupRules struct{ rule.Table[GroupSettings] }

// of returns the settings of a group.
func (r *groupRules) of(name string) GroupSettings {
	if s := r.Get(name); s != nil {
		return *s
	}
	return GroupSettings{}
}

// want is of as package mercator takes it.
func (r *groupRules) want(name string) mercator.GroupWant {
	s := r.of(name)
	return s.want()
}

func (s *GroupSettings) want() mercator.GroupWant {
	if s.Delay == nil {
		return mercator.GroupWant{Slots: s.Concurrency}
	}
	return mercator.GroupWant{Slots: s.Concurrency, Delay: s.Delay}
}

func (r *groupRules) set(name string, s GroupSettings) {
	r.Put(name, &s, rule.Fields(btoi(s != GroupSettings{})))
}

// checkStored says what is wrong with a policy that must be stored; nil is none.
func checkStored(d DelayPolicy) (wrong faults.List) {
	if d != nil {
		wrong = checkDelay("Delay", d)
		wrong.If(len(wrong) == 0 && storedDelay(d).Kind == row.NoDelay, "Delay is a %T, which cannot be stored; want FixedDelay or FactorDelay", d)
	}
	return wrong
}

// check returns an error for invalid settings.
func (s *GroupSettings) check() error {
	wrong := checkStored(s.Delay)
	wrong.If(s.Concurrency < 0 || s.Concurrency > maxConcurrency, "concurrency is %d; want 1 to %d, or 0 for the default", s.Concurrency, maxConcurrency)
	return errors.Join(wrong...)
}

// SetGroup changes the settings of a group, which need not have any hosts; the zero value restores the
// defaults. Settings are durable when SetGroup returns, and apply to the next hand-out and to contacts
// that end later. If more slots are in use than the group now has, none is given until enough are free.
func (f *Frontier) SetGroup(name string, s GroupSettings) error {
	err := row.CheckGroup(name)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return fmt.Errorf("frontier: set group: %w", err)
	}
	o := newOp()
	defer o.free()
	if err := f.lockOpen(); err != nil {
		return err
	}
	f.setGroupLocked(o, name, s)
	return f.submitAndUnlock(o)
}

// setGroupLocked makes o set a group.
func (s *shard) setGroupLocked(o *op, name string, want GroupSettings) {
	c := s.core
	x := storedGroup(want, 0)
	if id := c.GroupNamed(name); id != 0 {
		if last := c.SlotsOf(id).Last(); last > s.last {
			x.Due = s.clock.Stored(last) // from its row, perhaps
		}
	}
	o.rows = append(o.rows, x.Row(name))
	o.rule = func() {
		s.groupRules.set(name, want)
		if id := c.GroupNamed(name); id != 0 {
			c.Groups.At(id).Set(want.want())
			c.RequeueGroup(id)
		}
	}
}

// Group describes a group. It reports false if nothing is known about it: it has no
// settings and no hosts in memory, and may be contacted at once.
func (f *Frontier) Group(name string) (GroupInfo, bool) {
	f.lockAdvanced()
	defer f.mu.Unlock()
	c := f.core
	x := GroupInfo{Settings: f.groupRules.of(name)}
	id := c.GroupNamed(name)
	if id == 0 {
		return x, x.Settings != GroupSettings{}
	}
	g := c.Groups.At(id)
	x.Hosts, x.Leased, x.Queued = int(g.Members), int(g.Used), int(g.Waits)
	if g.Free > 0 {
		x.Due = f.wall(g.Free)
	}
	return x, x.Settings != GroupSettings{} || g.Members > 0 || g.Used > 0 || c.SlotsOf(id).Last() > f.last
}

// storedGroup is what is set for a group and when it may be contacted, in Unix milliseconds.
func storedGroup(s GroupSettings, due int64) *row.Group {
	return &row.Group{Due: due, Delay: storedDelay(s.Delay), Concurrency: s.Concurrency}
}

// settingsOf is what the row of a group says is set.
func settingsOf(g *row.Group) GroupSettings {
	return GroupSettings{Delay: policyOf(g.Delay), Concurrency: g.Concurrency}
}

// Assign makes a host a member of a group, whether its URLs wait, it is leased, or nothing is known
// about it; an empty group removes it from its group. The membership lasts, even when the store is
// reopened, until the host is assigned to another group or joins one. The next hand-out needs a slot of
// the new group. Contacts under leases that are out count for both groups until the leases end: they
// keep their slots, and take slots of the new group if any are free. Assign is durable when it returns;
// if the Spill fails the change is in force, and the next Done of the host stores it.
func (f *Frontier) Assign(host, group string) error {
	if group != "" {
		if err := row.CheckGroup(group); err != nil {
			return fmt.Errorf("frontier: assign: %w", err)
		}
	}
	return f.changeHost("assign", host, group != "", func(id uint32) { f.core.Assign(id, group, f.last) })
}
