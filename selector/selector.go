// Package selector provides the policies that choose among front queues: which priority the next
// URL is taken from. The default of a frontier is BiasedRandom, Mercator's biased random choice.
//
// A Selector sees only which priorities have a URL available. The share of a priority is its share
// of hand-outs while all others have URLs available, too. If there are several crawls, the Selector
// chooses within the crawl whose turn it is. A Selector belongs to one frontier, which calls it
// under its lock from one goroutine at a time. Open refuses a Selector of this package that an open
// frontier has; Strict has no state and may be shared.
package selector

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/seed-7440039f/frontier/internal/faults"
)

// Selector chooses the priority of the next hand-out. The frontier calls Select with its lock held,
// that of another package in a goroutine of its own, which takes about 1 us: Select must be fast and
// must not call the frontier. A Selector belongs to one frontier.
type Selector interface {
	// Select returns an element of available, which lists the priorities with an available URL in
	// ascending order. available is never empty, and is valid only during the call.
	Select(available []int) int
}

// Func is a function that implements Selector.
type Func func(available []int) int

// Select calls the function.
func (f Func) Select(available []int) int { return f(available) }

// Check returns an error if s does not fit priorities 1 to levels. For a Selector from another
// package it returns nil.
func Check(s Selector, levels int) error {
	if c, ok := s.(interface{ check(levels int) error }); ok {
		return c.check(levels)
	}
	return nil
}

// Take gives s to a frontier, until Leave. It returns false if another one has it. A Selector from
// another package, and Strict, may be taken any number of times.
func Take(s Selector) bool {
	c, ok := s.(interface{ take() bool })
	return !ok || c.take()
}

// Leave ends what Take began.
func Leave(s Selector) {
	if c, ok := s.(interface{ leave() }); ok {
		c.leave()
	}
}

// owned is a part of Selectors with state.
type owned struct{ taken atomic.Bool }

func (o *owned) take() bool { return o.taken.CompareAndSwap(false, true) }
func (o *owned) leave()     { o.taken.Store(false) }

// IsCalm reports whether Select never panics: it is of this package, and so are those that it asks.
func IsCalm(s Selector) bool {
	switch s := s.(type) {
	case *biased, strict, *uniform, *roundRobin, *weighted, *Mixture:
		return true
	case *cascade:
		return !slices.ContainsFunc(s.all(), func(s Selector) bool { return !IsCalm(s) })
	}
	return false
}

// IsStrict reports whether s was made by Strict. A frontier can then choose without calling it.
func IsStrict(s Selector) bool { _, ok := s.(strict); return ok }

// BiasedRandom picks an available priority f with a probability proportional to f. This is
// Mercator's choice: biased towards high priorities, but starving none. The same seed gives the
// same sequence. It is a frontier's default, with a random seed.
func BiasedRandom(seed uint64) Selector { return &biased{random: random(seed)} }

type biased struct {
	owned
	random *rand.Rand
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15)) }

// Select implements Selector.
func (b *biased) Select(available []int) int {
	sum := 0
	for _, p := range available {
		sum += p
	}
	x := b.random.IntN(sum)
	for _, p := range available {
		if x -= p; x < 0 {
			return p
		}
	}
	return available[len(available)-1]
}

// Strict always picks the highest available priority. Lower priorities starve while higher ones are
// available.
func Strict() Selector { return strict{} }

type strict struct{}

func (strict) Select(available []int) int { return available[len(available)-1] }

// Uniform picks each available priority with the same probability.
func Uniform(seed uint64) Selector { return &uniform{random: random(seed)} }

type uniform struct {
	owned
	random *rand.Rand
}

// Select implements Selector.
func (u *uniform) Select(available []int) int { return available[u.random.IntN(len(available))] }

// RoundRobin picks the available priorities in turn, from the highest down.
func RoundRobin() Selector { return &roundRobin{} }

type roundRobin struct {
	owned
	last int
}

// Select implements Selector.
func (r *roundRobin) Select(available []int) int {
	next := available[len(available)-1]
	for _, p := range available {
		if p < r.last {
			next = p // the highest below last, since they ascend
		}
	}
	r.last = next
	return next
}

type weighted struct {
	owned
	weights []int
	credit  []int
}

// Weighted gives priority f the share weights[f-1] of the hand-outs, deterministically: in any run
// of hand-outs, each priority gets its share to within one. Open refuses weights that are not
// positive, and a number of weights other than the number of priorities.
func Weighted(weights ...int) Selector {
	return &weighted{weights: append([]int(nil), weights...), credit: make([]int, len(weights))}
}

// Select implements Tijdeman's solution of the chairman assignment problem (Discrete Mathematics
// 32, 1980): each available priority earns its weight, and the picked one pays what all have
// earned. Among the priorities that have earned enough, Select picks the one that would otherwise
// be owed too much soonest. Picking always the richest would sometimes be off by more than one.
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
		best = richest // the set of available priorities has changed
	}
	w.credit[best-1] -= sum
	return best
}

// check returns an error if the weights do not fit levels priorities.
func (w *weighted) check(levels int) error {
	var wrong faults.List
	wrong.If(len(w.weights) != levels, "%d weights; want one for each of %d priorities", len(w.weights), levels)
	for i, x := range w.weights {
		wrong.If(x < 1, "the weight of priority %d is %d; want >= 1", i+1, x)
	}
	return errors.Join(wrong...)
}

// left returns the number of hand-outs until p is owed too much, times k.
func (w *weighted) left(p, k, sum int) float64 {
	return (float64(k-1)*float64(sum) - float64(k)*float64(w.credit[p-1])) / float64(w.weights[p-1])
}
