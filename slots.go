// This file counts lanes: how many contacts a host or a group may have at once,
// and how long a lane is left alone after one.
//
// A lane is in use, or it keeps its distance from the contact that it had last,
// or it may be used. Which lane a lease is on does not matter, only how many may
// be used. What holds the whole host, or group, holds all lanes.

package frontier

import "slices"

// slots are the lanes of a host or group. How many there are is said by whoever
// asks, so that it may change at any time.
//
// The zero value has no lane in use and none that keeps a distance.
type slots struct {
	used  int32
	hold  int64   // no lane may be used before
	until []int64 // ascending: when lanes may be used that keep their distance; some have passed
}

// next is when one of n lanes may be used. If all of them are in use it is not
// later than when one may be that ends.
func (s *slots) next(n int32) int64 {
	k := int(s.used) + len(s.until) - int(n) // so many, and one, must pass before
	if k < 0 || len(s.until) == 0 {
		return s.hold
	}
	return max(s.hold, s.until[min(k, len(s.until)-1)])
}

// leave notes that one of n lanes keeps its distance until at.
func (s *slots) leave(at, now int64, n int32) {
	s.pass(now)
	if n == 1 && len(s.until) == 0 {
		s.hold = max(s.hold, at)
		return
	}
	if at > max(s.hold, now) {
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

// kept reports whether the lanes in use are not too many of n now.
func (s *slots) kept(n int32, now int64) bool {
	s.pass(now)
	return s.hold <= now && int(s.used)+len(s.until) <= int(n)
}

// last is when all lanes may be used that are not in use.
func (s *slots) last() int64 {
	if len(s.until) == 0 {
		return s.hold
	}
	return max(s.hold, s.until[len(s.until)-1])
}

// hostLanes are the lanes of a host that may have several leases at once. There is
// a record of a host while one is in use or keeps its distance.
type hostLanes struct {
	slots
	host  uint32
	first uint32 // lease
	limit int32  // lanes when a lease was last given
}

// lanesBytes is what the record of a host's lanes takes in the table that finds it.
const lanesBytes = 16

// concurrencyOf is how many leases a host may have at once that does not fail.
func (c *core) concurrencyOf(id uint32) int32 {
	if c.concurrency == nil {
		return 1
	}
	return int32(c.concurrency(c.name(c.hosts.at(id))))
}

// allowed is how many leases a host may have at once.
func (c *core) allowed(id uint32) int32 {
	n := c.concurrencyOf(id)
	if n > 1 && c.hosts.at(id).has(troubled) {
		t := c.troubles[id]
		n = t.allowed(n)
	}
	return n
}

// lanesOf returns the host's lanes; nil if it has at most one lease, which is its
// place.
func (c *core) lanesOf(id uint32) *hostLanes {
	if len(c.laned) == 0 {
		return nil
	}
	if x := c.laned[id]; x != 0 {
		return c.hostLanes.at(x)
	}
	return nil
}

func (c *core) addLanes(id uint32) *hostLanes {
	n := c.hostLanes.alloc()
	c.laned[id] = n
	x := c.hostLanes.at(n)
	x.host, x.hold = id, c.hosts.at(id).due
	return x
}

// dropLanes forgets a host's lanes if nothing must be known of them.
func (c *core) dropLanes(id uint32, now int64) {
	if x := c.lanesOf(id); x != nil && x.used == 0 && x.last() <= max(now, c.hosts.at(id).due) {
		c.hostLanes.release(c.laned[id])
		delete(c.laned, id)
	}
}

// full reports whether a host has as many leases as it may have.
func (c *core) full(id uint32) bool {
	x := c.lanesOf(id)
	return x != nil && x.used > 0 && x.used >= c.allowed(id)
}

// holdBack leaves a host alone until at, with all its lanes.
func (c *core) holdBack(id uint32, at int64, why why) {
	h := c.hosts.at(id)
	if at > h.due {
		h.due, h.why = at, why
	}
	if x := c.lanesOf(id); x != nil {
		x.hold = max(x.hold, at)
	}
}

// resettle puts a host where it belongs whose time may have changed. While its
// URLs are read, it has tokens, or a rule holds it, that is found out later.
func (c *core) resettle(id uint32, now int64) {
	h := c.hosts.at(id)
	switch h.place {
	case loading, unbound, held, dying:
		return
	case ready, called:
		if h.due <= now {
			return
		}
	}
	c.detach(id)
	c.settle(id, now)
}

// revise lets a host have the lanes that it is allowed now.
func (c *core) revise(id uint32, now int64) {
	h := c.hosts.at(id)
	n := c.allowed(id)
	x := c.lanesOf(id)
	if x == nil {
		if n == 1 || h.place != leased {
			return
		}
		first := uint32(h.pos)
		x = c.addLanes(id)
		x.used, x.first, x.limit = 1, first, 1
	}
	h.due = x.next(n)
	c.resettle(id, now)
}

// concurrency is how many leases of a host may be out at once.
func (f *Frontier) concurrency(host []byte) int {
	if n := f.controls.concurrency(host); n != 0 {
		return n
	}
	return f.opts.HostConcurrency
}

// reviseAtOnce is how many leases or hosts are looked at under one lock.
const reviseAtOnce = 128

// reviseLanes lets a rule about concurrency that changed hold for the hosts that
// have a lease, or lanes that keep their distance. Others find it when they get
// one.
func (f *Frontier) reviseLanes() {
	c := f.core
	for _, step := range []struct {
		top  func() uint32
		host func(id uint32) uint32
	}{
		{func() uint32 { return c.leases.top }, func(id uint32) uint32 { return c.leases.at(id).host }},
		{func() uint32 { return c.hostLanes.top }, func(id uint32) uint32 { return c.hostLanes.at(id).host }},
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
