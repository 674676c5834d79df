// This file lets hints reach the scheduler: what sitemaps and lists of changed URLs
// say of pages that are known.

package revisit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// hinter is the Scheduler of a frontier whose leases end with an Outcome.Next: it
// is asked of hints.
type hinter struct{ r *Revisits }

// Next implements frontier.Scheduler: what has no Outcome.Next does not come again.
func (hinter) Next(v frontier.Visit) (time.Time, frontier.State) { return time.Time{}, v.Before.State }

// Hint implements frontier.Hinter. The page has the weight of what is known of it by
// now, and is due when the scheduler says so, which judges claims by how many of the
// host's came true.
func (x hinter) Hint(known, found frontier.Entry, host string, h frontier.History, now time.Time) frontier.Hinted {
	same := frontier.Hinted{Keep: h.State}
	n, ok := parseNote(crawler.Note(known))
	if !ok || !n.page.State.Crawled() {
		return same
	}
	r := x.r
	n.page.Host = r.host(host)
	before := n.page
	if weight, w := r.opts.Weight(known, h), n.page.State.Weight(); math.Abs(weight-w) > 0.08*w {
		n.page = r.schedule.Reweigh(n.page, weight, now)
	}
	n.page = r.schedule.Hint(n.page, found.NotBefore, now)
	if n.page == before || n.page.Due.IsZero() {
		return same
	}
	same.Due, same.Meta = wholeSecond(n.page.Due), crawler.WithNote(known, n.bytes())
	return same
}

// maxChanges is how many URLs are added at once.
const maxChanges = 1000

// Changes gives a frontier hints of a list of URLs that are said to have changed at a
// time, one a line, as sites tell of by IndexNow; blank lines are passed over. Claims
// are weighed by the record of each host, so that a list of all there is makes no storm.
// URLs that are not known are admitted: check before what may be listed. Lines that are
// no URL are reported, joined, and the others taken; any other error ends it. It returns
// how many URLs were taken.
func Changes(ctx context.Context, f *frontier.Frontier, list io.Reader, at time.Time) (taken int, err error) {
	var bad []error
	spelling := urlnorm.New()
	var entries []frontier.Entry
	add := func() error {
		_, err := f.Add(ctx, entries...)
		taken += len(entries)
		entries = entries[:0]
		return err
	}
	lines := bufio.NewScanner(list)
	lines.Buffer(nil, frontier.MaxURL+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		u, err := spelling.Normalize(line)
		if err != nil {
			if len(bad) < 10 {
				bad = append(bad, fmt.Errorf("revisit: changes: line %d: %w", n, err))
			}
			continue
		}
		entries = append(entries, frontier.Entry{URL: u, Hint: true, NotBefore: at})
		if len(entries) == maxChanges {
			if err := add(); err != nil {
				return taken, err
			}
		}
	}
	if err := add(); err != nil {
		return taken, err
	}
	return taken, errors.Join(append(bad, lines.Err())...)
}
