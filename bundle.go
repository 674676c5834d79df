// This file lets several leases of a host share one contact: a bundle.
//
// The leases of a bundle have one lane of their host and one slot of its group together.
// Whoever has them makes one contact after the other. When one of them ends, what the lane
// and the slot must keep is noted; both are free when the last one ends.

package frontier

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
func (t *tables) bundleOf(l *leaseRecord) *bundle {
	if l.bundle == 0 {
		return nil
	}
	return t.bundles.At(l.bundle)
}

// sharing yields a lease and those of its bundle.
func (s *scheduler) sharing(l *leaseRecord) iter.Seq[*leaseRecord] {
	return func(yield func(*leaseRecord) bool) {
		if l.bundle == 0 {
			yield(l)
			return
		}
		for id := range s.leasesOf(l.host) {
			if m := s.leases.At(id); m.bundle == l.bundle && !yield(m) {
				return
			}
		}
	}
}

// mayBundle reports whether a lease may get company: its host is not failing, no rule,
// limit or Contact keeps it, and none of its URLs is being read.
func (s *scheduler) mayBundle(l *leaseRecord, now int64) bool {
	h := s.hosts.At(l.host)
	switch h.place {
	case leased, parked, pacing, queued, ready, unbound:
	default:
		return false
	}
	if h.has(troubled) {
		if t := s.troubles[l.host]; t.Step > 0 || t.Probes > 0 {
			return false
		}
	}
	return h.waiting > 0 && !h.wanted && s.mayServe(l.host, now)
}

// urgentQueue returns the host's queue that comes first of those of the crawls, or of all
// if there are none, and whose crawl may offer its URLs. With resident set its next URL is
// in memory and alive. 0: there is none.
func (s *scheduler) urgentQueue(h *host, crawls []uint32, resident bool) uint32 {
	for id := h.queues; id != 0; id = s.queues.At(id).sibling {
		q := s.queues.At(id)
		x := s.crawlOf(q)
		if q.waiting == 0 || !x.mayOffer() || crawls != nil && !slices.Contains(crawls, x.id) {
			continue
		}
		if !resident {
			return id
		}
		if s.tombstones.Len() > 0 {
			if d := s.deadIn(q); s.deadHead(q, &d) {
				continue
			}
		}
		if part, _ := s.fifo.Next(&q.Queue); part != 0 {
			return 0 // what comes first is on disk: it is for a later call
		}
		return id
	}
	return 0
}

// join hands out up to n more URLs of a lease's host under its lane, the most urgent
// first, and appends the numbers of their leases to dst.
func (s *scheduler) join(dst []uint32, first uint32, n int, crawls []uint32, token func() uint64, now int64) []uint32 {
	l := *s.leases.At(first)
	if n == 0 || !s.mayBundle(&l, now) {
		return dst
	}
	h := s.hosts.At(l.host)
	qid := s.urgentQueue(h, crawls, true)
	if qid == 0 {
		return dst
	}
	if s.lanesOf(l.host) == nil {
		x := s.addLanes(l.host)
		x.used, x.first, x.limit = 1, first, 1
	}
	if l.bundle == 0 {
		l.bundle = s.bundles.Alloc()
		s.bundles.At(l.bundle).left = 1
		s.leases.At(first).bundle = l.bundle
	}
	s.detach(l.host)
	for ; n > 0 && qid != 0; n-- {
		q := s.queues.At(qid)
		x, level := s.crawlOf(q), q.level
		m := s.handOut(qid, token(), now, l.deadline)
		m.bundle, m.group, m.oldGroup, m.oldSlot = l.bundle, l.group, l.oldGroup, l.oldSlot
		dst = append(dst, s.enroll(m))
		s.served(x, level)
		if qid = 0; s.mayServe(l.host, now) {
			qid = s.urgentQueue(h, crawls, true)
		}
	}
	s.settle(l.host, now)
	return dst
}

// enroll adds a lease to the bundle that it names.
func (s *scheduler) enroll(l leaseRecord) uint32 {
	id := s.leases.Alloc()
	s.link(&l, id, s.lanesOf(l.host))
	*s.leases.At(id) = l
	s.bundles.At(l.bundle).left++
	s.expiry.Push(timeheap.Item{At: l.deadline, ID: id})
	s.stats.Leased++
	s.stats.HandedOut++
	return id
}

// leaveLane is when the lane of a lease that has ended may be used again, which by says
// for its own contact. It ends the bundle with its last lease.
func (s *scheduler) leaveLane(l *leaseRecord, by int64, lanes int32) int64 {
	b := s.bundleOf(l)
	if b == nil {
		return by
	}
	b.lane = max(b.lane, by)
	switch {
	case b.left == 0:
		by = b.lane
		s.bundles.Release(l.bundle)
	case lanes > 1:
		by = 0 // the lane is in use: of the others none has to wait for it
	}
	return by
}

// bundled checks the leases of a host that are bundles (F1), and returns how many lanes its
// leases use.
func (k *checker) bundled(host uint32) (lanes int32) {
	c := k.c
	members := map[uint32]int32{}
	for lease := range c.leasesOf(host) {
		l := c.leases.At(lease)
		if members[l.bundle]++; l.bundle == 0 {
			lanes++
			continue
		}
		for m := range c.sharing(l) {
			if m.group != l.group || m.oldGroup != l.oldGroup || m.oldSlot != l.oldSlot {
				k.bad("F1: the bundle of lease %d of host %d belongs to groups %d and %d", lease, host, l.group, m.group)
			}
		}
	}
	delete(members, 0)
	for id, n := range members {
		if left := c.bundles.At(id).left; left != n {
			k.bad("F1: bundle %d of host %d has %d leases, counted %d", id, host, n, left)
		}
	}
	k.bundles += len(members)
	return lanes + int32(len(members))
}
