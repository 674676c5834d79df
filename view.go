// This file describes hosts: one, with what waits and why it is not served; those that come next,
// those with the most URLs, those of a scope in domain order.
//
// Nothing here changes anything. Nothing scans all hosts under one lock: the heaps are walked from
// their roots, and the front queues and ready lists from their heads, only as far as wanted. A host that
// is not in memory is described from its row, and stays where it is.

package frontier

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/storage"
)

// Upcoming is a host that will be served soon.
type Upcoming struct {
	Host     HostInfo
	Due      time.Time // when host, group and rules allow the contact; past: now
	Entry    Entry     // the first URL of the host's highest priority, if URLs are wanted
	Priority int       // of that URL
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
func (f *Frontier) Upcoming(ctx context.Context, n int, urls bool) ([]Upcoming, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := f.lockAdvancedOpen(); err != nil {
		return nil, err
	}
	due := map[string]int64{}
	var names []string
	for _, it := range f.core.Upcoming(max(0, min(n, mercator.ViewAtMost)), f.last) {
		name := string(f.core.NameOf(it.ID))
		names, due[name] = append(names, name), it.At
	}
	f.mu.Unlock()
	out := make([]Upcoming, 0, len(names))
	for _, h := range f.infosOf(names) {
		u := Upcoming{Host: h}
		if at := due[h.Host]; at > 0 {
			u.Due = f.wall(at)
		}
		if urls {
			switch ok, err := f.firstURL(ctx, &u); {
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

// infosOf describes those of the hosts that are in memory, in the same order.
func (f *Frontier) infosOf(names []string) []HostInfo {
	out := make([]HostInfo, 0, len(names))
	for chunk := range slices.Chunk(names, mercator.InfosAtOnce) {
		f.lockAdvanced()
		for _, name := range chunk {
			if id := f.core.Lookup(f.core.HashOf(name), name); id != 0 {
				out = append(out, f.hostInfoLocked(id))
			}
		}
		f.mu.Unlock()
	}
	return out
}

// firstURL finds the first URL of a host. It reports false if there is none any more.
func (f *Frontier) firstURL(ctx context.Context, u *Upcoming) (bool, error) {
	for range 3 { // what is on disk may come into memory meanwhile
		if err := f.lockOpen(); err != nil {
			return false, err
		}
		x, part, ok := view.First(f.core, u.Host.Host)
		f.mu.Unlock()
		if !ok {
			return false, nil
		}
		if x.Body == nil {
			records, err := f.readPart(ctx, part.Part, part.Want)
			if err != nil && !isCorrupt(err) {
				return false, err
			}
			if len(records) == 0 {
				continue // its last record is finished, or it is damaged
			}
			x.Body = records[0].Body
		}
		u.Priority = x.Priority
		u.Entry, _, _ = described(x.Body, u.Host.Host, x.Crawl)
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
func (f *Frontier) Hosts(s Scope, after string) iter.Seq[HostInfo] {
	return eachHost(f, f.scopeSeen(s), after, mercator.InfosAtOnce, f.hostInfoLocked)
}

// namesAtOnce is how many names are read under one lock.
const namesAtOnce = 256

// HostNames yields the keys of the hosts that Hosts yields, in the same order and under
// the same conditions, at about a tenth of the cost. Host describes one.
func (f *Frontier) HostNames(s Scope, after string) iter.Seq[string] {
	look := func(id uint32) string { return string(f.core.NameOf(id)) }
	return eachHost(f, f.scopeSeen(s), after, namesAtOnce, look)
}

// eachHost yields what look, which is called with the lock, says of the hosts of s behind a host key,
// in domain order, a number of them under one lock. It ends when the frontier is closed.
func eachHost[T any](f *Frontier, s Scope, after string, atOnce int, look func(id uint32) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		if !s.named || s.domain {
			f.orderHosts()
		}
		var ids []uint32
		seen := make([]T, 0, atOnce)
		for key, more := hostkey.Reversed(after), true; more; {
			if f.lockAdvancedOpen() != nil {
				return
			}
			ids = f.core.HostsIn(ids[:0], s.stored(), key, atOnce)
			more = len(ids) == atOnce
			seen = seen[:0]
			for _, id := range ids {
				seen = append(seen, look(id))
			}
			if more {
				key = string(f.core.OrderKey(nil, ids[len(ids)-1]))
			}
			f.mu.Unlock()
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
func (f *Frontier) Largest(n int) []HostInfo {
	n = min(n, mercator.ViewAtMost)
	if n <= 0 {
		return nil
	}
	for done := false; !done; {
		f.mu.Lock()
		done = f.core.Sizes.Grow(sizeHostsAtOnce, f.core.Hosts.Top, f.core.WaitingOf)
		f.mu.Unlock()
	}
	if f.lockAdvancedOpen() != nil {
		return nil
	}
	c := f.core
	found := c.Sizes.Largest(n, 4*mercator.ViewAtMost, c.WaitingOf)
	names := make([]string, len(found))
	for i, it := range found {
		names[i] = string(c.Name(c.Hosts.At(it.ID)))
	}
	f.mu.Unlock()
	infos := f.infosOf(names)
	slices.SortStableFunc(infos, func(a, b HostInfo) int { return cmp.Compare(b.Waiting, a.Waiting) })
	return infos
}

const (
	orderHostsAtOnce = 64 // hosts that are put in order under one lock
	sweepAtOnce      = 32 // hosts that a sweep visits under one lock
)

// orderHosts makes the order of all hosts if there is none.
func (s *shard) orderHosts() {
	for done := false; !done; {
		s.mu.Lock()
		done = s.closed || s.core.OrderSome(orderHostsAtOnce)
		s.mu.Unlock()
	}
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

// QueueInfo counts the waiting URLs of a host, crawl and priority.
type QueueInfo struct {
	Crawl    uint32
	Priority int
	Waiting  int64
}

// HostInfo describes a host at one moment.
type HostInfo struct {
	Host    string
	Waiting int64       // URLs that may be handed out as soon as the host may be contacted
	Queues  []QueueInfo // the same by priority, the highest first, and crawl; none are empty
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
	Rule       Rule          // what RuleOf says of it
	Backoff    BackoffState  // as its failures left it
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
func (f *Frontier) Host(ctx context.Context, host string) (HostInfo, error) {
	host = f.hostSeen(host)
	none := HostInfo{Host: host, Reason: ReasonNothing}
	if err := hostkey.Check(host); err != nil {
		return none, fmt.Errorf("frontier: %w", err)
	}
	a := mercator.Absentee{Hash: f.core.HashOf(host), Host: host}
	var list *timed.List // nil: not begun
	defer func() {
		if list != nil {
			f.mu.Lock()
			f.core.Timed.EndList(list)
			f.mu.Unlock()
		}
	}()
	for tries := 0; ; {
		if err := ctx.Err(); err != nil {
			return none, err
		}
		if err := f.lockAdvancedOpen(); err != nil {
			return none, err
		}
		if id := f.core.Lookup(a.Hash, host); id != 0 {
			x := f.hostInfoLocked(id)
			f.mu.Unlock()
			return x, nil
		}
		if f.core.Absent(&a) {
			f.mu.Unlock()
			if err := f.readRow(ctx, &a); err != nil {
				return none, err
			}
			continue
		}
		if list == nil {
			f.mu.Unlock()
			list = f.listTimed()
			continue
		}
		x, known := f.dormantInfoLocked(&a)
		f.core.Timed.EndList(list)
		f.mu.Unlock()
		blocks := list.All()
		list = nil
		moved, err := f.countScheduled(ctx, &x, blocks)
		if err != nil {
			return none, err
		}
		if tries++; moved && tries <= 3 {
			continue // perhaps its URLs have come into memory meanwhile
		}
		if !known && x.Scheduled+x.Finished == 0 {
			return x, fmt.Errorf("%w: %s", ErrUnknownHost, host)
		}
		return x, nil
	}
}

// hostInfoLocked describes a host in memory.
func (s *shard) hostInfoLocked(id uint32) HostInfo {
	c := s.core
	h := c.Hosts.At(id)
	x := HostInfo{
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
			x.Queues = append(x.Queues, QueueInfo{c.CrawlNumber(q), c.PriorityOf(q), int64(q.Waiting)})
		}
	}
	for l := range c.LeasesOf(id) {
		if at := s.wall(c.Leases.At(l).Deadline); x.Leased == 0 || at.Before(x.Deadline) {
			x.Deadline = at
		}
		x.Leased++
	}
	x.Awaited = h.Wanted
	if h.Due > 0 {
		x.Due = s.wall(h.Due)
	}
	if h.Group != 0 {
		g := c.Groups.At(h.Group)
		x.Group = c.GroupName(g)
		if g.Free > 0 {
			x.GroupDue = s.wall(g.Free)
		}
	}
	x.Rule = ruleIn(s.controls.Effective(x.Host, c.Date(s.last)))
	if h.Has(mercator.Troubled) {
		t := c.Troubles[id]
		x.Backoff = stateOf(&c.Cfg, &t)
	}
	if h.Has(mercator.Counted) {
		x.Used = s.usedLocked(c.Limits.HostUsed(id, c.Name(h), c.Date(s.last)))
	}
	x.Full = c.Refusing(id)
	why, until := c.Reason(id, s.last)
	x.Reason = Reason(why)
	if until != instant.Never {
		x.Until = s.wall(until)
	}
	return x
}

// dormantInfoLocked describes a host that is not in memory, and reports whether
// anything is known of it.
func (s *shard) dormantInfoLocked(a *mercator.Absentee) (HostInfo, bool) {
	x := HostInfo{Host: a.Host, Reason: ReasonNothing, Rule: ruleIn(s.controls.Effective(a.Host, s.core.Date(s.last)))}
	if !a.Known || !a.Found {
		return x, false
	}
	x.CrawlDelay, x.Standing = time.Duration(a.State.CrawlDelay)*time.Millisecond, int(a.State.Standing)
	if due, _ := s.core.DueOfRow(&a.State, s.last); due > 0 {
		x.Due = s.wall(due)
	}
	t := s.core.TroubleOfRow(&a.State, s.token, s.last)
	x.Backoff = stateOf(&s.core.Cfg, &t)
	x.Used = s.usedLocked(s.core.Limits.StoredUsed(a.Host, a.State.Used, s.core.Date(s.last)))
	x.Group = a.State.Group
	if id := s.core.GroupNamed(x.Group); id != 0 && s.core.Groups.At(id).Free > 0 {
		x.GroupDue = s.wall(s.core.Groups.At(id).Free)
	}
	return x, true
}

// countScheduled adds what of x's host waits for its time in the blocks.
func (s *shard) countScheduled(ctx context.Context, x *HostInfo, blocks []timeheap.Item) (moved bool, err error) {
	first := int64(instant.Never)
	moved, err = s.eachTimed(ctx, blocks, func(r *storage.TimedRecord) bool { return r.Host == x.Host }, func(r *timed.Loaded) bool {
		if r.At == instant.Never {
			x.Finished++
		} else {
			x.Scheduled++
		}
		first = min(first, r.At)
		return true
	})
	if err == nil && x.Scheduled > 0 {
		x.Reason, x.Until = ReasonNotBefore, s.day(first)
	}
	return moved, err
}
