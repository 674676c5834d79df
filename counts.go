// This file counts the URLs of each host within a crawl (Options.Count).
//
// Waiting and leased URLs are counted where they are. Scheduled and finished ones lie on disk in
// the order of time, so a table in memory has their numbers. A record that a deletion has
// declared dead counts no more, although it may not have been found yet: whatever adds to the
// table or takes from it leaves out the dead.

package frontier

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/storage"
)

// QueueStats has the numbers of URLs of a host within a crawl, by state. URLs whose change is on
// its way to the disk count as leased.
type QueueStats struct {
	Waiting, Scheduled, Leased, Finished int64
}

// errNotCounted is returned by calls that need Options.Count.
var errNotCounted = errors.New("frontier: queues are not counted: Options.Count is not set")

// dueCounts has the numbers of scheduled and finished URLs by crawl and host. Nil counts nothing.
// Entries and sums have no other numbers than those two.
type dueCounts map[uint32]*crawlDue

type crawlDue struct {
	all   QueueStats
	hosts map[string]*QueueStats
}

// dueCountBytes is about what a host takes in memory, with a name of usual length.
const dueCountBytes = 120

func (d dueCounts) size() (n int64) {
	for _, x := range d {
		n += int64(len(x.hosts)) * dueCountBytes
	}
	return n
}

// add counts n URLs that are due at a date.
func (d dueCounts) add(host []byte, crawl uint32, at, n int64) {
	x := d[crawl]
	if x == nil {
		x = &crawlDue{hosts: map[string]*QueueStats{}}
		d[crawl] = x
	}
	q := x.hosts[string(host)]
	if q == nil {
		q = &QueueStats{}
		x.hosts[string(host)] = q
	}
	for _, c := range [...]*QueueStats{q, &x.all} {
		if at == instant.Never {
			c.Finished += n
		} else {
			c.Scheduled += n
		}
	}
	if *q == (QueueStats{}) {
		delete(x.hosts, string(host))
	}
}

// of returns the numbers of a host within a crawl.
func (d dueCounts) of(host string, crawl uint32) QueueStats {
	if x := d[crawl]; x != nil && x.hosts[host] != nil {
		return *x.hosts[host]
	}
	return QueueStats{}
}

// sum returns the numbers of a crawl.
func (d dueCounts) sum(crawl uint32) QueueStats {
	if x := d[crawl]; x != nil {
		return x.all
	}
	return QueueStats{}
}

// drop forgets a host of a crawl.
func (x *crawlDue) drop(host string) {
	if q := x.hosts[host]; q != nil {
		x.all.Scheduled -= q.Scheduled
		x.all.Finished -= q.Finished
		delete(x.hosts, host)
	}
}

// deleted takes out what falls to a deletion.
func (d dueCounts) deleted(by *deletion) {
	for crawl, x := range d {
		if by.OfHost() {
			if by.Contains(bytesOf(by.Scope.Name), crawl) {
				x.drop(by.Scope.Name)
			}
			continue
		}
		for host := range x.hosts {
			if by.Contains(bytesOf(host), crawl) {
				x.drop(host)
			}
		}
		if len(x.hosts) == 0 {
			delete(d, crawl)
		}
	}
}

// endCounts has the numbers of URLs whose leases, or other states, have ended, and whose ends are on
// their way to the disk. Until they are there these URLs count as leased, or, if their deadline has passed,
// as what they become. Nil counts nothing.
type endCounts map[endsOf]QueueStats

// endsOf is a host within a crawl; host 0 is all of the crawl.
type endsOf struct{ host, crawl uint32 }

// recount counts the record of an op as x: zero, not at all.
func (s *scheduler) recount(o *op, x QueueStats) {
	if s.ending == nil || x == o.counted {
		return
	}
	for _, of := range [...]endsOf{{o.host, o.crawl}, {0, o.crawl}} {
		e := s.ending[of]
		e.add(x, 1)
		e.add(o.counted, -1)
		if s.ending[of] = e; e == (QueueStats{}) {
			delete(s.ending, of)
		}
	}
	o.counted = x
}

// add adds n times x.
func (q *QueueStats) add(x QueueStats, n int64) {
	q.Waiting += n * x.Waiting
	q.Scheduled += n * x.Scheduled
	q.Leased += n * x.Leased
	q.Finished += n * x.Finished
}

// uncount stops counting the record of an op.
func (s *scheduler) uncount(o *op) { s.recount(o, QueueStats{}) }

// countExpired counts the record of an op whose lease has expired as what it becomes.
func (s *scheduler) countExpired(o *op, now int64) {
	if o.counted == (QueueStats{}) {
		return
	}
	var x QueueStats
	if len(o.entries) > 0 {
		switch due := o.entries[0].due; {
		case due == instant.Never:
			x.Finished = 1
		case due > now:
			x.Scheduled = 1
		default:
			x.Waiting = 1
		}
	}
	s.recount(o, x)
}

// countDue adds n for a scheduled or finished record in memory; n is -1 when it leaves that state.
func (s *scheduler) countDue(qid uint32, ref arena.Ref, at, n int64) {
	if s.due == nil {
		return
	}
	if q := s.queues.At(qid); s.records.At(ref).Seq() > s.deadStored(q).Seq {
		s.due.add(s.name(s.hosts.At(q.host)), s.crawlOf(q).id, at, n)
	}
}

// countTimed counts a record of a timed block.
func (s *scheduler) countTimed(host string, crawl uint32, seq uint64, at, n int64) {
	if s.due != nil && seq > s.storedTombstones.Of(bytesOf(host), crawl).Seq {
		s.due.add(bytesOf(host), crawl, at, n)
	}
}

// countBlocks counts the records of all timed blocks, at an opening. Those in damaged blocks are
// left out.
func (s *shard) countBlocks(ctx context.Context) error {
	l := s.listTimed()
	s.mu.Lock()
	s.sched.timed.EndList(l)
	s.mu.Unlock()
	for _, it := range l.All() {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := int64(0)
		if it.At == instant.Never {
			at = it.At
		}
		err := s.opts.Spill.LoadTimed(it.ID, timed.First(it), func(pos int, r storage.TimedRecord) bool {
			if !s.sched.blocks.IsBuried(it.ID, pos) {
				s.sched.countTimed(r.Host, r.Crawl, r.Seq, at, 1)
			}
			return true
		})
		var corrupt *CorruptError
		if err != nil && !errors.As(err, &corrupt) {
			return err
		}
	}
	return nil
}

// QueueStats returns the numbers of URLs of a host within a crawl, and whether there are any. It
// needs Options.Count; the other error is ErrClosed.
//
// The numbers are exact as of the last call that returned, with three exceptions. After an opening
// waiting URLs that were deleted before count until they are found. A URL on disk that a Force has
// replaced counts until its record is read; QueueStats reads it if at most 32 blocks
// of scheduled and finished URLs are on disk. URLs in damaged blocks count if the damage was
// found since Open.
func (f *Frontier) QueueStats(host string, crawl uint32) (QueueStats, bool, error) {
	if !f.opts.Count {
		return QueueStats{}, false, errNotCounted
	}
	host = f.hostSeen(host)
	f.readOutdated()
	f.lockAdvanced()
	defer f.mu.Unlock()
	if f.closed {
		return QueueStats{}, false, ErrClosed
	}
	x := f.sched.queueStats(host, f.hostHash(host), crawl)
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
			return
		}
	}
}

// queueStats counts the URLs of a host within a crawl.
func (s *scheduler) queueStats(host string, hash uint64, crawl uint32) QueueStats {
	x := s.due.of(host, crawl)
	id := s.lookup(hash, host)
	if id == 0 {
		return x
	}
	for qid := s.hosts.At(id).queues; qid != 0; qid = s.queues.At(qid).sibling {
		if q := s.queues.At(qid); s.crawlNumber(q) == crawl {
			x.Waiting += int64(q.waiting)
		}
	}
	x.add(s.ending[endsOf{id, crawl}], 1)
	for lease := range s.leasesOf(id) {
		if l := s.leases.At(lease); l.record != 0 && s.crawlNumber(s.queues.At(l.queue)) == crawl {
			x.Leased++
		}
	}
	return x
}

// Queues yields the hosts that have URLs of a crawl, in any state, and their numbers, in domain
// order, as Hosts does. It begins behind the host key after; if that is empty, with the first.
// Hosts that come or go during the loop may be missed or not. It yields nothing without
// Options.Count, and ends when the frontier is closed.
//
// A call gathers the names of all these hosts and sorts them. No lock is held while the loop body
// runs.
func (f *Frontier) Queues(crawl uint32, after string) iter.Seq2[string, QueueStats] {
	return func(yield func(string, QueueStats) bool) {
		if !f.opts.Count {
			return
		}
		f.readOutdated()
		names := f.queueNames(crawl, hostkey.Reversed(after))
		found := make([]QueueStats, 0, namesAtOnce)
		for chunk := range slices.Chunk(names, namesAtOnce) {
			f.lockAdvanced()
			if f.closed {
				f.mu.Unlock()
				return
			}
			found = found[:0]
			for _, name := range chunk {
				found = append(found, f.sched.queueStats(name, f.hostHash(name), crawl))
			}
			f.mu.Unlock()
			for i, x := range found {
				if x != (QueueStats{}) && !yield(chunk[i], x) {
					return
				}
			}
		}
	}
}

// queueNames lists the hosts of a crawl whose place in domain order comes after key, in order.
func (f *Frontier) queueNames(crawl uint32, key string) []string {
	var names []string
	c := f.sched
	f.lockAdvanced()
	if x := c.due[crawl]; x != nil {
		n := 0
		for name := range x.hosts {
			names = append(names, name)
			if n++; n%namesAtOnce == 0 {
				f.yield()
			}
		}
	}
	for id := uint32(1); id <= c.hosts.Top; id++ {
		if h := c.hosts.At(id); h.nameLen > 0 {
			for qid := h.queues; qid != 0; qid = c.queues.At(qid).sibling {
				if c.crawlNumber(c.queues.At(qid)) == crawl {
					names = append(names, string(c.name(h)))
					break
				}
			}
		}
		if id%namesAtOnce == 0 {
			f.yield()
		}
	}
	f.mu.Unlock()
	type placed struct{ key, name string }
	order := make([]placed, 0, len(names))
	for _, name := range names {
		if k := hostkey.Reversed(name); k > key {
			order = append(order, placed{k, name})
		}
	}
	slices.SortFunc(order, func(a, b placed) int { return strings.Compare(a.key, b.key) })
	order = slices.Compact(order)
	names = names[:0]
	for _, x := range order {
		names = append(names, x.name)
	}
	return names
}

// dueCounts compares the table with Stats, unless records that are dead, or cannot be read, are
// in one of them only (F6).
func (k *checker) dueCounts() {
	c := k.c
	if c.due == nil || c.tombstones.Len()+c.storedTombstones.Len() > 0 || c.stats.Unreadable > 0 {
		return
	}
	var all QueueStats
	for crawl, x := range c.due {
		var sum QueueStats
		for host, q := range x.hosts {
			if q.Scheduled < 0 || q.Finished < 0 || *q == (QueueStats{}) {
				k.bad("F6: crawl %d has %+v of host %s", crawl, *q, host)
			}
			sum.Scheduled += q.Scheduled
			sum.Finished += q.Finished
		}
		if sum != x.all {
			k.bad("F6: crawl %d has %+v, counted %+v", crawl, sum, x.all)
		}
		all.Scheduled += sum.Scheduled
		all.Finished += sum.Finished
	}
	if all.Scheduled != c.stats.Scheduled || all.Finished != c.stats.Finished {
		k.bad("F6: queues have %+v; Stats say %d and %d", all, c.stats.Scheduled, c.stats.Finished)
	}
}
