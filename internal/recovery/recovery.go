// Package recovery fills an empty frontier from its Spill. Until the store is open it owns what it reads of the
// log, and notes which rows are of no use any more.
//
// Marks and blocks come first, then the log since the last checkpoint, then rows: only hosts that turn out to
// have URLs are restored to memory from their rows. Unless the frontier was closed cleanly, every host counts
// as contacted at the moment of reopening, since it is not known what the lost leases did.
//
// A host or group whose row would only say what a reader assumes anyway has no row.
//
// No other goroutine has the frontier meanwhile, so there is no lock.
package recovery

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/control"
	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/hint"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/known"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

// Frontier is what is filled.
type Frontier struct {
	Core      *mercator.Core
	Controls  *control.Controls
	Known     *known.URLs
	Notes     *timed.Notes
	Hints     *hint.Pending
	Forgotten *tombstone.Forgotten
	Spill     storage.Spill

	HostNames uint64 // fingerprint of the function that names hosts
	Counts    bool   // the numbers of URLs are wanted
	Elsewhere bool   // another process had the hosts until it was known how long
}

// Recovery is a storage.Recovery, and what it found.
type Recovery struct {
	Frontier

	Last     uint64 // ID of the last batch
	Seq      uint64 // last sequence number
	Epoch    uint64 // how often the store was opened
	Gen      uint32 // of the last checkpoint
	LogBytes int64  // since then
	Counted  bool   // the stored numbers of URLs are right
	Again    []row.Again

	groups  []string      // whose rows say nothing unless they have members
	counted []countedHost // hosts with usage in their rows, and nothing else
	stale   []byte        // keys of rows that are of no use, each behind its length
	blocks  mercator.Restore
	log     map[uint64]logged // by sequence number
	order   []uint64          // of log
}

// logged is a record of the log that is not finished yet.
type logged struct {
	ref   arena.Ref
	queue uint32
	timed bool
	due   int64 // if timed; negative if its time came before the opening
	since int64 // the date from which it waits, of a batch of about then
}

// Read fills f from its Spill, and takes the Spill into use unless it returns an error.
func Read(ctx context.Context, f Frontier) (*Recovery, error) {
	r := begin(f)
	if err := f.Spill.Recover(ctx, r); err != nil {
		return nil, err // if it is in use, another uses it
	}
	r.finish()
	r.judgeCounts()
	return r, nil
}

func begin(f Frontier) *Recovery {
	return &Recovery{Frontier: f, log: map[uint64]logged{}, blocks: f.Core.Restore()}
}

// Begin restores what must be known before the first host.
func (r *Recovery) Begin(read func(string) ([]byte, bool, error)) error {
	value, found, err := read(row.MetaKey)
	if err != nil {
		return err
	}
	if !found {
		r.Core.Key = mercator.RandomKey()
		return nil
	}
	m, err := row.ParseMeta(value)
	if err != nil {
		return err
	}
	if m.Hosts != 0 && m.Hosts != r.HostNames {
		return errors.New("HostKey names hosts otherwise than before: each machine would be two hosts; want the function with which the store was made")
	}
	r.Core.Key, r.Epoch, r.Seq, r.Gen = m.Key, m.Epoch, m.Seq, m.Gen
	if !m.Clean {
		r.Core.Reopen(0)
	}
	if m.Held != 0 && !r.Elsewhere { // in the future, if another process had contacted hosts
		r.Core.Reopen(r.moment(int64(m.Held)))
	}
	return nil
}

// Marks takes the number of known URLs.
func (r *Recovery) Marks(n int64) error {
	r.Known.Restore(n)
	return nil
}

// Dead takes which records of a block have ended.
func (r *Recovery) Dead(id uint32, bits []byte) error {
	r.Core.Blocks.RestoreDead(id, bits)
	return nil
}

// Part takes a part of a block.
func (r *Recovery) Part(q storage.Queue, p storage.Part) error {
	qid, err := r.queue(q)
	if err != nil {
		return err
	}
	r.blocks.Part(qid, p)
	return nil
}

// Timed takes a timed block.
func (r *Recovery) Timed(b storage.TimedBlock) error {
	if b.Priority > 0 && !r.Core.IsPriority(b.Priority) {
		return r.tooHigh(b.Priority)
	}
	return r.blocks.Timed.Block(b, r.Core.Clock.StoredDue(b.Due))
}

func (r *Recovery) queue(q storage.Queue) (uint32, error) {
	c := r.Core
	if err := hostkey.Check(q.Host); err != nil {
		return 0, &storage.CorruptError{Err: err}
	}
	if q.Priority < 1 {
		return 0, &storage.CorruptError{Err: fmt.Errorf("priority is 0; want 1 to %d", c.Cfg.Levels)}
	}
	if !c.IsPriority(q.Priority) {
		return 0, r.tooHigh(q.Priority)
	}
	return c.QueueOf(c.Ensure(c.HashOf(q.Host), q.Host), q.Crawl, q.Priority), nil
}

func (r *Recovery) tooHigh(p uint8) error {
	return fmt.Errorf("the store has URLs of priority %d; Priorities is %d, want at least as many", p, r.Core.Cfg.Levels)
}

// moment is the moment of a stored time.
func (r *Recovery) moment(ms int64) int64 { return r.Core.Clock.Moment(instant.FromMillis(ms)) }

// finish puts the log's records into their queues, and hosts where they belong.
func (r *Recovery) finish() {
	r.blocks.End()
	r.queueLog()
	r.Core.Opened(r.Elsewhere)
}

// judgeCounts compares the stored counts with what was found: a store that was repaired, for example, has
// lost some. Dead URLs are among what was found, but not always counted.
func (r *Recovery) judgeCounts() {
	c := r.Core
	if c.Counts == nil {
		return
	}
	found := c.Stats.Waiting + c.Stats.Scheduled + c.Stats.Finished + int64(len(c.Found))
	total := int64(0)
	for _, crawl := range c.Counts.Crawls() {
		total += c.Counts.Sum(crawl).Total
	}
	r.Counted = r.Counted && total <= found && (total == found || c.Deletions.Stored.Len() > 0)
	if !r.Counted {
		c.Counts = count.NewTable(r.Spill)
	}
}

// Batch takes a batch of the log.
func (r *Recovery) Batch(b *storage.Batch) error {
	c := r.Core
	r.Last = b.ID
	r.LogBytes += move.LogBytes(b)
	at := c.Clock.StoredDue(b.Time)
	for i := range b.Admit {
		a := &b.Admit[i]
		if _, err := record.Decode(a.Body); err != nil {
			return &storage.CorruptError{Err: err}
		}
		qid, err := r.queue(a.Queue)
		if err != nil {
			return err
		}
		x := logged{queue: qid, since: at}
		if a.Due != 0 {
			x.ref, x.timed, x.due = c.Records.StoreForRing(a.Seq, a.Body), true, c.Clock.StoredDue(a.Due)
			x.since = max(at, x.due)
		} else {
			x.ref = c.Records.Store(a.Seq, a.Body)
		}
		r.log[a.Seq] = x
		r.order = append(r.order, a.Seq)
		r.Seq = max(r.Seq, a.Seq)
		if a.HasMark {
			r.Known.Insert(a.Mark)
			r.Known.Log(a.Mark)
		}
	}
	for _, m := range b.Marks {
		if r.Known.Insert(m) {
			r.Known.Log(m)
		}
	}
	for _, x := range b.Finish {
		r.completion(x)
	}
	return nil
}

// completion ends a record that lies in the log or, if it left it, in a block.
func (r *Recovery) completion(x storage.Completion) {
	if l, ok := r.log[x.Seq]; ok {
		r.Core.Records.Discard(l.ref)
		delete(r.log, x.Seq)
		return
	}
	r.blocks.Finish(x)
}

// queueLog puts the log's records into their queues. Those whose time has come take the places among
// the others that they had, as far as the times of batches show.
func (r *Recovery) queueLog() {
	c := r.Core
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

// superseded reports whether a Force replaced a scheduled record of the log: at that time
// the record was in a timed block that is not valid any more.
func (r *Recovery) superseded(x logged, seq uint64) bool {
	if r.Notes.Len() == 0 {
		return false
	}
	c := r.Core
	b := record.Must(c.Records.At(x.ref).Body())
	q := c.Queues.At(x.queue)
	host, crawl := hostkey.String(c.NameOf(q.Host)), c.CrawlNumber(q)
	return r.Notes.Outdated(known.MarkOf(c.Key, r.Forgotten.Of(host, crawl), crawl, string(b.URL)), seq)
}

const (
	rowsAtOnce = 4096    // rows in one batch
	maxStale   = 4 << 20 // bytes of keys of rows that one opening deletes
)

// Row takes a row.
func (r *Recovery) Row(key string, value []byte) error {
	if len(key) < 2 {
		return nil // row.MetaKey, or not ours to judge
	}
	if key == row.SumKey {
		r.Counted = true
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
		r.Core.SetCrawl(x.ID, x.CrawlSettings, 0, 0)
	case row.UsageKey:
		return r.usage(key, value)
	case row.DeletionKey:
		return r.deletion(key, value)
	case row.ForgetKey:
		x, err := row.ParseForgotten(key, value)
		if err != nil {
			return err
		}
		r.Forgotten.Put(&x)
	case row.OutdatedKey:
		x, err := row.ParseOutdated(key, value)
		if err != nil {
			return err
		}
		r.Notes.Set(x.Mark, x.Seq, x.Block)
	case row.AgainKey:
		return r.again(key, value)
	case row.HintKey:
		m, h, err := hint.Parse(key, value)
		if err != nil {
			return err
		}
		r.Hints.Add(m, h, 0, math.MaxInt64)
	case row.SumKey:
		crawl, sum, err := row.ParseCountSum(key, value)
		if err != nil || !r.Counts {
			return err
		}
		r.Core.Counts.SetSum(crawl, sum)
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
func (r *Recovery) rule(key string, value []byte) error {
	scope, stored, err := row.ParseRule(key[len(row.RuleKey):], value)
	if err != nil {
		return err
	}
	if !r.Controls.Restore(scope, stored, 0, 0) {
		r.obsolete(key)
	}
	return nil
}

// usage restores what a scope or crawl has used. Its limits were met before.
func (r *Recovery) usage(key string, value []byte) error {
	s, err := row.ParseUsage(key, value)
	if err != nil {
		return err
	}
	of, err := limit.ParseRowKey(key)
	if err != nil {
		return row.Malformed(key)
	}
	if !r.Core.Limits.Restore(of, s, 0) {
		r.obsolete(key)
	}
	return nil
}

// deletion restores a deletion.
func (r *Recovery) deletion(key string, value []byte) error {
	parsed, err := row.ParseDeletion(key, value)
	if err != nil {
		return err
	}
	last := min(parsed.Block, r.Core.Blocks.Last()) // higher numbers are given once more
	r.Core.Deletions.Enact(tombstone.NewDeletion(parsed), last, r.Last, true)
	r.Seq = max(r.Seq, parsed.Seq)
	return nil
}

// again notes what a record comes again as.
func (r *Recovery) again(key string, value []byte) error {
	a, err := row.ParseAgain(key, value)
	if err != nil {
		return err
	}
	err = hostkey.Check(a.Host)
	if err == nil {
		_, err = record.Decode([]byte(a.Body))
	}
	if err != nil {
		return &storage.CorruptError{Err: err}
	}
	if !r.Core.IsPriority(a.Priority) {
		return r.tooHigh(a.Priority)
	}
	r.Again = append(r.Again, a)
	return nil
}

// host restores a host that has URLs from its row. Other hosts stay on disk, unless the
// row is obsolete.
func (r *Recovery) host(name string, s row.Host) {
	c := r.Core
	hash := c.HashOf(name)
	id := c.Lookup(hash, name)
	if id == 0 && s.CrawlDelay == 0 && !s.Assigned && s.Standing == 0 && r.moment(s.Due) <= 0 && !c.TroubleKept(&s, 0, 0) {
		if s.Used == (row.Usage{}) {
			r.obsolete(row.HostKey + name)
			return
		}
		if len(r.counted) < maxStale/64 { // rules come later
			r.counted = append(r.counted, countedHost{name, s.Used})
		}
	}
	c.Dormant.HasRow(hash)
	if id != 0 {
		c.Remember(id, &s, 0, 0)
	}
}

// countedHost is a host that is on disk only, and can be forgotten unless it has used
// something in a period that has not ended.
type countedHost struct {
	name string
	used row.Usage
}

func (r *Recovery) group(name string, g *row.Group) {
	c := r.Core
	set := *g
	set.Due = 0
	if set != (row.Group{}) {
		r.Controls.SetGroup(name, set)
	}
	at := min(r.moment(g.Due), int64(row.MaxDelay))
	if g.Due == 0 || at <= 0 || c.GroupStartsAt != nil && at <= c.GroupStartsAt(nil) {
		if set == (row.Group{}) {
			r.groups = append(r.groups, name)
		}
		return
	}
	c.PostponeGroup(c.GroupOf(name), at)
}

// obsolete notes a row to delete. Beyond a bound they are left for the next opening.
func (r *Recovery) obsolete(key string) {
	if len(r.stale) < maxStale {
		r.stale = append(binary.AppendUvarint(r.stale, uint64(len(key))), key...)
	}
}

// Stale yields batches of rows that delete what is of no use any more.
func (r *Recovery) Stale() iter.Seq[[]storage.Row] {
	for _, name := range r.groups {
		if r.Core.GroupNamed(name) == 0 {
			r.obsolete(row.GroupKey + name)
		}
	}
	for i := range r.counted {
		if h := &r.counted[i]; !r.Core.Limits.Counts(h.name, h.used, 0) {
			r.obsolete(row.HostKey + h.name)
		}
	}
	r.groups, r.counted = nil, nil
	return func(yield func([]storage.Row) bool) {
		for len(r.stale) > 0 {
			var rows []storage.Row
			for len(r.stale) > 0 && len(rows) < rowsAtOnce {
				n, k := binary.Uvarint(r.stale)
				end := k + int(n)
				rows = append(rows, storage.Row{Key: string(r.stale[k:end])})
				r.stale = r.stale[end:]
			}
			if !yield(rows) {
				return
			}
		}
	}
}
