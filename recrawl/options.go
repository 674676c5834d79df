// This file holds what a Scheduler is told.

package recrawl

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Options configure a Scheduler. The zero value is ready to use.
type Options struct {
	// Budget is how many fetches per second there may be. Zero means that it is
	// measured: see Scheduler.SetBudget.
	Budget float64
	// MinInterval is the least time between two fetches of a page, and the first
	// wait after a failure. Zero means 1 minute.
	MinInterval time.Duration
	// MaxInterval is the greatest time between two fetches of a page that has a
	// weight: what the crawl promises to cover. Zero means 365 days. A price can
	// use what a lower one takes: 60 days are a loss of 0 to 2 % in freshness.
	MaxInterval time.Duration
	// Probe is after how long a page that changed, and may change at every fetch, is
	// fetched once more to see whether it does; and a page that was gone or
	// denied, to see whether it still is, if its interval is not longer. Zero means 1 hour.
	Probe time.Duration
	// Prior is what is expected of the rate of a page at its first fetch. Zero
	// means Gamma{0.5, 15}: one change in 30 days, and little certainty.
	Prior Gamma
	// NewShareMin and NewShareMax bound the share of the fetches that go to pages
	// never crawled, while there are any. Zero means 0 and 1: the price decides.
	NewShareMin, NewShareMax float64
	// Burst is how much of the budget may be spent at once after a pause, as a
	// time: Recheck lets through so much at once, and then 1.25 times the budget.
	// Zero means 1 hour. It holds only if the budget is set.
	Burst time.Duration
	// Seed makes the rounding repeat itself. Two schedulers with the same seed
	// that see the same give the same answers.
	Seed uint64
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&o.MinInterval, time.Minute)
	set(&o.MaxInterval, 365*24*time.Hour)
	set(&o.Probe, time.Hour)
	set(&o.Burst, time.Hour)
	if o.Prior == (Gamma{}) {
		o.Prior = Gamma{0.5, 15}
	}
	if o.NewShareMax == 0 {
		o.NewShareMax = 1
	}
	return o
}

func (o Options) validate() error { // runs after withDefaults
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(checkBudget(o.Budget) != nil, "Budget is %v; want a finite number >= 0", o.Budget)
	fault(o.MinInterval < time.Second, "MinInterval is %v; want >= 1s", o.MinInterval)
	fault(o.MaxInterval < o.MinInterval || o.MaxInterval > maxInterval, "MaxInterval is %v; want MinInterval (%v) to %v", o.MaxInterval, o.MinInterval, maxInterval)
	fault(o.Probe < time.Second, "Probe is %v; want >= 1s", o.Probe)
	fault(o.Burst < 0, "Burst is %v; want >= 0", o.Burst)
	fault(!(o.Prior.Alpha >= leastAlpha && o.Prior.Alpha <= mostAlpha), "Prior.Alpha is %v; want %v to %v", o.Prior.Alpha, leastAlpha, mostAlpha)
	fault(!(o.Prior.Beta > 0) || !(o.Prior.Mean() >= leastRate && o.Prior.Mean() <= leastRate*rateSpan),
		"Prior.Beta is %v days; want a mean rate of 1e-4 to 1e4 per day", o.Prior.Beta)
	fault(!(o.NewShareMin >= 0 && o.NewShareMin <= o.NewShareMax && o.NewShareMax <= 1),
		"NewShareMin and NewShareMax are %v and %v; want 0 <= min <= max <= 1", o.NewShareMin, o.NewShareMax)
	return errors.Join(errs...)
}

// maxInterval is the greatest MaxInterval.
const maxInterval = 100 * 365 * 24 * time.Hour

func checkBudget(perSecond float64) error {
	if !(perSecond >= 0) || math.IsInf(perSecond, 1) {
		return fmt.Errorf("recrawl: a budget of %v fetches per second; want a finite number >= 0", perSecond)
	}
	return nil
}
