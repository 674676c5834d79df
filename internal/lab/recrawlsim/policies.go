// This file holds the policies that are compared.

package recrawlsim

import (
	"math"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
)

// plain are policies without a second thought.
type plain struct{}

func (plain) Recheck(_ int, now float64) float64 { return now }
func (plain) Early(_ int, due float64) float64   { return due }
func (plain) Budget(float64)                     {}

type uniform struct{ plain }

// Uniform fetches the page whose last fetch is oldest.
func Uniform(*Web) Policy { return uniform{} }

func (uniform) Done(_ int, v Visit) float64 { return v.Now + 1 }

type fixed struct {
	plain
	w    *web
	intv []float64
}

func (f *fixed) Done(i int, v Visit) float64 { return v.Now + min(1e4, f.intv[i]) }

// Proportional fetches pages in proportion to their known rates of change.
func Proportional(x *Web) Policy {
	f := &fixed{w: x.w, intv: make([]float64, x.w.Pages)}
	sum := 0.
	for i := range x.w.pages {
		sum += min(1e4, x.w.pages[i].rate)
	}
	for i := range f.intv {
		f.intv[i] = sum / x.w.Budget / min(1e4, x.w.pages[i].rate)
	}
	return f
}

type known struct {
	fixed
	drifted bool
}

// Known fetches at the intervals that are best for the known rates.
func Known(x *Web) Policy {
	return &known{fixed: fixed{w: x.w, intv: x.w.best(0, x.w.Budget).interval}}
}

func (k *known) Done(i int, v Visit) float64 {
	if w := k.w; w.Drift > 0 && v.Now >= w.Drift && !k.drifted {
		k.drifted, k.intv = true, w.best(v.Now, w.Budget).interval
	}
	return k.fixed.Done(i, v)
}

type nutch struct {
	plain
	sync     bool
	interval []float64
	modified []float64
}

// Nutch is Apache Nutch's AdaptiveFetchSchedule with its default settings.
func Nutch(x *Web) Policy {
	n := &nutch{sync: true, interval: make([]float64, x.w.Pages), modified: make([]float64, x.w.Pages)}
	for i := range n.interval {
		n.interval[i] = 30
	}
	return n
}

// NutchUnsynced is the same with db.fetch.schedule.adaptive.sync_delta off.
func NutchUnsynced(x *Web) Policy {
	n := Nutch(x).(*nutch)
	n.sync = false
	return n
}

func (n *nutch) Done(i int, v Visit) float64 {
	t, from := n.interval[i], v.Now
	switch {
	case v.Last < 0:
		n.modified[i] = v.Now
	case v.Changed:
		t *= 1 - 0.2
		n.modified[i] = v.Now
	default:
		t *= 1 + 0.4
	}
	if n.sync {
		delta := v.Now - n.modified[i]
		t = max(t, delta)
		from -= 0.3 * delta
	}
	n.interval[i] = max(60./86400, min(365, t))
	return from + n.interval[i]
}

// learned is the optimum for estimated rates, computed globally every day.
type learned struct {
	plain
	w      *web
	n, x   []float64
	time   []float64
	rates  []float64
	most   float64
	price  float64
	solved float64
}

// Cho estimates rates as Cho and Garcia-Molina (TOIT 2003) do, and fetches at the optimal intervals
// for them, at least once a year.
func Cho(x *Web) Policy { return cho(x, 365) }

// Cho60 does so at least every 60 days.
func Cho60(x *Web) Policy { return cho(x, 60) }

func cho(x *Web, most float64) Policy {
	n := x.w.Pages
	l := &learned{w: x.w, rates: make([]float64, n), n: make([]float64, n), x: make([]float64, n), time: make([]float64, n), most: most, solved: -1, price: 1}
	for i := range l.rates {
		l.rates[i] = l.rate(i)
	}
	return l
}

func (l *learned) rate(i int) float64 {
	if l.n[i] == 0 {
		return 1. / 30
	}
	return max(1e-4, -math.Log((l.n[i]-l.x[i]+0.5)/(l.n[i]+0.5))*l.n[i]/l.time[i])
}

func (l *learned) intervalOf(i int, price float64) float64 {
	rate := l.rates[i]
	return min(l.most, unworth(price*rate/l.w.pages[i].seen)/rate)
}

// worthTable is recrawl.Interval(1, 1, y) for y = e^(-20 + n/200).
var worthTable = func() (x [20*200 + 1]float64) {
	for i := range x {
		x[i] = recrawl.Interval(1, 1, math.Exp(-20+float64(i)/200))
	}
	return x
}()

// unworth is Interval(1, 1, y), near enough to be found for all pages at once.
func unworth(y float64) float64 {
	t := &worthTable
	i := int(200 * (math.Log(y) + 20))
	return t[max(0, min(len(t)-1, i))]
}

func (l *learned) Done(i int, v Visit) float64 {
	if v.Last >= 0 {
		l.n[i]++
		l.time[i] += v.Now - v.Last
		if v.Changed {
			l.x[i]++
		}
		l.rates[i] = l.rate(i)
	}
	if v.Now >= l.solved+1 {
		l.solved = v.Now
		l.price = math.Exp(bisect(func(log float64) bool {
			sum := 0.
			for j := range l.n {
				sum += 1 / l.intervalOf(j, math.Exp(log))
			}
			return sum > l.w.Budget
		}))
	}
	return v.Now + l.intervalOf(i, l.price)
}

// ours is package recrawl.
type ours struct {
	s     *recrawl.Scheduler
	w     *web
	known bool
	pages []recrawl.Page
	class []recrawl.Class // of each page's next fetch
}

var start = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC) // a Monday

func at(days float64) time.Time {
	return start.Add(time.Duration(days * 24 * float64(time.Hour)))
}

func since(t time.Time) float64 {
	if t.IsZero() {
		return 1e4
	}
	return t.Sub(start).Hours() / 24
}

// Ours learns the rates.
func Ours(x *Web) Policy { return newOurs(x, false) }

// OursKnown knows the rates.
func OursKnown(x *Web) Policy { return newOurs(x, true) }

// True learns the rates, and knows what each page is worth: spam nothing.
func True(x *Web) Policy {
	a := newOurs(x, false)
	for i := range a.pages {
		a.pages[i] = a.s.Reweigh(a.pages[i], max(1e-4, x.w.pages[i].weight), start)
	}
	return a
}

// newScheduler returns a Scheduler that knows the budget and the hosts' rates.
func newScheduler(x *Web) *recrawl.Scheduler {
	s, err := recrawl.New(recrawl.Options{Seed: x.w.Seed})
	if err == nil {
		err = s.SetBudget(x.w.Budget / 86400)
	}
	for h := 0; h < x.w.Hosts && x.w.HostMost > 0 && err == nil; h++ {
		err = s.SetHostRate(uint32(h), x.w.HostMost/86400)
	}
	if err != nil {
		panic(err)
	}
	return s
}

func newOurs(x *Web, known bool) *ours {
	a := &ours{s: newScheduler(x), w: x.w, known: known, pages: make([]recrawl.Page, x.w.Pages), class: make([]recrawl.Class, x.w.Pages)}
	s := a.s
	for i := range a.pages {
		p := &x.w.pages[i]
		a.pages[i], _ = s.Admit(p.seen, uint32(p.host), start)
		if known {
			s.Forget(a.pages[i])
			a.pages[i].State = recrawl.Known(p.rate, p.seen)
			a.pages[i] = s.Learn(a.pages[i])
		}
	}
	return a
}

func (a *ours) Budget(perDay float64) {
	if err := a.s.SetBudget(perDay / 86400); err != nil {
		panic(err)
	}
}

func (a *ours) Price() float64 { return a.s.Stats().Price }

func (a *ours) Recheck(i int, now float64) float64 {
	p, when := a.s.Recheck(a.pages[i], at(now))
	a.pages[i] = p
	if !when.After(at(now)) {
		return now
	}
	return since(when)
}

// Early passes by pages that the Scheduler only wants to look at again.
func (a *ours) Early(i int, due float64) float64 {
	if p := a.pages[i]; p.State.Crawled() && a.class[i] == recrawl.Again {
		return max(due, since(p.Last.Add(a.s.Interval(p)))-1e-3)
	}
	return due
}

func (a *ours) Done(i int, v Visit) float64 {
	visit := recrawl.Visit{At: at(v.Now), Outcome: recrawl.Unchanged}
	if v.Changed {
		visit.Outcome = recrawl.Changed
	}
	if a.known {
		visit.Outcome = recrawl.Visited
		if p := &a.w.pages[i]; a.w.Drift > 0 && v.Now >= a.w.Drift && p.then != p.rate && v.Last < a.w.Drift {
			a.s.Forget(a.pages[i])
			a.pages[i].State = recrawl.Known(p.then, p.seen)
			a.pages[i] = a.s.Learn(a.pages[i])
		}
	}
	if v.Modified >= 0 {
		visit.Modified = at(v.Modified)
	}
	var verdict recrawl.Verdict
	a.pages[i], verdict = a.s.Done(a.pages[i], visit)
	a.class[i] = verdict.Class
	return since(a.pages[i].Due)
}
