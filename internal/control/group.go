// This file has the settings of groups: how long they are left alone, and how many contacts they may have
// at once.

package control

import (
	"iter"

	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

// Group is what is set for a group.
type Group struct {
	row.Group        // Due is zero
	Policy    Policy // of Delay; nil: that of all groups
}

// Group returns the settings of a group.
func (c *Controls) Group(name string) Group {
	if g := c.groups.Get(name); g != nil {
		return *g
	}
	return Group{}
}

// want is Group as package mercator takes it.
func (c *Controls) want(name string) mercator.GroupWant {
	g := c.Group(name)
	return mercator.GroupWant{Slots: g.Concurrency, Delay: g.Policy}
}

// Groups yields the groups that have settings, by name.
func (c *Controls) Groups() iter.Seq2[string, *Group] { return c.groups.Load().All() }

// GroupRow returns the row of a group that may be contacted at a time, in Unix milliseconds.
func (c *Controls) GroupRow(name string, due int64) storage.Row {
	g := c.Group(name)
	g.Due = due
	return g.Row(name)
}

// BeginGroup returns the row of a group that is about to get settings.
func (c *Controls) BeginGroup(name string, set row.Group, now int64) storage.Row {
	if id := c.core.GroupNamed(name); id != 0 {
		if last := c.core.SlotsOf(id).Last(); last > now {
			set.Due = c.core.Clock.Stored(last) // from its row, perhaps
		}
	}
	return set.Row(name)
}

// SetGroup puts the settings of a group in force, whose row is durable.
func (c *Controls) SetGroup(name string, set row.Group) {
	set.Due = 0
	g := &Group{set, c.policy(set.Delay)}
	fields := delayField
	if set == (row.Group{}) {
		fields = 0
	}
	c.groups.Put(name, g, fields)
	if id := c.core.GroupNamed(name); id != 0 {
		c.core.Groups.At(id).Set(c.want(name))
		c.core.RequeueGroup(id)
	}
}
