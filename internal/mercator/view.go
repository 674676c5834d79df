// This file has what operators look at. Nothing here changes anything.

package mercator

import (
	"cmp"
	"iter"
	"slices"

	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/hostorder"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

// BeginWalk begins a walk through the queues of a host that belong to a crawl, or through all.
func (t *tables) BeginWalk(id uint32, wanted func(*Queue) bool) *fifo.Walk {
	w := &fifo.Walk{Owner: id}
	for qid := t.Hosts.At(id).Queues; qid != 0; qid = t.Queues.At(qid).Sibling {
		if q := t.Queues.At(qid); wanted == nil || wanted(q) {
			w.Queues = append(w.Queues, fifo.Numbered{ID: qid, Queue: &q.Queue})
		}
	}
	t.Fifo.Begin(w)
	return w
}

func (t *tables) EndWalk(w *fifo.Walk) {
	t.Fifo.EndWalk(w)
	for _, q := range w.Queues {
		if w.Owner != 0 {
			t.Trim(q.ID)
		}
	}
}

// TopPriority is the highest priority of a host's waiting URLs; 0 if none waits.
func (t *tables) TopPriority(id uint32) uint8 {
	for qid := t.Hosts.At(id).Queues; qid != 0; qid = t.Queues.At(qid).Sibling {
		if q := t.Queues.At(qid); q.Waiting > 0 {
			return q.Priority
		}
	}
	return 0
}

// Deleted reports whether a record is dead that a sweep may not have found yet.
func (t *deletedTable) Deleted(host string, crawl uint32, seq uint64) bool {
	return seq <= t.DeletedUpTo(host, crawl)
}

// DeletedUpTo is the number of the last of these records.
func (t *deletedTable) DeletedUpTo(host string, crawl uint32) uint64 {
	name := hostkey.Bytes(host)
	return max(t.Deletions.InForce.Of(name, crawl).Seq, t.Deletions.Stored.Of(name, crawl).Seq)
}

const (
	// ViewAtMost is how many hosts Upcoming and Largest return at most: what
	// can be looked at under one lock.
	ViewAtMost = 256
	// InfosAtOnce is how many hosts are described under one lock.
	InfosAtOnce = 32
)

// Upcoming returns up to n hosts that will be served next, with the times at which
// they may be contacted.
func (s *Core) Upcoming(n int, now int64) []timeheap.Item {
	if n == 0 {
		return nil
	}
	found := s.soon(s.dueNow(nil, n, now), n, now)
	found = s.blockedNext(found, n, now)
	found = s.limitedNext(found, n)
	slices.SortStableFunc(found, func(a, b timeheap.Item) int { return cmp.Compare(max(a.At, now), max(b.At, now)) })
	return found[:min(n, len(found))]
}

// dueNow appends up to n hosts of each ready list and front queue, but not many more
// than that in all, with the times at which they may be contacted; each once.
func (s *Core) dueNow(found []timeheap.Item, n int, now int64) []timeheap.Item {
	seen, looks := map[uint32]bool{}, 4*ViewAtMost
	for l := range s.listsByUrgency() {
		for qid, k := l.first, 0; qid != 0 && k < n; qid, k = s.Queues.At(qid).next, k+1 {
			if looks--; looks < 0 {
				return found
			}
			id := s.Queues.At(qid).Host
			if seen[id] {
				continue
			}
			seen[id] = true
			h := s.Hosts.At(id)
			at := max(h.Due, s.StartsAt)
			if h.Group != 0 {
				at = max(at, s.Groups.At(h.Group).Free)
			}
			if at, ok := s.servedFrom(id, at, now); ok {
				found = append(found, timeheap.Item{At: at, ID: id})
			}
		}
	}
	return found
}

// soon appends up to n hosts from the heaps in the order of their times. If rules may
// withhold some of them that were not found yet, it chooses the best of a larger number.
func (s *Core) soon(found []timeheap.Item, n int, now int64) []timeheap.Item {
	first, tries := len(found), n
	if s.withholding() {
		tries = min(4*n, 2*ViewAtMost)
	}
	for walk := s.walkDue(); tries > 0; tries-- {
		it, ok := walk.next()
		if !ok {
			break
		}
		if at, ok := s.servedFrom(it.ID, it.At, now); ok {
			found = append(found, timeheap.Item{At: at, ID: it.ID})
		}
	}
	slices.SortStableFunc(found[first:], func(a, b timeheap.Item) int { return cmp.Compare(a.At, b.At) })
	return found[:min(len(found), first+max(0, n))]
}

// servedFrom is when a host whose clocks allow a contact at a time may be contacted under
// the rules; false if it is paused. The host may not have been withheld yet.
func (s *Core) servedFrom(id uint32, at, now int64) (int64, bool) {
	if !s.withholding() {
		return at, true
	}
	until, _ := s.WithheldUntil(id, now)
	return max(at, until), until != instant.Never
}

// blockedNext appends up to n hosts that are withheld until the end of a block, those of
// the blocks that end first, with the times at which they may be contacted.
func (s *Core) blockedNext(found []timeheap.Item, n int, now int64) []timeheap.Item {
	if s.Withheld.hosts[WithheldBlocked] == 0 {
		return found
	}
	seen := map[uint32]bool{}
	s.Withheld.Blocks.Ascend(func(r BlockEnd) bool {
		left := n - len(seen)
		for _, id := range s.withheldIn(nil, r.Scope, "", left) {
			h := s.Hosts.At(id)
			if until, why := s.WithheldUntil(id, now); why == WithheldBlocked && !seen[id] {
				seen[id] = true
				found = append(found, timeheap.Item{At: max(h.Due, until, s.StartsAt), ID: id})
			}
		}
		return len(seen) < n
	})
	return found
}

// limitedNext appends up to n hosts that are withheld until the end of a limit's period,
// those that wait for the first end.
func (s *Core) limitedNext(found []timeheap.Item, n int) []timeheap.Item {
	if s.Limits == nil {
		return found
	}
	w := &dueWalk{c: s}
	for w.add(dueItem{in: &s.Limits.HostEnds.Heap, floor: s.StartsAt}); n > 0; n-- {
		it, ok := w.next()
		if !ok {
			break
		}
		found = append(found, timeheap.Item{At: max(it.At, s.Hosts.At(it.ID).Due), ID: it.ID})
	}
	return found
}

// listsByUrgency yields ready lists and front queues, those of the highest priority first, and of each
// priority the ready list first. Those of paused crawls are left out.
func (t *tables) listsByUrgency() iter.Seq[*list] {
	return func(yield func(*list) bool) {
		for p := t.immediate(); p > 0; p-- {
			for x := range t.crawlsWith(p) {
				if !yield(&x.Lists[Readies].At[p]) || !yield(&x.Lists[tokens].At[p]) {
					return
				}
			}
		}
	}
}

func (t *tables) WaitingOf(id uint32) int32 { return t.Hosts.At(id).Waiting }

// OrderSome puts some more hosts in order, and reports whether all are.
func (t *tables) OrderSome(n int) bool { return t.order.Grow(n, t.Hosts.Top, t.inMemory) }

func (t *tables) inMemory(id uint32) bool { return t.Hosts.At(id).NameLen > 0 }

// NameOf is the key of a host in memory.
func (t *tables) NameOf(id uint32) []byte { return t.Name(t.Hosts.At(id)) }

// OrderKey appends a host's place in domain order.
func (t *tables) OrderKey(dst []byte, id uint32) []byte {
	return hostkey.AppendReversed(dst, t.NameOf(id))
}

// HostsIn appends up to n hosts of a scope whose keys come after key, in order.
func (t *tables) HostsIn(dst []uint32, s row.Scope, key string, n int) []uint32 {
	return t.inScope(&t.order.Set, dst, s, key, n, func(uint32) bool { return true })
}

// inScope is HostsIn for the hosts of a set; in says whether a host is in it.
func (t *tables) inScope(set *hostorder.Set, dst []uint32, s row.Scope, key string, n int, in func(id uint32) bool) []uint32 {
	if !s.Named {
		return set.After(dst, key, "", n)
	}
	if own := hostkey.Reversed(s.Name); key < own {
		if id := t.Lookup(t.Hash(hostkey.Bytes(s.Name)), s.Name); id != 0 && in(id) {
			dst = append(dst, id)
			n--
		}
	}
	if s.Domain {
		dst = set.After(dst, key, s.Order(), n)
	}
	return dst
}
