// This file chooses the next hand-out: a crawl, a level, a host that may be contacted, and its queue.

package mercator

// HeadAlive reports whether the queue that was chosen for a hand-out begins with a URL
// that is alive. If not, its host, which is in place loading, waits for the sweep:
// to take its dead out now would keep the hosts behind it waiting.
func (s *Core) HeadAlive(qid uint32, now int64) bool {
	q := s.Queues.At(qid)
	if d := s.DeadIn(q); !s.deadHead(q, &d) {
		return true
	}
	h := s.Hosts.At(q.Host)
	s.DropSlot(h, now)
	s.Put(h, Unpurged)
	h.Served = 0
	return false
}

// WantContact notes that a Contact waits for a host, which needs a back queue
// then even if it has no URLs.
func (s *Core) WantContact(id uint32, now int64) {
	h := s.Hosts.At(id)
	h.Wanted = true
	switch h.Place {
	case Leased, Loading, Pacing, Called, Withheld:
	case Queued:
		s.promote(id, now)
	case Ready:
		s.Detach(id) // it keeps its group's slot
		s.Put(h, Called)
		s.Calls = append(s.Calls, id)
	default:
		s.Detach(id)
		s.setPacing(id, h, now)
	}
}

// Claim reports whether a host in place loading may still be leased. If it has
// come to another group meanwhile it takes a slot of that.
func (s *Core) Claim(id uint32, now int64) bool {
	h := s.Hosts.At(id)
	if h.Due > now || s.full(id) || !s.mayServe(id, now) || !h.Has(HasSlot) && !s.TakeSlot(h.Group, now) {
		return false
	}
	h.Mark(HasSlot, h.Group != 0)
	return true
}

// Prepare says whether the queue's next record must be read from disk.
func (t *tables) Prepare(qid uint32) Choice {
	q := t.Queues.At(qid)
	ch := Choice{Host: q.Host, Queue: qid}
	ch.Load, ch.Want = t.Fifo.Next(&q.Queue)
	return ch
}

// Unload puts a host back whose next record was not read after all.
func (s *Core) Unload(id uint32, now int64) {
	h := s.Hosts.At(id)
	s.DropSlot(h, now)
	s.Put(h, Nowhere)
	h.Served = max(h.Served, 1) // still bound
	s.Settle(id, now)
}

// Abandon gives up the chain's first part, which cannot be read. Its records
// stay on disk; they are not waiting any more.
func (s *Core) Abandon(qid, pid uint32) {
	q := s.Queues.At(qid)
	n := s.Fifo.Abandon(&q.Queue, pid)
	s.Counted(q, -n)
	s.Stats.Unreadable += int64(n)
}

// Choice is what Next found: a record to hand out, or one to be read first.
type Choice struct {
	Host, Queue uint32
	Load        uint32 // part to read before; 0: none
	Want        uint32 // its records to read
}

// BadChoice is a choice of a priority that has nothing available, or a panic in place of one.
type BadChoice struct {
	Got       int
	Available []int
	Panicked  any
}

// Next chooses the crawl, host and queue of the next hand-out. It asks the selector once, for what the
// crawl has to offer, and again if everything it chose turns out not to be due, until the lock should
// be released because too many hosts were found in vain: then Core.more is set. Afterwards the host is
// in place loading, with its group's slot. If there are crawls, only they have a turn.
func (s *Core) Next(now int64, crawls []uint32) (Choice, bool, *BadChoice) {
	s.Advance(now)
	if now < s.StartsAt {
		return Choice{}, false, nil
	}
	for inVain := 0; ; {
		x, immediate := s.nextCrawl(crawls)
		if x == nil {
			s.withholdNext(now)
			return Choice{}, false, nil
		}
		p := int(s.immediate())
		if !immediate {
			mask := x.Lists[Readies].mask | x.Lists[tokens].mask
			available := s.available(mask)
			var panicked any
			if p, panicked = s.Cfg.Choose(available); panicked != nil {
				return Choice{}, false, &BadChoice{Available: append([]int(nil), available...), Panicked: panicked}
			}
			if p < 1 || p > s.Cfg.Levels || mask&(1<<(p-1)) == 0 {
				return Choice{}, false, &BadChoice{Got: p, Available: append([]int(nil), available...)}
			}
		}
		if qid := s.nextOf(x, p, now, &inVain); qid != 0 {
			if s.Deletions.InForce.Len() == 0 || s.HeadAlive(qid, now) {
				s.served(x, uint8(p))
				return s.Prepare(qid), true, nil
			}
			inVain++
		}
		if inVain >= bindAtOnce {
			s.more = true
			return Choice{}, false, nil
		}
	}
}

// available lists the priorities in mask.
func (s *Core) available(mask uint64) []int {
	n := 0
	for p := 1; mask != 0; mask, p = mask>>1, p+1 {
		if mask&1 != 0 {
			s.avail[n] = p
			n++
		}
	}
	return s.avail[:n]
}

// nextOf takes the crawl's first ready host of level p, or else binds hosts from its front queue p
// until one is due. It returns the host's queue, or 0, and counts those that were not.
func (s *Core) nextOf(x *Crawl, p int, now int64, inVain *int) uint32 {
	for ; x.Lists[Readies].At[p].first != 0 && *inVain < bindAtOnce; *inVain++ {
		qid := x.Lists[Readies].At[p].first
		id := s.Queues.At(qid).Host
		s.Detach(id)
		if s.StillDue(id, now) {
			s.Put(s.Hosts.At(id), Loading)
			return qid
		}
	}
	for ; x.Lists[tokens].At[p].first != 0 && *inVain < bindAtOnce; *inVain++ {
		qid := x.Lists[tokens].At[p].first
		id := s.Queues.At(qid).Host
		h := s.Hosts.At(id)
		s.bind(h)
		if s.full(id) {
			s.Settle(id, now)
			continue
		}
		if s.withhold(id, now) {
			continue
		}
		if h.Due <= now && s.TakeSlot(h.Group, now) {
			s.Put(h, Loading)
			h.Mark(HasSlot, h.Group != 0)
			return qid
		}
		s.setPacing(id, h, now)
	}
	return 0
}

// StillDue reports whether a host that was ready, and is in no structure now, may
// still be contacted. A rule may say otherwise meanwhile. Its group may have been
// left by a host that was contacted since; then it goes back to the heap.
func (s *Core) StillDue(id uint32, now int64) bool {
	h := s.Hosts.At(id)
	if s.full(id) { // a rule allows it fewer lanes
		s.Settle(id, now)
		return false
	}
	if s.withhold(id, now) {
		return false
	}
	if h.Group == 0 {
		return true
	}
	sl := s.SlotsOf(h.Group)
	kept := sl.kept(s.Groups.At(h.Group).Limit, now)
	if s.keepSlots(h.Group, sl); kept {
		return true
	}
	s.DropSlot(h, now)
	s.setPacing(id, h, now)
	return false
}

// NextOfHost is Next for one host.
func (s *Core) NextOfHost(id uint32, crawls []uint32, now int64) (ch Choice, ok bool) {
	if id == 0 || now < s.StartsAt {
		return ch, false
	}
	h := s.Hosts.At(id)
	switch h.Place {
	case Unbound, Pacing, Queued, Ready:
	case Parked:
		if h.Due > now {
			return ch, false
		}
	default:
		return ch, false
	}
	qid := s.urgentQueue(h, crawls, false)
	if qid == 0 || h.Wanted {
		return ch, false
	}
	if h.Place != Unbound && h.Due > now || h.Place == Queued && s.Groups.At(h.Group).Used >= s.Groups.At(h.Group).Limit {
		return ch, false // its time, or its turn, will come
	}
	s.Detach(id)
	if !s.StillDue(id, now) {
		return ch, false
	}
	if h.Due > now || !h.Has(HasSlot) && !s.TakeSlot(h.Group, now) {
		s.setPacing(id, h, now)
		return ch, false
	}
	h.Mark(HasSlot, h.Group != 0)
	s.Put(h, Loading)
	if s.Deletions.InForce.Len() > 0 && !s.HeadAlive(qid, now) {
		return ch, false
	}
	q := s.Queues.At(qid)
	s.served(s.CrawlOf(q), q.level)
	return s.Prepare(qid), true
}

// NextCall returns a host that a Contact waits for and that may be contacted now, and since when; 0 if
// there is none. The host is in no structure.
func (s *Core) NextCall(now int64) (id uint32, due int64) {
	for len(s.Calls) > 0 {
		id := s.Calls[0]
		s.Detach(id)
		if s.StillDue(id, now) {
			return id, s.Hosts.At(id).Due
		}
	}
	return 0, 0
}

// Withdraw takes a waiting record, whose end must keep its host in memory, out of its queue by remove.
func (s *Core) Withdraw(qid uint32, remove func(), now int64) {
	q := s.Queues.At(qid)
	h := s.Hosts.At(q.Host)
	switch h.Place {
	case Leased, Loading, Called:
		remove()
		s.Counted(q, -1)
	default: // its place depends on which of its queues have URLs, and whether any
		served := h.Served
		s.Detach(q.Host)
		remove()
		s.Counted(q, -1)
		h.Served = served
		s.Settle(q.Host, now)
	}
}
