// This file is the Scheduler of a frontier that asks one of package recrawl.

// Package adapter lets a recrawl.Scheduler plan the visits of a frontier: it is
// told how each lease ended, keeps its 12 bytes of a page beside the URL
// (frontier.History.State), and is asked again when the page's time has come.
//
//	s, err := recrawl.New(recrawl.Options{Budget: 20})
//	f, err := frontier.Open(ctx, frontier.Options{Scheduler: adapter.New(s, adapter.Options{}), ...})
//
// The number of a host is [Scheduler.HostNumber] of its key. A URL's weight is its
// Entry.Weight, the greater one of a hint included; 0 counts as 1, and a negative one
// as 0: such a page is not visited again. Options.Weight may weigh otherwise. Pages that
// were never visited are not known to the recrawl.Scheduler: they are admitted with
// their first visit.
//
// A page that is gone stays in the frontier: that is confirmed over days, and then it is
// looked at after 30 to 240 days. A failed page is the retry
// policy's until its tries are used up, and the recrawl.Scheduler's then.
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
	// OnDrop, if set, is told of each page that was confirmed to be gone, whenever
	// that is found, before its Done returns; from any goroutine.
	OnDrop func(frontier.Entry)
	// Weight is what a fresh copy of a page is worth beside others, from 1e-4 to 1e4, or
	// 0: it is not visited again. It is asked at each visit, with the history before it, and
	// of each hint; from any goroutine. Nil means the Entry's Weight.
	Weight func(e frontier.Entry, h frontier.History) float64
	// Key is that of the numbers of hosts (SipHash-2-4), and is as long-lived as the
	// recrawl.Scheduler's snapshots. Two hosts in four billion have one number; they share
	// their rate and record. Whoever knows the key can name hosts so that they do: keep it
	// secret if hosts are of others' choice. The zero value is a key like any other.
	Key [2]uint64
}

// Scheduler is a frontier.Rechecker and a frontier.Hinter. Safe for concurrent use.
type Scheduler struct {
	s *recrawl.Scheduler
	o Options
}

// New makes a frontier's scheduler of s, which may be asked and told other things
// meanwhile: its budget, rates of hosts, its Stats.
func New(s *recrawl.Scheduler, o Options) *Scheduler {
	if o.Weight == nil {
		o.Weight = weightOf
	}
	return &Scheduler{s, o}
}

// Next implements frontier.Scheduler: it takes about 0.5 us and does not allocate.
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

// Hint implements frontier.Hinter: a page that was found again has the weight that is
// known by now, and what is said of it, that it changed at found.NotBefore, is weighed
// by how many claims of its host came true (recrawl.Scheduler.Hint).
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

// weighed is a page with a weight, if that is another one than the page has: a State's
// are 7.5 % apart.
func (s *Scheduler) weighed(p recrawl.Page, weight float64, now time.Time) recrawl.Page {
	if w := p.State.Weight(); math.Abs(weight-w) > 0.08*w {
		return s.s.Reweigh(p, weight, now)
	}
	return p
}

// weightOf is what a fresh copy of a page is worth, if nobody says otherwise.
func weightOf(e frontier.Entry, _ frontier.History) float64 {
	if e.Weight == 0 {
		return 1
	}
	return e.Weight
}

// PageOf is what is known of a page of a host with this key: for prioritizers, say.
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

// HostNumber is the number of the host with this key, under Options.Key the same for
// ever: for recrawl.Scheduler.SetHostRate.
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
