// This file holds what a frontier tells about itself.

package frontier

// Stats is a snapshot of counters. It is a slog.LogValuer, and Var has it for
// package expvar. Taking one costs O(Priorities).
type Stats struct {
	Waiting   int64   // URLs that may be handed out as soon as their hosts may be contacted
	WaitingBy []int64 // the same by priority: WaitingBy[p-1] for priority p
	Immediate int64   // of Waiting: those of CrawlNow, which WaitingBy has not
	Held      int64   // of Waiting: those of hosts that were found to be paused, blocked or at a limit, and of crawls that are paused or at one
	Scheduled int64   // URLs with a future time, or whose time came and that are still to be read
	Leased    int64   // leases out, those for contact only included
	Hosts     int64   // hosts of which something is in memory
	Bound     int64   // hosts that have a back queue
	Groups    int64   // groups of hosts
	// Of Hosts:
	BackedOff   int64 // hosts that failures slowed down
	Quarantined int64 // hosts that are merely probed
	Known       int64 // URLs remembered as admitted

	// Since Open:
	Added      int64    // URLs admitted for the first time, or by Force
	Duplicates int64    // entries refused because they were known
	Refused    int64    // entries refused because of limits
	HandedOut  int64    // leases, those for contact only included
	Done       [8]int64 // Done calls by Result
	Retried    int64    // failed URLs that were scheduled again
	GivenUp    int64    // URLs whose tries were used up, or whose hosts were given up
	Deleted    int64    // URLs that Delete and DeleteCrawl removed
	Expired    int64    // leases that ended by their deadline
	Unreadable int64    // URLs in blocks that are damaged; they stay on disk
	EventsLost int64    // events that were not told because OnEvent was slow

	Rates   Rates       // what happens each second
	Waits   Histogram   // how long URLs waited that were handed out, since Open, but for those that waited before it
	WaitsBy []Histogram // the same by priority, like WaitingBy

	Resident    int64 // bytes of URLs in memory
	MemoryBytes int64 // bytes that the frontier holds of the system's memory, and its Spill at most
}

// Stats returns the present figures.
func (f *Frontier) Stats() Stats {
	f.lock()
	defer f.mu.Unlock()
	f.core.advance(f.nowLocked())
	f.wakeReaderLocked()
	return f.statsLocked()
}

func (f *Frontier) statsLocked() Stats {
	s := f.core.stats
	s.Held = f.core.heldURLs()
	s.WaitingBy = append([]int64(nil), s.WaitingBy...)
	s.Rates = f.rates.over(f.last, &s)
	s.Waits, s.WaitsBy = f.core.waits.all, append([]Histogram(nil), f.core.waits.by...)
	s.Hosts = int64(f.core.hosts.len())
	s.Groups = int64(f.core.groups.len())
	s.Known = f.known.total
	p := &f.core.places
	s.EventsLost = f.events.lostSoFar()
	s.Bound = int64(p[pacing] + p[queued] + p[ready] + p[called] + p[loading] + p[leased])
	s.Resident = f.core.resident
	s.MemoryBytes = f.memoryLocked() + f.footprint
	return s
}

// memoryLocked is how many bytes the frontier's structures take, Spill excepted.
func (f *Frontier) memoryLocked() int64 {
	return f.core.memory() + f.known.size() + f.notes.size() + f.hints.size() + f.urlRanges.size() + f.logMarks.size()
}

// fixedLocked is how much of that cannot give way: it is neither URLs, nor marks
// that the Spill has too.
func (f *Frontier) fixedLocked() int64 {
	c := f.core
	return f.memoryLocked() - f.known.popular.Size() - c.mem.Size() + c.mem.Used() - c.resident
}

// memory is how many bytes the frontier's own structures take.
func (c *core) memory() int64 {
	return c.mem.Size() + c.names.Size() + c.hosts.size() + c.queues.size() + c.parts.size() + c.touchedParts.size() + c.leases.size() +
		c.hostLanes.size() + int64(len(c.laned))*lanesBytes +
		c.groups.size() + c.groupIndex.size() + c.grouped.size() + int64(cap(c.lonely))*4 + c.distanceBytes +
		c.waits.size() + c.index.size() + c.order.size() +
		c.sizes.size() + c.held.size() + c.limits.size() + c.controls.size() + c.blocks.size() +
		c.pace.Size() + c.parks.Size() + c.idle.Size() + c.expiry.Size() + c.scheduled.Size() +
		c.offers.Size() + c.urgent.Size() + int64(len(c.homed))*homedSize + int64(len(c.crawls))*c.crawlBytes() +
		c.rows.Size() + c.departures.size() + c.timed.size() + int64(cap(c.unplaced))*16 +
		int64(len(c.troubles))*troubleBytes
}
