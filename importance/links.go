// This file orders by the number of links to a URL.

package importance

import (
	"math/bits"

	"github.com/seed-7440039f/frontier"
)

// byLinks counts the links to each URL. The first link to a URL needs no cell: it is its admission. The
// Weight of an Entry is how many links it stands for; 0 stands for one.
type byLinks struct {
	table  *table[uint16] // a count, or buried
	dice   *dice
	levels int
	keep   bool
}

// buried is the value of a page that was visited: links to it matter no more.
const buried = mostCount + 1

func newByLinks(bytes int64, o *Options, d *dice) *byLinks {
	return &byLinks{newTable(bytes, 2, 4, func(v uint16) float64 {
		if v == buried {
			return 0.25
		}
		return count(v).links()
	}, d), d, o.Levels, o.Keep}
}

// level is 1 for one link, and one more for each doubling.
func (s *byLinks) level(links float64) int {
	return min(s.levels, bits.Len64(uint64(min(max(1, links), 1<<32))))
}

func (s *byLinks) priority(hash uint64, e *frontier.Entry, h *frontier.History) int {
	links := e.Weight
	if *h != (frontier.History{}) {
		links = max(links, s.worth(hash, e))
	}
	return s.level(links)
}

func (s *byLinks) found(hash uint64, e *frontier.Entry) (level int) {
	s.table.update(hash, func(v uint16) uint16 {
		if v == buried {
			return v
		}
		before := count(v)
		after := before.add(counts(e), s.dice)
		if x := s.level(after.links()); x > s.level(before.links()) {
			level = x
		}
		return uint16(after)
	})
	return level
}

func (s *byLinks) rise(hash uint64, e *frontier.Entry) float64 { return s.worth(hash, e) }

func (s *byLinks) visited(hash uint64, l *frontier.Lease) (links float64) {
	links = counts(&l.Entry)
	s.table.update(hash, func(v uint16) uint16 {
		if v != buried {
			links = max(links, count(v).links())
		}
		if s.keep {
			return v
		}
		return buried
	})
	return links
}

func (s *byLinks) worth(hash uint64, e *frontier.Entry) float64 {
	links := counts(e)
	if v := s.table.value(hash); v != buried {
		links = max(links, count(v).links())
	}
	return links
}

// pass says how many links a link is that counts so much.
func (s *byLinks) pass(_, counts, _ float64) float64 {
	if counts == 1 {
		return 0 // as most: it takes no space
	}
	return max(nothing, counts)
}

// counts returns how many links an entry stands for.
func counts(e *frontier.Entry) float64 {
	if e.Weight == 0 {
		return 1
	}
	return e.Weight
}
