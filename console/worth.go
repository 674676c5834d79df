// This file says why a URL has its priority, and what has a higher one.

package console

import (
	"fmt"
	"math"
	"slices"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
)

// Worth is what the order of a crawl knows of a URL and its host: see package importance.
type Worth struct {
	Links  float64 `json:"links,omitempty"` // found to it, roughly
	Cash   float64 `json:"cash,omitempty"`  // that it has, in parts of a seed's; the order takes it times the square of the links
	Level  int     `json:"level"`           // priority that it deserves by that, if its host has not sunk
	Pages  int     `json:"pages"`           // of its host: of 4,096 or more, a part
	Useful float64 `json:"useful"`          // part of these pages
}

// String describes what is known of the URL.
func (w Worth) String() string {
	links := plural(int64(math.Round(w.Links)), "link")
	if w.Cash > 0 {
		return fmt.Sprintf("%s %% of a seed's cash, and about %s found, worth priority %d", percent(w.Cash), links, w.Level)
	}
	return fmt.Sprintf("about %s found, worth priority %d", links, w.Level)
}

// percent writes a part in percent, without an exponent if it is large.
func percent(part float64) string {
	if part >= 0.995 {
		return Count(int64(math.Round(100 * part)))
	}
	return fmt.Sprintf("%.2g", 100*part)
}

// Ahead counts the waiting URLs with a higher priority than that of a URL.
type Ahead struct {
	Host   int64 `json:"host"` // of its host
	Others int64 `json:"others"`
}

// String describes the numbers.
func (a Ahead) String() string {
	if a == (Ahead{}) {
		return "no URL has a higher priority"
	}
	return fmt.Sprintf("%s of its host and %s of others have a higher priority", plural(a.Host, "URL"), Count(a.Others))
}

// ahead counts what has a higher priority than a URL of a host. Parked URLs do not count.
func (c *Console) ahead(h inspect.Host, priority int) *Ahead {
	a := &Ahead{}
	for _, q := range h.Queues {
		if _, _, parked := c.lot(q.Crawl); q.Priority > priority && !parked {
			a.Host += q.Waiting
		}
	}
	s := c.f.Stats()
	_, parked := c.parkedURLs()
	if priority < frontier.Immediate {
		a.Others = s.Immediate - a.Host
	}
	for i := priority; i < len(s.WaitingBy); i++ {
		a.Others += s.WaitingBy[i]
		if i < len(parked) {
			a.Others -= parked[i]
		}
	}
	a.Others = max(0, a.Others) // the counts are not of one moment
	return a
}

// worth returns what the order knows of a URL of a host; nil: nothing.
func (c *Console) worth(e frontier.Entry, host string) *Worth {
	if c.o.Importance == nil {
		return nil
	}
	e.Host = host
	w := c.o.Importance(e)
	return &w
}

// ranked completes the description of a host by its useful part.
func (c *Console) ranked(row HostRow) HostRow {
	if w := c.worth(frontier.Entry{}, row.Host); w != nil && w.Pages > 0 {
		row.Pages, row.Useful = w.Pages, &w.Useful
	}
	return row
}

// anyRanked reports whether a list of hosts has something to say about their standing.
func anyRanked(rows []HostRow) bool {
	return slices.ContainsFunc(rows, func(h HostRow) bool { return h.Standing != 0 || h.Useful != nil })
}

// Ranked reports whether a host of the list has sunk, or has pages with a known part that is useful.
func (l HostList) Ranked() bool { return anyRanked(l.Hosts) }

// HostWords describes the useful part of the pages of the URL's host, and its standing; empty: nothing is
// known of them.
func (u URL) HostWords() string {
	useful, standing := "", ""
	if w := u.Importance; w != nil && w.Pages > 0 {
		useful = UsefulOf(w.Pages, w.Useful) + " useful"
	}
	if u.Standing != 0 {
		standing = Standing(u.Standing)
	}
	return join(", ", useful, standing)
}

// PriorityWords describes the URL's priority: "3 of 8".
func (u URL) PriorityWords() string {
	switch {
	case u.Priority == frontier.Immediate:
		return "before all others"
	case u.Priorities > 0:
		return fmt.Sprintf("%d of %d", u.Priority, u.Priorities)
	}
	return fmt.Sprint(u.Priority)
}

// UsefulOf describes the useful part of a host's pages: "41 % of 312 pages".
func UsefulOf(pages int, useful float64) string {
	return fmt.Sprintf("%.0f %% of %s", 100*useful, plural(int64(pages), "page"))
}
