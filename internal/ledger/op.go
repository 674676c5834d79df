// This file has operations: what one call wants committed.

package ledger

import (
	"context"

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
