// This file counts the URLs of each host within a crawl (Options.Count): package count has the sums,
// and here is what is on its way.

package mercator

import (
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

// QueueTally is the figures of inspect.Counts.
type QueueTally struct {
	Waiting, Scheduled, Leased, Finished int64
}

// add adds n times x.
func (q *QueueTally) add(x QueueTally, n int64) {
	q.Waiting += n * x.Waiting
	q.Scheduled += n * x.Scheduled
	q.Leased += n * x.Leased
	q.Finished += n * x.Finished
}

// countTable is the numbers of URLs by crawl and host. Without Options.Count it is empty.
type countTable struct {
	Counts  *count.Table // nil without Options.Count
	Ending  map[EndsOf]Ended
	Found   []Outdated // in timed blocks, whose ends the next batch has
	Finding []Outdated // those of the batch under way
}

// EndsOf is a host within a crawl; host 0 is all of the crawl.
type EndsOf struct{ host, Crawl uint32 }

// Ended is URLs whose leases, or other states, have ended, and whose ends are on their way to the disk.
type Ended struct {
	QueueTally               // as what they count until then
	live       count.Numbers // of these, those that are in package count still
}

// Outdated is a record on disk that a Force has replaced.
type Outdated struct {
	storage.Completion
	Host  string
	Crawl uint32
	count.Numbers
}

// Outgoing is a record on its way to its end.
type Outgoing struct {
	Record  arena.Ref // stays in memory until then
	Queue   uint32
	Host    uint32
	Crawl   uint32 // of queue
	counted Ended  // as what it counts in Core.Ending
	Dead    bool   // a deletion has the record: see Core.UnsettledDead
	Due     int64  // when record was scheduled for; 0: it waited or was leased
}

// recount counts a record that ends as x: zero, not at all.
func (s *Core) recount(o *Outgoing, x Ended) {
	if s.Counts == nil || x == o.counted {
		return
	}
	for _, of := range [...]EndsOf{{o.Host, o.Crawl}, {0, o.Crawl}} {
		e := s.Ending[of]
		e.add(x.QueueTally, 1)
		e.add(o.counted.QueueTally, -1)
		e.live.Add(x.live, 1)
		e.live.Add(o.counted.live, -1)
		if s.Ending[of] = e; e == (Ended{}) {
			delete(s.Ending, of)
		}
	}
	o.counted = x
}

// Uncount stops counting a record that ends.
func (s *Core) Uncount(o *Outgoing) { s.recount(o, Ended{}) }

// CountEnding counts a record as leased until its end is durable.
func (s *Core) CountEnding(o *Outgoing) {
	x := Ended{QueueTally: QueueTally{Leased: 1}}
	if s.Lives(o) {
		x.live = NumbersOf(o.Due)
	}
	s.recount(o, x)
}

// CountExpired counts a record whose lease has expired as what it becomes: a URL that is due at a
// date, or nothing.
func (s *Core) CountExpired(o *Outgoing, due int64, again bool, now int64) {
	if o.counted == (Ended{}) {
		return
	}
	x := Ended{live: o.counted.live}
	if again {
		switch {
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

// NumbersOf counts a URL that is due at a date.
func NumbersOf(due int64) count.Numbers {
	return count.Numbers{Total: 1, Finished: int64(btoi(due == instant.Never))}
}

// FoundOutdated notes that a record on disk was replaced: the next batch ends it, and counts it no more.
func (s *Core) FoundOutdated(x storage.Completion, host string, crawl uint32, due int64) {
	if s.Counts != nil {
		s.Found = append(s.Found, Outdated{x, host, crawl, NumbersOf(due)})
	}
}

// BeginCounting says that a batch with these changes is under way, with what was found, whose ends it appends
// to those of the batch. EndCounting must follow.
func (s *Core) BeginCounting(x *count.Changes, b *storage.Batch) {
	s.Found, s.Finding = nil, s.Found
	for i := range s.Finding {
		r := &s.Finding[i]
		b.Finish = append(b.Finish, r.Completion)
		x.AddAlive(r.Seq, r.Host, r.Crawl, r.Numbers, -1)
	}
	s.Counts.Begin(x)
}

// EndCounting ends the batch: it was committed or not.
func (s *Core) EndCounting(committed bool) {
	if s.Counts == nil {
		return
	}
	s.Counts.End(committed)
	if !committed {
		s.Found = append(s.Finding, s.Found...)
	}
	s.Finding = nil
}

// CountMemory adds the URLs in memory to x, at an opening. It calls full after each.
func (s *Core) CountMemory(x *count.Changes, full func() error) error {
	for id := uint32(1); id <= s.Queues.Top; id++ {
		if q := s.Queues.At(id); q.Host != 0 && q.Waiting > 0 {
			x.Add(string(s.NameOf(q.Host)), s.CrawlNumber(q), count.Numbers{Total: int64(q.Waiting)}, 1)
			if err := full(); err != nil {
				return err
			}
		}
	}
	for _, it := range s.Scheduled.Items {
		q := s.Queues.At(it.Aux)
		x.AddAlive(s.Records.At(arena.Ref(it.ID)).Seq(), string(s.NameOf(q.Host)), s.CrawlNumber(q), NumbersOf(it.At), 1)
		if err := full(); err != nil {
			return err
		}
	}
	return nil
}

// DeadCount is the number of the last deletion that concerns a count.
func (s *Core) DeadCount(host string, crawl uint32) uint64 {
	if s.Cfg.Spill {
		return s.Deletions.Stored.Of(hostkey.Bytes(host), crawl).Seq
	}
	return s.Deletions.InForce.Of(hostkey.Bytes(host), crawl).Seq
}

// Lives reports whether no deletion concerns a record that ends.
func (s *Core) Lives(o *Outgoing) bool {
	return !o.Dead && s.Records.At(o.Record).Seq() > s.DeadStored(s.Queues.At(o.Queue)).Seq
}

// CountAdmitted counts a URL that is visible now.
func (s *Core) CountAdmitted(host string, crawl uint32, due int64, seq uint64) {
	switch {
	case s.Counts == nil:
	case s.Cfg.Spill:
		s.Counts.Note(host, crawl, NumbersOf(due), 1, seq)
	default:
		s.Counts.Change(host, crawl, NumbersOf(due), 1, seq, s.DeadCount)
	}
}

// CountEnded counts the end of a record, which is still there.
func (s *Core) CountEnded(o *Outgoing, seq uint64) {
	switch {
	case s.Counts == nil || !s.Lives(o):
	case s.Cfg.Spill:
		s.Counts.Note(hostkey.String(s.NameOf(o.Host)), o.Crawl, NumbersOf(o.Due), -1, seq)
	default:
		s.Counts.Change(string(s.NameOf(o.Host)), o.Crawl, NumbersOf(o.Due), -1, seq, s.DeadCount)
	}
}

// CountsAtOnce is how many counts Queues reads at once after some, and a deletion drops: rows without the
// lock, and in one commit; in memory under one lock.
func (s *Core) CountsAtOnce() int {
	if s.Cfg.Spill {
		return 256
	}
	return 64
}

// SettledCounts reports whether nothing has changed since the counts had a version.
func (s *Core) SettledCounts(version uint64) bool {
	return s.Counts != nil && s.Counts.Version() == version && len(s.Found) == 0
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// QueueStats counts the URLs of a host within a crawl.
func (s *Core) QueueStats(host string, hash uint64, crawl uint32, n row.Count) (x QueueTally) {
	if n.Seq <= s.DeadCount(host, crawl) {
		n = row.Count{}
	}
	x.Finished, x.Scheduled = n.Finished, n.Total-n.Finished
	id := s.Lookup(hash, host)
	if id == 0 {
		return x
	}
	for qid := s.Hosts.At(id).Queues; qid != 0; qid = s.Queues.At(qid).Sibling {
		if q := s.Queues.At(qid); s.CrawlNumber(q) == crawl {
			x.Waiting += int64(q.Waiting)
		}
	}
	for lease := range s.LeasesOf(id) {
		if l := s.Leases.At(lease); l.Record != 0 && s.CrawlNumber(s.Queues.At(l.Queue)) == crawl && !s.deadLease(l) {
			x.Leased++
		}
	}
	x.Rest(s.Ending[EndsOf{id, crawl}])
	return x
}

// Rest makes the URLs scheduled that are neither waiting nor leased, and adds those whose ends are on their
// way.
func (q *QueueTally) Rest(e Ended) {
	q.Scheduled = max(0, q.Scheduled-q.Waiting-q.Leased-(e.live.Total-e.live.Finished))
	q.Finished -= e.live.Finished
	q.add(e.QueueTally, 1)
}
