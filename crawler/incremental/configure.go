// This file configures a frontier for a continuous crawl: known pages are never given up, and share
// the fetches with pages that were never crawled.

package incremental

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/seed-7440039f/frontier/selector"
)

// Recrawled is the priority of pages that are known, under Configure.
const Recrawled = 1

// Configure changes the options of a frontier before it is opened. Known pages are retried for as long as
// they fail, and have priority Recrawled. Never-crawled pages have the priorities above, in the order
// given by the options; there are at least two priorities in all. If both kinds are available, the
// Selector chooses a never-crawled page with the probability NewShareMax of Options.Schedule while such a
// page is worth the price of a fetch, otherwise NewShareMin. Hosts in Quarantine are probed forever,
// because giving up a host would give up known pages. Configure sets r's Scheduler, which also takes
// hints (frontier.Entry.Hint); without it pages are not fetched again.
func (r *Revisits) Configure(o *frontier.Options) {
	o.Retry = retries{cmp.Or(o.Retry, frontier.DefaultRetries())}
	o.Priorities = cmp.Or(o.Priorities, 8)
	o.Priorities = max(o.Priorities, 2)
	inner := o.Prioritizer
	if inner == nil {
		depth := frontier.ByDepth(o.Priorities - 1)
		inner = frontier.PrioritizerFunc(func(e frontier.Entry, h frontier.History) int { return 1 + depth.Priority(e, h) })
	}
	o.Prioritizer = aboveKnown{inner}
	if riser, ok := inner.(frontier.Riser); ok {
		o.Prioritizer = risesAboveKnown{aboveKnown{inner}, riser}
	}
	among := cmp.Or(o.Selector, selector.BiasedRandom(rand.Uint64()))
	o.Selector = &mixed{r: r, among: among, random: rand.New(rand.NewPCG(rand.Uint64(), 1))}
	o.Quarantine.Probes, o.Quarantine.Forever = 0, true
	o.Scheduler = scheduler{r.plans, r}
}

// aboveKnown gives never-crawled pages the priorities above Recrawled.
type aboveKnown struct{ others frontier.Prioritizer }

// Priority implements frontier.Prioritizer.
func (x aboveKnown) Priority(e frontier.Entry, h frontier.History) int {
	if h.Visits > 0 {
		return Recrawled
	}
	return max(Recrawled+1, x.others.Priority(e, h))
}

// risesAboveKnown is a frontier.Riser.
type risesAboveKnown struct {
	aboveKnown
	riser frontier.Riser
}

// Found implements frontier.Riser.
func (x risesAboveKnown) Found(e frontier.Entry) int { return x.riser.Found(e) }

// Rise implements frontier.Riser.
func (x risesAboveKnown) Rise(waiting frontier.Entry) float64 { return x.riser.Rise(waiting) }

// retries leaves known pages to the scheduler, which never gives them up.
type retries struct{ others frontier.RetryPolicy }

// Retry implements frontier.RetryPolicy.
func (x retries) Retry(e frontier.Entry, attempt int, o frontier.Outcome) (time.Duration, bool) {
	if n, _ := parseNote(crawler.Note(e)); n.read {
		return 0, false
	}
	return x.others.Retry(e, attempt, o)
}

// mixed chooses between known and never-crawled pages.
type mixed struct {
	r      *Revisits
	among  frontier.Selector
	random *rand.Rand
}

// Select implements frontier.Selector.
func (m *mixed) Select(available []int) int {
	switch {
	case available[0] != Recrawled:
		return m.among.Select(available)
	case len(available) == 1:
		return Recrawled
	case m.random.Float64() < math.Float64frombits(m.r.newShare.Load()):
		return m.among.Select(available[1:])
	}
	return Recrawled
}

// mix sets the share of never-crawled URLs, depending on whether they are worth a fetch.
func (r *Revisits) mix() {
	s := &r.opts.Schedule
	share := s.NewShareMax
	if r.schedule.Index(recrawl.Page{}, time.Time{}) < 1 {
		share = s.NewShareMin
	}
	r.newShare.Store(math.Float64bits(share))
}
