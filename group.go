// This file has what an operator sets for groups: how long they are left alone, and how many
// contacts they may have at once. The groups lie in package mercator.
//
// Settings are durable rows, and are looked up when a group is met. A change is applied
// to the group at once; no call loops over groups or their hosts.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/rule"
)

// GroupSettings are the politeness settings of a group of hosts. The zero value has the
// defaults.
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

// groupRules are the settings of groups, by name. Readers take no lock; writers hold
// shard.mu.
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

// check returns an error for invalid settings.
func (s *GroupSettings) check() error {
	var errs []error
	if s.Delay != nil {
		if wrong := checkDelay("Delay", s.Delay); len(wrong) > 0 {
			errs = append(errs, wrong...)
		} else if storedDelay(s.Delay).Kind == row.NoDelay {
			errs = append(errs, fmt.Errorf("delay is a %T, which cannot be stored; want FixedDelay or FactorDelay", s.Delay))
		}
	}
	if s.Concurrency < 0 || s.Concurrency > maxConcurrency {
		errs = append(errs, fmt.Errorf("concurrency is %d; want 1 to %d, or 0 for the default", s.Concurrency, maxConcurrency))
	}
	return errors.Join(errs...)
}

// SetGroup changes the settings of a group, which need not have any hosts; the zero value
// restores the defaults. Settings are durable when SetGroup returns, and apply to the
// next hand-out and to contacts that end later. If more slots are in use than the group
// now has, none is given until enough are free.
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

// storedGroup is what is set for a group and when it may be contacted, in Unix
// milliseconds.
func storedGroup(s GroupSettings, due int64) *row.Group {
	return &row.Group{Due: due, Delay: storedDelay(s.Delay), Concurrency: s.Concurrency}
}

// settingsOf is what the row of a group says is set.
func settingsOf(g *row.Group) GroupSettings {
	return GroupSettings{Delay: policyOf(g.Delay), Concurrency: g.Concurrency}
}

// Assign makes a host a member of a group, whether its URLs wait, it is leased, or
// nothing is known about it; an empty group removes it from its group. The membership
// lasts, even when the store is reopened, until the host is assigned to another group or
// joins one. The next hand-out needs a slot of the new group. Contacts under leases that
// are out count for both groups until the leases end: they keep their slots, and take slots
// of the new group if any are free. Assign
// is durable when it returns; if the Spill fails the change is in force, and the next
// Done of the host stores it.
func (f *Frontier) Assign(host, group string) error {
	host, err := f.hostKey(host)
	if err == nil && group != "" {
		err = row.CheckGroup(group)
	}
	if err != nil {
		return fmt.Errorf("frontier: assign: %w", err)
	}
	if err := f.lockWithHost(context.Background(), host); err != nil {
		return err
	}
	c := f.core
	id := c.Lookup(f.core.HashOf(host), host)
	if id == 0 && group == "" {
		f.mu.Unlock()
		return nil
	}
	if id == 0 {
		id = c.Ensure(f.core.HashOf(host), host)
	}
	c.Assign(id, group, f.last)
	o := newOp()
	defer o.free()
	if f.opts.Spill != nil {
		h := c.Hosts.At(id)
		h.Set(mercator.Unsaved)
		f.noteLocked(o, id, h.Due, h.Why, f.last)
	} else if c.Hosts.At(id).Place == mercator.Nowhere {
		c.Settle(id, f.last)
	}
	return f.submitAndUnlock(o)
}
