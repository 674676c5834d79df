// This file has the limits of waiting URLs, hand-outs, bytes, failures and depth, for a
// scope, for each of its hosts, and for a crawl.
//
// Limits of waiting URLs and of depth refuse entries when they are added. Use of the others is counted;
// hosts and crawls that have used one up are withheld like paused ones. Package limit counts; this file
// turns its results into events and errors. A frontier without limits pays for one look at a pointer.

package frontier

import (
	"errors"
	"fmt"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/unit"
	"github.com/seed-7440039f/frontier/scope"
)

// ErrLimit is wrapped by the *EntryErrors of entries that scope.Limits.Waiting
// or Depth refused. Such a URL is not known: it may be added later.
var ErrLimit = errors.New("limit reached")

// checkLimits returns an error for invalid limits.
func checkLimits(l *scope.Limits, name string) error {
	var wrong faults.List
	wrong.If(l.Waiting < 0, "%s.Waiting is %d; want >= 0", name, l.Waiting)
	wrong.If(l.Served < 0, "%s.Served is %d; want >= 0", name, l.Served)
	wrong.If(l.Bytes < 0, "%s.Bytes is %d; want >= 0", name, l.Bytes)
	wrong.If(l.Errors < 0, "%s.Errors is %d; want >= 0", name, l.Errors)
	wrong.If(l.Depth < 0, "%s.Depth is %d; want >= 0", name, l.Depth)
	wrong.Add(unit.CheckAll(name+".", *l)...)
	wrong.If(l.Period > maxBlock, "%s.Period is %v; want at most %v", name, l.Period, maxBlock)
	wrong.If(l.Period > 0 && l.Served == 0 && l.Bytes == 0 && l.Errors == 0, "%s.Period is %v; want Served, Bytes or Errors beside it", name, l.Period)
	return errors.Join(wrong...)
}

// subjectOf is the scope as package limit names it.
func subjectOf(s scope.Scope) limit.Subject {
	if id, ok := s.Crawl(); ok {
		return limit.OfCrawl(id)
	}
	return limit.OfScope(s.Hosts())
}

// limitTurnedLocked reports that a limit is reached, or that none is any more.
func (s *shard) limitTurnedLocked(of limit.Subject, turn quota.Turn, what string, until int64) {
	e := event.Event{Kind: event.LimitReached, Reason: what}
	switch of.Kind {
	case limit.Host:
		e.Host, e.Reason = of.Scope.Name, "host "+what
	case limit.Crawl:
		e.Crawl, e.Reason = of.Crawl, "crawl "+what
	default:
		e.Scope, e.Host = of.Scope.String(), of.Scope.Host()
	}
	switch {
	case turn == quota.Lifted:
		e.Kind, e.Reason = event.LimitLifted, ""
	case until != instant.Never:
		e.Until = s.clock.Wall(s.core.Moment(until))
	}
	s.emitLocked(e)
}

// countDoneLocked counts what an ending lease has used. A host's row, or that of a scope
// or crawl, is written with o.
func (s *shard) countDoneLocked(o *op, l *mercator.Lease, out *Outcome) {
	c := s.core
	n := quota.Amount{Bytes: max(0, out.Bytes), Errors: int64(btoi(out.Result == Failed))}
	var x *mercator.Crawl
	if l.Record != 0 {
		x = c.CrawlOf(c.Queues.At(l.Queue))
		n.Served = -int64(btoi(out.Uncontacted))
	}
	c.Use(l.Host, x, n, c.LeaseNumber(l.Token), s.last)
	h := c.Hosts.At(l.Host)
	if h.Has(mercator.Counted) && !out.Uncontacted {
		h.Set(mercator.Unsaved)
	}
	used := n.Bytes+n.Errors > 0 || l.Record != 0 && !out.Uncontacted
	o.Counts = used && s.opts.Spill != nil && c.Limits.Dirty()
}

// limitLocked moves the entries that limits refuse from o to those refused. A URL's own next
// record is never refused, nor one that is forced.
func (s *shard) limitLocked(o *op) {
	c := s.core
	if o.unlimited {
		return
	}
	var g limit.Gate
	kept := 0
	o.Reserved = o.Reserved[:0]
	for i := range o.Entries {
		e := &o.Entries[i]
		if i == 0 || e.Host != g.Host() {
			g = c.Limits.Gate(e.Host)
		}
		if err := s.refusesLocked(&g, e); err != nil {
			if e.Marked {
				s.known.Remove(e.Mark)
			}
			b := record.Must(e.Body)
			o.refuse(e.Index, EntryRefused, &EntryError{Index: e.Index, URL: shortened(string(b.URL)), Err: err})
			continue
		}
		o.Reserved = append(o.Reserved, g.Reserve(e.Crawl))
		if kept < i {
			o.Entries[kept] = *e
		}
		kept++
	}
	o.Entries = o.Entries[:kept]
}

// refusesLocked returns the limit that refuses an entry, if one does.
func (s *shard) refusesLocked(g *limit.Gate, e *ledger.Entry) error {
	c := s.core
	if e.Index < 0 || e.Force {
		return nil
	}
	if g.LimitsDepth(e.Crawl) {
		b := record.Must(e.Body)
		if r, refused := g.TooDeep(e.Crawl, b.Depth); refused {
			return fmt.Errorf("%w: depth %d; %s has at most %d", ErrLimit, r.N, limited(r.Of), r.Most)
		}
	}
	if e.Due != 0 && e.Due > c.Date(s.last) || !g.LimitsWaiting(e.Crawl) {
		return nil
	}
	w := limit.Waiting{All: c.Stats.Waiting}
	if id := c.Lookup(e.Hash, e.Host); id != 0 {
		w.Host = int64(c.Hosts.At(id).Waiting)
	}
	if x := c.FindCrawl(e.Crawl); x != nil {
		w.Crawl = x.Stats.Waiting
	}
	if r, refused := g.Full(e.Crawl, w); refused {
		return fmt.Errorf("%w: %d URLs of %s wait, %d may", ErrLimit, r.N, limited(r.Of), r.Most)
	}
	return nil
}

// limited names what has limits.
func limited(s limit.Subject) string {
	switch s.Kind {
	case limit.Host:
		return "host " + s.Scope.Name
	case limit.Crawl:
		return fmt.Sprint("crawl ", s.Crawl)
	}
	return scope.Of(s.Scope).String()
}

// countDomain counts the URLs of a domain if its limits require it and no call has done
// so, and returns when they are counted.
func (f *Frontier) countDomain(s scope.Scope) error {
	c := f.core
	for {
		if err := f.lockOpen(); err != nil {
			return err
		}
		n, others := c.Limits.BeginCensus(s.Hosts())
		f.mu.Unlock()
		if others != nil {
			<-others
			continue
		}
		if n == nil {
			return nil
		}
		err := f.sweepHosts(s, func(id uint32, _ int64) bool {
			h := c.Hosts.At(id)
			n.Saw(c.Name(h), int64(h.Waiting))
			return true
		})
		f.mu.Lock()
		n.End(err == nil)
		f.mu.Unlock()
		if err != nil {
			return fmt.Errorf("frontier: count %v: %w", s, err)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
