// This file says when a page is due at today's price, and looks again when it is.

package recrawl

import (
	"math"
	"time"
)

// ahead is for how many days a price is trusted: in that time the budget reaches
// for two fetches of every page. A page that does not pay for longer is looked at
// again after it, by Recheck and without a fetch: prices are high while little is
// known, and who was put off at one must not wait for a year.
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

// index is what a fetch of the page is worth at an age, in prices.
func (s *Scheduler) index(p *Page, age float64) float64 {
	st := priced(p.State)
	return Index(st.Rate(), st.Weight(), age) * math.Exp(-s.prices.log)
}

// Index is what a fetch of the page is worth now, in prices: from 1 on it pays.
func (s *Scheduler) Index(p Page, now time.Time) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.State.Crawled() {
		return s.indexNew(p.State)
	}
	return s.index(&p, max(0, days(now.Sub(p.Last))))
}

// Interval is how long after its last fetch the next one of the page pays, at
// today's price and within MinInterval and MaxInterval; MaxInterval if it has no
// weight. Its due time may be earlier: see Recheck.
func (s *Scheduler) Interval(p Page) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return span(s.interval(&p))
}

// Recheck is asked when a page's due time has come, before it is fetched: is it
// still worth it at today's price? It returns when to fetch it: now, and the page is as
// it was; or later (then ask again), and the page as it is to be kept. A due time moves
// to at most MaxInterval after the last fetch, and so far ahead only as the budget takes
// for two fetches of every page: then Recheck is asked once more. After a pause, when all
// is due at once, the fetches are spread as Options.Burst says.
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

// move gives a page another due time.
func (s *Scheduler) move(p *Page, due time.Time) {
	s.promise(p, -1)
	p.Due = due
	s.promise(p, 1)
}

// Reweigh gives a page another weight: when it was found to be more, or less,
// important. Its due time moves if that makes it due earlier.
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
