// This file finds a URL among those of its host in memory. There is no index of URLs.

package mercator

import (
	"iter"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/fifo"
)

// QueuesOf returns the queues of a host, by their numbers.
func (c *Core) QueuesOf(host uint32) iter.Seq2[uint32, *Queue] {
	return func(yield func(uint32, *Queue) bool) {
		for id := c.Hosts.At(host).Queues; id != 0; id = c.Queues.At(id).Sibling {
			if !yield(id, c.Queues.At(id)) {
				return
			}
		}
	}
}

// Search is a search for a URL of a host and crawl.
type Search struct {
	c     *Core
	host  uint32
	crawl uint32
	url   []byte
	after uint64
}

// Search begins a search for a URL whose sequence number is above after.
func (c *Core) Search(host, crawl uint32, url []byte, after uint64) Search {
	return Search{c, host, crawl, url, after}
}

// matches reports whether a record of a queue is the URL.
func (s *Search) matches(q *Queue, ref arena.Ref) bool {
	r := &s.c.Records
	return s.c.CrawlNumber(q) == s.crawl && r.HasURL(ref, s.url) && r.At(ref).Seq() > s.after
}

// Lease returns the lease of the URL; nil if there is none.
func (s Search) Lease() *Lease {
	for id := range s.c.LeasesOf(s.host) {
		if l := s.c.Leases.At(id); l.Record != 0 && s.matches(s.c.Queues.At(l.Queue), l.Record) {
			return l
		}
	}
	return nil
}

// Waiting returns the queue and place in which the URL waits.
func (s Search) Waiting() (queue uint32, p fifo.Place, ok bool) {
	for id, q := range s.c.QueuesOf(s.host) {
		if s.c.CrawlNumber(q) != s.crawl {
			continue
		}
		if p, ok := s.c.Fifo.Find(&q.Queue, s.url, s.after); ok {
			return id, p, true
		}
	}
	return 0, p, false
}

// Scheduled returns the place of the URL among those that wait for their time.
func (s Search) Scheduled() (i int, ok bool) {
	if s.c.Hosts.At(s.host).Scheduled == 0 {
		return 0, false
	}
	for id, q := range s.c.QueuesOf(s.host) {
		for i := range s.c.Scheduled.Of(id) {
			if s.matches(q, arena.Ref(s.c.Scheduled.Items[i].ID)) {
				return i, true
			}
		}
	}
	return 0, false
}
