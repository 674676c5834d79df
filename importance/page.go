// This file learns from the pages of a crawler.

package importance

import (
	"net/http"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/link"
)

// Visited implements crawler.Importance. It weighs the links of a page, and the target of a redirect. What
// else was added, as from a sitemap, keeps its Weight.
func (x *Estimator) Visited(p *crawler.Page) (standing int, moved bool) {
	moves := p.Status >= 300 && p.Status < 400
	at, counts := make([]int, 0, len(p.Add)), make([]float64, 0, len(p.Add))
	for i, l := range p.Links() {
		at, counts = append(at, i), append(counts, x.opts.Relevance(p, l))
	}
	if moves && len(at) == 0 && len(p.Add) == 1 {
		at, counts = append(at, 0), append(counts, 1)
	}
	g := x.visited(&p.Lease, counts)
	for i, n := range counts {
		p.Add[at[i]].Weight = g.weight(n)
	}
	if moves { // it says nothing of its host: its target will
		return 0, false
	}
	return x.hosts.visited(x.key.host(p.Lease.Host), x.opts.Useful(p), neverThere(p))
}

// neverThere reports whether a link led nowhere. Anyone can set such a link.
func neverThere(p *crawler.Page) bool {
	return p.Lease.History.Visits == 0 && (p.Status == http.StatusNotFound || p.Status == http.StatusGone)
}

// Endorsed is the default of Options.Relevance: 0 for links with nofollow, ugc or sponsored, 1 for others.
func Endorsed(_ *crawler.Page, l *link.Link) float64 {
	if l.NoFollow {
		return 0
	}
	return 1
}

// Useful is the default of Options.Useful: the page was answered, it is not gone, and is no copy of another.
// Copies are known if the crawler tests for them (processing.ContentSeen), and pages that are gone
// although their status is 200 if it crawls again and again (package incremental).
func Useful(p *crawler.Page) bool {
	return p.Status < 400 && p.Outcome.Result != frontier.Gone && !p.Duplicate
}
