// This file announces the hosts that will be contacted soon, so that their names are resolved by then.

package crawler

import (
	"cmp"
	"time"
)

const (
	aheadEvery = time.Second
	aheadMost  = 256 // hosts each time
)

// lookAhead calls Prefetch for the hosts that will be served soon, until finished is closed.
func (r *run) lookAhead(finished <-chan struct{}) {
	prefetch := r.c.opts.Prefetch
	f, ok := r.c.frontier.(foreseer)
	if prefetch == nil || !ok {
		return
	}
	t := time.NewTicker(aheadEvery)
	defer t.Stop()
	for {
		hosts, err := f.Upcoming(r.ctx, min(4*r.c.opts.Workers, aheadMost), true)
		if err != nil && r.ctx.Err() != nil {
			return
		}
		for _, h := range hosts {
			prefetch(cmp.Or(hostOf(siteOf(h.Entry.URL)), h.Host.Host))
		}
		select {
		case <-t.C:
		case <-finished:
			return
		}
	}
}
