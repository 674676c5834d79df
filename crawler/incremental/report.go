// This file counts the results of revisits, and reports them.

package incremental

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/recrawl"
)

// Counts are the results of visits since the crawl began.
type Counts struct {
	Visits      int64 `json:"visits"`       // requests for a URL that were answered
	First       int64 `json:"first"`        // part of these: of URLs never read before
	Changed     int64 `json:"changed"`      // visits of known pages that found a change
	Unchanged   int64 `json:"unchanged"`    // visits of known pages that found none
	NotModified int64 `json:"not_modified"` // part of Unchanged: status 304
	Gone        int64 `json:"gone"`         // 404 and 410
	Failed      int64 `json:"failed"`       // tries of known pages without an answer
	PutOff      int64 `json:"put_off"`      // pages that were due and no longer worth a fetch
}

// counts are the running counts.
type counts struct {
	mu  sync.Mutex
	now Counts // guarded by mu
}

func (c *counts) read() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// putOff counts a page that is no longer worth a fetch.
func (c *counts) putOff() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.PutOff++
}

// add counts a visit of a URL that was read before, or not.
func (c *counts) add(known bool, result frontier.Result, p *crawler.Page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if result == frontier.Failed {
		c.now.Failed++
	}
	if p == nil {
		return
	}
	c.now.Visits++
	switch {
	case result == frontier.Gone:
		c.now.Gone++
	case !known:
		c.now.First++
	case result == frontier.Changed:
		c.now.Changed++
	case result == frontier.Unchanged:
		c.now.Unchanged++
		if p.Status == http.StatusNotModified {
			c.now.NotModified++
		}
	}
}

// Report is the state of a crawl.
type Report struct {
	Counts
	// Schedule is what the scheduler knows: the price, the pages, and the expected freshness, which
	// is the real one only as far as the rates are learned.
	Schedule recrawl.Stats
}

// Report returns the current figures. It takes about 0.1 ms.
func (r *Revisits) Report() Report {
	return Report{Counts: r.counts.read(), Schedule: r.schedule.Stats()}
}

// NewShare returns the share of the answered visits that read a URL for the first time.
func (x Report) NewShare() float64 { return share(x.First, x.Visits) }

// Wasted returns the share of the visits of known pages that found nothing new.
func (x Report) Wasted() float64 { return share(x.Unchanged, x.Changed+x.Unchanged) }

// String formats the report as one line.
func (x Report) String() string {
	s := x.Schedule
	return fmt.Sprintf("%d pages known; freshness %.1f%% (estimated); %d visits: %.1f%% new, %d changed, %d unchanged (%.1f%% of known wasted, %d by status 304), %d gone, %d failed, %d put off; price %.4g, budget %.4g/s, demand %.4g/s",
		s.Pages, 100*s.Freshness, x.Visits, 100*x.NewShare(), x.Changed, x.Unchanged, 100*x.Wasted(), x.NotModified, x.Gone, x.Failed, x.PutOff, s.Price, s.Budget, s.Demand)
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
