// This file opens the frontier of a crawl, and closes and opens it again in mid-crawl.

package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
)

// again is a restart in mid-crawl.
type again struct {
	restart float64 // share of the time after which all is closed and opened again; 0: never
	forget  bool    // the estimator keeps nothing
}

// open opens the frontier, and lets the order prepare it. The estimator reads a file, if one is named.
func (c *crawl) open(k *config, clock *simclock.Clock, o *order, file string) (err error) {
	opts := frontier.Options{Clock: clock, Delay: frontier.FixedDelay(rest * tick), MemoryBudget: 4 << 30}
	o.open(c, k.seed, &opts)
	if file != "" {
		if err := c.est.Load(file); err != nil {
			return err
		}
	}
	if c.dir != "" {
		if c.db, err = spill.Open(filepath.Join(c.dir, "store"), spill.Options{}); err != nil {
			return err
		}
		opts.Spill, opts.MemoryBudget = c.db, k.disk
	}
	c.Frontier, err = frontier.Open(context.Background(), opts)
	return err
}

// close closes what is open.
func (c *crawl) close() (err error) {
	if c.Frontier != nil {
		err = c.Frontier.Close()
	}
	if c.db != nil {
		err = errors.Join(err, c.db.Close())
	}
	c.Frontier, c.db = nil, nil
	return err
}

// due reports whether the restart comes at the end of tick t.
func (c *crawl) due(k *config, t int) bool {
	return k.restart > 0 && int(k.restart*float64(c.reach)/k.rate) == t
}

// reopen closes the frontier and opens it again, with a new estimator that reads what the old one saved. The
// exact orders go on with what they know.
func (c *crawl) reopen(k *config, clock *simclock.Clock, o *order) (err error) {
	c.closed = c.Stats()
	exact, file := c.scorer, ""
	err = c.close()
	if c.est != nil && !k.forget {
		file = filepath.Join(c.dir, "importance")
		err = errors.Join(err, c.est.Save(file))
	}
	if err != nil {
		return err
	}
	err = c.open(k, clock, o, file)
	c.scorer = exact
	return err
}
