// This file lets time pass, and puts each host where it belongs.

package mercator

import (
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

// promoteAtOnce is how many scheduled URLs become waiting under one lock.
const promoteAtOnce = 1024

const (
	bindAtOnce  = 128 // hosts that are bound, or get tokens, in vain under one lock
	readyAtOnce = 512 // hosts and groups that become due under one lock
)

// Advance lets time pass: scheduled URLs become waiting, parked hosts get their tokens back, due hosts
// become ready. It does a bounded amount at once; NextEvent reports that there is more.
func (s *Core) Advance(now int64) {
	s.more = false
	// What is due before on disk comes first.
	for n := 0; s.Scheduled.Min() <= min(s.Date(now), s.Timed.Min()) && n < promoteAtOnce; n++ {
		if s.Deletions.InForce.Len() > 0 && s.dropScheduled(0, now) {
			continue
		}
		it := s.Unschedule(0)
		s.Waits.Began(s.Records.At(arena.Ref(it.ID)).Seq(), s.Moment(it.At))
		s.PushTail(it.Aux, arena.Ref(it.ID), now)
		s.Trim(it.Aux)
	}
	for n := 0; s.Idle.Min() <= now && n < restAtOnce; n++ {
		id := s.Idle.Pop().ID
		s.Put(s.Hosts.At(id), Nowhere)
		s.Settle(id, now)
	}
	s.expireWithheld(now)
	if now < s.StartsAt {
		return
	}
	for n := 0; s.Parks.Min() <= now && n < bindAtOnce; n++ {
		id := s.Parks.Pop().ID
		s.unbind(id, s.Hosts.At(id))
	}
	for n := 0; s.Pace.Min() <= now && n < readyAtOnce; n++ {
		id := s.Pace.Items[0].ID
		if id&groupBit == 0 {
			s.Pace.Pop()
			s.makeReady(id, now)
			continue
		}
		s.giveSlot(id&^groupBit, now)
	}
}

// NextEvent is when Advance or Expired has something to do, or what is on disk
// becomes due; never if time alone changes nothing.
func (s *Core) NextEvent(now int64) int64 {
	t := min(s.Parks.Min(), s.Pace.Min())
	if t != instant.Never {
		t = max(t, s.StartsAt)
	}
	if s.Places[Unbound] > 0 && now < s.StartsAt {
		t = min(t, s.StartsAt) // tokens wait for nothing else
	}
	t = min(t, s.Expiry.Min(), s.expireAt())
	if s.unfinished() {
		t = now
	}
	switch on := s.Timed.Min(); {
	case s.Scheduled.Min() <= on:
		t = min(t, s.Moment(s.Scheduled.Min()))
	case on > s.Date(now): // else its reader settles it
		t = min(t, s.Moment(on))
	}
	return t
}

// AwaitsDate reports whether a date may bring anything.
func (s *Core) AwaitsDate() bool {
	return min(s.Scheduled.Min(), s.Timed.Min(), s.expireAt()) != instant.Never
}

// makeReady puts a host that may be contacted now into the ready lists, or calls
// the Contact that waits for it.
func (s *Core) makeReady(id uint32, now int64) {
	h := s.Hosts.At(id)
	if h.Wanted {
		s.Put(h, Called)
		s.Calls = append(s.Calls, id)
		return
	}
	// Of a group no more are ready than it has slots.
	if h.Group == 0 && s.oversupplied(h) || !s.offering(h) {
		s.Put(h, Nowhere)
		s.DropSlot(h, now)
		s.unbind(id, h)
		return
	}
	s.Put(h, Ready)
	if h.Group != 0 {
		g := s.Groups.At(h.Group)
		h.Pos = int32(s.grouped.Push(&g.offered, s.ranked(id, g)))
	}
	for q := h.Queues; q != 0; q = s.Queues.At(q).Sibling {
		if s.Queues.At(q).Waiting > 0 {
			s.enlist(Readies, q)
		}
	}
}

// oversupplied reports whether enough hosts are ready for everything that a host has to offer.
// Otherwise hosts bound for an urgent URL would pile up with their other URLs.
func (s *Core) oversupplied(h *Host) bool {
	enough := 8 + int(s.Stats.Leased)/4
	for q := h.Queues; q != 0; q = s.Queues.At(q).Sibling {
		x := s.Queues.At(q)
		if x.Waiting > 0 && (x.Priority == immediatePriority || s.CrawlOf(x).Lists[Readies].At[x.level].N < enough) {
			return false
		}
	}
	return true
}

// Detach takes a host out of the structure it is in, except leased and loading.
func (s *Core) Detach(id uint32) {
	h := s.Hosts.At(id)
	switch h.Place {
	case Idling:
		s.Idle.Remove(int(h.Pos))
	case Parked:
		s.Parks.Remove(int(h.Pos))
	case Withheld:
		s.unfile(id, h)
	case Unbound:
		s.bind(h)
	case Pacing:
		if h.Group != 0 {
			s.grouped.Remove(&s.Groups.At(h.Group).hosts, uint32(h.Pos))
			s.RequeueGroup(h.Group)
		} else {
			s.Pace.Remove(int(h.Pos))
		}
	case Queued:
		s.unawait(s.Groups.At(h.Group), h)
		s.RequeueGroup(h.Group)
	case Ready:
		if h.Group != 0 {
			s.grouped.Remove(&s.Groups.At(h.Group).offered, uint32(h.Pos))
		}
		for q := h.Queues; q != 0; q = s.Queues.At(q).Sibling {
			if s.Queues.At(q).Waiting > 0 {
				s.delist(Readies, q)
			}
		}
	case Called:
		for i, x := range s.Calls {
			if x == id {
				s.Calls = append(s.Calls[:i], s.Calls[i+1:]...)
				break
			}
		}
	}
	s.Put(h, Nowhere)
}

// DropSlot gives back the group slot of a host that will not be leased after all.
func (s *Core) DropSlot(h *Host, now int64) {
	if h.Has(HasSlot) {
		h.Clear(HasSlot)
		s.freeSlot(h.Group, 0, now)
	}
}

// Settle puts a host that is in no structure where it belongs.
func (s *Core) Settle(id uint32, now int64) {
	h := s.Hosts.At(id)
	s.DropSlot(h, now)
	if h.Has(Troubled) {
		s.despair(id, now)
	}
	if s.full(id) {
		s.Put(h, Leased)
		return
	}
	switch {
	case h.Wanted:
		s.setPacing(id, h, now)
	case h.Waiting == 0:
		s.rest(id, h, now)
	case h.Due-now > s.Cfg.ParkAfter && h.Due > s.StartsAt:
		s.Put(h, Parked)
		s.Parks.Push(timeheap.Item{At: h.Due, ID: id})
		for q := h.Queues; q != 0; q = s.Queues.At(q).Sibling {
			s.evict(q, false)
		}
	case h.Place == Nowhere && h.Served == 0, int(h.Served) >= s.Cfg.Quantum && s.Places[Unbound] > 0:
		s.unbind(id, h)
	default:
		s.setPacing(id, h, now)
	}
}

func (s *Core) setPacing(id uint32, h *Host, now int64) {
	if h.Group != 0 && h.Due <= now && now >= s.StartsAt {
		s.queueUp(id, now)
		return
	}
	s.Put(h, Pacing)
	if h.Group == 0 {
		s.Pace.Push(timeheap.Item{At: h.Due, ID: id})
		return
	}
	h.Pos = int32(s.grouped.Push(&s.Groups.At(h.Group).hosts, timeheap.Item{At: h.Due, ID: id}))
	s.RequeueGroup(h.Group)
}

// rest keeps a host without URLs for as long as something must be known about it.
func (s *Core) rest(id uint32, h *Host, now int64) {
	h.Served = 0
	s.dropLanes(id, now)
	s.outlived(id, now)
	s.unused(id, now)
	x := s.lanesOf(id)
	switch until := s.idlesUntil(id); {
	case x != nil && x.used > 0:
		s.Put(h, Nowhere)
	case x != nil || until > now:
		s.Put(h, Idling)
		s.Idle.Push(timeheap.Item{At: until, ID: id})
	case h.Scheduled > 0 || h.Pins > 0 || h.Learned() && !s.Cfg.Spill:
		s.Put(h, Nowhere)
	case h.Learned() || h.Has(Stored):
		s.Depart(id)
	default:
		s.forget(id)
	}
}

// RestsUntil is when an idling host's last contacts may be forgotten.
func (s *Core) RestsUntil(id uint32) int64 {
	due := s.Hosts.At(id).Due
	if x := s.lanesOf(id); x != nil {
		return max(due, x.Last())
	}
	return due
}

// Over reports whether nothing in the frontier can become available by time.
func (s *Core) Over() bool {
	return s.Stats.Waiting == s.WithheldForGood() && !s.unfinished() && s.Stats.Scheduled == 0 && s.Stats.Leased == 0
}
