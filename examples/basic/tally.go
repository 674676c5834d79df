// This file adds up what the crawl did, from the outcomes of its visits.

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
)

// hostTally counts the results of one host.
type hostTally struct {
	visits []visit // not always in order: workers report after their Done
	denied int
}

// visit is a contact with a host, and the pause owed after it.
type visit struct {
	start, end time.Time
	owed       time.Duration
}

// closest returns the delay that came closest to the required one, and the latter.
func (h *hostTally) closest() (gap, owed time.Duration) {
	slices.SortFunc(h.visits, func(a, b visit) int { return a.start.Compare(b.start) })
	for i := 1; i < len(h.visits); i++ {
		last := h.visits[i-1]
		if g := h.visits[i].start.Sub(last.end); i == 1 || g-last.owed < gap-owed {
			gap, owed = g, last.owed
		}
	}
	return gap, owed
}

// tally counts the results of the crawl.
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
	h.visits = append(h.visits, visit{o.Ended.Add(-o.Duration), o.Ended, max(t.delay.Delay(l.Host, o), o.CrawlDelay, o.RetryAfter)})
	t.visits++
	t.byPriority[l.Priority].visits++
	t.byPriority[l.Priority].ranks += t.visits
}

// report writes what was done, and returns an error if a contact came too early.
func (t *tally) report(out io.Writer, p crawler.Progress) (err error) {
	fmt.Fprintf(out, "\n\n%-20s %8s %8s %14s %10s\n", "host", "visits", "denied", "smallest gap", "owed")
	for _, name := range slices.Sorted(maps.Keys(t.hosts)) {
		h := t.hosts[name]
		gap, owed := h.closest()
		if gap < owed {
			err = errors.Join(err, fmt.Errorf("%s was contacted %v after the last time, and was owed %v", name, gap, owed))
		}
		fmt.Fprintf(out, "%-20s %8d %8d %14v %10v\n", name, len(h.visits), h.denied,
			gap.Round(time.Millisecond), owed.Round(time.Millisecond))
	}
	fmt.Fprintf(out, "\n%-20s %8s %26s\n", "priority", "visits", "came on average as number")
	for i := len(t.byPriority) - 1; i > 0; i-- {
		if b := t.byPriority[i]; b.visits > 0 {
			fmt.Fprintf(out, "%-20d %8d %19d of %3d\n", i, b.visits, b.ranks/b.visits, t.visits)
		}
	}
	fmt.Fprintf(out, "\n%d pages, %d gone, %d denied by robots.txt, %d URLs given up with a site that never answers, in %v\n",
		p.Pages, p.Gone, p.Denied, p.Frontier.GivenUp, p.Elapsed.Round(time.Millisecond))
	if err == nil {
		fmt.Fprintln(out, "polite: no contact came before its host's pause had ended")
	}
	return err
}
