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
	"context"
	"errors"
	"fmt"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/control"
	"github.com/seed-7440039f/frontier/internal/count"
	"github.com/seed-7440039f/frontier/internal/hint"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/known"
	"github.com/seed-7440039f/frontier/internal/mercator"
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

// mark is the fingerprint of a host's URL within a crawl.
func (r *Recovery) mark(host string, crawl uint32, url []byte) storage.Mark {
	return known.MarkOf(r.Core.Key, r.Forgotten.Of(host, crawl), crawl, string(url))
}

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
