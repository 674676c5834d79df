// This file has bundles: several leases of one host on one lane, which is free after the last.

package mercator

import (
	"iter"
	"slices"

	"github.com/seed-7440039f/frontier/internal/timeheap"
)

// bundle is leases of one host that share its lane and its group's slot. All of them
// belong to the same groups.
type bundle struct {
	left int32 // leases that are out
	lane int64 // until when their lane keeps its distance once it is free
	slot int64 // the same of the slots of their groups
}

// bundleOf returns the bundle that a lease belongs to; nil: it is alone.
func (t *tables) bundleOf(l *Lease) *bundle {
	if l.Bundle == 0 {
		return nil
	}
	return t.bundles.At(l.Bundle)
}

// sharing yields a lease and those of its bundle.
func (s *Core) sharing(l *Lease) iter.Seq[*Lease] {
	return func(yield func(*Lease) bool) {
		if l.Bundle == 0 {
			yield(l)
			return
		}
		for id := range s.LeasesOf(l.Host) {
			if m := s.Leases.At(id); m.Bundle == l.Bundle && !yield(m) {
				return
			}
		}
	}
}

// mayBundle reports whether a lease may get company: its host is not failing, no rule,
// limit or Contact keeps it, and none of its URLs is being read.
func (s *Core) mayBundle(l *Lease, now int64) bool {
	h := s.Hosts.At(l.Host)
	switch h.Place {
	case Leased, Parked, Pacing, Queued, Ready, Unbound:
	default:
		return false
	}
	if h.Has(Troubled) {
		if t := s.Troubles[l.Host]; t.Step > 0 || t.Probes > 0 {
			return false
		}
	}
	return h.Waiting > 0 && !h.Wanted && s.mayServe(l.Host, now)
}

// UrgentQueue returns the host's queue that comes first of those of the crawls, or of all
// if there are none, and whose crawl may offer its URLs. With resident set its next URL is
// in memory and alive. 0: there is none.
func (s *Core) UrgentQueue(h *Host, crawls []uint32, resident bool) uint32 {
	for id := h.Queues; id != 0; id = s.Queues.At(id).Sibling {
		q := s.Queues.At(id)
		x := s.CrawlOf(q)
		if q.Waiting == 0 || !x.mayOffer() || crawls != nil && !slices.Contains(crawls, x.ID) {
			continue
		}
		if !resident {
			return id
		}
		if s.Tombstones.Len() > 0 {
			if d := s.DeadIn(q); s.deadHead(q, &d) {
				continue
			}
		}
		if part, _ := s.Fifo.Next(&q.Queue); part != 0 {
			return 0 // what comes first is on disk: it is for a later call
		}
		return id
	}
	return 0
}

// Join hands out up to n more URLs of a lease's host under its lane, the most urgent
// first, and appends the numbers of their leases to dst.
func (s *Core) Join(dst []uint32, first uint32, n int, crawls []uint32, token func() uint64, now int64) []uint32 {
	l := *s.Leases.At(first)
	if n == 0 || !s.mayBundle(&l, now) {
		return dst
	}
	h := s.Hosts.At(l.Host)
	qid := s.UrgentQueue(h, crawls, true)
	if qid == 0 {
		return dst
	}
	if s.lanesOf(l.Host) == nil {
		x := s.addLanes(l.Host)
		x.used, x.first, x.limit = 1, first, 1
	}
	if l.Bundle == 0 {
		l.Bundle = s.bundles.Alloc()
		s.bundles.At(l.Bundle).left = 1
		s.Leases.At(first).Bundle = l.Bundle
	}
	s.Detach(l.Host)
	for ; n > 0 && qid != 0; n-- {
		q := s.Queues.At(qid)
		x, level := s.CrawlOf(q), q.level
		m := s.handOut(qid, token(), now, l.Deadline)
		m.Bundle, m.Group, m.OldGroup, m.OldSlot = l.Bundle, l.Group, l.OldGroup, l.OldSlot
		dst = append(dst, s.enroll(m))
		s.served(x, level)
		if qid = 0; s.mayServe(l.Host, now) {
			qid = s.UrgentQueue(h, crawls, true)
		}
	}
	s.Settle(l.Host, now)
	return dst
}

// enroll adds a lease to the bundle that it names.
func (s *Core) enroll(l Lease) uint32 {
	id := s.Leases.Alloc()
	s.link(&l, id, s.lanesOf(l.Host))
	*s.Leases.At(id) = l
	s.bundles.At(l.Bundle).left++
	s.Expiry.Push(timeheap.Item{At: l.Deadline, ID: id})
	s.Stats.Leased++
	s.Stats.HandedOut++
	return id
}

// leaveLane is when the lane of a lease that has ended may be used again, which by says
// for its own contact. It ends the bundle with its last lease.
func (s *Core) leaveLane(l *Lease, by int64, lanes int32) int64 {
	b := s.bundleOf(l)
	if b == nil {
		return by
	}
	b.lane = max(b.lane, by)
	switch {
	case b.left == 0:
		by = b.lane
		s.bundles.Release(l.Bundle)
	case lanes > 1:
		by = 0 // the lane is in use: of the others none has to wait for it
	}
	return by
}
