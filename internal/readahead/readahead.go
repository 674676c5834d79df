// Package readahead reads the timed blocks shortly before their scheduled URLs are due: one goroutine does, or a
// call that wants one at once. It owns which block is being read; package timed knows when each is due.
//
// It works with the frontier's lock, which its methods need, and hold throughout, unless they say otherwise; those
// whose names end with Yielding give it up in between.
package readahead

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/found"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
)

// Frontier is what a Reader asks of the frontier.
type Frontier interface {
	ledger.Present
	Token() uint64              // of the last lease
	Ended() bool                // nothing is handed out any more
	Awaited() bool              // a call waits for a URL
	Fault(err error, once bool) // for the next call of Next; once: unless another waits for one

	ReadRows(of []*mercator.Absentee) error // called without the lock
}

// Reader reads timed blocks.
type Reader struct {
	*found.Found
	KeepOpen bool
	NoDedup  bool

	up   Frontier
	one  chan struct{} // holds an element while a block is read; the lock is taken after it
	wake chan struct{} // has a token when blocks should be read
}

// New returns a Reader. It begins with what became due while the store was closed.
func New(f *found.Found, up Frontier) *Reader {
	r := &Reader{Found: f, up: up, one: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	r.wake <- struct{}{}
	return r
}

// Wake starts the reader if there is something for it.
func (r *Reader) Wake() {
	if r.Core.Timed.Len() > 0 && (r.wanted(r.up.Last(), false) || r.sweepWanted()) {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// wanted reports whether a timed block should be read now. idle says
// that a caller has nothing to do.
func (r *Reader) wanted(now int64, idle bool) bool {
	c := r.Core
	date := c.Date(now)
	if r.up.Ended() || c.Timed.MinUnread() > date+c.Cfg.Ahead/4 {
		return false
	}
	limit, used := r.up.Limit(), c.Records.Used()+r.Ledger.Bytes()
	switch {
	case c.Timed.MinUnread() > date:
		return used <= limit/2 && c.Timed.AheadFrom <= now
	case used <= limit*9/10:
		return true
	case limit < ledger.LeastLimit: // hosts and marks alone use the budget up
		return c.Stats.Waiting+c.Stats.Leased == 0
	}
	return idle || r.up.Awaited()
}

// Due reports whether TryNext should read a block, or wait for the one
// that is being read: it holds what is due, or decides whether the crawl is over.
func (r *Reader) Due(now int64) bool {
	c := r.Core
	t := &c.Timed
	if date := c.Date(now); t.Reading().ID != 0 && t.Reading().At <= date || t.MinUnread() <= date && r.wanted(now, true) {
		return true
	}
	return c.Stats.Waiting+c.Stats.Leased == 0 && c.Scheduled.Min() == instant.Never && r.sweepWanted()
}

// Event is when the reader has something to do if nothing is due before.
func (r *Reader) Event(now int64) int64 {
	at := r.Core.Timed.MinUnread()
	if at == instant.Never {
		return instant.Never
	}
	if ahead := max(r.Core.Moment(at-r.Core.Cfg.Ahead/4), r.Core.Timed.AheadFrom); ahead > now {
		return ahead
	}
	return instant.Never // the reader knows, or memory is short until then
}

// Loop reads what is due until stop is closed. The lock is not held.
func (r *Reader) Loop(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-r.wake:
		}
		for r.Read(false) {
		}
	}
}

// Read reads one timed block as far as needed, if one is wanted. idle says
// that the caller has nothing to do. The lock is not held.
func (r *Reader) Read(idle bool) bool {
	r.one <- struct{}{}
	defer func() { <-r.one }()
	r.Mu.Lock()
	it, sweep := timeheap.Item{}, false
	switch {
	case r.wanted(r.up.Now(), idle):
		it = r.Core.Timed.Begin()
	case r.sweepWanted():
		it, sweep = r.beginSweep(), true
	}
	r.Mu.Unlock()
	if it.ID != 0 {
		r.readBlock(it, sweep)
	}
	if sweep {
		r.Mu.Lock()
		r.Notes.Swept(&r.Core.Timed)
		r.Mu.Unlock()
	}
	return it.ID != 0 || sweep
}

// ReadFor reads a timed block for the sake of hints, if it is still unread. It
// reports whether the walk may go on. The lock is not held.
func (r *Reader) ReadFor(block uint32) (more bool) {
	r.one <- struct{}{}
	defer func() { <-r.one }()
	r.Mu.Lock()
	if r.up.Ended() || r.Found.Hints.Len() == 0 {
		r.Mu.Unlock()
		return false
	}
	it := r.Core.Timed.BeginBlock(block)
	r.Mu.Unlock()
	if it.ID != 0 {
		r.readBlock(it, true)
	}
	return true
}

// readBlock reads the timed block that is being read, and takes in what is wanted of
// it: all that is finished if it is read for its own sake, what is due soon else.
func (r *Reader) readBlock(it timeheap.Item, sweep bool) {
	records, err := r.load(it)
	if err == nil {
		r.Found.ApplyTimed(records)
	}
	r.Mu.Lock()
	defer r.Mu.Unlock()
	switch {
	case r.up.Closed():
		r.Core.Timed.PutBack(it.At)
	case err != nil:
		r.failed(err)
	case sweep:
		r.Found.AwaitForcesYielding(records)
		r.Core.FinishTimedDead(records, r.dead)
		r.Core.InstallTimed(records, 0, r.up.Now())
	default:
		r.arriveYielding(records)
	}
	r.Ledger.CommitFound()
	r.up.Dispatch()
}

// arriveYielding makes those records resident whose time is near. It releases the
// lock to read what was learned of their hosts.
func (r *Reader) arriveYielding(records []timed.Loaded) {
	c := r.Core
	n := -1
	var hosts []mercator.Absentee
	for {
		r.Found.AwaitForcesYielding(records)
		if r.up.Closed() {
			c.Timed.PutBack(c.Timed.Reading().At)
			return
		}
		c.FinishTimedDead(records, r.dead)
		if n < 0 {
			date := c.Date(r.up.Now())
			n = c.Timed.Soon(records, date, date+c.Cfg.Ahead, c.Records.Used() > c.Cfg.EvictOver)
			hosts = newAbsentees(records[:n])
		}
		wanted := r.Core.Absentees(hosts)
		if len(wanted) == 0 {
			break
		}
		r.Mu.Unlock()
		err := r.up.ReadRows(wanted)
		r.Mu.Lock()
		if err != nil {
			r.up.Emit(event.Event{Kind: event.StoreError, Reason: "reading hosts of scheduled URLs", Count: int64(n), Err: err})
			r.up.Lost(err)
			if errors.As(err, new(*storage.CorruptError)) {
				r.up.Fault(err, true)
			}
			c.RetryTimed(r.up.Now())
			return
		}
	}
	now := r.up.Now()
	c.Advance(now)
	for i := range hosts {
		r.Core.ComeBack(&hosts[i], r.up.Token(), r.up.Last())
	}
	c.InstallTimed(records, n, now)
}

// newAbsentees lists the hosts of records.
func newAbsentees(records []timed.Loaded) []mercator.Absentee {
	var hosts []mercator.Absentee
	listed := map[string]bool{}
	for i := range records {
		if r := &records[i]; !listed[r.Host] {
			listed[r.Host] = true
			hosts = append(hosts, mercator.Absentee{Hash: r.Hash, Host: r.Host})
		}
	}
	return hosts
}

// failed puts the block being read back, or gives it up.
func (r *Reader) failed(err error) {
	c := r.Core
	n, at := timed.Live(c.Timed.Reading()), c.Timed.Reading().At
	r.Notes.SweepFailed()
	c.Timed.PurgeFailed()
	r.up.Emit(event.Event{Kind: event.StoreError, Reason: "reading scheduled URLs", Count: int64(n), Err: err})
	r.up.Lost(err)
	if errors.As(err, new(*storage.CorruptError)) {
		lost := int64(c.Timed.Lose()) // they stay on disk
		*c.Stats.DueAt(at) -= lost
		c.Stats.Unreadable += lost
		r.up.Fault(err, false)
		return
	}
	c.RetryTimed(r.up.Now())
}

// unread reads the unread records of a block that are wanted.
func (r *Reader) unread(it timeheap.Item, wanted func(*storage.TimedRecord) bool) (out []timed.Loaded, err error) {
	err = r.Spill.LoadTimed(it.ID, timed.First(it), func(pos int, x storage.TimedRecord) bool {
		if wanted(&x) {
			x.Body = append([]byte(nil), x.Body...)
			out = append(out, timed.Loaded{TimedRecord: x, Pos: pos, At: r.Core.Clock.StoredDue(x.Due)})
		}
		return true
	})
	return out, err
}

// load reads the unread records of a block, and what must be known of them.
func (r *Reader) load(it timeheap.Item) ([]timed.Loaded, error) {
	out, err := r.unread(it, func(*storage.TimedRecord) bool { return true })
	if err != nil {
		return nil, err
	}
	for i := range out {
		x := &out[i]
		b, err := record.Decode(x.Body)
		if err == nil {
			err = hostkey.Check(x.Host)
		}
		if err == nil && !r.Core.IsPriority(x.Priority) {
			err = fmt.Errorf("priority is %d; want 1 to %d", x.Priority, r.Core.Cfg.Levels)
		}
		if err != nil {
			return nil, &storage.CorruptError{Err: err}
		}
		x.Hash = r.Core.HashOf(x.Host)
		if !r.NoDedup {
			x.Mark = r.Found.Mark(x.Host, x.Crawl, string(b.URL))
		}
	}
	return out, nil
}

// List begins a list of the timed blocks that hold records which are on disk
// only. It takes the lock. EndList ends the list.
func (r *Reader) List() *timed.List {
	t := &r.Core.Timed
	r.Mu.Lock()
	l := t.BeginList()
	for more := !t.Empty(); more; {
		r.Mu.Unlock()
		l.Grow()
		r.Mu.Lock()
		more = t.List(l)
	}
	r.Mu.Unlock()
	return l
}

// dead reports whether a record of a timed block is finished: a Force has
// replaced it, or it was deleted.
func (r *Reader) dead(x *timed.Loaded) bool {
	if r.Found.Superseded(x) {
		r.Core.FoundOutdated(storage.Completion{Seq: x.Seq, Block: r.Core.Timed.Reading().ID, Pos: uint16(x.Pos)}, x.Host, x.Crawl, x.At)
		return true
	}
	d := r.Core.Deletions.Stored.Of(hostkey.Bytes(x.Host), x.Crawl)
	if d.Seq < x.Seq {
		return false
	}
	r.Core.Stats.Deleted++
	d.By.Removed++
	return true
}

const (
	// sweepAtMost is how many timed blocks are looked through for each new note.
	sweepAtMost = 32
	// sweepFor is how many new notes justify searching one more block when there are finished
	// URLs, whose blocks never become due.
	sweepFor = 4
)

// sweepWanted reports whether blocks should be looked through for superseded records before their
// time: while they are few, or if the crawl might be over without them.
func (r *Reader) sweepWanted() bool {
	c := r.Core
	unread := c.Timed.Len()
	switch {
	case r.up.Ended() || unread == 0:
		return false
	case r.Notes.Sweeping(), c.Timed.Purging():
		return true
	case c.Timed.Postponed() && !r.KeepOpen && c.Stats.Waiting+c.Stats.Leased == 0 && c.Scheduled.Min() == instant.Never && c.Stats.Scheduled > 0:
		return true // the crawl might be over without what is dead
	case !r.Notes.Unswept():
		return false
	}
	return unread <= sweepAtMost || c.Stats.Finished > 0 && r.Notes.Young() >= sweepFor*unread ||
		c.Stats.Waiting+c.Stats.Leased == 0 && c.Scheduled.Min() == instant.Never && c.Stats.Scheduled > 0 && c.Stats.Scheduled <= 4*int64(r.Notes.Len())
}

// beginSweep begins to read a block to look through; the zero item if
// it was read meanwhile.
func (r *Reader) beginSweep() timeheap.Item {
	t := &r.Core.Timed
	if !r.Notes.Sweeping() && !t.Purging() && t.Postponed() {
		t.PurgeNow()
	}
	if t.Purging() {
		return t.BeginPurge()
	}
	return r.Notes.BeginSweep(&r.Core.Timed)
}

// ReadOutdated searches the disk for records that a Force has replaced, while that is cheap.
func (r *Reader) ReadOutdated() {
	for range 2 * sweepAtMost {
		r.Mu.Lock()
		t := &r.Core.Timed
		cheap := r.Spill != nil && !r.up.Closed() && (r.Notes.Unswept() || r.Notes.Sweeping()) && t.Len() > 0 && t.Len() <= sweepAtMost
		r.Mu.Unlock()
		if !cheap || !r.Read(true) {
			break
		}
	}
	r.Mu.Lock() // another reader may have found them
	wait := len(r.Core.Found)+len(r.Core.Finding) > 0
	r.Mu.Unlock()
	if wait {
		_ = r.Ledger.Between(func() error { return nil }) // a failure is the commit's to report
	}
}

// EachTimed calls fn, without the lock, with the records in timed blocks that are wanted and neither
// finished nor superseded, until it returns false. It skips damaged blocks, which their reader reports.
// moved reports that it skipped others because their records have come into memory or are finished.
func (r *Reader) EachTimed(ctx context.Context, blocks []timeheap.Item, wanted func(*storage.TimedRecord) bool, fn func(*timed.Loaded) bool) (moved bool, err error) {
	for _, it := range blocks {
		if err := ctx.Err(); err != nil {
			return moved, err
		}
		found, err := patience.Ask(ctx, r.Life, func() ([]timed.Loaded, error) { return r.unread(it, wanted) })
		if err == nil && len(found) == 0 {
			continue
		}
		r.Mu.Lock()
		closed, gone := r.up.Closed(), !r.Core.Timed.Has(it.ID)
		if err == nil {
			found = slices.DeleteFunc(found, func(x timed.Loaded) bool {
				return r.Core.Blocks.IsBuried(it.ID, x.Pos) || r.Core.Deleted(x.Host, x.Crawl, x.Seq) || r.supersededBody(&x)
			})
		}
		r.Mu.Unlock()
		switch {
		case closed:
			return moved, storage.ErrClosed
		case gone:
			moved = true
			continue
		case errors.As(err, new(*storage.CorruptError)):
			continue
		case err != nil:
			return moved, err
		}
		for i := range found {
			if !fn(&found[i]) {
				return moved, nil
			}
		}
	}
	return moved, nil
}

// supersededBody reports whether a Force has replaced a record whose mark is unknown.
func (r *Reader) supersededBody(x *timed.Loaded) bool {
	if r.Notes.Len() == 0 {
		return false
	}
	b, err := record.Decode(x.Body)
	if err != nil {
		return false
	}
	x.Mark = r.Found.Mark(x.Host, x.Crawl, string(b.URL))
	return r.Found.Superseded(x)
}
