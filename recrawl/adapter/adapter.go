// This file implements frontier.Scheduler on a Scheduler of package recrawl.

// Package adapter lets a recrawl.Scheduler plan the visits of a frontier. It reports how each lease
// ended, stores the 12 bytes of a page with its URL (frontier.History.State), and calls Recheck
// when the page is due.
//
//	s, err := recrawl.New(recrawl.Options{Budget: 20})
//	f, err := frontier.Open(ctx, frontier.Options{Scheduler: adapter.New(s, adapter.Options{}), ...})
//
// The number of a host is [Scheduler.HostNumber] of its key. The weight of a URL is its
// Entry.Weight, or that of a hint if greater; 0 counts as 1, and a negative weight as 0: such a
// page is not visited again. Options.Weight replaces this rule. The recrawl.Scheduler does not know
// pages that were never visited: their first visit admits them.
//
// A page that is gone stays in the frontier: this is confirmed over days, and after that the page
// is visited every 30 to 240 days. The retry policy handles a failed page until its tries are used
// up, then the recrawl.Scheduler does.
package adapter

import (
	"math"
	"time"

	"github.com/dchest/siphash"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/recrawl"
)

// Options configure a Scheduler. The zero value is ready to use.
type Options struct {
	// OnDrop, if set, is called whenever a page is confirmed to be gone, before its Done returns;
	// from any goroutine.
	OnDrop func(frontier.Entry)
	// Weight returns the value of a fresh copy of a page compared with others, from 1e-4 to 1e4, or
	// 0 if the page is not to be visited again. It is called at each visit, with the history before
	// it, and for each hint; from any goroutine. Nil means the Entry's Weight.
	Weight func(e frontier.Entry, h frontier.History) float64
	// Key is the key under which hosts get their numbers (SipHash-2-4). Keep it as long as the
	// snapshots of the recrawl.Scheduler. Two hosts in four billion have the same number; they
	// share their rate and record. Anyone who knows the key can choose host names with the same
	// number: keep it secret if hosts are chosen by others. The zero value is a valid key.
	Key [2]uint64
}

// Scheduler is a frontier.Rechecker and a frontier.Hinter. Safe for concurrent use.
type Scheduler struct {
	s *recrawl.Scheduler
	o Options
}

// New returns a frontier.Scheduler on s. Other calls of s remain allowed: to set its budget or
// rates of hosts, or to read its Stats.
func New(s *recrawl.Scheduler, o Options) *Scheduler {
	if o.Weight == nil {
		o.Weight = weightOf
	}
	return &Scheduler{s, o}
}

// Next implements frontier.Scheduler. It takes about 0.5 us and does not allocate.
func (s *Scheduler) Next(v frontier.Visit) (time.Time, frontier.State) {
	weight, p := s.o.Weight(v.Entry, v.Before), s.PageOf(v.Host, v.Before)
	if v.Before.State == (frontier.State{}) {
		p, _ = s.s.Admit(weight, p.Host, v.Outcome.Ended)
	} else {
		p = s.weighed(p, weight, v.Outcome.Ended)
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
	p, due := s.s.Recheck(s.PageOf(host, h), now)
	return due, record(p)
}

// Hint implements frontier.Hinter. A page that was found again gets its current weight; the claim
// that it changed at found.NotBefore counts according to how many claims of its host proved true
// (recrawl.Scheduler.Hint).
func (s *Scheduler) Hint(known, found frontier.Entry, host string, h frontier.History, now time.Time) frontier.Hinted {
	before := s.PageOf(host, h)
	if !before.State.Crawled() {
		return frontier.Hinted{Keep: h.State}
	}
	p := s.s.Hint(s.weighed(before, s.o.Weight(known, h), now), found.NotBefore, now)
	if p == before {
		return frontier.Hinted{Keep: h.State}
	}
	keep := record(p)
	_ = p.UnmarshalBinary(keep[:]) // in whole seconds, as Recheck will see it
	return frontier.Hinted{Due: p.Due, Keep: keep}
}

// weighed returns a page with the given weight, if it differs from the current one: the weights of
// a State are 7.5 % apart.
func (s *Scheduler) weighed(p recrawl.Page, weight float64, now time.Time) recrawl.Page {
	if w := p.State.Weight(); math.Abs(weight-w) > 0.08*w {
		return s.s.Reweigh(p, weight, now)
	}
	return p
}

// weightOf is the default of Options.Weight.
func weightOf(e frontier.Entry, _ frontier.History) float64 {
	if e.Weight == 0 {
		return 1
	}
	return e.Weight
}

// PageOf returns what is known about a page of the host with this key: for prioritizers, say.
func (s *Scheduler) PageOf(host string, h frontier.History) recrawl.Page {
	p := recrawl.Page{Host: s.HostNumber(host)}
	if h.State != (frontier.State{}) {
		_ = p.UnmarshalBinary(h.State[:]) // any 12 bytes are a page
	}
	return p
}

func record(p recrawl.Page) (s frontier.State) {
	_, _ = p.AppendBinary(s[:0]) // 12 bytes
	return s
}

// HostNumber returns the number of the host with this key, for recrawl.Scheduler.SetHostRate. It
// depends only on the key and Options.Key.
func (s *Scheduler) HostNumber(host string) uint32 {
	var short [256]byte // nothing is allocated for it
	return uint32(siphash.Hash(s.o.Key[0], s.o.Key[1], append(short[:0], host...)))
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
