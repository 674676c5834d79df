// This file has operations, what one call wants committed, submits them, and waits for them.

package ledger

import (
	"context"
	"fmt"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/commit"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

// Entry is a valid entry, ready to be admitted.
type Entry struct {
	Index    int    // in its call; negative: a URL's own next record
	Hash     uint64 // of Host
	Host     string
	URL      string // empty, or that of Body
	Mark     storage.Mark
	Due      int64 // date; 0: waiting at once
	Body     []byte
	Crawl    uint32
	Priority uint8
	Absentee int32 // its host's index among the absent hosts of its call + 1; 0: none
	Marked   bool  // Mark was inserted for it
	Stored   bool  // the Spill knows Mark
	Fetched  bool  // the Spill had to be asked for that
	Force    bool
	Hint     bool
	News     int64  // of a hint: its NotBefore in Unix milliseconds; 0: none
	ForcedAt uint64 // the last sequence number when it met a lease (see Ledger.Again), or the record's that it replaces because of a hint
}

// SameHost reports whether two entries are of one host.
func (e *Entry) SameHost(other *Entry) bool { return e.Hash == other.Hash && e.Host == other.Host }

// Op is an operation. It belongs to the ledger from its submission until it is settled, and for good once Left.
type Op struct {
	Context context.Context // ends the waiting for it; nil: nothing but Release does
	Left    bool            // its caller waits no more
	told    bool            // it was released

	Entries       []Entry
	record.Pieces // the bodies of entries, and values
	Rows          []storage.Row
	Links         bool                // it admits, or finds that others did: see commitAlone
	Reserved      []limit.Reservation // by entry: where it is counted until it waits; may be shorter
	Counts        bool                // the batch writes rows of what limits have used

	Marks []storage.Mark // of URLs that become known, and were inserted for it

	Ends bool // Record, of Queue and Host, is finished
	mercator.Outgoing
	Pinned uint32 // host that stays in memory until then, and whose row may be among Rows; 0: none

	Replaced   []storage.Completion // records of the timed block being read that entries replace
	ReplacedIn []storage.Queue      // the queue of each

	NoteBlock uint32 // the entry supersedes a record in a timed block up to this one; 0: none

	Tally   *int64 // counts it once this is committed; nil: nothing does
	Unlearn func() // takes back what a failed commit must not teach; nil: nothing

	firstSeq uint64
	Event    *event.Event        // reported once this is committed
	Deletion *tombstone.Deletion // comes into force
	Rule     func()              // puts a control in force, under the lock, in the order of commits
	Unrule   func()              // called instead if it could not be committed
	run      func() error        // instead of all that: called between two commits
	After    func(error)         // called outside the lock if no call waits for done
	done     commit.Reply        // of the commit, if a call waits for it
}

// Reset makes an operation that is settled ready for use again, with its memory.
func (o *Op) Reset() {
	clear(o.Entries)
	entries, pieces := o.Entries[:0], o.Reused()
	*o = Op{} // it is large: a literal with these would be copied
	o.Entries, o.Pieces = entries, pieces
}

// Empty reports whether there is nothing to commit.
func (o *Op) Empty() bool {
	return len(o.Entries) == 0 && !o.Ends && !o.Counts && len(o.Rows) == 0 && len(o.Marks) == 0
}

// Life is how long the caller that submits the operation waits.
func (o *Op) Life() context.Context {
	if o.Context == nil {
		return context.Background()
	}
	return o.Context
}

// release lets the caller of an operation that is not settled return.
func (o *Op) release() {
	if !o.told && o.After == nil {
		o.told = true
		o.done.Release()
	}
}

// needsRoom reports whether an operation asks for more than a few bytes, or took URLs for known
// that are refused now.
func (o *Op) needsRoom() bool {
	return o.Links || len(o.Entries)+len(o.Marks)+len(o.Replaced) > 0
}

// SubmitAndUnlock commits an operation and waits for it.
func (l *Ledger) SubmitAndUnlock(o *Op) error {
	if l.SubmitYielding(o) {
		l.Mu.Unlock()
		return l.Await(o)
	}
	l.up.Dispatch()
	l.Mu.Unlock()
	return nil
}

// SubmitYielding commits an operation, and reports whether its result must be waited for.
func (l *Ledger) SubmitYielding(o *Op) (waits bool) {
	l.pending++
	if l.Spill != nil || l.up.Closed() {
		l.enqueue(o)
		return true
	}
	l.applyYielding(o)
	l.pending--
	return false
}

// SubmitAsync commits an operation without waiting; o.After gets the result, unless it is nil. The operation has at
// most AtOnce entries, so that the lock is not given up.
func (l *Ledger) SubmitAsync(o *Op) {
	if o.After == nil {
		o.After = func(error) {}
	}
	if !l.SubmitYielding(o) {
		l.afterwards(o, nil)
	}
}

// enqueue hands an operation to the committer's goroutine, which sends on o.done. After
// Stop there is no such goroutine any more: the operation is undone, and fails.
func (l *Ledger) enqueue(o *Op) {
	if o.After == nil {
		o.done = l.replies.New()
	}
	if l.up.Closed() {
		l.Undo(o)
		l.pending--
		if o.After == nil {
			o.done.Send(storage.ErrClosed)
		}
		return
	}
	l.named(o.Entries)
	l.queue.Add(o)
	if l.unwaited {
		o.release()
	}
}

// named notes that entries are submitted: departing hosts that they name stay until they are settled.
func (l *Ledger) named(entries []Entry) {
	c := l.Core
	if !c.Dormant.Submitted() {
		return
	}
	for i := range entries {
		e := &entries[i]
		if i > 0 && e.SameHost(&entries[i-1]) || !c.Dormant.MayHaveRow(e.Hash) {
			continue
		}
		if id := c.Lookup(e.Hash, e.Host); id != 0 && c.Hosts.At(id).Place == mercator.Departing {
			c.Depart(id)
		}
	}
}

// Await waits for an operation that was submitted. If its Context ends before, the operation is the ledger's for good,
// and the error wraps ErrUnsettled. The lock is not held.
func (l *Ledger) Await(o *Op) error {
	err, why := l.replies.Wait(o.Context, o.done)
	if why == nil {
		return err
	}
	o.Left = true
	if why == commit.ErrReleased {
		why = storage.ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrUnsettled, why)
}

// Result waits for an operation that was submitted, whatever ends. The lock is not held.
func (o *Op) Result() error { return o.done.Result() }

// Between calls fn between two commits; without a Spill, with the lock held. It is called without the lock.
func (l *Ledger) Between(fn func() error) error {
	l.Mu.Lock()
	if l.up.Closed() {
		l.Mu.Unlock()
		return storage.ErrClosed
	}
	if l.Spill == nil {
		defer l.Mu.Unlock()
		return fn()
	}
	o := &Op{run: fn}
	l.pending++
	l.enqueue(o)
	l.Mu.Unlock()
	return o.Result()
}

// afterwards calls o.After with the result of the commit, in another goroutine: it may call the frontier, and so
// wait for the committer.
func (l *Ledger) afterwards(o *Op, err error) { l.work.Go(func() { o.After(err) }) }

// settled passes the result of the commit to the caller of an operation.
func (l *Ledger) settled(o *Op, err error) {
	if o.After != nil {
		l.afterwards(o, err)
		return
	}
	o.done.Send(err)
}

// Jobs are operations that replace one record in memory each.
type Jobs struct {
	*Ledger
	jobs []*Op // that wait for a commit
}

// AddYielding submits one.
func (j *Jobs) AddYielding(o *Op) {
	if j.SubmitYielding(o) {
		j.jobs = append(j.jobs, o)
	}
}

// AwaitAndUnlock waits for their commits.
func (j *Jobs) AwaitAndUnlock() (err error) {
	j.up.Dispatch()
	j.Mu.Unlock()
	for _, o := range j.jobs {
		if e := o.Result(); e != nil {
			err = e
		}
	}
	return err
}
