// This file computes when a page is due at the current price, and checks again at that time.

package recrawl

import (
	"math"
	"time"
)

// ahead returns for how many days a price is trusted: the time in which the budget allows two
// fetches of every page. A page that is not worth a fetch within this time is checked again by
// Recheck, without a fetch. Prices are high while little is known, and a page put off at such a
// price must not wait for a year.
func (s *Scheduler) ahead() float64 {
	if s.budget.perDay == 0 {
		return 1 / s.least
	}
	return max(1/s.most, min(1/s.least, 2*float64(s.known()+s.demand.news)/s.budget.perDay))
}

// interval is the page's at its host's price, within bounds, in days.
func (s *Scheduler) interval(p *Page) float64 {
	if int8(p.State[2]) == noWeight { // it has no place in the table of prices
		return 1 / s.least
	}
	shift := 0.
	if p.State.has(atHost) {
		if h := s.hosts[p.Host]; h != nil {
			shift = h.shift
		}
	}
	return max(1/s.most, min(1/s.least, s.prices.interval(priced(p.State), shift)))
}

// index returns the value of a fetch of the page at the given age, in prices.
func (s *Scheduler) index(p *Page, age float64) float64 {
	st := priced(p.State)
	return Index(st.Rate(), st.Weight(), age) * math.Exp(-s.prices.log)
}

// Index returns the value of a fetch of the page now, in prices: from 1 on it is worth its price.
func (s *Scheduler) Index(p Page, now time.Time) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.State.Crawled() {
		return s.indexNew(p.State)
	}
	return s.index(&p, max(0, days(now.Sub(p.Last))))
}

// Interval returns how long after the last fetch another one is worth the current price, limited to
// between MinInterval and MaxInterval; MaxInterval if the page has no weight. The due time may be
// earlier: see Recheck.
func (s *Scheduler) Interval(p Page) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return span(s.interval(&p))
}

// Recheck decides, when the due time of a page has come and before it is fetched, whether a fetch is
// worth the current price. It returns when to fetch the page: now, with the page unchanged; or later,
// with the page to be stored and checked again at that time. The new due time is at most MaxInterval
// after the last fetch, and no further ahead than the budget needs for two fetches of every page. After
// a pause, when everything is due at once, Recheck spreads the fetches as set by Options.Burst.
func (s *Scheduler) Recheck(p Page, now time.Time) (Page, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Due.After(now) {
		return p, p.Due
	}
	if st := p.State; st.Crawled() && st.mode() < gone && repeats(st) {
		t, ahead := s.interval(&p), s.ahead()
		if due := p.Last.Add(span(t)); due.After(now.Add(span(min(t, ahead) / 8))) {
			s.move(&p, earlier(due, now.Add(span(ahead))))
			return p, p.Due
		}
	}
	if late(p, now) {
		q := p
		q.State.setMode(mostSuspect)
		due := earlier(p.Last.Add(span(s.interval(&q))), now.Add(span(s.ahead())))
		if due.After(now) {
			s.uncount(p)
			s.notProbed(&p.State)
			p.Due = due
			s.count(&p)
			return p, p.Due
		}
	}
	if wait := s.pace.ask(now, s.budget.paced(), s.opts.Burst, s.uniform); wait > 0 {
		s.stats.held++
		return p, now.Add(wait)
	}
	return p, now
}

// move changes the due time of a page.
func (s *Scheduler) move(p *Page, due time.Time) {
	s.promise(p, -1)
	p.Due = due
	s.promise(p, 1)
}

// Reweigh changes the weight of a page, when its importance is found to be different. The due time
// moves only if the page becomes due earlier.
func (s *Scheduler) Reweigh(p Page, weight float64, now time.Time) Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uncount(p)
	p.State[2] = weightLevel(weight)
	if p.State.Crawled() && p.State.mode() < gone && int8(p.State[2]) != noWeight {
		due := earlier(p.Last.Add(span(s.interval(&p))), now.Add(span(s.ahead())))
		if p.Due.IsZero() || due.Before(p.Due) {
			p.Due = later(due, now)
		}
	}
	s.count(&p)
	return p
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
