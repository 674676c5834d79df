// This file weighs what hosts claim about their pages: lastmod in sitemaps, lists of changed URLs
// (IndexNow), Last-Modified.

package recrawl

import (
	"math"
	"time"
)

// skew is the tolerated difference between clocks.
const skew = 24 * time.Hour

// credit is the number of unverified claims that a host may have; each claim that proves true adds
// as many.
const credit = 16

// Hint records the claim that a page changed at a given time: the lastmod of a sitemap, or the
// arrival time of a list of changed URLs. The claim counts with the trust in its host, q =
// (true+1)/(true+false+2), where the next fetch of each page verifies its claim. The page becomes
// due now, or MinInterval after its last fetch, if q times the value of a changed page plus 1-q
// times its previous value reaches the price. If q > 0.9, a claim that is not newer than the last
// fetch means that the page has not changed since.
//
// A claim more than a day in the future counts as false. Claims about pages that were never
// crawled, or are gone or denied, change nothing. A host may have 16 unverified claims, and 16 more
// for each that proved true, so that a list of all its pages does not cause a burst of fetches;
// claims beyond that are ignored.
func (s *Scheduler) Hint(p Page, changed, now time.Time) Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &p.State
	if !counted(*st) || changed.IsZero() {
		return p
	}
	if changed.After(now.Add(skew)) {
		s.hostOf(p.Host).verified(false)
		return p
	}
	age := days(now.Sub(p.Last))
	if !(age > 0) || st.has(claimed) {
		return p
	}
	if !changed.After(p.Last) {
		return s.denies(p, now, age)
	}
	h := s.hostOf(p.Host)
	if int(h.pending) >= credit*(1+int(h.hits)) {
		return p
	}
	q := h.trust()
	whole := st.Weight() / st.Rate()
	v := q*whole + (1-q)*whole*worth(st.Rate()*age)
	price := math.Exp(s.prices.log)
	if st.has(atHost) {
		price *= math.Exp(h.shift)
	}
	if v < price {
		return p
	}
	due := later(now, p.Last.Add(span(1/s.most)))
	s.uncount(p)
	h.pending++
	st.set(claimed, true)
	p.Due = earlier(p.Due, due)
	s.count(&p)
	return p
}

// denies handles a claim that a page has not changed: its copy now counts as fresh, but a page is
// not put off in this way for longer than three of its intervals.
func (s *Scheduler) denies(p Page, now time.Time, age float64) Page {
	if h := s.hosts[p.Host]; h.trust() <= 0.9 || p.State.mode() != steady && p.State.mode() != unproven {
		return p
	}
	t := s.interval(&p)
	if due := p.Last.Add(span(min(age+t, 3*t, 1/s.least))); due.After(p.Due) && p.Due.After(now) {
		s.move(&p, due)
	}
	return p
}

// unclaim forgets a claim that no fetch will verify.
func (s *Scheduler) unclaim(p *Page) {
	if !p.State.has(claimed) {
		return
	}
	p.State.set(claimed, false)
	if h := s.hosts[p.Host]; h != nil {
		h.pending -= min(h.pending, 1)
	}
}

// verify compares the host's claim with the result of a fetch.
func (s *Scheduler) verify(p *Page, v Visit) {
	if v.Outcome > Unchanged {
		return
	}
	changed := v.Outcome == Changed
	if p.State.has(claimed) {
		p.State.set(claimed, false)
		h := s.hostOf(p.Host)
		h.pending -= min(h.pending, 1)
		h.verified(changed)
	}
	if v.Modified.IsZero() || p.Last.IsZero() {
		return
	}
	switch h := s.hosts[p.Host]; {
	case v.Modified.After(v.At.Add(skew)),
		changed && v.Modified.Before(p.Last.Add(-skew)),
		!changed && v.Modified.After(p.Last.Add(skew)):
		s.hostOf(p.Host).verified(false)
	case h != nil && changed && v.Modified.After(p.Last):
		h.verified(true)
	}
}
