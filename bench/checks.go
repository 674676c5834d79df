// This file finds out before a run that it could not succeed.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

const (
	diskPerURL = 150     // maximum bytes of a run, for each URL
	diskFixed  = 1 << 30 // logs, and space that must stay free
	leastURL   = 1       // minimum memory of a URL in bytes, wherever it waits
	leastHost  = 40      // the same of a host
)

// checkRoom reports everything that prevents the run: URLs, memory and disk. It sets c.URLs if the
// list decides.
func checkRoom(ctx context.Context, c *config, l *listInfo, work string) error {
	var errs []error
	if l != nil {
		if c.URLs == 0 {
			c.URLs = l.Good
		}
		if c.URLs > l.Good {
			errs = append(errs, fmt.Errorf("-urls is %d; the list has %d", c.URLs, l.Good))
		}
	}
	if free, need := freeBytes(work), float64(c.URLs)*diskPerURL+diskFixed; !math.IsNaN(free) && free < need {
		errs = append(errs, fmt.Errorf("%s of disk are free at %s; %s may be needed for %d URLs", show(free, "B"), filepath.Dir(work), show(need, "B"), c.URLs))
	}
	try := filepath.Join(work, "try")
	s, err := openStore(ctx, try, *c, c.options())
	if err != nil {
		errs = append(errs, fmt.Errorf("with -budget %d MiB: %w", c.budget()>>20, err))
	} else {
		fixed := s.db.Footprint() + int64(c.URLs)*leastURL + int64(c.hostsAbout())*leastHost
		if err := s.close(); err != nil {
			errs = append(errs, err)
		}
		if b := c.budget(); fixed > b {
			errs = append(errs, fmt.Errorf("-budget is %d MiB; %d URLs over %d hosts need at least %d MiB, hosts and the store included",
				b>>20, c.URLs, c.hostsAbout(), fixed>>20))
		}
	}
	return errors.Join(errors.Join(errs...), os.RemoveAll(try))
}
