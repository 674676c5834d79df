// This file weighs what hosts say of their pages: lastmod in sitemaps, lists of
// changed URLs (IndexNow), Last-Modified.

package recrawl

import (
	"math"
	"time"
)

// skew is how much clocks may differ.
const skew = 24 * time.Hour

// credit is how many claims of a host may wait for their verification; each one
// that turned out true adds as much.
const credit = 16

// Hint takes in the claim that a page changed at a time: a sitemap's lastmod, or
// for a list of changed URLs when it came. It is weighed by how often the host's
// claims were true: trust q = (true+1)/(true+false+2), which the next fetch of
// each page finds out. The page is due now, or MinInterval after its last fetch, if
// q times the worth of a changed page, and the rest as before, reaches the price. A
// claim that is not newer than the last fetch says, if q > 0.9, that the page has not
// changed since.
//
// A claim of a time to come (by more than a day) counts as false. Of pages never
// crawled, gone or denied claims say nothing new. A host has at most 16 claims
// out, and as many more for each that was true, so that a list of all its
// pages makes no storm; what it says beyond that is not heard.
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

// denies is a page whose host says that it has not changed: its copy counts as
// fresh now, but a page is not put off so beyond three of its intervals.
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

// verify holds a fetch against what the host said.
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
