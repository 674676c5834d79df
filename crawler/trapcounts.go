// This file preserves the counts of the guards against traps across restarts.

package crawler

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// trapsEvery is how often the counts are written. After a crash, a trap gets as many more pages as
// it got since the last write.
const trapsEvery = time.Minute

// loadTraps reads the counts of an earlier process.
func (c *Crawler) loadTraps() error {
	f, err := os.Open(c.opts.TrapsFile) // empty: there is none
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("crawler: %w", err)
	}
	defer f.Close()
	err = c.traps.Load(f)
	if errors.Is(err, filter.ErrVersion) { // the program of its own version can continue with it
		return fmt.Errorf("crawler: %s: %w: %w; without the file they begin anew", c.opts.TrapsFile, frontier.ErrVersion, err)
	}
	if errors.Is(err, filter.ErrTrapFile) { // no reason not to crawl
		c.log.Warn("the counts of the trap guards cannot be read, and start from zero", "file", c.opts.TrapsFile, "error", err)
		return nil
	}
	return err
}

// keepTraps writes the counts regularly, and when the run has ended.
func (c *Crawler) keepTraps(finished <-chan struct{}) {
	everyUntil(trapsEvery, finished, func(bool) {
		if err := c.saveTraps(); err != nil {
			c.log.Warn("the counts of the trap guards cannot be written", "file", c.opts.TrapsFile, "error", err)
		}
	})
}

// saveTraps puts a new file in the old one's place.
func (c *Crawler) saveTraps() error {
	if c.opts.TrapsFile == "" {
		return nil
	}
	return durablefs.WriteFile(c.opts.TrapsFile, 0o644, c.traps.Save)
}
