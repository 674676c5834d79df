// This file builds selectors from selectors.

package selector

import (
	"errors"
	"fmt"
	"slices"
)

// Tier is a range of consecutive priorities with one Selector. See Cascade.
type Tier struct {
	Levels   int      // number of priorities, at least 1
	Selector Selector // chooses among them, numbered from 1
}

// Cascade builds a Selector from others. It divides the priorities into tiers, the lowest first.
// Among the tiers with an available priority, top chooses one; top, too, sees them numbered from 1.
// The Selector of that tier then chooses a priority within it. A tier may be a Cascade:
//
//	Cascade(Strict(), Tier{2, Mix(seed, 1-p, p)}, Tier{1, Strict()})
//
// takes priority 3 before the others, and mixes those with probability p. Open refuses tiers that
// do not add up to the number of priorities, the same selector in two places, and everything that
// the selectors themselves refuse.
func Cascade(top Selector, tiers ...Tier) Selector {
	return &cascade{top: top, tiers: slices.Clone(tiers)}
}

// maxLevels is the maximum number of priorities of a frontier.
const maxLevels = 64

type cascade struct {
	top    Selector
	tiers  []Tier
	have   [maxLevels]int // tiers with an available priority; scratch
	within [maxLevels]int // priorities of the chosen tier; scratch
}

// Select returns 0, which is not a priority, if one of the selectors chooses what it was not
// offered.
func (c *cascade) Select(available []int) int {
	n, last, rest := 0, 0, available
	for i, tier := range c.tiers {
		last += tier.Levels
		if len(rest) > 0 && rest[0] <= last {
			c.have[n] = i + 1
			n++
		}
		for len(rest) > 0 && rest[0] <= last {
			rest = rest[1:]
		}
	}
	chosen := c.top.Select(c.have[:n])
	if !slices.Contains(c.have[:n], chosen) {
		return 0
	}
	first := 0
	for _, tier := range c.tiers[:chosen-1] {
		first += tier.Levels
	}
	tier, within := c.tiers[chosen-1], c.within[:0]
	for _, p := range available {
		if p > first && p <= first+tier.Levels {
			within = append(within, p-first)
		}
	}
	p := tier.Selector.Select(within)
	if p < 1 || p > tier.Levels {
		return 0
	}
	return first + p
}

// all returns the selectors of the cascade.
func (c *cascade) all() (all []Selector) {
	for _, tier := range c.tiers {
		all = append(all, tier.Selector)
	}
	return append(all, c.top)
}

// take takes all of them, or none.
func (c *cascade) take() bool {
	all := c.all()
	refused := slices.IndexFunc(all, func(s Selector) bool { return !Take(s) })
	for _, s := range all[:max(refused, 0)] {
		Leave(s)
	}
	return refused < 0
}

func (c *cascade) leave() {
	for _, s := range c.all() {
		Leave(s)
	}
}

// check returns an error if the tiers do not fit levels priorities.
func (c *cascade) check(levels int) error {
	var errs []error
	inside := func(name string, s Selector, levels int) {
		if s == nil {
			errs = append(errs, fmt.Errorf("%s has no Selector", name))
		} else if err := Check(s, levels); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	sum := 0
	for i, tier := range c.tiers {
		name := fmt.Sprintf("tier %d", i+1)
		if tier.Levels < 1 || tier.Levels > maxLevels {
			errs = append(errs, fmt.Errorf("%s has %d priorities; want 1 to %d", name, tier.Levels, maxLevels))
			continue
		}
		sum += tier.Levels
		inside(name, tier.Selector, tier.Levels)
	}
	inside("the choice of a tier", c.top, len(c.tiers))
	if len(errs) == 0 && sum != levels {
		errs = append(errs, fmt.Errorf("the tiers have %d priorities; want %d", sum, levels))
	}
	return errors.Join(errs...)
}
