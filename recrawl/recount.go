// This file makes the books anew, as after a crash: they and the pages may be of
// different moments then.

package recrawl

import "iter"

// Recount replaces all that is known of which pages there are: it learns of the given
// ones, as Learn does. The price, the budget and the records of hosts stay; the price
// is found if there was none. The other methods must not be called meanwhile.
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

// recount counts a page where its state says that it is: nobody hears of another
// place, and it will be taken out there.
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
