// This file rebuilds the accounts, as after a crash, when they and the pages may be from different
// moments.

package recrawl

import "iter"

// Recount replaces all accounts of pages by those of the given pages, as if Learn were called with
// each. The price, the budget and the records of hosts stay; if there is no price yet, it is
// computed. Do not call other methods concurrently.
func (s *Scheduler) Recount(pages iter.Seq[Page]) {
	s.mu.Lock()
	s.demand = demand{prior: s.demand.prior}
	s.atHosts, s.blank, s.promised = 0, 0, 0
	for _, h := range s.hosts {
		h.blank, h.promised, h.pending = 0, 0, 0
		if h.own != nil {
			h.own = new(spread)
		}
	}
	s.mu.Unlock()
	for p := range pages { // no lock is held while the caller reads it
		s.mu.Lock()
		s.recount(p)
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hosts {
		if h.own != nil {
			s.reprice(h)
		}
	}
	s.wait = s.window()
	if s.stats.solves == 0 {
		s.resolve()
	}
}

// recount counts a page where its state says that it is counted: the caller does not store another
// state, so the page will be removed from there.
func (s *Scheduler) recount(p Page) {
	if !counted(p.State) || !p.State.has(atHost) {
		p.State.set(atHost, false)
		if !p.State.Crawled() {
			s.count(&p)
		} else if counted(p.State) {
			s.book(&p)
		}
		return
	}
	if h := s.hostOf(p.Host); h.own == nil { // it had a rate once
		h.own = new(spread)
	}
	s.book(&p)
}
