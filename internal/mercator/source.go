// This file shows the queues to a round of moving: see package move.

package mercator

import (
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/storage"
)

// Source is the part of a move.Source that needs the hosts only.
type Source struct{ c *Core }

// Source returns the hosts as a round of moving sees them.
func (s *Core) Source() Source { return Source{s} }

func (s Source) Top() uint32 { return s.c.Queues.Top }

func (s Source) Queue(id uint32) move.Queue {
	if q := s.c.Queues.At(id); q.Host != 0 {
		return move.Queue{Queue: &q.Queue, Priority: q.Priority, Listed: &q.Listed}
	}
	return move.Queue{}
}

func (s Source) Name(id uint32, names []byte) (storage.Queue, []byte) {
	c := s.c
	q := c.Queues.At(id)
	at := len(names)
	names = append(names, c.Name(c.Hosts.At(q.Host))...)
	host := names[at:] // nothing is written to these bytes any more
	return storage.Queue{Host: hostkey.String(host), Crawl: c.CrawlOf(q).ID, Priority: q.Priority}, names
}

func (s Source) Leased(id uint32, to []move.Leased) []move.Leased {
	c := s.c
	for lease := range c.LeasesOf(c.Queues.At(id).Host) {
		if l := c.Leases.At(lease); l.Queue == id && l.Record != 0 {
			to = append(to, move.Leased{Ref: l.Record, Others: l.Prev != 0 || l.Next != 0})
		}
	}
	return to
}

func (s Source) Finishing(id uint32) bool {
	c := s.c
	return c.Hosts.At(c.Queues.At(id).Host).Pins > 0
}

func (s Source) Dead(id uint32) uint64 { return s.c.DeadStored(s.c.Queues.At(id)).Seq }

func (s Source) DeadOf(q storage.Queue) uint64 {
	return s.c.StoredTombstones.Of(hostkey.Bytes(q.Host), q.Crawl).Seq
}

func (s Source) Trim(id uint32) (more bool) { return s.c.Trim(id) }
