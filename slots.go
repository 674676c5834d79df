// This file counts lanes: how many contacts a host or a group may have at once,
// and how long a lane is left alone after one.
//
// A lane is in use, keeps its distance from its last contact, or is free. Which lane a
// lease is on does not matter, only how many may be used. What delays the whole host or
// group delays all lanes.

package frontier

import (
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

// slots are the lanes of a host or group. Callers pass their number, so that it may
// change at any time.
//
// The zero value has no lane in use and none that keeps a distance.
type slots struct {
	used  int32
	opens int64   // no lane may be used before
	until []int64 // ascending: when lanes may be used that keep their distance; some have passed
}

// next is when one of n lanes may be used. If all of them are in use it is a lower bound.
func (s *slots) next(n int32) int64 {
	k := int(s.used) + len(s.until) - int(n) // the distances that must end first, less one
	if k < 0 || len(s.until) == 0 {
		return s.opens
	}
	return max(s.opens, s.until[min(k, len(s.until)-1)])
}

// leave notes that one of n lanes keeps its distance until at.
func (s *slots) leave(at, now int64, n int32) {
	s.pass(now)
	if n == 1 && len(s.until) == 0 {
		s.opens = max(s.opens, at)
		return
	}
	if at > max(s.opens, now) {
		i, _ := slices.BinarySearch(s.until, at)
		s.until = slices.Insert(s.until, i, at)
	}
}

// pass forgets distances that were kept.
func (s *slots) pass(now int64) {
	n := 0
	for n < len(s.until) && s.until[n] <= now {
		n++
	}
	s.until = slices.Delete(s.until, 0, n)
}

// kept reports whether n lanes are enough for those in use.
func (s *slots) kept(n int32, now int64) bool {
	s.pass(now)
	return s.opens <= now && int(s.used)+len(s.until) <= int(n)
}

// last is when all lanes may be used that are not in use.
func (s *slots) last() int64 {
	if len(s.until) == 0 {
		return s.opens
	}
	return max(s.opens, s.until[len(s.until)-1])
}

// hostLanes are the lanes of a host that may have several leases at once. The record
// exists while a lane is in use or keeps its distance.
type hostLanes struct {
	slots
	host  uint32
	first uint32 // lease
	limit int32  // lanes when a lease was last given
}

// lanesBytes is what the record of a host's lanes takes in the table that finds it.
const lanesBytes = 16

// concurrencyOf is how many leases a host may have at once while it does not fail.
func (s *scheduler) concurrencyOf(id uint32) int32 {
	if s.concurrency == nil {
		return 1
	}
	return int32(s.concurrency(s.name(s.hosts.At(id))))
}

// allowed is how many leases a host may have at once.
func (s *scheduler) allowed(id uint32) int32 {
	n := s.concurrencyOf(id)
	if n > 1 && s.hosts.At(id).has(troubled) {
		t := s.troubles[id]
		n = t.Allowed(n)
	}
	return n
}

// lanesOf returns the host's lanes; nil if it has at most one lease, which its place
// shows.
func (t *laneTable) lanesOf(id uint32) *hostLanes {
	if len(t.laned) == 0 {
		return nil
	}
	if x := t.laned[id]; x != 0 {
		return t.hostLanes.At(x)
	}
	return nil
}

func (s *scheduler) addLanes(id uint32) *hostLanes {
	n := s.hostLanes.Alloc()
	s.laned[id] = n
	x := s.hostLanes.At(n)
	x.host, x.opens = id, s.hosts.At(id).due
	return x
}

// dropLanes forgets a host's lanes if nothing must be known of them.
func (s *scheduler) dropLanes(id uint32, now int64) {
	if x := s.lanesOf(id); x != nil && x.used == 0 && x.last() <= max(now, s.hosts.At(id).due) {
		s.hostLanes.Release(s.laned[id])
		delete(s.laned, id)
	}
}

// full reports whether a host has as many leases as it may have.
func (s *scheduler) full(id uint32) bool {
	x := s.lanesOf(id)
	return x != nil && x.used > 0 && x.used >= s.allowed(id)
}

// postpone leaves a host alone until at, with all its lanes.
func (s *scheduler) postpone(id uint32, at int64, why why) {
	h := s.hosts.At(id)
	if at > h.due {
		h.due, h.why = at, why
	}
	if x := s.lanesOf(id); x != nil {
		x.opens = max(x.opens, at)
	}
}

// resettle puts a host whose time may have changed where it belongs. While its URLs are
// read, it has tokens, or a rule withholds it, the change is found later.
func (s *scheduler) resettle(id uint32, now int64) {
	h := s.hosts.At(id)
	switch h.place {
	case loading, unbound, withheld, unpurged:
		return
	case ready, called:
		if h.due <= now {
			return
		}
	}
	s.detach(id)
	s.settle(id, now)
}

// revise lets a host have the lanes that it is allowed now.
func (s *scheduler) revise(id uint32, now int64) {
	h := s.hosts.At(id)
	n := s.allowed(id)
	x := s.lanesOf(id)
	if x == nil {
		if n == 1 || h.place != leased {
			return
		}
		first := uint32(h.pos)
		x = s.addLanes(id)
		x.used, x.first, x.limit = 1, first, 1
	}
	h.due = x.next(n)
	s.resettle(id, now)
}

// concurrency is how many leases of a host may be out at once.
func (s *shared) concurrency(host []byte) int {
	if n := s.controls.concurrency(host); n != 0 {
		return n
	}
	return s.opts.HostConcurrency
}

// reviseAtOnce is how many leases or hosts are looked at under one lock.
const reviseAtOnce = 128

// reviseLanes applies a changed rule about concurrency to the hosts that have a lease, or
// lanes that keep their distance. Others see it when they get a lease.
func (f *Frontier) reviseLanes() {
	c := f.sched
	for _, step := range []struct {
		top  func() uint32
		host func(id uint32) uint32
	}{
		{func() uint32 { return c.leases.Top }, func(id uint32) uint32 { return c.leases.At(id).host }},
		{func() uint32 { return c.hostLanes.Top }, func(id uint32) uint32 { return c.hostLanes.At(id).host }},
	} {
		for id, more := uint32(1), true; more; {
			f.lock()
			for n := 0; n < reviseAtOnce && id <= step.top(); n, id = n+1, id+1 {
				if host := step.host(id); host != 0 {
					c.revise(host, f.last)
				}
			}
			more = id <= step.top()
			f.dispatchLocked()
			f.mu.Unlock()
		}
	}
}

// lanes checks the leases of a host that may have several (F1).
func (k *checker) lanes(id uint32, h *host) {
	x := k.c.lanesOf(id)
	if x == nil {
		return
	}
	prev := uint32(0)
	for lease := range k.c.leasesOf(id) {
		if l := k.c.leases.At(lease); l.prev != prev {
			k.bad("F3: lease %d of host %d is linked wrongly", lease, id)
		}
		prev = lease
	}
	n := k.bundled(id)
	if n != x.used || n > 0 && n > x.limit || x.host != id {
		k.bad("F1: host %d has leases on %d lanes, counted %d, of %d", id, n, x.used, x.limit)
	}
	if !slices.IsSorted(x.until) {
		k.bad("F3: the lanes of host %d are not in order", id)
	}
	if h.place == leased && n == 0 {
		k.bad("F2: host %d is in place leased without a lease", id)
	}
	if due := x.next(k.c.allowed(id)); h.place != leased && h.due < x.opens || h.due > max(x.last(), due) {
		k.bad("F4: host %d is due at %d, its lanes at %d", id, h.due, due)
	}
}

// groups checks slots, members and keys (F1, F3).
func (k *checker) groups() {
	c := k.c
	if k.bundles != c.bundles.Len() {
		k.bad("F1: %d bundles are out, counted %d", k.bundles, c.bundles.Len())
	}
	if len(k.c.laned) != k.c.hostLanes.Len() {
		k.bad("F1: %d hosts have lanes, counted %d", len(k.c.laned), k.c.hostLanes.Len())
	}
	taken := map[uint32]int32{}
	members := map[uint32]int32{}
	for id := uint32(1); id <= c.hosts.Top; id++ {
		h := c.hosts.At(id)
		if h.nameLen == 0 {
			continue
		}
		members[h.group]++
		if h.hasSlot {
			taken[h.group]++
		}
		seen := map[uint32]bool{}
		for lease := range c.leasesOf(id) {
			l := c.leases.At(lease)
			if l.bundle != 0 && seen[l.bundle] {
				continue
			}
			seen[l.bundle] = true
			taken[l.group]++
			if l.oldGroup != 0 {
				members[l.oldGroup]++
			}
			if l.oldSlot {
				taken[l.oldGroup]++
			}
		}
	}
	for id := uint32(1); id <= c.groups.Top; id++ {
		g := c.groups.At(id)
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
	if at := c.groupKey(g); (at != instant.Never) != g.queued {
		k.bad("F2: group %q in the heap: %v", name, g.queued)
	} else if g.queued {
		if it := c.pace.Items[g.pos]; it.ID != id|groupBit || it.At != at {
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
	c, g := k.c, k.c.groups.At(id)
	heap := func(root uint32, want place, right func(h *host, it timeheap.Item) bool) (found int32) {
		if err := c.grouped.Check(root); err != nil {
			k.bad("F3: hosts of group %d in place %d: %v", id, want, err)
		}
		for n := range c.grouped.All(root) {
			it := c.grouped.At(n).Item
			if h := c.hosts.At(it.ID); h.place != want || h.pos != int32(n) || h.group != id || !right(h, it) {
				k.bad("F3: host %d of group %d in place %d has place %d, position %d of %d, time %d of %d, urgency %d of %d",
					it.ID, id, want, h.place, h.pos, n, it.At, h.due, it.Aux, c.urgency(h))
			}
			found++
		}
		return found
	}
	n := heap(g.hosts, pacing, func(h *host, it timeheap.Item) bool { return it.At == h.due })
	n += heap(g.offered, ready, func(h *host, _ timeheap.Item) bool { return h.hasSlot })
	crowds := map[crowd]int32{}
	waits := heap(g.due, queued, func(h *host, it timeheap.Item) bool {
		crowds[c.crowdOf(h, it.Aux)]++
		return it.Aux >= c.urgency(h)
	})
	for x, n := range crowds {
		if c.crowds[x] != n {
			k.bad("F3: %d hosts of a domain wait for a slot of group %d, counted %d", n, id, c.crowds[x])
		}
	}
	if waits != g.waits {
		k.bad("F3: %d hosts of group %d wait for a slot, counted %d", waits, id, g.waits)
	}
	k.inGroups += int(n + waits)
}
