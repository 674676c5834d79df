// This file has what is set for a scope, a Rule, and for a group of hosts: what is wrong with it, and how
// it is stored. Package control has what is in force.

package frontier

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/internal/control"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/scope"
)

// Rule is what is set for one scope. Zero fields are not set: the next wider
// scope that sets them counts.
type Rule struct {
	// Delay determines how long hosts are left alone, in place of Options.Delay: a
	// FixedDelay or FactorDelay. Nil: not set.
	Delay DelayPolicy
	// Concurrency is the number of leases that a host may have at once, 1 to 1024. Zero: not set.
	Concurrency int
	// Paused hosts get no leases while it is scope.On. scope.Off lets the scope run although
	// a wider scope is paused, held or blocked.
	Paused scope.Switch
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
	Limits     scope.Limits
	HostLimits scope.Limits
	// Weight is the share of a crawl, and may be set for a scope.Crawl only: while
	// several crawls have URLs that may be fetched now, each gets hand-outs in proportion
	// to its Weight, whatever the priorities. 1 to 1000. Zero means 1.
	Weight int
}

// check returns an error for a rule of hosts that must not take effect.
func (r *Rule) check(now time.Time, levels int) error {
	wrong := checkStored(r.Delay)
	wrong.If(r.Concurrency < 0 || r.Concurrency > maxConcurrency, "Concurrency is %d; want 1 to %d, or 0 to leave it to wider scopes", r.Concurrency, maxConcurrency)
	wrong.If(r.Paused > scope.Off, "Paused is %d; want Unset, On or Off", r.Paused)
	t := r.BlockedUntil
	wrong.If(!t.IsZero() && (!t.After(now) || t.Sub(now) > maxBlock), "BlockedUntil is %s; want a time within 100 years from %s", t.Format(time.RFC3339), now.Format(time.RFC3339))
	wrong.If(r.Weight != 0, "Weight is %d; only a crawl has one", r.Weight)
	wrong.Add(checkLimits(&r.Limits, "Limits"), checkLimits(&r.HostLimits, "HostLimits"))
	wrong.If(r.Priority < 0 || r.Priority > levels, "Priority is %d; want 1 to %d, or 0 to leave it to wider scopes", r.Priority, levels)
	for i, p := range r.Priorities {
		wrong.If(int(p) > levels || p > 0 && (i == 0 || i > levels), "Priorities[%d] is %d; want 1 to %d for each of 1 to %d, or 0 to leave it", i, p, levels, levels)
	}
	return errors.Join(wrong...)
}

// stored is what the row of a rule says.
func (r *Rule) stored() row.Rule {
	return row.Rule{
		Delay: storedDelay(r.Delay), Concurrency: r.Concurrency, Paused: uint8(r.Paused), Held: r.Held, BlockedUntil: instant.Millis(r.BlockedUntil),
		Priority: r.Priority, Priorities: r.Priorities, Limits: quota.Limits(r.Limits), HostLimits: quota.Limits(r.HostLimits),
	}
}

// ruleStored is the inverse of Rule.stored.
func ruleStored(r *row.Rule) Rule {
	return Rule{
		Delay: policyOf(r.Delay), Concurrency: r.Concurrency, Paused: scope.Switch(r.Paused), Held: r.Held, BlockedUntil: instant.FromMillis(r.BlockedUntil),
		Priority: r.Priority, Priorities: r.Priorities, Limits: scope.Limits(r.Limits), HostLimits: scope.Limits(r.HostLimits),
	}
}

// ruleIn is a rule in force as its operator said it.
func ruleIn(x control.Rule) Rule {
	r := ruleStored(&x.Rule)
	r.BlockedUntil = x.Block
	return r
}

// ruleOfCrawl is a crawl's settings as Rule returns them: see beginRuleLocked.
func ruleOfCrawl(s row.CrawlSettings) Rule {
	r := Rule{Limits: scope.Limits(s.Limits)}
	if s.Weight != 1 {
		r.Weight = s.Weight
	}
	if s.Paused {
		r.Paused = scope.On
	}
	return r
}

// CheckCrawl returns an error for a rule that no crawl can have.
func (r Rule) CheckCrawl() error {
	var wrong faults.List
	wrong.Add(checkLimits(&r.Limits, "Limits"))
	wrong.If(r.Weight < 0 || r.Weight > row.MaxWeight, "Weight is %d; want 1 to %d, or 0 for 1", r.Weight, row.MaxWeight)
	wrong.If(r.Paused > scope.Off, "Paused is %d; want Unset, On or Off", r.Paused)
	r.Weight, r.Paused, r.Limits = 0, scope.Unset, scope.Limits{}
	wrong.If(r != (Rule{}), "a crawl has Weight, Paused and Limits; the other settings are of hosts")
	return errors.Join(wrong...)
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
	set := s.stored()
	o.Rows = append(o.Rows, f.controls.BeginGroup(name, set, f.last))
	o.Rule = func() { f.controls.SetGroup(name, set) }
	return f.ledger.SubmitAndUnlock(&o.Op)
}

// stored is what the row of a group says is set.
func (s *GroupSettings) stored() row.Group {
	return row.Group{Delay: storedDelay(s.Delay), Concurrency: s.Concurrency}
}

// settingsOf is the inverse of GroupSettings.stored.
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
