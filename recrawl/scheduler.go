// This file holds the Scheduler: the calls that report pages and fetches, and their results.
//
// All arithmetic is in days. Each call takes one lock and a constant number of steps. Each time a
// twentieth of the pages has been processed, the price is computed from the histogram, whose size
// does not depend on the number of pages.

package recrawl

import (
	"math"
	"sync"
	"time"
)

// Outcome is the result of a fetch.
type Outcome uint8

const (
	Changed   Outcome = iota // the page differs from the copy, or there was none
	Unchanged                // it does not, or a conditional request said so
	Visited                  // the page was read; whether it changed is unknown. So counts any other value
	Gone                     // 404 or 410
	Failed                   // connection, timeout, 5xx, 429: nothing was learned
	Denied                   // robots.txt or a filter forbids it
)

// Visit is a fetch that ended.
type Visit struct {
	At      time.Time // when it ended
	Outcome Outcome
	// Modified is the Last-Modified of the page; zero if there is none, or if it must not be
	// trusted. A time that contradicts the result of the fetch, or is in the future, is ignored and
	// counts against the host.
	Modified time.Time
}

// Class is the kind of a page's next fetch.
type Class uint8

const (
	First Class = iota // the page was never crawled
	Again              // it is known
	Check              // a probe, a retry, or a check of a page that was gone or denied
)

// Verdict says what to do with a page.
type Verdict struct {
	Class Class
	// Index is the value of the next fetch of the page at its due time, in prices: at 1 it is just
	// worth the price. It is meant for ordering fetches, and may be far above 1 for pages that were
	// never crawled.
	Index float64
	// Drop reports that the page is gone, and that this was confirmed: delete its copy. Due is when
	// to check whether it has come back.
	Drop bool
}

// Scheduler decides when pages are fetched again. Safe for concurrent use.
type Scheduler struct {
	opts        Options
	least, most float64 // 1/MaxInterval, 1/MinInterval in fetches per day
	prior       State   // of a page after its first fetch

	mu        sync.Mutex
	random    uint64
	demand    demand
	prices    prices
	hosts     map[uint32]*host
	hostTake  float64 // sum of take of all bound hosts
	hostCopy  copied  // sum of copy
	atHosts   int64   // pages counted at their hosts
	blank     int64   // number of pages whose last fetch is unknown
	promised  float64 // sum of 1/interval of the pages in the histogram, per day
	wait      int64   // Dones until the price is found again
	budget    budget
	flow      flow
	pace      pace
	volatiles volatiles
	stats     counts
}

// counts are the totals since the start, for Stats.
type counts struct {
	visits, first, probes, late, held uint64
	solves                            uint64
}

// New returns a Scheduler without pages. The error names all faults of the options.
func New(o Options) (*Scheduler, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Scheduler{opts: o, least: 1 / days(o.MaxInterval), most: 1 / days(o.MinInterval), hosts: map[uint32]*host{}, random: o.Seed}
	s.prior[0], s.prior[1] = rateLevel(o.Prior.Mean(), 0.5), alphaLevel(o.Prior.Alpha, 0.5)
	s.demand.prior = s.prior[0]
	s.prices.set(0)
	s.budget.set(o.Budget)
	s.volatiles.logOdds = math.Log(firstOdds)
	return s, nil
}

func days(d time.Duration) float64 { return d.Hours() / 24 }

// span converts days to a duration of at most maxInterval.
func span(days float64) time.Duration {
	if !(days < maxInterval.Hours()/24) {
		return maxInterval
	}
	return time.Duration(math.Round(days*24*3600*1e6)) * time.Microsecond
}

// uniform is a random number from [0,1). (splitmix64)
func (s *Scheduler) uniform() float64 {
	s.random += 0x9e3779b97f4a7c15
	z := s.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// Admit adds a page that was never crawled. It is due now; the verdict says what it is worth
// compared with known pages. A weight that is not positive counts as 0.
func (s *Scheduler) Admit(weight float64, host uint32, now time.Time) (Page, Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Page{Host: host, Due: now}
	p.State[2] = weightLevel(weight)
	s.demand.addNew(p.State, 1)
	s.flow.arrived++
	if s.wait--; s.wait <= 0 {
		s.resolve()
	}
	return p, Verdict{Class: First, Index: s.indexNew(p.State)}
}

// indexNew returns the index of a never-crawled page, in prices: the age of its copy is infinite.
func (s *Scheduler) indexNew(st State) float64 {
	if int8(st[2]) == noWeight {
		return 0
	}
	return st.Weight() / rates[s.prior[0]] * math.Exp(-s.prices.log)
}

// Done reports the result of a fetch, and returns the page with its new state, last fetch and due time.
//
// The due time is zero, for never, if the weight is 0. If At is before the last fetch (a clock was
// set back), the fetch teaches nothing, and the page is due one interval after At. A page that the
// Scheduler does not know is added.
func (s *Scheduler) Done(p Page, v Visit) (Page, Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := p.State.Crawled()
	s.uncount(p)
	s.stats.visits++
	if late(p, v.At) {
		s.notProbed(&p.State)
	}
	if known && !repeats(p.State) {
		s.flow.aside++
	}
	s.tally(p, v.At)
	answer := s.visit(&p, v)
	if !known && p.State.Crawled() {
		s.stats.first++
		s.flow.first++
	}
	if s.count(&p); !counted(p.State) {
		s.emptied(p.Host)
	}
	s.settle(v.At)
	return p, answer
}

// visit sets the state, last fetch and due time of the page.
func (s *Scheduler) visit(p *Page, v Visit) Verdict {
	st := &p.State
	switch v.Outcome {
	case Failed:
		if st.mode() >= gone {
			return s.check(p, v.At, max(days(s.opts.Probe), 1/s.most))
		}
		wait := days(s.opts.MinInterval) * math.Pow(8, float64(st.count()))
		if st.Crawled() {
			wait = min(wait, s.interval(p)/4)
		}
		st.setCount(st.count() + 1)
		return s.check(p, v.At, max(wait, 1/s.most))
	case Gone, Denied:
		return s.absent(p, v)
	}
	s.observe(p, v)
	st.setCount(0)
	p.Last = v.At
	if int8(st[2]) == noWeight {
		p.Due = time.Time{}
		return Verdict{Class: Again}
	}
	if v.Outcome == Changed {
		s.suspect(p)
	}
	switch st.mode() {
	case probing:
		return s.check(p, v.At, s.probe(st.Rate()))
	case probingAgain:
		return s.check(p, v.At, s.again())
	}
	t := s.interval(p)
	p.Due = v.At.Add(span(min(t, s.ahead())))
	return Verdict{Class: Again, Index: s.index(p, t)}
}

// check returns the verdict that a page is checked again after the given number of days.
func (s *Scheduler) check(p *Page, at time.Time, after float64) Verdict {
	p.Due = at.Add(span(after))
	return Verdict{Class: Check, Index: 1}
}

// absent handles a page that is gone or denied. A page that was read before must be found absent
// repeatedly over days before it is put away: a firewall, a release or a robots.txt may deny a whole
// site for hours. A page that was put away is checked after 30 days, then after twice the time that it
// has been away, up to 240 days; a page that was never read after 30, 60, 120 and 240 days.
func (s *Scheduler) absent(p *Page, v Visit) Verdict {
	st := &p.State
	was, mode := st.mode(), byte(gone)
	if v.Outcome == Denied {
		mode = denied
	}
	st.setMode(mode)
	s.unclaim(p)
	if !st.Crawled() {
		st.setCount(st.count() + 1)
		if was != mode {
			st.setCount(0)
		}
		return s.away(p, v, 30*float64(int(1)<<st.count()))
	}
	switch {
	case was < gone, was != mode && st.count() == putAway:
		st.setCount(0)
	case st.count() == putAway, s.confirming(p, st.count()) >= confirmedBy:
		st.setCount(putAway)
	default:
		st.setCount(st.count() + 1)
	}
	if st.count() < putAway {
		return s.check(p, v.At, max(1/s.most, min(s.confirming(p, st.count()), 1/s.least)))
	}
	return s.away(p, v, max(30, min(240, days(v.At.Sub(p.Last)))))
}

// away puts a page away for the given number of days.
func (s *Scheduler) away(p *Page, v Visit, d float64) Verdict {
	answer := s.check(p, v.At, min(d, 1/s.least))
	answer.Drop = v.Outcome == Gone
	return answer
}

// putAway is the count of a page that is confirmed to be gone or denied; below it, the count is how
// often the page was found so again.
const putAway = 3

// confirmedBy is how many days after the visit before a page counts as gone or denied if it
// is so still.
const confirmedBy = 2

// confirming returns how many days to wait before checking a page that was found gone or denied
// again times: first its interval or a probe, then twice and four times as long, and long enough to
// outlast a problem of hours; at most 30 days.
func (s *Scheduler) confirming(p *Page, again byte) float64 {
	least := [putAway]float64{days(s.opts.Probe), 0.5, confirmedBy}
	return min(30, max(least[again], s.interval(p)*float64(int(1)<<again)))
}

// Learn adds a page with its existing state, to rebuild a lost Scheduler from its pages. It returns
// the page to be stored.
func (s *Scheduler) Learn(p Page) Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.State.set(atHost, false)
	s.count(&p)
	s.settle(time.Time{})
	return p
}

// Forget removes a page that is not to be crawled any more.
func (s *Scheduler) Forget(p Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uncount(p)
	s.unclaim(&p)
	s.emptied(p.Host)
}
