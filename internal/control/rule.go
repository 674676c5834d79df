// This file has a rule, what it sets, and the end of its block.

package control

import (
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/rule"
)

// Rule is the rule of a scope. Its maker sets the exported fields, except Ended.
type Rule struct {
	Scope    row.Scope
	row.Rule           // as it is stored
	Block    time.Time // BlockedUntil as the operator said it

	policy Policy     // of Delay
	until  int64      // the date of Block, which has not passed; instant.None: there is none
	each   limit.Each // HostLimits as of when the row was made; in force, package limit has it
}

// The values of row.Rule.Paused.
const (
	on  = 1
	off = 2
)

// The settings that are asked for together. A new setting of row.Rule needs a line in fields and in
// Effective.
const (
	delayField rule.Fields = 1 << iota
	concurrencyField
	withholdField
	levelField
	limitField
)

// fields are the settings of a rule.
func (r *Rule) fields() (f rule.Fields) {
	add := func(field rule.Fields, set bool) {
		if set {
			f |= field
		}
	}
	add(delayField, r.Delay != row.Delay{})
	add(concurrencyField, r.Concurrency != 0)
	add(withholdField, r.Paused != 0 || r.Held || !r.Block.IsZero())
	add(levelField, r.Priority != 0 || r.Priorities != [row.MaxPriorities + 1]uint8{})
	add(limitField, r.Limits != quota.Limits{} || r.HostLimits != quota.Limits{})
	return f
}

// at is the rule as it is at a date: without a block that has passed. Nil is one that sets nothing.
func (r *Rule) at(now int64) Rule {
	if r == nil {
		return Rule{until: instant.None}
	}
	out := *r
	if r.until <= now {
		out.Block, out.BlockedUntil, out.until = time.Time{}, 0, instant.None
	}
	return out
}

// stops reports whether the rule keeps hosts from being served.
func (r *Rule) stops() bool { return r.Paused == on || r.Held || r.until != instant.None }

// complete gives a rule the fields that its maker does not set, as of a date.
func (c *Controls) complete(r *Rule, now int64) {
	r.policy, r.until = c.policy(r.Delay), c.core.Clock.Date(r.Block)
	*r = r.at(now)
}
