// This file describes hosts: one, with what waits and why it is not served; those that come next,
// those with the most URLs, those of a scope in domain order.

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/trouble"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

// Upcoming is a host that will be served soon.
type Upcoming struct {
	Host     Host
	Due      time.Time      // when host, group and rules allow the contact; past: now
	Entry    frontier.Entry // the first URL of the host's highest priority, if URLs are wanted
	Priority int            // of that URL
}

// Upcoming returns up to n hosts with URLs that wait, in about the order in which they
// will be served: first those that may be contacted now, the highest priorities first,
// then the others by the time at which they may be contacted, the ends of blocks and of
// limits' periods included. Paused hosts have no such time and are left out, as are hosts
// of a group whose slots are all taken. Among the hosts that wait for a back queue, only
// the first n of each priority are considered. Next does not guarantee this order.
//
// With urls it includes the first URL of each host, for a caller that resolves names and
// reads robots.txt ahead. First URLs that are not in memory are read from disk; a host
// whose first URL is damaged is left out.
//
// n is at most 256; more counts as 256. It costs O(n log n). The error is ctx's,
// ErrClosed, or the Spill's.
func (v *Inspector) Upcoming(ctx context.Context, n int, urls bool) ([]Upcoming, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := v.f.LockAdvancedOpen(); err != nil {
		return nil, err
	}
	due := map[string]int64{}
	var names []string
	for _, it := range v.f.Core().Upcoming(max(0, min(n, mercator.ViewAtMost)), v.f.Last()) {
		name := string(v.f.Core().NameOf(it.ID))
		names, due[name] = append(names, name), it.At
	}
	v.f.Unlock()
	out := make([]Upcoming, 0, len(names))
	for _, h := range v.describe(names) {
		u := Upcoming{Host: h}
		if at := due[h.Host]; at > 0 {
			u.Due = v.f.Core().Clock.Wall(at)
		}
		if urls {
			switch ok, err := v.firstURL(ctx, &u); {
			case err != nil:
				return nil, err
			case !ok:
				continue
			}
		}
		out = append(out, u)
	}
	return out, nil
}

// describe describes those of the hosts that are in memory, in the same order.
func (v *Inspector) describe(names []string) []Host {
	out := make([]Host, 0, len(names))
	for chunk := range slices.Chunk(names, mercator.InfosAtOnce) {
		v.f.LockAdvanced()
		for _, name := range chunk {
			if id := v.f.Core().Lookup(v.f.Core().HashOf(name), name); id != 0 {
				out = append(out, v.hostLocked(id))
			}
		}
		v.f.Unlock()
	}
	return out
}

// firstURL finds the first URL of a host. It reports false if there is none any more.
func (v *Inspector) firstURL(ctx context.Context, u *Upcoming) (bool, error) {
	for range 3 { // what is on disk may come into memory meanwhile
		if err := v.f.LockOpen(); err != nil {
			return false, err
		}
		x, part, ok := view.First(v.f.Core(), u.Host.Host)
		v.f.Unlock()
		if !ok {
			return false, nil
		}
		if x.Body == nil {
			records, err := v.f.ReadPart(ctx, part.Part, part.Want)
			if err != nil && !isCorrupt(err) {
				return false, err
			}
			if len(records) == 0 {
				continue // its last record is finished, or it is damaged
			}
			x.Body = records[0].Body
		}
		u.Priority = x.Priority
		u.Entry, _, _ = v.f.Described(x.Body, u.Host.Host, x.Crawl)
		return true, nil
	}
	return false, nil
}

// Hosts yields the hosts in memory of a scope in domain order: by their names with the
// labels reversed, so that the hosts of a domain follow each other, addresses by
// themselves. It begins behind the host key after, which need not be known; if that is
// empty, with the first. Every host with waiting or leased URLs is in memory. A host that
// stays in memory during the loop is yielded once. Hosts are described a few at a time.
//
// The first call puts the hosts in order, in short steps; from then on each host costs
// about 6 more bytes. No lock is held while the loop body runs.
func (v *Inspector) Hosts(s scope.Scope, after string) iter.Seq[Host] {
	return eachHost(v, v.f.Seen(s), after, mercator.InfosAtOnce, v.hostLocked)
}

// namesAtOnce is how many names are read under one lock.
const namesAtOnce = 256

// HostNames yields the keys of the hosts that Hosts yields, in the same order and under
// the same conditions, at about a tenth of the cost. Host describes one.
func (v *Inspector) HostNames(s scope.Scope, after string) iter.Seq[string] {
	look := func(id uint32) string { return string(v.f.Core().NameOf(id)) }
	return eachHost(v, v.f.Seen(s), after, namesAtOnce, look)
}

// eachHost yields what look, which is called with the lock, says of the hosts of s behind a host key,
// in domain order, a number of them under one lock. It ends when the frontier is closed.
func eachHost[T any](v *Inspector, s row.Scope, after string, atOnce int, look func(id uint32) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		if !s.Named || s.Domain {
			v.f.OrderHosts()
		}
		var ids []uint32
		seen := make([]T, 0, atOnce)
		for key, more := hostkey.Reversed(after), true; more; {
			if v.f.LockAdvancedOpen() != nil {
				return
			}
			ids = v.f.Core().HostsIn(ids[:0], s, key, atOnce)
			more = len(ids) == atOnce
			seen = seen[:0]
			for _, id := range ids {
				seen = append(seen, look(id))
			}
			if more {
				key = string(v.f.Core().OrderKey(nil, ids[len(ids)-1]))
			}
			v.f.Unlock()
			for _, x := range seen {
				if !yield(x) {
					return
				}
			}
		}
	}
}

const sizeHostsAtOnce = 2048 // hosts that are listed by size under one lock

// Largest returns up to n hosts with the most waiting URLs, the largest first. Among a
// thousand or more hosts whose sizes differ by less than a 64th, the choice is arbitrary.
// n is at most 256; more counts as 256. It costs O(n log n), except for the first call,
// which looks at all hosts in short steps; from then on each host costs 12 more bytes.
func (v *Inspector) Largest(n int) []Host {
	n = min(n, mercator.ViewAtMost)
	if n <= 0 {
		return nil
	}
	c := v.f.Core()
	for done := false; !done; {
		v.f.Lock()
		done = c.Sizes.Grow(sizeHostsAtOnce, c.Hosts.Top, c.WaitingOf)
		v.f.Unlock()
	}
	if v.f.LockAdvancedOpen() != nil {
		return nil
	}
	found := c.Sizes.Largest(n, 4*mercator.ViewAtMost, c.WaitingOf)
	names := make([]string, len(found))
	for i, it := range found {
		names[i] = string(c.Name(c.Hosts.At(it.ID)))
	}
	v.f.Unlock()
	infos := v.describe(names)
	slices.SortStableFunc(infos, func(a, b Host) int { return cmp.Compare(b.Waiting, a.Waiting) })
	return infos
}

// Reason is why no URL of a host is handed out now. If there are several reasons, it is
// the one that lasts longest.
type Reason uint8

const (
	ReasonTurn       Reason = iota // it may be served now: the selector's choice decides
	ReasonNothing                  // nothing of it waits
	ReasonNotBefore                // its URLs wait for their time
	ReasonLeased                   // as many of its leases are out as it may have
	ReasonDelay                    // it was contacted, and is left alone for its delay
	ReasonCrawlDelay               // the same for its Crawl-delay
	ReasonRetryAfter               // it asked to be left alone
	ReasonBackoff                  // failures have slowed it down
	ReasonQuarantine               // it only fails, and is probed rarely
	ReasonReopened                 // the store was opened after a crash
	ReasonGroup                    // its group may not be contacted
	ReasonBackQueue                // it has no back queue: it waits for its turn to get one
	ReasonReading                  // its next URL is being read from disk
	ReasonPaused                   // it is paused, or all crawls that it has URLs of are
	ReasonBlocked                  // it is blocked until a time
	ReasonLimit                    // a limit is reached
)

// They are in the order of mercator.Reason.
var reasonNames = [mercator.Reasons]string{
	"its turn", "nothing waits", "not before", "leased", "delay", "crawl delay", "retry after", "back-off",
	"quarantine", "reopened", "group", "back queue", "reading", "paused", "blocked", "limit",
}

// String returns the reason in a word or two, in lower case. It does not change between versions.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "invalid reason"
}

// Queue counts the waiting URLs of a host, crawl and priority.
type Queue struct {
	Crawl    uint32
	Priority int
	Waiting  int64
}

// Host describes a host at one moment.
type Host struct {
	Host    string
	Waiting int64   // URLs that may be handed out as soon as the host may be contacted
	Queues  []Queue // the same by priority, the highest first, and crawl; none are empty
	// Scheduled counts scheduled URLs in memory: those that come soon or were admitted
	// lately. For a host about which nothing else is known it includes those on disk.
	Scheduled int64
	Finished  int64     // the same of URLs that are done and kept (Options.Keep)
	Leased    int       // leases out, those for contact only included
	Deadline  time.Time // when the first of them ends; zero: none is out
	Due       time.Time // when its own clocks allow the next contact; zero: they are not running
	Group     string    // that it belongs to; empty: none
	GroupDue  time.Time // when that may be contacted; zero: its clock is not running

	CrawlDelay time.Duration // that robots.txt asked for; 0: none
	Standing   int           // levels by which its URLs are moved: see SetStanding
	Rule       frontier.Rule // what RuleOf says of it
	Backoff    Backoff       // as its failures left it
	Used       Used          // what was counted for Rule.HostLimits
	Full       bool          // it is in memory, and Limits.Waiting refuse new URLs of it: its own, or those of a scope

	// Reason is why no URL of it is handed out now. Until is when that ends by time
	// alone; zero if time alone does not end it, or the time is not known.
	Reason Reason
	Until  time.Time

	Bound    bool // it has a back queue
	Awaited  bool // calls of Contact wait for it, and come before its URLs
	Resident bool // it is in memory, as all hosts with waiting URLs are
}

// Host describes a host. If nothing is known about it, Host returns its rule and
// ErrUnknownHost: none of its URLs is in the frontier, and it may be contacted at once.
// If the host is not in memory its row is read, and if it has scheduled URLs on disk, all
// of them: ctx ends that. Other errors are ErrClosed and the Spill's.
func (v *Inspector) Host(ctx context.Context, host string) (Host, error) {
	host = v.f.HostSeen(host)
	none := Host{Host: host, Reason: ReasonNothing}
	if err := hostkey.Check(host); err != nil {
		return none, fmt.Errorf("frontier: %w", err)
	}
	a := mercator.Absentee{Hash: v.f.Core().HashOf(host), Host: host}
	var list *timed.List // nil: not begun
	defer func() {
		if list != nil {
			v.f.Lock()
			v.f.Core().Timed.EndList(list)
			v.f.Unlock()
		}
	}()
	for tries := 0; ; {
		if err := ctx.Err(); err != nil {
			return none, err
		}
		if err := v.f.LockAdvancedOpen(); err != nil {
			return none, err
		}
		if id := v.f.Core().Lookup(a.Hash, host); id != 0 {
			x := v.hostLocked(id)
			v.f.Unlock()
			return x, nil
		}
		if v.f.Core().Absent(&a) {
			v.f.Unlock()
			if err := v.f.ReadRow(ctx, &a); err != nil {
				return none, err
			}
			continue
		}
		if list == nil {
			v.f.Unlock()
			list = v.f.Timed().List()
			continue
		}
		x, known := v.dormantLocked(&a)
		v.f.Core().Timed.EndList(list)
		v.f.Unlock()
		blocks := list.All()
		list = nil
		moved, err := v.countScheduled(ctx, &x, blocks)
		if err != nil {
			return none, err
		}
		if tries++; moved && tries <= 3 {
			continue // perhaps its URLs have come into memory meanwhile
		}
		if !known && x.Scheduled+x.Finished == 0 {
			return x, fmt.Errorf("%w: %s", frontier.ErrUnknownHost, host)
		}
		return x, nil
	}
}

// hostLocked describes a host in memory.
func (v *Inspector) hostLocked(id uint32) Host {
	c := v.f.Core()
	h := c.Hosts.At(id)
	x := Host{
		Host:       string(c.Name(h)),
		Waiting:    int64(h.Waiting),
		Scheduled:  int64(h.Scheduled - c.Kept[id]),
		Finished:   int64(c.Kept[id]),
		CrawlDelay: time.Duration(h.CrawlDelayNs()),
		Standing:   int(h.Standing),
		Bound:      h.Place >= mercator.Pacing,
		Resident:   true,
	}
	for _, q := range c.QueuesOf(id) {
		if q.Waiting > 0 {
			x.Queues = append(x.Queues, Queue{c.CrawlNumber(q), c.PriorityOf(q), int64(q.Waiting)})
		}
	}
	for l := range c.LeasesOf(id) {
		if at := v.f.Core().Clock.Wall(c.Leases.At(l).Deadline); x.Leased == 0 || at.Before(x.Deadline) {
			x.Deadline = at
		}
		x.Leased++
	}
	x.Awaited = h.Wanted
	if h.Due > 0 {
		x.Due = v.f.Core().Clock.Wall(h.Due)
	}
	if h.Group != 0 {
		g := c.Groups.At(h.Group)
		x.Group = c.GroupName(g)
		if g.Free > 0 {
			x.GroupDue = v.f.Core().Clock.Wall(g.Free)
		}
	}
	x.Rule = v.f.RuleFor(x.Host)
	if h.Has(mercator.Troubled) {
		t := c.Troubles[id]
		x.Backoff = backoff(c, &t)
	}
	if h.Has(mercator.Counted) {
		x.Used = v.used(c.Limits.HostUsed(id, c.Name(h), c.Date(v.f.Last())))
	}
	x.Full = c.Refusing(id)
	why, until := c.Reason(id, v.f.Last())
	x.Reason = Reason(why)
	if until != instant.Never {
		x.Until = v.f.Core().Clock.Wall(until)
	}
	return x
}

// dormantLocked describes a host that is not in memory, and reports whether
// anything is known of it.
func (v *Inspector) dormantLocked(a *mercator.Absentee) (Host, bool) {
	x := Host{Host: a.Host, Reason: ReasonNothing, Rule: v.f.RuleFor(a.Host)}
	if !a.Known || !a.Found {
		return x, false
	}
	x.CrawlDelay, x.Standing = time.Duration(a.State.CrawlDelay)*time.Millisecond, int(a.State.Standing)
	if due, _ := v.f.Core().DueOfRow(&a.State, v.f.Last()); due > 0 {
		x.Due = v.f.Core().Clock.Wall(due)
	}
	t := v.f.TroubleOfRow(&a.State)
	x.Backoff = backoff(v.f.Core(), &t)
	x.Used = v.used(v.f.Core().Limits.StoredUsed(a.Host, a.State.Used, v.f.Core().Date(v.f.Last())))
	x.Group = a.State.Group
	if id := v.f.Core().GroupNamed(x.Group); id != 0 && v.f.Core().Groups.At(id).Free > 0 {
		x.GroupDue = v.f.Core().Clock.Wall(v.f.Core().Groups.At(id).Free)
	}
	return x, true
}

// countScheduled adds what of x's host waits for its time in the blocks.
func (v *Inspector) countScheduled(ctx context.Context, x *Host, blocks []timeheap.Item) (moved bool, err error) {
	first := int64(instant.Never)
	moved, err = v.f.Timed().EachTimed(ctx, blocks, func(r *storage.TimedRecord) bool { return r.Host == x.Host }, func(r *timed.Loaded) bool {
		if r.At == instant.Never {
			x.Finished++
		} else {
			x.Scheduled++
		}
		first = min(first, r.At)
		return true
	})
	if err == nil && x.Scheduled > 0 {
		x.Reason, x.Until = ReasonNotBefore, v.f.Core().Clock.Day(first)
	}
	return moved, err
}

// Backoff is a host's back-off and quarantine. The zero value is that of a host without failures.
type Backoff struct {
	Step     int           // of its back-off; 0: it is not slowed down
	Gap      time.Duration // least time between its contacts, for its failures alone
	Lanes    int           // leases it may have at once; 0: as many as are set
	Failures int           // failed contacts in a row
	Relapses int           // how often a step was undone too early
	Probes   int           // number of the quarantine's interval, from 1; 0: it is in none
}

func backoff(c *mercator.Core, t *trouble.State) Backoff {
	gap, _ := c.Cfg.GapOf(t)
	return Backoff{int(t.Step), gap, int(t.Lanes), int(t.Fails), int(t.Relapses), int(t.Probes)}
}
