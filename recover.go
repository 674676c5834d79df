// This file recovers a frontier from its Spill.
//
// Marks and blocks come first, then the log since the last checkpoint, then rows: only
// hosts that turn out to have URLs are restored to memory from their rows. Unless the
// frontier was closed cleanly, every host counts as contacted at the moment of reopening,
// since it is not known what the lost leases did.
//
// A host or group whose row would only say what a reader assumes anyway has no row.

package frontier

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	clocksAtOnce = 4096    // hosts or groups that are looked at under one lock, or rows in one batch
	maxStale     = 4 << 20 // bytes of keys of rows that one opening deletes
)

// recovery is a storage.Recovery for an empty frontier.
type recovery struct {
	f     *Frontier
	clean bool // the last frontier was closed

	groups  []string      // whose rows say nothing unless they have members
	counted []countedHost // hosts with usage in their rows, and nothing else
	right   bool          // the rows of counts are right
	stale   []byte        // keys of rows to be deleted, each behind its length
	blocks  mercator.Restore
	log     map[uint64]logged // by sequence number
	order   []uint64          // of log
}

// logged is a record of the log that is not finished yet.
type logged struct {
	ref   arena.Ref
	queue uint32
	timed bool
	due   int64 // if timed; negative if its time came before Open
	since int64 // the date from which it waits, of a batch of about then
}

// recover fills an empty frontier from its Spill. The store is in use if and only if it returns nil.
func (f *Frontier) recover(ctx context.Context) error {
	r := &recovery{
		f: f, log: map[uint64]logged{}, blocks: f.core.Restore(),
	}
	if err := f.opts.Spill.Recover(ctx, r); err != nil {
		return fmt.Errorf("frontier: recover: %w", err) // if it is in use, another uses it
	}
	err := f.begin(r)
	if err == nil && f.opts.Count && !r.right {
		err = f.countAnew(ctx)
	}
	if err != nil {
		return errors.Join(err, f.opts.Spill.Release())
	}
	return nil
}

// begin ends the recovery and commits that the store is in use again.
func (s *shard) begin(r *recovery) error {
	r.finish()
	r.judgeCounts()
	s.epoch++
	s.token = s.epoch << 40
	s.applied.batch, s.applied.seq, s.applied.marks = s.committer.batchID, s.seq, s.known.Logged()
	b := &storage.Batch{
		ID:   s.committer.batchID + 1,
		Time: instant.Millis(s.clock.Start()),
		Rows: []storage.Row{s.metaRowLocked(s.gen, false)},
		Drop: s.core.Blocks.TakeDrops(),
	}
	if !s.opts.Count && r.right {
		b.Rows = append(b.Rows, row.Counted(false))
	}
	s.countGroupLocked(nil, b) // what finish has found
	err := r.f.commitCounted(b, s.seq)
	if s.core.EndCounting(err == nil); err != nil {
		return fmt.Errorf("frontier: open: %w", err)
	}
	s.committer.batchID, s.applied.batch = b.ID, b.ID
	return r.deleteStale()
}

// metaRowLocked returns the row about the frontier itself: key of the fingerprints, how
// often it was opened, whether it was closed, last sequence number, generation, when it was
// last opened after a crash or in another's place, and how hosts are named.
func (s *shard) metaRowLocked(gen uint32, clean bool) storage.Row {
	m := row.Meta{Key: s.core.Key, Epoch: s.epoch, Clean: clean, Seq: s.seq, Gen: gen, Hosts: s.hostNames}
	if s.core.ReopenedAt != mercator.NotReopened {
		m.Held = uint64(instant.Millis(s.wall(s.core.ReopenedAt)))
	}
	return m.Row()
}

func (r *recovery) meta(v []byte) error {
	m, err := row.ParseMeta(v)
	if err != nil {
		return err
	}
	f := r.f
	if m.Hosts != 0 && m.Hosts != f.hostNames {
		return errors.New("HostKey names hosts otherwise than before: each machine would be two hosts; want the function with which the store was made")
	}
	f.core.Key, f.epoch, f.seq, f.gen = m.Key, m.Epoch, m.Seq, m.Gen
	r.clean = m.Clean
	if !r.clean {
		f.contactedAt(0)
	}
	if m.Held != 0 && f.opts.ContactedAt.IsZero() { // in the future, if another process had contacted hosts
		f.contactedAt(f.owed(instant.FromMillis(int64(m.Held))))
	}
	return nil
}

// contactedAt makes every host count as contacted then, which may be in the future, unless it was
// contacted later.
func (f *Frontier) contactedAt(at int64) {
	f.core.ReopenedAt = max(f.core.ReopenedAt, min(at, int64(maxDelay)))
	f.core.StartsAt = max(0, f.core.ReopenedAt+f.maxDelay)
	f.core.HostStartsAt = f.startOfHost
	f.core.GroupStartsAt = func(d mercator.OwnPolicy) int64 {
		longest := f.core.Cfg.GroupMax // a policy of the user's is not asked with the lock held
		if d != nil {
			longest = int64(d.Max())
		}
		return max(0, f.core.ReopenedAt+longest)
	}
}

// startOfHost is until when a host is left alone because the store was opened after a
// crash, as far as a rule of its own says.
func (s *shard) startOfHost(host string) int64 {
	if d := s.controls.Delay(host); d != nil {
		return s.core.ReopenedAt + int64(d.Max())
	}
	return 0
}

func (r *recovery) Marks(n int64) error {
	r.f.known.Restore(n)
	return nil
}

func (r *recovery) Dead(id uint32, bits []byte) error {
	r.f.core.Blocks.RestoreDead(id, bits)
	return nil
}

func (r *recovery) Part(q storage.Queue, p storage.Part) error {
	qid, err := r.queue(q)
	if err != nil {
		return err
	}
	r.blocks.Part(qid, p)
	return nil
}

func (r *recovery) queue(q storage.Queue) (uint32, error) {
	if err := hostkey.Check(q.Host); err != nil {
		return 0, &CorruptError{Err: err}
	}
	if q.Priority < 1 {
		return 0, &CorruptError{Err: &PriorityError{Got: int(q.Priority), Levels: r.f.opts.Priorities}}
	}
	if !r.f.isPriority(q.Priority) {
		return 0, r.tooHigh(q.Priority)
	}
	return r.f.core.QueueOf(r.f.core.Ensure(r.f.core.HashOf(q.Host), q.Host), q.Crawl, q.Priority), nil
}

func (r *recovery) Batch(b *storage.Batch) error {
	f := r.f
	f.committer.batchID = b.ID
	f.logBytes += batchBytes(b)
	at := f.storedDue(b.Time)
	for i := range b.Admit {
		a := &b.Admit[i]
		if _, err := record.Decode(a.Body); err != nil {
			return &CorruptError{Err: err}
		}
		qid, err := r.queue(a.Queue)
		if err != nil {
			return err
		}
		x := logged{queue: qid, since: at}
		if a.Due != 0 {
			x.ref, x.timed, x.due = f.core.Records.StoreForRing(a.Seq, a.Body), true, f.storedDue(a.Due)
			x.since = max(at, x.due)
		} else {
			x.ref = f.core.Records.Store(a.Seq, a.Body)
		}
		r.log[a.Seq] = x
		r.order = append(r.order, a.Seq)
		f.seq = max(f.seq, a.Seq)
		if a.HasMark {
			f.known.Insert(a.Mark)
			f.known.Log(a.Mark)
		}
	}
	for _, m := range b.Marks {
		if f.known.Insert(m) {
			f.known.Log(m)
		}
	}
	for _, x := range b.Finish {
		r.completion(x)
	}
	return nil
}

// completion ends a record that lies in the log or, if it left it, in a block.
func (r *recovery) completion(x storage.Completion) {
	c := r.f.core
	if l, ok := r.log[x.Seq]; ok {
		c.Records.Discard(l.ref)
		delete(r.log, x.Seq)
		return
	}
	r.blocks.Finish(x)
}

func (r *recovery) tooHigh(p uint8) error {
	return fmt.Errorf("the store has URLs of priority %d; Priorities is %d, want at least as many", p, r.f.opts.Priorities)
}

// finish puts the log's records into their queues and the hosts where they belong.
func (r *recovery) finish() {
	r.blocks.End()
	r.queueLog()
	r.f.core.Opened(!r.f.opts.ContactedAt.IsZero())
}

// queueLog puts the log's records into their queues. Those whose time has come take the places among
// the others that they had, as far as the times of batches show.
func (r *recovery) queueLog() {
	c := r.f.core
	var came []uint64
	for _, seq := range r.order {
		switch x, ok := r.log[seq]; {
		case !ok || !x.timed:
		case r.superseded(x, seq):
			q := c.Queues.At(x.queue)
			c.FoundOutdated(storage.Completion{Seq: seq}, string(c.NameOf(q.Host)), c.CrawlNumber(q), x.due)
			c.Records.Discard(x.ref)
		case x.due <= 0 && c.DeadIn(c.Queues.At(x.queue)).Seq < seq: // else a deletion finds it
			came = append(came, seq)
		default:
			c.Schedule(x.queue, x.ref, x.due)
		}
	}
	slices.SortStableFunc(came, func(a, b uint64) int { return cmp.Compare(r.log[a].since, r.log[b].since) })
	wait := func(x logged) {
		q := c.Queues.At(x.queue)
		c.Fifo.Push(&q.Queue, x.ref)
		c.List(x.queue)
		c.Counted(q, 1)
	}
	for _, seq := range r.order {
		x, ok := r.log[seq]
		if !ok || x.timed {
			continue
		}
		for len(came) > 0 && came[0] < seq && r.log[came[0]].since <= x.since {
			wait(r.log[came[0]])
			came = came[1:]
		}
		wait(x)
	}
	for _, seq := range came {
		wait(r.log[seq])
	}
}

// Begin restores what must be known before the first host.
func (r *recovery) Begin(read func(string) ([]byte, bool, error)) error {
	value, found, err := read(row.MetaKey)
	if err != nil {
		return err
	}
	if !found {
		r.f.core.Key = mercator.RandomKey()
		return nil
	}
	return r.meta(value)
}

// Row restores hosts and groups.
func (r *recovery) Row(key string, value []byte) error {
	if len(key) < 2 {
		return nil // row.MetaKey, or not ours to judge
	}
	if key == row.SumKey {
		r.right = true
		return nil
	}
	switch kind, name := key[:2], key[2:]; kind {
	case row.RuleKey:
		return r.rule(key, value)
	case row.GroupKey:
		g, err := row.ParseGroup(name, value)
		if err != nil {
			return err
		}
		r.group(name, &g)
	case row.CrawlKey:
		x, err := row.ParseCrawl(name, value)
		if err != nil {
			return err
		}
		r.f.core.SetCrawl(x.ID, x.CrawlSettings, 0, 0)
	case row.UsageKey:
		return r.usage(key, value)
	case row.DeletionKey:
		return r.deletion(key, value)
	case row.ForgetKey:
		return r.forgotten(key, value)
	case row.OutdatedKey:
		x, err := row.ParseOutdated(key, value)
		if err != nil {
			return err
		}
		r.f.notes.Set(x.Mark, x.Seq, x.Block)
	case row.AgainKey:
		return r.again(key, value)
	case row.HintKey:
		return r.hint(key, value)
	case row.SumKey:
		crawl, sum, err := row.ParseCountSum(key, value)
		if err != nil || !r.f.opts.Count {
			return err
		}
		r.f.core.Counts.SetSum(crawl, sum)
	case row.HostKey:
		s, err := row.ParseHost(name, value)
		if err != nil {
			return err
		}
		r.host(name, s)
	}
	return nil
}

// rule puts a stored rule in force. A block that has passed is not set any more.
func (r *recovery) rule(key string, value []byte) error {
	scope, stored, err := row.ParseRule(key[len(row.RuleKey):], value)
	if err != nil {
		return err
	}
	if !r.f.controls.Restore(scope, stored, r.f.token, r.f.last) {
		r.obsolete(key)
	}
	return nil
}

// host restores a host that has URLs from its row. Other hosts stay on disk, unless the
// row is obsolete.
func (r *recovery) host(name string, s row.Host) {
	f := r.f
	hash := f.core.HashOf(name)
	id := f.core.Lookup(hash, name)
	if id == 0 && s.CrawlDelay == 0 && !s.Assigned && s.Standing == 0 && f.owed(instant.FromMillis(s.Due)) <= 0 && !f.core.TroubleKept(&s, f.token, f.last) {
		if s.Used == (row.Usage{}) {
			r.obsolete(row.HostKey + name)
			return
		}
		if len(r.counted) < maxStale/64 { // rules come later
			r.counted = append(r.counted, countedHost{name, s.Used})
		}
	}
	f.core.Dormant.HasRow(hash)
	if id != 0 {
		f.core.Remember(id, &s, f.token, f.last)
	}
}

func (r *recovery) group(name string, g *row.Group) {
	c := r.f.core
	set := *g
	set.Due = 0
	if set != (row.Group{}) {
		r.f.controls.SetGroup(name, set)
	}
	at := min(r.f.owed(instant.FromMillis(g.Due)), int64(maxDelay))
	if g.Due == 0 || at <= 0 || c.GroupStartsAt != nil && at <= c.GroupStartsAt(nil) {
		if set == (row.Group{}) {
			r.groups = append(r.groups, name)
		}
		return
	}
	c.PostponeGroup(c.GroupOf(name), at)
}

// obsolete notes a row to delete. Beyond a bound they are left for the next opening.
func (r *recovery) obsolete(key string) {
	if len(r.stale) < maxStale {
		r.stale = append(binary.AppendUvarint(r.stale, uint64(len(key))), key...)
	}
}

// deleteStale deletes obsolete rows.
func (r *recovery) deleteStale() error {
	f := r.f
	for _, name := range r.groups {
		if f.core.GroupNamed(name) == 0 {
			r.obsolete(row.GroupKey + name)
		}
	}
	r.staleUsage()
	for len(r.stale) > 0 {
		var rows []storage.Row
		for len(r.stale) > 0 && len(rows) < clocksAtOnce {
			n, k := binary.Uvarint(r.stale)
			end := k + int(n)
			rows = append(rows, storage.Row{Key: string(r.stale[k:end])})
			r.stale = r.stale[end:]
		}
		if err := f.commitOpening(rows); err != nil {
			return err
		}
	}
	return nil
}

// importStart leaves all hosts alone until a time, in Unix milliseconds: those without a
// line may have been contacted just before.
func (f *Frontier) importStart(until int64) error {
	if until == 0 {
		return nil
	}
	f.lock()
	at := min(f.owed(instant.FromMillis(until)), f.last+int64(maxDelay))
	if f.closed || at <= f.last || at <= f.core.StartsAt {
		f.mu.Unlock()
		return nil
	}
	f.core.ReopenedAt = max(f.core.ReopenedAt, at-f.maxDelay)
	f.core.StartsAt = at
	f.core.StartGroupsAt(at)
	f.core.HostStartsAt = f.startOfHost
	if f.opts.Spill == nil {
		f.mu.Unlock()
		return nil
	}
	o := newOp()
	defer o.free()
	o.rows = append(o.rows, f.metaRowLocked(f.gen, false))
	return f.submitAndUnlock(o)
}

// judgeCounts compares the stored counts with what was found: a store that was repaired, for example, has
// lost some. Dead URLs are among what was found, but not always counted.
func (r *recovery) judgeCounts() {
	c := r.f.core
	if c.Counts == nil {
		return
	}
	found := c.Stats.Waiting + c.Stats.Scheduled + c.Stats.Finished + int64(len(c.Found))
	total := int64(0)
	for _, crawl := range c.Counts.Crawls() {
		total += c.Counts.Sum(crawl).Total
	}
	r.right = r.right && total <= found && (total == found || c.Deletions.Stored.Len() > 0)
	if !r.right {
		c.Counts = count.NewTable(r.f.opts.Spill)
	}
}
