// This file orders by the number of links to a URL.

package importance

import (
	"math/bits"
	"sync/atomic"
)

// byLinks counts the links to each URL. The first link to a URL needs no cell: it is its admission. The
// Weight of an Entry is how many links it stands for; 0 stands for one.
type byLinks struct {
	table  *table[uint16] // a count, or buried
	dice   *dice
	levels int
	base   int // levels below the lowest, for hosts that sink
	keep   bool
	remind atomic.Int64 // links that the frontier learns of again
}

// mostLinks is how many links one may stand for.
const mostLinks = 1 << 20

// buried is the value of a page that was visited: links to it matter no more. It is sought once it is
// linked again, and is kept for longer: else the counts of popular pages would begin anew.
const (
	buried = mostCount + 1
	sought = buried + 1
)

func newByLinks(bytes int64, o *Options, d *dice) *byLinks {
	return &byLinks{table: newTable(bytes, 2, 4, func(v uint16) float64 {
		switch v {
		case buried:
			return 0.25
		case sought:
			return 4
		}
		return count(v).links()
	}, d), dice: d, levels: o.Levels, base: max(0, o.Levels/2-1), keep: o.Keep}
}

// level is base + log2(links + 1): the levels begin at 1, 3, 7, 15 links.
func (s *byLinks) level(links float64) int {
	return min(s.levels, s.base+bits.Len64(uint64(max(1, links))+1)-1)
}

func (s *byLinks) priority(u sight) int {
	if u.fresh { // as most: it has no cell
		return s.level(counts(u))
	}
	return s.deserves(u)
}

func (s *byLinks) deserves(u sight) int { return s.level(s.worth(u)) }

func (s *byLinks) found(u sight) (level int) {
	s.table.update(u.hash(), func(v uint16) uint16 {
		if v >= buried {
			return sought
		}
		before := count(v)
		after := before.add(counts(u), s.dice)
		x := s.level(after.links())
		if x > s.level(before.links()) || x > s.level(1) && s.remind.Load() > 0 && s.remind.Add(-1) >= 0 {
			level = x
		}
		return uint16(after)
	})
	return level
}

func (s *byLinks) rise(u sight) float64 { return s.worth(u) }

func (s *byLinks) visited(u sight) (links float64) {
	links = counts(u)
	s.table.update(u.hash(), func(v uint16) uint16 {
		if v != 0 && v < buried {
			links = max(links, count(v).links())
		}
		if s.keep {
			return v
		}
		return buried
	})
	return links
}

func (s *byLinks) worth(u sight) float64 {
	links := counts(u)
	if v := s.table.value(u.hash()); v != 0 && v < buried {
		links = max(links, count(v).links())
	}
	return links
}

func (s *byLinks) links(u sight) float64 { return s.worth(u) }

func (s *byLinks) covered() float64 { return 0 }

// pass says how many links a link is that counts so much.
func (s *byLinks) pass(_, counts, _ float64) float64 {
	if counts == 1 {
		return 0 // as most: it takes no space
	}
	return max(nothing, counts)
}

// counts returns how many links an entry stands for.
func counts(u sight) float64 {
	switch w := u.weight; {
	case w == 0:
		return 1
	case w > 0:
		return min(w, mostLinks)
	}
	return 0 // NaN, too
}
