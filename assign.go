// This file puts a host into a group by hand.

package frontier

import (
	"context"
	"fmt"
)

// Assign makes a host a member of a group, whether URLs of it wait, it is leased,
// or nothing is known of it; an empty group makes it a member of none. It stays
// one, through reopenings too, until it is assigned to another or joins one. The
// next hand-out needs the new group's leave. Contacts under leases that are out
// count for both groups: they take slots of the new one if it has any free. Assign
// is durable when it returns; after the Spill's error it holds, and the next Done
// of the host stores it.
func (f *Frontier) Assign(host, group string) error {
	host, err := f.hostKey(host)
	if err == nil && group != "" {
		err = checkGroup(group)
	}
	if err != nil {
		return fmt.Errorf("frontier: assign: %w", err)
	}
	if err := f.lockWithHost(context.Background(), host); err != nil {
		return err
	}
	c := f.core
	id := c.lookup(f.hostHash(host), host)
	if id == 0 && group == "" {
		f.mu.Unlock()
		return nil
	}
	if id == 0 {
		id = c.ensure(f.hostHash(host), host)
	}
	c.assign(id, group, f.last)
	o := newOp()
	defer o.free()
	if f.opts.Spill != nil {
		h := c.hosts.at(id)
		h.set(unsaved)
		f.noteLocked(o, id, h.due, h.why, f.last)
	} else if c.hosts.at(id).place == nowhere {
		c.settle(id, f.last)
	}
	return f.submitLocked(o) // unlocks
}

// assign moves a host to the group that it is assigned to; none if that is empty.
func (c *core) assign(id uint32, name string, now int64) {
	h := c.hosts.at(id)
	group := uint32(0)
	h.clear(assigned)
	if name != "" {
		c.sweepGroups(now)
		group = c.groupOf(name)
		h.set(assigned)
	}
	if h.place == departing {
		c.put(h, nowhere) // it stays
	}
	for lease := range c.leasesOf(id) {
		l := c.leases.at(lease)
		if l.group != group && group != 0 && c.takeSlot(group, now) {
			c.moveLease(l, group, true, now)
		}
	}
	c.moveHost(id, group, now)
}
