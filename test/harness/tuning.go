package harness

import (
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
)

// Quantum returns o for a frontier whose hosts give up their back queues after n hand-outs.
func Quantum(n int, o frontier.Options) frontier.Options {
	hook.Tune(&o, func(t *hook.Tuning) { t.Quantum = n })
	return o
}

// ParkAfter returns o for a frontier whose hosts give up their back queues when their next contact
// is more than d away.
func ParkAfter(d time.Duration, o frontier.Options) frontier.Options {
	hook.Tune(&o, func(t *hook.Tuning) { t.ParkAfter = d })
	return o
}
