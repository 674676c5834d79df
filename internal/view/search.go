// This file searches for one URL: among the leases of its host, among what waits for its time or its
// turn in memory, and in what was read from disk.

package view

import (
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
)

// State is where a URL was found.
type State uint8

const (
	Nowhere   State = iota // it was not found
	Waiting                // for its turn
	Leased                 // handed out
	Scheduled              // for a date
)

// Found is a URL that was found.
type Found struct {
	State    State
	Body     []byte
	Priority int
	At       int64 // the deadline of its lease, or the date for which it is scheduled
}

// Search is a search for a URL of a host and crawl. What was deleted it does not find, except leases.
type Search struct {
	Found
	*fifo.Walk        // through the queues of the host; nil: the host is not in memory
	Parts      []Part // on disk, in which the URL may wait

	Host  string
	Crawl uint32

	core *mercator.Core
	url  []byte
	scan *timed.Scan
}

// NewSearch returns a search that has not begun.
func NewSearch(c *mercator.Core, host string, crawl uint32, url []byte) *Search {
	return &Search{Host: host, Crawl: crawl, core: c, url: url}
}

// Begin begins at the leases, of records with sequence numbers above after. Call End afterwards.
func (s *Search) Begin(after uint64) {
	c := s.core
	s.Walk, s.Parts, s.scan = nil, s.Parts[:0], timed.NewScan()
	id := c.Lookup(c.HashOf(s.Host), s.Host)
	if id == 0 {
		return
	}
	s.Walk = c.BeginWalk(id, func(q *mercator.Queue) bool { return c.CrawlNumber(q) == s.Crawl })
	s.URL, s.Part = s.url, Note(c, &s.Parts)
	s.Record = func(queue uint32, ref arena.Ref) (more bool) {
		if s.matches(ref) {
			s.found(Waiting, c.Queues.At(queue), ref, 0)
		}
		return s.State == Nowhere
	}
	s.leased(id, after)
}

// End ends the walks that have begun.
func (s *Search) End() {
	if s.Walk != nil {
		s.core.EndWalk(s.Walk)
		s.core.Scheduled.EndScan(s.scan)
	}
}

func (s *Search) leased(id uint32, after uint64) {
	c := s.core
	if l := c.Search(id, s.Crawl, s.url, after).Lease(); l != nil {
		s.found(Leased, c.Queues.At(l.Queue), l.Record, l.Deadline)
	}
}

func (s *Search) found(state State, q *mercator.Queue, ref arena.Ref, at int64) {
	s.Found = Found{state, slices.Clone(s.core.Records.At(ref).Body()), s.core.PriorityOf(q), at}
}

// matches reports whether a record in memory is the URL.
func (s *Search) matches(ref arena.Ref) bool {
	return s.core.Records.HasURL(ref, s.url) && !s.core.Deleted(s.Host, s.Crawl, s.core.Records.At(ref).Seq())
}

// LookScheduled looks at up to n of the records in memory that wait for their time, and reports whether
// there are more.
func (s *Search) LookScheduled(n int) (more bool) {
	c := s.core
	if s.Walk == nil || s.Owner == 0 || s.State != Nowhere {
		return false
	}
	if c.Hosts.At(s.Owner).Scheduled <= AtOnce {
		if i, ok := c.Search(s.Owner, s.Crawl, s.url, c.DeletedUpTo(s.Host, s.Crawl)).Scheduled(); ok {
			it := c.Scheduled.Items[i]
			s.found(Scheduled, c.Queues.At(it.Aux), arena.Ref(it.ID), it.At)
		}
		return false
	}
	return !c.Scheduled.Look(s.scan, n, func(it timeheap.Item) bool {
		if q := c.Queues.At(it.Aux); q.Host == s.Owner && c.CrawlNumber(q) == s.Crawl && s.matches(arena.Ref(it.ID)) {
			s.found(Scheduled, q, arena.Ref(it.ID), it.At)
		}
		return s.State == Nowhere
	})
}

// Step goes on with the walk through what waits, for a number of steps, and reports whether there are
// more.
func (s *Search) Step(n int) (more bool) {
	return s.Walk != nil && s.State == Nowhere && s.core.Fifo.Step(s.Walk, n)
}

// Has reports whether a record that was read has the URL. It needs no lock.
func (s *Search) Has(r fifo.Loaded) bool { return record.HasURL(r.Body, s.url) }

// Read looks at the records of a part that were read. after is as in Begin: the URL may have been
// leased since.
func (s *Search) Read(p *Part, records []fifo.Loaded, after uint64) {
	c := s.core
	for _, r := range records {
		if !s.Has(r) || c.Blocks.IsDead(p.Block, int(p.First)+r.Pos) || c.Deleted(s.Host, s.Crawl, r.Seq) {
			continue
		}
		s.Found = Found{State: Waiting, Body: r.Body, Priority: p.Priority}
		if id := c.Lookup(c.HashOf(s.Host), s.Host); id != 0 {
			s.leased(id, after)
		}
	}
}

// IsOf reports whether a record of a timed block is the URL. It needs no lock.
func (s *Search) IsOf(r *storage.TimedRecord) bool {
	return r.Crawl == s.Crawl && r.Host == s.Host && record.HasURL(r.Body, s.url)
}

// Take takes such a record for the URL.
func (s *Search) Take(r *timed.Loaded) { s.Found = Found{Scheduled, r.Body, int(r.Priority), r.At} }
