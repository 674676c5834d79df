// This file turns scores without a scale into levels.

package importance

import (
	"math"
	"sync/atomic"
)

// ranks knows how the scores of the waiting URLs are distributed, in quarters of an octave, and divides
// them into levels: 30 % are in the lowest, half of the others in the next, and so on.
//
// Safe for concurrent use.
type ranks struct {
	levels  int
	waiting [256]atomic.Int64
	changes atomic.Int64
	levelOf [256]atomic.Uint32 // by score
}

const (
	lowest     = 0.3  // part of what waits that is in level 1
	rankSteps  = 4    // of an octave
	leastScore = -30  // of a seed, as a power of two
	everyRanks = 1024 // changes between two looks at the distribution
)

func newRanks(levels int) *ranks {
	r := &ranks{levels: levels}
	r.divide()
	return r
}

func bin(score float64) int {
	return int(min(255, max(0, (math.Log2(score)-leastScore)*rankSteps)))
}

// level returns the level of a score.
func (r *ranks) level(score float64) int { return int(r.levelOf[bin(score)].Load()) }

// add counts n more URLs with a score.
func (r *ranks) add(score float64, n int64) {
	r.waiting[bin(score)].Add(n)
	if k := r.changes.Add(1); k%everyRanks == 0 || k < everyRanks && k&(k-1) == 0 {
		r.divide()
	}
}

// move counts a URL whose score has changed.
func (r *ranks) move(from, to float64) {
	if bin(from) != bin(to) {
		r.add(from, -1)
		r.add(to, 1)
	}
}

// divide gives each score a level: the lowest to the scores up to which 30 % of the URLs are, the next
// to those up to which half of the rest are.
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
			limit += (1 - limit) / 2
		}
	}
}
