// This file draws what the test of controls and deaths deletes and limits.

package durability

import (
	"context"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
)

// drawLimits draws limits that contacts do not reach, or none.
func drawLimits(r *rand.Rand) frontier.Limits {
	if r.IntN(3) == 0 {
		return frontier.Limits{}
	}
	return frontier.Limits{
		Waiting: int64(r.IntN(9)), Served: 1 + int64(r.IntN(9)), Bytes: 1 << 40, Depth: r.IntN(9), Period: time.Duration(r.IntN(2)) * 1000 * time.Hour,
	}
}

// drawDeletion draws a deletion of everything that waits.
func drawDeletion(r *rand.Rand) control {
	gone := func(c *controlled) {
		maps.DeleteFunc(c.more, func(key, _ string) bool { return strings.HasPrefix(key, "now ") })
	}
	switch r.IntN(3) {
	case 0:
		return control{"delete crawl 0", func(f *frontier.Frontier) error {
			_, err := f.Delete(context.Background(), frontier.Crawl(0))
			return err
		}, gone}
	case 1:
		return control{"delete all", func(f *frontier.Frontier) error {
			_, err := f.Delete(context.Background(), frontier.All())
			return err
		}, gone}
	}
	return control{"delete *.now", func(f *frontier.Frontier) error {
		_, err := f.Delete(context.Background(), frontier.Domain("now"))
		return err
	}, gone}
}
