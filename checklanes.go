// This file verifies what is known of lanes and groups.

package frontier

import (
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
)

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
	for id := uint32(1); id <= c.groups.top; id++ {
		g := c.groups.at(id)
		if g.nameLen == 0 {
			continue
		}
		k.named += arena.Cost(int(g.nameLen))
		name := c.groupName(g)
		if c.groupNamed(name) != id || g.used != taken[id] || g.members != members[id] {
			k.bad("F1: group %q: %d slots taken and %d members, counted %d and %d", name, taken[id], members[id], g.used, g.members)
		}
		k.group(id, g, name)
	}
}

func (k *checker) group(id uint32, g *group, name string) {
	c, s := k.c, k.c.slotsOf(id)
	if g.used > max(g.most, g.limit) {
		k.bad("F1: group %q: %d of %d slots taken", name, g.used, g.limit)
	}
	if next := s.next(g.limit); g.free != next && max(g.free, next) > k.now || !slices.IsSorted(s.until) {
		k.bad("F4: group %q is free at %d, its slots at %d", name, g.free, next)
	}
	if at := c.groupKey(g); (at != never) != g.queued {
		k.bad("F2: group %q in the heap: %v", name, g.queued)
	} else if g.queued {
		if it := c.pace.Items[g.pos]; it.id != id|groupBit || it.at != at {
			k.bad("F3: group %q: its key in the heap is wrong", name)
		}
	}
	if g.members == 0 && !slices.Contains(c.lonely, id) {
		k.bad("F2: group %q has no members and is not listed", name)
	}
}

// grouped checks the heaps of a group (F3): its hosts that pace, that wait for a
// slot, and that have one and are ready.
func (k *checker) grouped(id uint32) {
	c, g := k.c, k.c.groups.at(id)
	heap := func(root uint32, want place, right func(h *host, it timeItem) bool) (found int32) {
		if err := c.grouped.check(root); err != nil {
			k.bad("F3: hosts of group %d in place %d: %v", id, want, err)
		}
		for n := range c.grouped.all(root) {
			it := c.grouped.at(n).timeItem
			if h := c.hosts.at(it.id); h.place != want || h.pos != int32(n) || h.group != id || !right(h, it) {
				k.bad("F3: host %d of group %d in place %d has place %d, position %d of %d, time %d of %d, urgency %d of %d",
					it.id, id, want, h.place, h.pos, n, it.at, h.due, it.aux, c.urgency(h))
			}
			found++
		}
		return found
	}
	n := heap(g.hosts, pacing, func(h *host, it timeItem) bool { return it.at == h.due })
	n += heap(g.offered, ready, func(h *host, _ timeItem) bool { return h.holdsSlot })
	waits := heap(g.due, queued, func(h *host, it timeItem) bool { return it.aux >= c.urgency(h) })
	if waits != g.waits {
		k.bad("F3: %d hosts of group %d wait for a slot, counted %d", waits, id, g.waits)
	}
	k.inGroups += int(n + waits)
}
