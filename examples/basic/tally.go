// This file adds up what the crawl did, from the outcomes of its visits.

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
)

// hostTally is what one host got.
type hostTally struct {
	visits      int
	last        time.Time     // end of the last visit
	owed        time.Duration // the pause owed after it
	gap, gapFor time.Duration // the pause that came closest to what was owed, and that
	denied      int
}

// tally is what the crawl did.
type tally struct {
	delay frontier.DelayPolicy

	mu         sync.Mutex
	hosts      map[string]*hostTally
	visits     int
	byPriority [65]struct{ visits, ranks int }
}

// add is the crawler's OnDone.
func (t *tally) add(l frontier.Lease, o frontier.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[l.Host]
	if h == nil {
		h = &hostTally{}
		t.hosts[l.Host] = h
	}
	if o.Result == frontier.Denied {
		h.denied++
	}
	if o.Uncontacted {
		return
	}
	gap := o.Ended.Add(-o.Duration).Sub(h.last)
	if h.visits > 0 && (h.visits == 1 || gap-h.owed < h.gap-h.gapFor) {
		h.gap, h.gapFor = gap, h.owed
	}
	h.visits++
	h.last, h.owed = o.Ended, max(t.delay.Delay(l.Host, o), o.CrawlDelay, o.RetryAfter)
	t.visits++
	t.byPriority[l.Priority].visits++
	t.byPriority[l.Priority].ranks += t.visits
}

func (t *tally) report(out io.Writer, p crawler.Progress) {
	fmt.Fprintf(out, "\n\n%-20s %8s %8s %14s %10s\n", "host", "visits", "denied", "smallest gap", "owed")
	for _, name := range slices.Sorted(maps.Keys(t.hosts)) {
		h := t.hosts[name]
		fmt.Fprintf(out, "%-20s %8d %8d %14v %10v\n", name, h.visits, h.denied,
			h.gap.Round(time.Millisecond), h.gapFor.Round(time.Millisecond))
	}
	fmt.Fprintf(out, "\n%-20s %8s %26s\n", "priority", "visits", "came on average as number")
	for i := len(t.byPriority) - 1; i > 0; i-- {
		if b := t.byPriority[i]; b.visits > 0 {
			fmt.Fprintf(out, "%-20d %8d %19d of %3d\n", i, b.visits, b.ranks/b.visits, t.visits)
		}
	}
	fmt.Fprintf(out, "\n%d pages, %d gone, %d denied by robots.txt, %d URLs of sites without an answer for robots.txt, in %v\n",
		p.Pages, p.Gone, p.Denied, p.Unreachable, p.Elapsed.Round(time.Millisecond))
}
