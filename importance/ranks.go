// This file turns scores without a scale into levels.

package importance

import "sync/atomic"

// ranks knows how the scores of the waiting URLs are distributed, in quarters of an octave, and divides
// them into levels: 15 % are in the lowest, 55 % of the others in the next, and so on.
//
// Safe for concurrent use.
type ranks struct {
	levels  int
	waiting [ranksSize]atomic.Int64
	changes atomic.Int64
	levelOf [ranksSize]atomic.Uint32 // by rank
}

const (
	lowest     = 0.15 // part of what waits that is in level 1
	next       = 0.55 // part of the others that is in the next level
	ranksSize  = 256
	everyRanks = 1024 // changes between two looks at the distribution
)

func newRanks(levels int) *ranks {
	r := &ranks{levels: levels}
	r.divide()
	return r
}

// rankOfCash returns the rank of an amount of cash, in its steps. A rank is a quarter of an octave.
func rankOfCash(steps int) int { return steps / 2 }

// level returns the level of a rank.
func (r *ranks) level(rank int) int { return int(r.levelOf[rank].Load()) }

// add counts n more URLs with a rank.
func (r *ranks) add(rank int, n int64) {
	r.waiting[rank].Add(n)
	if k := r.changes.Add(1); k%everyRanks == 0 || k < everyRanks && k&(k-1) == 0 {
		r.divide()
	}
}

// move counts a URL whose rank has changed.
func (r *ranks) move(from, to int) {
	if from != to {
		r.add(from, -1)
		r.add(to, 1)
	}
}

// divide gives each rank a level: the lowest to the ranks up to which 15 % of the URLs are, the next
// to those up to which 55 % of the rest are.
func (r *ranks) divide() {
	total := int64(0)
	for i := range r.waiting {
		total += max(0, r.waiting[i].Load())
	}
	level, sum := 1, int64(0)
	limit := lowest
	for i := range r.waiting {
		r.levelOf[i].Store(uint32(level))
		sum += max(0, r.waiting[i].Load())
		for total > 0 && level < r.levels && float64(sum) >= limit*float64(total) {
			level++
			limit += (1 - limit) * next
		}
	}
}
