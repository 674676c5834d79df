// This file gives up the URLs of hosts that did not come back: as many probes
// failed as Quarantine.Probes allows.
//
// Where such a host is settled it is put on a list (despair), and somebody takes
// its URLs off its queues and commits their ends, some at a time: a goroutine
// while there are any, or TryNext. Nothing else in the frontier knows of it: until
// they are gone its URLs wait for the next probe, as those of any host in
// quarantine do.

package frontier

const giveUpAtOnce = 64 // URLs that are given up under one lock

// hopeless reports whether a host's URLs shall be given up, as far as its
// failures say. When its next probe is due they are not.
func (c *core) hopeless(id uint32, now int64) bool {
	h := c.hosts.at(id)
	if !h.has(troubled) || h.waiting == 0 || h.due <= now || h.wanted {
		return false
	}
	t := c.troubles[id]
	return t.lost(&c.cfg.quarantine) && !t.kept
}

// lost reports whether so many probes failed in a row that the host is given up.
func (t *trouble) lost(q *Quarantine) bool { return !q.Forever && int(t.probes) > q.Probes }

// despair lists a host whose URLs shall be given up.
func (c *core) despair(id uint32, now int64) {
	if !c.hosts.at(id).has(troubled) || !c.hopeless(id, now) {
		return
	}
	if t := c.troubles[id]; !t.listed {
		t.listed = true
		c.troubles[id] = t
		c.lost = append(c.lost, id)
	}
}

// nextLost returns the first listed host whose URLs shall be given up now, and its
// queue; the host is in place loading. Hosts that are not lost after all, or that
// a rule keeps from being served, are taken off the list.
func (c *core) nextLost(now int64) (id, queue uint32) {
	for n := 0; n < giveUpAtOnce && len(c.lost) > 0; n++ {
		id := c.lost[0]
		if h := c.hosts.at(id); c.hopeless(id, now) && c.offering(h) {
			switch h.place {
			case unbound, parked, pacing, queued, ready:
				served := h.served
				c.detach(id)
				if !c.setAside(id, now) {
					h.served = served
					c.put(h, loading)
					return id, c.offeredQueue(h)
				}
			}
		}
		c.unlist(id)
	}
	return 0, 0
}

// unlist takes the first host off the list. It is listed again where it is
// settled, if need be.
func (c *core) unlist(id uint32) {
	if c.lost = c.lost[1:]; len(c.lost) == 0 {
		c.lost = nil
	}
	if t, ok := c.troubles[id]; ok && t.listed {
		t.listed = false
		c.troubles[id] = t
	}
}

// offeredQueue is the host's first queue with URLs that may be handed out.
func (c *core) offeredQueue(h *host) uint32 {
	for id := h.queues; id != 0; id = c.queues.at(id).sibling {
		if q := c.queues.at(id); q.waiting > 0 && c.crawlOf(q).runs() {
			return id
		}
	}
	return 0
}

// keepURLs lets a host's URLs wait for its next probe: they cannot be given up.
func (c *core) keepURLs(id uint32) {
	if t, ok := c.troubles[id]; ok {
		t.kept = true
		c.troubles[id] = t
	}
}

// lostURL is a URL that is being given up.
type lostURL struct {
	op    *op
	entry Entry
}

// startGivingUpLocked sees to it that somebody gives up what is listed.
func (f *Frontier) startGivingUpLocked() {
	if len(f.core.lost) == 0 || f.givingUp || f.closed {
		return
	}
	f.givingUp = true
	f.sweepers.Add(1)
	go func() {
		defer f.sweepers.Done()
		for f.giveUpSome(true) {
		}
	}()
}

// giveUpSome gives up some URLs of a host that is lost, and tells of them when that
// is durable. It reports whether there may be more. last says that the caller is
// the goroutine that startGivingUpLocked has started, which ends otherwise.
func (f *Frontier) giveUpSome(last bool) (more bool) {
	f.lock()
	for f.givingStep != nil { // somebody else is at it
		step := f.givingStep
		f.mu.Unlock()
		<-step
		f.lock()
	}
	id, queue := uint32(0), uint32(0)
	if !f.closed {
		id, queue = f.core.nextLost(f.last)
	}
	if id == 0 {
		more = len(f.core.lost) > 0 && !f.closed
		f.givingUp = f.givingUp && (more || !last)
		f.dispatchLocked()
		f.mu.Unlock()
		return more
	}
	step := make(chan struct{})
	f.givingStep = step
	f.adding.Add(1) // the crawl is not over before OnGiveUp was told: it may add URLs
	urls, o := f.takeLostLocked(id, queue)
	f.dispatchLocked()
	f.mu.Unlock()
	err := f.awaitLost(urls)
	defer func() { // if OnGiveUp panics, too
		f.mu.Lock()
		if err != nil {
			f.core.keepURLs(id)
		}
		f.adding.Add(-1)
		f.givingStep = nil
		close(step)
		f.dispatchLocked()
		f.mu.Unlock()
	}()
	if err == nil && f.opts.OnGiveUp != nil {
		for _, x := range urls {
			f.opts.OnGiveUp(x.entry, o)
		}
	}
	return true
}

// takeLostLocked takes URLs off a queue of a host in place loading and submits
// their ends. If they are on disk it reads them, without the lock.
func (f *Frontier) takeLostLocked(id, queue uint32) (urls []lostURL, o Outcome) {
	c := f.core
	if ch := c.prepare(queue); ch.load != 0 && !f.readLostLocked(ch) {
		c.unload(id, f.last)
		return nil, o
	}
	q := c.queues.at(queue)
	switch {
	case q.waiting == 0 || !c.hopeless(id, f.last): // it changed while it was read
		c.unload(id, f.last)
		return nil, o
	case c.dooms.n > 0 && !c.spared(queue, f.last):
		return nil, o
	}
	t := c.troubles[id]
	o = Outcome{Result: Failed, Failure: t.kind}
	for len(urls) < giveUpAtOnce && q.waiting > 0 && c.crawlOf(q).runs() && c.prepare(queue).load == 0 {
		ref := c.pop(q)
		if c.walks != nil {
			c.urlTaken(id, ref)
		}
		e, _, attempt := f.entryLocked(ref)
		e.Crawl = c.crawlOf(q).id
		x := lostURL{newOp(), e}
		f.endsLocked(x.op, queue, ref)
		if f.events.wanted() {
			x.op.event = &Event{Kind: EventURLGivenUp, Host: string(c.name(c.hosts.at(id))), URL: e.URL, Crawl: e.Crawl, Attempt: attempt, Failure: t.kind, Reason: "host given up"}
		}
		x.op.tally = &c.stats.GivenUp
		urls = append(urls, x)
	}
	c.unload(id, f.last)
	for _, x := range urls {
		f.finishing++
		if f.opts.Spill != nil {
			f.enqueueLocked(x.op)
			continue
		}
		f.applyLocked(x.op)
		f.finishing--
	}
	return urls, o
}

// readLostLocked reads a queue's next URLs, without the lock. It reports whether
// they are in memory now; else they wait for the host's next probe.
func (f *Frontier) readLostLocked(ch choice) bool {
	job := f.jobLocked(ch)
	f.mu.Unlock()
	records, err := f.read(job.part, job.want)
	f.lock()
	f.readEndedLocked()
	if err != nil && f.closed {
		return false
	}
	if err != nil {
		f.emitLocked(Event{Kind: EventStoreError, Reason: "reading URLs", Count: int64(len(records)), Err: err})
		f.core.keepURLs(ch.host) // who takes the next probe gets the error
		return false
	}
	f.core.install(ch.queue, ch.load, records)
	return true
}

// awaitLost waits until the ends of URLs are durable.
func (f *Frontier) awaitLost(urls []lostURL) (err error) {
	for _, x := range urls {
		if f.opts.Spill != nil {
			if e := <-x.op.done; e != nil {
				err = e
			}
		}
		x.op.free()
	}
	return err
}
