// This file has groups: hosts that share something to which politeness is also owed, such
// as an address.
//
// A host belongs to one group at most. The heap orders groups like hosts: a
// group's key is when it is free and its first host due, whichever is later. A
// group whose slots are taken is out of the heap, however many hosts it has, so
// each step is O(log n). Which of its due hosts gets a slot is in heap.go.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/rule"
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

// groupBit distinguishes a group from a host in scheduler.pace.
const groupBit = 1 << 31

// group is the record of one group. It contains no pointers. Its heaps are in
// scheduler.grouped.
type group struct {
	opens   int64     // no slot may be given before
	free    int64     // when a slot may be given: next of its slots
	given   int64     // slots since it was last set back
	name    arena.Ref // with nameLen bytes
	hosts   uint32    // heap of its hosts in place pacing, by due
	due     uint32    // heap of its hosts in place queued, by rank; aux is their urgency
	offered uint32    // heap of its hosts in place ready: what they were in due
	waits   int32     // hosts in due
	used    int32     // slots in use: held by hosts that are ready, called, loading or leased
	limit   int32     // how many slots it has
	most    int32     // how many it had when one was last given
	members int32     // hosts that belong to it, and leases that will count as its contacts
	pos     int32     // in scheduler.pace
	nameLen uint8
	delays  bool // it has a delay, other than Options.GroupDelay
	queued  bool // is in scheduler.pace
	listed  bool // is in scheduler.lonely
}

func (t *tables) groupName(g *group) string {
	return string(t.names.Bytes(g.name)[:g.nameLen])
}

// groupNamed returns the group's number, or 0.
func (t *tables) groupNamed(name string) uint32 {
	for id := range t.groupIndex.Candidates(t.hash([]byte(name))) {
		if g := t.groups.At(id); string(t.names.Bytes(g.name)[:g.nameLen]) == name {
			return id
		}
	}
	return 0
}

// groupOf returns the group's number, of a new record if there is none.
func (s *scheduler) groupOf(name string) uint32 {
	if id := s.groupNamed(name); id != 0 {
		return id
	}
	id := s.groups.Alloc()
	g := s.groups.At(id)
	var mem []byte
	g.name, mem = s.names.Alloc(len(name))
	g.nameLen = uint8(copy(mem, name))
	s.groupIndex.Add(s.hash([]byte(name)), id)
	s.setUpGroup(id)
	s.lone(id, g)
	return id
}

// setUpGroup applies the settings of a group to it.
func (s *scheduler) setUpGroup(id uint32) {
	g := s.groups.At(id)
	want := groupWant{}
	if s.groupSettings != nil {
		want = s.groupSettings(s.groupName(g))
	}
	g.set(want)
	if s.groupStartsAt != nil {
		g.opens = max(g.opens, s.groupStartsAt(want.delay))
	}
	g.free = s.slotsOf(id).next(g.limit)
}

func (g *group) set(s groupWant) {
	g.limit, g.delays = int32(max(1, s.slots)), s.delay != nil
}

// groupWant is what an operator set for a group.
type groupWant struct {
	slots int       // 0: one
	delay ownPolicy // nil: that of all groups
}

// ownPolicy is a delay policy that is not the user's code.
type ownPolicy interface{ Max() time.Duration }

// delayOf is the group's delay; nil: that of all groups.
func (t *tables) delayOf(g *group) ownPolicy {
	if !g.delays {
		return nil
	}
	return t.groupSettings(t.groupName(g)).delay
}

// slotsOf are the group's slots. Few groups have several that keep a distance.
func (t *groupTable) slotsOf(id uint32) *slots {
	g := t.groups.At(id)
	s := &slots{used: g.used, opens: g.opens}
	if len(t.distances) > 0 {
		s.until = t.distances[id]
	}
	return s
}

// keepSlots notes what became of slots of slotsOf.
func (t *groupTable) keepSlots(id uint32, s *slots) {
	g := t.groups.At(id)
	g.used, g.opens = s.used, s.opens
	if len(t.distances) > 0 || len(s.until) > 0 {
		t.distanceBytes -= distanceBytes(t.distances[id])
		t.distanceBytes += distanceBytes(s.until)
		if t.distances[id] = s.until; len(s.until) == 0 {
			delete(t.distances, id)
		}
	}
}

// distanceBytes is about what an entry of scheduler.distances takes.
func distanceBytes(until []int64) int64 {
	if len(until) == 0 {
		return 0
	}
	return 2*int64(unsafe.Sizeof(until)+8) + int64(cap(until))*8
}

// requeueGroup puts the group where its key belongs in the heap, or out of it.
func (s *scheduler) requeueGroup(id uint32) {
	g := s.groups.At(id)
	g.free = s.slotsOf(id).next(g.limit)
	switch at := s.groupKey(g); {
	case at == instant.Never && g.queued:
		g.queued = false
		s.pace.Remove(int(g.pos))
	case at == instant.Never:
	case g.queued:
		s.pace.Fix(int(g.pos), at)
	default:
		g.queued = true
		s.pace.Push(timeheap.Item{At: at, ID: id | groupBit})
	}
}

// groupKey is when one of the group's hosts may get a slot; never if that does not
// depend on time.
func (t *groupTable) groupKey(g *group) int64 {
	switch {
	case g.used >= g.limit:
		return instant.Never
	case g.due != 0:
		return g.free
	case g.hosts != 0:
		return max(g.free, t.grouped.Min(g.hosts))
	}
	return instant.Never
}

// takeSlot tries to occupy a slot of the group now. Group 0 has no limits.
func (s *scheduler) takeSlot(id uint32, now int64) bool {
	if id == 0 {
		return true
	}
	g := s.groups.At(id)
	if g.used >= g.limit || g.free > now {
		return false
	}
	g.take()
	s.requeueGroup(id)
	return true
}

func (g *group) take() {
	g.used++
	g.given++
	g.most = g.limit
}

// freeSlot returns a slot, which is left alone until at.
func (s *scheduler) freeSlot(id uint32, at, now int64) {
	if id != 0 {
		s.groups.At(id).used--
		s.stampGroup(id, at, now)
	}
}

// stampGroup records a contact: a slot of the group is left alone until at.
func (s *scheduler) stampGroup(id uint32, at, now int64) {
	if id != 0 {
		sl := s.slotsOf(id)
		sl.leave(at, now, s.groups.At(id).limit)
		s.keepSlots(id, sl)
		s.requeueGroup(id)
	}
}

// postponeGroup leaves a group alone until at, with all of its slots.
func (s *scheduler) postponeGroup(id uint32, at int64) {
	g := s.groups.At(id)
	g.opens = max(g.opens, at)
	s.requeueGroup(id)
}

// startGroupsAt leaves groups alone that are met for the first time, until at.
func (r *reopened) startGroupsAt(at int64) {
	before := r.groupStartsAt
	r.groupStartsAt = func(d ownPolicy) int64 {
		if before == nil {
			return at
		}
		return max(at, before(d))
	}
}

// moveHost makes a host, which may be anywhere, a member of a group; 0: of none.
// Its leases keep the slots that they have.
func (s *scheduler) moveHost(id, group uint32, now int64) {
	h := s.hosts.At(id)
	if h.group == group {
		return
	}
	switch h.place {
	case leased, loading, unbound, parked, idling, nowhere, departing:
		s.dropSlot(h, now) // the load takes a slot of the new group
		s.joinGroup(h, group)
	default:
		s.detach(id)
		s.dropSlot(h, now)
		s.joinGroup(h, group)
		s.settle(id, now)
	}
}

// joinGroup makes a host, which is in no structure of its group, a member of
// another.
func (t *groupTable) joinGroup(h *host, id uint32) {
	if h.group == id {
		return
	}
	t.leaveGroup(h)
	if h.group = id; id != 0 {
		t.groups.At(id).members++
	}
}

// leaveGroup ends a host's membership. An empty group is forgotten when its
// time has passed (sweepGroups).
func (t *groupTable) leaveGroup(h *host) {
	if h.group != 0 {
		t.leftGroup(h.group)
		h.group = 0
	}
}

func (t *groupTable) leftGroup(id uint32) {
	g := t.groups.At(id)
	if g.members--; g.members == 0 {
		t.lone(id, g)
	}
}

// lone notes that a group has no members.
func (t *groupTable) lone(id uint32, g *group) {
	if !g.listed {
		g.listed = true
		t.lonely = append(t.lonely, id)
	}
}

// lonelyAtOnce is how many groups without members are looked at for each one that
// is named.
const lonelyAtOnce = 4

// sweepGroups forgets groups without members whose time has passed.
func (t *tables) sweepGroups(now int64) {
	n := min(len(t.lonely), lonelyAtOnce)
	for _, id := range t.lonely[:n] {
		g := t.groups.At(id)
		g.listed = false
		switch {
		case g.members > 0:
		case g.used > 0 || t.slotsOf(id).last() > now:
			t.lone(id, g) // behind the others
		default:
			t.keepSlots(id, &slots{})
			t.groupIndex.Remove(t.hash(t.names.Bytes(g.name)[:g.nameLen]), id)
			t.names.Free(g.name, int(g.nameLen))
			t.groups.Release(id)
		}
	}
	if t.lonely = t.lonely[n:]; len(t.lonely) == 0 {
		t.lonely = nil
	}
}

// An operator's settings of groups: how long they are left alone and how many contacts
// they may have at once.
//
// Settings are durable rows, and are looked up when a group is met. A change is applied
// to the group at once; no call loops over groups or their hosts.

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

// want is of for the scheduler.
func (r *groupRules) want(name string) groupWant {
	s := r.of(name)
	return s.want()
}

func (s *GroupSettings) want() groupWant {
	if s.Delay == nil {
		return groupWant{slots: s.Concurrency}
	}
	return groupWant{slots: s.Concurrency, delay: s.Delay}
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
	c := s.sched
	x := storedGroup(want, 0)
	if id := c.groupNamed(name); id != 0 {
		if last := c.slotsOf(id).last(); last > s.last {
			x.Due = s.clock.Stored(last) // from its row, perhaps
		}
	}
	o.rows = append(o.rows, x.Row(name))
	o.rule = func() {
		s.groupRules.set(name, want)
		if id := c.groupNamed(name); id != 0 {
			c.groups.At(id).set(want.want())
			c.requeueGroup(id)
		}
	}
}

// Group describes a group. It reports false if nothing is known about it: it has no
// settings and no hosts in memory, and may be contacted at once.
func (f *Frontier) Group(name string) (GroupInfo, bool) {
	f.lockAdvanced()
	defer f.mu.Unlock()
	c := f.sched
	x := GroupInfo{Settings: f.groupRules.of(name)}
	id := c.groupNamed(name)
	if id == 0 {
		return x, x.Settings != GroupSettings{}
	}
	g := c.groups.At(id)
	x.Hosts, x.Leased, x.Queued = int(g.members), int(g.used), int(g.waits)
	if g.free > 0 {
		x.Due = f.wall(g.free)
	}
	return x, x.Settings != GroupSettings{} || g.members > 0 || g.used > 0 || c.slotsOf(id).last() > f.last
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
	c := f.sched
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
		h := c.hosts.At(id)
		h.set(unsaved)
		f.noteLocked(o, id, h.due, h.why, f.last)
	} else if c.hosts.At(id).place == nowhere {
		c.settle(id, f.last)
	}
	return f.submitAndUnlock(o)
}

// assign moves a host to the group that it is assigned to; none if that is empty.
func (s *scheduler) assign(id uint32, name string, now int64) {
	h := s.hosts.At(id)
	group := uint32(0)
	h.clear(assigned)
	if name != "" {
		s.sweepGroups(now)
		group = s.groupOf(name)
		h.set(assigned)
	}
	if h.place == departing {
		s.put(h, nowhere) // it stays
	}
	for lease := range s.leasesOf(id) {
		l := s.leases.At(lease)
		if l.group != group && group != 0 {
			s.spreadLease(l, group, now)
		}
	}
	s.moveHost(id, group, now)
}
