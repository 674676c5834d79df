// This file verifies what is known of lanes and groups.

package frontier

import "slices"

// lanes checks the leases of a host that may have several (F1).
func (k *checker) lanes(id uint32, h *host) {
	x := k.c.lanesOf(id)
	if x == nil {
		return
	}
	prev := uint32(0)
	for lease := range k.c.leasesOf(id) {
		if l := k.c.leases.at(lease); l.prev != prev {
			k.bad("F3: lease %d of host %d is linked wrongly", lease, id)
		}
		prev = lease
	}
	n := int32(0)
	for range k.c.leasesOf(id) {
		n++
	}
	if n != x.used || n > 0 && n > x.limit || x.host != id {
		k.bad("F1: host %d has %d leases out, counted %d, of %d", id, n, x.used, x.limit)
	}
	if !slices.IsSorted(x.until) {
		k.bad("F3: the lanes of host %d are not in order", id)
	}
	if h.place == leased && n == 0 {
		k.bad("F2: host %d is in place leased without a lease", id)
	}
	if due := x.next(k.c.allowed(id)); h.place != leased && h.due < x.hold || h.due > max(x.last(), due) {
		k.bad("F4: host %d is due at %d, its lanes at %d", id, h.due, due)
	}
}

// groups checks slots, members and keys (F1, F3).
func (k *checker) groups() {
	c := k.c
	if len(k.c.laned) != k.c.hostLanes.len() {
		k.bad("F1: %d hosts have lanes, counted %d", len(k.c.laned), k.c.hostLanes.len())
	}
	taken := map[uint32]int32{}
	members := map[uint32]int32{}
	for id := uint32(1); id <= c.hosts.top; id++ {
		h := c.hosts.at(id)
		if h.nameLen == 0 {
			continue
		}
		members[h.group]++
		if h.holdsSlot {
			taken[h.group]++
		}
		for lease := range c.leasesOf(id) {
			l := c.leases.at(lease)
			taken[l.group]++
			if l.oldGroup != 0 {
				members[l.oldGroup]++
			}
		}
	}
	for name, id := range c.groupNames {
		g := c.groups.at(id)
		if g.name != name || g.used != taken[id] || g.members != members[id] {
			k.bad("F1: group %q: %d slots taken and %d members, counted %d and %d", name, taken[id], members[id], g.used, g.members)
		}
		k.group(id, g)
	}
}

func (k *checker) group(id uint32, g *group) {
	c := k.c
	if g.used > max(g.most, g.limit) {
		k.bad("F1: group %q: %d of %d slots taken", g.name, g.used, g.limit)
	}
	if next := g.next(g.limit); g.free != next && max(g.free, next) > k.now || !slices.IsSorted(g.until) {
		k.bad("F4: group %q is free at %d, its slots at %d", g.name, g.free, g.next(g.limit))
	}
	if at := g.key(); (at != never) != g.queued {
		k.bad("F2: group %q in the heap: %v", g.name, g.queued)
	} else if g.queued {
		if it := c.pace.Items[g.pos]; it.id != id|groupBit || it.at != at {
			k.bad("F3: group %q: its key in the heap is wrong", g.name)
		}
	}
	if g.members == 0 && !slices.Contains(c.lonely, id) {
		k.bad("F2: group %q has no members and is not listed", g.name)
	}
}

// queuedUp checks the hosts that wait for a slot of a group, and those that have
// one and are ready.
func (k *checker) queuedUp(id uint32) {
	c, g := k.c, k.c.groups.at(id)
	if err := g.due.check(); err != nil {
		k.bad("F3: hosts of group %q that wait for a slot: %v", g.name, err)
	}
	for i, it := range g.due.Items {
		if h := c.hosts.at(it.id); h.place != queued || int(h.pos) != i || h.group != id || it.aux < c.urgency(h) {
			k.bad("F3: host %d of group %q has place %d, position %d of %d, urgency %d of %d", it.id, g.name, h.place, h.pos, i, it.aux, c.urgency(h))
		}
	}
	for _, it := range g.offered {
		if h := c.hosts.at(it.id); h.place != ready || h.group != id || !h.holdsSlot {
			k.bad("F2: host %d of group %q has place %d", it.id, g.name, h.place)
		}
	}
}
