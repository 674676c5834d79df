// This file lists hosts: those that come next, those with the most URLs, those of a
// scope in domain order.
//
// Nothing scans all hosts under one lock. The heaps are walked from their roots, and the
// front queues and ready lists from their heads, only as far as wanted.

package frontier

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/record"
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
	f.lockAdvanced()
	if f.closed {
		f.mu.Unlock()
		return nil, ErrClosed
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
func (s *shard) firstURL(ctx context.Context, u *Upcoming) (bool, error) {
	for range 3 { // what is on disk may come into memory meanwhile
		if err := ctx.Err(); err != nil {
			return false, err
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return false, ErrClosed
		}
		job := s.firstLocked(u)
		s.mu.Unlock()
		if job == nil {
			return u.Entry.URL != "", nil
		}
		records, err := s.readFor(ctx, job.part, job.Want)
		var corrupt *CorruptError
		switch {
		case errors.As(err, &corrupt):
			continue // or its last record is finished
		case err != nil:
			return false, err
		}
		if len(records) > 0 {
			b := record.Must(records[0].Body)
			crawl := u.Entry.Crawl
			u.Entry = entryOf(&b, u.Host.Host)
			u.Entry.Crawl = crawl
			return true, nil
		}
	}
	return false, nil
}

// firstLocked fills in the first URL of a host, or returns what must be read for it.
func (s *shard) firstLocked(u *Upcoming) *loadJob {
	c := s.core
	id := c.Lookup(s.core.HashOf(u.Host.Host), u.Host.Host)
	if id == 0 {
		return nil
	}
	qid, ref, load := c.First(id)
	if qid == 0 {
		return nil
	}
	q := c.Queues.At(qid)
	u.Priority = c.PriorityOf(q)
	if ref == 0 {
		u.Entry.Crawl = c.CrawlNumber(q)
		return s.jobLocked(load)
	}
	u.Entry, _ = s.entryLocked(ref, c.Hosts.At(id))
	u.Entry.Crawl = c.CrawlNumber(q)
	return nil
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
	return eachHost(f, f.scopeSeen(s), after, mercator.InfosAtOnce, f.hostInfoLocked, func(x HostInfo) string { return x.Host })
}

// namesAtOnce is how many names are read under one lock.
const namesAtOnce = 256

// HostNames yields the keys of the hosts that Hosts yields, in the same order and under
// the same conditions, at about a tenth of the cost. Host describes one.
func (f *Frontier) HostNames(s Scope, after string) iter.Seq[string] {
	look := func(id uint32) string { return string(f.core.NameOf(id)) }
	return eachHost(f, f.scopeSeen(s), after, namesAtOnce, look, func(name string) string { return name })
}

// eachHost yields what look, which is called with the lock, says of the hosts of s behind
// a host key, in domain order, a number of them under one lock. name is the key of the host
// that was looked at. It ends when the frontier is closed.
func eachHost[T any](f *Frontier, s Scope, after string, atOnce int, look func(id uint32) T, name func(T) string) iter.Seq[T] {
	return func(yield func(T) bool) {
		if !s.named || s.domain {
			f.orderHosts()
		}
		var ids []uint32
		seen := make([]T, 0, atOnce)
		for key, more := hostkey.Reversed(after), true; more; {
			f.lockAdvanced()
			if f.closed {
				f.mu.Unlock()
				return
			}
			ids = f.core.HostsIn(ids[:0], s.stored(), key, atOnce)
			more = len(ids) == atOnce
			seen = seen[:0]
			for _, id := range ids {
				seen = append(seen, look(id))
			}
			f.mu.Unlock()
			for _, x := range seen {
				if !yield(x) {
					return
				}
			}
			if more {
				key = hostkey.Reversed(name(seen[len(seen)-1]))
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
	f.lockAdvanced()
	if f.closed {
		f.mu.Unlock()
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
