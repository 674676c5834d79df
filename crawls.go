// This file has the settings and figures of crawls: weight, pause, limits, and what has
// become of their URLs.
//
// A crawl need not be created: it exists as soon as an entry names it. Its settings are
// durable; its counters start from zero at each opening.

package frontier

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

// crawlSettings are the settings in the Rule of a crawl.
type crawlSettings struct {
	weight int // 1 unless another is set
	paused bool
	limits Limits
}

var defaultCrawl = crawlSettings{weight: 1}

// rule is the settings as Rule returns them.
func (s *crawlSettings) rule() Rule {
	r := Rule{Limits: s.limits}
	if s.weight != 1 {
		r.Weight = s.weight
	}
	if s.paused {
		r.Paused = On
	}
	return r
}

// settings is the inverse of rule; it returns an error for a rule that no crawl can have.
func (r *Rule) settings() (crawlSettings, error) {
	errs := []error{r.Limits.check("Limits")}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Weight < 0 || r.Weight > row.MaxWeight {
		bad("Weight is %d; want 1 to %d, or 0 for 1", r.Weight, row.MaxWeight)
	}
	if r.Paused > Off {
		bad("Paused is %d; want Unset, On or Off", r.Paused)
	}
	ofHosts := *r
	ofHosts.Weight, ofHosts.Paused, ofHosts.Limits = 0, Unset, Limits{}
	if ofHosts != (Rule{}) {
		bad("a crawl has Weight, Paused and Limits; the other settings are of hosts")
	}
	return crawlSettings{weight: max(1, r.Weight), paused: r.Paused == On, limits: r.Limits}, errors.Join(errs...)
}

// CheckCrawl returns an error for a rule that no crawl can have.
func (r Rule) CheckCrawl() error {
	_, err := r.settings()
	return err
}

// CrawlStats describes one crawl. Scheduled and finished URLs lie on disk in the order of
// their times; they are counted by crawl with Options.Count only.
type CrawlStats struct {
	Rule Rule
	Used Used // of Rule.Limits

	Waiting   int64   // URLs that may be handed out as soon as their hosts may be contacted
	WaitingBy []int64 // the same by priority: WaitingBy[p-1] for priority p
	Immediate int64   // of Waiting: those of CrawlNow, which WaitingBy has not
	Leased    int64   // leases out; with Options.Count also URLs whose change is on its way to the disk
	Scheduled int64   // URLs with a future time, with Options.Count
	Finished  int64   // URLs that are done and kept, with Options.Count

	// Since Open, or since the crawl was forgotten: see Frontier.CrawlStats.
	Added     int64    // URLs admitted for the first time, or by Force
	HandedOut int64    // leases
	Done      [8]int64 // Done calls by Result, and leases that expired
}

// changeCrawl is changeRule for the scope of a crawl.
func (f *Frontier) changeCrawl(what string, scope Scope, change func(*Rule) error) error {
	o := newOp()
	defer o.free()
	if err := f.lockOpen(); err != nil {
		return err
	}
	id := scope.crawl
	old := f.latestCrawlLocked(id)
	r := old.rule()
	if err := change(&r); err != nil {
		f.mu.Unlock()
		return err
	}
	s, err := r.settings()
	if err != nil {
		f.mu.Unlock()
		return fmt.Errorf("frontier: %s of %v: %w", what, scope, err)
	}
	o.rows = append(o.rows, storedCrawl(id, &s).Row())
	if s.limits == (Limits{}) && old.limits != (Limits{}) {
		o.rows = append(o.rows, storage.Row{Key: limit.OfCrawl(id).RowKey()})
	}
	if b := f.sched.limits; b != nil {
		b.EndPeriod(limit.OfCrawl(id), f.token, f.sched.date(f.last)) // with what may change it
	}
	f.crawlChanges.begin(id, s)
	o.rule = func() {
		f.crawlChanges.end(id)
		f.sched.setCrawl(id, s, f.token, f.last)
	}
	o.unrule = func() { f.crawlChanges.end(id) }
	if err := f.submitAndUnlock(o); err != nil {
		return err
	}
	if s.paused {
		f.freePaused(id)
	}
	return nil
}

// latestCrawlLocked returns the settings of a crawl as of the last change submitted, from
// which the next one starts.
func (s *shard) latestCrawlLocked(id uint32) crawlSettings {
	if p := s.crawlChanges[id]; p != nil {
		return p.latest
	}
	if x := s.sched.findCrawl(id); x != nil {
		return x.settings
	}
	return defaultCrawl
}

// freePaused takes hosts that have nothing else to offer out of the ready lists of a
// paused crawl: they may occupy slots of groups.
func (f *Frontier) freePaused(id uint32) {
	for level := 1; level <= f.opts.Priorities+1; level++ {
		for left, first := 0, true; first || left > 0; first = false {
			f.lock()
			x := f.sched.findCrawl(id)
			if x == nil || x.runs() || f.closed {
				f.mu.Unlock()
				return
			}
			l := &x.lists[readies].at[level]
			if first {
				left = l.n // later ones are looked at when they come
			}
			f.sched.regroup(l, min(left, sweepAtOnce), f.last)
			left -= sweepAtOnce
			f.dispatchLocked()
			f.mu.Unlock()
		}
	}
}

// CrawlStats describes a crawl, and reports whether anything is known about it. A crawl
// with default settings, and without a host in memory that had a URL of it, may be
// forgotten once there are more than 256 such crawls; with Options.Count it is known as
// long as it has URLs.
func (f *Frontier) CrawlStats(id uint32) (CrawlStats, bool) {
	f.lock()
	defer f.mu.Unlock()
	c := f.sched
	c.advance(f.nowLocked())
	f.wakeReaderLocked()
	x, due, ending := c.findCrawl(id), c.due.sum(id), c.ending[endsOf{crawl: id}]
	if x == nil && due == (QueueStats{}) && ending == (QueueStats{}) {
		return CrawlStats{}, false
	}
	if x == nil { // its URLs are all on disk
		x = newCrawl(id, c.cfg.levels)
	}
	s := x.stats
	s.Rule, s.WaitingBy = x.settings.rule(), slices.Clone(s.WaitingBy)
	due.add(ending, 1)
	s.Scheduled, s.Finished = due.Scheduled, due.Finished
	s.Waiting += due.Waiting
	s.Leased += due.Leased
	u, _ := c.limits.Used(limit.OfCrawl(id), c.date(f.last))
	s.Used = f.usedLocked(u)
	return s, id != 0 || x.queues > 0 || s.Added > 0 || !x.nothing() || due != QueueStats{}
}

// Crawls returns the numbers of the crawls that CrawlStats knows, in ascending order.
func (f *Frontier) Crawls() []uint32 {
	_, zero := f.CrawlStats(0)
	f.mu.Lock()
	ids := slices.Collect(maps.Keys(f.sched.crawlSlots))
	for id, due := range f.sched.due {
		if id != 0 && due.all != (QueueStats{}) {
			ids = append(ids, id)
		}
	}
	f.mu.Unlock()
	if zero {
		ids = append(ids, 0)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// storedCrawl is what the row of a crawl says.
func storedCrawl(id uint32, s *crawlSettings) *row.Crawl {
	return &row.Crawl{ID: id, Weight: s.weight, Paused: s.paused, Limits: row.Limits(s.limits)}
}

// crawlRestored is the inverse of storedCrawl.
func crawlRestored(c *row.Crawl) crawlSettings {
	return crawlSettings{weight: c.Weight, paused: c.Paused, limits: Limits(c.Limits)}
}

// regroupAtOnce is how many hosts of stopped crawls are looked at under one lock.
const regroupAtOnce = 64

// endLimits releases crawls and hosts that waited for the end of a limit's period. It
// reports whether it came to the end.
func (s *scheduler) endLimits(now int64) bool {
	for range expireAtOnce {
		id, ok := s.limits.CrawlEnds.Over(s.date(now))
		if !ok {
			return s.endHostLimits(now)
		}
		s.judgeCrawl(s.findCrawl(id), now)
	}
	return false
}

// endHostLimits does that for hosts.
func (s *scheduler) endHostLimits(now int64) bool {
	for range recheckAtOnce {
		id, ok := s.limits.HostEnds.Over(s.date(now))
		if !ok {
			return s.freeStopped(now)
		}
		s.recheckHost(id, now)
	}
	return false
}

// freeStopped takes hosts that have nothing to offer any more out of the ready lists
// of crawls that were stopped.
func (s *scheduler) freeStopped(now int64) bool {
	for n := regroupAtOnce; len(s.stopped) > 0; {
		if n <= 0 {
			return false
		}
		stop := &s.stopped[0]
		x := s.crawls[stop.slot]
		if x == nil || x.runs() || stop.level > s.cfg.levels+1 {
			if s.stopped = s.stopped[1:]; len(s.stopped) == 0 {
				s.stopped = nil
			}
			continue
		}
		l := &x.lists[readies].at[stop.level]
		if stop.left < 0 {
			stop.left = l.n // later ones are looked at when they come
		}
		k := min(n, stop.left)
		s.regroup(l, k, now)
		n -= k + 1
		if stop.left -= k; stop.left == 0 {
			stop.level, stop.left = stop.level+1, -1
		}
	}
	return true
}

// stopReason returns why no URL of a host's crawls is handed out, and until when.
func (s *scheduler) stopReason(h *host, now int64) (Reason, int64) {
	reason, until := ReasonPaused, instant.Never
	for qid := h.queues; qid != 0; qid = s.queues.At(qid).sibling {
		q := s.queues.At(qid)
		switch x := s.crawlOf(q); {
		case q.waiting == 0:
		case x.stop == crawlLimited:
			reason = ReasonLimit
			u, _ := s.limits.Used(limit.OfCrawl(x.id), s.date(now))
			until = min(until, s.moment(u.Until))
		case x.stop == crawlSpent:
			reason = ReasonLimit
		}
	}
	return reason, until
}
