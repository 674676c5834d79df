// This file keeps what hosts have used of what each may do alone: for as long as that
// counts, and under the limits of the moment.

package frontier

import "math"

// hostUsage is what a host has used under a rule; nil if nothing was counted.
func (c *core) hostUsage(id uint32, own *scopeRule) *usage {
	u := c.limits.hosts[id]
	if u == nil {
		return nil
	}
	if u.begun && u.seen < own.changed && u.since <= own.ended {
		u.restart(c.limits.youngest)
	}
	u.seen = c.limits.changes
	return u
}

// ownUsage is what a host may do alone, and what it has used of that; nil if nothing
// is said.
func (c *core) ownUsage(id uint32) (*Limits, *usage) {
	r := c.controls.hostLimits(c.name(c.hosts.at(id)))
	if r == nil {
		return nil, nil
	}
	return &r.HostLimits, c.hostUsage(id, r)
}

// unused forgets what a host without URLs has used if that counts no more.
func (c *core) unused(id uint32, now int64) {
	h := c.hosts.at(id)
	if !h.has(counted) {
		return
	}
	l, u := c.ownUsage(id)
	if l == nil || u.over(l, c.date(now)) || !u.begun {
		c.dropUsage(id)
		h.set(behind)
		return
	}
	u.rests = c.moment(c.usedUntil(id))
}

// usedUntil is when what a host has used counts no more; 0 if it has used nothing,
// or for ever.
func (c *core) usedUntil(id uint32) int64 {
	if h := c.hosts.at(id); h.has(counted) {
		if l, u := c.ownUsage(id); l != nil && l.Period > 0 {
			return u.since + int64(l.Period)
		}
	}
	return 0
}

func (c *core) dropUsage(id uint32) {
	c.hosts.at(id).clear(counted)
	delete(c.limits.hosts, id)
}

// endPeriods notes which periods of hosts have ended under the limits that held for
// them before r: nobody may have looked at them since.
func (c *core) endPeriods(r, old *scopeRule, now int64) {
	if c.endedBefore(r, old, now) {
		c.limits.changes++
		r.changed = c.limits.changes
	}
}

// endedBefore is endPeriods but for the count of changes: it reports whether r is one.
func (c *core) endedBefore(r, old *scopeRule, now int64) (change bool) {
	r.ended, r.changed = math.MinInt64, 0
	if r.HostLimits == (Limits{}) {
		return false
	}
	for s := r.scope; old == nil || old.HostLimits == (Limits{}); {
		if !s.named {
			return false // there were none
		}
		s = s.wider()
		old, _ = c.controls.rule(s.ruleKey())
	}
	r.ended, r.changed = old.ended, old.changed
	if old.HostLimits == r.HostLimits || old.HostLimits.Period == 0 {
		return false
	}
	r.ended = max(r.ended, now-int64(old.HostLimits.Period))
	return true
}

// storedRuleOf is what the row of a rule says that is to take the place of old, which
// may be nil.
func (f *Frontier) storedRuleOf(r, old *scopeRule) *storedRule {
	f.core.endedBefore(r, old, f.core.date(f.last))
	x := &storedRule{Rule: r.Rule}
	if r.ended != math.MinInt64 {
		x.ended = wallMillis(f.day(r.ended))
	}
	return x
}
