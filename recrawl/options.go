// This file holds the options of a Scheduler.

package recrawl

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Options configure a Scheduler. The zero value is ready to use.
type Options struct {
	// Budget is the number of fetches per second. Zero means that it is measured: see
	// Scheduler.SetBudget.
	Budget float64
	// MinInterval is the shortest time between two fetches of a page, and the first wait after a
	// failure. Zero means 1 minute.
	MinInterval time.Duration
	// MaxInterval is the longest time between two fetches of a page with a weight above 0: the
	// coverage that the crawl promises. A short one uses fetches that the price could spend better:
	// 60 days cost 0 to 2 % of the freshness. Zero means 365 days.
	MaxInterval time.Duration
	// Probe is the time after which a page that changed, and may change at every fetch, is fetched
	// again to find out. A page that was gone or denied is fetched again after this time, or after
	// its interval if that is longer. Zero means 1 hour.
	Probe time.Duration
	// Prior is the assumed distribution of the rate of a page before its first fetch. Zero means
	// Gamma{0.5, 15}: one change in 30 days, with little certainty.
	Prior Gamma
	// NewShareMin and NewShareMax limit the share of the fetches that go to never-crawled pages,
	// while there are any. Zero means 0 and 1: the price decides.
	NewShareMin, NewShareMax float64
	// Burst is the part of the budget that may be spent at once after a pause, as a time: Recheck
	// lets that many fetches through at once, and then 1.25 times the budget. It applies only if
	// the budget is set. Zero means 1 hour.
	Burst time.Duration
	// Seed seeds the random rounding. Two schedulers with the same seed and the same calls return
	// the same results.
	Seed uint64
}

func (o Options) withDefaults() Options {
	o.MinInterval = cmp.Or(o.MinInterval, time.Minute)
	o.MaxInterval = cmp.Or(o.MaxInterval, 365*24*time.Hour)
	o.Probe = cmp.Or(o.Probe, time.Hour)
	o.Burst = cmp.Or(o.Burst, time.Hour)
	if o.Prior == (Gamma{}) {
		o.Prior = Gamma{0.5, 15}
	}
	o.NewShareMax = cmp.Or(o.NewShareMax, 1)
	return o
}

func (o Options) validate() error { // runs after withDefaults
	wrong := faults.List(unit.CheckAll("", o))
	wrong.If(checkBudget(o.Budget) != nil, "Budget is %v; want a finite number >= 0", o.Budget)
	wrong.If(o.MinInterval < time.Second, "MinInterval is %v; want >= 1s", o.MinInterval)
	wrong.If(o.MaxInterval < o.MinInterval || o.MaxInterval > maxInterval, "MaxInterval is %v; want MinInterval (%v) to %v", o.MaxInterval, o.MinInterval, maxInterval)
	wrong.If(o.Probe < time.Second, "Probe is %v; want >= 1s", o.Probe)
	wrong.If(!(o.Prior.Alpha >= leastAlpha && o.Prior.Alpha <= mostAlpha), "Prior.Alpha is %v; want %v to %v", o.Prior.Alpha, leastAlpha, mostAlpha)
	wrong.If(!(o.Prior.Beta > 0) || !(o.Prior.Mean() >= leastRate && o.Prior.Mean() <= leastRate*rateSpan),
		"Prior.Beta is %v days; want a mean rate of 1e-4 to 1e4 per day", o.Prior.Beta)
	wrong.If(!(o.NewShareMin >= 0 && o.NewShareMin <= o.NewShareMax && o.NewShareMax <= 1),
		"NewShareMin and NewShareMax are %v and %v; want 0 <= min <= max <= 1", o.NewShareMin, o.NewShareMax)
	return errors.Join(wrong...)
}

// maxInterval is the greatest MaxInterval.
const maxInterval = 100 * 365 * 24 * time.Hour

func checkBudget(perSecond float64) error {
	if !(perSecond >= 0) || math.IsInf(perSecond, 1) {
		return fmt.Errorf("recrawl: a budget of %v fetches per second; want a finite number >= 0", perSecond)
	}
	return nil
}
