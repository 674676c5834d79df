// This file has groups, hosts that share something to which politeness is also owed, such as an
// address; and lanes, the leases that a host may have at once. Each slot of a group and each lane keeps
// its own distance.
//
// A host belongs to one group at most. The heap orders groups like hosts: a group's key is when it is
// free and its first host due, whichever is later. A group whose slots are taken is out of the heap,
// however many hosts it has, so each step is O(log n).

package mercator

import (
	"slices"
	"time"
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

// groupBit distinguishes a group from a host in Core.Pace.
const groupBit = 1 << 31

// Group is the record of one group. It contains no pointers. Its heaps are in Core.grouped.
type Group struct {
	opens   int64     // no slot may be given before
	Free    int64     // when a slot may be given: next of its slots
	given   int64     // slots since it was last set back
	name    arena.Ref // with NameLen bytes
	hosts   uint32    // heap of its hosts in place pacing, by due
	due     uint32    // heap of its hosts in place queued, by rank; aux is their urgency
	offered uint32    // heap of its hosts in place ready: what they were in due
	Waits   int32     // hosts in due
	Used    int32     // slots in use: held by hosts that are ready, called, loading or leased
	Limit   int32     // how many slots it has
	most    int32     // how many it had when one was last given
	Members int32     // hosts that belong to it, and leases that will count as its contacts
	pos     int32     // in Core.Pace
	NameLen uint8
	delays  bool // it has a delay, other than Options.GroupDelay
	queued  bool // is in Core.Pace
	listed  bool // is in Core.lonely
}

func (t *tables) GroupName(g *Group) string {
	return string(t.names.Bytes(g.name)[:g.NameLen])
}

// GroupNamed returns the group's number, or 0.
func (t *tables) GroupNamed(name string) uint32 {
	for id := range t.groupIndex.Candidates(t.Hash([]byte(name))) {
		if g := t.Groups.At(id); string(t.names.Bytes(g.name)[:g.NameLen]) == name {
			return id
		}
	}
	return 0
}

// GroupOf returns the group's number, of a new record if there is none.
func (s *Core) GroupOf(name string) uint32 {
	if id := s.GroupNamed(name); id != 0 {
		return id
	}
	id := s.Groups.Alloc()
	g := s.Groups.At(id)
	var mem []byte
	g.name, mem = s.names.Alloc(len(name))
	g.NameLen = uint8(copy(mem, name))
	s.groupIndex.Add(s.Hash([]byte(name)), id)
	s.SetUpGroup(id)
	s.lone(id, g)
	return id
}

// SetUpGroup applies the settings of a group to it.
func (s *Core) SetUpGroup(id uint32) {
	g := s.Groups.At(id)
	want := GroupWant{}
	if s.GroupSettings != nil {
		want = s.GroupSettings(s.GroupName(g))
	}
	g.Set(want)
	if s.GroupStartsAt != nil {
		g.opens = max(g.opens, s.GroupStartsAt(want.Delay))
	}
	g.Free = s.SlotsOf(id).next(g.Limit)
}

// Set applies settings.
func (g *Group) Set(s GroupWant) {
	g.Limit, g.delays = int32(max(1, s.Slots)), s.Delay != nil
}

// GroupWant is what an operator set for a group.
type GroupWant struct {
	Slots int       // 0: one
	Delay OwnPolicy // nil: that of all groups
}

// OwnPolicy is a delay policy that is not the user's code.
type OwnPolicy interface{ Max() time.Duration }

// DelayOf is the group's delay; nil: that of all groups.
func (t *tables) DelayOf(g *Group) OwnPolicy {
	if !g.delays {
		return nil
	}
	return t.GroupSettings(t.GroupName(g)).Delay
}

// SlotsOf are the group's slots. Few groups have several that keep a distance.
func (t *groupTable) SlotsOf(id uint32) *slots {
	g := t.Groups.At(id)
	s := &slots{used: g.Used, opens: g.opens}
	if len(t.distances) > 0 {
		s.until = t.distances[id]
	}
	return s
}

// keepSlots notes what became of slots of SlotsOf.
func (t *groupTable) keepSlots(id uint32, s *slots) {
	g := t.Groups.At(id)
	g.Used, g.opens = s.used, s.opens
	if len(t.distances) > 0 || len(s.until) > 0 {
		t.distanceBytes -= distanceBytes(t.distances[id])
		t.distanceBytes += distanceBytes(s.until)
		if t.distances[id] = s.until; len(s.until) == 0 {
			delete(t.distances, id)
		}
	}
}

// distanceBytes is about what an entry of Core.distances takes.
func distanceBytes(until []int64) int64 {
	if len(until) == 0 {
		return 0
	}
	return 2*int64(unsafe.Sizeof(until)+8) + int64(cap(until))*8
}

// RequeueGroup puts the group where its key belongs in the heap, or out of it.
func (s *Core) RequeueGroup(id uint32) {
	g := s.Groups.At(id)
	g.Free = s.SlotsOf(id).next(g.Limit)
	switch at := s.groupKey(g); {
	case at == instant.Never && g.queued:
		g.queued = false
		s.Pace.Remove(int(g.pos))
	case at == instant.Never:
	case g.queued:
		s.Pace.Fix(int(g.pos), at)
	default:
		g.queued = true
		s.Pace.Push(timeheap.Item{At: at, ID: id | groupBit})
	}
}

// groupKey is when one of the group's hosts may get a slot; never if that does not depend on time.
func (t *groupTable) groupKey(g *Group) int64 {
	switch {
	case g.Used >= g.Limit:
		return instant.Never
	case g.due != 0:
		return g.Free
	case g.hosts != 0:
		return max(g.Free, t.grouped.Min(g.hosts))
	}
	return instant.Never
}

// TakeSlot tries to occupy a slot of the group now. Group 0 has no limits.
func (s *Core) TakeSlot(id uint32, now int64) bool {
	if id == 0 {
		return true
	}
	g := s.Groups.At(id)
	if g.Used >= g.Limit || g.Free > now {
		return false
	}
	g.take()
	s.RequeueGroup(id)
	return true
}

func (g *Group) take() {
	g.Used++
	g.given++
	g.most = g.Limit
}

// freeSlot returns a slot, which is left alone until at.
func (s *Core) freeSlot(id uint32, at, now int64) {
	if id != 0 {
		s.Groups.At(id).Used--
		s.StampGroup(id, at, now)
	}
}

// StampGroup records a contact: a slot of the group is left alone until at.
func (s *Core) StampGroup(id uint32, at, now int64) {
	if id != 0 {
		sl := s.SlotsOf(id)
		sl.leave(at, now, s.Groups.At(id).Limit)
		s.keepSlots(id, sl)
		s.RequeueGroup(id)
	}
}

// PostponeGroup leaves a group alone until at, with all of its slots.
func (s *Core) PostponeGroup(id uint32, at int64) {
	g := s.Groups.At(id)
	g.opens = max(g.opens, at)
	s.RequeueGroup(id)
}

// StartAt leaves all hosts and groups alone that are met for the first time, until at.
func (s *Core) StartAt(at int64) {
	s.ReopenedAt = max(s.ReopenedAt, at-s.Cfg.MaxDelay)
	s.StartsAt = at
	before := s.GroupStartsAt
	s.GroupStartsAt = func(d OwnPolicy) int64 {
		if before == nil {
			return at
		}
		return max(at, before(d))
	}
}

// MoveHost makes a host, which may be anywhere, a member of a group; 0: of none.
// Its leases keep the slots that they have.
func (s *Core) MoveHost(id, group uint32, now int64) {
	h := s.Hosts.At(id)
	if h.Group == group {
		return
	}
	switch h.Place {
	case Leased, Loading, Unbound, Parked, Idling, Nowhere, Departing:
		s.DropSlot(h, now) // the load takes a slot of the new group
		s.joinGroup(h, group)
	default:
		s.Detach(id)
		s.DropSlot(h, now)
		s.joinGroup(h, group)
		s.Settle(id, now)
	}
}

// joinGroup makes a host, which is in no structure of its group, a member of another.
func (t *groupTable) joinGroup(h *Host, id uint32) {
	if h.Group == id {
		return
	}
	t.leaveGroup(h)
	if h.Group = id; id != 0 {
		t.Groups.At(id).Members++
	}
}

// leaveGroup ends a host's membership. An empty group is forgotten when its
// time has passed (SweepGroups).
func (t *groupTable) leaveGroup(h *Host) {
	if h.Group != 0 {
		t.leftGroup(h.Group)
		h.Group = 0
	}
}

func (t *groupTable) leftGroup(id uint32) {
	g := t.Groups.At(id)
	if g.Members--; g.Members == 0 {
		t.lone(id, g)
	}
}

// lone notes that a group has no members.
func (t *groupTable) lone(id uint32, g *Group) {
	if !g.listed {
		g.listed = true
		t.lonely = append(t.lonely, id)
	}
}

// lonelyAtOnce is how many groups without members are looked at for each one that is named.
const lonelyAtOnce = 4

// SweepGroups forgets groups without members whose time has passed.
func (t *tables) SweepGroups(now int64) {
	n := min(len(t.lonely), lonelyAtOnce)
	for _, id := range t.lonely[:n] {
		g := t.Groups.At(id)
		g.listed = false
		switch {
		case g.Members > 0:
		case g.Used > 0 || t.SlotsOf(id).Last() > now:
			t.lone(id, g) // behind the others
		default:
			t.keepSlots(id, &slots{})
			t.groupIndex.Remove(t.Hash(t.names.Bytes(g.name)[:g.NameLen]), id)
			t.names.Free(g.name, int(g.NameLen))
			t.Groups.Release(id)
		}
	}
	if t.lonely = t.lonely[n:]; len(t.lonely) == 0 {
		t.lonely = nil
	}
}

// JoinGroup moves a lease, and its host, to a group. It reports whether the lease has a slot of the
// group, and whether anything changed.
func (s *Core) JoinGroup(l *Lease, name string, now int64) (granted, moved bool) {
	s.SweepGroups(now)
	id := s.GroupOf(name)
	h := s.Hosts.At(l.Host)
	granted = l.Group == id
	if granted && h.Group == id {
		return true, false
	}
	if !granted {
		granted = l.OldSlot && l.OldGroup == id || s.TakeSlot(id, now)
		s.MoveLease(l, id, granted, now)
	}
	s.MoveHost(l.Host, id, now)
	h.Set(Unsaved)
	h.Clear(Assigned)
	return granted, true
}

// ClosingGroup returns the name of a group and until when its slots are left alone; 0 if that need not
// be known after an opening.
func (s *Core) ClosingGroup(id uint32, now int64) (name string, at int64) {
	g, last := s.Groups.At(id), s.SlotsOf(id).Last()
	if g.NameLen == 0 || last <= now || s.GroupStartsAt != nil && last <= s.GroupStartsAt(s.DelayOf(g)) {
		return "", 0
	}
	return s.GroupName(g), last
}

// Assign moves a host to the group that it is assigned to; none if that is empty.
func (s *Core) Assign(id uint32, name string, now int64) {
	h := s.Hosts.At(id)
	group := uint32(0)
	h.Clear(Assigned)
	if name != "" {
		s.SweepGroups(now)
		group = s.GroupOf(name)
		h.Set(Assigned)
	}
	if h.Place == Departing {
		s.Put(h, Nowhere) // it stays
	}
	for lease := range s.LeasesOf(id) {
		l := s.Leases.At(lease)
		if l.Group != group && group != 0 {
			s.spreadLease(l, group, now)
		}
	}
	s.MoveHost(id, group, now)
}

// slots are the lanes of a host or group. Callers pass their number, so that it may change at any time.
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

// lanesOf returns the host's lanes; nil if it has at most one lease, which its place shows.
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
