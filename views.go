// This file shows hosts in the orders in which somebody may want to see them: who
// is due next, who is about to be served.
//
// Nobody scans. The heaps are walked from their roots, and the front queues and
// ready lists from their heads, only as far as wanted.

package frontier

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"iter"
	"slices"
	"time"
)

const (
	// viewAtMost is how many hosts NextDue, PeekDue and Largest tell at most: what
	// can be looked at under one lock.
	viewAtMost = 256
	// infosAtOnce is how many hosts are described under one lock.
	infosAtOnce = 32
)

// NextDue tells up to n hosts with URLs that wait, in the order of the times at
// which host and group allow their next contact: first those that may be contacted
// now, then those whose time comes, the end of a block included; paused hosts have
// no such time. Of the hosts that wait for a back queue it
// looks at the first n of each priority only, since these are not ordered by time;
// hosts of a group whose slots are all taken have no such time, and are not told.
// n is at most 256; more counts as 256. It costs O(n log n).
func (f *Frontier) NextDue(n int) []HostInfo {
	n = min(n, viewAtMost)
	f.lookLocked()
	if f.closed || n <= 0 {
		f.mu.Unlock()
		return nil
	}
	c := f.core
	found := c.soon(c.dueNow(nil, n, f.last), n, f.last)
	found = c.unblockedNext(found, n, f.last)
	found = c.liftedNext(found, n)
	slices.SortStableFunc(found, func(a, b timeItem) int { return cmp.Compare(a.at, b.at) })
	names := make([]string, 0, n)
	for _, it := range found[:min(n, len(found))] {
		names = append(names, string(c.name(c.hosts.at(it.id))))
	}
	f.mu.Unlock()
	return f.infosOf(names)
}

// infosOf describes those of the hosts that are in memory, in the same order.
func (f *Frontier) infosOf(names []string) []HostInfo {
	out := make([]HostInfo, 0, len(names))
	for chunk := range slices.Chunk(names, infosAtOnce) {
		f.lookLocked()
		for _, name := range chunk {
			if id := f.core.lookup(f.hostHash(name), name); id != 0 {
				out = append(out, f.hostInfoLocked(id))
			}
		}
		f.mu.Unlock()
	}
	return out
}

// dueNow appends up to n hosts of each ready list and front queue, but not many more
// than that in all, with the times at which they may be contacted; each once.
func (c *core) dueNow(found []timeItem, n int, now int64) []timeItem {
	seen, looks := map[uint32]bool{}, 4*viewAtMost
	for l := range c.listsByUrgency() {
		for qid, k := l.first, 0; qid != 0 && k < n; qid, k = c.queues.at(qid).next, k+1 {
			if looks--; looks < 0 {
				return found
			}
			id := c.queues.at(qid).host
			if seen[id] {
				continue
			}
			seen[id] = true
			h := c.hosts.at(id)
			at := max(h.due, c.hold)
			if h.group != 0 {
				at = max(at, c.groups.at(h.group).free)
			}
			if at, ok := c.servedFrom(id, at, now); ok {
				found = append(found, timeItem{at: at, id: id})
			}
		}
	}
	return found
}

// soon appends up to n hosts from the heaps in the order of their times, or if rules
// may hold some of them, of which nobody has found out yet, the best of some more.
func (c *core) soon(found []timeItem, n int, now int64) []timeItem {
	first, tries := len(found), n
	if c.holding() {
		tries = min(4*n, 2*viewAtMost)
	}
	for walk := c.walkDue(); tries > 0; tries-- {
		it, ok := walk.next()
		if !ok {
			break
		}
		if at, ok := c.servedFrom(it.id, it.at, now); ok {
			found = append(found, timeItem{at: at, id: it.id})
		}
	}
	slices.SortStableFunc(found[first:], func(a, b timeItem) int { return cmp.Compare(a.at, b.at) })
	return found[:min(len(found), first+max(0, n))]
}

// servedFrom is when a host whose clocks allow a contact at a time may be contacted
// under the rules; false if it is paused. Nobody may have found out about these yet.
func (c *core) servedFrom(id uint32, at, now int64) (int64, bool) {
	if !c.holding() {
		return at, true
	}
	until, _ := c.ruledOut(id, now)
	return max(at, until), until != never
}

// unblockedNext appends up to n hosts that are held until the end of a block, those of
// the blocks that end first, with the times at which they may be contacted.
func (c *core) unblockedNext(found []timeItem, n int, now int64) []timeItem {
	if c.held.hosts[heldBlocked] == 0 {
		return found
	}
	seen := map[uint32]bool{}
	c.held.blocks.Ascend(func(r *scopeRule) bool {
		left := n - len(seen)
		for _, id := range c.heldIn(nil, r.scope, "", left) {
			h := c.hosts.at(id)
			if until, why := c.ruledOut(id, now); why == heldBlocked && !seen[id] {
				seen[id] = true
				found = append(found, timeItem{at: max(h.due, until, c.hold), id: id})
			}
		}
		return len(seen) < n
	})
	return found
}

// liftedNext appends up to n hosts that are held until the end of a limit's period,
// those that wait for the first end.
func (c *core) liftedNext(found []timeItem, n int) []timeItem {
	if c.limits == nil {
		return found
	}
	w := &dueWalk{c: c}
	for w.add(dueItem{in: &c.limits.ends, floor: c.hold}); n > 0; n-- {
		it, ok := w.next()
		if !ok {
			break
		}
		found = append(found, timeItem{at: max(it.at, c.hosts.at(it.id).due), id: it.id})
	}
	return found
}

// listsByUrgency yields ready lists and front queues, those of the highest
// priority first, and of each priority the ready list first. Crawls that are
// paused have none.
func (c *core) listsByUrgency() iter.Seq[*list] {
	return func(yield func(*list) bool) {
		for p := c.immediate(); p > 0; p-- {
			for x := range c.crawlsWith(p) {
				if !yield(&x.lists[readies].at[p]) || !yield(&x.lists[tokens].at[p]) {
					return
				}
			}
		}
	}
}

// dueWalk yields the hosts in the heaps of a core in the order of their times,
// without taking them out. Its candidates are the heaps' items whose parents were
// yielded.
type dueWalk struct {
	c     *core
	items []dueItem // a heap
}

type dueItem struct {
	at    int64
	in    *timeHeap // nil: a group's
	i     int       // in its items, or the number in core.grouped
	floor int64     // nothing of the heap is before it
	due   bool      // the heap is of a group's due hosts, which are not ordered by time
}

func (c *core) walkDue() *dueWalk {
	w := &dueWalk{c: c}
	w.add(dueItem{in: &c.pace, floor: c.hold})
	w.add(dueItem{in: &c.parks, floor: c.hold})
	return w
}

func (w *dueWalk) add(x dueItem) {
	if x.in == nil && x.i == 0 || x.in != nil && x.i >= x.in.len() {
		return
	}
	if x.at = x.floor; !x.due {
		x.at = max(x.at, w.item(x).at)
	}
	heap.Push(w, x)
}

func (w *dueWalk) item(x dueItem) timeItem {
	if x.in == nil {
		return w.c.grouped.at(uint32(x.i)).timeItem
	}
	return x.in.Items[x.i]
}

// next returns the next host and its time.
func (w *dueWalk) next() (timeItem, bool) {
	for len(w.items) > 0 {
		x := heap.Pop(w).(dueItem)
		id := w.item(x).id
		if x.in == nil {
			n := w.c.grouped.at(uint32(x.i))
			w.add(dueItem{i: int(n.left), floor: x.floor, due: x.due})
			w.add(dueItem{i: int(n.right), floor: x.floor, due: x.due})
			return timeItem{at: x.at, id: id}, true
		}
		for i := 4*x.i + 1; i <= 4*x.i+4; i++ {
			w.add(dueItem{in: x.in, i: i, floor: x.floor})
		}
		if id&groupBit == 0 {
			return timeItem{at: x.at, id: id}, true
		}
		g := w.c.groups.at(id &^ groupBit)
		w.add(dueItem{i: int(g.due), floor: max(x.floor, g.free), due: true})
		w.add(dueItem{i: int(g.hosts), floor: max(x.floor, g.free)})
	}
	return timeItem{}, false
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

// Upcoming is a host that will be served soon, and what of it comes first.
type Upcoming struct {
	Host     string
	Entry    Entry     // the first URL of the host's highest priority
	Priority int       // of that URL
	Due      time.Time // from when on host and group allow the contact; past: now
}

// PeekDue tells up to n hosts that will be served soon, in about the order in which
// that will be: those that may be served now, the highest priorities first, then
// those whose time comes. It is for whoever wants to look up names and robots.txt
// ahead; nothing is promised about what Next will return. First URLs that are not
// in memory are read from disk, until ctx ends; what cannot be read for damage is
// left out. n is at most 256; more counts as 256.
func (f *Frontier) PeekDue(ctx context.Context, n int) ([]Upcoming, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n = min(n, viewAtMost)
	f.lookLocked()
	if f.closed {
		f.mu.Unlock()
		return nil, ErrClosed
	}
	c := f.core
	var found []timeItem
	if n > 0 {
		found = c.dueNow(nil, n, f.last)
	}
	slices.SortStableFunc(found, func(a, b timeItem) int { return cmp.Compare(max(a.at, f.last), max(b.at, f.last)) })
	found = c.soon(found, n-len(found), f.last)
	found = found[:min(n, len(found))]
	names := make([]string, len(found))
	for i, it := range found {
		names[i] = string(c.name(c.hosts.at(it.id)))
	}
	f.mu.Unlock()
	out := make([]Upcoming, 0, len(found))
	for i, it := range found {
		u := Upcoming{Host: names[i]}
		if it.at > 0 {
			u.Due = f.wall(it.at)
		}
		switch ok, err := f.firstURL(ctx, &u); {
		case err != nil:
			return nil, err
		case ok:
			out = append(out, u)
		}
	}
	return out, nil
}

// firstURL finds out what of a host comes first. It reports false if there is
// nothing any more.
func (f *Frontier) firstURL(ctx context.Context, u *Upcoming) (bool, error) {
	for range 3 { // what is on disk may come into memory meanwhile
		if err := ctx.Err(); err != nil {
			return false, err
		}
		f.mu.Lock()
		if f.closed {
			f.mu.Unlock()
			return false, ErrClosed
		}
		job := f.firstLocked(u)
		f.mu.Unlock()
		if job == nil {
			return u.Entry.URL != "", nil
		}
		records, err := f.readFor(ctx, job.part, job.want)
		var corrupt *CorruptError
		switch {
		case errors.As(err, &corrupt):
			continue // or its last record is finished
		case err != nil:
			return false, err
		}
		if len(records) > 0 {
			b, _ := decodeBody(records[0].body) // read has checked it
			crawl := u.Entry.Crawl
			u.Entry = b.entry()
			u.Entry.Crawl = crawl
			return true, nil
		}
	}
	return false, nil
}

// firstLocked fills in what of a host comes first, or tells what must be read for
// it.
func (f *Frontier) firstLocked(u *Upcoming) *loadJob {
	c := f.core
	id := c.lookup(f.hostHash(u.Host), u.Host)
	if id == 0 {
		return nil
	}
	for qid := c.hosts.at(id).queues; qid != 0; qid = c.queues.at(qid).sibling {
		q := c.queues.at(qid)
		if q.waiting == 0 {
			continue
		}
		u.Priority = c.priorityOf(q)
		if ref := q.front.first; ref != 0 {
			u.Entry, _, _ = f.entryLocked(ref)
			u.Entry.Crawl = c.crawlNumber(q)
			return nil
		}
		for pid := range c.chain(q) {
			if want := c.unread(c.parts.at(pid)); want != 0 {
				u.Entry.Crawl = c.crawlNumber(q)
				return f.jobLocked(choice{host: id, queue: qid, load: pid, want: want & -want})
			}
		}
		if ref := q.back.first; ref != 0 {
			u.Entry, _, _ = f.entryLocked(ref)
			u.Entry.Crawl = c.crawlNumber(q)
			return nil
		}
	}
	return nil
}

// Hosts yields the hosts in memory of a scope in domain order: by their names with
// the labels reversed, so that the hosts of a domain follow each other, addresses
// by themselves. It begins behind the host key after, which need not be known;
// empty: at the first. All hosts are in memory of which URLs wait or are leased.
// A host that is in memory all the while is yielded once; each is described as it
// is when a few of its neighbours are.
//
// The first call puts the hosts in order, in short steps; from then on each host
// costs some 6 more bytes. No lock is held while the caller looks at a host.
func (f *Frontier) Hosts(s Scope, after string) iter.Seq[HostInfo] {
	return eachHost(f, s, after, infosAtOnce, f.hostInfoLocked, func(x HostInfo) string { return x.Host })
}
