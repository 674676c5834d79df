// This file has the figures of crawls, groups and limits: what waits, and what has become of it.

package inspect

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/scope"
)

// Crawl describes one crawl. Scheduled and finished URLs lie on disk in the order of
// their times; they are counted by crawl with Options.Count only.
type Crawl struct {
	Rule frontier.Rule
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

	// Since Open, or since the crawl was forgotten: see Inspector.Crawl.
	Added     int64    // URLs admitted for the first time, or by Force
	HandedOut int64    // leases
	Done      [8]int64 // Done calls by Result, and leases that expired
}

// Crawl describes a crawl, and reports whether anything is known about it. A crawl with default
// settings, and without a host in memory that had a URL of it, may be forgotten once there are more
// than 256 such crawls; with Options.Count it is known as long as it has URLs.
func (v *Inspector) Crawl(id uint32) (Crawl, bool) {
	v.f.LockAdvanced()
	defer v.f.Unlock()
	c := v.f.Core()
	x, sum, ending := c.FindCrawl(id), c.Counts.Sum(id), c.Ending[mercator.EndsOf{Crawl: id}]
	if x == nil && sum == (row.CountSum{}) && ending == (mercator.Ended{}) {
		return Crawl{}, false
	}
	if x == nil { // its URLs are all on disk
		x = mercator.NewCrawl(id, c.Cfg.Levels)
	}
	t := &x.Stats
	s := Crawl{
		Rule: v.f.RuleOfCrawl(x.Settings), Waiting: t.Waiting, WaitingBy: slices.Clone(t.WaitingBy), Immediate: t.Immediate,
		Leased: t.Leased, Added: t.Added, HandedOut: t.HandedOut, Done: t.Done,
	}
	if c.Counts != nil {
		n := mercator.QueueTally{Waiting: s.Waiting, Scheduled: sum.Total - sum.Finished, Leased: s.Leased - x.DeadLeases, Finished: sum.Finished}
		n.Rest(ending)
		s.Waiting, s.Scheduled, s.Leased, s.Finished = n.Waiting, n.Scheduled, n.Leased+x.DeadLeases, n.Finished
		s.Hosts, s.ActiveHosts = sum.Hosts, sum.Active
	}
	u, _ := c.Limits.Used(limit.OfCrawl(id), c.Date(v.f.Last()))
	s.Used = v.used(u)
	return s, id != 0 || x.Queues > 0 || s.Added > 0 || !x.Nothing() || sum != row.CountSum{} || ending != mercator.Ended{}
}

// Crawls returns the numbers of the crawls that Crawl knows, in ascending order.
func (v *Inspector) Crawls() []uint32 {
	_, zero := v.Crawl(0)
	v.f.Lock()
	ids := slices.Collect(maps.Keys(v.f.Core().CrawlSlots))
	ids = append(ids, slices.DeleteFunc(v.f.Core().Counts.Crawls(), func(id uint32) bool { return id == 0 })...)
	v.f.Unlock()
	if zero {
		ids = append(ids, 0)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

var errNotCounted = errors.New("frontier: queues are not counted: Options.Count is not set")

// Counts returns the numbers of URLs of a host within a crawl, and whether there are any. It
// needs Options.Count. With a Spill it reads a row, and may return an error of the Spill; the other
// error is ErrClosed.
//
// The numbers are exact as of the last call that returned, with these exceptions. While a Delete is
// under way, and after an opening until what was deleted before is found, dead URLs count as waiting, and
// as many may be missing among the scheduled ones. A URL that a Force has replaced counts twice until its old
// record is read from disk: Counts reads it at once if there are at most 32 blocks of scheduled and
// finished URLs.
// URLs in damaged blocks count, and deleted ones whose leases are out do not.
func (v *Inspector) Counts(host string, crawl uint32) (Counts, bool, error) {
	if !v.f.Options().Count {
		return Counts{}, false, errNotCounted
	}
	host = v.f.HostSeen(host)
	v.f.Timed().ReadOutdated()
	key := row.CountOf(crawl, host)
	var n row.Count
	var x Counts
	err := v.f.ReadCounted(func() (err error) {
		if v.f.Core().Counts.Stored() {
			n, err = count.Load(key, v.f.Options().Spill.Row)
			return err
		}
		n = v.f.Core().Counts.Of(key)
		return nil
	}, func() {
		x = Counts(v.f.Core().QueueStats(host, v.f.Core().HashOf(host), crawl, v.f.Core().Counts.Visible(key, n)))
	})
	if err != nil {
		return Counts{}, false, err
	}
	return x, x != Counts{}, nil
}

// Counts has the numbers of URLs of a host within a crawl, by state. URLs whose change is on
// its way to the disk count as leased.
type Counts struct {
	Waiting, Scheduled, Leased, Finished int64
}

// Queues yields the hosts that have URLs of a crawl, in any state, and their numbers, in domain
// order, as Hosts does. It begins behind the host key after; if that is empty, with the first.
// Hosts that come or go during the loop may be missed or not. It yields nothing without
// Options.Count, and ends when the frontier is closed, or its Spill fails, which an event reports.
//
// It reads some hosts at a time: what it costs depends on those that it yields, and not on how many
// there are. No lock is held while the loop body runs.
func (v *Inspector) Queues(crawl uint32, after string) iter.Seq2[string, Counts] {
	type queue struct {
		key, host string
		n         row.Count
		x         Counts
	}
	return func(yield func(string, Counts) bool) {
		if !v.f.Options().Count {
			return
		}
		v.f.Timed().ReadOutdated()
		prefix := row.CountsOf(crawl)
		from := prefix + hostkey.Reversed(after)
		if after != "" {
			from += "\x00"
		}
		var some []queue
		for most := 16; ; most = min(2*most, v.f.Core().CountsAtOnce()) {
			err := v.f.ReadCounted(func() error {
				some = some[:0]
				return v.f.Core().Counts.Each(prefix, from, func(key, host string, _ uint32, n row.Count) bool {
					some = append(some, queue{key: key, host: host, n: n})
					return len(some) < most
				})
			}, func() {
				for i := range some {
					q := &some[i]
					q.x = Counts(v.f.Core().QueueStats(q.host, v.f.Core().HashOf(q.host), crawl, v.f.Core().Counts.Visible(q.key, q.n)))
				}
			})
			if err != nil {
				if !errors.Is(err, frontier.ErrClosed) {
					v.f.Report("reading numbers of URLs", err)
				}
				return
			}
			for _, q := range some {
				if q.x != (Counts{}) && !yield(q.host, q.x) {
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

// Group describes a group.
type Group struct {
	Settings frontier.GroupSettings // as they were set; zero fields are at their defaults
	Hosts    int                    // in memory that belong to it
	Leased   int                    // slots in use: leases, and hosts that are about to be served
	Queued   int                    // hosts that only the group keeps from being contacted
	Due      time.Time              // when it may be contacted next, if a slot is not in use; zero: its clock is not running
}

// Group describes a group. It reports false if nothing is known about it: it has no
// settings and no hosts in memory, and may be contacted at once.
func (v *Inspector) Group(name string) (Group, bool) {
	v.f.LockAdvanced()
	defer v.f.Unlock()
	c := v.f.Core()
	x := Group{Settings: v.f.SettingsOf(name)}
	id := c.GroupNamed(name)
	if id == 0 {
		return x, x.Settings != frontier.GroupSettings{}
	}
	g := c.Groups.At(id)
	x.Hosts, x.Leased, x.Queued = int(g.Members), int(g.Used), int(g.Waits)
	if g.Free > 0 {
		x.Due = v.f.Core().Clock.Wall(g.Free)
	}
	return x, x.Settings != frontier.GroupSettings{} || g.Members > 0 || g.Used > 0 || c.SlotsOf(id).Last() > v.f.Last()
}

// Used is what was counted for limits since the present period began.
type Used struct {
	Served, Bytes, Errors int64
	Since                 time.Time // when it began; zero: nothing was counted
	Until                 time.Time // when it ends; zero: never, or nothing was counted
}

// Used returns what was counted for the Limits of exactly this scope; false if it has
// none. Host and Crawl have the counts of hosts and crawls.
func (v *Inspector) Used(s scope.Scope) (Used, bool) {
	of := v.f.Subject(s)
	v.f.LockAdvanced()
	defer v.f.Unlock()
	u, ok := v.f.Core().Limits.Used(of, v.f.Core().Date(v.f.Last()))
	return v.used(u), ok
}

func (v *Inspector) used(u limit.Used) Used {
	if u == (limit.Used{}) {
		return Used{}
	}
	out := Used{Served: u.Served, Bytes: u.Bytes, Errors: u.Errors, Since: v.f.Core().Clock.Day(u.Since)}
	if u.Until != instant.Never {
		out.Until = v.f.Core().Clock.Day(u.Until)
	}
	return out
}
