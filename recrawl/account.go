// This file does the accounting: where each page is counted, what it was promised, and when the
// price is computed again.

package recrawl

import "time"

// counted reports whether the page is in a histogram.
func counted(st State) bool { return st.Crawled() && st.mode() < gone && int8(st[2]) != noWeight }

// repeats reports whether the page's due time comes from its interval.
func repeats(st State) bool { return !probes(st) && st.count() == 0 && !st.has(claimed) }

// count adds the page to the accounts. A page of a bound host is counted at the host.
func (s *Scheduler) count(p *Page) {
	st := &p.State
	if !st.Crawled() {
		if st.mode() < gone {
			s.demand.addNew(*st, 1)
		}
		return
	}
	if !counted(*st) {
		return
	}
	h := s.hosts[p.Host]
	st.set(atHost, h != nil && h.own != nil)
	s.book(p)
}

// book counts a page where its state says that it is counted.
func (s *Scheduler) book(p *Page) {
	s.promise(p, 1)
	if !p.State.has(atHost) {
		s.demand.add(priced(p.State), 1)
		return
	}
	h := s.hosts[p.Host]
	s.add(h, p.State, 1)
	if h.wait--; h.wait <= 0 {
		s.reprice(h)
	}
}

// uncount removes the page from the accounts.
func (s *Scheduler) uncount(p Page) {
	if !p.State.Crawled() {
		if p.State.mode() < gone {
			s.demand.addNew(p.State, -1)
		}
		return
	}
	if !counted(p.State) {
		return
	}
	s.promise(&p, -1)
	if h := s.hosts[p.Host]; p.State.has(atHost) {
		if h != nil && h.own != nil {
			s.add(h, p.State, -1)
		}
		return
	}
	s.demand.add(priced(p.State), -1)
}

// add counts a page at its host.
func (s *Scheduler) add(h *host, st State, n int32) {
	st = priced(st)
	if h.own.add(st, n) == 0 {
		return
	}
	s.atHosts += int64(n)
	if h.shift == 0 {
		s.demand.free.add(st, n)
	}
}

// emptied frees the share of the budget of a host that has no pages left.
func (s *Scheduler) emptied(id uint32) {
	if h := s.hosts[id]; h != nil && h.shift > 0 && h.own.pages == 0 {
		s.reprice(h)
	}
}

// promise adds n times what the page was promised: one fetch per interval. Probes, retries and
// claims do not count; they are not paid at the price.
func (s *Scheduler) promise(p *Page, n float64) {
	if st := p.State; !counted(st) || !repeats(st) {
		return
	}
	h := s.hosts[p.Host]
	if h != nil && !p.State.has(atHost) {
		h = nil
	}
	if p.Last.IsZero() || p.Due.IsZero() {
		s.blank = max(0, s.blank+int64(n))
		if h != nil {
			h.blank = max(0, h.blank+int64(n))
		}
		return
	}
	// In seconds, like a record: what was added must be subtracted exactly.
	t := (float64(seconds(p.Due, time.Second-1)) - float64(seconds(p.Last, 0))) / secondsPerDay
	share := n / max(1/s.most, min(2/s.least, t))
	if h != nil {
		h.promised = max(0, h.promised+share)
		if h.shift > 0 {
			return
		}
	}
	s.promised = max(0, s.promised+share)
}

// observe learns from a page that was read.
func (s *Scheduler) observe(p *Page, v Visit) {
	st := &p.State
	if !st.Crawled() {
		st[0], st[1] = s.prior[0], s.prior[1]
		st.setMode(unproven)
		return
	}
	s.verify(p, v)
	if st.mode() == gone || st.mode() == denied {
		st.setMode(steady)
		return // what happened in between is unknown
	}
	t := days(v.At.Sub(p.Last))
	if v.Outcome > Unchanged || p.Last.IsZero() || !(t > 0) {
		if probes(*st) {
			st.setMode(steady) // else it would be probed forever
		}
		return
	}
	g := st.belief()
	if v.Outcome == Unchanged {
		g = s.unchanged(st, g, t)
	} else {
		g = s.changed(p, v, g, t)
	}
	g = g.atMost(16)
	st[0], st[1] = rateLevel(g.Mean(), s.uniform()), alphaLevel(g.Alpha, s.uniform())
}

func (s *Scheduler) unchanged(st *State, g Gamma, t float64) Gamma {
	switch st.mode() {
	case volatile:
		g = s.opts.Prior
		st.setMode(steady)
	case probing, probingAgain:
		st.setMode(probed)
	default:
		st.setMode(steady)
	}
	return g.Unchanged(t)
}

// modified is how many days before the visit the page changed last, if its
// Last-Modified can be true and its host is honest.
func (s *Scheduler) modified(p *Page, v Visit, t float64) (float64, bool) {
	if v.Modified.IsZero() {
		return 0, false
	}
	ago := days(v.At.Sub(v.Modified))
	if h := s.hosts[p.Host]; h != nil && h.misses > 1+h.hits/8 {
		return 0, false
	}
	// Clocks may differ, and a page that is always generated anew says "now".
	return ago, ago > 1e-3 && ago < t
}

// settle counts a Done, and finds the price again when it is time.
func (s *Scheduler) settle(at time.Time) {
	s.wait--
	if s.wait > 0 {
		return
	}
	s.flow.close(s.demand.news > 0, s.opts.NewShareMin, s.opts.NewShareMax)
	s.budget.close(at)
	s.resolve()
}

// mostWait is the longest window.
const mostWait = 1 << 20

// window is after how many Dones the price is found again.
func (s *Scheduler) window() int64 { return min(max(256, (s.known()+s.demand.news)/20), mostWait) }

// known is how many pages are counted.
func (s *Scheduler) known() int64 { return s.demand.pages + s.atHosts }

// resolve finds the price.
func (s *Scheduler) resolve() {
	s.wait = s.window()
	target := s.forRecrawl()
	if !(target > 0) || s.known()+s.demand.news == 0 {
		return
	}
	s.stats.solves++
	s.demand.solve(&s.prices, target, s.least, s.most)
}

// forRecrawl returns the part of the budget, per day, that is left for the pages in the histogram:
// without the fetches of new pages and bound hosts. It is at least a tenth of the budget.
func (s *Scheduler) forRecrawl() float64 {
	b := s.budget.perDay * (1 - s.flow.share - s.flow.asides)
	return max(b-s.hostTake, b/10)
}

// newShare returns the share of the fetches that never-crawled pages should have now.
func (s *Scheduler) newShare() float64 {
	if s.demand.news == 0 || s.budget.perDay == 0 {
		return 0
	}
	now := float64(s.demand.worthNew(&s.prices)) / s.budget.perDay
	return max(s.opts.NewShareMin, min(s.opts.NewShareMax, max(now, s.flow.share)))
}

// flow measures the shares of the fetches that go to pages crawled at once on arrival, and to
// probes, retries and claims. The price does not control either of them.
type flow struct {
	arrived, first, aside, visits int64
	share, asides                 float64
	measured                      bool
}

func (f *flow) close(waiting bool, least, most float64) {
	if f.visits > 0 && f.measured { // arrivals before the first fetches are not flow
		n := float64(f.visits)
		f.share += (float64(min(f.arrived, f.first))/n - f.share) / 8
		f.asides += (min(0.5, float64(f.aside)/n) - f.asides) / 8
	}
	f.arrived, f.first, f.aside, f.visits, f.measured = 0, 0, 0, 0, f.measured || f.visits > 0
	f.share = min(f.share, most, 0.9)
	if waiting {
		f.share = max(f.share, min(least, 0.9))
	}
}
