// This file lets hosts leave memory when their time has passed, and come back when they are named
// again. What was learned about them stays in their rows.

package mercator

import (
	"github.com/seed-7440039f/frontier/internal/dormant"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	departAtOnce = 256 // hosts that leave under one lock
	restAtOnce   = 256 // hosts whose time passes under one lock
	savesAtOnce  = 256 // rows of departing hosts in one batch
)

// saved reports whether the host's row says what must be known of the host, or
// is missing if that is nothing.
func (h *Host) saved() bool {
	if !h.Learned() {
		return !h.Has(Stored)
	}
	return h.Has(Stored) && !h.Has(Unsaved|Behind)
}

// Depart lets a host leave that rests, when everything submitted so far is
// settled.
func (s *Core) Depart(id uint32) {
	h := s.Hosts.At(id)
	if !h.Learned() && h.Group != 0 {
		s.leaveGroup(h)
		h.Set(Unsaved)
	}
	s.Put(h, Departing)
	h.Pos = s.Dormant.Depart(id)
}

// Departed removes hosts from memory that may leave now that all calls are settled but
// the youngest ones under way.
func (s *Core) Departed(underWay int) {
	if s.Dormant.Len() == 0 {
		return
	}
	for range departAtOnce {
		id, place, ok := s.Dormant.Pop(underWay)
		if !ok {
			return
		}
		h := s.Hosts.At(id)
		switch {
		case h.Place != Departing || h.Pos != place:
		case h.saved():
			s.Dormant.Gone(s.Hash(s.Name(h)))
			s.Put(h, Nowhere)
			s.forget(id)
		default:
			h.Pos = s.Dormant.MustWrite(id)
		}
	}
}

// Saves returns the rows that must be written before hosts may leave, and these hosts, which are
// pinned until then.
func (s *Core) Saves() (rows []storage.Row, hosts []uint32) {
	for _, id := range s.Dormant.TakeUnwritten(savesAtOnce) {
		h := s.Hosts.At(id)
		if h.Place != Departing || h.Pos != dormant.Unwritten {
			continue // it came back, or will leave another time
		}
		s.Put(h, Nowhere)
		h.Pins++
		h.Clear(Unsaved | Behind)
		if h.Learned() {
			h.Set(Stored)
			s.Dormant.HasRow(s.Hash(s.Name(h))) // it may be the first
			rows = append(rows, s.HostRow(id, h.Due, h.Why))
		} else {
			h.Clear(Stored)
			rows = append(rows, storage.Row{Key: row.HostKey + string(s.Name(h))})
		}
		hosts = append(hosts, id)
	}
	return rows, hosts
}

// Absentee is a host that was not in memory when a call needed it, and what the
// Spill said about it.
type Absentee struct {
	Hash  uint64
	Host  string
	State row.Host
	Found bool // it has a row
	Known bool // the Spill was asked
	left  uint32
}

// Absent reports whether a must be read before its host may be named.
func (s *Core) Absent(a *Absentee) bool {
	if !s.Dormant.MayHaveRow(a.Hash) || s.Lookup(a.Hash, a.Host) != 0 {
		return false
	}
	left := s.Dormant.Departures(a.Hash)
	if a.Known && a.left == left {
		return false
	}
	a.Known, a.left = false, left // it may have come and gone since it was read
	return true
}

// ComeBack makes a's host resident if it has a row and is not. youngest is the token of the last
// lease.
func (s *Core) ComeBack(a *Absentee, youngest uint64, now int64) {
	if !a.Known || !a.Found || s.Lookup(a.Hash, a.Host) != 0 {
		return
	}
	id := s.Ensure(a.Hash, a.Host)
	s.Remember(id, &a.State, youngest, now)
	s.Settle(id, now)
}

// Absentees returns those of the hosts that must be read before they may be named.
func (s *Core) Absentees(hosts []Absentee) (wanted []*Absentee) {
	for i := range hosts {
		if s.Absent(&hosts[i]) {
			wanted = append(wanted, &hosts[i])
		}
	}
	return wanted
}

// Rests reports whether a host has no URLs and no leases.
func (s *Core) Rests(id uint32) bool {
	switch h := s.Hosts.At(id); h.Place {
	case Nowhere, Idling, Departing:
		return h.Waiting == 0 && h.Scheduled == 0 && s.firstLease(id) == 0
	}
	return false
}
