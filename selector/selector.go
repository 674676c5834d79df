// Package selector has the ways of choosing among front queues: from which priority the
// next URL comes. Mercator's biased random choice is BiasedRandom, the default of a
// frontier.
//
// A Selector sees only which priorities have something to offer. The share of
// a priority is its share of hand-outs while all of its rivals have something.
// With several crawls it is asked for the one whose turn it is. A Selector belongs to one
// frontier, which calls it under its lock: one goroutine at a time.
package selector

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// Selector chooses the priority of the next hand-out. Select is called with the
// frontier's lock held: it must be quick and must not call the frontier. A
// selector belongs to one frontier.
type Selector interface {
	// Select returns an element of available: the priorities, ascending, of
	// which a URL may be had. It is never empty, and valid only during the call.
	Select(available []int) int
}

// Func makes a function a Selector.
type Func func(available []int) int

// Select calls the function.
func (f Func) Select(available []int) int { return f(available) }

// Check says what is wrong with a Selector for priorities 1 to levels; nil of one of
// another package.
func Check(s Selector, levels int) error {
	if c, ok := s.(interface{ check(levels int) error }); ok {
		return c.check(levels)
	}
	return nil
}

// IsStrict reports whether a Selector is Strict's: a frontier finds its choice without
// asking it.
func IsStrict(s Selector) bool { _, ok := s.(strict); return ok }

// BiasedRandom picks priority f with a probability proportional to f among the
// available ones: Mercator's choice, biased to high priority, starving none.
// The same seed gives the same sequence. It is the default, randomly seeded.
func BiasedRandom(seed uint64) Selector {
	r := rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15))
	return Func(func(available []int) int {
		sum := 0
		for _, p := range available {
			sum += p
		}
		x := r.IntN(sum)
		for _, p := range available {
			if x -= p; x < 0 {
				return p
			}
		}
		return available[len(available)-1]
	})
}

// Strict always picks the highest available priority. It starves the lower ones
// for as long as higher ones have something to offer.
func Strict() Selector { return strict{} }

type strict struct{}

func (strict) Select(available []int) int { return available[len(available)-1] }

// Uniform picks each available priority with the same probability.
func Uniform(seed uint64) Selector {
	r := rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15))
	return Func(func(available []int) int { return available[r.IntN(len(available))] })
}

// RoundRobin takes the available priorities in turn, from the highest down.
func RoundRobin() Selector {
	last := 0
	return Func(func(available []int) int {
		next := available[len(available)-1]
		for _, p := range available {
			if p < last {
				next = p // the highest below last, since they ascend
			}
		}
		last = next
		return next
	})
}

type weighted struct {
	weights []int
	credit  []int
}

// Weighted gives priority f the share weights[f-1] of the hand-outs, without
// chance: in any run of them each priority is within one of its share. Open
// refuses weights that are not one for each priority, or not positive.
func Weighted(weights ...int) Selector {
	return &weighted{append([]int(nil), weights...), make([]int, len(weights))}
}

// Select is Tijdeman's solution of the chairman assignment problem (Discrete
// Mathematics 32, 1980): each available priority earns its weight, the pick pays
// what all earned. Picked is, of those that have earned enough, the one that
// would soonest be owed too much. Always to pick the richest is off by more than
// one now and then.
func (w *weighted) Select(available []int) int {
	sum := 0
	for _, p := range available {
		w.credit[p-1] += w.weights[p-1]
		sum += w.weights[p-1]
	}
	k := max(1, 2*len(available)-2)
	best, richest := 0, available[0]
	for _, p := range available {
		if w.credit[p-1] >= w.credit[richest-1] {
			richest = p
		}
		if k*w.credit[p-1] >= sum && (best == 0 || w.left(p, k, sum) <= w.left(best, k, sum)) {
			best = p
		}
	}
	if best == 0 {
		best = richest // what is available has changed
	}
	w.credit[best-1] -= sum
	return best
}

// check says what is wrong with the weights for so many priorities.
func (w *weighted) check(levels int) error {
	var errs []error
	if len(w.weights) != levels {
		errs = append(errs, fmt.Errorf("%d weights; want one for each of %d priorities", len(w.weights), levels))
	}
	for i, x := range w.weights {
		if x < 1 {
			errs = append(errs, fmt.Errorf("the weight of priority %d is %d; want >= 1", i+1, x))
		}
	}
	return errors.Join(errs...)
}

// left is how many hand-outs are left until p is owed too much, times k.
func (w *weighted) left(p, k, sum int) float64 {
	return (float64(k-1)*float64(sum) - float64(k)*float64(w.credit[p-1])) / float64(w.weights[p-1])
}
