// This file walks hosts in the order of their times, and gives the slots of a group to the most
// urgent of its hosts that are due.

package mercator

import (
	"container/heap"
	"math"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

// dueWalk yields the hosts in the heaps in the order of their times,
// without removing them. Its candidates are the heaps' items whose parents were yielded.
type dueWalk struct {
	c     *Core
	items []dueItem // a heap
}

type dueItem struct {
	at    int64
	in    *timeheap.Heap // nil: a group's
	i     int            // in its items, or the number in Core.grouped
	floor int64          // nothing of the heap is before it
	due   bool           // the heap is of a group's due hosts, which are not ordered by time
}

func (s *Core) walkDue() *dueWalk {
	w := &dueWalk{c: s}
	w.add(dueItem{in: &s.Pace, floor: s.StartsAt})
	w.add(dueItem{in: &s.Parks, floor: s.StartsAt})
	return w
}

func (w *dueWalk) add(x dueItem) {
	if x.in == nil && x.i == 0 || x.in != nil && x.i >= x.in.Len() {
		return
	}
	if x.at = x.floor; !x.due {
		x.at = max(x.at, w.item(x).At)
	}
	heap.Push(w, x)
}

func (w *dueWalk) item(x dueItem) timeheap.Item {
	if x.in == nil {
		return w.c.grouped.At(uint32(x.i)).Item
	}
	return x.in.Items[x.i]
}

// next returns the next host and its time.
func (w *dueWalk) next() (timeheap.Item, bool) {
	for len(w.items) > 0 {
		x := heap.Pop(w).(dueItem)
		id := w.item(x).ID
		if x.in == nil {
			n := w.c.grouped.At(uint32(x.i))
			w.add(dueItem{i: int(n.Left), floor: x.floor, due: x.due})
			w.add(dueItem{i: int(n.Right), floor: x.floor, due: x.due})
			return timeheap.Item{At: x.at, ID: id}, true
		}
		for i := 4*x.i + 1; i <= 4*x.i+4; i++ {
			w.add(dueItem{in: x.in, i: i, floor: x.floor})
		}
		if id&groupBit == 0 {
			return timeheap.Item{At: x.at, ID: id}, true
		}
		g := w.c.Groups.At(id &^ groupBit)
		w.add(dueItem{i: int(g.due), floor: max(x.floor, g.Free), due: true})
		w.add(dueItem{i: int(g.hosts), floor: max(x.floor, g.Free)})
	}
	return timeheap.Item{}, false
}

// Len, Less, Swap, Push and Pop are for container/heap.
func (w *dueWalk) Len() int           { return len(w.items) }
func (w *dueWalk) Less(i, j int) bool { return w.items[i].at < w.items[j].at }
func (w *dueWalk) Swap(i, j int)      { w.items[i], w.items[j] = w.items[j], w.items[i] }
func (w *dueWalk) Push(x any)         { w.items = append(w.items, x.(dueItem)) }
func (w *dueWalk) Pop() any {
	last := len(w.items) - 1
	x := w.items[last]
	w.items = w.items[:last]
	return x
}

// Which of a group's due hosts gets a slot.
//
// The most urgent does: the one with the highest priority of its URLs, and of those the one that is due
// longest. But the worth of a priority is limited: a host for which agePerLevel slots were given for
// each level between it and the others comes first, so that none starves. With the selector Strict,
// which lets low priorities starve, it never does.
//
// Names of one domain cost nothing, and one name with many pages would have to wait for all
// of them: so each that already waits with the same urgency puts the next one of its domain
// back by agePerLevel slots. Beside a single name, many names of a domain get one slot in
// agePerLevel; the others are theirs when no one else is due.
//
// A host that got a slot waits in the ready lists for the selector to choose it.
// Until then it gives the slot up to a host that comes before it.

const (
	agePerLevel   = 16
	offersAtOnce  = 128                   // due hosts that are ranked under one lock before one is chosen
	calledUrgency = row.MaxPriorities + 2 // of a host that a Contact waits for
)

// urgency is the level of a host's most urgent waiting URLs.
func (t *tables) urgency(h *Host) uint32 {
	if h.Wanted {
		return calledUrgency
	}
	most := uint8(0)
	for id := h.Queues; id != 0; id = t.Queues.At(id).Sibling {
		if q := t.Queues.At(id); q.Waiting > 0 {
			most = max(most, q.level)
		}
	}
	return uint32(most)
}

// A rank has an age above dueBits bits with a due moment in milliseconds, which are enough for 34 years
// since Open. An age is counted from where the group's given was set back last, so it may be negative.
const (
	dueBits = 40
	mostAge = 1<<(63-dueBits) - 1
	ageSpan = 1 << 22 // slots after which a group's given is set back
)

// rank orders due hosts: by how many slots the group had given when they became
// due, by urgency and by how many others of the domain wait, then by due in milliseconds.
func (t *tables) rank(given int64, urgency uint32, others int32, due int64) int64 {
	if t.Cfg.Strict {
		given, others = 0, 0
	}
	age := min(given+(int64(calledUrgency-urgency)+int64(others))*agePerLevel, mostAge)
	return age<<dueBits | min(max(due, 0)/1e6, 1<<dueBits-1)
}

// earlier is a rank of an age that is lower, as far as there are such.
func earlier(rank, age int64) int64 {
	by := min(age, mostAge) << dueBits
	return max(rank, math.MinInt64+by) - by
}

// setBack counts the group's slots anew, long before an age has too few bits. The
// order of its hosts stays.
func (t *tables) setBack(g *Group) {
	if !t.Cfg.Strict { // else no rank has an age that grows
		for _, root := range [...]uint32{g.due, g.offered} {
			for n := range t.grouped.All(root) {
				it := &t.grouped.At(n).Item
				it.At = earlier(it.At, g.given)
			}
		}
	}
	g.given = 0
}

// ranked is a due host's place among those of its group.
func (t *tables) ranked(id uint32, g *Group) timeheap.Item {
	h := t.Hosts.At(id)
	u, others := t.urgency(h), int32(0)
	if g.Waits > 0 {
		others = t.crowds[t.crowdOf(h, u)]
	}
	return timeheap.Item{At: t.rank(g.given, u, others, h.Due), ID: id, Aux: u}
}

// crowd identifies the hosts of a domain that wait for a slot of a group with one urgency.
type crowd struct {
	domain         uint64 // its hash
	group, urgency uint32
}

const crowdBytes = 64 // about what an entry of groupTable.crowds takes

func (t *tables) crowdOf(h *Host, urgency uint32) crowd {
	return crowd{t.Hash(hostkey.Domain(t.Name(h))), h.Group, urgency}
}

// crowded counts a host that waits, or no longer does.
func (t *groupTable) crowded(c crowd, by int32) {
	if n := t.crowds[c] + by; n != 0 {
		t.crowds[c] = n
	} else {
		delete(t.crowds, c)
	}
}

// queueUp lets a due host, which is in no structure, wait for a slot of its group.
func (s *Core) queueUp(id uint32, now int64) {
	h := s.Hosts.At(id)
	g := s.Groups.At(h.Group)
	it := s.ranked(id, g)
	s.await(g, it)
	s.preempt(g, it, now)
	s.RequeueGroup(h.Group)
}

// await puts a host, which is in no structure, among those that wait for a slot of their group.
func (t *tables) await(g *Group, it timeheap.Item) {
	h := t.Hosts.At(it.ID)
	t.Put(h, Queued)
	h.Pos = int32(t.grouped.Push(&g.due, it))
	g.Waits++
	t.crowded(t.crowdOf(h, it.Aux), 1)
}

// unawait takes a host out of those that wait for a slot.
func (t *tables) unawait(g *Group, h *Host) timeheap.Item {
	t.Put(h, Nowhere)
	g.Waits--
	it := t.grouped.Remove(&g.due, uint32(h.Pos))
	t.crowded(t.crowdOf(h, it.Aux), -1)
	return it
}

// promote moves up a host that waits for a slot of its group and got a more urgent URL.
func (s *Core) promote(id uint32, now int64) {
	h := s.Hosts.At(id)
	g := s.Groups.At(h.Group)
	it := s.grouped.At(uint32(h.Pos)).Item
	u := s.urgency(h)
	if u <= it.Aux {
		return
	}
	it.At = earlier(it.At, int64(u-it.Aux)*agePerLevel)
	s.crowded(s.crowdOf(h, it.Aux), -1)
	s.crowded(s.crowdOf(h, u), 1)
	it.Aux = u
	s.grouped.Fix(&g.due, uint32(h.Pos), it)
	s.preempt(g, it, now)
}

// preempt revokes the slot of a ready host with less urgent URLs, so that the host of it
// gets a slot first.
func (s *Core) preempt(g *Group, it timeheap.Item, now int64) {
	if g.Used < g.Limit {
		return
	}
	last := timeheap.Item{}
	for n := range s.grouped.All(g.offered) {
		x := s.grouped.At(n).Item
		if x.At > it.At && s.urgency(s.Hosts.At(x.ID)) < it.Aux && (last.ID == 0 || x.At > last.At) {
			last = x
		}
	}
	if last.ID == 0 {
		return
	}
	s.Detach(last.ID)
	s.Settle(last.ID, now)
	if h := s.Hosts.At(last.ID); h.Place == Queued {
		last.Aux = s.grouped.At(uint32(h.Pos)).Aux
		s.grouped.Fix(&g.due, uint32(h.Pos), last) // it keeps its age
	}
}

// giveSlot gives a slot of a group that may be contacted to one of its due hosts.
func (s *Core) giveSlot(gid uint32, now int64) {
	g := s.Groups.At(gid)
	if g.given >= ageSpan {
		s.setBack(g)
	}
	it := timeheap.Item{}
	if g.due == 0 {
		it = s.ranked(s.grouped.Remove(&g.hosts, g.hosts).ID, g)
		s.Put(s.Hosts.At(it.ID), Nowhere)
	}
	if s.grouped.Min(g.hosts) <= now {
		if it.ID != 0 {
			s.await(g, it)
		}
		for n := 1; n < offersAtOnce && s.grouped.Min(g.hosts) <= now; n++ {
			s.await(g, s.ranked(s.grouped.Remove(&g.hosts, g.hosts).ID, g))
		}
		it.ID = 0
	}
	if it.ID == 0 {
		it = s.unawait(g, s.Hosts.At(s.grouped.At(g.due).ID))
	}
	h := s.Hosts.At(it.ID)
	h.Set(HasSlot)
	g.take()
	s.RequeueGroup(gid)
	s.makeReady(it.ID, now)
	if h.Place == Ready {
		s.grouped.Fix(&g.offered, uint32(h.Pos), it) // with its age
	}
}
