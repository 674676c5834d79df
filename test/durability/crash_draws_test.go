// This file draws what the test of controls and deaths deletes and limits.

package durability

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
)

// drawLimits draws limits that contacts do not reach, or none.
func drawLimits(r *rand.Rand) scope.Limits {
	if r.IntN(3) == 0 {
		return scope.Limits{}
	}
	return scope.Limits{
		Waiting: int64(r.IntN(9)), Served: 1 + int64(r.IntN(9)), Bytes: 1 << 40, Depth: r.IntN(9), Period: time.Duration(r.IntN(2)) * 1000 * time.Hour,
	}
}

// drawDeletion draws a deletion of everything that waits. Some forget it.
func drawDeletion(r *rand.Rand) control {
	scopes := []scope.Scope{scope.Crawl(0), scope.All(), scope.Domain("now")}
	o := frontier.DeleteOptions{Scope: scopes[r.IntN(len(scopes))], Forget: r.IntN(2) == 0}
	return control{fmt.Sprintf("delete %+v", o), func(f *frontier.Frontier) error {
		_, err := f.DeleteWith(context.Background(), o)
		return err
	}, func(c *controlled) {
		maps.DeleteFunc(c.more, func(key, _ string) bool { return strings.HasPrefix(key, "now ") })
	}}
}
