// This file has the settings and figures of crawls: weight, pause, limits, and what has
// become of their URLs.
//
// A crawl need not be created: it exists as soon as an entry names it. Its settings are
// durable; its counters start from zero at each opening.

package frontier

import (
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
)

// ruleOfCrawl is a crawl's settings as Rule returns them.
func ruleOfCrawl(s row.CrawlSettings) Rule {
	r := Rule{Limits: Limits(s.Limits)}
	if s.Weight != 1 {
		r.Weight = s.Weight
	}
	if s.Paused {
		r.Paused = On
	}
	return r
}

// ofCrawl is the inverse of ruleOfCrawl.
func (r *Rule) ofCrawl() row.CrawlSettings {
	return row.CrawlSettings{Weight: max(1, r.Weight), Paused: r.Paused == On, Limits: r.Limits.quota()}
}

// CheckCrawl returns an error for a rule that no crawl can have.
func (r Rule) CheckCrawl() error {
	var wrong faults.List
	wrong.Add(r.Limits.check("Limits"))
	wrong.If(r.Weight < 0 || r.Weight > row.MaxWeight, "Weight is %d; want 1 to %d, or 0 for 1", r.Weight, row.MaxWeight)
	wrong.If(r.Paused > Off, "Paused is %d; want Unset, On or Off", r.Paused)
	r.Weight, r.Paused, r.Limits = 0, Unset, Limits{}
	wrong.If(r != (Rule{}), "a crawl has Weight, Paused and Limits; the other settings are of hosts")
	return errors.Join(wrong...)
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

// CrawlStats describes a crawl, and reports whether anything is known about it. A crawl with default
// settings, and without a host in memory that had a URL of it, may be forgotten once there are more
// than 256 such crawls; with Options.Count it is known as long as it has URLs.
func (f *Frontier) CrawlStats(id uint32) (CrawlStats, bool) {
	f.lock()
	defer f.mu.Unlock()
	c := f.core
	c.Advance(f.nowLocked())
	f.wakeReaderLocked()
	x, sum, ending := c.FindCrawl(id), c.Counts.Sum(id), c.Ending[mercator.EndsOf{Crawl: id}]
	if x == nil && sum == (row.CountSum{}) && ending == (mercator.Ended{}) {
		return CrawlStats{}, false
	}
	if x == nil { // its URLs are all on disk
		x = mercator.NewCrawl(id, c.Cfg.Levels)
	}
	t := &x.Stats
	s := CrawlStats{
		Rule: ruleOfCrawl(x.Settings), Waiting: t.Waiting, WaitingBy: slices.Clone(t.WaitingBy), Immediate: t.Immediate,
		Leased: t.Leased, Added: t.Added, HandedOut: t.HandedOut, Done: t.Done,
	}
	if c.Counts != nil {
		n := mercator.QueueTally{Waiting: s.Waiting, Scheduled: sum.Total - sum.Finished, Leased: s.Leased - x.DeadLeases, Finished: sum.Finished}
		n.Rest(ending)
		s.Waiting, s.Scheduled, s.Leased, s.Finished = n.Waiting, n.Scheduled, n.Leased+x.DeadLeases, n.Finished
		s.Hosts, s.ActiveHosts = sum.Hosts, sum.Active
	}
	u, _ := c.Limits.Used(limit.OfCrawl(id), c.Date(f.last))
	s.Used = f.usedLocked(u)
	return s, id != 0 || x.Queues > 0 || s.Added > 0 || !x.Nothing() || sum != row.CountSum{} || ending != mercator.Ended{}
}

// Crawls returns the numbers of the crawls that CrawlStats knows, in ascending order.
func (f *Frontier) Crawls() []uint32 {
	_, zero := f.CrawlStats(0)
	f.mu.Lock()
	ids := slices.Collect(maps.Keys(f.core.CrawlSlots))
	ids = append(ids, slices.DeleteFunc(f.core.Counts.Crawls(), func(id uint32) bool { return id == 0 })...)
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
		if f.core.Counts.Stored() {
			n, err = count.Load(key, f.opts.Spill.Row)
			return err
		}
		n = f.core.Counts.Of(key)
		return nil
	}, func() {
		x = QueueStats(f.core.QueueStats(host, f.core.HashOf(host), crawl, f.core.Counts.Visible(key, n)))
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
		t := &f.core.Timed
		cheap := f.opts.Spill != nil && !f.closed && (f.notes.Unswept() || f.notes.Sweeping()) && t.Len() > 0 && t.Len() <= sweepAtMost
		f.mu.Unlock()
		if !cheap || !f.readTimed(true) {
			break
		}
	}
	f.mu.Lock() // another reader may have found them
	wait := len(f.core.Found)+len(f.core.Finding) > 0
	f.mu.Unlock()
	if wait {
		_ = f.between(func() error { return nil }) // a failure is the commit's to report
	}
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
		for most := 16; ; most = min(2*most, f.core.CountsAtOnce()) {
			err := f.readCounted(func() error {
				some = some[:0]
				return f.core.Counts.Each(prefix, from, func(key, host string, _ uint32, n row.Count) bool {
					some = append(some, queue{key: key, host: host, n: n})
					return len(some) < most
				})
			}, func() {
				for i := range some {
					q := &some[i]
					q.x = QueueStats(f.core.QueueStats(q.host, f.core.HashOf(q.host), crawl, f.core.Counts.Visible(q.key, q.n)))
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
