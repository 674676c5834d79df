// This file has the settings and figures of crawls: weight, pause, limits, and what has
// become of their URLs.
//
// A crawl need not be created: it exists as soon as an entry names it. Its settings are
// durable; its counters start from zero at each opening.

package frontier

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
)

// crawlSettings are the settings in the Rule of a crawl.
type crawlSettings struct {
	weight int // 1 unless another is set
	paused bool
	limits quota.Limits
}

var defaultCrawl = crawlSettings{weight: 1}

// ruleOfCrawl is a crawl's settings as Rule returns them.
func ruleOfCrawl(s *crawlSettings) Rule {
	r := Rule{Limits: Limits(s.limits)}
	if s.weight != 1 {
		r.Weight = s.weight
	}
	if s.paused {
		r.Paused = On
	}
	return r
}

// settings is the inverse of ruleOfCrawl; it returns an error for a rule that no crawl can have.
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
	return crawlSettings{weight: max(1, r.Weight), paused: r.Paused == On, limits: r.Limits.quota()}, errors.Join(errs...)
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

	// With Options.Count: hosts with URLs of the crawl, in any state; and those of them with others
	// than finished ones.
	Hosts, ActiveHosts int64

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
	r := ruleOfCrawl(&old)
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
	if s.limits == (quota.Limits{}) && old.limits != (quota.Limits{}) {
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
	x, sum, ending := c.findCrawl(id), c.counts.Sum(id), c.ending[endsOf{crawl: id}]
	if x == nil && sum == (row.CountSum{}) && ending == (ended{}) {
		return CrawlStats{}, false
	}
	if x == nil { // its URLs are all on disk
		x = newCrawl(id, c.cfg.levels)
	}
	t := &x.stats
	s := CrawlStats{
		Rule: ruleOfCrawl(&x.settings), Waiting: t.Waiting, WaitingBy: slices.Clone(t.WaitingBy), Immediate: t.Immediate,
		Leased: t.Leased, Added: t.Added, HandedOut: t.HandedOut, Done: t.Done,
	}
	if c.counts != nil {
		n := queueTally{Waiting: s.Waiting, Scheduled: sum.Total - sum.Finished, Leased: s.Leased - x.deadLeases, Finished: sum.Finished}
		n.rest(ending)
		s.Waiting, s.Scheduled, s.Leased, s.Finished = n.Waiting, n.Scheduled, n.Leased+x.deadLeases, n.Finished
		s.Hosts, s.ActiveHosts = sum.Hosts, sum.Active
	}
	u, _ := c.limits.Used(limit.OfCrawl(id), c.date(f.last))
	s.Used = f.usedLocked(u)
	return s, id != 0 || x.queues > 0 || s.Added > 0 || !x.nothing() || sum != row.CountSum{} || ending != ended{}
}

// Crawls returns the numbers of the crawls that CrawlStats knows, in ascending order.
func (f *Frontier) Crawls() []uint32 {
	_, zero := f.CrawlStats(0)
	f.mu.Lock()
	ids := slices.Collect(maps.Keys(f.sched.crawlSlots))
	ids = append(ids, slices.DeleteFunc(f.sched.counts.Crawls(), func(id uint32) bool { return id == 0 })...)
	f.mu.Unlock()
	if zero {
		ids = append(ids, 0)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// QueueStats returns the numbers of URLs of a host within a crawl, and whether there are any. It
// needs Options.Count. With a Spill it reads a row, and may return an error of the Spill; the other
// error is ErrClosed.
//
// The numbers are exact as of the last call that returned, with these exceptions. While a Delete is
// under way, and after an opening until what was deleted before is found, dead URLs count as waiting, and
// as many may be missing among the scheduled ones. A URL that a Force has replaced counts twice until its old
// record is read from disk: QueueStats reads it at once if there are at most 32 blocks of scheduled and
// finished URLs.
// URLs in damaged blocks count, and deleted ones whose leases are out do not.
func (f *Frontier) QueueStats(host string, crawl uint32) (QueueStats, bool, error) {
	if !f.opts.Count {
		return QueueStats{}, false, errNotCounted
	}
	host = f.hostSeen(host)
	f.readOutdated()
	key := row.CountOf(crawl, host)
	var n row.Count
	var x QueueStats
	err := f.readCounted(func() (err error) {
		if f.sched.counts.Stored() {
			n, err = count.Load(key, f.opts.Spill.Row)
			return err
		}
		n = f.sched.counts.Of(key)
		return nil
	}, func() {
		x = QueueStats(f.sched.queueStats(host, f.hostHash(host), crawl, f.sched.counts.Visible(key, n)))
	})
	if err != nil {
		return QueueStats{}, false, err
	}
	return x, x != QueueStats{}, nil
}

// readOutdated searches the disk for records that a Force has replaced, while that is cheap.
func (f *Frontier) readOutdated() {
	for range 2 * sweepAtMost {
		f.mu.Lock()
		t := &f.sched.timed
		cheap := f.opts.Spill != nil && !f.closed && (f.notes.Unswept() || f.notes.Sweeping()) && t.Len() > 0 && t.Len() <= sweepAtMost
		f.mu.Unlock()
		if !cheap || !f.readTimed(true) {
			break
		}
	}
	f.mu.Lock() // another reader may have found them
	wait := len(f.sched.found)+len(f.sched.finding) > 0
	f.mu.Unlock()
	if wait {
		_ = f.between(func() error { return nil }) // a failure is the commit's to report
	}
}

// queueStats counts the URLs of a host within a crawl.
func (s *scheduler) queueStats(host string, hash uint64, crawl uint32, n row.Count) (x queueTally) {
	if n.Seq <= s.deadCount(host, crawl) {
		n = row.Count{}
	}
	x.Finished, x.Scheduled = n.Finished, n.Total-n.Finished
	id := s.lookup(hash, host)
	if id == 0 {
		return x
	}
	for qid := s.hosts.At(id).queues; qid != 0; qid = s.queues.At(qid).sibling {
		if q := s.queues.At(qid); s.crawlNumber(q) == crawl {
			x.Waiting += int64(q.waiting)
		}
	}
	for lease := range s.leasesOf(id) {
		if l := s.leases.At(lease); l.record != 0 && s.crawlNumber(s.queues.At(l.queue)) == crawl && !s.deadLease(l) {
			x.Leased++
		}
	}
	x.rest(s.ending[endsOf{id, crawl}])
	return x
}

// rest makes the URLs scheduled that are neither waiting nor leased, and adds those whose ends are on their
// way.
func (q *queueTally) rest(e ended) {
	q.Scheduled = max(0, q.Scheduled-q.Waiting-q.Leased-(e.live.Total-e.live.Finished))
	q.Finished -= e.live.Finished
	q.add(e.queueTally, 1)
}

// deadLease reports whether a deletion concerns the record of a lease.
func (s *scheduler) deadLease(l *leaseRecord) bool {
	return l.dead != 0 || s.records.At(l.record).Seq() <= s.deadStored(s.queues.At(l.queue)).Seq
}

// Queues yields the hosts that have URLs of a crawl, in any state, and their numbers, in domain
// order, as Hosts does. It begins behind the host key after; if that is empty, with the first.
// Hosts that come or go during the loop may be missed or not. It yields nothing without
// Options.Count, and ends when the frontier is closed, or its Spill fails, which an event reports.
//
// It reads some hosts at a time: what it costs depends on those that it yields, and not on how many
// there are. No lock is held while the loop body runs.
func (f *Frontier) Queues(crawl uint32, after string) iter.Seq2[string, QueueStats] {
	type queue struct {
		key, host string
		n         row.Count
		x         QueueStats
	}
	return func(yield func(string, QueueStats) bool) {
		if !f.opts.Count {
			return
		}
		f.readOutdated()
		prefix := row.CountsOf(crawl)
		from := prefix + hostkey.Reversed(after)
		if after != "" {
			from += "\x00"
		}
		var some []queue
		for most := 16; ; most = min(2*most, f.sched.countsAtOnce()) {
			err := f.readCounted(func() error {
				some = some[:0]
				return f.eachCount(prefix, from, func(key, host string, _ uint32, n row.Count) bool {
					some = append(some, queue{key: key, host: host, n: n})
					return len(some) < most
				})
			}, func() {
				for i := range some {
					q := &some[i]
					q.x = QueueStats(f.sched.queueStats(q.host, f.hostHash(q.host), crawl, f.sched.counts.Visible(q.key, q.n)))
				}
			})
			if err != nil {
				if !errors.Is(err, ErrClosed) {
					f.emit(Event{Kind: EventStoreError, Reason: "reading numbers of URLs", Err: err})
				}
				return
			}
			for _, q := range some {
				if q.x != (QueueStats{}) && !yield(q.host, q.x) {
					return
				}
			}
			if len(some) < most {
				return
			}
			from = some[len(some)-1].key + "\x00"
		}
	}
}

// storedCrawl is what the row of a crawl says.
func storedCrawl(id uint32, s *crawlSettings) *row.Crawl {
	return &row.Crawl{ID: id, Weight: s.weight, Paused: s.paused, Limits: row.Limits(s.limits)}
}

// crawlRestored is the inverse of storedCrawl.
func crawlRestored(c *row.Crawl) crawlSettings {
	return crawlSettings{weight: c.Weight, paused: c.Paused, limits: quota.Limits(c.Limits)}
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
func stopReason(s *scheduler, h *host, now int64) (Reason, int64) {
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

// crawlOffers checks that a crawl is in the heaps if and only if it has something
// to offer.
func (k *checker) crawlOffers(slot int, x *crawl) {
	some := func(from, to int) bool {
		for p := from; p <= to; p++ {
			if x.lists[tokens].at[p].n+x.lists[readies].at[p].n > 0 {
				return x.mayOffer() && !k.c.single()
			}
		}
		return false
	}
	top := int(k.c.immediate())
	if x.offered != some(1, top-1) || x.urgent != some(top, top) {
		k.bad("F3: crawl %d in slot %d is offered: %v, urgent: %v", x.id, slot, x.offered, x.urgent)
	}
	if x.offered && k.c.offers.Items[x.pos[0]] != (timeheap.Item{At: x.pass, ID: uint32(slot)}) {
		k.bad("F3: crawl %d is not where it says among the offers", x.id)
	}
	if x.urgent && k.c.urgent.Items[x.pos[1]].ID != uint32(slot) {
		k.bad("F3: crawl %d is not where it says among the urgent", x.id)
	}
}
