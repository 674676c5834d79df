// This file has lanes: how many leases a host may have at once, and the distance that each keeps.

package mercator

import (
	"slices"
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

// Last is when all lanes may be used that are not in use.
func (s *slots) Last() int64 {
	if len(s.until) == 0 {
		return s.opens
	}
	return max(s.opens, s.until[len(s.until)-1])
}

// hostLanes are the lanes of a host that may have several leases at once. The record
// exists while a lane is in use or keeps its distance.
type hostLanes struct {
	slots
	Host  uint32
	first uint32 // lease
	limit int32  // lanes when a lease was last given
}

// lanesBytes is what the record of a host's lanes takes in the table that finds it.
const lanesBytes = 16

// concurrencyOf is how many leases a host may have at once while it does not fail.
func (s *Core) concurrencyOf(id uint32) int32 {
	if s.Cfg.Rules != nil {
		if n := s.Cfg.Rules.Concurrency(s.Name(s.Hosts.At(id))); n != 0 {
			return int32(n)
		}
	}
	return int32(max(1, s.Cfg.Lanes))
}

// allowed is how many leases a host may have at once.
func (s *Core) allowed(id uint32) int32 {
	n := s.concurrencyOf(id)
	if n > 1 && s.Hosts.At(id).Has(Troubled) {
		t := s.Troubles[id]
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
		return t.HostLanes.At(x)
	}
	return nil
}

func (s *Core) addLanes(id uint32) *hostLanes {
	n := s.HostLanes.Alloc()
	s.laned[id] = n
	x := s.HostLanes.At(n)
	x.Host, x.opens = id, s.Hosts.At(id).Due
	return x
}

// dropLanes forgets a host's lanes if nothing must be known of them.
func (s *Core) dropLanes(id uint32, now int64) {
	if x := s.lanesOf(id); x != nil && x.used == 0 && x.Last() <= max(now, s.Hosts.At(id).Due) {
		s.HostLanes.Release(s.laned[id])
		delete(s.laned, id)
	}
}

// full reports whether a host has as many leases as it may have.
func (s *Core) full(id uint32) bool {
	x := s.lanesOf(id)
	return x != nil && x.used > 0 && x.used >= s.allowed(id)
}

// Postpone leaves a host alone until at, with all its lanes.
func (s *Core) Postpone(id uint32, at int64, why Why) {
	h := s.Hosts.At(id)
	if at > h.Due {
		h.Due, h.Why = at, why
	}
	if x := s.lanesOf(id); x != nil {
		x.opens = max(x.opens, at)
	}
}

// resettle puts a host whose time may have changed where it belongs. While its URLs are
// read, it has tokens, or a rule withholds it, the change is found later.
func (s *Core) resettle(id uint32, now int64) {
	h := s.Hosts.At(id)
	switch h.Place {
	case Loading, Unbound, Withheld, Unpurged:
		return
	case Ready, Called:
		if h.Due <= now {
			return
		}
	}
	s.Detach(id)
	s.Settle(id, now)
}

// Revise lets a host have the lanes that it is allowed now.
func (s *Core) Revise(id uint32, now int64) {
	h := s.Hosts.At(id)
	n := s.allowed(id)
	x := s.lanesOf(id)
	if x == nil {
		if n == 1 || h.Place != Leased {
			return
		}
		first := uint32(h.Pos)
		x = s.addLanes(id)
		x.used, x.first, x.limit = 1, first, 1
	}
	h.Due = x.next(n)
	s.resettle(id, now)
}

// ReviseSome revises the hosts of up to n leases, or of hosts' lanes, from a number on, and returns where
// to go on; 0: there are no more.
func (s *Core) ReviseSome(lanes bool, id uint32, n int, now int64) uint32 {
	top := &s.Leases.Top
	if lanes {
		top = &s.HostLanes.Top
	}
	for ; n > 0 && id <= *top; n, id = n-1, id+1 {
		host := uint32(0)
		if lanes {
			host = s.HostLanes.At(id).Host
		} else {
			host = s.Leases.At(id).Host
		}
		if host != 0 {
			s.Revise(host, now)
		}
	}
	if id > *top {
		return 0
	}
	return id
}
