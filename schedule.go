// This file decides who may be contacted when.
//
// A host moves: nowhere -> unbound (a token in each front queue) -> pacing (in
// the heap) -> ready (in the ready lists) -> leased -> pacing, or back to unbound
// after its quantum, or parked when its time is far, or idling when it has no
// URLs left. Only due hosts are ready, and of a group only as many as it has
// slots. Every step is O(log n) in hosts and groups.

package frontier

import "github.com/seed-7440039f/frontier/internal/arena"

// promoteAtOnce is how many scheduled URLs become waiting under one lock.
const promoteAtOnce = 1024

const (
	bindAtOnce  = 128 // hosts that are bound, or get tokens, in vain under one lock
	readyAtOnce = 512 // hosts and groups that become due under one lock
)

// advance lets time pass: scheduled URLs become waiting, parked hosts get their
// tokens back, due hosts become ready. It does so much of it at once; nextEvent
// tells that there is more.
func (c *core) advance(now int64) {
	c.more = false
	// What is due before on disk comes first.
	for n := 0; c.scheduled.min() <= min(c.date(now), c.timed.min()) && n < promoteAtOnce; n++ {
		if c.dooms.n > 0 && c.dropScheduled(0, now) {
			continue
		}
		it := c.unschedule(0)
		c.waits.began(c.record(arena.Ref(it.id)).seq(), c.moment(it.at))
		c.pushTail(it.aux, arena.Ref(it.id), now)
		c.trim(it.aux)
	}
	for n := 0; c.idle.min() <= now && n < restAtOnce; n++ {
		id := c.idle.pop().id
		c.put(c.hosts.at(id), nowhere)
		c.settle(id, now)
	}
	c.unblock(now)
	if now < c.hold {
		return
	}
	for n := 0; c.parks.min() <= now && n < bindAtOnce; n++ {
		id := c.parks.pop().id
		c.unbind(id, c.hosts.at(id))
	}
	for n := 0; c.pace.min() <= now && n < readyAtOnce; n++ {
		id := c.pace.Items[0].id
		if id&groupBit == 0 {
			c.pace.pop()
			c.makeReady(id, now)
			continue
		}
		c.giveSlot(id&^groupBit, now)
	}
}

// nextEvent is when advance or expired has something to do, or what is on disk
// becomes due; never if time alone changes nothing.
func (c *core) nextEvent(now int64) int64 {
	t := min(c.parks.min(), c.pace.min())
	if t != never {
		t = max(t, c.hold)
	}
	if c.places[unbound] > 0 && now < c.hold {
		t = min(t, c.hold) // tokens wait for nothing else
	}
	t = min(t, c.expiry.min(), c.unblockAt())
	if c.unfinished() {
		t = now
	}
	switch on := c.timed.min(); {
	case c.scheduled.min() <= on:
		t = min(t, c.moment(c.scheduled.min()))
	case on > c.date(now): // else its reader tells when it is there
		t = min(t, c.moment(on))
	}
	return t
}

// awaitsDate reports whether a date may bring anything.
func (c *core) awaitsDate() bool {
	return min(c.scheduled.min(), c.timed.min(), c.unblockAt()) != never
}

// makeReady puts a host that may be contacted now into the ready lists, or calls
// the Contact that waits for it.
func (c *core) makeReady(id uint32, now int64) {
	h := c.hosts.at(id)
	if h.wanted {
		c.put(h, called)
		c.calls = append(c.calls, id)
		return
	}
	// Of a group no more are ready than it has slots.
	if h.group == 0 && c.surplus(h) || !c.offering(h) {
		c.put(h, nowhere)
		c.dropSlot(h, now)
		c.unbind(id, h)
		return
	}
	c.put(h, ready)
	if h.group != 0 {
		g := c.groups.at(h.group)
		h.pos = int32(c.grouped.push(&g.offered, c.ranked(id, g)))
	}
	for q := h.queues; q != 0; q = c.queues.at(q).sibling {
		if c.queues.at(q).waiting > 0 {
			c.enlist(readies, q)
		}
	}
}

// surplus reports whether a host that may be contacted now has nothing to offer
// of which not enough hosts are ready. Otherwise hosts bound for an urgent URL
// would pile up with what is left of them.
func (c *core) surplus(h *host) bool {
	enough := 8 + int(c.stats.Leased)/4
	for q := h.queues; q != 0; q = c.queues.at(q).sibling {
		x := c.queues.at(q)
		if x.waiting > 0 && (x.priority == Immediate || c.crawlOf(x).lists[readies].at[x.level].n < enough) {
			return false
		}
	}
	return true
}

// detach takes a host out of the structure it is in, except leased and loading.
func (c *core) detach(id uint32) {
	h := c.hosts.at(id)
	switch h.place {
	case idling:
		c.idle.remove(int(h.pos))
	case parked:
		c.parks.remove(int(h.pos))
	case held:
		c.letGo(id, h)
	case unbound:
		c.bind(h)
	case pacing:
		if h.group != 0 {
			c.grouped.remove(&c.groups.at(h.group).hosts, uint32(h.pos))
			c.requeueGroup(h.group)
		} else {
			c.pace.remove(int(h.pos))
		}
	case queued:
		c.unawait(c.groups.at(h.group), h)
		c.requeueGroup(h.group)
	case ready:
		if h.group != 0 {
			c.grouped.remove(&c.groups.at(h.group).offered, uint32(h.pos))
		}
		for q := h.queues; q != 0; q = c.queues.at(q).sibling {
			if c.queues.at(q).waiting > 0 {
				c.delist(readies, q)
			}
		}
	case called:
		for i, x := range c.calls {
			if x == id {
				c.calls = append(c.calls[:i], c.calls[i+1:]...)
				break
			}
		}
	}
	c.put(h, nowhere)
}

// dropSlot gives back the group slot of a host that will not be leased after all.
func (c *core) dropSlot(h *host, now int64) {
	if h.holdsSlot {
		h.holdsSlot = false
		c.freeSlot(h.group, 0, now)
	}
}

// settle puts a host that is in no structure where it belongs.
func (c *core) settle(id uint32, now int64) {
	h := c.hosts.at(id)
	c.dropSlot(h, now)
	if h.has(troubled) {
		c.despair(id, now)
	}
	if c.full(id) {
		c.put(h, leased)
		return
	}
	switch {
	case h.wanted:
		c.setPacing(id, h, now)
	case h.waiting == 0:
		c.rest(id, h, now)
	case h.due-now > c.cfg.parkAfter && h.due > c.hold:
		c.put(h, parked)
		c.parks.push(timeItem{at: h.due, id: id})
		for q := h.queues; q != 0; q = c.queues.at(q).sibling {
			c.evict(q)
		}
	case h.place == nowhere && h.served == 0, int(h.served) >= c.cfg.quantum && c.places[unbound] > 0:
		c.unbind(id, h)
	default:
		c.setPacing(id, h, now)
	}
}

func (c *core) setPacing(id uint32, h *host, now int64) {
	if h.group != 0 && h.due <= now && now >= c.hold {
		c.queueUp(id, now)
		return
	}
	c.put(h, pacing)
	if h.group == 0 {
		c.pace.push(timeItem{at: h.due, id: id})
		return
	}
	h.pos = int32(c.grouped.push(&c.groups.at(h.group).hosts, timeItem{at: h.due, id: id}))
	c.requeueGroup(h.group)
}

// rest keeps a host without URLs for as long as something must be known of it.
func (c *core) rest(id uint32, h *host, now int64) {
	h.served = 0
	c.dropLanes(id, now)
	c.outlived(id, now)
	c.unused(id, now)
	x := c.lanesOf(id)
	switch until := c.idlesUntil(id); {
	case x != nil && x.used > 0:
		c.put(h, nowhere)
	case x != nil || until > now:
		c.put(h, idling)
		c.idle.push(timeItem{at: until, id: id})
	case h.scheduled > 0 || h.pins > 0 || h.learned() && !c.cfg.spill:
		c.put(h, nowhere)
	case h.learned() || h.has(stored):
		c.depart(id)
	default:
		c.forget(id)
	}
}

// restsUntil is when nothing of an idling host's last contacts need be known.
func (c *core) restsUntil(id uint32) int64 {
	due := c.hosts.at(id).due
	if x := c.lanesOf(id); x != nil {
		return max(due, x.last())
	}
	return due
}

// choice is what next found: a record to hand out, or one to be read first.
type choice struct {
	host, queue uint32
	load        uint32 // part to read before; 0: none
	want        uint32 // its records to read
}

// next chooses the crawl, host and queue of the next hand-out. The selector is
// asked once, for what the crawl has to offer; if all it chose turns out not to
// be due, again, until so many hosts were found in vain that the lock should be
// released: c.more tells. The host is in place loading afterwards, holding its
// group's slot.
func (c *core) next(now int64) (choice, bool, error) {
	c.advance(now)
	if now < c.hold {
		return choice{}, false, nil
	}
	for inVain := 0; ; {
		x, immediate := c.nextCrawl()
		if x == nil {
			c.shelve(now)
			return choice{}, false, nil
		}
		p := int(c.immediate())
		if !immediate {
			mask := x.lists[readies].mask | x.lists[tokens].mask
			available := c.available(mask)
			var panicked any
			if p, panicked = c.selected(available); panicked != nil {
				return choice{}, false, &SelectorError{Available: append([]int(nil), available...), Panicked: panicked}
			}
			if p < 1 || p > c.cfg.levels || mask&(1<<(p-1)) == 0 {
				return choice{}, false, &SelectorError{Got: p, Available: append([]int(nil), available...)}
			}
		}
		if qid := c.nextOf(x, p, now, &inVain); qid != 0 {
			if c.dooms.n == 0 || c.spared(qid, now) {
				c.served(x, uint8(p))
				return c.prepare(qid), true, nil
			}
			inVain++
		}
		if inVain >= bindAtOnce {
			c.more = true
			return choice{}, false, nil
		}
	}
}

// selected asks the selector, or says with what it panicked: the lock is held, by
// whoever does anything.
func (c *core) selected(available []int) (p int, panicked any) {
	defer func() { panicked = recover() }()
	return c.cfg.selector.Select(available), nil
}

// available lists the priorities in mask.
func (c *core) available(mask uint64) []int {
	n := 0
	for p := 1; mask != 0; mask, p = mask>>1, p+1 {
		if mask&1 != 0 {
			c.avail[n] = p
			n++
		}
	}
	return c.avail[:n]
}

// nextOf takes the crawl's first ready host of level p, or else binds hosts from
// its front queue p until one is due. It returns the host's queue, or 0, and
// counts those that were not.
func (c *core) nextOf(x *crawl, p int, now int64, inVain *int) uint32 {
	for ; x.lists[readies].at[p].first != 0 && *inVain < bindAtOnce; *inVain++ {
		qid := x.lists[readies].at[p].first
		id := c.queues.at(qid).host
		c.detach(id)
		if c.stillDue(id, now) {
			c.put(c.hosts.at(id), loading)
			return qid
		}
	}
	for ; x.lists[tokens].at[p].first != 0 && *inVain < bindAtOnce; *inVain++ {
		qid := x.lists[tokens].at[p].first
		id := c.queues.at(qid).host
		h := c.hosts.at(id)
		c.bind(h)
		if c.full(id) {
			c.settle(id, now)
			continue
		}
		if c.setAside(id, now) {
			continue
		}
		if h.due <= now && c.takeSlot(h.group, now) {
			c.put(h, loading)
			h.holdsSlot = h.group != 0
			return qid
		}
		c.setPacing(id, h, now)
	}
	return 0
}

// stillDue reports whether a host that was ready, and is in no structure now, may
// still be contacted. A rule may say otherwise meanwhile. Its group may have been
// left by a host that was contacted since; then it goes back to the heap.
func (c *core) stillDue(id uint32, now int64) bool {
	h := c.hosts.at(id)
	if c.full(id) { // a rule allows it fewer lanes
		c.settle(id, now)
		return false
	}
	if c.setAside(id, now) {
		return false
	}
	if h.group == 0 {
		return true
	}
	s := c.slotsOf(h.group)
	kept := s.kept(c.groups.at(h.group).limit, now)
	if c.keepSlots(h.group, s); kept {
		return true
	}
	c.dropSlot(h, now)
	c.setPacing(id, h, now)
	return false
}

// schedule files a record under a future date.
func (c *core) schedule(qid uint32, ref arena.Ref, due int64) {
	h := c.hosts.at(c.queues.at(qid).host)
	if h.place == departing {
		c.put(h, nowhere) // it stays
	}
	h.scheduled++
	c.stats.Scheduled++
	it := timeItem{at: due, id: uint32(ref), aux: qid}
	c.scheduled.push(it)
	if c.cfg.spill && c.record(ref).part() == 0 {
		c.unplaced = append(c.unplaced, it)
	}
}

// over reports whether nothing in the frontier can become available by time.
func (c *core) over() bool {
	return c.stats.Waiting == c.heldForGood() && !c.unfinished() && c.stats.Scheduled == 0 && c.stats.Leased == 0
}
