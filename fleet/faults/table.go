// This file makes a table of what the web saw: how the crawl went, and how long each fault kept hosts alone.

package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// outage is whether a fault can take the frontier from its owner.
func (k fault) outage() bool {
	return slices.Contains([]fault{killOwner, freezeOwner, handOver, endThenKill, killTwo, killAll, cutOwner, cutPair, halfOpen, flapOwner}, k)
}

// effect is what one fault led to, until the next outage.
type effect struct {
	event
	lease time.Duration   // until a fetcher had a lease again; 0: it had none
	hosts []time.Duration // until each host with something to fetch was contacted again, in order
	never int             // hosts with something to fetch that were not
}

// effects returns those of the outages. It reads the web's records, once nothing is under way.
func (w *web) effects(events []event) (all []effect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events = slices.DeleteFunc(slices.Clone(events), func(e event) bool { return !e.kind.outage() })
	for i, e := range events {
		until := time.Now()
		if i+1 < len(events) {
			until = events[i+1].at
		}
		x := effect{event: e}
		waits := map[int]bool{} // hosts with a page that was known and not fetched
		for _, p := range w.pages {
			if !p.known.IsZero() && p.known.Before(e.at) && (p.first.IsZero() || p.first.After(e.at)) {
				waits[p.host] = true
			}
		}
		again := map[int]time.Duration{}
		for _, c := range w.contacts {
			if c.start.Before(e.at) || c.start.After(until) || c.LeasedAt.Before(e.at) {
				continue
			}
			if d := c.LeasedAt.Sub(e.at); x.lease == 0 || d < x.lease {
				x.lease = d
			}
			if d, ok := again[c.host]; waits[c.host] && (!ok || c.start.Sub(e.at) < d) {
				again[c.host] = c.start.Sub(e.at)
			}
		}
		x.hosts = slices.Sorted(maps.Values(again))
		x.never = len(waits) - len(x.hosts)
		all = append(all, x)
	}
	return all
}

// quantile returns the value below which a share of sorted ones lies.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// lost is the pages that were never fetched; the first of each lost part with what is known of it.
func (w *web) lost(say func(string, ...any)) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := 0
	for id, p := range w.pages {
		if !p.first.IsZero() {
			continue
		}
		n++
		if p.parent >= 0 && w.pages[p.parent].first.IsZero() || told >= 20 {
			continue
		}
		told++
		about := "the first page of its host"
		if p.parent >= 0 {
			x := w.pages[p.parent]
			about = fmt.Sprintf("linked from page %d, fetched %d times, first at %s, end acknowledged at %s", p.parent, x.visits, clock(x.first), clock(x.done))
		}
		say("LOST: %s, whose URL was acknowledged at %s; %s", w.urlLocked(id), clock(p.known), about)
	}
	return n
}

// table writes the figures of a run.
func (w *web) table(to io.Writer, events []event) {
	fmt.Fprintf(to, "\n%-14s %-13s %12s %28s %6s %6s\n", "outage", "at", "first lease", "hosts again: p50, p99, max", "hosts", "never")
	for _, x := range w.effects(events) {
		lease := "-"
		if x.lease > 0 {
			lease = fmt.Sprintf("%.2f s", x.lease.Seconds())
		}
		fmt.Fprintf(to, "%-14s %-13s %12s %14.1f %6.1f %6.1f %6d %6d\n", x.kind, clock(x.at), lease,
			quantile(x.hosts, 0.5).Seconds(), quantile(x.hosts, 0.99).Seconds(), quantile(x.hosts, 1).Seconds(), len(x.hosts), x.never)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	again := 0
	for _, p := range w.pages {
		again += max(0, p.visits-1)
	}
	fmt.Fprintf(to, "\npages %d, fetched %d, contacts %d, of pages fetched before %d (%.2f %%)\n", len(w.pages), w.fetched, len(w.contacts), again, 100*float64(again)/float64(max(1, len(w.contacts))))
	fmt.Fprintf(to, "lost %d, early %d, overlaps %d, fetched after the end was acknowledged %d, beyond a lease (fetchers' own fault) %d\n",
		len(w.pages)-w.fetched, w.early, w.overlap, w.undone, w.over)
}

// record writes all contacts to a file in dir.
func (w *web) record(dir string) error {
	f, err := os.Create(filepath.Join(dir, "contacts.log"))
	if err != nil {
		return err
	}
	defer f.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.contacts {
		if _, err := fmt.Fprintf(f, "%s %s\n", c.URL, c); err != nil {
			return err
		}
	}
	return f.Close()
}
