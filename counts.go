// This file counts the URLs of each host within a crawl (Options.Count).
//
// Package count has how many there are in all, and how many of them are finished. With a Spill these
// are rows, which change with the batch that admits or ends a URL: what is not in memory takes none.
// Waiting and leased URLs are counted where they are; the rest is scheduled. A record that a deletion
// has declared dead counts no more, although it may not have been found yet.

package frontier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/storage"
)

// QueueStats has the numbers of URLs of a host within a crawl, by state. URLs whose change is on
// its way to the disk count as leased.
type QueueStats struct {
	Waiting, Scheduled, Leased, Finished int64
}

// queueTally is the figures of QueueStats.
type queueTally struct {
	Waiting, Scheduled, Leased, Finished int64
}

// add adds n times x.
func (q *queueTally) add(x queueTally, n int64) {
	q.Waiting += n * x.Waiting
	q.Scheduled += n * x.Scheduled
	q.Leased += n * x.Leased
	q.Finished += n * x.Finished
}

// errNotCounted is returned by calls that need Options.Count.
var errNotCounted = errors.New("frontier: queues are not counted: Options.Count is not set")

// countTable is the numbers of URLs by crawl and host. Without Options.Count it is empty.
type countTable struct {
	counts  *count.Table // nil without Options.Count
	ending  map[endsOf]ended
	found   []outdated // in timed blocks, whose ends the next batch has
	finding []outdated // those of the batch under way
}

// endsOf is a host within a crawl; host 0 is all of the crawl.
type endsOf struct{ host, crawl uint32 }

// ended is URLs whose leases, or other states, have ended, and whose ends are on their way to the disk.
type ended struct {
	queueTally               // as what they count until then
	live       count.Numbers // of these, those that are in package count still
}

// outdated is a record on disk that a Force has replaced.
type outdated struct {
	storage.Completion
	host  string
	crawl uint32
	count.Numbers
}

// outgoing is a record on its way to its end.
type outgoing struct {
	record  arena.Ref // stays in memory until then
	queue   uint32
	host    uint32
	crawl   uint32 // of queue
	counted ended  // as what it counts in scheduler.ending
	dead    bool   // a deletion has the record: see scheduler.unsettledDead
	due     int64  // when record was scheduled for; 0: it waited or was leased
}

// recount counts a record that ends as x: zero, not at all.
func (s *scheduler) recount(o *outgoing, x ended) {
	if s.counts == nil || x == o.counted {
		return
	}
	for _, of := range [...]endsOf{{o.host, o.crawl}, {0, o.crawl}} {
		e := s.ending[of]
		e.add(x.queueTally, 1)
		e.add(o.counted.queueTally, -1)
		e.live.Add(x.live, 1)
		e.live.Add(o.counted.live, -1)
		if s.ending[of] = e; e == (ended{}) {
			delete(s.ending, of)
		}
	}
	o.counted = x
}

// uncount stops counting a record that ends.
func (s *scheduler) uncount(o *outgoing) { s.recount(o, ended{}) }

// countEnding counts a record as leased until its end is durable.
func (s *scheduler) countEnding(o *outgoing) {
	x := ended{queueTally: queueTally{Leased: 1}}
	if s.lives(o) {
		x.live = numbersOf(o.due)
	}
	s.recount(o, x)
}

// countExpired counts a record whose lease has expired as what it becomes: a URL that is due at a
// date, or nothing.
func (s *scheduler) countExpired(o *outgoing, due int64, again bool, now int64) {
	if o.counted == (ended{}) {
		return
	}
	x := ended{live: o.counted.live}
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

// numbersOf counts a URL that is due at a date.
func numbersOf(due int64) count.Numbers {
	return count.Numbers{Total: 1, Finished: int64(btoi(due == instant.Never))}
}

// deadCount is the number of the last deletion that concerns a count.
func (s *scheduler) deadCount(host string, crawl uint32) uint64 {
	if s.cfg.spill {
		return s.storedTombstones.Of(hostkey.Bytes(host), crawl).Seq
	}
	return s.tombstones.Of(hostkey.Bytes(host), crawl).Seq
}

// lives reports whether no deletion concerns a record that ends.
func (s *scheduler) lives(o *outgoing) bool {
	return !o.dead && s.records.At(o.record).Seq() > s.deadStored(s.queues.At(o.queue)).Seq
}

// countGroupLocked begins to count what the ops of a batch change, and what was found. The ops have
// their numbers.
func (s *shard) countGroupLocked(group []*op, b *storage.Batch) {
	c := s.sched
	if c.counts == nil {
		return
	}
	var x count.Changes
	var ds []*deletion // of the group, so far
	dead := func(host string, crawl uint32) uint64 {
		seq := c.deadCount(host, crawl)
		for _, d := range ds {
			if d.Contains(hostkey.Bytes(host), crawl) {
				seq = d.Seq
			}
		}
		return seq
	}
	for _, o := range group {
		if d := o.deletion; d != nil {
			x.Delete(func(host string, crawl uint32) bool { return d.Contains(hostkey.Bytes(host), crawl) })
			ds = append(ds, d)
		}
		for i := range o.entries {
			e := &o.entries[i]
			x.Add(e.host, e.crawl, numbersOf(e.due), 1, dead)
		}
		if o.ends && c.lives(&o.outgoing) {
			x.Add(string(c.nameOf(o.host)), o.crawl, numbersOf(o.due), -1, dead)
		}
		for i, r := range o.replaced {
			if in := &o.replacedIn[i]; r.Seq > dead(in.Host, in.Crawl) {
				x.Add(in.Host, in.Crawl, count.Numbers{Total: 1}, -1, dead)
			}
		}
	}
	c.found, c.finding = nil, c.found
	for i := range c.finding {
		r := &c.finding[i]
		b.Finish = append(b.Finish, r.Completion)
		if r.Seq > dead(r.host, r.crawl) {
			x.Add(r.host, r.crawl, r.Numbers, -1, dead)
		}
	}
	c.counts.Begin(&x)
}

// commitCounted commits a batch together with the counts that it changes.
func (f *Frontier) commitCounted(b *storage.Batch, seq uint64) error {
	if f.sched.counts == nil {
		return f.commit(b)
	}
	rows, err := f.sched.counts.Write(seq, f.opts.Spill.Row)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.sched.counts.Written()
	f.mu.Unlock()
	own := len(b.Rows)
	b.Rows = append(b.Rows, rows...)
	err = f.commit(b)
	b.Rows = b.Rows[:own]
	return err
}

// countedLocked ends what countGroupLocked began.
func (s *shard) countedLocked(err error) {
	c := s.sched
	if c.counts == nil {
		return
	}
	c.counts.End(err == nil)
	if err != nil {
		c.found = append(c.finding, c.found...)
	}
	c.finding = nil
}

// countAdmitted counts a URL that is visible now.
func (s *scheduler) countAdmitted(host string, crawl uint32, due int64, seq uint64) {
	switch {
	case s.counts == nil:
	case s.cfg.spill:
		s.counts.Note(host, crawl, numbersOf(due), 1, seq)
	default:
		s.counts.Change(host, crawl, numbersOf(due), 1, seq, s.deadCount)
	}
}

// countEnded counts the end of a record, which is still there.
func (s *scheduler) countEnded(o *outgoing, seq uint64) {
	switch {
	case s.counts == nil || !s.lives(o):
	case s.cfg.spill:
		s.counts.Note(hostkey.String(s.nameOf(o.host)), o.crawl, numbersOf(o.due), -1, seq)
	default:
		s.counts.Change(string(s.nameOf(o.host)), o.crawl, numbersOf(o.due), -1, seq, s.deadCount)
	}
}

// foundOutdatedLocked notes that a record of the block being read was replaced: the next batch ends it, and
// counts it no more.
func (s *shard) foundOutdatedLocked(r *timed.Loaded) {
	if s.sched.counts != nil {
		s.sched.found = append(s.sched.found, outdated{
			Completion: storage.Completion{Seq: r.Seq, Block: s.sched.timed.Reading().ID, Pos: uint16(r.Pos)},
			host:       r.Host, crawl: r.Crawl, Numbers: numbersOf(r.At),
		})
	}
}

// commitFoundLocked has what was found committed soon.
func (f *Frontier) commitFoundLocked() {
	if len(f.sched.found) > 0 && !f.closed {
		o := newOp()
		o.after = func(error) {} // nobody waits
		f.submitAsyncLocked(o)
	}
}

// commitFound commits what was found, between two commits: a checkpoint makes it durable that it ended.
// It returns with the lock held, and nothing found, unless there is an error.
func (f *Frontier) commitFound() error {
	for {
		f.mu.Lock()
		if len(f.sched.found) == 0 {
			return nil
		}
		b := &storage.Batch{ID: f.committer.batchID + 1, Time: instant.Millis(f.wall(f.nowLocked()))}
		f.countGroupLocked(nil, b)
		seq := f.seq
		f.mu.Unlock()
		err := f.commitCounted(b, seq)
		f.mu.Lock()
		f.countedLocked(err)
		if err == nil {
			f.committer.batchID, f.applied.batch = b.ID, b.ID
		}
		f.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// readCounted reads counts and looks at what is in memory, as of one moment: load reads, without the lock;
// look is called with the lock held, and for what was read asks what is visible of it.
func (f *Frontier) readCounted(load func() error, look func()) error {
	t := f.sched.counts
	for range 3 {
		f.lockAdvanced()
		if f.closed {
			f.mu.Unlock()
			return ErrClosed
		}
		if !t.Stored() {
			err := load()
			look()
			f.mu.Unlock()
			return err
		}
		version := t.Version()
		f.mu.Unlock()
		if err := load(); err != nil {
			return err
		}
		f.lockAdvanced()
		if t.Version() == version {
			look()
			f.mu.Unlock()
			return nil
		}
		f.mu.Unlock()
	}
	return f.between(func() error { // else nothing would change
		err := load()
		f.mu.Lock()
		look()
		f.mu.Unlock()
		return err
	})
}

// between calls fn between two commits.
func (f *Frontier) between(fn func() error) error {
	o := newOp()
	o.run = fn
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		o.free()
		return ErrClosed
	}
	f.finishing++
	f.enqueueLocked(o)
	f.mu.Unlock()
	err := o.done.Result()
	o.free()
	return err
}

// eachCount calls fn with the counts whose keys begin with prefix and are not before from, in order, until
// fn returns false. If they are in memory the lock is held.
func (f *Frontier) eachCount(prefix, from string, fn func(key, host string, crawl uint32, n row.Count) bool) (err error) {
	if t := f.sched.counts; !t.Stored() {
		t.From(prefix, from, func(key string, n row.Count) bool {
			var crawl uint32
			var host string
			crawl, host, err = row.Counts(key)
			return err == nil && fn(key, host, crawl, n)
		})
		return err
	}
	return errors.Join(f.opts.Spill.Rows(prefix, from, func(key string, value []byte) bool {
		crawl, host, n, e := row.ParseCount(key, value)
		err = e
		return err == nil && fn(key, host, crawl, n)
	}), err)
}

// countsAtOnce is how many counts Queues reads at once after some, and a deletion drops: rows without the
// lock, and in one commit; in memory under one lock.
func (s *scheduler) countsAtOnce() int {
	if s.cfg.spill {
		return 256
	}
	return 64
}

// sweepCounts drops the counts that d has left dead, some at a time.
func (f *Frontier) sweepCounts(d *deletion) {
	if f.sched.counts == nil {
		return
	}
	crawls := []uint32{d.Crawl}
	if !d.OfCrawl {
		f.mu.Lock()
		crawls = f.sched.counts.Crawls()
		f.mu.Unlock()
	}
	for from := ""; len(crawls) > 0; {
		step := func() (err error) { crawls, from, err = f.dropCounts(d, crawls, from); return err }
		var err error
		if f.opts.Spill != nil {
			err = f.between(step)
		} else {
			f.mu.Lock()
			err = step()
			f.mu.Unlock()
		}
		if err != nil { // the deletion stays until an opening has dropped them
			if !errors.Is(err, ErrClosed) {
				f.emit(Event{Kind: EventStoreError, Reason: "deleting numbers of URLs", Err: err})
			}
			return
		}
	}
	f.mu.Lock()
	d.counted = true
	f.mu.Unlock()
}

// dropCounts drops some of the counts of crawls that d has left dead, from a key on, and returns where to
// go on. It is called between two commits; without a Spill, with the lock held.
func (f *Frontier) dropCounts(d *deletion, crawls []uint32, from string) ([]uint32, string, error) {
	var dead []count.Dead
	most := f.sched.countsAtOnce()
	for n := 0; n < most && len(crawls) > 0; {
		prefix, next := row.CountsOf(crawls[0])+hostkey.Reversed(d.Scope.Name), ""
		n++
		err := f.eachCount(prefix, from, func(key, host string, crawl uint32, x row.Count) bool {
			if n >= most {
				next = key
				return false
			}
			n++
			if x.Seq <= d.Seq && d.Contains(hostkey.Bytes(host), crawl) {
				dead = append(dead, count.Dead{Key: key, Crawl: crawl, Count: x})
			}
			return !d.OfHost() // it is the first
		})
		if err != nil {
			return nil, "", err
		}
		if from = next; next == "" {
			crawls = crawls[1:]
		}
	}
	if len(dead) == 0 {
		return crawls, from, nil
	}
	if f.opts.Spill == nil {
		return crawls, from, f.sched.counts.Drop(dead, func([]storage.Row) error { return nil })
	}
	err := f.sched.counts.Drop(dead, func(rows []storage.Row) error {
		f.mu.Lock()
		b := &storage.Batch{ID: f.committer.batchID + 1, Time: instant.Millis(f.wall(f.nowLocked())), Rows: rows}
		f.mu.Unlock()
		err := f.opts.Spill.Commit(b)
		f.mu.Lock()
		if err == nil {
			f.committer.batchID, f.applied.batch = b.ID, b.ID
		}
		return err
	})
	f.mu.Unlock()
	return crawls, from, err
}

// countAnew counts all URLs, at an opening: the store has no counts, or wrong ones. It reads all blocks of
// scheduled and finished URLs. Those in damaged blocks are left out.
func (f *Frontier) countAnew(ctx context.Context) error {
	c := f.sched
	f.sweepDead()
	var x count.Changes
	write := func(least int) error {
		if x.Len() < least {
			return nil
		}
		c.counts.Begin(&x)
		rows, err := c.counts.Write(f.seq, f.opts.Spill.Row)
		if err == nil {
			err = f.commitCounts(rows)
		}
		c.counts.End(err == nil)
		x = count.Changes{}
		return cmp.Or(err, ctx.Err())
	}
	for _, prefix := range []string{row.CountKey, row.SumKey} {
		if err := f.dropRows(ctx, prefix); err != nil {
			return err
		}
	}
	for id := uint32(1); id <= c.queues.Top; id++ {
		if q := c.queues.At(id); q.host != 0 && q.waiting > 0 {
			x.Add(string(c.nameOf(q.host)), c.crawlOf(q).id, count.Numbers{Total: int64(q.waiting)}, 1, c.deadCount)
			if err := write(clocksAtOnce); err != nil {
				return err
			}
		}
	}
	one := func(host string, crawl uint32, seq uint64, due int64) {
		if seq > c.deadCount(host, crawl) {
			x.Add(host, crawl, numbersOf(due), 1, c.deadCount)
		}
	}
	for _, it := range c.scheduled.Items {
		q := c.queues.At(it.Aux)
		one(string(c.nameOf(q.host)), c.crawlOf(q).id, c.records.At(arena.Ref(it.ID)).Seq(), it.At)
		if err := write(clocksAtOnce); err != nil {
			return err
		}
	}
	l := f.listTimed()
	c.timed.EndList(l)
	for _, it := range l.All() {
		err := f.opts.Spill.LoadTimed(it.ID, timed.First(it), func(pos int, r storage.TimedRecord) bool {
			if !c.blocks.IsBuried(it.ID, pos) {
				one(r.Host, r.Crawl, r.Seq, it.At)
			}
			return true
		})
		var corrupt *CorruptError
		if err != nil && !errors.As(err, &corrupt) {
			return err
		}
		if err := write(clocksAtOnce); err != nil {
			return err
		}
	}
	if err := write(1); err != nil {
		return err
	}
	return f.commitCounts([]storage.Row{row.Counted(true)})
}

// commitCounts commits rows at an opening.
func (f *Frontier) commitCounts(rows []storage.Row) error {
	b := &storage.Batch{Time: instant.Millis(f.clock.Start()), Rows: rows}
	if err := f.commitRows(b); err != nil {
		return fmt.Errorf("frontier: open: %w", err)
	}
	f.applied.batch = f.committer.batchID
	return nil
}

// dropRows deletes all rows whose keys begin with prefix.
func (f *Frontier) dropRows(ctx context.Context, prefix string) error {
	for {
		var rows []storage.Row
		err := f.opts.Spill.Rows(prefix, "", func(key string, _ []byte) bool {
			rows = append(rows, storage.Row{Key: key})
			return len(rows) < clocksAtOnce
		})
		if err == nil {
			err = ctx.Err()
		}
		if len(rows) == 0 || err != nil {
			return err
		}
		if err := f.commitCounts(rows); err != nil {
			return err
		}
	}
}

// sweepDead takes what deletions have left dead out of all queues, at an opening.
func (f *Frontier) sweepDead() {
	c := f.sched
	for _, d := range f.deletions {
		for id := uint32(1); id <= c.hosts.Top; id++ {
			if h := c.hosts.At(id); h.nameLen == 0 || !d.ContainsHost(c.name(h)) {
				continue
			}
			for at, done := (ring{}), false; !done; {
				_, done, _ = c.purgeHost(id, &d.Tombstone, &at, sweepSteps, 0)
			}
		}
	}
}

// countRows returns all counts by key, and their version, or nothing if they cannot be read. It is for
// tests.
func (f *Frontier) countRows() (rows map[string]row.Count, version uint64) {
	if f.sched.counts == nil {
		return nil, 0
	}
	rows = map[string]row.Count{}
	one := func(key, _ string, _ uint32, n row.Count) bool {
		rows[key] = n
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	version = f.sched.counts.Version()
	if f.opts.Spill == nil {
		_ = f.eachCount(row.CountKey, "", one)
		return rows, version
	}
	f.mu.Unlock()
	err := f.eachCount(row.CountKey, "", one)
	f.mu.Lock()
	if err != nil {
		return nil, noVersion
	}
	return rows, version
}

// noVersion is none of a table of counts.
const noVersion = math.MaxUint64

// settledCounts reports whether nothing has changed since the counts had a version.
func (s *scheduler) settledCounts(version uint64) bool {
	return s.counts != nil && s.counts.Version() == version && len(s.found) == 0
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
