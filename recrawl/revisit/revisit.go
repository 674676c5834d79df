// This file is the Scheduler of a frontier that asks one of package recrawl.

// Package revisit lets a recrawl.Scheduler plan the visits of a frontier: it is
// told how each lease ended, keeps its 12 bytes of a page beside the URL
// (frontier.History.State), and is asked again when the page's time has come.
//
//	s, err := recrawl.New(recrawl.Options{Budget: 20})
//	f, err := frontier.Open(ctx, frontier.Options{Scheduler: revisit.New(s, revisit.Options{}), ...})
//
// A URL's weight is its Entry.Weight at its first visit, or the greater one of a hint
// since; 0 counts as 1, and a negative one as 0: such a page is not visited again. The number of a host is
// [HostNumber] of its key. Pages that were never visited are not known to the
// recrawl.Scheduler: they are admitted with their first visit.
//
// A page that is gone stays in the frontier: it is confirmed after Options.Probe,
// and then looked at after 30, 60, 120 and 240 days. A failed page is the retry
// policy's until its tries are used up, and the recrawl.Scheduler's then.
package revisit

import (
	"math"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/recrawl"
)

// Options configure a Scheduler. The zero value is ready to use.
type Options struct {
	// OnDrop, if set, is told of each page that was confirmed to be gone, whenever
	// that is found, before its Done returns; from any goroutine.
	OnDrop func(frontier.Entry)
}

// Scheduler is a frontier.Rechecker and a frontier.Hinter. Safe for concurrent use.
type Scheduler struct {
	s *recrawl.Scheduler
	o Options
}

// New makes a frontier's scheduler of s, which may be asked and told other things
// meanwhile: its budget, rates of hosts, its Stats.
func New(s *recrawl.Scheduler, o Options) *Scheduler { return &Scheduler{s, o} }

// Next implements frontier.Scheduler: it takes about 0.5 us and does not allocate.
func (s *Scheduler) Next(v frontier.Visit) (time.Time, frontier.State) {
	var p recrawl.Page
	if v.Before.State == (frontier.State{}) {
		p, _ = s.s.Admit(weightOf(v.Entry), HostNumber(v.Host), v.Outcome.Ended)
	} else {
		p = PageOf(v.Host, v.Before)
	}
	p, verdict := s.s.Done(p, recrawl.Visit{At: v.Outcome.Ended, Outcome: outcomeOf(v.Outcome.Result), Modified: v.Outcome.Modified})
	if verdict.Drop && s.o.OnDrop != nil {
		s.o.OnDrop(v.Entry)
	}
	keep := record(p)
	_ = p.UnmarshalBinary(keep[:]) // in whole seconds, as Recheck will see it
	return p.Due, keep
}

// Recheck implements frontier.Rechecker.
func (s *Scheduler) Recheck(_ frontier.Entry, host string, h frontier.History, now time.Time) (time.Time, frontier.State) {
	p, due := s.s.Recheck(PageOf(host, h), now)
	return due, record(p)
}

// Hint implements frontier.Hinter: a page that was found again has the weight that is
// known by now, and what is said of it, that it changed at found.NotBefore, is weighed
// by how many claims of its host came true (recrawl.Scheduler.Hint).
func (s *Scheduler) Hint(known, found frontier.Entry, host string, h frontier.History, now time.Time) frontier.Hinted {
	before := PageOf(host, h)
	if !before.State.Crawled() {
		return frontier.Hinted{Keep: h.State}
	}
	p := before
	if w := weightOf(known); math.Abs(w-p.State.Weight()) > 0.08*p.State.Weight() {
		p = s.s.Reweigh(p, w, now)
	}
	p = s.s.Hint(p, found.NotBefore, now)
	if p == before {
		return frontier.Hinted{Keep: h.State}
	}
	keep := record(p)
	_ = p.UnmarshalBinary(keep[:]) // in whole seconds, as Recheck will see it
	return frontier.Hinted{Due: p.Due, Keep: keep}
}

// weightOf is what a fresh copy of a page is worth.
func weightOf(e frontier.Entry) float64 {
	if e.Weight == 0 {
		return 1
	}
	return e.Weight
}

// PageOf is what is known of a page of a host with this key: for prioritizers, and
// to rebuild a recrawl.Scheduler with Learn.
func PageOf(host string, h frontier.History) recrawl.Page {
	p := recrawl.Page{Host: HostNumber(host)}
	if h.State != (frontier.State{}) {
		_ = p.UnmarshalBinary(h.State[:]) // any 12 bytes are a page
	}
	return p
}

func record(p recrawl.Page) (s frontier.State) {
	_, _ = p.AppendBinary(s[:0]) // 12 bytes
	return s
}

// HostNumber is the number of the host with this key: FNV-1a, the same for ever.
// Two hosts in four billion have one number; they share their rate and record.
func HostNumber(host string) uint32 {
	n := uint32(2166136261)
	for i := range len(host) {
		n = (n ^ uint32(host[i])) * 16777619
	}
	return n
}

func outcomeOf(r frontier.Result) recrawl.Outcome {
	switch r {
	case frontier.Changed:
		return recrawl.Changed
	case frontier.Unchanged:
		return recrawl.Unchanged
	case frontier.Gone:
		return recrawl.Gone
	case frontier.Failed:
		return recrawl.Failed
	case frontier.Denied:
		return recrawl.Denied
	}
	return recrawl.Visited
}
