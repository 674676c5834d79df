// This file keeps the failures of hosts, and lists those whose URLs shall be given up.
//
// Hosts in trouble are few: the state from package trouble is in a table beside the hosts, and goes
// to disk with the host's row.

package mercator

import (
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/trouble"
)

// troubleBytes is what an entry of Core.Troubles takes, about.
const troubleBytes = 96

// SetTrouble replaces what is known about a host's failures by t.
func (s *Core) SetTrouble(id uint32, t trouble.State) {
	h := s.Hosts.At(id)
	old := s.Troubles[id]
	s.Stats.BackedOff += int64(btoi(t.Step > 0) - btoi(old.Step > 0))
	s.Stats.Quarantined += int64(btoi(t.Probes > 0) - btoi(old.Probes > 0))
	if t.Over() {
		h.Clear(Troubled)
		delete(s.Troubles, id)
		return
	}
	h.Set(Troubled)
	s.Troubles[id] = t
}

// outlived forgets the failures of a host without URLs after a time.
func (s *Core) outlived(id uint32, now int64) {
	if h := s.Hosts.At(id); h.Has(Troubled) {
		if t := s.Troubles[id]; t.Until() <= now {
			s.SetTrouble(id, trouble.State{})
			h.Set(Behind)
		}
	}
}

// idlesUntil is when something about a host without URLs may be forgotten.
func (s *Core) idlesUntil(id uint32) int64 {
	until, h := s.RestsUntil(id), s.Hosts.At(id)
	if h.Has(Troubled) && h.CrawlDelay == 0 && !s.Cfg.Spill {
		t := s.Troubles[id]
		until = max(until, t.Until())
	}
	if h.Has(Counted) && !s.Cfg.Spill {
		until = max(until, s.Limits.Rests(id))
	}
	return until
}

// LeaseNumber is the number of the lease with this token: later ones have higher
// numbers.
func (t *tables) LeaseNumber(token uint64) uint64 { return token ^ t.Hash(hostkey.Bytes("token")) }

// TroubleKept reports whether a row has what must be known about a host's failures.
func (s *Core) TroubleKept(saved *row.Host, youngest uint64, now int64) bool {
	t := s.TroubleOfRow(saved, youngest, now)
	return !t.Over() && t.Until() > 0
}

// Unlearn forgets what was learned about a host in any place. After a crash it is not
// contacted before reopened.
func (s *Core) Unlearn(id uint32, now, reopened int64) {
	h := s.Hosts.At(id)
	h.CrawlDelay = 0
	s.Assign(id, "", now)
	if !h.Has(Troubled) {
		return
	}
	free := max(s.Troubles[id].Free, reopened)
	s.SetTrouble(id, trouble.State{})
	if h.Why.Forgettable() {
		s.advanceDue(id, free, now)
	}
	s.Revise(id, now) // it may have more lanes now
	if h.Place == Idling {
		s.Detach(id) // it waited for its trouble to be outlived
		s.Settle(id, now)
	}
}

// FreeFrom notes that a host in trouble may not be contacted before at, even without its
// trouble.
func (t *troubleTable) FreeFrom(id uint32, at int64) {
	if state := t.Troubles[id]; at > state.Free {
		state.Free = at
		t.Troubles[id] = state // no row is out of date: who leaves memory is due, and so is this
	}
}

// Learnt is what outcomes have taught about a host's pace.
type Learnt struct {
	CrawlDelay int32
	Troubled   bool
	Trouble    trouble.State // the zero value if it is not troubled
}

func (s *Core) Learnt(id uint32) Learnt {
	h := s.Hosts.At(id)
	x := Learnt{CrawlDelay: h.CrawlDelay, Troubled: h.Has(Troubled)}
	if x.Troubled {
		x.Trouble = s.Troubles[id]
	}
	return x
}

const GiveUpAtOnce = 64 // URLs that are given up under one lock

// Hopeless reports whether a host's failures are reason to give up its URLs. When its
// next probe is due they are kept.
func (s *Core) Hopeless(id uint32, now int64) bool {
	h := s.Hosts.At(id)
	if !h.Has(Troubled) || h.Waiting == 0 || h.Due <= now || h.Wanted {
		return false
	}
	t := s.Troubles[id]
	return t.Lost(&s.Cfg.Quarantine) && !t.Kept
}

// despair lists a host whose URLs shall be given up.
func (s *Core) despair(id uint32, now int64) {
	if !s.Hosts.At(id).Has(Troubled) || !s.Hopeless(id, now) {
		return
	}
	if t := s.Troubles[id]; !t.Listed {
		t.Listed = true
		s.Troubles[id] = t
		s.Lost = append(s.Lost, id)
	}
}

// NextLost returns the first listed host whose URLs shall be given up now, and its
// queue; the host is in place loading. Hosts that are not lost after all, or that
// a rule keeps from being served, are taken off the list.
func (s *Core) NextLost(now int64) (id, queue uint32) {
	for n := 0; n < GiveUpAtOnce && len(s.Lost) > 0; n++ {
		id := s.Lost[0]
		if h := s.Hosts.At(id); s.Hopeless(id, now) && s.offering(h) {
			switch h.Place {
			case Unbound, Parked, Pacing, Queued, Ready:
				served := h.Served
				s.Detach(id)
				if !s.withhold(id, now) {
					h.Served = served
					s.Put(h, Loading)
					return id, s.offeredQueue(h)
				}
			}
		}
		s.unlist(id)
	}
	return 0, 0
}

// unlist takes the first host off the list. It is listed again where it is
// settled, if need be.
func (t *troubleTable) unlist(id uint32) {
	if t.Lost = t.Lost[1:]; len(t.Lost) == 0 {
		t.Lost = nil
	}
	if state, ok := t.Troubles[id]; ok && state.Listed {
		state.Listed = false
		t.Troubles[id] = state
	}
}

// offeredQueue is the host's first queue with URLs that may be handed out.
func (t *tables) offeredQueue(h *Host) uint32 {
	for id := h.Queues; id != 0; id = t.Queues.At(id).Sibling {
		if q := t.Queues.At(id); q.Waiting > 0 && t.CrawlOf(q).Runs() {
			return id
		}
	}
	return 0
}

// KeepURLs lets a host's URLs wait for its next probe: they cannot be given up.
func (t *troubleTable) KeepURLs(id uint32) {
	if state, ok := t.Troubles[id]; ok {
		state.Kept = true
		t.Troubles[id] = state
	}
}
