// This file lists hosts: those that come next, those with the most URLs, those of a
// scope in domain order.
//
// Nothing scans all hosts under one lock. The heaps are walked from their roots, and the
// front queues and ready lists from their heads, only as far as wanted.

package frontier

import (
	"cmp"
	"context"
	"errors"
	"github.com/seed-7440039f/frontier/internal/row"
	"iter"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/hostorder"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

const (
	// viewAtMost is how many hosts Upcoming and Largest return at most: what
	// can be looked at under one lock.
	viewAtMost = 256
	// infosAtOnce is how many hosts are described under one lock.
	infosAtOnce = 32
)

// Upcoming is a host that will be served soon.
type Upcoming struct {
	Host     HostInfo
	Due      time.Time // when host, group and rules allow the contact; past: now
	Entry    Entry     // the first URL of the host's highest priority, if URLs are wanted
	Priority int       // of that URL
}

// Upcoming returns up to n hosts with URLs that wait, in about the order in which they
// will be served: first those that may be contacted now, the highest priorities first,
// then the others by the time at which they may be contacted, the ends of blocks and of
// limits' periods included. Paused hosts have no such time and are left out, as are hosts
// of a group whose slots are all taken. Among the hosts that wait for a back queue, only
// the first n of each priority are considered. Next does not guarantee this order.
//
// With urls it includes the first URL of each host, for a caller that resolves names and
// reads robots.txt ahead. First URLs that are not in memory are read from disk; a host
// whose first URL is damaged is left out.
//
// n is at most 256; more counts as 256. It costs O(n log n). The error is ctx's,
// ErrClosed, or the Spill's.
func (f *Frontier) Upcoming(ctx context.Context, n int, urls bool) ([]Upcoming, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.lockAdvanced()
	if f.closed {
		f.mu.Unlock()
		return nil, ErrClosed
	}
	due := map[string]int64{}
	var names []string
	for _, it := range f.sched.upcoming(max(0, min(n, viewAtMost)), f.last) {
		name := string(f.sched.nameOf(it.ID))
		names, due[name] = append(names, name), it.At
	}
	f.mu.Unlock()
	out := make([]Upcoming, 0, len(names))
	for _, h := range f.infosOf(names) {
		u := Upcoming{Host: h}
		if at := due[h.Host]; at > 0 {
			u.Due = f.wall(at)
		}
		if urls {
			switch ok, err := f.firstURL(ctx, &u); {
			case err != nil:
				return nil, err
			case !ok:
				continue
			}
		}
		out = append(out, u)
	}
	return out, nil
}

// infosOf describes those of the hosts that are in memory, in the same order.
func (f *Frontier) infosOf(names []string) []HostInfo {
	out := make([]HostInfo, 0, len(names))
	for chunk := range slices.Chunk(names, infosAtOnce) {
		f.lockAdvanced()
		for _, name := range chunk {
			if id := f.sched.lookup(f.hostHash(name), name); id != 0 {
				out = append(out, f.hostInfoLocked(id))
			}
		}
		f.mu.Unlock()
	}
	return out
}

// upcoming returns up to n hosts that will be served next, with the times at which
// they may be contacted.
func (s *scheduler) upcoming(n int, now int64) []timeheap.Item {
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
func (s *scheduler) dueNow(found []timeheap.Item, n int, now int64) []timeheap.Item {
	seen, looks := map[uint32]bool{}, 4*viewAtMost
	for l := range s.listsByUrgency() {
		for qid, k := l.first, 0; qid != 0 && k < n; qid, k = s.queues.At(qid).next, k+1 {
			if looks--; looks < 0 {
				return found
			}
			id := s.queues.At(qid).host
			if seen[id] {
				continue
			}
			seen[id] = true
			h := s.hosts.At(id)
			at := max(h.due, s.startsAt)
			if h.group != 0 {
				at = max(at, s.groups.At(h.group).free)
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
func (s *scheduler) soon(found []timeheap.Item, n int, now int64) []timeheap.Item {
	first, tries := len(found), n
	if s.withholding() {
		tries = min(4*n, 2*viewAtMost)
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
func (s *scheduler) servedFrom(id uint32, at, now int64) (int64, bool) {
	if !s.withholding() {
		return at, true
	}
	until, _ := s.withheldUntil(id, now)
	return max(at, until), until != instant.Never
}

// blockedNext appends up to n hosts that are withheld until the end of a block, those of
// the blocks that end first, with the times at which they may be contacted.
func (s *scheduler) blockedNext(found []timeheap.Item, n int, now int64) []timeheap.Item {
	if s.withheld.hosts[withheldBlocked] == 0 {
		return found
	}
	seen := map[uint32]bool{}
	s.withheld.blocks.Ascend(func(r blockEnd) bool {
		left := n - len(seen)
		for _, id := range s.withheldIn(nil, r.scope, "", left) {
			h := s.hosts.At(id)
			if until, why := s.withheldUntil(id, now); why == withheldBlocked && !seen[id] {
				seen[id] = true
				found = append(found, timeheap.Item{At: max(h.due, until, s.startsAt), ID: id})
			}
		}
		return len(seen) < n
	})
	return found
}

// limitedNext appends up to n hosts that are withheld until the end of a limit's period,
// those that wait for the first end.
func (s *scheduler) limitedNext(found []timeheap.Item, n int) []timeheap.Item {
	if s.limits == nil {
		return found
	}
	w := &dueWalk{c: s}
	for w.add(dueItem{in: &s.limits.HostEnds.Heap, floor: s.startsAt}); n > 0; n-- {
		it, ok := w.next()
		if !ok {
			break
		}
		found = append(found, timeheap.Item{At: max(it.At, s.hosts.At(it.ID).due), ID: it.ID})
	}
	return found
}

// listsByUrgency yields ready lists and front queues, those of the highest
// priority first, and of each priority the ready list first. Crawls that are
// paused have none.
func (t *tables) listsByUrgency() iter.Seq[*list] {
	return func(yield func(*list) bool) {
		for p := t.immediate(); p > 0; p-- {
			for x := range t.crawlsWith(p) {
				if !yield(&x.lists[readies].at[p]) || !yield(&x.lists[tokens].at[p]) {
					return
				}
			}
		}
	}
}

// firstURL finds the first URL of a host. It reports false if there is none any more.
func (s *shard) firstURL(ctx context.Context, u *Upcoming) (bool, error) {
	for range 3 { // what is on disk may come into memory meanwhile
		if err := ctx.Err(); err != nil {
			return false, err
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return false, ErrClosed
		}
		job := s.firstLocked(u)
		s.mu.Unlock()
		if job == nil {
			return u.Entry.URL != "", nil
		}
		records, err := s.readFor(ctx, job.part, job.want)
		var corrupt *CorruptError
		switch {
		case errors.As(err, &corrupt):
			continue // or its last record is finished
		case err != nil:
			return false, err
		}
		if len(records) > 0 {
			b, _ := record.Decode(records[0].Body) // read has checked it
			crawl := u.Entry.Crawl
			u.Entry = entryOf(&b, u.Host.Host)
			u.Entry.Crawl = crawl
			return true, nil
		}
	}
	return false, nil
}

// firstLocked fills in the first URL of a host, or returns what must be read for it.
func (s *shard) firstLocked(u *Upcoming) *loadJob {
	c := s.sched
	id := c.lookup(s.hostHash(u.Host.Host), u.Host.Host)
	if id == 0 {
		return nil
	}
	for qid := c.hosts.At(id).queues; qid != 0; qid = c.queues.At(qid).sibling {
		q := c.queues.At(qid)
		if q.waiting == 0 {
			continue
		}
		u.Priority = c.priorityOf(q)
		for ref := range c.fifo.Front(&q.Queue) {
			u.Entry, _ = s.entryLocked(ref, c.hosts.At(id))
			u.Entry.Crawl = c.crawlNumber(q)
			return nil
		}
		for pid := range c.fifo.Parts(&q.Queue) {
			if want := c.blocks.Unread(pid); want != 0 {
				u.Entry.Crawl = c.crawlNumber(q)
				return s.jobLocked(choice{host: id, queue: qid, load: pid, want: want & -want})
			}
		}
		for ref := range c.fifo.Back(&q.Queue) {
			u.Entry, _ = s.entryLocked(ref, c.hosts.At(id))
			u.Entry.Crawl = c.crawlNumber(q)
			return nil
		}
	}
	return nil
}

// Hosts yields the hosts in memory of a scope in domain order: by their names with the
// labels reversed, so that the hosts of a domain follow each other, addresses by
// themselves. It begins behind the host key after, which need not be known; if that is
// empty, with the first. Every host with waiting or leased URLs is in memory. A host that
// stays in memory during the loop is yielded once. Hosts are described a few at a time.
//
// The first call puts the hosts in order, in short steps; from then on each host costs
// about 6 more bytes. No lock is held while the loop body runs.
func (f *Frontier) Hosts(s Scope, after string) iter.Seq[HostInfo] {
	return eachHost(f, f.scopeSeen(s), after, infosAtOnce, f.hostInfoLocked, func(x HostInfo) string { return x.Host })
}

// namesAtOnce is how many names are read under one lock.
const namesAtOnce = 256

// HostNames yields the keys of the hosts that Hosts yields, in the same order and under
// the same conditions, at about a tenth of the cost. Host describes one.
func (f *Frontier) HostNames(s Scope, after string) iter.Seq[string] {
	look := func(id uint32) string { return string(f.sched.nameOf(id)) }
	return eachHost(f, f.scopeSeen(s), after, namesAtOnce, look, func(name string) string { return name })
}

// eachHost yields what look, which is called with the lock, says of the hosts of s behind
// a host key, in domain order, a number of them under one lock. name is the key of the host
// that was looked at. It ends when the frontier is closed.
func eachHost[T any](f *Frontier, s Scope, after string, atOnce int, look func(id uint32) T, name func(T) string) iter.Seq[T] {
	return func(yield func(T) bool) {
		if !s.named || s.domain {
			f.orderHosts()
		}
		var ids []uint32
		seen := make([]T, 0, atOnce)
		for key, more := hostkey.Reversed(after), true; more; {
			f.lockAdvanced()
			if f.closed {
				f.mu.Unlock()
				return
			}
			ids = f.sched.hostsIn(ids[:0], s.stored(), key, atOnce)
			more = len(ids) == atOnce
			seen = seen[:0]
			for _, id := range ids {
				seen = append(seen, look(id))
			}
			f.mu.Unlock()
			for _, x := range seen {
				if !yield(x) {
					return
				}
			}
			if more {
				key = hostkey.Reversed(name(seen[len(seen)-1]))
			}
		}
	}
}

const sizeHostsAtOnce = 2048 // hosts that are listed by size under one lock

func (t *tables) waitingOf(id uint32) int32 { return t.hosts.At(id).waiting }

// Largest returns up to n hosts with the most waiting URLs, the largest first. Among a
// thousand or more hosts whose sizes differ by less than a 64th, the choice is arbitrary.
// n is at most 256; more counts as 256. It costs O(n log n), except for the first call,
// which looks at all hosts in short steps; from then on each host costs 12 more bytes.
func (f *Frontier) Largest(n int) []HostInfo {
	n = min(n, viewAtMost)
	if n <= 0 {
		return nil
	}
	for done := false; !done; {
		f.mu.Lock()
		done = f.sched.sizes.Grow(sizeHostsAtOnce, f.sched.hosts.Top, f.sched.waitingOf)
		f.mu.Unlock()
	}
	f.lockAdvanced()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	c := f.sched
	found := c.sizes.Largest(n, 4*viewAtMost, c.waitingOf)
	names := make([]string, len(found))
	for i, it := range found {
		names[i] = string(c.name(c.hosts.At(it.ID)))
	}
	f.mu.Unlock()
	infos := f.infosOf(names)
	slices.SortStableFunc(infos, func(a, b HostInfo) int { return cmp.Compare(b.Waiting, a.Waiting) })
	return infos
}

const (
	orderHostsAtOnce = 64 // hosts that are put in order under one lock
	sweepAtOnce      = 32 // hosts that a sweep visits under one lock
)

// orderHosts makes the order of all hosts if there is none.
func (s *shard) orderHosts() {
	for done := false; !done; {
		s.mu.Lock()
		done = s.closed || s.sched.orderSome(orderHostsAtOnce)
		s.mu.Unlock()
	}
}

// orderSome puts some more hosts in order, and reports whether all are.
func (t *tables) orderSome(n int) bool { return t.order.Grow(n, t.hosts.Top, t.inMemory) }

func (t *tables) inMemory(id uint32) bool { return t.hosts.At(id).nameLen > 0 }

// nameOf is the key of a host in memory.
func (t *tables) nameOf(id uint32) []byte { return t.name(t.hosts.At(id)) }

// orderKey appends a host's place in domain order.
func (t *tables) orderKey(dst []byte, id uint32) []byte {
	return hostkey.AppendReversed(dst, t.nameOf(id))
}

// hostsIn appends up to n hosts of a scope whose keys come after key, in order.
func (t *tables) hostsIn(dst []uint32, s row.Scope, key string, n int) []uint32 {
	return t.inScope(&t.order.Set, dst, s, key, n, func(uint32) bool { return true })
}

// inScope is hostsIn for the hosts of a set; in says whether a host is in it.
func (t *tables) inScope(set *hostorder.Set, dst []uint32, s row.Scope, key string, n int, in func(id uint32) bool) []uint32 {
	if !s.Named {
		return set.After(dst, key, "", n)
	}
	if own := hostkey.Reversed(s.Name); key < own {
		if id := t.lookup(t.hash(hostkey.Bytes(s.Name)), s.Name); id != 0 && in(id) {
			dst = append(dst, id)
			n--
		}
	}
	if s.Domain {
		dst = set.After(dst, key, s.Order(), n)
	}
	return dst
}

// sweepHosts calls fn with the hosts in memory of a scope, in domain order, a few under
// one lock. Hosts that come or go meanwhile may be missed. fn may change the host, but
// not end it; it returns false to see the same host again under another lock.
func (f *Frontier) sweepHosts(s Scope, fn func(id uint32, now int64) (done bool)) error {
	f.orderHosts()
	var ids []uint32
	for key, more := "", true; more; {
		if err := f.lockOpen(); err != nil {
			return err
		}
		c := f.sched
		ids = c.hostsIn(ids[:0], s.stored(), key, sweepAtOnce)
		more = len(ids) == sweepAtOnce
		for _, id := range ids {
			at := string(c.orderKey(nil, id)) // fn may let it go
			if !fn(id, f.last) {
				more = true
				break
			}
			key = at
		}
		f.dispatchLocked()
		f.mu.Unlock()
	}
	return nil
}
