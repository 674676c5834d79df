// This file orders by what the seeds give to a URL.

package importance

import "math"

const (
	// passed is the part of a page's cash that its links get together. The rest is lost, as with
	// PageRank's damping.
	passed = 0.85
	// stray is the cash of a URL that was added without a page, in parts of a seed's.
	stray = 0.1
	// nothing is the weight of a link that gives nothing: 0 would be that of a URL without a page.
	nothing = 1.0 / (1 << 40)
)

// byTrust gives cash to URLs. A seed has its Weight, or 1; a visit divides 0.85 of a page's cash among
// its links. A share travels in the Weight of the link's Entry, so the first needs no cell: it is in the
// URL's record. A cell has what came after that, until Rise has added both; from then on it has all.
type byTrust struct {
	table *table[uint32] // purses
	dice  *dice
	ranks *ranks
	keep  bool // a page that was visited has what it got
	flow  flow
}

// purse is a cell: bits 0 to 3 count the links, 4 to 7 hold the level last noted, 8 to 15 the cash.
type purse uint32

const (
	spent      purse = 1 << 16 // the page was visited
	whole      purse = 1 << 17 // the cash includes the first share
	purseWidth       = 18
)

func (p purse) count() count  { return count(p & 15) }
func (p purse) noted() int    { return int(p >> 4 & 15) }
func (p purse) cash() float64 { return cashOf[uint8(p>>8)] }

func newPurse(c count, noted int, cash uint8, flags purse) purse {
	return purse(c) | purse(noted)<<4 | purse(cash)<<8 | flags
}

// rank returns the rank of cash x links^2. A first share that is unknown is taken to be as much as the
// others.
func (p purse) rank() int {
	x := int(p>>8&0xff) + squares[p.count()]
	if p&whole == 0 {
		x += firsts[p.count()]
	}
	return rankOfCash(x)
}

// squares are the squares of the counts, and firsts what an unknown first share adds, in steps of cash.
var squares, firsts = func() (s, f [mostCount + 1]int) {
	for c, links := range steps {
		s[c] = int(math.Round(cashSteps * 2 * math.Log2(links)))
		if c > 0 {
			f[c] = int(math.Round(cashSteps * math.Log2(links/(links-1))))
		}
	}
	return s, f
}()

// Cash is kept in eighths of an octave.
const (
	cashSteps = 8
	leastCash = -26 // a seed has 0
)

// cashOf is what a byte stands for.
var cashOf = func() (of [256]float64) {
	for b := range of {
		of[b] = math.Exp2(float64(b)/cashSteps + leastCash)
	}
	return of
}()

// cashStep returns the step of an amount, with a fraction.
func cashStep(cash float64) float64 { return (math.Log2(cash) - leastCash) * cashSteps }

// rankOfShare returns the rank of a URL with one link.
func rankOfShare(cash float64) int {
	if x := cashStep(cash); x > 0 {
		return rankOfCash(int(min(255, x)))
	}
	return 0
}

// cashByte rounds cash at random so that its mean is right.
func cashByte(cash float64, d *dice) uint8 {
	x := cashStep(cash)
	if !(x > 0) {
		return 0
	}
	if x >= 255 {
		return 255
	}
	b := uint8(x)
	low, high := cashOf[b], cashOf[b+1]
	if d.roll()*(high-low) < cash-low {
		b++
	}
	return b
}

func newByTrust(bytes int64, o *Options, d *dice) *byTrust {
	s := &byTrust{dice: d, ranks: newRanks(o.Levels), keep: o.Keep}
	s.table = newTable(bytes, 4, purseWidth, func(v uint32) float64 {
		if purse(v)&spent != 0 && !s.keep {
			return math.SmallestNonzeroFloat64
		}
		links := purse(v).count().links()
		return purse(v).cash() * links * links
	}, d)
	s.table.lost = func(v uint32) {
		if p := purse(v); p&spent == 0 { // the URL is one with its first share again
			s.ranks.move(p.rank(), rankOfShare(p.cash()/p.count().links()))
		}
	}
	return s
}

// share returns the cash in an entry.
func share(u sight) float64 {
	switch {
	case u.weight > 0:
		return min(u.weight, cashOf[255])
	case u.seed:
		return 1
	}
	return stray
}

func (s *byTrust) priority(u sight) int {
	p := purse(s.table.value(u.hash()))
	if p == 0 && u.fresh {
		s.ranks.add(rankOfShare(share(u)), 1)
		s.flow.known(share(u))
	}
	return s.levelOf(p, u)
}

func (s *byTrust) deserves(u sight) int {
	return s.levelOf(purse(s.table.value(u.hash())), u)
}

// levelOf returns the level of a URL with or without a purse.
func (s *byTrust) levelOf(p purse, u sight) int {
	if p == 0 {
		return s.ranks.level(rankOfShare(share(u)))
	}
	return s.ranks.level(p.rank())
}

func (s *byTrust) found(u sight) (level int) {
	x := share(u)
	s.table.update(u.hash(), func(v uint32) uint32 {
		p := purse(v)
		cash, before := x, rankOfShare(x)
		if p != 0 {
			cash, before = p.cash()+x, p.rank()
		} else {
			s.ranks.add(before, -1) // Priority took it for a new one
			s.flow.known(-x)
		}
		p = newPurse(p.count().add(1, s.dice), p.noted(), cashByte(cash, s.dice), p&(spent|whole))
		if p&spent != 0 {
			return uint32(p)
		}
		if p&whole != 0 {
			s.flow.known(x)
		}
		after := p.rank()
		s.ranks.move(before, after)
		if l := s.ranks.level(after); l > p.noted()+1 && l >= min(3, s.ranks.levels) { // a move has its price
			level = l
			p = newPurse(p.count(), min(l, 15), uint8(p>>8), p&whole)
		}
		return uint32(p)
	})
	return level
}

func (s *byTrust) rise(u sight) (cash float64) {
	cash = share(u)
	s.table.update(u.hash(), func(v uint32) uint32 {
		p := purse(v)
		switch {
		case p == 0:
			return v
		case p&whole != 0:
			cash = max(cash, p.cash())
			return v
		}
		cash += p.cash()
		s.flow.known(p.cash())
		after := newPurse(p.count(), p.noted(), cashByte(cash, s.dice), p&spent|whole)
		s.ranks.move(p.rank(), after.rank())
		return uint32(after)
	})
	return cash
}

func (s *byTrust) visited(u sight) (cash float64) {
	cash = share(u)
	s.table.update(u.hash(), func(v uint32) uint32 {
		p := purse(v)
		switch {
		case p == 0:
			if u.first {
				s.ranks.add(rankOfShare(cash), -1)
			}
			return 0
		case p&whole != 0:
			cash = p.cash()
		default:
			cash += p.cash()
			s.flow.known(p.cash())
		}
		if p&spent == 0 {
			s.ranks.add(p.rank(), -1)
		}
		left := uint8(0)
		if s.keep {
			left = cashByte(cash, s.dice)
		}
		return uint32(newPurse(p.count(), 15, left, spent|whole))
	})
	if u.first { // else it was fetched with what it had then
		s.flow.fetched(cash)
	}
	return cash
}

func (s *byTrust) worth(u sight) float64 {
	if p := purse(s.table.value(u.hash())); p&whole != 0 {
		return p.cash()
	} else if p != 0 {
		return share(u) + p.cash()
	}
	return share(u)
}

func (s *byTrust) links(u sight) float64 { return purse(s.table.value(u.hash())).count().links() }

func (s *byTrust) covered() float64 { return s.flow.covered() }

// pass returns a link's part of a page's cash, if it counts so much of the sum of all.
func (s *byTrust) pass(cash, counts, sum float64) float64 {
	if sum <= 0 {
		return nothing
	}
	return max(nothing, passed*cash*counts/sum)
}
